"""Whole flows of agents: the second request is what that client would send next, and finds its prefix computed."""
import json
import os
import re
import unittest

import agents
import server

FIXTURES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "server", "fixtures")
FRAME = 12


class Flow(unittest.TestCase):
    def setUp(self):
        self.at = server.shared()

    def assert_reused(self, prompt, cached, before, added):
        """All of the first prompt but the frame of its reply, and of the rest no more is new than `added` tokens."""
        self.assertGreaterEqual(cached, before - FRAME)
        self.assertLessEqual(prompt - cached, added)


class ClaudeCode(Flow):
    def send(self, turn, messages):
        """(content blocks, prompt tokens, cached ones)"""
        events, _ = self.at.stream("/v1/messages?beta=true", agents.claude_code(turn, messages), {"anthropic-beta": "claude-code-20250219"})
        blocks, usage = [], {}
        for name, data in events:
            if name == "content_block_start":
                blocks.append({**data["content_block"], "json": ""})
            elif name == "content_block_delta":
                self.add(blocks[data["index"]], data["delta"])
            elif name == "message_delta":
                usage = data["usage"]
            self.assertNotEqual(name, "error", data)
        for block in blocks:
            text = block.pop("json")
            if block["type"] == "tool_use":
                block["input"] = json.loads(text)
        return blocks, usage["input_tokens"] + usage["cache_read_input_tokens"], usage["cache_read_input_tokens"]

    def add(self, block, delta):
        fields = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature"}
        if delta["type"] == "input_json_delta":
            block["json"] += delta["partial_json"]
        else:
            name = fields[delta["type"]]
            block[name] += delta[name]

    def test_flow(self):
        messages = [agents.claude_code_ask("What is the weather in Trondheim?")]
        body = agents.claude_code(0, messages)
        counted = self.at.post("/v1/messages/count_tokens?beta=true", {k: body[k] for k in ("model", "messages", "tools", "system", "thinking")})
        self.assertEqual(counted.status, 200)
        before = counted.json()["input_tokens"]
        for turn in range(3):
            blocks, prompt, cached = self.send(turn, messages)
            if turn == 0:
                self.assertEqual(prompt, before)
            else:
                self.assert_reused(prompt, cached, before, 150)
            before = prompt
            messages.append({"role": "assistant", "content": blocks})
            calls = [block for block in blocks if block["type"] == "tool_use"]
            messages.append(agents.claude_code_result(calls[0]) if len(calls) == 1 else agents.claude_code_ask("What is a lighthouse?"))

    def test_title_beside_it(self):
        with open(os.path.join(FIXTURES, "claude_code_title.json")) as file:
            body = {**json.load(file), "max_tokens": 200}
        events, _ = self.at.stream("/v1/messages", body)
        self.assertEqual(events[-1][0], "message_stop")


class Codex(Flow):
    def send(self, items):
        events, _ = self.at.stream("/v1/responses", agents.codex(items))
        name, last = events[-1]
        self.assertIn(name, ("response.completed", "response.incomplete"))
        usage = last["response"]["usage"]
        return last["response"]["output"], usage["input_tokens"], usage["input_tokens_details"]["cached_tokens"]

    def flow(self, keeps_reasoning):
        items = agents.codex_start("What is the weather in Trondheim?")
        before = 0
        for turn in range(3):
            output, prompt, cached = self.send(items)
            if turn:
                self.assert_reused(prompt, cached, before, 150)
            before = prompt
            items += [agents.codex_sent_back(item, keeps_reasoning) for item in output]
            calls = [item for item in output if item["type"] == "function_call"]
            for call in calls:
                items.append({"type": "function_call_output", "call_id": call["call_id"], "output": [{"type": "input_text", "text": agents.RESULT}]})
            if turn == 1 or not calls:
                items += [agents.codex_message("developer", "The user has approved reading."), agents.codex_message("user", "What is a lighthouse?")]

    def test_flow(self):
        self.flow(keeps_reasoning=True)

    def test_flow_without_reasoning(self):
        self.flow(keeps_reasoning=False)

    def test_probe(self):
        answer = self.at.post("/v1/responses", {"model": "tiny", "input": [], "max_output_tokens": 1, "store": False})
        self.assertEqual((answer.status, answer.json()["object"]), (200, "response"))


