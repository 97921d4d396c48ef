"""Requests as agents and chat pages send them, with prompts that the tiny model's context can hold."""
import json

from common import MESSAGES_TOOLS, RESPONSES_TOOLS, TOOLS, long_text

RESULT = '{"temp_c": -7, "sky": "snow"}'
REMINDER = "<system-reminder>\nAs you answer, you can use this: today is Monday. It may or may not be relevant.\n</system-reminder>\n"


def claude_code(turn, messages):
    """The first block of the system prompt has a checksum, which is another in every request."""
    billing = f"x-anthropic-billing-header: cc_version=2.1.{turn}.abc; cc_entrypoint=cli; cch={40507 * (turn + 1) % 65536:05x};"
    read = {"name": "Read", "description": long_text(60, 1), "eager_input_streaming": True,
            "input_schema": {"$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "additionalProperties": False,
                             "properties": {"file_path": {"type": "string", "description": "The path"}, "offset": {"type": "number"}},
                             "required": ["file_path"]}}
    return {
        "model": "tiny", "max_tokens": 32000, "stream": True, "temperature": 1, "messages": messages,
        "system": [{"type": "text", "text": billing},
                   {"type": "text", "text": "You are an agent for the command line.", "cache_control": {"type": "ephemeral"}},
                   {"type": "text", "text": long_text(900, 2), "cache_control": {"type": "ephemeral", "ttl": "1h"}}],
        "tools": [*MESSAGES_TOOLS, read, {"type": "web_search_20250305", "name": "web_search", "max_uses": 8}],
        "metadata": {"user_id": "user_0_account__session_1"},
        "thinking": {"type": "adaptive"},
        "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
        "output_config": {"effort": "medium"},
    }


def claude_code_ask(text):
    return {"role": "user", "content": [{"type": "text", "text": REMINDER},
                                        {"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}]}


def claude_code_result(call):
    return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call["id"], "content": [{"type": "text", "text": RESULT}],
                                         "cache_control": {"type": "ephemeral"}},
                                        {"type": "text", "text": "<system-reminder>\nThe list of tasks is empty.\n</system-reminder>\n"}]}


def codex(items):
    return {
        "model": "tiny", "input": items, "stream": True, "store": False, "include": ["reasoning.encrypted_content"],
        "instructions": "You are a coding agent that runs in a terminal. " + long_text(600, 3),
        "tools": [*RESPONSES_TOOLS,
                  {"type": "function", "name": "exec_command", "description": "Runs a command.", "strict": False,
                   "parameters": {"type": "object", "properties": {"cmd": {"type": "string"}, "yield_time_ms": {"type": "number"}},
                                  "required": ["cmd"], "additionalProperties": False}},
                  {"type": "custom", "name": "apply_patch", "description": "Edits files.",
                   "format": {"type": "grammar", "syntax": "lark", "definition": "start: /.+/"}},
                  {"type": "web_search", "external_web_access": False},
                  {"type": "namespace", "name": "mail", "description": "Mail.", "tools": []},
                  {"type": "image_generation", "output_format": "png"}, {"type": "local_shell"}],
        "tool_choice": "auto", "parallel_tool_calls": True, "reasoning": {"effort": "medium", "summary": "auto"},
        "prompt_cache_key": "0197c0de", "text": {"verbosity": "medium"}, "client_metadata": {"installation": "a1"},
    }


def codex_message(role, text):
    return {"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]}


def codex_start(text):
    return [codex_message("developer", "<permissions>Commands run in a sandbox; the network is off.</permissions>"),
            codex_message("user", "<environment_context>\n  <cwd>repo</cwd>\n</environment_context>"), codex_message("user", text)]


def codex_sent_back(item, keeps_reasoning):
    """As the client keeps items: without ids and status, and with what it knows of reasoning."""
    kept = {k: v for k, v in item.items() if k not in ("id", "status")}
    if item["type"] == "reasoning":
        kept = {"type": "reasoning", "summary": item.get("summary", []), "encrypted_content": item.get("encrypted_content")}
        if keeps_reasoning:
            kept["content"] = item.get("content")
    return kept


def opencode(messages, **fields):
    return {"model": "tiny", "messages": [{"role": "system", "content": "You are opencode, an agent. " + long_text(500, 4)}, *messages],
            "stream": True, "stream_options": {"include_usage": True}, "tools": TOOLS, "tool_choice": "auto", **fields}


def opencode_title(text):
    return {"model": "tiny", "stream": True, "stream_options": {"include_usage": True}, "max_tokens": 60,
            "messages": [{"role": "system", "content": "You are a title generator."}, {"role": "system", "content": "Output one line only."},
                         {"role": "user", "content": "Generate a title for this conversation:\n"}, {"role": "user", "content": text}]}


def pi(messages):
    """Optional parameters come before required ones."""
    bash = {"type": "function", "function": {
        "name": "bash", "description": "Run a command", "strict": False,
        "parameters": {"type": "object", "properties": {"timeout": {"type": "number"}, "command": {"type": "string"}}, "required": ["command"]}}}
    return {"model": "tiny", "messages": [{"role": "developer", "content": "You are a coding assistant. " + long_text(400, 5)}, *messages],
            "stream": True, "stream_options": {"include_usage": True}, "store": False, "max_completion_tokens": 4000, "tools": [bash, *TOOLS],
            "reasoning_effort": "medium"}


def open_webui(messages):
    """A placeholder for the answer comes last; what was found for the question is a late system message."""
    late = {"role": "system", "content": "Use this context: " + long_text(40, 7)}
    return {"model": "tiny", "stream": True, "stream_options": {"include_usage": True},
            "messages": [{"role": "system", "content": "You are helpful. " + long_text(300, 6)}, *messages, late, {"role": "assistant", "content": ""}]}


def cline_history():
    """Arguments as text, quotes and dates in them, and a summary that is asked for without tools."""
    arguments = json.dumps({"city": "L'Aquila", "when": "2026-11-30T10:00:00Z"})
    return [{"role": "user", "content": "What is the weather in L'Aquila?"},
            {"role": "assistant", "content": None, "tool_calls": [
                {"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": arguments}}]},
            {"role": "tool", "tool_call_id": "call_1", "content": [{"type": "text", "text": RESULT}]},
            {"role": "assistant", "content": ""},
            {"role": "user", "content": ""},
            {"role": "user", "content": "Summarise the conversation so far."}]
