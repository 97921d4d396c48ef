#include "server/chat_format.h"

#include <utility>

#include "server/ids.h"
#include "server/wire.h"

namespace lily::server {
namespace {

struct Call {
  std::string id, name, arguments;
};

struct Choice {
  std::string content, reasoning;
  std::vector<Call> calls;
  OrderedJson logprobs = OrderedJson::array();  // all so far
  size_t sent_logprobs = 0;
};

OrderedJson logprobs_of(const OrderedJson& entries) { return {{"content", entries}, {"refusal", nullptr}}; }

class ChatFormat : public OpenAiFormat {
 public:
  ChatFormat(const ChatService& service, const FormatOptions& options)
      : OpenAiFormat(service, options, {"chatcmpl-", "chat.completion", "chat.completion.chunk"}),
        choices_(static_cast<size_t>(options.choices)) {}

  void begin(std::vector<SseEvent>& out) override {
    for (int i = 0; i < options_.choices; ++i) send(i, {{"role", "assistant"}, {"content", ""}}, out);
  }

  void step(int index, const ReplyStep& step, std::vector<SseEvent>& out) override {
    Choice& choice = at(index);
    if (options_.logprobs && step.id >= 0) {
      OrderedJson entry = token_logprob(service_.tokenizer(), step.id, step.logprob);
      entry["top_logprobs"] = OrderedJson::array();
      for (const TokenLogprob& top : step.top) {
        entry["top_logprobs"].push_back(token_logprob(service_.tokenizer(), top.id, top.logprob));
      }
      choice.logprobs.push_back(std::move(entry));
    }
    for (const ReplyEvent& event : step.events) {
      OrderedJson delta = delta_of(choice, event);
      if (!delta.empty()) send(index, std::move(delta), out);
    }
  }

 private:
  // Takes the event into the choice; empty: nothing to tell.
  static OrderedJson delta_of(Choice& choice, const ReplyEvent& event) {
    switch (event.kind) {
      case ReplyEvent::Kind::reasoning:
        choice.reasoning += event.text;
        return {{"reasoning_content", event.text}, {"reasoning", event.text}};
      case ReplyEvent::Kind::content: choice.content += event.text; return {{"content", event.text}};
      case ReplyEvent::Kind::call_begin: {
        const Call& call = choice.calls.emplace_back(Call{new_id("call_"), event.text, ""});
        OrderedJson first = {{"index", choice.calls.size() - 1}, {"id", call.id}, {"type", "function"}};
        first["function"] = {{"name", call.name}, {"arguments", ""}};
        return {{"tool_calls", OrderedJson::array({first})}};
      }
      case ReplyEvent::Kind::call_arguments: {
        if (choice.calls.empty()) return OrderedJson::object();
        choice.calls.back().arguments += event.text;
        OrderedJson more = {{"index", choice.calls.size() - 1}, {"function", {{"arguments", event.text}}}};
        return {{"tool_calls", OrderedJson::array({more})}};
      }
      case ReplyEvent::Kind::call_end: break;
    }
    return OrderedJson::object();
  }

  static OrderedJson message_of(const Choice& choice) {
    const bool silent = choice.content.empty() && !(choice.calls.empty() && choice.reasoning.empty());
    OrderedJson message = {{"role", "assistant"}, {"content", silent ? OrderedJson() : OrderedJson(choice.content)}};
    message["refusal"] = nullptr;
    if (!choice.reasoning.empty()) {
      message["reasoning_content"] = choice.reasoning;
      message["reasoning"] = choice.reasoning;
    }
    for (const Call& call : choice.calls) {
      message["tool_calls"].push_back(
          {{"id", call.id}, {"type", "function"}, {"function", {{"name", call.name}, {"arguments", call.arguments}}}});
    }
    return message;
  }

  // With the logprobs that no event has had yet.
  OrderedJson fields_of(Choice& choice, OrderedJson delta) {
    OrderedJson logprobs;
    if (choice.sent_logprobs < choice.logprobs.size()) {
      OrderedJson fresh = OrderedJson::array();
      for (size_t i = choice.sent_logprobs; i < choice.logprobs.size(); ++i) fresh.push_back(choice.logprobs[i]);
      choice.sent_logprobs = choice.logprobs.size();
      logprobs = logprobs_of(fresh);
    }
    return {{"delta", std::move(delta)}, {"logprobs", std::move(logprobs)}};
  }

  OrderedJson last(int index) override { return fields_of(at(index), OrderedJson::object()); }

  OrderedJson whole(int index) override {
    const Choice& all = at(index);
    return {{"message", message_of(all)}, {"logprobs", options_.logprobs ? logprobs_of(all.logprobs) : OrderedJson()}};
  }

  bool called(int index) const override { return !choices_[static_cast<size_t>(index)].calls.empty(); }

  void send(int index, OrderedJson delta, std::vector<SseEvent>& out) {
    out.push_back({"", json_text(event_of(index, fields_of(at(index), std::move(delta))))});
  }

  Choice& at(int index) { return choices_[static_cast<size_t>(index)]; }

  std::vector<Choice> choices_;
};

}  // namespace

std::unique_ptr<ReplyFormat> make_chat_format(const ChatService& service, const FormatOptions& options) {
  return std::make_unique<ChatFormat>(service, options);
}

}  // namespace lily::server
