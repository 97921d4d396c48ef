#include <utility>

#include "server/ids.h"
#include "server/openai_reply.h"
#include "server/reply_shape.h"
#include "server/responses.h"
#include "server/wire.h"

namespace lily::server {
namespace {

// A reply as a list of output items: reasoning, message and function_call, in the order in which they were sampled.
class ResponsesFormat : public ReplyFormat {
 public:
  ResponsesFormat(const std::string& model, const OrderedJson& settings);

  void begin(std::vector<SseEvent>& out) override;
  void step(int choice, const ReplyStep& step, std::vector<SseEvent>& out) override;
  void finish(int choice, const Reply& reply, std::vector<SseEvent>& out) override;
  void end(std::vector<SseEvent>& out) override;
  void fail(const ApiError& error, std::vector<SseEvent>& out) override;
  SseEvent keep_alive() override { return {":", "keep-alive"}; }
  OrderedJson document() override { return response_; }

 private:
  enum class Item { none, reasoning, message, call };

  void emit(const char* type, OrderedJson fields, std::vector<SseEvent>& out);
  void emit_of_item(const char* type, OrderedJson fields, std::vector<SseEvent>& out);
  void show(const ReplyEvent& event, std::vector<SseEvent>& out);
  void open(Item kind, const std::string& name, std::vector<SseEvent>& out);
  void add(Item kind, const ReplyEvent& event, std::vector<SseEvent>& out);
  void close(const char* status, std::vector<SseEvent>& out);
  void close_text(std::vector<SseEvent>& out);
  OrderedJson part() const;

