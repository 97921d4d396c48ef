"""Dialogues with tools: the schemas in the system block, calls, results, answers."""
import json

import pools as P
from tooltable import FAMILIES

LEADS = "Hi! |Hello, |Please: |Hey, |Could you help? |I have a request. |Hello! |OK. |Now: |Next: |Thanks. ".split("|")
TAILS = " Please.| Thanks!| Thank you.| for me| please| now| Can you do that?".split("|")
VERBS = "get find fetch lookup read check query show".split()
TYPES = {"string": "string", "integer": "integer", "number": "number", "boolean": "boolean", "array": "array"}


def schema(name, desc, params, required):
    props = {}
    for pname, kind, text in params:
        props[pname] = {"type": kind, "description": text} if text else {"type": kind}
        if kind == "array":
            props[pname]["items"] = {"type": "string"}
    fn = {"name": name, "description": desc, "parameters": {"type": "object", "properties": props, "required": required}}
    return {"type": "function", "function": fn}


def style_name(rng, name):
    """snake_case mostly, sometimes camelCase, kebab-case or with a prefix."""
    r = rng.random()
    if r < 0.12:
        head, *rest = name.split("_")
        return head + "".join(w.capitalize() for w in rest)
    if r < 0.16:
        return name.replace("_", "-")
    if r < 0.22:
        return rng.choice(["my", "home", "api", "tool", "do", P.invented(rng)]) + "_" + name
    return name


