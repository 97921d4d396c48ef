#include "hub/snapshot.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "hub/words.h"

namespace lily::hub {
namespace {

using nlohmann::json;

constexpr int64_t largest_file = int64_t{1} << 45;
constexpr size_t most_files = 10'000;  // with largest_file: no sum of sizes overflows

bool is_plain(std::string_view text, std::string_view also) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [also](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           also.find(c) != std::string_view::npos;
  });
}

bool is_hex(std::string_view text, size_t digits) {
  return text.size() == digits && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// Could writing to this name touch anything outside the destination folder, or fool the eye?
bool is_dangerous(std::string_view name) {
  if (name.empty() || name.size() > 512 || name.front() == '/') return true;
  for (const char c : name) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f || c == '\\') return true;
  }
  while (true) {
    const size_t slash = name.find('/');
    const std::string_view part = name.substr(0, slash);
    if (part.empty() || part == "." || part == "..") return true;
    if (slash == std::string_view::npos) return false;
    name.remove_prefix(slash + 1);
  }
}

bool is_weights(std::string_view name) { return name.ends_with(".safetensors"); }

bool is_read_by_engine(std::string_view name) {
  return name == "config.json" || name == "generation_config.json" || name == "chat_template.jinja" ||
         (name.starts_with("tokenizer") && name.ends_with(".json")) || is_weights(name) ||
         name.ends_with(".safetensors.index.json");
}

bool is_notice(std::string_view name) {
  return name == "README.md" || name.starts_with("LICENSE") || name.starts_with("LICENCE") ||
         name.starts_with("NOTICE");
}

Error bad_listing(const std::string& where, std::string what, std::string got = "") {
  return {.where = where, .what = "the server's file list: " + std::move(what), .got = printable(got), .exit_code = 1};
}

Result<RemoteFile> parse_file(const std::string& where, const std::string& name, const json& entry) {
  RemoteFile file{.name = name, .optional = is_notice(name)};
  const json& size = entry.value("size", json());
  if (!size.is_number_integer() || size < 0 || size > largest_file)
    return bad_listing(where, name + " has no valid size");
  file.size = size.get<int64_t>();
  const json lfs = entry.value("lfs", json());
  const bool large = lfs.is_object();
  const json& hex = large ? lfs.value("sha256", json()) : entry.value("blobId", json());
  if (!hex.is_string() || !is_hex(hex.get<std::string>(), large ? 64 : 40)) {
    return bad_listing(where, name + " has no checksum");
  }
  file.digest = {large ? Digest::Kind::sha256 : Digest::Kind::git_blob, hex.get<std::string>()};
  return file;
}

// Some repositories hold the weights twice; the Hugging Face form is named model*.
void drop_second_copies(std::vector<RemoteFile>& files) {
  const auto other = [](const RemoteFile& file) { return is_weights(file.name) && !file.name.starts_with("model"); };
  const bool has_model = std::any_of(files.begin(), files.end(),
                                     [&](const RemoteFile& file) { return is_weights(file.name) && !other(file); });
  if (has_model) std::erase_if(files, other);
}

Result<void> check_complete(const std::string& where, const Snapshot& snapshot) {
  const bool weights = std::any_of(snapshot.files.begin(), snapshot.files.end(),
                                   [](const RemoteFile& file) { return is_weights(file.name); });
  if (weights && snapshot.find("config.json")) return {};
  return Error{.where = where,
               .what = "not a model that Lily can use",
               .expected = "config.json and *.safetensors in the repository",
               .got = weights ? "no config.json" : "no *.safetensors"};
}

Result<Snapshot> read_listing(const std::string& where, const json& listing) {
  if (!listing.is_object()) return bad_listing(where, "not JSON, or cut short");
  Snapshot snapshot;
  const json commit = listing.value("sha", json());
  if (!commit.is_string() || !is_hex(commit.get<std::string>(), 40)) return bad_listing(where, "no commit id");
  snapshot.commit = commit.get<std::string>();
  std::set<std::string> names;
  const json siblings = listing.value("siblings", json());
  if (!siblings.is_array()) return bad_listing(where, "no files");
  for (const json& entry : siblings) {
    const json name = entry.is_object() ? entry.value("rfilename", json()) : json();
    if (!name.is_string()) return bad_listing(where, "a file without a name");
    const std::string text = name.get<std::string>();
    if (is_dangerous(text)) return bad_listing(where, "a file name that is not safe", text);
    if (text.front() == '.' || !is_plain(text, "._-") || !(is_read_by_engine(text) || is_notice(text))) continue;
    if (!names.insert(text).second) return bad_listing(where, "a file twice", text);
    if (names.size() > most_files) return bad_listing(where, "too many files");
    LILY_TRY(RemoteFile file, parse_file(where, text, entry));
    snapshot.files.push_back(std::move(file));
  }
  drop_second_copies(snapshot.files);
  LILY_CHECK(check_complete(where, snapshot));
  return snapshot;
}

}  // namespace

Result<Repository> parse_repository(const std::string& text) {
  std::string_view rest = text;
  constexpr std::string_view page = "https://huggingface.co/";
  if (rest.starts_with(page)) rest.remove_prefix(page.size());
  Repository repository;
  if (const size_t at = rest.find('@'); at != std::string_view::npos) {
    repository.revision = rest.substr(at + 1);
    rest = rest.substr(0, at);
  }
  if (rest.ends_with('/')) rest.remove_suffix(1);
  const size_t slash = rest.find('/');
  if (slash != std::string_view::npos) {
    repository.organisation = rest.substr(0, slash);
    repository.name = rest.substr(slash + 1);
  }
  const auto good = [](const std::string& part) { return is_plain(part, "._-") && part.front() != '.'; };
  if (good(repository.organisation) && good(repository.name) && is_plain(repository.revision, "._-/") &&
      !is_dangerous(repository.revision)) {
    return repository;
  }
  return Error{.where = printable(text),
               .what = "not the name of a Hugging Face repository",
               .expected = "ORGANISATION/NAME[@REVISION], such as mlx-community/Qwen3.6-35B-A3B-4bit"};
}

int64_t Snapshot::bytes() const {
  int64_t total = 0;
  for (const RemoteFile& file : files) total += file.size;
  return total;
}

const RemoteFile* Snapshot::find(const std::string& name) const {
  const auto found =
      std::find_if(files.begin(), files.end(), [&](const RemoteFile& file) { return file.name == name; });
  return found == files.end() ? nullptr : &*found;
}

Result<Snapshot> parse_snapshot(const std::string& where, const std::string& text) {
  try {
    return read_listing(where, json::parse(text, nullptr, /*allow_exceptions=*/false));
  } catch (const json::exception& error) {
    return bad_listing(where, "not as expected", error.what());
  }
}

}  // namespace lily::hub
