// A few words, walked byte by byte as if they were a tree: property names, enum values, tags of a call.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace lily {

class WordList {
 public:
  // The words that agree with the bytes so far: [low, high) of the sorted list, `depth` bytes in.
  struct Cursor {
    uint16_t low = 0, high = 0, depth = 0;
    bool empty() const { return low == high; }
    bool operator==(const Cursor&) const = default;
  };
  static constexpr size_t max_words = 60'000, max_bytes = 60'000;  // of one list, of one word

  WordList() = default;
  // Of equal words the first stays. A word's value is its index in `words`.
  explicit WordList(const std::vector<std::string>& words) {
    for (const std::string& word : words) sorted_.push_back({word, static_cast<uint16_t>(sorted_.size())});
    std::stable_sort(sorted_.begin(), sorted_.end(), [](auto& a, auto& b) { return a.first < b.first; });
    const auto equal = [](auto& a, auto& b) { return a.first == b.first; };
    sorted_.erase(std::unique(sorted_.begin(), sorted_.end(), equal), sorted_.end());
  }

  bool empty() const { return sorted_.empty(); }
  Cursor begin() const { return {0, static_cast<uint16_t>(sorted_.size()), 0}; }

  // One byte on; empty where no word goes on with it.
  Cursor next(Cursor at, uint8_t byte) const {
    const auto byte_of = [&](const Word& w) { return at.depth < w.first.size() ? uint8_t(w.first[at.depth]) : -1; };
    const auto first = sorted_.begin() + at.low, last = sorted_.begin() + at.high;
    const auto low = std::partition_point(first, last, [&](const Word& w) { return byte_of(w) < byte; });
    const auto high = std::partition_point(low, last, [&](const Word& w) { return byte_of(w) <= byte; });
    const auto index = [&](auto i) { return static_cast<uint16_t>(i - sorted_.begin()); };
    return {index(low), index(high), static_cast<uint16_t>(at.depth + 1)};
  }

  // The bytes so far are a whole word, whose value is value(at.low).
  bool whole(Cursor at) const { return !at.empty() && sorted_[at.low].first.size() == at.depth; }
  uint16_t value(size_t index) const { return sorted_[index].second; }

 private:
  using Word = std::pair<std::string, uint16_t>;
  std::vector<Word> sorted_;
};

}  // namespace lily