class Tool:
    """One concrete tool and a way to draw uses of it."""

    def __init__(self, rng, words):
        self.option = None
        if rng.random() < 0.62:
            self._family(rng)
        else:
            self._invented(rng, words)

    def _family(self, rng):
        fam = rng.choice(FAMILIES)
        names, descs, params, optional, asks, self.result, back = fam
        name = rng.choice(names.split("|"))
        if not asks:  # a door or window: the name is the request
            verb = name.replace("_", " ").split()
            asks = f"{verb[0].capitalize()} the {verb[1]} in the {{0}}.|Please {verb[0]} the {verb[1]} in the {{0}}.|Can you {verb[0]} the {verb[1]} in the {{0}}?"
        self.name = style_name(rng, name)
        self.params = [(rng.choice(n.split("|")), kind, draw) for n, kind, draw, _ in params]
        while len({p[0] for p in self.params}) < len(self.params):
            self.params = [(rng.choice(n.split("|")), kind, draw) for n, kind, draw, _ in params]
        listed = [(p[0], p[1], q[3] if rng.random() < 0.8 else "") for p, q in zip(self.params, params)]
        if optional and rng.random() < 0.35:
            n, kind, text = rng.choice(optional)
            n = rng.choice(n.split("|"))
            if n not in [p[0] for p in self.params]:
                self.option = (n, kind, text)
                listed.append(self.option)
        self.schema = schema(self.name, rng.choice(descs.split("|")), listed, [p[0] for p in self.params])
        self.asks = asks.split("|")
        self.back, *self.vague = back.split("|")

    def _invented(self, rng, words):
        """A tool that exists nowhere else: its name and parameter come from ordinary words."""
        if rng.random() < 0.4:
            self._action(rng, words)
            return
        noun = rng.choice(words).lower().replace(" ", "_").replace("-", "_").replace("'", "")
        text = noun.replace("_", " ")
        of = rng.choice(["name", "city", "id", "key", "person", "product", "item", "country", "title", "user", "code", "country", "company", rng.choice(words).lower().split()[0]])
        of = of.replace("'", "").replace("-", "_")
        pool = {"city": P.CITIES, "country": P.COUNTRIES, "person": P.NAMES, "name": P.NAMES, "user": P.NAMES, "product": P.THINGS, "item": P.THINGS}.get(of)
        number = of in ("id", "code") or rng.random() < 0.1
        draw = (lambda r: r.randint(1, 9999)) if number else (lambda r: r.choice(pool) if pool and r.random() < 0.9 else P.invented(r).capitalize())
        verb = rng.choice(VERBS)
        self.name = style_name(rng, rng.choice([f"{verb}_{noun}", f"{noun}_{verb}", noun, f"{verb}_{noun}_by_{of}"]))
        self.params = [(of, "integer" if number else "string", draw)]
        desc = rng.choice([f"Get the {text} of a {of}.", f"Returns the {text}.", f"Look up the {text} for a {of}.", f"{text.capitalize()} of a {of}"])
        self.schema = schema(self.name, desc, [(of, self.params[0][1], f"The {of.replace('_', ' ')}" if rng.random() < 0.7 else "")], [of])
        self.asks = [f"What is the {text} of {{0}}?", f"Get the {text} of {{0}}.", f"Tell me the {text} for {{0}}.", f"Look up the {text} of {{0}}.", f"Find the {text} of {{0}}.", f"What {text} does {{0}} have?"]
        if rng.random() < 0.3:
            self.asks = [f"Use {self.name} for {{0}}.", f"Call {self.name} with {{0}}.", f"Call the tool {self.name} with {of} {{0}}.", f"Please use {self.name} with {{0}}."]
        self.back, self.vague = "", []
        numeric = rng.random() < 0.5

        def result(r, v):
            x = r.randint(1, 5000) if numeric else r.choice(words).lower()
            return {rng.choice([noun, "result", "value", of + "_" + noun]): x}, f"The {text} of {v[0]} is {x}."
        self.result = result

    def _action(self, rng, words):
        """stop_job, delete_order, print_ticket ...: something is done to one thing."""
        verb, past = rng.choice(ACTIONS).split("/")
        noun = rng.choice(rng.choice([words, P.THINGS, ["job", "order", "task", "server", "user", "account", "file", "printer", "message", "process", "machine", "ticket", "game", "table", "robot"]])).lower().split()[0].replace("'", "").replace("-", "")
        number = rng.random() < 0.6
        pname = rng.choice([f"{noun}_id", "id", "number", f"{noun}_number", noun] if number else [noun, "name", f"{noun}_name", "target"])
        draw = (lambda r: r.randint(1, 99999)) if number else (lambda r: r.choice([P.invented(r).capitalize(), r.choice(P.NAMES), r.choice(words), P.invented(r)]))
        self.name = style_name(rng, f"{verb}_{noun}")
        self.params = [(pname, "integer" if number else "string", draw)]
        desc = rng.choice([f"{verb.capitalize()} a {noun}.", f"{verb.capitalize()}s the {noun}.", f"{verb.capitalize()} a {noun} by its {'number' if number else 'name'}", f"Use this to {verb} a {noun}."])
        self.schema = schema(self.name, desc, [(pname, self.params[0][1], rng.choice(["", f"The {noun}", f"{'Number' if number else 'Name'} of the {noun}"]))], [pname])
        v, n = verb.capitalize(), noun
        self.asks = [f"{v} {n} {{0}}.", f"{v} the {n} {{0}}.", f"Please {verb} {n} {{0}}.", f"Can you {verb} the {n} {{0}}?", f"I want to {verb} {n} {{0}}.", f"{v} {n} number {{0}}." if number else f"{v} the {n} called {{0}}.", f"Could you {verb} {n} {{0}} for me?"]
        self.back, self.vague = rng.choice([(f"Which {n}?", [f"{v} the {n}.", f"{v} a {n}."]), ("", [])])
        self.result = lambda r, values: ({"status": r.choice(["ok", "done", "success", past])}, f"The {n} {values[0]} is {past}.")

    def use(self, rng):
        """(question, arguments, result text, answer)"""
        values = [draw(rng) for _, _, draw in self.params]
        while len(values) > 1 and values[-1] == values[-2]:
            values[-1] = self.params[-1][2](rng)
        fields, answer = self.result(rng, values)
        args = {p[0]: v for p, v in zip(self.params, values)}
        ask = garnish(rng, rng.choice(self.asks).format(*values))
        if self.option and rng.random() < 0.3:  # the user also gives an optional argument
            name, kind, text = self.option
            value = {"integer": rng.randint(1, 50), "boolean": True, "array": [P.person(rng)]}.get(kind) or rng.choice(
                text.replace(" or ", ", ").split(", ") if " or " in text else [P.invented(rng), rng.choice(P.NAMES)])
            shown = value if isinstance(value, (str, int)) and value is not True else value[0] if kind == "array" else "true"
            ask += rng.choice([f" Use {name} {shown}.", f" ({name}: {shown})", f" Set {name} to {shown}.", f" {name.capitalize()}: {shown}"])
            args[name] = value
        return ask, args, show(rng, fields), answer


def garnish(rng, text):
    """Politeness around a request; the arguments keep their spelling."""
    r = rng.random()
    if r < 0.10:
        text = rng.choice(LEADS) + text
    elif r < 0.16:
        tail = rng.choice(TAILS)
        text = (text.rstrip(".?") if tail[1].islower() else text) + tail
    elif r < 0.24:
        text = text.rstrip(".?")
    if rng.random() < 0.08:
        text = text[0].lower() + text[1:]
    return text


