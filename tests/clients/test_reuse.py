"""The second turn of a long chat costs its own tokens only. Prints a table."""
import json
import os
import tempfile
import threading
import time
import unittest

from common import OFF, TOOLS, ClientTest, cached, long_text, openai_client, user
from server import Connection, Server

LONG = 2500  # words, about 3,000 tokens
SYSTEM = {"role": "system", "content": "Be brief."}


class Turn:
    """One streamed turn: its text, its calls, the seconds to the first piece of them, and what was prefilled."""

    def __init__(self, at, messages, thinking=False, **fields):
        client = openai_client(at)
        start = time.monotonic()
        self.messages, self.text, self.reasoning, self.call, self.first, usage = messages, "", "", None, None, None
        stream = client.chat.completions.create(model="tiny", messages=messages, stream=True, stream_options={"include_usage": True},
                                                max_tokens=300, extra_body={} if thinking else OFF, **fields)
        for chunk in stream:
            usage = chunk.usage or usage
            for choice in chunk.choices:
                self.add(choice.delta, start)
        self.prompt, self.completion, self.cached = usage.prompt_tokens, usage.completion_tokens, cached(usage)
        self.prefilled = self.prompt - self.cached

    def add(self, delta, start):
        reasoning = getattr(delta, "reasoning_content", None) or ""
        if self.first is None and (delta.content or reasoning or delta.tool_calls):
            self.first = time.monotonic() - start
        self.text += delta.content or ""
        self.reasoning += reasoning
        for call in delta.tool_calls or []:
            if call.function.name:
                self.call = {"id": call.id, "type": "function", "function": {"name": call.function.name, "arguments": ""}}
            self.call["function"]["arguments"] += call.function.arguments or ""

    def message(self):
        message = {"role": "assistant", "content": self.text}
        if self.reasoning:
            message["reasoning_content"] = self.reasoning
        return {**message, "tool_calls": [self.call]} if self.call else message

    def then(self, *more):
        return [*self.messages, self.message(), *more]


class Reuse(ClientTest):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.at = Server(cache_dir=self.folder.name)
        self.rows = []

    def tearDown(self):
        self.at.kill()
        self.folder.cleanup()
        print("\n    turn                 prompt  cached  prefilled  first token")
        for name, turn in self.rows:
            print(f"    {name:<20} {turn.prompt:>6}  {turn.cached:>6}  {turn.prefilled:>9}  {turn.first * 1e3:>8.1f} ms")

    def best_of(self, name, histories, most, **fields):
        """The fastest of like turns; each prefills at most `most` tokens, and the fastest takes a tenth of the cold one's time."""
        turns = []
        for messages in histories:
            turns.append(Turn(self.at, messages, **fields))
            self.assertLessEqual(turns[-1].prefilled, most, name)
        best = min(turns, key=lambda turn: turn.first)
        self.rows.append((name, best))
        self.assertLess(best.first, self.cold.first / 10, name)
        return best

    def question(self, text):
        """A message and the tokens that it adds, its frame and that of the reply included."""
        alone = self.anthropic.messages.count_tokens(model="tiny", messages=user(text)).input_tokens
        return {"role": "user", "content": text}, alone + 5

    def start(self, number, thinking=False, **fields):
        ask = {"role": "user", "content": long_text(LONG, number) + "\n\nWhat is a lighthouse?"}
        self.cold = Turn(self.at, [SYSTEM, ask], thinking, **fields)
        self.rows.append(("cold", self.cold))
        self.assertGreater(self.cold.prompt, 2500)

    def questions(self, words):
        return [self.question(f"What is a {word}?") for word in words]

    def check_second_turns(self, thinking):
        self.start(int(thinking), thinking)
        asked = self.questions(("bridge", "river", "spoon"))
        second = self.best_of("second turn", [self.cold.then(m) for m, _ in asked], max(n for _, n in asked), thinking=thinking)
        self.best_of("third turn", [second.then(m) for m, _ in asked], max(n for _, n in asked), thinking=thinking)
        self.best_of("regenerate", [second.messages] * 3, asked[0][1], thinking=thinking)
        edits = self.questions(("castle", "violin", "garden"))
        self.best_of("edited last message", [[*second.messages[:-1], m] for m, _ in edits], max(n for _, n in edits), thinking=thinking)
        # Clients that drop reasoning or send it back as it was get the same.
        bare = [{k: v for k, v in m.items() if k != "reasoning_content"} for m in second.then(asked[0][0])]
        self.best_of("without reasoning", [bare], asked[0][1], thinking=thinking)
        self.assertEqual(self.at.stop(), 0)
        self.at = Server(cache_dir=self.folder.name)
        asked = self.questions(("harbour", "candle", "window"))
        self.best_of("after a restart", [second.then(m) for m, _ in asked], max(n for _, n in asked), thinking=thinking)

    def test_chat(self):
        self.check_second_turns(False)

    def test_chat_with_thinking(self):
        self.check_second_turns(True)

    def test_tools(self):
        self.start(5, tools=TOOLS)
        ask, added = self.question("What is the weather in Trondheim?")
        called = self.best_of("second turn, a call", [self.cold.then(ask)], added, tools=TOOLS)
        self.assertIsNotNone(called.call)
        results = [{"role": "tool", "tool_call_id": called.call["id"], "content": json.dumps({"temp_c": t, "sky": "snow"})} for t in (-7, -8, -9)]
        tokens = self.question(f"<tool_response>\n{results[0]['content']}\n</tool_response>")[1]
        answered = self.best_of("after the call", [called.then(r) for r in results], tokens, tools=TOOLS)
        asked = self.questions(("bridge", "river", "spoon"))
        self.best_of("turn after a call", [answered.then(m) for m, _ in asked], max(n for _, n in asked), tools=TOOLS)

    def test_kill(self):
        """Killed while sessions are being saved, it starts again, and turns that had ended before are there."""
        self.start(9)
        self.at.wait_until(lambda m: m["store_bytes"] > 0)
        for delay, word in ((0.05, "bridge"), (0.3, "river")):
            time.sleep(0.5)
            workers = [threading.Thread(target=self.try_turn, args=(i,)) for i in range(6)]
            for worker in workers:
                worker.start()
            time.sleep(delay)
            self.at.kill()
            for worker in workers:
                worker.join()
            self.at = Server(cache_dir=self.folder.name)
            asked = self.question(f"What is a {word}?")
            self.best_of(f"killed after {delay} s", [self.cold.then(asked[0])] * 2, asked[1])
        # Half a file, and one of nothing.
        self.at.kill()
        for name in sorted(os.listdir(self.folder.name))[:2]:
            path = os.path.join(self.folder.name, name)
            if os.path.isfile(path):
                os.truncate(path, os.path.getsize(path) // 2)
        open(os.path.join(self.folder.name, "junk"), "w").close()
        self.at = Server(cache_dir=self.folder.name)
        self.assertTrue(Turn(self.at, user("What is a lighthouse?")).text)

    def try_turn(self, number):
        body = {"messages": user(long_text(120, number)), "stream": True, "max_tokens": 40, "enable_thinking": False}
        try:
            with Connection(self.at.port) as connection:
                connection.open("POST", "/v1/chat/completions", body).read()
        except Exception:  # noqa: BLE001  http.client has its own errors for a server that dies
            pass
