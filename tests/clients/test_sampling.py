"""What chooses tokens, and what says how likely they were."""
import math

from common import ANSWER, LIGHTHOUSE, TOOLS, ClientTest, gather, user

# The tiny model is sure of itself; among these tokens it is not.
SOME = {str(token): 100 for token in range(1000, 1100)}
WARM = {"temperature": 2, "top_p": 1, "extra_body": {"top_k": 0}, "max_tokens": 12, "logit_bias": SOME}


class Logprobs(ClientTest):
    def test_one_for_each_token(self):
        cases = [{}, {"thinking": True}, {"stop": "gives"}, {"max_tokens": 5},
                 {"messages": user("What's the weather in Oslo and in Bergen?"), "tools": TOOLS}]
        for fields in cases:
            with self.subTest(fields):
                reply = self.chat(logprobs=True, top_logprobs=3, **fields)
                found = reply.choices[0].logprobs.content
                self.assertEqual(len(found), reply.usage.completion_tokens)
                parts = gather(self.chat(logprobs=True, top_logprobs=3, stream=True, stream_options={"include_usage": True}, **fields))
                self.assertEqual([t.token for t in parts["logprobs"]], [t.token for t in found])
                self.assertEqual(len(parts["logprobs"]), parts["usage"].completion_tokens)
                self.assertTrue(all(abs(a.logprob - b.logprob) < 0.05 for a, b in zip(parts["logprobs"], found)))

    def test_they_are_probabilities(self):
        reply = self.chat(logprobs=True, top_logprobs=5)
        for token in reply.choices[0].logprobs.content:
            self.assertEqual(len(token.top_logprobs), 5)
            self.assertLessEqual(sum(math.exp(t.logprob) for t in token.top_logprobs), 1.001)
            self.assertEqual(token.top_logprobs[0].token, token.token)  # greedy
            self.assertEqual(bytes(token.bytes).decode(errors="replace"), token.token)

    def test_count_of_the_top(self):
        none = self.chat(logprobs=True).choices[0].logprobs.content
        self.assertEqual({len(t.top_logprobs) for t in none}, {0})
        self.assertIsNone(self.chat().choices[0].logprobs)
        self.refused("top_logprobs", top_logprobs=2)
        self.refused("top_logprobs", logprobs=True, top_logprobs=21)


class Sampling(ClientTest):
    def test_seed(self):
        one, again, other = (self.text(seed=seed, **WARM) for seed in (1, 1, 2))
        self.assertEqual(one, again)
        self.assertNotEqual(one, other)
        self.assertEqual(gather(self.chat(seed=1, stream=True, **WARM))["content"], one)

    def test_n(self):
        reply = self.chat(n=3, seed=5, **WARM)
        texts = [c.message.content for c in reply.choices]
        self.assertEqual([c.index for c in reply.choices], [0, 1, 2])
        self.assertEqual(len(set(texts)), 3)
        self.assertEqual(texts, [self.text(seed=seed, **WARM) for seed in (5, 6, 7)])
        parts = ["", "", ""]
        for chunk in self.chat(n=3, seed=5, stream=True, **WARM):
            for choice in chunk.choices:
                parts[choice.index] += choice.delta.content or ""
        self.assertEqual(parts, texts)

    def test_usage_of_n(self):
        one, three = self.chat().usage, self.chat(n=3).usage
        self.assertEqual(three.prompt_tokens, one.prompt_tokens)
        self.assertEqual(three.completion_tokens, 3 * one.completion_tokens)
        self.refused("n", n=99)

    def test_temperature_0_repeats(self):
        self.assertEqual({self.text(temperature=0, seed=seed) for seed in range(3)}, {ANSWER})

    def test_stop(self):
        for stop in (" gives", [" gives"], ["never", " gives"]):
            choice = self.chat(stop=stop).choices[0]
            self.assertEqual((choice.message.content, choice.finish_reason), ("A lighthouse is a tower with a light that", "stop"))
            self.assertEqual(gather(self.chat(stop=stop, stream=True))["content"], "A lighthouse is a tower with a light that")
        self.assertEqual(self.text(stop="ot in there"), ANSWER)

    def test_stop_is_not_looked_for_in_reasoning(self):
        choice = self.chat(thinking=True, stop="The user").choices[0]
        self.assertIn("The user", choice.message.reasoning_content)
        self.assertEqual(choice.message.content, ANSWER)

    def test_logit_bias(self):
        forced = self.text(logit_bias={"1000": 100}, max_tokens=4)
        word = forced[:len(forced) // 4]
        self.assertEqual(forced, 4 * word)
        self.assertNotEqual(self.text(logit_bias={"1000": 100, "1001": 100}, max_tokens=4), self.text(max_tokens=4))
        self.assertNotIn(word, self.text(logit_bias={"1000": -100}))
        self.refused("logit_bias", logit_bias={"99999999": 1})
        self.refused("logit_bias", logit_bias={"tower": 1})

    def test_penalties(self):
        repeat = {"logit_bias": SOME, "max_tokens": 16}
        plain = self.text(**repeat)
        for fields in ({"frequency_penalty": 2}, {"extra_body": {"repetition_penalty": 5.0}}):
            with self.subTest(fields):
                self.assertNotEqual(self.text(**repeat, **fields), plain)

    def test_presence_penalty(self):
        """Two tokens that are equally likely: the one that is there already comes no more."""
        texts = [self.text(max_tokens=1, logit_bias={str(token): 100}) for token in (1000, 1001)]
        first = self.chat(max_tokens=1, logprobs=True, top_logprobs=1, logit_bias={"1000": 100}).choices[0].logprobs.content[0]
        other = self.chat(max_tokens=1, logprobs=True, top_logprobs=1, logit_bias={"1001": 100}).choices[0].logprobs.content[0]
        even = first.logprob - other.logprob
        for push in range(-8, 9):  # what the first token does to the second's odds is not known before
            bias = {"1000": 80, "1001": 80 + even + push}
            plain = self.text(max_tokens=2, logit_bias=bias)
            if self.text(max_tokens=2, logit_bias=bias, presence_penalty=2) != plain:
                self.assertIn(plain, [2 * text for text in texts])
                return
        self.fail("the penalty changes nothing")

    def test_ranges(self):
        for name, value in {"temperature": 2.5, "top_p": 1.1, "presence_penalty": 3, "frequency_penalty": -3}.items():
            self.refused(name, **{name: value})
        self.refused("min_p", extra_body={"min_p": 2})
        self.refused("stop", stop=[""])
