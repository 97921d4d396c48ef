#include "text/chat.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "text/utf8.h"

namespace lily {
namespace {

// White space as the template language's `trim` sees it.
bool is_space(char32_t c) {
  if (c < 0x80) return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20);
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 ||
         c == 0x202F || c == 0x205F || c == 0x3000;
}

// Bytes of the white-space character that `text` begins with; 0: it begins with none.
size_t space_at(std::string_view text) {
  if (text.empty()) return 0;
  const Utf8Step step = utf8_step(text);
  return step.kind == Utf8Step::Kind::character && is_space(code_point(text.substr(0, step.size))) ? step.size : 0;
}

std::string_view trim(std::string_view text) {
  while (const size_t size = space_at(text)) text.remove_prefix(size);
  for (size_t size = 1; size <= std::min<size_t>(3, text.size());) {  // white space has at most 3 bytes
    if (space_at(text.substr(text.size() - size)) == size) {
      text.remove_suffix(size);
      size = 1;
    } else {
      ++size;
    }
  }
  return text;
}

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
  std::vector<TextPiece> take() { return std::move(pieces_); }

 private:
  void append(std::string_view text, bool trusted) {
    if (text.empty()) return;
    if (pieces_.empty() || pieces_.back().trusted != trusted) pieces_.push_back({"", trusted});
    pieces_.back().text += text;
  }

  std::vector<TextPiece> pieces_;
};

// A user message that only carries tool results continues the turn before it.
bool is_query(const Message& message) {
  if (message.role != Role::user) return false;
  const std::string_view content = trim(message.content);
  return !(content.starts_with("<tool_response>") && content.ends_with("</tool_response>"));
}

std::optional<size_t> last_query(std::span<const Message> messages) {
  for (size_t i = messages.size(); i-- > 0;) {
    if (is_query(messages[i])) return i;
  }
  return std::nullopt;
}

struct Reply {
  std::string_view reasoning, content;
};

// The reasoning as given, else what stands in the content before </think>.
Reply split_reply(const Message& message) {
  constexpr std::string_view close = "</think>", open = "<think>";
  const std::string_view content = trim(message.content);
  if (!message.reasoning.empty()) return {trim(message.reasoning), content};
  const size_t end = content.find(close);
  if (end == content.npos) return {"", content};
  const std::string_view before = trim_newlines_right(content.substr(0, end));
  return {trim(trim_newlines_left(after_last(before, open))), trim_newlines_left(after_last(content, close))};
}

void render_reply(const Message& message, bool with_reasoning, Prompt& prompt) {
  const Reply reply = split_reply(message);
  prompt.template_text("<|im_start|>assistant\n");
  if (with_reasoning) {
    prompt.template_text("<think>\n");
    prompt.message_text(reply.reasoning);
    prompt.template_text("\n</think>\n\n");
  }
  prompt.message_text(reply.content);
  prompt.template_text("<|im_end|>\n");
}

void render_turn(std::string_view header, const Message& message, Prompt& prompt) {
  prompt.template_text(header);
  prompt.message_text(trim(message.content));
  prompt.template_text("<|im_end|>\n");
}

Error wrong_messages(size_t index, const char* what) {
  return {"messages[" + std::to_string(index) + "]", what, "", ""};
}

}  // namespace

Result<std::vector<TextPiece>> render_chat(std::span<const Message> messages, const ChatOptions& options) {
  if (messages.empty()) return Error{"messages", "No messages provided.", "", ""};
  const std::optional<size_t> query = last_query(messages);
  if (!query) return Error{"messages", "No user query found in messages.", "", ""};
  Prompt prompt;
  for (size_t i = 0; i < messages.size(); ++i) {
    const Message& message = messages[i];
    switch (message.role) {
      case Role::system:
        if (i > 0) return wrong_messages(i, "System message must be at the beginning.");
        render_turn("<|im_start|>system\n", message, prompt);
        break;
      case Role::user: render_turn("<|im_start|>user\n", message, prompt); break;
      case Role::assistant: render_reply(message, options.preserve_thinking || i > *query, prompt); break;
    }
  }
  if (options.add_generation_prompt) {
    prompt.template_text("<|im_start|>assistant\n");
    prompt.template_text(options.enable_thinking ? "<think>\n" : "<think>\n\n</think>\n\n");
  }
  return prompt.take();
}

}  // namespace lily
