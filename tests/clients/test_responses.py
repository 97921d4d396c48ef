"""The Responses API by the client of OpenAI."""
import json

import openai

from common import ANSWER, OFF, RESPONSES_TOOLS, ClientTest


class Responses(ClientTest):
    def ask(self, given="What is a lighthouse?", thinking=False, **fields):
        return self.openai.responses.create(model="tiny", input=given, extra_body={} if thinking else OFF, **fields)

    def test_answer(self):
        reply = self.ask()
        self.assertEqual((reply.output_text, reply.status, reply.object), (ANSWER, "completed", "response"))
        self.assertEqual(reply.usage.total_tokens, reply.usage.input_tokens + reply.usage.output_tokens)
        again = self.ask()
        self.assertGreater(again.usage.input_tokens_details.cached_tokens, 8)

    def test_reasoning_is_an_item(self):
        reply = self.ask(thinking=True)
        self.assertEqual([item.type for item in reply.output], ["reasoning", "message"])
        self.assertTrue(reply.output[0].content[0].text)
        self.assertGreater(reply.usage.output_tokens_details.reasoning_tokens, 5)
        for off in ({"effort": "none"}, {"effort": "minimal"}):
            self.assertEqual([item.type for item in self.ask(thinking=True, reasoning=off).output], ["message"])

    def test_stream(self):
        for thinking in (False, True):
            events = list(self.ask(thinking=thinking, stream=True))
            self.assertEqual([e.sequence_number for e in events], list(range(len(events))))
            self.assertEqual([events[0].type, events[-1].type], ["response.created", "response.completed"])
            text = "".join(e.delta for e in events if e.type == "response.output_text.delta")
            self.assertEqual(text, ANSWER)
            self.assertEqual(events[-1].response.output_text, ANSWER)
            reasoning = [e for e in events if e.type == "response.reasoning_text.delta"]
            self.assertEqual(bool(reasoning), thinking)

    def test_stream_helper(self):
        with self.openai.responses.stream(model="tiny", input="What is a lighthouse?", extra_body=OFF) as stream:
            for _ in stream:
                pass
            self.assertEqual(stream.get_final_response().output_text, ANSWER)

    def test_call_and_result(self):
        for thinking in (False, True):
            items = [{"role": "user", "content": "What is the weather in Paris?"}]
            reply = self.ask(items, thinking=thinking, tools=RESPONSES_TOOLS)
            call = [item for item in reply.output if item.type == "function_call"][0]
            self.assertEqual((call.name, json.loads(call.arguments)), ("get_weather", {"city": "Paris"}))
            items += [item.model_dump(exclude_none=True) for item in reply.output]
            items.append({"type": "function_call_output", "call_id": call.call_id, "output": '{"temp_c": -7, "sky": "snow"}'})
            self.assertIn("-7", self.ask(items, thinking=thinking, tools=RESPONSES_TOOLS).output_text)

    def test_stream_of_calls(self):
        events = list(self.ask("What's the weather in Oslo and in Bergen?", tools=RESPONSES_TOOLS, stream=True))
        deltas, done = {}, {}
        for event in events:
            if event.type == "response.function_call_arguments.delta":
                deltas.setdefault(event.item_id, []).append(event.delta)
            if event.type == "response.function_call_arguments.done":
                done[event.item_id] = event.arguments
        self.assertEqual({k: "".join(v) for k, v in deltas.items()}, done)
        self.assertEqual([json.loads(a) for a in done.values()], [{"city": "Oslo"}, {"city": "Bergen"}])
        self.assertGreater(min(map(len, deltas.values())), 1)

    def test_tool_choice(self):
        def names(choice, **fields):
            reply = self.ask("Hello!", tools=RESPONSES_TOOLS, tool_choice=choice, max_output_tokens=300, **fields)
            return {item.name for item in reply.output if item.type == "function_call"}
        self.assertEqual(names("none"), set())
        self.assertEqual(names("auto"), set())
        self.assertTrue(names("required"))
        self.assertEqual(names({"type": "function", "name": "get_time"}), {"get_time"})
        both = self.ask("What's the weather in Oslo and in Bergen?", tools=RESPONSES_TOOLS, parallel_tool_calls=False)
        self.assertEqual(len(both.output), 1)

    def test_cut(self):
        reply = self.ask(max_output_tokens=3)
        self.assertEqual((reply.status, reply.incomplete_details.reason), ("incomplete", "max_output_tokens"))
        self.assertEqual(list(self.ask(max_output_tokens=3, stream=True))[-1].type, "response.incomplete")

    def test_instructions(self):
        reply = self.ask("Who are you?", instructions="You are Marvin, a gloomy robot.")
        self.assertIn("Marvin", reply.output_text)

    def test_what_is_not_there_is_named(self):
        for param, fields in {"previous_response_id": {"previous_response_id": "resp_1"}, "background": {"background": True},
                              "conversation": {"conversation": "c"}, "truncation": {"truncation": "auto"},
                              "top_logprobs": {"top_logprobs": 2}}.items():
            with self.assertRaises(openai.BadRequestError) as caught:
                self.ask(**fields)
            self.assertEqual(caught.exception.param, param)
        with self.assertRaises(openai.NotFoundError):
            self.openai.responses.create(model="gpt-5", input="hi")
