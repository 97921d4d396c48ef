"""Keys, full queues, clients that leave, long silences."""
import json
import threading
import time
import unittest

import anthropic
import openai

import server
from common import LIGHTHOUSE, OFF, anthropic_client, long_text, openai_client, user
from server import Connection, Server, read_events

ENDLESS = {"messages": LIGHTHOUSE, "stream": True, "enable_thinking": False, "max_tokens": 6000, "logit_bias": {"1000": 100}}


class Keys(unittest.TestCase):
    def test_key(self):
        with Server("--api-key", "secret") as at:
            def ask(client):
                return client.chat.completions.create(model="tiny", messages=LIGHTHOUSE, max_tokens=1)
            self.assertTrue(ask(openai_client(at, "secret")))
            self.assertTrue(anthropic_client(at, "secret").messages.create(model="tiny", messages=LIGHTHOUSE, max_tokens=1))
            with self.assertRaises(openai.AuthenticationError):
                ask(openai_client(at, "wrong"))
            with self.assertRaises(anthropic.AuthenticationError) as caught:
                anthropic_client(at, "wrong").messages.create(model="tiny", messages=LIGHTHOUSE, max_tokens=1)
            self.assertEqual(caught.exception.body["error"]["type"], "authentication_error")
            for path, status in {"/health": 200, "/v1/models": 401, "/metrics": 401}.items():
                self.assertEqual(at.get(path).status, status, path)
            self.assertEqual(at.get("/v1/models", {"x-api-key": "secret"}).status, 200)


class Access(unittest.TestCase):
    def test_hosts_and_origins(self):
        at = server.shared()
        self.assertEqual(at.get("/health", {"Host": "evil.example"}).status, 403)
        self.assertEqual(at.post("/v1/chat/completions", {"messages": LIGHTHOUSE}, {"Origin": "https://evil.example"}).status, 403)
        self.assertEqual(at.get("/health", {"Host": f"localhost:{at.port}"}).status, 200)
        self.assertEqual(at.get("/health").json()["status"], "ok")


class Queue(unittest.TestCase):
    def test_full(self):
        with Server("--slots", "1", "--queue", "1") as at:
            busy = [Connection(at.port) for _ in range(2)]
            for connection in busy:
                connection.open("POST", "/v1/chat/completions", ENDLESS)
            at.wait_until(lambda m: m["requests_running"] == 1 and m["requests_waiting"] == 1)
            answer = at.post("/v1/chat/completions", {"messages": LIGHTHOUSE})
            self.assertEqual((answer.status, answer.json()["error"]["code"]), (503, "server_busy"))
            self.assertGreaterEqual(int(answer.headers["Retry-After"]), 1)
            self.assertEqual(at.post("/v1/messages", {"messages": LIGHTHOUSE, "max_tokens": 1}).json()["error"]["type"], "overloaded_error")
            self.assertEqual(at.get("/health").status, 200)
            for connection in busy:
                connection.close()
            at.wait_idle()
            # A client that waits as told gets its answer.
            self.assertTrue(openai_client(at).with_options(max_retries=5).chat.completions.create(model="tiny", messages=LIGHTHOUSE, max_tokens=1))
            self.assertEqual(at.metrics()["requests_rejected_total"], 2)


class Leaving(unittest.TestCase):
    def setUp(self):
        self.at = server.shared()
        self.before = self.at.wait_idle()

    def gone(self):
        return self.at.wait_idle()["requests_cancelled_total"] - self.before["requests_cancelled_total"]

    def test_in_a_stream(self):
        with Connection(self.at.port) as connection:
            events = read_events(connection.open("POST", "/v1/chat/completions", ENDLESS))
            for _ in range(5):
                next(events)
        start = time.monotonic()
        self.assertEqual(self.gone(), 1)
        self.assertLess(time.monotonic() - start, 2)

    def test_before_the_whole_answer(self):
        with Connection(self.at.port) as connection:
            connection.http.request("POST", "/v1/chat/completions", json.dumps({**ENDLESS, "stream": False}),
                                    {"Content-Type": "application/json"})
            self.at.wait_until(lambda m: m["requests_running"] == 1)
        self.assertEqual(self.gone(), 1)

    def test_by_the_clients(self):
        client = openai_client(self.at)
        with client.chat.completions.create(model="tiny", messages=LIGHTHOUSE, stream=True, max_tokens=6000,
                                            logit_bias={"1000": 100}, extra_body=OFF) as stream:
            next(iter(stream))
        self.assertEqual(self.gone(), 1)

    def test_in_prefill(self):
        """Others go on, and what was prefilled is not lost."""
        texts = []
        other = threading.Thread(target=lambda: texts.append(
            openai_client(self.at).chat.completions.create(model="tiny", messages=LIGHTHOUSE, extra_body=OFF).choices[0].message.content))
        with Connection(self.at.port) as connection:
            connection.open("POST", "/v1/chat/completions", {**ENDLESS, "messages": user(long_text(4500, 3))})
            other.start()
        other.join()
        self.assertEqual(self.gone(), 1)
        self.assertIn("tower", texts[0])


class Silence(unittest.TestCase):
    def test_keep_alive(self):
        """A stream that waits for its turn says so."""
        with Server("--slots", "1") as at, Connection(at.port) as busy, Connection(at.port) as chat, Connection(at.port) as messages:
            busy.open("POST", "/v1/chat/completions", {**ENDLESS, "max_tokens": 8000})
            first = read_events(chat.open("POST", "/v1/chat/completions", {**ENDLESS, "max_tokens": 1}))
            second = read_events(messages.open("POST", "/v1/messages", {"messages": LIGHTHOUSE, "max_tokens": 1, "stream": True}))
            start = time.monotonic()
            head = [next(first), next(second)]
            self.assertLess(time.monotonic() - start, 1)
            self.assertEqual(head[1][0], "message_start")
            ping = next(second)
            self.assertEqual((ping[0], ping[1]), ("ping", {"type": "ping"}))
            self.assertLess(time.monotonic() - start, 5)
            self.assertEqual(next(first)[0], ":")


class End(unittest.TestCase):
    def test_sigterm_lets_replies_end(self):
        with Server() as at, Connection(at.port) as connection:
            events = read_events(connection.open("POST", "/v1/chat/completions", {**ENDLESS, "max_tokens": 1500}))
            next(events)
            stopper = threading.Thread(target=at.stop)
            stopper.start()
            self.assertEqual(list(events)[-1], ("", "[DONE]"))
            stopper.join()
            self.assertEqual(at.process.returncode, 0)
