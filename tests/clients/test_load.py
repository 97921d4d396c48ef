"""Many clients at a time."""
import random
import threading
import time
import unittest

from common import user
from server import Connection, Server, read_events

WORDS = ["lighthouse", "bridge", "harbour", "river", "spoon", "castle", "violin", "garden"]


def body(word):
    return {"messages": user(f"What is a {word}?"), "stream": True, "temperature": 0, "enable_thinking": len(word) % 2 == 0, "max_tokens": 200}


def read_text(events, pause=0.0):
    text, errors = "", []
    for _, data in events:
        time.sleep(pause)
        if isinstance(data, dict) and "error" in data:
            errors.append(data["error"])
        elif isinstance(data, dict) and data["choices"]:
            delta = data["choices"][0]["delta"]
            text += (delta.get("reasoning_content") or "") + "|" * ("reasoning_content" not in delta) + (delta.get("content") or "")
    return text.replace("|", ""), errors


class Load(unittest.TestCase):
    CLIENTS = 64

    def test_64_streams(self):
        """A third leaves, a third reads slowly; who stays gets what they would get alone."""
        with Server("--slots", "8", "--queue", "64") as at:
            alone = {}
            for word in WORDS:
                with Connection(at.port) as connection:
                    alone[word], _ = read_text(read_events(connection.open("POST", "/v1/chat/completions", body(word))))
            failures = []
            threads = [threading.Thread(target=self.client, args=(at.port, i, alone, failures)) for i in range(self.CLIENTS)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(failures, [])
            metrics = at.wait_idle()
            self.assertEqual(metrics["requests_failed_total"], 0)
            self.assertEqual(metrics["requests_rejected_total"], 0)
            self.assertEqual(metrics["requests_total"], metrics["requests_finished_total"] + metrics["requests_cancelled_total"])

    def client(self, port, number, alone, failures):
        rng = random.Random(number)
        try:
            for turn in range(2):
                word = rng.choice(WORDS)
                with Connection(port) as connection:
                    answer = connection.open("POST", "/v1/chat/completions", body(word))
                    events = read_events(answer)
                    if answer.status != 200:
                        failures.append((number, answer.status, answer.read()))
                    elif number % 3 == 0 and turn == 0:
                        for _ in range(rng.randrange(6)):
                            next(events, None)
                    else:
                        got = read_text(events, 0.02 if number % 3 == 1 else 0.0)
                        if got != (alone[word], []):
                            failures.append((number, word, got))
        except Exception as error:  # noqa: BLE001  a thread's error would be lost
            failures.append((number, repr(error)))


class Memory(unittest.TestCase):
    def test_it_is_flat(self):
        """Requests that nobody continues push each other out, and leave nothing behind."""
        with Server("--cache-size", "16M") as at:
            if not at.rss():
                self.skipTest("this system does not say how much a process holds")
            for number in range(200):
                at.post("/v1/chat/completions", {"messages": user(f"{number}: What is a bridge?"), "max_tokens": 1})
                if number == 50:
                    before = at.rss()
            self.assertLess(at.rss(), before + 8)
