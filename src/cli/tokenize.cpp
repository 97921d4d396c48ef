// lily tokenize: text -> ids, and back.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <iostream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/mapped_file.h"
#include "cli/commands.h"
#include "cli/model_dir.h"
#include "cli/options.h"
#include "text/token_ids.h"
#include "text/tokenizer.h"
#include "text/utf8.h"

namespace lily::cli {
namespace {

struct TokenizeOptions {
  std::string model;
  std::optional<std::string> text;
  std::optional<std::string> file;
  bool trusted = false;
  bool decode = false;
  std::string format = "ids";
};

Result<std::string> read_source(const TokenizeOptions& options) {
  if (options.text) return *options.text;
  if (options.file) return read_input(*options.file);
  return std::string(std::istreambuf_iterator<char>(std::cin), {});
}

Result<std::vector<int32_t>> read_ids(const std::string& input, const Tokenizer& tokenizer) {
  LILY_TRY(std::vector<int32_t> ids, parse_token_ids(input, "--decode"));
  for (const int32_t id : ids) {
    if (id >= tokenizer.size()) {
      return Error{"--decode", "unknown token id", fmt::format("below {}", tokenizer.size()), std::to_string(id)};
    }
  }
  return ids;
}

std::string hex(std::string_view bytes) {
  constexpr const char* digits = "0123456789abcdef";
  std::string out;
  for (const char c : bytes) {
    out += digits[static_cast<uint8_t>(c) >> 4];
    out += digits[static_cast<uint8_t>(c) & 15];
  }
  return out;
}

// [{"id", "piece"}, ...]; a piece that is no whole text also has its "bytes" in hexadecimal.
std::string to_json(const std::vector<int32_t>& ids, const Tokenizer& tokenizer) {
  auto list = nlohmann::ordered_json::array();
  for (const int32_t id : ids) {
    const std::string_view piece = tokenizer.bytes_of(id);
    nlohmann::ordered_json entry{{"id", id}, {"piece", std::string(piece)}};
    if (valid_utf8_prefix(piece) != piece.size()) entry["bytes"] = hex(piece);
    list.push_back(std::move(entry));
  }
  return list.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

Result<std::string> tokenize(const TokenizeOptions& options) {
  std::string model = options.model;  // as given, it need hold no more than a tokenizer
  if (model.empty()) {
    LILY_TRY(model, find_model(""));
  }
  LILY_TRY(const Tokenizer tokenizer, Tokenizer::load(model + "/tokenizer.json"));
  LILY_TRY(const std::string input, read_source(options));
  std::vector<int32_t> ids;
  if (options.decode) {
    LILY_TRY(ids, read_ids(input, tokenizer));
  } else {
    ids = tokenizer.encode(input, options.trusted);
  }
  if (options.format == "json") return to_json(ids, tokenizer);
  return options.decode ? tokenizer.decode(ids) : fmt::format("{}\n", fmt::join(ids, " "));
}

}  // namespace

Command tokenize_command(CLI::App& app) {
  auto options = std::make_shared<TokenizeOptions>();
  CLI::App* command = app.add_subcommand("tokenize", "Turn text into token ids, or ids into text");
  command->add_option("-m,--model", options->model, "Model directory");
  auto* text = command->add_option("--text", options->text, "Text; without it, --file or standard input");
  command->add_option("--file", options->file, "File to read")->excludes(text);
  command->add_flag("--trusted", options->trusted, "Added tokens such as <|im_end|> count as such");
  command->add_flag("--decode", options->decode, "The input is token ids");
  command->add_option("--format", options->format, "ids, or json: id and piece of each token")
      ->check(CLI::IsMember({"ids", "json"}));
  return {command, [options] {
            const auto output = tokenize(*options);
            if (!output) return report(output.error());
            std::fwrite(output.value().data(), 1, output.value().size(), stdout);
            return 0;
          }};
}

}  // namespace lily::cli
