#include "server/chat_format.h"

#include <utility>

#include "server/openai_request.h"
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
  std::string finish;
};

OrderedJson logprobs_of(const OrderedJson& entries) { return {{"content", entries}, {"refusal", nullptr}}; }

class ChatFormat : public ReplyFormat {
 public:
  ChatFormat(const ChatService& service, const FormatOptions& options)
      : service_(service), options_(options), choices_(static_cast<size_t>(options.choices)) {}

  void begin(std::vector<SseEvent>& out) override {
    for (int i = 0; i < options_.choices; ++i) send(i, {{"role", "assistant"}, {"content", ""}}, out);
  }

  void step(int index, const ReplyStep& step, std::vector<SseEvent>& out) override {
    Choice& choice = choices_[static_cast<size_t>(index)];
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

  void finish(int index, const Reply& reply, std::vector<SseEvent>& out) override {
    Choice& choice = choices_[static_cast<size_t>(index)];
    choice.finish = finish_reason(reply, !choice.calls.empty());
    totals_.add(reply);
    OrderedJson chunk = chunk_of(index, OrderedJson::object());
    if (++finished_ == options_.choices) chunk["timings"] = totals_.timings();
    out.push_back({"", json_text(chunk)});
  }

  void end(std::vector<SseEvent>& out) override {
    if (options_.include_usage) {
      OrderedJson chunk = envelope(id_, "chat.completion.chunk", created_, service_);
      chunk["choices"] = OrderedJson::array();
      chunk["usage"] = totals_.usage();
      out.push_back({"", json_text(chunk)});
    }
    out.push_back({"", "[DONE]"});
  }

  void fail(const ApiError& error, std::vector<SseEvent>& out) override {
    out.push_back({"", json_text(openai_error(error))});
  }

  SseEvent keep_alive() override { return {":", "still working"}; }

  OrderedJson document() override {
    OrderedJson document = envelope(id_, "chat.completion", created_, service_);
    document["choices"] = OrderedJson::array();
    for (int i = 0; i < options_.choices; ++i) {
      const Choice& choice = choices_[static_cast<size_t>(i)];
      document["choices"].push_back({{"index", i},
                                     {"message", message_of(choice)},
                                     {"logprobs", options_.logprobs ? logprobs_of(choice.logprobs) : OrderedJson()},
                                     {"finish_reason", choice.finish}});
    }
    document["usage"] = totals_.usage();
    document["timings"] = totals_.timings();
    return document;
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
        const Call& call = choice.calls.emplace_back(Call{random_id("call_"), event.text, ""});
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

  // With the logprobs that no event has had yet, and the finish reason where there is one.
  OrderedJson chunk_of(int index, OrderedJson delta) {
    Choice& choice = choices_[static_cast<size_t>(index)];
    OrderedJson logprobs;
    if (choice.sent_logprobs < choice.logprobs.size()) {
      OrderedJson fresh = OrderedJson::array();
      for (size_t i = choice.sent_logprobs; i < choice.logprobs.size(); ++i) fresh.push_back(choice.logprobs[i]);
      choice.sent_logprobs = choice.logprobs.size();
      logprobs = logprobs_of(fresh);
    }
    OrderedJson chunk = envelope(id_, "chat.completion.chunk", created_, service_);
    OrderedJson entry = {{"index", index}, {"delta", std::move(delta)}, {"logprobs", std::move(logprobs)}};
    entry["finish_reason"] = choice.finish.empty() ? OrderedJson() : OrderedJson(choice.finish);
    chunk["choices"] = OrderedJson::array({entry});
    if (options_.include_usage) chunk["usage"] = nullptr;
    return chunk;
  }

  void send(int index, OrderedJson delta, std::vector<SseEvent>& out) {
    out.push_back({"", json_text(chunk_of(index, std::move(delta)))});
  }

  const ChatService& service_;
  FormatOptions options_;
  std::vector<Choice> choices_;
  ReplyTotals totals_;
  int finished_ = 0;
  std::string id_ = random_id("chatcmpl-");
  int64_t created_ = unix_time();
};

}  // namespace

std::unique_ptr<ReplyFormat> make_chat_format(const ChatService& service, const FormatOptions& options) {
  return std::make_unique<ChatFormat>(service, options);
}

}  // namespace lily::server
