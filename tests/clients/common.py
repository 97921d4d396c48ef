"""What several tests ask."""
import json
import os
import unittest

import anthropic
import openai

import server

OFF = {"enable_thinking": False}
LIGHTHOUSE = [{"role": "user", "content": "What is a lighthouse?"}]
ANSWER = "A lighthouse is a tower with a light that gives warning of shoals to passing ships."


def user(*texts):
    """Alternating user and assistant messages."""
    return [{"role": ("user", "assistant")[i % 2], "content": text} for i, text in enumerate(texts)]


def function(name, description, required="city", **properties):
    parameters = {"type": "object", "properties": {k: {"type": v} for k, v in properties.items()}, "required": [required]}
    return {"name": name, "description": description, "parameters": parameters}


WEATHER = function("get_weather", "Get the current weather in a given city", city="string")
TIME = function("get_time", "Get the time in a city", city="string")
STOP_JOB = function("stop_job", "Stop a running job by its number", "job_id", job_id="integer")
TOOLS = [{"type": "function", "function": f} for f in (WEATHER, TIME, STOP_JOB)]
RESPONSES_TOOLS = [{"type": "function", "strict": False, **f} for f in (WEATHER, TIME, STOP_JOB)]
MESSAGES_TOOLS = [{"name": f["name"], "description": f["description"], "input_schema": f["parameters"]} for f in (WEATHER, TIME, STOP_JOB)]

# Tokens behind the last message that ask for the answer, with a few to spare.
FRAME = 8

# Plain words of ordinary English: about 1.3 tokens each.
WORDS = ("time year people way day man thing woman life child world school state family student group country problem hand part "
         "place case week company system program question work number night point home water room mother area money story fact "
         "month lot right study book eye job word business issue side kind head house service friend father power hour game line").split()


def long_text(words, start=0):
    """Sentences that do not repeat; another `start` gives other ones."""
    chosen = [WORDS[(start + i * 7 + i * i // 11) % len(WORDS)] for i in range(words)]
    return ". ".join(" ".join(chosen[i:i + 12]) for i in range(0, words, 12)) + "."


class ClientTest(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.server = server.shared()
        cls.openai = openai_client(cls.server)
        cls.anthropic = anthropic_client(cls.server)

    def chat(self, messages=LIGHTHOUSE, thinking=False, **fields):
        """A chat completion; fields that the client does not know belong in extra_body."""
        extra = {**({} if thinking else OFF), **fields.pop("extra_body", {})}
        if isinstance(messages, str):
            messages = user(messages)
        return self.openai.chat.completions.create(model="tiny", messages=messages, extra_body=extra, **fields)

    def text(self, *arguments, **fields):
        return self.chat(*arguments, **fields).choices[0].message.content

    def refused(self, param, *arguments, **fields):
        """The message of the 400 that names `param`."""
        with self.assertRaises(openai.BadRequestError) as caught:
            self.chat(*arguments, **fields)
        self.assertEqual(caught.exception.param, param, caught.exception)
        self.assertEqual(caught.exception.type, "invalid_request_error")
        return str(caught.exception)


def openai_client(at, key="unused"):
    return openai.OpenAI(base_url=at.url + "/v1", api_key=key, max_retries=0, timeout=120)


def anthropic_client(at, key="unused"):
    return anthropic.Anthropic(base_url=at.url, api_key=key, max_retries=0, timeout=120)


def tokens():
    """{text: id} of the bundled model, ids as keys of logit_bias."""
    with open(os.path.join(server.MODEL, "tokenizer.json")) as file:
        return {text: str(token) for text, token in json.load(file)["model"]["vocab"].items()}


def cached(usage):
    return usage.prompt_tokens_details.cached_tokens


def gather(stream):
    """A chat stream of one choice: {content, reasoning, calls, finish_reason, usage, chunks, logprobs}."""
    out = {"content": "", "reasoning": "", "calls": [], "fragments": [], "finish": None, "usage": None, "chunks": 0, "logprobs": []}
    for chunk in stream:
        out["chunks"] += 1
        if chunk.usage:
            out["usage"] = chunk.usage
        for choice in chunk.choices:
            out["content"] += choice.delta.content or ""
            out["reasoning"] += getattr(choice.delta, "reasoning_content", None) or ""
            out["finish"] = choice.finish_reason or out["finish"]
            if choice.logprobs and choice.logprobs.content:
                out["logprobs"] += choice.logprobs.content
            for call in choice.delta.tool_calls or []:
                add_fragment(out, call)
    return out


def add_fragment(out, call):
    if call.index == len(out["calls"]):
        out["calls"].append({"id": call.id, "name": call.function.name, "arguments": ""})
        out["fragments"].append(0)
    out["calls"][call.index]["arguments"] += call.function.arguments or ""
    out["fragments"][call.index] += bool(call.function.arguments)


def calls_of(message):
    return [(call.function.name, json.loads(call.function.arguments)) for call in message.tool_calls or []]
