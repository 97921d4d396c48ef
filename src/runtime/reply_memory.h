// How past replies were sampled. A client sends a reply back as text, often without its reasoning, and the same text can be
// other tokens; shown exactly as it was, the prefix stays the one that was computed.
#pragma once

#include <cstdint>
#include <list>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "text/chat.h"

namespace lily {

// Safe from any thread.
class ReplyMemory {
 public:
  // `path`: where replies outlive the process, or empty. Texts are kept as hashes only. What cannot be read in the file
  // is left out. `limit`: bytes of all replies, the oldest go.
  explicit ReplyMemory(std::string path = "", size_t limit = size_t{64} << 20);
  ~ReplyMemory();
  ReplyMemory(const ReplyMemory&) = delete;
  ReplyMemory& operator=(const ReplyMemory&) = delete;

  // `before`: all tokens before the turn. `turn`: all of the turn, from <|im_start|> to the end of its line.
  void remember(std::span<const int32_t> before, const Message& reply, std::vector<int32_t> turn);

  // The turn of a reply that followed `before`, if it is this one: the same content and calls, white space around aside, and
  // no other reasoning.
  std::optional<std::vector<int32_t>> recall(std::span<const int32_t> before, const Message& reply) const;

 private:
  struct Entry {
    std::string key;
    uint64_t reasoning;  // its hash
    std::vector<int32_t> turn;
  };

  void read();
  void write_anew();
  void put(Entry entry);
  void append_to_file(const Entry& entry);

  std::string path_;
  size_t limit_;
  mutable std::mutex mutex_;
  std::list<Entry> entries_;  // oldest first
  std::unordered_map<std::string, std::list<Entry>::iterator> by_key_;
  size_t bytes_ = 0;
  int file_ = -1;
  size_t file_bytes_ = 0;
};

}  // namespace lily
