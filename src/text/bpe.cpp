#include "text/bpe.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <functional>

namespace lily {
namespace {

constexpr uint64_t pair_key(int32_t left, int32_t right) {
  return uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
}
constexpr uint64_t no_pair = ~uint64_t{0};

}  // namespace

Result<Bpe> Bpe::make(const TokenizerJson& json, const Vocabulary& vocabulary, const std::string& where) {
  Bpe bpe;
  for (size_t byte = 0; byte < 256; ++byte) {
    const char bytes = static_cast<char>(byte);
    const auto id = vocabulary.id_of({&bytes, 1});
    if (!id) return Error{where, "model.vocab: no token for one byte", "all 256", fmt::format("none for {}", byte)};
    if (vocabulary.kind(*id) != Vocabulary::Kind::ordinary) {
      return Error{where, fmt::format("added token {} is a byte of ordinary text", *id), "", ""};
    }
    bpe.byte_ids_[byte] = *id;
  }
  bpe.merges_.reserve(json.merges.size());
  bpe.slots_.assign(std::bit_ceil(2 * json.merges.size() + 1), {no_pair, no_rank});
  for (size_t rank = 0; rank < json.merges.size(); ++rank) {
    LILY_TRY(const Merge merge, bpe.resolve(json, rank, vocabulary, where));
    bpe.add(merge);
  }
  return bpe;
}

Result<Bpe::Merge> Bpe::resolve(const TokenizerJson& json, size_t rank, const Vocabulary& vocabulary,
                                const std::string& where) const {
  const auto& [offset, left_size, right_size] = json.merges[rank];
  const std::string_view all(json.merge_bytes.data() + offset, left_size + right_size);
  int32_t ids[3];
  size_t found = 0;
  for (const std::string_view part : {all.substr(0, left_size), all.substr(left_size), all}) {
    const int32_t guess = found == 2 && rank > 0 ? merges_.back().result + 1 : -1;  // how trainers number them
    const auto id = guess >= 0 && vocabulary.bytes_of(guess) == part ? std::optional(guess) : vocabulary.id_of(part);
    if (!id) return Error{where, fmt::format("model.merges[{}]", rank), "tokens of model.vocab", excerpt(part)};
    ids[found++] = *id;
  }
  const Merge merge{ids[0], ids[1], ids[2]};
  if (vocabulary.kind(merge.result) != Vocabulary::Kind::ordinary) {
    return Error{where, fmt::format("model.merges[{}] makes the added token {}", rank, excerpt(all)),
                 "added tokens come from the template only", ""};
  }
  return merge;
}

void Bpe::add(const Merge& merge) {
  const auto rank = static_cast<uint32_t>(merges_.size());
  merges_.push_back(merge);
  const uint64_t pair = pair_key(merge.left, merge.right);
  slot_of(pair) = {pair, rank};
}

Bpe::Slot& Bpe::slot_of(uint64_t pair) {
  const size_t mask = slots_.size() - 1;
  size_t slot = (pair * 0x9E3779B97F4A7C15u >> 32) & mask;
  while (slots_[slot].pair != no_pair && slots_[slot].pair != pair) slot = (slot + 1) & mask;
  return slots_[slot];
}

uint32_t Bpe::rank_of(int32_t left, int32_t right) const {
  return const_cast<Bpe*>(this)->slot_of(pair_key(left, right)).rank;
}

void Bpe::encode(std::string_view word, std::vector<int32_t>& ids, Scratch& scratch) const {
  const auto size = static_cast<uint32_t>(word.size());
  scratch.symbols.resize(size);
  scratch.queue.clear();
  for (uint32_t i = 0; i < size; ++i) {
    scratch.symbols[i] = {byte_ids_[static_cast<uint8_t>(word[i])], i - 1, i + 1};
  }
  for (uint32_t i = 0; i + 1 < size; ++i) queue_pair(scratch, i);
  merge_all(scratch);
  for (uint32_t i = 0; i < size; i = scratch.symbols[i].next) ids.push_back(scratch.symbols[i].id);
}

// For a symbol with a right neighbour.
void Bpe::queue_pair(Scratch& scratch, uint32_t left) const {
  const auto& symbol = scratch.symbols[left];
  const uint32_t rank = rank_of(symbol.id, scratch.symbols[symbol.next].id);
  if (rank == no_rank) return;
  scratch.queue.push_back(uint64_t{rank} << 32 | left);
  std::push_heap(scratch.queue.begin(), scratch.queue.end(), std::greater<>());
}

void Bpe::merge_all(Scratch& scratch) const {
  auto& [symbols, queue] = scratch;
  const auto size = static_cast<uint32_t>(symbols.size());
  while (!queue.empty()) {
    std::pop_heap(queue.begin(), queue.end(), std::greater<>());
    const Merge& merge = merges_[queue.back() >> 32];
    const auto at = static_cast<uint32_t>(queue.back());
    queue.pop_back();
    auto& left = symbols[at];
    // One of the two may have been merged otherwise since the pair was queued.
    if (left.id != merge.left || left.next == size || symbols[left.next].id != merge.right) continue;
    auto& right = symbols[left.next];
    left.id = merge.result;
    left.next = right.next;
    right.id = -1;
    if (left.next != size) {
      symbols[left.next].previous = at;
      queue_pair(scratch, at);
    }
    if (at != 0) queue_pair(scratch, left.previous);
  }
}

}  // namespace lily
