// Any schema: an error, or replies that are JSON and never come to a dead end. Also as the parameters of a tool.
// Input: a byte that seeds the walk, then the schema.
#include <cstdlib>
#include <random>

#include "support/byte_tokenizer.h"
#include "support/constraint_walk.h"

namespace {

using namespace lily;

void require(bool condition) {
  if (!condition) std::abort();
}

void walk(TokenConstraint& constraint, const Tokenizer& tokenizer, unsigned seed, std::string& text) {
  std::mt19937 random(seed);
  for (int step = 0; step < 60; ++step) {
    const auto ids = test::allowed_ids(constraint, tokenizer);
    require(!ids.empty() || constraint.complete());
    if (ids.empty()) return;
    const int32_t id = ids[random() % ids.size()];
    require(constraint.accept(id));
    text += tokenizer.bytes_of(id);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Tokenizer tokenizer = test::byte_tokenizer({"\":", "\"}", "{\"", "12", "\",", "\n</parameter>"});
  static const auto trie = make_vocabulary_trie(tokenizer);
  if (size == 0 || size > 20'000) return 0;
  const OrderedJson schema = OrderedJson::parse(data + 1, data + size, nullptr, false);
  if (schema.is_discarded()) return 0;
  std::string text;
  if (const auto made = json_constraint(trie, &schema)) {
    walk(**made, tokenizer, data[0], text);
    if ((*made)->complete()) require(OrderedJson::accept(text));
  } else {
    require(!made.error().message().empty());
  }
  const OrderedJson tools[] = {{{"type", "function"}, {"function", {{"name", "f"}, {"parameters", schema}}}}};
  if (const auto made = call_constraint(trie, tools, true)) walk(**made, tokenizer, data[0], text);
  return 0;
}
