"""The Messages API by the client of Anthropic."""
import anthropic

from common import ANSWER, LIGHTHOUSE, MESSAGES_TOOLS, ClientTest, user

THINKING = {"type": "enabled", "budget_tokens": 1024}


class Messages(ClientTest):
    def ask(self, messages=LIGHTHOUSE, max_tokens=300, **fields):
        return self.anthropic.messages.create(model="tiny", messages=messages, max_tokens=max_tokens, **fields)

    def test_answer(self):
        reply = self.ask()
        self.assertEqual([(b.type, b.text) for b in reply.content], [("text", ANSWER)])
        self.assertEqual((reply.stop_reason, reply.role, reply.type), ("end_turn", "assistant", "message"))
        self.assertGreater(self.ask().usage.cache_read_input_tokens, 8)

    def test_thinking_block(self):
        reply = self.ask(thinking=THINKING)
        self.assertEqual([b.type for b in reply.content], ["thinking", "text"])
        self.assertTrue(reply.content[0].thinking and reply.content[0].signature)
        self.assertEqual([b.type for b in self.ask(thinking={"type": "disabled"}).content], ["text"])

    def test_stream(self):
        for thinking in ({"type": "disabled"}, THINKING):
            whole = self.ask(thinking=thinking)
            with self.anthropic.messages.stream(model="tiny", messages=LIGHTHOUSE, max_tokens=300, thinking=thinking) as stream:
                text = "".join(stream.text_stream)
                final = stream.get_final_message()
            self.assertEqual(text, ANSWER)
            self.assertEqual(final.usage.output_tokens, whole.usage.output_tokens)
            self.assertEqual([(b.type, getattr(b, "thinking", None)) for b in final.content],
                             [(b.type, getattr(b, "thinking", None)) for b in whole.content])

    def test_order_of_events(self):
        events, _ = self.server.stream("/v1/messages", {"messages": LIGHTHOUSE, "max_tokens": 300, "stream": True, "thinking": THINKING})
        names = [name for name, data in events if name != "ping"]
        self.assertTrue(all(name == data["type"] for name, data in events))
        kinds = [n for i, n in enumerate(names) if n != "content_block_delta" or names[i - 1] != n]
        block = ["content_block_start", "content_block_delta", "content_block_stop"]
        self.assertEqual(kinds, ["message_start", *block, *block, "message_delta", "message_stop"])

    def test_call_and_result(self):
        history = user("What is the weather in Paris?")
        reply = self.ask(history, tools=MESSAGES_TOOLS)
        self.assertEqual(reply.stop_reason, "tool_use")
        call = reply.content[-1]
        self.assertEqual((call.name, call.input), ("get_weather", {"city": "Paris"}))
        history += [{"role": "assistant", "content": [b.model_dump(exclude_none=True) for b in reply.content]},
                    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call.id, "content": '{"temp_c": -7, "sky": "snow"}'}]}]
        self.assertIn("-7", self.ask(history, tools=MESSAGES_TOOLS).content[-1].text)

    def test_stream_of_calls(self):
        with self.anthropic.messages.stream(model="tiny", messages=user("What's the weather in Oslo and in Bergen?"), max_tokens=300,
                                            tools=MESSAGES_TOOLS) as stream:
            pieces = [e.partial_json for e in stream if e.type == "input_json"]
            final = stream.get_final_message()
        self.assertEqual([b.input for b in final.content], [{"city": "Oslo"}, {"city": "Bergen"}])
        self.assertGreater(len(pieces), 4)

    def test_tool_choice(self):
        def names(choice, question="Hello!"):
            reply = self.ask(user(question), tools=MESSAGES_TOOLS, tool_choice=choice)
            return [b.name for b in reply.content if b.type == "tool_use"]
        self.assertEqual(names({"type": "none"}, "What is the weather in Paris?"), [])
        self.assertEqual(names({"type": "auto"}), [])
        self.assertTrue(names({"type": "any"}))
        self.assertEqual(set(names({"type": "tool", "name": "get_time"})), {"get_time"})
        self.assertEqual(len(names({"type": "auto", "disable_parallel_tool_use": True}, "What's the weather in Oslo and in Bergen?")), 1)

    def test_stops(self):
        reply = self.ask(stop_sequences=[" gives"])
        self.assertEqual((reply.stop_reason, reply.stop_sequence), ("stop_sequence", " gives"))
        self.assertEqual(reply.content[0].text, "A lighthouse is a tower with a light that")
        self.assertEqual(self.ask(stop_sequences=["never", " gives"]).stop_reason, "stop_sequence")
        cut = self.ask(max_tokens=3)
        self.assertEqual((cut.stop_reason, cut.usage.output_tokens), ("max_tokens", 3))

    def test_system(self):
        for system in ("You are Marvin, a gloomy robot.", [{"type": "text", "text": "You are Marvin, a gloomy robot."}]):
            self.assertIn("Marvin", self.ask(user("Who are you?"), system=system).content[0].text)

    def test_count_tokens(self):
        for fields in ({}, {"tools": MESSAGES_TOOLS}, {"system": "Be brief."}, {"thinking": THINKING}):
            counted = self.anthropic.messages.count_tokens(model="tiny", messages=LIGHTHOUSE, **fields).input_tokens
            usage = self.ask(**fields).usage
            self.assertEqual(counted, usage.input_tokens + usage.cache_read_input_tokens)

    def test_refused(self):
        for name, fields in {"container": {"container": "c"}, "temperature": {"temperature": 7}, "tool_choice": {"tool_choice": {"type": "any"}},
                             "colour": {"colour": 1}}.items():
            with self.subTest(name):
                with self.assertRaises(anthropic.BadRequestError) as caught:
                    self.ask(extra_body=fields)
                self.assertIn(name, str(caught.exception))
