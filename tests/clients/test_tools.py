"""Tools by the client of OpenAI."""
import json

from common import TOOLS, ClientTest, calls_of, gather, user

PARIS = user("What is the weather in Paris?")
BOTH = user("What's the weather in Oslo and in Bergen?")
OSLO_AND_BERGEN = [("get_weather", {"city": "Oslo"}), ("get_weather", {"city": "Bergen"})]


class Tools(ClientTest):
    def calls(self, messages, **fields):
        return calls_of(self.chat(messages, tools=TOOLS, **fields).choices[0].message)

    def test_auto(self):
        reply = self.chat(PARIS, tools=TOOLS)
        self.assertEqual(calls_of(reply.choices[0].message), [("get_weather", {"city": "Paris"})])
        self.assertEqual(reply.choices[0].finish_reason, "tool_calls")
        self.assertEqual(self.calls(user("Hello!")), [])

    def test_with_thinking(self):
        message = self.chat(PARIS, tools=TOOLS, thinking=True).choices[0].message
        self.assertTrue(message.reasoning_content)
        self.assertEqual(calls_of(message), [("get_weather", {"city": "Paris"})])

    def test_none(self):
        reply = self.chat(PARIS, tools=TOOLS, tool_choice="none")
        self.assertEqual((calls_of(reply.choices[0].message), reply.choices[0].finish_reason), ([], "stop"))

    def test_required(self):
        for question in ("Hello!", "What is a lighthouse?"):
            for thinking in (False, True):
                self.assertTrue(self.calls(user(question), tool_choice="required", thinking=thinking, max_tokens=400))

    def test_named(self):
        for thinking in (False, True):
            found = self.calls(PARIS, tool_choice={"type": "function", "function": {"name": "get_time"}}, thinking=thinking, max_tokens=400)
            self.assertEqual({name for name, _ in found}, {"get_time"})

    def test_parallel(self):
        self.assertEqual(self.calls(BOTH), OSLO_AND_BERGEN)
        self.assertEqual(self.calls(BOTH, parallel_tool_calls=False), OSLO_AND_BERGEN[:1])

    def test_arguments_have_their_types(self):
        self.assertEqual(self.calls(user("Stop job 4411.")), [("stop_job", {"job_id": 4411})])

    def test_fragments_of_a_stream(self):
        whole = self.chat(BOTH, tools=TOOLS).choices[0].message
        parts = gather(self.chat(BOTH, tools=TOOLS, stream=True))
        self.assertEqual([c["arguments"] for c in parts["calls"]], [c.function.arguments for c in whole.tool_calls])
        self.assertEqual(len({c["id"] for c in parts["calls"]}), 2)
        self.assertEqual(parts["finish"], "tool_calls")
        self.assertGreater(min(parts["fragments"]), 1, "arguments came in one piece")

    def test_result_round_trip(self):
        for thinking in (False, True):
            history = list(PARIS)
            message = self.chat(history, tools=TOOLS, thinking=thinking).choices[0].message
            history.append(message.model_dump(exclude_none=True))
            result = {"temp_c": -7, "sky": "snow"}
            history.append({"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": json.dumps(result)})
            answer = self.chat(history, tools=TOOLS, thinking=thinking).choices[0]
            self.assertIn("-7", answer.message.content)
            self.assertEqual(answer.finish_reason, "stop")

    def test_other_types_are_left_out_and_an_empty_list_is_none(self):
        self.assertEqual(self.calls(PARIS), calls_of(self.chat(PARIS, tools=[*TOOLS, {"type": "web_search"}]).choices[0].message))
        self.assertTrue(self.text(tools=[]))

    def test_bad_choices_are_named(self):
        self.refused("tool_choice", PARIS, tools=[], tool_choice="required")
        self.refused("tool_choice.function.name", PARIS, tools=TOOLS, tool_choice={"type": "function", "function": {"name": "fly"}})
        self.refused("tool_choice", PARIS, tools=TOOLS, tool_choice="sometimes")
        self.refused("tools[0].function", PARIS, tools=[{"type": "function"}])
