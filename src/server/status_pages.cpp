#include "server/status_pages.h"

#include <fmt/format.h>

namespace lily::server {
namespace {

class MetricsText {
 public:
  void add(const char* name, const char* type, const char* help, double value) {
    head(name, type, help);
    text_ += fmt::format("lily_{} {}\n", name, value);
  }
  void counter(const char* name, const char* help, double value) { add(name, "counter", help, value); }
  void gauge(const char* name, const char* help, double value) { add(name, "gauge", help, value); }

  void head(const char* name, const char* type, const char* help) {
    text_ += fmt::format("# HELP lily_{} {}\n# TYPE lily_{} {}\n", name, help, name, type);
  }
  void line(const std::string& text) { text_ += text + "\n"; }

  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

}  // namespace

void HttpCounters::count(int status) {
  const std::lock_guard lock(mutex_);
  ++by_status_[status];
}

std::map<int, int64_t> HttpCounters::by_status() const {
  const std::lock_guard lock(mutex_);
  return by_status_;
}

OrderedJson health_document(const ChatService& service) {
  const SchedulerStats stats = service.stats();
  return {{"status", "ok"}, {"model", service.model_name()}, {"running", stats.running}, {"waiting", stats.waiting}};
}

OrderedJson model_document(const ChatService& service, const std::string& name, int64_t created) {
  const int64_t context = service.context();
  return {{"id", name},
          {"object", "model"},
          {"created", created},
          {"owned_by", "lily"},
          {"context_length", context},
          {"context_window", context},
          {"max_model_len", context},
          {"meta", {{"n_ctx", context}}}};
}

OrderedJson models_document(const ChatService& service, const std::vector<std::string>& aliases, int64_t created) {
  OrderedJson list = OrderedJson::array({model_document(service, service.model_name(), created)});
  for (const std::string& alias : aliases) list.push_back(model_document(service, alias, created));
  return {{"object", "list"}, {"data", std::move(list)}};
}

std::string metrics_text(const ChatService& service, const HttpCounters& counters) {
  const SchedulerStats stats = service.stats();
  const auto number = [](auto value) { return static_cast<double>(value); };
  MetricsText text;
  text.gauge("requests_running", "Replies that are being computed.", number(stats.running));
  text.gauge("requests_waiting", "Requests in the queue.", number(stats.waiting));
  text.counter("requests_total", "Requests that the scheduler took.", number(stats.requests));
  text.counter("requests_finished_total", "Replies that came to their end.", number(stats.finished));
  text.counter("requests_cancelled_total", "Replies that were given up, as a rule since the client had gone.",
               number(stats.cancelled));
  text.counter("requests_failed_total", "Replies that ended in an error.", number(stats.failed));
  text.counter("requests_rejected_total", "Requests for which the queue had no room.", number(stats.rejected));
  text.counter("prompt_tokens_total", "Tokens of all prompts.", number(stats.prompt_tokens));
  text.counter("prompt_tokens_reused_total", "Of these, tokens whose state was there already.",
               number(stats.reused_tokens));
  text.counter("prompt_tokens_prefilled_total", "Of these, tokens that were computed.", number(stats.prefilled_tokens));
  text.counter("decoded_tokens_total", "Tokens of replies that decode steps computed.", number(stats.decoded_tokens));
  text.counter("decode_steps_total", "Decode steps, each of one token for every running reply.",
               number(stats.decode_steps));
  text.counter("prefill_seconds_total", "Time spent in prefill.", stats.prefill_seconds);
  text.counter("decode_seconds_total", "Time spent in decode.", stats.decode_seconds);
  text.gauge("cache_bytes", "Memory that states and snapshots hold.", number(stats.cache_bytes));
  text.gauge("cache_budget_bytes", "Memory that they may hold.", number(stats.cache_budget));
  text.gauge("cache_snapshots", "Snapshots that prompts can go on from.", number(stats.snapshots));
  text.gauge("store_bytes", "Files of conversations on disk.", number(stats.store_bytes));
  text.gauge("context_tokens", "Tokens of one request, prompt and reply.", number(service.context()));
  text.head("http_responses_total", "counter", "Answered HTTP requests, by status.");
  for (const auto& [status, count] : counters.by_status()) {
    text.line(fmt::format("lily_http_responses_total{{code=\"{}\"}} {}", status, count));
  }
  return text.take();
}

}  // namespace lily::server
