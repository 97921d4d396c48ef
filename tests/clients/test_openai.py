"""Chat completions, completions and models by the client of OpenAI."""
import openai

from common import ANSWER, FRAME, LIGHTHOUSE, ClientTest, cached, gather, user


class Chat(ClientTest):
    def test_answer(self):
        reply = self.chat()
        self.assertEqual(reply.choices[0].message.content, ANSWER)
        self.assertEqual((reply.choices[0].finish_reason, reply.object, reply.model), ("stop", "chat.completion", "tiny"))
        self.assertEqual(reply.usage.total_tokens, reply.usage.prompt_tokens + reply.usage.completion_tokens)

    def test_stream_says_the_same(self):
        for thinking in (False, True):
            whole = self.chat(thinking=thinking)
            parts = gather(self.chat(thinking=thinking, stream=True, stream_options={"include_usage": True}))
            message = whole.choices[0].message
            self.assertEqual(parts["content"], message.content)
            self.assertEqual(parts["reasoning"], getattr(message, "reasoning_content", ""))
            self.assertEqual(parts["finish"], "stop")
            self.assertEqual(parts["usage"].completion_tokens, whole.usage.completion_tokens)
            self.assertGreater(parts["chunks"], whole.usage.completion_tokens // 2)

    def test_usage_of_a_stream_only_where_asked_for(self):
        self.assertIsNone(gather(self.chat(stream=True))["usage"])
        last = list(self.chat(stream=True, stream_options={"include_usage": True}))[-1]
        self.assertEqual(last.choices, [])
        self.assertGreater(last.usage.completion_tokens, 5)

    def test_cached_tokens(self):
        first = self.chat(user("What is a harbour?"))
        again = self.chat(user("What is a harbour?"))
        self.assertGreaterEqual(cached(again.usage), again.usage.prompt_tokens - FRAME)
        self.assertEqual(again.choices[0].message.content, first.choices[0].message.content)

    def test_stream_ends_with_done(self):
        events, headers = self.server.stream("/v1/chat/completions", {"messages": LIGHTHOUSE, "stream": True})
        self.assertEqual(events[-1], ("", "[DONE]"))
        self.assertIn("text/event-stream", headers["Content-Type"])
        self.assertEqual(events[0][1]["choices"][0]["delta"]["role"], "assistant")

    def test_limits(self):
        reply = self.chat(max_tokens=3)
        self.assertEqual((reply.usage.completion_tokens, reply.choices[0].finish_reason), (3, "length"))
        self.assertEqual(self.chat(max_tokens=3, max_completion_tokens=5).usage.completion_tokens, 5)
        self.assertEqual(self.chat(max_tokens=5, max_completion_tokens=3).usage.completion_tokens, 3)

    def test_content_parts_and_developer_role(self):
        parts = [{"role": "developer", "content": "Be brief."}, {"role": "user", "content": [{"type": "text", "text": "What is a lighthouse?"}]}]
        self.assertIn("tower", self.text(parts))

    def test_memory_of_the_chat(self):
        told = user("My name is Ada.", "Nice to meet you, Ada!", "What is my name?")
        self.assertIn("Ada", self.text(told))

    def test_async_client(self):
        import asyncio

        async def ask():
            async with openai.AsyncOpenAI(base_url=self.server.url + "/v1", api_key="unused") as client:
                async with client.chat.completions.stream(model="tiny", messages=LIGHTHOUSE, extra_body={"enable_thinking": False}) as stream:
                    return (await stream.get_final_completion()).choices[0].message.content

        self.assertEqual(asyncio.run(ask()), ANSWER)


class Completions(ClientTest):
    def test_text(self):
        reply = self.openai.completions.create(model="tiny", prompt="A lighthouse is", max_tokens=4)
        self.assertEqual((reply.object, reply.usage.completion_tokens), ("text_completion", 4))
        self.assertTrue(reply.choices[0].text)

    def test_stream_says_the_same(self):
        whole = self.openai.completions.create(model="tiny", prompt="A lighthouse is", max_tokens=6)
        chunks = list(self.openai.completions.create(model="tiny", prompt="A lighthouse is", max_tokens=6, stream=True,
                                                     stream_options={"include_usage": True}))
        self.assertEqual("".join(c.choices[0].text for c in chunks if c.choices), whole.choices[0].text)
        self.assertEqual(chunks[-1].usage.completion_tokens, 6)

    def test_logprobs(self):
        reply = self.openai.completions.create(model="tiny", prompt="A lighthouse is", max_tokens=6, logprobs=2)
        found = reply.choices[0].logprobs
        self.assertEqual([len(found.tokens), len(found.token_logprobs), len(found.top_logprobs)], [6, 6, 6])
        self.assertEqual("".join(found.tokens), reply.choices[0].text)

    def test_token_ids_and_one_in_a_list(self):
        for prompt in ([1, 2, 3], ["A lighthouse is"], [[1, 2, 3]]):
            self.assertEqual(self.openai.completions.create(model="tiny", prompt=prompt, max_tokens=2).usage.completion_tokens, 2)

    def test_what_is_not_there_is_named(self):
        for param, fields in {"echo": {"echo": True}, "suffix": {"suffix": "."}, "best_of": {"best_of": 3},
                              "prompt": {"prompt": ["a", "b"]}}.items():
            with self.assertRaises(openai.BadRequestError) as caught:
                self.openai.completions.create(**{"model": "tiny", "prompt": "A", "max_tokens": 1, **fields})
            self.assertEqual(caught.exception.param, param)


class Models(ClientTest):
    def test_list_has_the_real_window(self):
        models = self.openai.models.list().data
        self.assertEqual([m.id for m in models], ["tiny", "gpt-4o"])
        self.assertEqual(models[0].context_length, int(self.server.metrics()["context_tokens"]))
        self.assertEqual(self.openai.models.retrieve("tiny").id, "tiny")

    def test_names(self):
        for name in ("tiny", "default", "gpt-4o", ""):
            self.openai.chat.completions.create(model=name, messages=LIGHTHOUSE, max_tokens=1)
        with self.assertRaises(openai.NotFoundError) as caught:
            self.openai.chat.completions.create(model="gpt-5", messages=LIGHTHOUSE)
        self.assertEqual(caught.exception.code, "model_not_found")
        with self.assertRaises(openai.NotFoundError):
            self.openai.models.retrieve("gpt-5")
