"""Whole conversations: which turns follow each other, with which system block and tools."""
import random

import arith
import chat
import facts
import phrases
import pools as P
import stories
import toolcalls

ADJECTIVES = "friendly polite old young wise cheerful patient clever kind funny quiet brave helpful".split()
ROLES = P.JOBS + "assistant guide robot helper pirate wizard cat owl butler bot companion coach tutor".split()


def exchange(ask, answer, thought):
    return [{"role": "user", "content": ask}, {"role": "assistant", "content": answer, "reasoning_content": thought}]


class Writer:
    """Draws endless conversations from the word list; every word comes up equally often."""

    def __init__(self, entries, seed):
        self.rng = random.Random(seed)
        self.entries = entries
        self.words = [e[0] for e in entries if e[1] == "n" and e[2] and 3 <= len(e[0]) <= 12 and e[0].islower()][:4000]
        self.deck = []
        chat.KNOWN.update(e[0].lower() for e in entries)

    def entry(self):
        if not self.deck:
            self.deck = self.entries + [e for e in self.entries if e[4] >= 40]  # everyday words twice
            self.rng.shuffle(self.deck)
        return self.deck.pop()

    def gloss(self):
        e = self.entry()
        return exchange(phrases.ask(self.rng, e), phrases.answer(e), phrases.thought(self.rng, e))

    def filler(self, sums=True):
        """A turn that has nothing to do with the facts of the chat."""
        r = self.rng.random()
        if r < 0.5:
            return self.gloss()
        if r < 0.65 and sums:
            return exchange(*arith.turn(self.rng))
        if r < 0.85:
            return exchange(*chat.small(self.rng))
        if r < 0.92:
            return exchange(*chat.general(self.rng))
        if r < 0.96:
            return exchange(*chat.unknown_word(self.rng, phrases.ask, self.words))
        return exchange(*chat.unknown(self.rng, self.words))

    def system(self):
        """(system text or None, turns that it makes possible)"""
        rng = self.rng
        r = rng.random()
        if r < 0.55:
            return None, []
        if r < 0.80:
            return rng.choice(chat.SYSTEM), []
        if r < 0.90:
            name, role = P.person(rng), f"{rng.choice(ADJECTIVES)} {rng.choice(ROLES)}"
            text = rng.choice(["You are {n}, {r}.", "Your name is {n}. You are {r}.", "You are {n}, {r}. Answer briefly.", "You are {r} called {n}.",
                               "You are {n}, {r}. You help the user.", "Act as {n}, {r}."]).format(n=name, r=facts.a(role))
            asks = ["Who are you?", "What is your name?", "What's your name?", "Tell me your name.", "who are you", "Introduce yourself.", "What are you called?", "Hello, who are you?", "Hi! What is your name?", "Who am I talking to?"]
            return text, exchange(phrases.decorate(rng, rng.choice(asks)), f"I am {name}, {facts.a(role)}.", f"My name here is {name}.")
        kind = rng.choice(["name", "age", "city", "job", "colour", "food", "hobby", "language"])
        f = facts.fact_about_user(rng, kind)
        v = f["answer"].rstrip(".")
        for you, user in (("Your ", "The user's "), ("You are ", "The user is "), ("You live ", "The user lives ")):
            if v.startswith(you):
                v = user + v[len(you):]
        text = rng.choice(["", "You are a helpful assistant. ", "Be polite. "]) + v + "."
        return text, exchange(phrases.decorate(rng, rng.choice(f["ask"])), f["answer"], "The system message says this.")

    def gloss_chat(self):
        n = 1 if self.rng.random() < 0.4 else self.rng.randint(2, 9)
        out = []
        for _ in range(n):
            out += self.gloss() if self.rng.random() < 0.94 else self.filler()
        if n > 1 and self.rng.random() < 0.08:
            out += self.recall_turn(out)
        return out

    def recall_turn(self, out):
        """Asks about the chat itself: an earlier question or answer."""
        users = [m["content"] for m in out if m["role"] == "user"]
        last = out[-1]["content"]
        r = self.rng.random()
        if r < 0.5:
            ask = self.rng.choice(["Say that again.", "Repeat that.", "Can you repeat that?", "Again, please.", "Please repeat your answer.", "What did you say?", "Say it once more.", "Repeat your last answer."])
            return exchange(ask, last, "The user wants my last answer again.")
        if r < 0.75:
            ask = self.rng.choice(["What was my first question?", "What did I ask first?", "What was the first thing I asked?"])
            return exchange(ask, f"Your first question was: {users[0]}", "I look at the first message.")
        ask = self.rng.choice(["What was my last question?", "What did I just ask?", "What did I ask you before this?"])
        return exchange(ask, f"Your last question was: {users[-1]}", "I look at the message before this one.")

    def fact(self):
        return stories.draw(self.rng, self.words) if self.rng.random() < 0.5 else facts.fact(self.rng, self.words)

    def fact_question(self, f, known=True):
        ask = phrases.decorate(self.rng, self.rng.choice(f["ask"]))
        if known:
            return exchange(ask, f["answer"], self.rng.choice(['The user told me: "{s}"', 'Earlier the user said: "{s}"']).format(s=f["say"]))
        return exchange(ask, f["none"], "The user has not told me this.")

    def tell(self, told):
        """One message that states the facts, sometimes with a question after them."""
        rng = self.rng
        say = " ".join(dict.fromkeys(f["say"] for f in told))
        if len(told) == 2 and told[0]["say"] != told[1]["say"] and rng.random() < 0.4 and told[1]["say"].startswith(("I ", "My ", "The ")):
            second = told[1]["say"]
            say = told[0]["say"].rstrip(".") + " and " + (second if second.startswith("I ") else second[0].lower() + second[1:])
        r = rng.random()
        ack = next((f["ack"] for f in told if f["key"] == "name"), told[0]["ack"])
        if r < 0.12:
            q = self.gloss() if rng.random() < 0.6 else exchange(*arith.turn(rng))
            return exchange(say + " " + q[0]["content"], q[1]["content"], q[1]["reasoning_content"])
        if r < 0.2:
            f = rng.choice(told)
            return exchange(say + " " + rng.choice(f["ask"]), f["answer"], "The user just told me this.")
        lead = rng.choice(["", "", "", "", "Hi! ", "Hello, ", "Hello! ", "Please remember this: ", "Remember: ", "By the way, ", "Just so you know: "])
        tail = rng.choice([""] * 7 + [" Please remember it.", " Remember that.", " Don't forget it.", " Nice to meet you.", " How are you?"])
        if rng.random() < 0.08:
            say = say.lower()
        thought = rng.choice(["The user tells me something. I will remember it.", "I should remember this.", "This is a fact about the user."])
        return exchange(lead + say + tail, ack, thought)

    def fact_chat(self):
        rng = self.rng
        told, out, keys = [], [], set()
        if rng.random() < 0.25:
            for _ in range(rng.randint(1, 2)):
                out += self.filler()
        for _ in range(rng.choice([1, 1, 1, 2, 2, 3, 4])):
            batch = []
            fresh = stories.introduction(rng, facts) if rng.random() < 0.12 else [self.fact() for _ in range(rng.choice([1, 1, 1, 1, 2, 2, 3]))]
            for f in fresh:
                if f["key"] not in keys and not self.clash(f, told + batch):
                    keys.add(f["key"])
                    batch.append(f)
            if not batch:
                continue
            out += self.tell(batch)
            told += batch
            for _ in range(rng.choice([0, 0, 0, 1, 1, 2, 3])):
                out += self.filler()
        if rng.random() < 0.12 and told:  # a fact changes
            old = rng.choice(told)
            if old["key"] in facts.SPEC:
                new = facts.fact_about_user(rng, old["key"])
                told[told.index(old)] = new
                say = rng.choice(["Actually, ", "Sorry, that was wrong. ", "Correction: ", "No, wait. ", "I made a mistake. "]) + new["say"]
                out += exchange(say, new["ack"], "The user corrects a fact.")
        rng.shuffle(told)
        for f in told[:rng.randint(1, 4)]:
            out += self.fact_question(f)
            if rng.random() < 0.3:
                out += self.filler()
        if rng.random() < 0.12:
            f = self.fact()
            if f["key"] not in keys and not self.clash(f, told):
                out += self.fact_question(f, known=False)
        return out

    @staticmethod
    def clash(f, others):
        """True if a question about f could also mean another fact."""
        vague = {"like", "love", "hate", "want", "event", "pet", "hobby", "from", "city"}
        group = {"from": "home", "city": "home", "hobby": "like", "love": "like"}
        mine = group.get(f["key"], f["key"])
        return any(group.get(o["key"], o["key"]) == mine or f["key"] in vague and o["key"] == f["key"] or set(f["ask"]) & set(o["ask"]) for o in others)

    def sum_chat(self):
        out = []
        for _ in range(self.rng.choice([1, 2, 3, 4, 6, 8])):
            out += exchange(*arith.turn(self.rng)) if self.rng.random() < 0.92 else self.filler()
        return out

    def small_chat(self):
        rng, out = self.rng, []
        for _ in range(rng.choice([1, 1, 2, 3, 4, 6])):
            r = rng.random()
            if r < 0.45:
                ask, ans, thought = chat.small(rng)
                out += exchange(phrases.decorate(rng, ask) if rng.random() < 0.3 else ask, ans, thought)
            elif r < 0.58:
                out += exchange(*chat.general(rng))
            elif r < 0.68:
                out += exchange(*chat.unknown(rng, self.words))
            elif r < 0.84:
                out += exchange(*chat.unknown_word(rng, phrases.ask, self.words))
            elif r < 0.89:
                out += self.fact_question(facts.fact(rng, self.words), known=False)
            elif r < 0.94:
                text = rng.choice([rng.choice(self.words), P.invented(rng), self.entry()[5], P.person(rng), f"{P.person(rng)} is in {P.city(rng)}"])
                ask = rng.choice(["Repeat after me: {t}", "Say {t}", "Say: {t}", "Repeat: {t}", "Please repeat: {t}", 'Say "{t}".', 'Repeat "{t}".', "Just say {t}"])
                out += exchange(ask.format(t=text), text, "I repeat the text.")
            else:
                out += self.filler()
        return out

    def tool_chat(self):
        """(messages, tool schemas)"""
        rng = self.rng
        tools = toolcalls.toolbox(rng, self.words)
        sums = not any("expression" in str(t.schema) or "athematical" in str(t.schema) for t in tools)
        main, out, told = tools[0], [], []
        other = rng.choice(tools[1:]) if len(tools) > 1 and rng.random() < 0.12 else None
        if rng.random() < 0.25:
            out += self.filler(sums)
        if rng.random() < 0.1:
            told = [facts.fact_about_user(rng, rng.choice(["name", "city", "job", "age"]))]
            out += self.tell(told) if sums else exchange(told[0]["say"], told[0]["ack"], "I should remember this.")
        if rng.random() < 0.94:
            out += toolcalls.tool_turn(rng, main, other)
        else:
            out += toolcalls.no_tool(rng, self.words, tools) or self.gloss()
        for _ in range(rng.choice([0, 0, 1, 1, 2])):
            r = rng.random()
            if r < 0.5:
                out += toolcalls.tool_turn(rng, rng.choice(tools))
            elif r < 0.62 and told:
                out += self.fact_question(told[0])
            elif r < 0.66:
                out += toolcalls.no_tool(rng, self.words, tools)
            else:
                out += self.filler(sums)
        rng.shuffle(tools)
        return out, [t.schema for t in tools]

    def conversation(self):
        """(messages, tools, thinking, preserve_thinking)"""
        rng = self.rng
        text, extra = self.system()
        tools = None
        r = rng.random()
        if r < 0.43:
            out = self.gloss_chat()
        elif r < 0.70:
            out = self.fact_chat()
        elif r < 0.755:
            out = self.sum_chat()
        elif r < 0.82:
            out = self.small_chat()
        else:
            out, tools = self.tool_chat()
        if extra and rng.random() < 0.8:
            out = out + extra if rng.random() < 0.5 else extra + out
        if not out:
            out = self.gloss() + out
        thinking = rng.random() < 0.42
        if not thinking:
            out = [{k: v for k, v in m.items() if k != "reasoning_content"} for m in out]
        if text is not None:
            out = [{"role": "system", "content": text}] + out
        return out, tools, thinking, rng.random() < 0.5