class ChatFlow(Flow):
    """Clients of /v1/chat/completions."""

    def send(self, body):
        """(the assistant's message, prompt tokens, cached ones)"""
        events, _ = self.at.stream("/v1/chat/completions", body)
        message, usage = {"role": "assistant", "content": "", "reasoning_content": "", "tool_calls": []}, {}
        for _, data in events:
            if not isinstance(data, dict):
                continue
            self.assertNotIn("error", data)
            usage = data.get("usage") or usage
            for choice in data["choices"]:
                self.add(message, choice["delta"])
        return {k: v for k, v in message.items() if v or k == "content"}, usage["prompt_tokens"], usage["prompt_tokens_details"]["cached_tokens"]

    def add(self, message, delta):
        for name in ("content", "reasoning_content"):
            message[name] += delta.get(name) or ""
        for call in delta.get("tool_calls", []):
            if call["index"] == len(message["tool_calls"]):
                message["tool_calls"].append({"id": call["id"], "type": "function", "function": {"name": call["function"]["name"], "arguments": ""}})
            message["tool_calls"][call["index"]]["function"]["arguments"] += call["function"].get("arguments", "")

    def flow(self, make, question="What is the weather in Trondheim?", keep=lambda message: message):
        messages, before = [{"role": "user", "content": question}], 0
        for turn in range(3):
            message, prompt, cached = self.send(make(messages))
            if turn:
                self.assert_reused(prompt, cached, before, 150)
            before = prompt
            messages.append(keep(message))
            messages += [{"role": "tool", "tool_call_id": call["id"], "content": agents.RESULT} for call in message.get("tool_calls", [])]
            if turn == 1 or "tool_calls" not in message:
                messages.append({"role": "user", "content": "What is a lighthouse?"})
        return messages


class OpenCode(ChatFlow):
    def test_flow(self):
        messages = self.flow(agents.opencode)
        self.assertTrue(any("tool_calls" in m for m in messages))

    def test_flow_without_reasoning(self):
        self.flow(agents.opencode, keep=lambda m: {k: v for k, v in m.items() if k != "reasoning_content"})

    def test_title(self):
        self.assertGreater(self.send(agents.opencode_title("What is a lighthouse?"))[1], 20)

    def test_most_steps(self):
        """Out of steps, it writes an assistant's message itself, and allows no more calls."""
        history = [{"role": "user", "content": "What is a lighthouse?"}, {"role": "assistant", "content": "CRITICAL - MAXIMUM STEPS REACHED"}]
        message, _, _ = self.send(agents.opencode(history, tool_choice="none", max_tokens=100))
        self.assertNotIn("tool_calls", message)

    def test_compaction(self):
        history = [{"role": "user", "content": "What did we do so far?"}, {"role": "assistant", "content": "We looked at the weather."},
                   {"role": "user", "content": ""}]
        self.assertGreater(self.send(agents.opencode(history, tools=[], max_tokens=100))[1], 20)


class Pi(ChatFlow):
    def test_flow(self):
        self.flow(agents.pi)

    def test_overflow_is_recognised(self):
        answer = self.at.post("/v1/chat/completions", agents.pi([{"role": "user", "content": "word " * 9000}]))
        self.assertEqual(answer.status, 400)
        patterns = [r"prompt is too long", r"exceeds the available context size", r"context[_ ]length[_ ]exceeded"]
        self.assertTrue(all(re.search(p, answer.json()["error"]["message"], re.I) for p in patterns))


class OpenWebUI(ChatFlow):
    def test_flow(self):
        def plain(message):  # it keeps the answer only
            return {"role": "assistant", "content": message["content"]}
        body = agents.open_webui([{"role": "user", "content": "What is a lighthouse?"}])
        message, before, _ = self.send(body)
        self.assertTrue(message["reasoning_content"] and message["content"])
        again = agents.open_webui([{"role": "user", "content": "What is a lighthouse?"}, plain(message), {"role": "user", "content": "What is a bridge?"}])
        self.assertGreater(self.send(again)[1], before)

    def test_models(self):
        self.assertEqual(self.at.get("/v1/models").json()["data"][0]["id"], "tiny")


class Others(ChatFlow):
    def test_history_of_cline(self):
        for tools in ([], agents.TOOLS):
            message, _, _ = self.send({"messages": agents.cline_history(), "tools": tools, "stream": True, "stream_options": {"include_usage": True}})
            self.assertTrue(message["content"] or message.get("tool_calls"))

    def test_recorded(self):
        for name, path in {"claude_code_turn": "/v1/messages", "claude_code_title": "/v1/messages", "codex_turn": "/v1/responses",
                           "codex_probe": "/v1/responses"}.items():
            with self.subTest(name):
                with open(os.path.join(FIXTURES, name + ".json")) as file:
                    body = {**json.load(file), "stream": False}
                body.update({"max_tokens": 200} if path == "/v1/messages" else {"max_output_tokens": 200})
                answer = self.at.post(path, body)
                self.assertEqual(answer.status, 200, answer.body)
                self.assertIn(answer.json()["object" if path == "/v1/responses" else "type"], ("response", "message"))
