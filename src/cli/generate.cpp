// lily generate: one prompt, one reply; for scripts and for tests.
#include "runtime/generate.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/chat_view.h"
#include "cli/commands.h"
#include "cli/engine.h"
#include "cli/interrupt.h"
#include "cli/options.h"
#include "text/chat.h"

namespace lily::cli {
namespace {

struct Settings {
  ModelOptions model;
  SamplingOptions sampling;
  std::optional<std::string> prompt;
  std::vector<std::string> token_files;
  std::string system;
  bool chat = false;
  bool no_think = false;
  std::optional<int64_t> max_tokens;
  std::vector<std::string> stops;
  std::string format;  // empty: text where there is a tokenizer, else ids
};

enum class Format { text, ids, json };

Result<std::vector<int32_t>> encode_prompt(const Settings& settings, const Tokenizer& tokenizer) {
  // A raw prompt is its author's template: the added tokens that it spells are meant.
  if (!settings.chat) return tokenizer.encode(*settings.prompt, true);
  std::vector<Message> messages;
  if (!settings.system.empty()) messages.push_back({.role = Role::system, .content = settings.system});
  messages.push_back({.role = Role::user, .content = *settings.prompt});
  LILY_TRY(const std::vector<TextPiece> pieces, render_chat(messages, {.enable_thinking = !settings.no_think}));
  return tokenizer.encode(pieces);
}

Result<std::vector<std::vector<int32_t>>> read_prompts(const Settings& settings, const Engine& engine) {
  std::vector<std::vector<int32_t>> prompts;
  for (const std::string& file : settings.token_files) {
    LILY_TRY(std::vector<int32_t> ids, read_token_file(file));
    prompts.push_back(std::move(ids));
  }
  if (settings.prompt) {
    LILY_TRY(std::vector<int32_t> ids, encode_prompt(settings, *engine.tokenizer));
    prompts.push_back(std::move(ids));
  }
  return prompts;
}

// Content on stdout as it comes; reasoning dim on a terminal's stderr, so that stdout holds the answer alone.
void print_text(const ReplyEvent& event) {
  if (event.kind == ReplyEvent::Kind::content) {
    std::fwrite(event.text.data(), 1, event.text.size(), stdout);
    std::fflush(stdout);
  } else if (::isatty(STDERR_FILENO) == 1) {
    std::fprintf(stderr, "\033[2m%s\033[0m", event.text.c_str());
  }
}

void print_json(const std::vector<int32_t>& prompt, const Reply& reply, uint64_t seed) {
  const nlohmann::ordered_json line = {
      {"prompt_ids", prompt},
      {"ids", reply.tokens},
      {"text", reply.message.content},
      {"reasoning", reply.message.reasoning},
      {"finish", name_of(reply.finish)},
      {"seed", seed},
      {"reused_tokens", reply.reused_tokens},
      {"prefill_tokens", reply.prefilled_tokens},
      {"prefill_seconds", reply.prefill_seconds},
      {"prefill_tokens_per_second", reply.prefill_rate()},
      {"decode_tokens", reply.decoded_tokens},
      {"decode_seconds", reply.decode_seconds},
      {"decode_tokens_per_second", reply.decode_rate()},
  };
  std::puts(line.dump().c_str());
}

GenerateOptions make_options(const Settings& settings, const Engine& engine, const SamplingParams& sampling) {
  GenerateOptions options;
  options.reply.sampling = sampling;
  options.reply.max_tokens = settings.max_tokens;
  options.reply.splitter.stops = settings.stops;
  options.reply.end_tokens = engine.config().eos_token_ids;
  options.sync.chunk = engine.chunk;
  return options;
}

Result<Finish> run_prompt(const std::vector<int32_t>& prompt, Format format, Session& session, const Engine& engine,
                          GenerateOptions options) {
  options.sync.progress = prefill_bar();
  if (format == Format::text) options.on_event = print_text;
  LILY_TRY(const Reply reply, generate(session, engine.tokenizer ? &*engine.tokenizer : nullptr, prompt, options));
  if (format == Format::text) std::puts("");
  if (format == Format::ids) std::puts(fmt::format("{}", fmt::join(reply.tokens, " ")).c_str());
  if (format == Format::json) print_json(prompt, reply, options.reply.sampling.seed);
  std::fflush(stdout);
  return reply.finish;
}

Format format_of(const Settings& settings, const Engine& engine) {
  if (settings.format == "json") return Format::json;
  if (settings.format == "ids" || !engine.tokenizer) return Format::ids;
  return Format::text;
}

// Room for the longest prompt and what was asked for; without -n, for all that the context allows.
int64_t capacity_for(const Settings& settings, const std::vector<std::vector<int32_t>>& prompts) {
  if (settings.model.context > 0 || !settings.max_tokens) return settings.model.context;
  int64_t longest = 0;
  for (const auto& prompt : prompts) longest = std::max(longest, static_cast<int64_t>(prompt.size()));
  return longest + std::min(*settings.max_tokens, int64_t{1} << 40);
}

Result<int> run(const Settings& settings) {
  if (settings.prompt.has_value() == !settings.token_files.empty()) {
    return Error{.where = "generate", .what = "needs a prompt", .expected = "either --prompt or --tokens"};
  }
  const bool needed = settings.prompt || !settings.stops.empty() || settings.format == "text";
  LILY_TRY(Engine engine, load_engine(settings.model, needed ? NeedTokenizer::yes : NeedTokenizer::if_present));
  if (settings.chat) LILY_CHECK(check_chat(engine));
  LILY_TRY(const SamplingParams sampling, resolve(settings.sampling, engine.sampling));
  LILY_TRY(const auto prompts, read_prompts(settings, engine));
  LILY_TRY(Session session, Session::create(*engine.backend, capacity_for(settings, prompts)));
  const Interrupt interrupt(Interrupt::Catch::once);
  GenerateOptions options = make_options(settings, engine, sampling);
  options.sync.cancel = interrupt.flag();
  for (const std::vector<int32_t>& prompt : prompts) {
    LILY_TRY(const Finish finish, run_prompt(prompt, format_of(settings, engine), session, engine, options));
    if (finish == Finish::cancelled) return 130;  // as a shell reports a program ended by Ctrl-C
  }
  return 0;
}

}  // namespace

Command generate_command(CLI::App& app) {
  const auto settings = std::make_shared<Settings>();
  CLI::App* command = app.add_subcommand("generate", "Continue a prompt");
  add_model_options(*command, settings->model);
  add_context_option(*command, settings->model);
  command->add_option("--prompt", settings->prompt, "Text to continue; spelled-out special tokens are meant as such");
  CLI::Option* tokens =
      command->add_option("--tokens", settings->token_files, "File of token ids to continue; may be given again")
          ->type_name("FILE");
  CLI::Option* chat =
      command->add_flag("--chat", settings->chat, "The prompt is a user's message: apply the chat template")
          ->excludes(tokens);
  command->add_option("--system", settings->system, "System message, with --chat")->needs(chat);
  command->add_flag("--no-think", settings->no_think, "No thinking, with --chat")->needs(chat);
  command->add_option("-n,--max-tokens", settings->max_tokens, "Tokens at most; unset: to the end of the context")
      ->check(whole_number());
  command->add_option("--stop", settings->stops, "Ends the reply where this text begins; may be given again")
      ->type_name("TEXT")
      ->allow_extra_args(false);
  command->add_option("--format", settings->format, "text, ids (the generated ones) or json (a line for every prompt)")
      ->check(CLI::IsMember({"text", "ids", "json"}));
  add_sampling_options(*command, settings->sampling);
  return {command, [settings] {
            const Result<int> code = run(*settings);
            return code ? *code : report(code.error());
          }};
}

}  // namespace lily::cli
