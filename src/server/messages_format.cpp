#include <utility>

#include "server/ids.h"
#include "server/messages.h"
#include "server/reply_shape.h"
#include "server/wire.h"

namespace lily::server {
namespace {

// A reply as a list of content blocks: thinking, text and tool_use, in the order in which they were sampled.
class MessagesFormat : public ReplyFormat {
 public:
  MessagesFormat(const std::string& model, MessagesFormatOptions options);

  void begin(std::vector<SseEvent>& out) override;
  void step(int choice, const ReplyStep& step, std::vector<SseEvent>& out) override;
  void finish(int choice, const Reply& reply, std::vector<SseEvent>& out) override;
  void end(std::vector<SseEvent>& out) override;
  void fail(const ApiError& error, std::vector<SseEvent>& out) override;
  SseEvent keep_alive() override { return {"ping", R"({"type":"ping"})"}; }
  OrderedJson document() override { return message_; }

 private:
  enum class Block { none, thinking, text, tool_use };

  void emit(const char* type, const OrderedJson& fields, std::vector<SseEvent>& out);
  void emit_delta(const char* type, const char* key, const std::string& text, std::vector<SseEvent>& out);
  void show(const ReplyEvent& event, std::vector<SseEvent>& out);
  void open(Block kind, const std::string& name, std::vector<SseEvent>& out);
  void close(std::vector<SseEvent>& out);
  const char* stop_reason(const Reply& reply) const;

  MessagesFormatOptions options_;
  OrderedJson message_;  // the document in the making
  OrderedJson block_;    // the one in the making, whose text grows in text_
  Block kind_ = Block::none;
  std::string text_;
  EventOrder order_;
  bool called_ = false;
};

OrderedJson usage(const Reply& reply) {
  return {{"input_tokens", reply.prompt_tokens - reply.reused_tokens},
          {"cache_creation_input_tokens", 0},
          {"cache_read_input_tokens", reply.reused_tokens},
          {"output_tokens", reply.tokens.size()},
          {"output_tokens_details", {{"thinking_tokens", reply.reasoning_tokens}}}};
}

MessagesFormat::MessagesFormat(const std::string& model, MessagesFormatOptions options)
    : options_(std::move(options)),
      message_{{"id", new_id("msg_")},
               {"type", "message"},
               {"role", "assistant"},
               {"model", model},
               {"content", OrderedJson::array()},
               {"stop_reason", nullptr},
               {"stop_sequence", nullptr},
               {"usage", usage(Reply{})}} {}

void MessagesFormat::emit(const char* type, const OrderedJson& fields, std::vector<SseEvent>& out) {
  OrderedJson event{{"type", type}};
  event.update(fields);
  out.push_back({type, json_text(event)});
}

void MessagesFormat::emit_delta(const char* type, const char* key, const std::string& text,
                                std::vector<SseEvent>& out) {
  const OrderedJson delta{{"type", type}, {key, text}};
  emit("content_block_delta", {{"index", message_["content"].size()}, {"delta", delta}}, out);
}

void MessagesFormat::begin(std::vector<SseEvent>& out) { emit("message_start", {{"message", message_}}, out); }

void MessagesFormat::step(int, const ReplyStep& step, std::vector<SseEvent>& out) {
  for (const ReplyEvent& event : order_.of(step)) show(event, out);
}

void MessagesFormat::show(const ReplyEvent& event, std::vector<SseEvent>& out) {
  const bool visible = !event.text.empty();
  switch (event.kind) {
    case ReplyEvent::Kind::reasoning:
      if (visible && kind_ != Block::thinking) open(Block::thinking, "", out);
      if (visible && options_.show_thinking) emit_delta("thinking_delta", "thinking", event.text, out);
      break;
    case ReplyEvent::Kind::content:
      if (visible && kind_ != Block::text) open(Block::text, "", out);
      if (visible) emit_delta("text_delta", "text", event.text, out);
      break;
    case ReplyEvent::Kind::call_begin: return open(Block::tool_use, event.text, out);
    case ReplyEvent::Kind::call_arguments: emit_delta("input_json_delta", "partial_json", event.text, out); break;
    case ReplyEvent::Kind::call_end: return close(out);
  }
  text_ += event.text;
}

void MessagesFormat::open(Block kind, const std::string& name, std::vector<SseEvent>& out) {
  close(out);
  kind_ = kind;
  text_.clear();
  if (kind == Block::thinking) block_ = {{"type", "thinking"}, {"thinking", ""}, {"signature", ""}};
  if (kind == Block::text) block_ = {{"type", "text"}, {"text", ""}};
  if (kind == Block::tool_use) {
    block_ = {{"type", "tool_use"}, {"id", new_id("toolu_")}, {"name", name}, {"input", OrderedJson::object()}};
    called_ = true;
  }
  emit("content_block_start", {{"index", message_["content"].size()}, {"content_block", block_}}, out);
}

void MessagesFormat::close(std::vector<SseEvent>& out) {
  if (kind_ == Block::none) return;
  if (kind_ == Block::thinking) {
    // Nothing is signed here, but clients drop blocks that have no signature.
    block_["signature"] = new_id("sig_");
    if (options_.show_thinking) block_["thinking"] = text_;
    emit_delta("signature_delta", "signature", block_["signature"], out);
  } else if (kind_ == Block::text) {
    block_["text"] = text_;
  } else {
    auto parsed = parse_json(text_);
    if (auto* input = std::get_if<OrderedJson>(&parsed); input && input->is_object())
      block_["input"] = std::move(*input);
  }
  emit("content_block_stop", {{"index", message_["content"].size()}}, out);
  message_["content"].push_back(std::move(block_));
  kind_ = Block::none;
}

const char* MessagesFormat::stop_reason(const Reply& reply) const {
  if (is_cut(reply)) return "max_tokens";
  if (reply.finish == Finish::stop_string) return "stop_sequence";
  return called_ ? "tool_use" : "end_turn";
}

void MessagesFormat::finish(int, const Reply& reply, std::vector<SseEvent>& out) {
  for (const ReplyEvent& event : order_.of(reply)) show(event, out);
  close(out);
  message_["stop_reason"] = stop_reason(reply);
  if (reply.finish == Finish::stop_string && options_.stop) message_["stop_sequence"] = *options_.stop;
  message_["usage"] = usage(reply);
}

void MessagesFormat::end(std::vector<SseEvent>& out) {
  const OrderedJson delta{{"stop_reason", message_["stop_reason"]}, {"stop_sequence", message_["stop_sequence"]}};
  emit("message_delta", {{"delta", delta}, {"usage", message_["usage"]}}, out);
  emit("message_stop", OrderedJson::object(), out);
}

void MessagesFormat::fail(const ApiError& error, std::vector<SseEvent>& out) {
  out.push_back({"error", json_text(messages_error(error))});
}

}  // namespace

std::unique_ptr<ReplyFormat> make_messages_format(const std::string& model, const MessagesFormatOptions& options) {
  return std::make_unique<MessagesFormat>(model, options);
}

}  // namespace lily::server
