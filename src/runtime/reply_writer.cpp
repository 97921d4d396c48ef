#include "runtime/reply_writer.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <utility>

namespace lily {
namespace {

bool contains(const std::vector<int32_t>& ids, int32_t id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

double log_sum_exp(std::span<const float> logits) {
  const float top = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - top);
  return top + std::log(sum);
}

std::vector<TokenLogprob> likeliest(std::span<const float> logits, int count, double log_total) {
  std::vector<int32_t> order(logits.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int32_t>(i);
  const auto n = std::min<ptrdiff_t>(count, static_cast<ptrdiff_t>(order.size()));
  std::partial_sort(order.begin(), order.begin() + n, order.end(), [&](int32_t a, int32_t b) {
    const float x = logits[static_cast<size_t>(a)], y = logits[static_cast<size_t>(b)];
    return x != y ? x > y : a < b;
  });
  std::vector<TokenLogprob> top;
  for (ptrdiff_t i = 0; i < n; ++i) {
    top.push_back({order[i], static_cast<float>(logits[static_cast<size_t>(order[i])] - log_total)});
  }
  return top;
}

// What events say, as the message that a client will show to the server again.
class MessageBuilder {
 public:
  explicit MessageBuilder(Message& message) : message_(message) { message_.role = Role::assistant; }

  void add(const ReplyEvent& event) {
    switch (event.kind) {
      case ReplyEvent::Kind::reasoning: message_.reasoning += event.text; break;
      case ReplyEvent::Kind::content: message_.content += event.text; break;
      case ReplyEvent::Kind::call_begin:
        message_.tool_calls.push_back({.id = {}, .name = event.text, .arguments = OrderedJson::object()});
        arguments_.clear();
        break;
      case ReplyEvent::Kind::call_arguments: arguments_ += event.text; break;
      case ReplyEvent::Kind::call_end:
        message_.tool_calls.back().arguments = OrderedJson::parse(arguments_, nullptr, false);
        break;
    }
  }

 private:
  Message& message_;
  std::string arguments_;  // of the last call, so far
};

}  // namespace

const char* name_of(Finish finish) {
  switch (finish) {
    case Finish::end_token: return "end_token";
    case Finish::stop_string: return "stop_string";
    case Finish::length: return "length";
    case Finish::context_full: return "context_full";
    case Finish::cancelled: return "cancelled";
  }
  return "";
}

Result<void> check(const ReplyOptions& options) {
  LILY_CHECK(check(options.sampling));
  for (const std::string& stop : options.splitter.stops) {
    if (stop.empty()) return Error{.where = "stop", .what = "an empty stop string"};
  }
  return {};
}

struct ReplyWriter::Impl {
  Impl(const Tokenizer* with, std::span<const int32_t> prompt, int32_t vocab, ReplyOptions with_options)
      : tokenizer(with),
        options(std::move(with_options)),
        ids(with ? std::min(vocab, with->size()) : vocab),
        sampler(options.sampling, ids),
        allowed(vocab),
        message(reply.message) {
    if (with) splitter.emplace(*with, prompt, options.splitter);
    if (options.constraint) constraint = options.constraint->clone();
  }

  Channel channel() const { return splitter ? splitter->channel() : Channel::content; }
  bool reasons() const { return channel() == Channel::reasoning; }

  Result<int32_t> choose(std::span<const float> logits);
  const TokenSet* allowed_ids();
  ReplyStep step(int32_t id, std::span<const float> logits);
  void report_logprobs(std::span<const float> logits, ReplyStep& step) const;
  void take(ReplyStep& step);
  void drop_more_calls(std::vector<ReplyEvent>& events);
  void add(const std::vector<ReplyEvent>& events);

