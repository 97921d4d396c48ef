"""What is refused, and by which words."""
import anthropic
import openai

from common import LIGHTHOUSE, ClientTest, long_text, user


class Errors(ClientTest):
    def test_unsupported_fields_are_named(self):
        for name, value in {"functions": [{"name": "f"}], "audio": {"voice": "x", "format": "wav"}, "prediction": {"type": "content", "content": "x"},
                            "modalities": ["audio"], "web_search_options": {}, "verbosity": "low"}.items():
            with self.subTest(name):
                self.refused(name, **{name: value})
        self.refused("mirostat", extra_body={"mirostat": 2})
        self.refused("stream_options.colour", stream=True, stream_options={"colour": 1})

    def test_wrong_types_are_named(self):
        for name, value in {"temperature": "hot", "max_tokens": 1.5, "n": "two", "stream": "yes", "seed": [], "messages": "hi", "tools": {}}.items():
            with self.subTest(name):
                self.refused(name, extra_body={name: value})
        self.refused("messages[0].role", [{"role": "narrator", "content": "x"}])
        self.refused("messages", [])

    def test_null_is_absent(self):
        self.assertTrue(self.text(extra_body={"temperature": None, "tools": None, "functions": None, "stop": None, "seed": None}))

    def test_images_are_refused(self):
        part = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
        self.refused("messages[0].content[0].type", [{"role": "user", "content": [part]}])

    def test_overflow(self):
        window = int(self.server.metrics()["context_tokens"])
        long = long_text(window)
        with self.assertRaises(openai.BadRequestError) as caught:
            self.chat(long)
        self.assertEqual(caught.exception.code, "context_length_exceeded")
        self.assertIn(str(window), str(caught.exception))
        counted = self.anthropic.messages.count_tokens(model="tiny", messages=user(long)).input_tokens
        self.assertIn(str(counted + 0), str(caught.exception).replace(str(counted - 2), str(counted)).replace(str(counted + 2), str(counted)))
        with self.assertRaises(anthropic.BadRequestError) as caught:
            self.anthropic.messages.create(model="tiny", messages=user(long), max_tokens=5)
        self.assertIn("prompt is too long", str(caught.exception))
        self.assertIn(str(counted), str(caught.exception))
        with self.assertRaises(openai.BadRequestError) as caught:
            self.openai.responses.create(model="tiny", input=long)
        self.assertEqual(caught.exception.code, "context_length_exceeded")

    def test_overflow_of_a_stream_is_a_400_too(self):
        with self.assertRaises(openai.BadRequestError):
            self.chat(long_text(9000), stream=True)

    def test_messages_have_anthropics_shape(self):
        with self.assertRaises(anthropic.NotFoundError) as caught:
            self.anthropic.messages.create(model="claude-9", messages=LIGHTHOUSE, max_tokens=5)
        self.assertEqual(caught.exception.body["error"]["type"], "not_found_error")
        answer = self.server.post("/v1/messages", {"messages": LIGHTHOUSE})
        self.assertEqual((answer.status, answer.json()["type"]), (400, "error"))
        self.assertIn("max_tokens", answer.json()["error"]["message"])

    def test_paths_methods_and_bodies(self):
        self.assertEqual(self.server.get("/v1/embeddings").status, 404)
        self.assertEqual(self.server.get("/v1/chat/completions").status, 405)
        for body in (b"", b"{", b"[]", b"\xff", b"null", b'{"messages": [' + b"[" * 100000):
            answer = self.server.post("/v1/chat/completions", body)
            self.assertEqual(answer.status, 400, body[:10])
            self.assertEqual(answer.json()["error"]["type"], "invalid_request_error")
