#include "server/completion_format.h"

#include <utility>

#include "server/openai_request.h"
#include "server/wire.h"

namespace lily::server {
namespace {

// The lists of the old form of logprobs, one entry a token.
struct Logprobs {
  OrderedJson tokens = OrderedJson::array(), logprobs = OrderedJson::array(), tops = OrderedJson::array(),
              offsets = OrderedJson::array();

  OrderedJson json() const {
    return {{"tokens", tokens}, {"token_logprobs", logprobs}, {"top_logprobs", tops}, {"text_offset", offsets}};
  }
};

struct Choice {
  std::string text;
  Logprobs all, fresh;  // fresh: not sent yet
  std::string finish;
};

class CompletionFormat : public ReplyFormat {
 public:
  CompletionFormat(const ChatService& service, const FormatOptions& options)
      : service_(service), options_(options), choices_(static_cast<size_t>(options.choices)) {}

  void begin(std::vector<SseEvent>&) override {}

  void step(int index, const ReplyStep& step, std::vector<SseEvent>& out) override {
    Choice& choice = choices_[static_cast<size_t>(index)];
    if (options_.logprobs && step.id >= 0) {
      for (Logprobs* to : {&choice.all, &choice.fresh}) note_logprobs(step, choice.text.size(), *to);
    }
    std::string text;
    for (const ReplyEvent& event : step.events) {
      if (event.kind == ReplyEvent::Kind::content || event.kind == ReplyEvent::Kind::reasoning) text += event.text;
    }
    if (text.empty()) return;
    choice.text += text;
    out.push_back({"", json_text(chunk_of(index, text))});
  }

  void finish(int index, const Reply& reply, std::vector<SseEvent>& out) override {
    choices_[static_cast<size_t>(index)].finish = finish_reason(reply, false);
    totals_.add(reply);
    OrderedJson chunk = chunk_of(index, "");
    if (++finished_ == options_.choices) chunk["timings"] = totals_.timings();
    out.push_back({"", json_text(chunk)});
  }

  void end(std::vector<SseEvent>& out) override {
    if (options_.include_usage) {
      OrderedJson chunk = envelope(id_, "text_completion", created_, service_);
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
    OrderedJson document = envelope(id_, "text_completion", created_, service_);
    document["choices"] = OrderedJson::array();
    for (int i = 0; i < options_.choices; ++i) {
      const Choice& choice = choices_[static_cast<size_t>(i)];
      document["choices"].push_back({{"index", i},
                                     {"text", choice.text},
                                     {"logprobs", options_.logprobs ? choice.all.json() : OrderedJson()},
                                     {"finish_reason", choice.finish}});
    }
    document["usage"] = totals_.usage();
    document["timings"] = totals_.timings();
    return document;
  }

 private:
  void note_logprobs(const ReplyStep& step, size_t offset, Logprobs& to) const {
    const auto text_of = [&](int32_t id) { return std::string(service_.tokenizer().bytes_of(id)); };
    OrderedJson top = OrderedJson::object();
    for (const TokenLogprob& one : step.top) top[text_of(one.id)] = finite_logprob(one.logprob);
    to.tokens.push_back(text_of(step.id));
    to.logprobs.push_back(finite_logprob(step.logprob));
    to.tops.push_back(std::move(top));
    to.offsets.push_back(offset);
  }

  OrderedJson chunk_of(int index, const std::string& text) {
    Choice& choice = choices_[static_cast<size_t>(index)];
    OrderedJson logprobs;
    if (!choice.fresh.tokens.empty()) logprobs = std::exchange(choice.fresh, {}).json();
    OrderedJson entry = {{"index", index}, {"text", text}, {"logprobs", std::move(logprobs)}};
    entry["finish_reason"] = choice.finish.empty() ? OrderedJson() : OrderedJson(choice.finish);
    OrderedJson chunk = envelope(id_, "text_completion", created_, service_);
    chunk["choices"] = OrderedJson::array({entry});
    if (options_.include_usage) chunk["usage"] = nullptr;
    return chunk;
  }

  const ChatService& service_;
  FormatOptions options_;
  std::vector<Choice> choices_;
  ReplyTotals totals_;
  int finished_ = 0;
  std::string id_ = random_id("cmpl-");
  int64_t created_ = unix_time();
};

}  // namespace

std::unique_ptr<ReplyFormat> make_completion_format(const ChatService& service, const FormatOptions& options) {
  return std::make_unique<CompletionFormat>(service, options);
}

}  // namespace lily::server
