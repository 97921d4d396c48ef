#include "text/chat.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "text/chat_parts.h"
#include "text/python_json.h"

namespace lily {
namespace {

std::string_view trim_newlines_left(std::string_view text) {
  return text.substr(std::min(text.find_first_not_of('\n'), text.size()));
}

std::string_view trim_newlines_right(std::string_view text) { return text.substr(0, text.find_last_not_of('\n') + 1); }

std::string_view after_last(std::string_view text, std::string_view mark) {
  const size_t at = text.rfind(mark);
  return at == text.npos ? text : text.substr(at + mark.size());
}

class Prompt {
 public:
  void template_text(std::string_view text) { append(text, true); }
  void message_text(std::string_view text) { append(text, false); }
  std::vector<TextPiece> take() { return std::exchange(pieces_, {}); }

  void append(std::string_view text, bool trusted) {
    if (text.empty()) return;
    if (pieces_.empty() || pieces_.back().trusted != trusted) pieces_.push_back({"", trusted});
    pieces_.back().text += text;
  }

 private:
  std::vector<TextPiece> pieces_;
};

std::optional<size_t> last_query(std::span<const Message> messages) {
  for (size_t i = messages.size(); i-- > 0;) {
    if (is_query(messages[i])) return i;
  }
  return std::nullopt;
}

struct SplitReply {
  std::string_view reasoning, content;
};

// The reasoning as given, else what stands in the content before </think>.
SplitReply split_reply(const Message& message) {
  constexpr std::string_view close = "</think>", open = "<think>";
  const std::string_view content = trim(message.content);
  if (!message.reasoning.empty()) return {trim(message.reasoning), content};
  const size_t end = content.find(close);
  if (end == content.npos) return {"", content};
  const std::string_view before = trim_newlines_right(content.substr(0, end));
  return {trim(trim_newlines_left(after_last(before, open))), trim_newlines_left(after_last(content, close))};
}

constexpr std::string_view tools_head = "# Tools\n\nYou have access to the following functions:\n\n<tools>";
constexpr std::string_view tools_tail =
    "\n</tools>\n\nIf you choose to call a function ONLY reply in the following format with NO suffix:\n\n"
    "<tool_call>\n<function=example_function_name>\n<parameter=example_parameter_1>\nvalue_1\n</parameter>\n"
    "<parameter=example_parameter_2>\nThis is the value for the second parameter\nthat can span\nmultiple lines\n"
    "</parameter>\n</function>\n</tool_call>\n\n<IMPORTANT>\nReminder:\n"
    "- Function calls MUST follow the specified format: an inner <function=...></function> block must be nested within "
    "<tool_call></tool_call> XML tags\n"
    "- Required parameters MUST be specified\n"
    "- You may provide optional reasoning for your function call in natural language BEFORE the function call, but NOT "
    "after\n"
    "- If there is no function call available, answer the question like normal with your current knowledge and do not "
    "tell the user about function calls\n</IMPORTANT>";

// Makes the turns, one after the other.
class Renderer {
 public:
  Renderer(std::span<const Message> messages, const ChatOptions& options, size_t query)
      : messages_(messages), options_(options), query_(query) {}

  std::vector<Turn> run() {
    size_t at = render_system();
    while (at < messages_.size()) at += render_message(at);
    if (options_.add_generation_prompt) {
      prompt_.template_text("<|im_start|>assistant\n");
      prompt_.template_text(options_.enable_thinking ? "<think>\n" : "<think>\n\n</think>\n\n");
      end_turn(Role::assistant, at, 0);
    }
    return std::move(turns_);
  }

 private:
  void end_turn(Role role, size_t first, size_t count) { turns_.push_back({role, first, count, prompt_.take()}); }

  // Returns how many messages it showed.
  size_t render_system() {
    const bool given = messages_[0].role == Role::system;
    const std::string_view content = given ? trim(messages_[0].content) : std::string_view();
    if (!given && options_.tools.empty()) return 0;
    prompt_.template_text("<|im_start|>system\n");
    if (!options_.tools.empty()) {
      prompt_.template_text(tools_head);
      for (const OrderedJson& tool : options_.tools) {
        prompt_.template_text("\n");
        prompt_.message_text(python_json(tool));
      }
      prompt_.template_text(tools_tail);
      if (!content.empty()) prompt_.template_text("\n\n");
    }
    prompt_.message_text(content);
    prompt_.template_text("<|im_end|>\n");
    end_turn(Role::system, 0, given);
    return given;
  }