def show(rng, fields):
    """A tool result as programs print it: JSON, pairs or bare values."""
    r = rng.random()
    if r < 0.5:
        return json.dumps(fields, ensure_ascii=False)
    if r < 0.6:
        return json.dumps({"status": "ok", **fields} if "status" not in fields else fields, ensure_ascii=False)
    if r < 0.75:
        return ", ".join(f"{k}: {v}" for k, v in fields.items())
    return ", ".join(str(v) for v in fields.values())


def toolbox(rng, words, at_least=1):
    """Tools with different names; the first is the one the dialogue uses."""
    tools = [Tool(rng, words)]
    count = rng.choice([1, 1, 1, 2, 2, 2, 3, 3, 4])
    while len(tools) < max(count, at_least):
        t = Tool(rng, words)
        if all(t.name != u.name and t.schema["function"]["description"] != u.schema["function"]["description"] for u in tools):
            tools.append(t)
    return tools


def call(name, args):
    return {"type": "function", "function": {"name": name, "arguments": args}}


ACTIONS = """stop/stopped start/started open/opened close/closed delete/deleted remove/removed cancel/cancelled create/created print/printed copy/copied move/moved
restart/restarted pause/paused resume/resumed reserve/reserved rent/rented clean/cleaned check/checked repair/repaired lock/locked unlock/unlocked archive/archived
install/installed update/updated download/downloaded upload/uploaded share/shared block/blocked approve/approved reject/rejected assign/assigned ship/shipped track/tracked
enable/enabled disable/disabled activate/activated feed/fed water/watered wash/washed""".split()
ERRORS = ["not found", "timeout", "permission denied", "no such entry", "service not available", "invalid input", "no connection", "unknown name"]
THINK_CALL = ["I need the tool {n} for this.", "I will call {n}.", "The tool {n} can answer this.", "The user wants this from {n}. I will call it."]
THINK_DONE = ["The tool has answered. I can reply now.", "I have the result.", "Now I can answer from the result."]


def tool_turn(rng, tool, other=None):
    """Messages of one request: question, call or two calls, results, answer."""
    r = rng.random()
    ask, args, result, answer = tool.use(rng)
    if other is not None or r < 0.22:
        second = other or tool
        ask2, args2, result2, answer2 = second.use(rng)
        if args2 == args and second is tool:
            return tool_turn(rng, tool, other)
        template = next((a for a in tool.asks if a.count("{") == 1 and "{0}" in a), None)
        if other is None and template and rng.random() < 0.6:
            first, v1, v2 = template, list(args.values())[0], list(args2.values())[0]
            ask = rng.choice(tool.asks).format(rng.choice([f"{v1} and {v2}", f"{v1} and in {v2}" if "in {0}" in first else f"{v1} and {v2}"]))
        else:
            ask = ask + rng.choice([" And ", " ", " Also: ", " Then ", "\n"]) + ask2
        calls = [call(tool.name, args), call(second.name, args2)]
        think = rng.choice([f"I need two calls: {tool.name} and {second.name}.", "Two tool calls are needed."])
        return [{"role": "user", "content": ask},
                {"role": "assistant", "content": "", "reasoning_content": think, "tool_calls": calls},
                {"role": "tool", "content": result}, {"role": "tool", "content": result2},
                {"role": "assistant", "content": answer + " " + answer2, "reasoning_content": "Both results are here."}]
    out = [{"role": "user", "content": ask}]
    if r < 0.30 and tool.vague:  # the argument is missing: ask back
        given = list(args.values())[0]
        out = [{"role": "user", "content": rng.choice(tool.vague)},
               {"role": "assistant", "content": tool.back, "reasoning_content": f"The tool {tool.name} needs more information."},
               {"role": "user", "content": rng.choice(["{0}", "{0}.", "{0}, please.", "I mean {0}."]).format(given)}]
    if r > 0.94:
        error = rng.choice(ERRORS)
        result = rng.choice([f"Error: {error}", f"error: {error}", json.dumps({"error": error})])
        answer = f"The tool reported an error: {error}."
    return out + [{"role": "assistant", "content": "", "reasoning_content": rng.choice(THINK_CALL).format(n=tool.name), "tool_calls": [call(tool.name, args)]},
                  {"role": "tool", "content": result},
                  {"role": "assistant", "content": answer, "reasoning_content": rng.choice(THINK_DONE)}]


def no_tool(rng, words, tools):
    """A request that none of the tools can serve."""
    for _ in range(20):
        t = Tool(rng, words)
        same = [u for u in tools if u.schema["function"]["description"] == t.schema["function"]["description"] or set(u.asks) & set(t.asks)]
        if not same and t.name not in t.asks[0]:
            return [{"role": "user", "content": t.use(rng)[0]},
                    {"role": "assistant", "content": "I am sorry, I have no tool for that.", "reasoning_content": "No tool fits this request."}]
    return []
