#include "runtime/reply_memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <cstring>

#include "base/mapped_file.h"
#include "runtime/snapshot_store.h"
#include "text/chat_parts.h"

namespace lily {
namespace {

constexpr size_t key_size = 64;  // of two hashes in hexadecimal
// Of a record in the file: this, the tokens, and the hash of both.
struct RecordHead {
  char key[key_size];
  uint64_t reasoning;
  uint64_t tokens;
};

size_t bytes_of(size_t tokens) { return sizeof(RecordHead) + tokens * sizeof(int32_t) + sizeof(uint64_t); }

uint64_t hash_of_text(std::string_view text) { return XXH3_64bits(text.data(), text.size()); }

// Content and calls in one text; the order of a call's arguments is the client's affair.
std::string key_of(std::span<const int32_t> before, const Message& reply) {
  nlohmann::json shown = {{"content", std::string(trim(reply.content))}};
  for (const ToolCall& call : reply.tool_calls) shown["calls"].push_back({call.name, nlohmann::json(call.arguments)});
  const std::string text = shown.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  const XXH128_hash_t hash = XXH3_128bits(text.data(), text.size());
  return hash_of(before) + fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

}  // namespace

ReplyMemory::ReplyMemory(std::string path, size_t limit) : path_(std::move(path)), limit_(limit) {
  if (!path_.empty()) read();
}

ReplyMemory::~ReplyMemory() {
  if (file_ >= 0) ::close(file_);
}

void ReplyMemory::remember(std::span<const int32_t> before, const Message& reply, std::vector<int32_t> turn) {
  Entry entry = {key_of(before, reply), hash_of_text(trim(reply.reasoning)), std::move(turn)};
  const std::lock_guard lock(mutex_);
  append_to_file(entry);
  put(std::move(entry));
  if (file_bytes_ > 2 * limit_) write_anew();  // what was replaced or dropped is in there still
}

std::optional<std::vector<int32_t>> ReplyMemory::recall(std::span<const int32_t> before, const Message& reply) const {
  const std::string key = key_of(before, reply);
  const std::lock_guard lock(mutex_);
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) return std::nullopt;
  const Entry& entry = *found->second;
  const std::string_view reasoning = trim(reply.reasoning);
  if (!reasoning.empty() && hash_of_text(reasoning) != entry.reasoning) return std::nullopt;
  return entry.turn;
}

void ReplyMemory::put(Entry entry) {
  if (const auto old = by_key_.find(entry.key); old != by_key_.end()) {
    bytes_ -= bytes_of(old->second->turn.size());
    entries_.erase(old->second);
  }
  bytes_ += bytes_of(entry.turn.size());
  entries_.push_back(std::move(entry));
  by_key_[entries_.back().key] = std::prev(entries_.end());
  while (bytes_ > limit_ && entries_.size() > 1) {
    bytes_ -= bytes_of(entries_.front().turn.size());
    by_key_.erase(entries_.front().key);
    entries_.pop_front();
  }
}

// A record goes out in one write, so that a process which is killed leaves at most one that is cut off.
void ReplyMemory::append_to_file(const Entry& entry) {
  if (file_ < 0) return;
  RecordHead head = {.key = {}, .reasoning = entry.reasoning, .tokens = entry.turn.size()};
  std::memcpy(head.key, entry.key.data(), key_size);
  std::string record(reinterpret_cast<const char*>(&head), sizeof head);
  record.append(reinterpret_cast<const char*>(entry.turn.data()), entry.turn.size() * sizeof(int32_t));
  const uint64_t hash = hash_of_text(record);
  record.append(reinterpret_cast<const char*>(&hash), sizeof hash);
  if (::write(file_, record.data(), record.size()) != static_cast<ssize_t>(record.size())) {
    ::close(file_);  // a full disk: go on without
    file_ = -1;
  }
  file_bytes_ += record.size();
}

// Up to the first record that is not whole.
void ReplyMemory::read() {
  if (const Result<std::string> text = read_file(path_)) {
    std::string_view rest = *text;
    while (rest.size() >= bytes_of(0)) {
      RecordHead head;
      std::memcpy(&head, rest.data(), sizeof head);
      if (head.tokens > rest.size() / sizeof(int32_t) || bytes_of(head.tokens) > rest.size()) break;
      const size_t size = bytes_of(head.tokens) - sizeof(uint64_t);
      uint64_t hash;
      std::memcpy(&hash, rest.data() + size, sizeof hash);
      if (hash != hash_of_text(rest.substr(0, size))) break;
      Entry entry = {std::string(head.key, key_size), head.reasoning, std::vector<int32_t>(head.tokens)};
      std::memcpy(entry.turn.data(), rest.data() + sizeof head, head.tokens * sizeof(int32_t));
      put(std::move(entry));
      rest.remove_prefix(size + sizeof hash);
    }
  }
  write_anew();
}

void ReplyMemory::write_anew() {
  const std::string temporary = path_ + ".part";
  if (file_ >= 0) ::close(file_);
  file_bytes_ = 0;
  file_ = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
  for (const Entry& entry : entries_) append_to_file(entry);
  if (file_ >= 0) ::rename(temporary.c_str(), path_.c_str());
}

}  // namespace lily