  OrderedJson response_;  // the document in the making
  OrderedJson item_;      // the one in the making, whose text grows in text_
  Item kind_ = Item::none;
  std::string text_;
  EventOrder order_;
  int64_t sequence_ = 0;
  bool begun_ = false;
};

ResponsesFormat::ResponsesFormat(const std::string& model, const OrderedJson& settings)
    : response_{{"id", new_id("resp_")},          {"object", "response"},
                {"created_at", unix_time()},      {"status", "in_progress"},
                {"completed_at", nullptr},        {"error", nullptr},
                {"incomplete_details", nullptr},  {"model", model},
                {"output", OrderedJson::array()}, {"usage", nullptr}} {
  response_.update(settings);
}

void ResponsesFormat::emit(const char* type, OrderedJson fields, std::vector<SseEvent>& out) {
  OrderedJson event{{"type", type}, {"sequence_number", sequence_++}};
  event.update(fields);
  out.push_back({type, json_text(event)});
}

void ResponsesFormat::emit_of_item(const char* type, OrderedJson fields, std::vector<SseEvent>& out) {
  OrderedJson event{{"item_id", item_["id"]}, {"output_index", response_["output"].size()}};
  if (kind_ != Item::call) event["content_index"] = 0;
  event.update(fields);
  emit(type, std::move(event), out);
}

void ResponsesFormat::begin(std::vector<SseEvent>& out) {
  if (std::exchange(begun_, true)) return;
  emit("response.created", {{"response", response_}}, out);
  emit("response.in_progress", {{"response", response_}}, out);
}

void ResponsesFormat::step(int, const ReplyStep& step, std::vector<SseEvent>& out) {
  for (const ReplyEvent& event : order_.of(step)) show(event, out);
}

void ResponsesFormat::show(const ReplyEvent& event, std::vector<SseEvent>& out) {
  switch (event.kind) {
    case ReplyEvent::Kind::reasoning: return add(Item::reasoning, event, out);
    case ReplyEvent::Kind::content: return add(Item::message, event, out);
    case ReplyEvent::Kind::call_begin: return open(Item::call, event.text, out);
    case ReplyEvent::Kind::call_arguments:
      text_ += event.text;
      return emit_of_item("response.function_call_arguments.delta", {{"delta", event.text}}, out);
    case ReplyEvent::Kind::call_end: return close("completed", out);
  }
}

void ResponsesFormat::add(Item kind, const ReplyEvent& event, std::vector<SseEvent>& out) {
  if (event.text.empty()) return;
  if (kind_ != kind) open(kind, "", out);
  text_ += event.text;
  if (kind == Item::reasoning) {
    emit_of_item("response.reasoning_text.delta", {{"delta", event.text}}, out);
  } else {
    emit_of_item("response.output_text.delta", {{"delta", event.text}, {"logprobs", OrderedJson::array()}}, out);
  }
}

void ResponsesFormat::open(Item kind, const std::string& name, std::vector<SseEvent>& out) {
  close("completed", out);
  kind_ = kind;
  text_.clear();
  if (kind == Item::call) {
    item_ = {{"type", "function_call"}, {"id", new_id("fc_")},    {"call_id", new_id("call_")}, {"name", name},
             {"arguments", ""},         {"status", "in_progress"}};
  } else if (kind == Item::message) {
    item_ = {{"type", "message"},
             {"id", new_id("msg_")},
             {"role", "assistant"},
             {"content", OrderedJson::array()},
             {"status", "in_progress"}};
  } else {
    item_ = {{"type", "reasoning"},
             {"id", new_id("rs_")},
             {"summary", OrderedJson::array()},
             {"content", OrderedJson::array()},
             {"encrypted_content", nullptr},
             {"status", "in_progress"}};
  }
  emit("response.output_item.added", {{"output_index", response_["output"].size()}, {"item", item_}}, out);
  if (kind != Item::call) emit_of_item("response.content_part.added", {{"part", part()}}, out);
}

OrderedJson ResponsesFormat::part() const {
  if (kind_ == Item::reasoning) return {{"type", "reasoning_text"}, {"text", text_}};
  return {{"type", "output_text"},
          {"text", text_},
          {"annotations", OrderedJson::array()},
          {"logprobs", OrderedJson::array()}};
}

void ResponsesFormat::close_text(std::vector<SseEvent>& out) {
  if (kind_ == Item::reasoning) {
    emit_of_item("response.reasoning_text.done", {{"text", text_}}, out);
  } else {
    emit_of_item("response.output_text.done", {{"text", text_}, {"logprobs", OrderedJson::array()}}, out);
  }
  emit_of_item("response.content_part.done", {{"part", part()}}, out);
  item_["content"].push_back(part());
}

// A call that was cut off gets no `done`: that is what clients act on.
void ResponsesFormat::close(const char* status, std::vector<SseEvent>& out) {
  if (kind_ == Item::none) return;
  const bool cut_call = kind_ == Item::call && std::string_view(status) != "completed";
  item_["status"] = status;
  if (kind_ == Item::call) {
    item_["arguments"] = text_;
    if (!cut_call) {
      emit_of_item("response.function_call_arguments.done", {{"name", item_["name"]}, {"arguments", text_}}, out);
    }
  } else {
    close_text(out);
  }
  if (!cut_call) {
    emit("response.output_item.done", {{"output_index", response_["output"].size()}, {"item", item_}}, out);
  }
  response_["output"].push_back(std::move(item_));
  kind_ = Item::none;
}

void ResponsesFormat::finish(int, const Reply& reply, std::vector<SseEvent>& out) {
  for (const ReplyEvent& event : order_.of(reply)) show(event, out);
  const bool cut = is_cut(reply);
  close(cut ? "incomplete" : "completed", out);
  response_["status"] = cut ? "incomplete" : "completed";
  if (cut) response_["incomplete_details"] = {{"reason", "max_output_tokens"}};
  else response_["completed_at"] = unix_time();
  const auto written = static_cast<int64_t>(reply.tokens.size());
  response_["usage"] = {{"input_tokens", reply.prompt_tokens},
                        {"input_tokens_details", {{"cached_tokens", reply.reused_tokens}, {"cache_write_tokens", 0}}},
                        {"output_tokens", written},
                        {"output_tokens_details", {{"reasoning_tokens", reply.reasoning_tokens}}},
                        {"total_tokens", reply.prompt_tokens + written}};
}

void ResponsesFormat::end(std::vector<SseEvent>& out) {
  const bool completed = response_["status"] == "completed";
  emit(completed ? "response.completed" : "response.incomplete", {{"response", response_}}, out);
}

void ResponsesFormat::fail(const ApiError& error, std::vector<SseEvent>& out) {
  begin(out);
  response_["status"] = "failed";
  response_["error"] = {{"code", error.code.empty() ? "server_error" : error.code}, {"message", error.message}};
  emit("response.failed", {{"response", response_}}, out);
}

}  // namespace

std::unique_ptr<ReplyFormat> make_responses_format(const std::string& model, const OrderedJson& settings) {
  return std::make_unique<ResponsesFormat>(model, settings);
}

}  // namespace lily::server
