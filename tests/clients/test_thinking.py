"""Reasoning: where it is sent, what turns it off, what limits it."""
from common import LIGHTHOUSE, ClientTest, user


class Thinking(ClientTest):
    def reasoning(self, *arguments, thinking=True, **fields):
        message = self.chat(*arguments, thinking=thinking, **fields).choices[0].message
        return getattr(message, "reasoning_content", None) or ""

    def test_both_names(self):
        message = self.chat(thinking=True).choices[0].message
        self.assertTrue(message.reasoning_content.startswith("The user asks"))
        self.assertEqual(message.reasoning, message.reasoning_content)
        self.assertNotIn("think>", message.content + message.reasoning)

    def test_both_names_in_a_stream(self):
        both = {"reasoning_content": "", "reasoning": ""}
        for chunk in self.chat(thinking=True, stream=True):
            for name in both:
                both[name] += getattr(chunk.choices[0].delta, name, None) or ""
        self.assertEqual(both["reasoning"], both["reasoning_content"])
        self.assertEqual(both["reasoning"], self.reasoning())

    def test_tokens_are_counted(self):
        usage = self.chat(thinking=True).usage
        self.assertGreater(usage.completion_tokens_details.reasoning_tokens, 5)
        self.assertLess(usage.completion_tokens_details.reasoning_tokens, usage.completion_tokens)

    def test_off_by_every_route(self):
        routes = [{"enable_thinking": False}, {"chat_template_kwargs": {"enable_thinking": False}}, {"thinking_budget": 0},
                  {"reasoning": {"effort": "none"}}, {"reasoning": {"enabled": False}}, {"reasoning": {"max_tokens": 0}},
                  {"thinking": {"type": "disabled"}}, {"chat_template_kwargs": {"thinking_budget": 0}}]
        for body in routes:
            with self.subTest(body):
                self.assertEqual(self.reasoning(extra_body=body), "")
        for effort in ("none", "minimal"):
            self.assertEqual(self.reasoning(reasoning_effort=effort), "")
        for effort in ("low", "medium", "high", "xhigh"):
            self.assertTrue(self.reasoning(reasoning_effort=effort))
        for body in ({"enable_thinking": True}, {"thinking": {"type": "enabled", "budget_tokens": 1024}}):
            self.assertTrue(self.reasoning(extra_body=body))

    def test_budget(self):
        free = self.chat(thinking=True).usage.completion_tokens_details.reasoning_tokens
        for body in ({"thinking_budget": 4}, {"reasoning": {"max_tokens": 4}}, {"thinking": {"type": "enabled", "budget_tokens": 4}}):
            choice = self.chat(thinking=True, extra_body=body)
            limited = choice.usage.completion_tokens_details.reasoning_tokens
            self.assertLess(limited, free)
            self.assertLessEqual(limited, 6)  # the marks that close it count too
            self.assertEqual(choice.choices[0].finish_reason, "stop")
            self.assertTrue(choice.choices[0].message.content)

    def test_cut_within(self):
        choice = self.chat(thinking=True, max_tokens=4).choices[0]
        self.assertEqual((choice.finish_reason, choice.message.content or ""), ("length", ""))
        self.assertTrue(choice.message.reasoning_content)

    def test_preserve_thinking(self):
        """Old reasoning is in the prompt or not, as asked for, under either name."""
        secret = "The user likes the number seven, and so on and so forth."
        for name in ("reasoning", "reasoning_content"):
            history = [*user("Hello!"), {"role": "assistant", "content": "Hi!", name: secret}, *LIGHTHOUSE]
            tokens = {keep: self.chat(history, extra_body={"preserve_thinking": keep}).usage.prompt_tokens for keep in (False, True)}
            self.assertGreater(tokens[True], tokens[False] + 10)
            inside = self.chat(history, extra_body={"chat_template_kwargs": {"preserve_thinking": True}})
            self.assertEqual(inside.usage.prompt_tokens, tokens[True])

    def test_unknown_effort_is_named(self):
        self.refused("reasoning_effort", reasoning_effort="extreme")
        self.refused("chat_template_kwargs.colour", extra_body={"chat_template_kwargs": {"colour": "red"}})
