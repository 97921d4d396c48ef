// Byte pair encoding: the bytes of one pre-token -> ids.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/tokenizer_json.h"
#include "text/vocabulary.h"

namespace lily {

class Bpe {
 public:
  static Result<Bpe> make(const TokenizerJson& json, const Vocabulary& vocabulary, const std::string& where);

  // Buffers that live longer than one word.
  struct Scratch {
    struct Symbol {
      int32_t id;  // -1: merged into the one before
      uint32_t previous, next;
    };
    std::vector<Symbol> symbols;
    std::vector<uint64_t> queue;  // rank << 32 | place of the left symbol
  };

  // Applies the merge of lowest rank, the leftmost of equals, until none is left: O(n log n).
  void encode(std::string_view word, std::vector<int32_t>& ids, Scratch& scratch) const;

 private:
  struct Merge {
    int32_t left, right, result;
  };
  struct Slot {
    uint64_t pair;
    uint32_t rank;
  };
  static constexpr uint32_t no_rank = ~uint32_t{0};

  Result<Merge> resolve(const TokenizerJson& json, size_t rank, const Vocabulary& vocabulary,
                        const std::string& where) const;
  void add(const Merge& merge);
  Slot& slot_of(uint64_t pair);
  uint32_t rank_of(int32_t left, int32_t right) const;  // no_rank: they do not merge
  void queue_pair(Scratch& scratch, uint32_t left) const;
  void merge_all(Scratch& scratch) const;

  std::array<int32_t, 256> byte_ids_{};
  std::vector<Merge> merges_;  // [rank]
  std::vector<Slot> slots_;    // open addressing over pairs, a power of two, at most half full
};

}  // namespace lily
