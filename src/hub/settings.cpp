#include "hub/settings.h"

#include <algorithm>

#include "base/mapped_file.h"
#include "base/paths.h"
#include "hub/words.h"

namespace lily::hub {
namespace {

std::string expand_home(const std::string& path) {
  return path.starts_with("~/") ? home_directory() + path.substr(1) : path;
}

std::string hugging_face_home() {
  if (const std::string home = environment("HF_HOME"); !home.empty()) return expand_home(home);
  if (const std::string cache = environment("XDG_CACHE_HOME"); !cache.empty()) return cache + "/huggingface";
  return home_directory() + "/.cache/huggingface";
}

std::string trimmed(const std::string& text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  return first == std::string::npos ? "" : text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

// A token goes into a header line, so nothing in it may end that line.
Result<Token> checked(Token token) {
  if (std::all_of(token.value.begin(), token.value.end(), [](char c) { return c > 0x20 && c < 0x7f; })) return token;
  return Error{.where = token.origin, .what = "not a token", .expected = "one word of letters, digits and signs"};
}

}  // namespace

Result<std::string> endpoint() {
  std::string address = trimmed(environment("HF_ENDPOINT"));
  if (address.empty()) return std::string("https://huggingface.co");
  while (address.ends_with('/')) address.pop_back();
  if (address.starts_with("https://") || address.starts_with("http://")) return address;
  return Error{.where = "HF_ENDPOINT",
               .what = "not the address of a server",
               .expected = "https://… (or http://…, for a mirror of your own)",
               .got = printable(address)};
}

Result<Token> access_token() {
  if (const std::string token = trimmed(environment("HF_TOKEN")); !token.empty()) return checked({token, "HF_TOKEN"});
  const std::string named = environment("HF_TOKEN_PATH");
  const std::string path = named.empty() ? hugging_face_home() + "/token" : expand_home(named);
  const Result<std::string> text = read_file(path);
  if (!text) return Token{};
  return checked({trimmed(*text), path});
}

std::string cache_directory() {
  for (const char* name : {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"}) {
    if (const std::string path = environment(name); !path.empty()) return expand_home(path);
  }
  return hugging_face_home() + "/hub";
}

}  // namespace lily::hub
