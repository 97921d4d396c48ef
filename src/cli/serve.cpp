// lily serve
#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/mapped_file.h"
#include "base/paths.h"
#include "cli/commands.h"
#include "cli/engine.h"
#include "cli/interrupt.h"
#include "model/fingerprint.h"
#include "runtime/chat_service.h"
#include "server/http_server.h"

namespace lily::cli {
namespace {

constexpr size_t spare_connections = 32;  // beside those whose requests run or wait: pages, health checks, slow clients

struct ServeSettings {
  ModelOptions model;
  server::HttpOptions http;
  SchedulerOptions scheduler;
  std::optional<std::string> api_key, api_key_file, cache_directory;
  size_t store_bytes = StoreOptions().budget;
  bool no_cache_directory = false;
  bool quiet = false;
};

std::string trimmed(const std::string& text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  return first == text.npos ? "" : text.substr(first, text.find_last_not_of(" \t\r\n") + 1 - first);
}

// The option, the file, the environment.
Result<std::string> find_key(const ServeSettings& settings) {
  const auto checked = [](const std::string& key, const char* where) -> Result<std::string> {
    if (!key.empty() && key.find_first_of(" \t\r\n") == key.npos) return key;
    return Error{.where = where, .what = "no key", .expected = "one word"};
  };
  if (settings.api_key) return checked(*settings.api_key, "--api-key");
  if (settings.api_key_file) {
    LILY_TRY(const std::string text, read_input(*settings.api_key_file));
    return checked(trimmed(text), "--api-key-file");
  }
  const std::string key = environment("LILY_API_KEY");
  return key.empty() ? Result<std::string>(key) : checked(key, "LILY_API_KEY");
}

void print_line(const std::string& line) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  std::fprintf(stderr, "%s\n", line.c_str());
}

// What was computed belongs to these weights and to the way in which they were used.
StoreOptions store_of(const ServeSettings& settings, const Engine& engine) {
  StoreOptions store;
  if (settings.no_cache_directory) return store;
  store.directory = settings.cache_directory.value_or(data_directory() + "/sessions");
  store.budget = settings.store_bytes;
  store.warn = [](const std::string& line) { print_line("lily: " + line); };
  store.model = fmt::format("{} {}{}", fingerprint(*engine.checkpoint), settings.model.backend,
                            settings.model.exact ? " exact" : "");
  return store;
}

std::string url_of(const std::string& host, int port) {
  return host.find(':') == host.npos ? fmt::format("http://{}:{}", host, port)
                                     : fmt::format("http://[{}]:{}", host, port);
}

// Clients see the window in /v1/models; whoever starts the server should hear of it when it is not the model's.
void warn_of_small_context(const ServeSettings& settings, int64_t context, int64_t most) {
  if (settings.model.context > 0 || context >= most) return;
  print_line(fmt::format("lily: contexts of {} tokens, not the model's {}: more would not fit the cache (--cache-size)",
                         context, most));
}

Result<void> serve(ServeSettings settings) {
  LILY_TRY(settings.http.access.key, find_key(settings));
  LILY_CHECK(server::Access::create(settings.http.access));  // before the model is loaded
  Interrupt interrupt(Interrupt::Catch::once, Interrupt::Signals::interrupt_and_terminate);
  LILY_TRY(Engine engine, load_engine(settings.model, NeedTokenizer::yes));
  LILY_CHECK(check_chat(engine));
  settings.scheduler.context = settings.model.context;
  settings.scheduler.chunk = engine.chunk;
  LILY_TRY(const std::unique_ptr<ChatService> service,
           make_chat_service({.model_name = engine.name,
                              .backend = engine.backend.get(),
                              .tokenizer = &*engine.tokenizer,
                              .sampling = engine.sampling},
                             settings.scheduler, store_of(settings, engine)));
  warn_of_small_context(settings, service->context(), engine.backend->config().max_position_embeddings);
  settings.http.routes = server::all_routes();
  settings.http.assets = server::web_assets();
  settings.http.connections =
      static_cast<size_t>(settings.scheduler.slots + settings.scheduler.queue_limit) + spare_connections;
  if (!settings.quiet) settings.http.log = print_line;
  const std::string host = settings.http.access.address;
  LILY_TRY(const std::unique_ptr<server::HttpServer> http,
           server::HttpServer::create(*service, std::move(settings.http)));
  std::printf("Lily · %s · %s (API at /v1, page at /)\n", engine.name.c_str(), url_of(host, http->port()).c_str());
  std::fflush(stdout);
  return http->serve(*interrupt.flag());
}

void add_http_options(CLI::App& command, ServeSettings& settings) {
  server::HttpOptions& http = settings.http;
  command.add_option("--host", http.access.address, "Address to listen on; others than this machine's own need a key")
      ->capture_default_str();
  command.add_option("--port", http.port, "Port; 0: any free one")->check(CLI::Range(0, 65535))->capture_default_str();
  auto* key = command.add_option("--api-key", settings.api_key, "Clients must send this key (else $LILY_API_KEY)");
  command.add_option("--api-key-file", settings.api_key_file, "The same from a file, which other users cannot see")
      ->excludes(key);
  command.add_option("--allow-host", http.access.hosts, "One more name by which clients reach the server; repeatable");
  command.add_option("--cors-origin", http.access.origins,
                     "Pages of this origin may call, such as https://example.org; *: all pages; repeatable");
  command.add_option("--alias", http.aliases, "One more name of the model; repeatable");
  command.add_flag("--quiet", settings.quiet, "No line for each request");
}

// Of "-1" a number without a sign would become 2^64 - 1.
CLI::Validator unsigned_size() {
  return CLI::Validator([](std::string& text) { return text.starts_with('-') ? "expected a size, got " + text : ""; },
                        "");
}

void add_scheduler_options(CLI::App& command, ServeSettings& settings) {
  SchedulerOptions& scheduler = settings.scheduler;
  command.add_option("--slots", scheduler.slots, "Replies computed at the same time")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  command.add_option("--queue", scheduler.queue_limit, "Requests that may wait beside them")
      ->check(CLI::Range(0, 4096))
      ->capture_default_str();
  command.add_option("--cache-size", scheduler.cache_bytes, "Memory for conversations, such as 8G")
      ->transform(CLI::AsSizeValue(false))
      ->transform(unsigned_size())  // comes first
      ->default_str("4G");
  auto* directory =
      command.add_option("--cache-dir", settings.cache_directory, "Where conversations outlive the program")
          ->type_name("DIR");
  command.add_option("--cache-dir-size", settings.store_bytes, "Bytes of that folder, such as 16G")
      ->transform(CLI::AsSizeValue(false))
      ->transform(unsigned_size())  // comes first
      ->default_str("16G");
  command.add_flag("--no-cache-dir", settings.no_cache_directory, "They do not")->excludes(directory);
}

}  // namespace

Command serve_command(CLI::App& app) {
  const auto settings = std::make_shared<ServeSettings>();
  CLI::App* command = app.add_subcommand("serve", "Answer requests of the OpenAI and Anthropic APIs");
  add_model_options(*command, settings->model);
  add_context_option(*command, settings->model);
  add_http_options(*command, *settings);
  add_scheduler_options(*command, *settings);
  return {command, [settings] {
            const Result<void> served = serve(*settings);
            return served ? 0 : report(served.error());
          }};
}

}  // namespace lily::cli
