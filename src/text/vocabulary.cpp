#include "text/vocabulary.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <utility>

namespace lily {

Result<Vocabulary> Vocabulary::make(TokenizerJson& json, std::span<const AddedToken> added, const std::string& where) {
  Vocabulary vocabulary;
  vocabulary.bytes_ = std::move(json.token_bytes);
  const size_t count = json.tokens.size() + added.size();
  vocabulary.tokens_.reserve(count);
  vocabulary.slots_.assign(std::bit_ceil(2 * count + 1), -1);
  for (const auto& token : json.tokens) {
    LILY_CHECK(vocabulary.add({token.offset, token.size, Kind::ordinary}, token.id, where));
  }
  for (const AddedToken& token : added) LILY_CHECK(vocabulary.add(token, where));
  return vocabulary;
}

Result<void> Vocabulary::add(Token token, int64_t id, const std::string& where) {
  const std::string_view bytes(bytes_.data() + token.offset, token.size);
  const auto text = [&] { return excerpt(bytes); };
  if (bytes.empty()) return Error{where, "model.vocab: empty token", "", fmt::format("id {}", id)};
  if (id < 0 || id > max_token_id) {
    return Error{where, "model.vocab: id of " + text(), fmt::format("0 to {}", max_token_id), fmt::format("{}", id)};
  }
  const auto index = static_cast<size_t>(id);
  if (index >= tokens_.size()) tokens_.resize(index + 1);
  if (tokens_[index].kind != Kind::absent) {
    const auto owner = bytes_of(static_cast<int32_t>(id));
    return Error{where, fmt::format("id {} stands for both {} and {}", id, excerpt(owner), text()), "", ""};
  }
  int32_t& slot = slots_[slot_of(bytes)];
  if (slot >= 0) return Error{where, fmt::format("{} has two ids, {} and {}", text(), slot, id), "", ""};
  slot = static_cast<int32_t>(id);
  tokens_[index] = token;
  return {};
}

Result<void> Vocabulary::add(const AddedToken& token, const std::string& where) {
  const Kind kind = token.special ? Kind::special : Kind::added;
  if (id_of(token.content) == token.id) {
    Token& known = tokens_[static_cast<size_t>(token.id)];
    if (known.kind != Kind::ordinary) return Error{where, excerpt(token.content) + " is added twice", "", ""};
    known.kind = kind;
    return {};
  }
  const auto offset = static_cast<uint32_t>(bytes_.size());
  bytes_ += token.content;
  return add({offset, static_cast<uint32_t>(token.content.size()), kind}, token.id, where);
}

Vocabulary::Kind Vocabulary::kind(int32_t id) const {
  return id >= 0 && id < size() ? tokens_[static_cast<size_t>(id)].kind : Kind::absent;
}

std::string_view Vocabulary::bytes_of(int32_t id) const {
  if (id < 0 || id >= size()) return {};
  const Token& token = tokens_[static_cast<size_t>(id)];
  return {bytes_.data() + token.offset, token.size};
}

std::optional<int32_t> Vocabulary::id_of(std::string_view bytes) const {
  const int32_t id = slots_[slot_of(bytes)];
  return id >= 0 ? std::optional(id) : std::nullopt;
}

size_t Vocabulary::slot_of(std::string_view bytes) const {
  const size_t mask = slots_.size() - 1;
  const size_t hash = std::hash<std::string_view>{}(bytes);
  size_t slot = hash & mask;
  while (slots_[slot] >= 0 && bytes_of(slots_[slot]) != bytes) slot = (slot + 1) & mask;
  return slot;
}

}  // namespace lily
