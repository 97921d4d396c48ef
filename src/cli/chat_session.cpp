#include "cli/chat_session.h"

#include <fmt/format.h>

#include <utility>

namespace lily::cli {
namespace {

// 262144 -> "262,144"
std::string grouped(int64_t number) {
  std::string digits = std::to_string(number);
  for (auto at = static_cast<int64_t>(digits.size()) - 3; at > 0; at -= 3) digits.insert(static_cast<size_t>(at), ",");
  return digits;
}

std::string parameters_text(int64_t count) {
  const auto value = static_cast<double>(count);
  return count >= 1'000'000'000 ? fmt::format("{:.1f} B", value / 1e9) : fmt::format("{:.1f} M", value / 1e6);
}

std::string sampling_text(const SamplingParams& params) {
  if (params.temperature == 0) return "greedy";
  return fmt::format("temperature {:.3g}, top-k {}, top-p {:.3g}, min-p {:.3g}, seed {}", params.temperature,
                     params.top_k, params.top_p, params.min_p, params.seed);
}

}  // namespace

Result<ChatSession> ChatSession::create(Engine& engine, const ChatSettings& settings, ChatView& view,
                                        Interrupt& interrupt) {
  LILY_TRY(const SamplingParams sampling, resolve(settings.sampling, engine.sampling));
  LILY_TRY(Session session, Session::create(*engine.backend, settings.model.context));
  ChatSession chat(engine, std::move(session), view, interrupt);
  chat.sampling_ = sampling;
  chat.chunk_ = engine.chunk;
  chat.thinking_ = !settings.no_think;
  LILY_CHECK(chat.conversation_.set_system(settings.system));
  return chat;
}

ChatSession::ChatSession(Engine& engine, Session session, ChatView& view, Interrupt& interrupt)
    : engine_(engine),
      session_(std::move(session)),
      conversation_(*engine.tokenizer),
      view_(view),
      interrupt_(interrupt) {}

void ChatSession::welcome() {
  view_.note(fmt::format("Lily · {} · {} parameters · context {} · {}", engine_.name,
                         parameters_text(engine_.parameters), grouped(session_.capacity()),
                         engine_.backend->describe()));
  view_.note("/help lists the commands, Ctrl-C stops a reply, Ctrl-D quits");
}

Result<void> ChatSession::handle(const std::string& input) {
  if (!input.starts_with('/')) return answer(input);
  if (input.starts_with("//")) return answer(input.substr(1));
  const size_t space = std::min(input.find_first_of(" \t\n"), input.size());
  const size_t argument = std::min(input.find_first_not_of(" \t\n", space), input.size());
  return command(input.substr(1, space - 1), input.substr(argument));
}

Result<void> ChatSession::answer(const std::string& message) {
  LILY_CHECK(conversation_.ask(message, thinking_));
  interrupt_.take();  // one that came too late for the last reply
  GenerateOptions options;
  options.reply.sampling = sampling_;
  options.reply.sampling.seed += conversation_.turns();  // turns differ, a repeated chat does not
  options.reply.end_tokens = engine_.config().eos_token_ids;
  options.sync.chunk = chunk_;
  options.sync.boundaries = conversation_.message_ends();
  options.sync.progress = prefill_bar();
  options.sync.cancel = interrupt_.flag();
  options.on_event = [this](const ReplyEvent& event) { view_.show(event); };
  const Result<Reply> reply = generate(session_, &*engine_.tokenizer, conversation_.tokens(), options);
  options.sync.progress = {};  // takes the bar off the screen if reading was stopped
  view_.end_reply(reply.ok());
  const bool answered = reply && (!reply->tokens.empty() || reply->finish != Finish::cancelled);
  answered ? conversation_.answer(*reply) : conversation_.take_back();
  if (!reply) return reply.error();
  interrupt_.take();
  note_reply(*reply);
  return {};
}

void ChatSession::note_reply(const Reply& reply) {
  finish_ = reply.finish;
  total_.prefilled_tokens += reply.prefilled_tokens;
  total_.reused_tokens += reply.reused_tokens;
  total_.decoded_tokens += reply.decoded_tokens;
  total_.prefill_seconds += reply.prefill_seconds;
  total_.decode_seconds += reply.decode_seconds;
  const bool stopped = reply.finish == Finish::cancelled;
  if (stopped && reply.tokens.empty()) return view_.note("stopped; the message is taken back");
  view_.note(fmt::format("{}{} tokens · {:.1f} tok/s", stopped ? "stopped · " : "",
                         grouped(static_cast<int64_t>(reply.tokens.size())), reply.decode_rate()));
  if (reply.finish == Finish::context_full) {
    view_.note(fmt::format("The context of {} tokens is full: /reset starts a new conversation",
                           grouped(session_.capacity())));
  }
}

Result<void> ChatSession::command(const std::string& name, const std::string& argument) {
  if (name == "help") return help(), Result<void>();
  if (name == "system") return change_system(argument);
  if (name == "think" || name == "nothink") {
    thinking_ = name == "think";
    return view_.note(thinking_ ? "Thinking is on" : "Thinking is off"), Result<void>();
  }
  if (name == "reset") return reset(), Result<void>();
  if (name == "stats") return stats(), Result<void>();
  if (name == "quit" || name == "exit") return quit_ = true, Result<void>();
  return Error{.where = "/" + name, .what = "no such command; /help lists them, // starts a message with a slash"};
}

Result<void> ChatSession::change_system(const std::string& text) {
  if (text.empty()) {
    const std::string& now = conversation_.system();
    return view_.note(now.empty() ? "No system message" : "System message: " + now), Result<void>();
  }
  LILY_CHECK(conversation_.set_system(text == "-" ? "" : text));
  view_.note(text == "-" ? "System message removed" : "System message set");
  return {};
}

void ChatSession::reset() {
  conversation_.clear();
  view_.note("A new conversation");
}

void ChatSession::help() {
  view_.note(
      "/think, /nothink   think before answering, or answer at once\n"
      "/system [TEXT]     show or set the system message; - removes it\n"
      "/reset             start a new conversation\n"
      "/stats             show counts and speeds\n"
      "/quit              leave (so does Ctrl-D)\n"
      "//text             a message that starts with a slash\n"
      "Ctrl-C             stop a reply, or give up a line\n"
      "A line that ends in \\ goes on in the next one; pasted line breaks are kept.");
}

void ChatSession::stats() {
  view_.note(fmt::format("Context: {} of {} tokens in {} turns, thinking {}",
                         grouped(static_cast<int64_t>(session_.tokens().size())), grouped(session_.capacity()),
                         conversation_.turns(), thinking_ ? "on" : "off"));
  view_.note(fmt::format("Prompts: {} tokens read at {:.1f} tok/s, {} reused", grouped(total_.prefilled_tokens),
                         total_.prefill_rate(), grouped(total_.reused_tokens)));
  view_.note(fmt::format("Replies: {} tokens at {:.1f} tok/s", grouped(total_.decoded_tokens), total_.decode_rate()));
  view_.note(fmt::format("Model: {}, {}, {}", engine_.name, engine_.backend->describe(), sampling_text(sampling_)));
}

}  // namespace lily::cli
