#include "server/completion_format.h"

#include <utility>

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

struct CompletionChoice {
  std::string text;
  Logprobs all, fresh;  // fresh: not sent yet
};

class CompletionFormat : public OpenAiFormat {
 public:
  CompletionFormat(const ChatService& service, const FormatOptions& options)
      : OpenAiFormat(service, options, {"cmpl-", "text_completion", "text_completion"}),
        choices_(static_cast<size_t>(options.choices)) {}

  void begin(std::vector<SseEvent>&) override {}

  void step(int index, const ReplyStep& step, std::vector<SseEvent>& out) override {
    CompletionChoice& choice = choices_[static_cast<size_t>(index)];
    if (options_.logprobs && step.id >= 0) {
      for (Logprobs* to : {&choice.all, &choice.fresh}) note_logprobs(step, choice.text.size(), *to);
    }
    std::string text;
    for (const ReplyEvent& event : step.events) {
      if (event.kind == ReplyEvent::Kind::content || event.kind == ReplyEvent::Kind::reasoning) text += event.text;
    }
    if (text.empty()) return;
    choice.text += text;
    out.push_back({"", json_text(event_of(index, fields_of(index, text)))});
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

  // With the logprobs that no event has had yet.
  OrderedJson fields_of(int index, const std::string& text) {
    CompletionChoice& choice = choices_[static_cast<size_t>(index)];
    OrderedJson logprobs;
    if (!choice.fresh.tokens.empty()) logprobs = std::exchange(choice.fresh, {}).json();
    return {{"text", text}, {"logprobs", std::move(logprobs)}};
  }

  OrderedJson last(int index) override { return fields_of(index, ""); }

  OrderedJson whole(int index) override {
    const CompletionChoice& choice = choices_[static_cast<size_t>(index)];
    return {{"text", choice.text}, {"logprobs", options_.logprobs ? choice.all.json() : OrderedJson()}};
  }

  bool called(int) const override { return false; }

  std::vector<CompletionChoice> choices_;
};

}  // namespace

std::unique_ptr<ReplyFormat> make_completion_format(const ChatService& service, const FormatOptions& options) {
  return std::make_unique<CompletionFormat>(service, options);
}

}  // namespace lily::server