  const Tokenizer* tokenizer;
  ReplyOptions options;
  int32_t ids;  // those beyond are never sampled
  Sampler sampler;
  std::optional<StreamSplitter> splitter;
  std::unique_ptr<TokenConstraint> constraint;
  TokenSet allowed;
  std::deque<int32_t> forced;  // come next, whatever the logits say
  std::vector<float> scratch;  // [vocab]
  Reply reply;
  MessageBuilder message;
  std::optional<Finish> finish;
  bool called = false;  // with single_call: its call is complete
};

ReplyWriter::ReplyWriter(const Tokenizer* tokenizer, std::span<const int32_t> prompt, int32_t vocab,
                         ReplyOptions options)
    : impl_(std::make_unique<Impl>(tokenizer, prompt, vocab, std::move(options))) {
  if (impl_->options.max_tokens && *impl_->options.max_tokens <= 0) impl_->finish = Finish::length;
}
ReplyWriter::~ReplyWriter() = default;
ReplyWriter::ReplyWriter(ReplyWriter&&) noexcept = default;

std::optional<Finish> ReplyWriter::finished() const { return impl_->finish; }
Reply& ReplyWriter::reply() { return impl_->reply; }

// Null: all.
const TokenSet* ReplyWriter::Impl::allowed_ids() {
  if (!constraint) return nullptr;
  allowed.clear();
  if (reasons()) {  // free, but the constrained content has yet to come
    for (int32_t id = 0; id < ids; ++id) {
      if (!contains(options.end_tokens, id)) allowed.add(id);
    }
    return &allowed;
  }
  constraint->allowed(allowed);
  if (constraint->complete()) {
    for (const int32_t id : options.end_tokens) allowed.add(id);
  }
  return &allowed;
}

Result<int32_t> ReplyWriter::Impl::choose(std::span<const float> logits) {
  if (reasons() && forced.empty() && options.thinking_budget && reply.reasoning_tokens >= *options.thinking_budget) {
    const std::vector<int32_t> close = tokenizer->encode("\n</think>\n\n", true);
    forced.assign(close.begin(), close.end());
  }
  if (!forced.empty()) {
    const int32_t id = forced.front();
    forced.pop_front();
    return id;
  }
  scratch.assign(logits.begin(), logits.end());
  return sampler.sample(scratch, allowed_ids());
}

void ReplyWriter::Impl::report_logprobs(std::span<const float> logits, ReplyStep& step) const {
  if (!options.top_logprobs) return;
  logits = logits.first(std::min(logits.size(), static_cast<size_t>(ids)));
  const double log_total = log_sum_exp(logits);
  step.logprob = static_cast<float>(logits[static_cast<size_t>(step.id)] - log_total);
  step.top = likeliest(logits, *options.top_logprobs, log_total);
}

Result<ReplyStep> ReplyWriter::next(std::span<const float> logits) {
  Impl& writer = *impl_;
  LILY_TRY(const int32_t id, writer.choose(logits));
  return writer.step(id, logits);
}

ReplyStep ReplyWriter::accept(int32_t token) { return impl_->step(token, {}); }

std::optional<DeviceSampling> ReplyWriter::device_sampling() const {
  const SamplingParams& p = impl_->options.sampling;
  const bool plain =
      p.repetition_penalty == 1 && p.presence_penalty == 0 && p.frequency_penalty == 0 && p.logit_bias.empty();
  if (!plain || impl_->constraint || impl_->options.top_logprobs || impl_->options.thinking_budget) return {};
  return DeviceSampling{.temperature = p.temperature,
                        .top_k = static_cast<uint32_t>(p.top_k),
                        .top_p = p.top_p,
                        .min_p = p.min_p,
                        .seed = p.seed,
                        .tokens = static_cast<uint32_t>(impl_->ids)};
}

// Logits: empty where no logprobs are wanted.
ReplyStep ReplyWriter::Impl::step(int32_t id, std::span<const float> logits) {
  ReplyStep step;
  step.channel = channel();
  if (contains(options.end_tokens, id)) {
    finish = Finish::end_token;
    return step;
  }
  step.id = id;
  report_logprobs(logits, step);
  take(step);
  return step;
}

void ReplyWriter::Impl::take(ReplyStep& step) {
  const bool content = !reasons();
  reply.tokens.push_back(step.id);
  reply.reasoning_tokens += step.channel == Channel::reasoning;
  if (splitter) splitter->push(step.id, step.events);
  if (constraint && content) constraint->accept(step.id);
  if (options.single_call) drop_more_calls(step.events);
  add(step.events);
  if (splitter && splitter->stopped()) {
    finish = Finish::stop_string;
  } else if (options.single_call && called) {
    finish = Finish::end_token;
  } else if (options.max_tokens && static_cast<int64_t>(reply.tokens.size()) >= *options.max_tokens) {
    finish = Finish::length;
  }
}

// Whether a call is complete may show only when the next one has begun.
void ReplyWriter::Impl::drop_more_calls(std::vector<ReplyEvent>& events) {
  std::erase_if(events, [&](const ReplyEvent& event) {
    if (event.kind == ReplyEvent::Kind::call_end) return std::exchange(called, true);
    return called;
  });
}

void ReplyWriter::Impl::add(const std::vector<ReplyEvent>& events) {
  for (const ReplyEvent& event : events) message.add(event);
}

ReplyStep ReplyWriter::end(Finish finish) {
  ReplyStep step;
  step.channel = impl_->channel();
  impl_->finish = finish;
  impl_->reply.finish = finish;
  impl_->reply.channel = step.channel;
  if (impl_->splitter) impl_->splitter->finish(step.events);
  if (impl_->options.single_call) impl_->drop_more_calls(step.events);
  impl_->add(step.events);
  return step;
}

}  // namespace lily