  size_t render_message(size_t at) {
    const Message& message = messages_[at];
    if (message.role == Role::tool) return render_results(at);
    if (message.role == Role::assistant) {
      render_reply(message,
                   at > query_ || (options_.preserve_thinking && options_.version != TemplateVersion::qwen3_5));
    } else {
      prompt_.template_text("<|im_start|>user\n");
      prompt_.message_text(trim(message.content));
      prompt_.template_text("<|im_end|>\n");
    }
    end_turn(message.role, at, 1);
    return 1;
  }

  void render_reply(const Message& message, bool with_reasoning) {
    const SplitReply reply = split_reply(message);
    prompt_.template_text("<|im_start|>assistant\n");
    if (with_reasoning) {
      prompt_.template_text("<think>\n");
      prompt_.message_text(reply.reasoning);
      prompt_.template_text("\n</think>\n\n");
    }
    prompt_.message_text(reply.content);
    std::string_view separator = trim(reply.content).empty() ? "" : "\n\n";
    for (const ToolCall& call : message.tool_calls) {
      prompt_.template_text(separator);
      render_call(call);
      separator = "\n";
    }
    prompt_.template_text("<|im_end|>\n");
  }

  void render_call(const ToolCall& call) {
    prompt_.template_text("<tool_call>\n<function=");
    prompt_.message_text(call.name);
    prompt_.template_text(">\n");
    if (call.arguments.is_object()) {
      for (const auto& [name, value] : call.arguments.items()) {
        prompt_.template_text("<parameter=");
        prompt_.message_text(name);
        prompt_.template_text(">\n");
        prompt_.message_text(argument_text(value));
        prompt_.template_text("\n</parameter>\n");
      }
    }
    prompt_.template_text("</function>\n</tool_call>");
  }

  std::string argument_text(const OrderedJson& value) const {
    const bool as_str = value.is_string() || (options_.version == TemplateVersion::qwen3_5 && !value.is_structured());
    return as_str ? python_str(value) : python_json(value);
  }

  // The template forgets the head of a turn where tool results lead the list.
  size_t render_results(size_t first) {
    if (first > 0) prompt_.template_text("<|im_start|>user");
    size_t at = first;
    for (; at < messages_.size() && messages_[at].role == Role::tool; ++at) {
      prompt_.template_text("\n<tool_response>\n");
      prompt_.message_text(trim(messages_[at].content));
      prompt_.template_text("\n</tool_response>");
    }
    prompt_.template_text("<|im_end|>\n");
    end_turn(Role::tool, first, at - first);
    return at - first;
  }

  std::span<const Message> messages_;
  const ChatOptions& options_;
  const size_t query_;
  Prompt prompt_;
  std::vector<Turn> turns_;
};

}  // namespace

Result<std::vector<Turn>> render_turns(std::span<const Message> messages, const ChatOptions& options) {
  if (messages.empty()) return Error{"messages", "No messages provided.", "", ""};
  const std::optional<size_t> query = last_query(messages);
  if (!query) return Error{"messages", "No user query found in messages.", "", ""};
  for (size_t i = 1; i < messages.size(); ++i) {
    if (messages[i].role == Role::system) {
      return Error{"messages[" + std::to_string(i) + "]", "System message must be at the beginning.", "", ""};
    }
  }
  return Renderer(messages, options, *query).run();
}

Result<std::vector<TextPiece>> render_chat(std::span<const Message> messages, const ChatOptions& options) {
  LILY_TRY(const std::vector<Turn> turns, render_turns(messages, options));
  Prompt prompt;
  for (const Turn& turn : turns) {
    for (const TextPiece& piece : turn.pieces) prompt.append(piece.text, piece.trusted);
  }
  return prompt.take();
}

}  // namespace lily
