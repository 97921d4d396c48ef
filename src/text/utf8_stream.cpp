#include "text/utf8_stream.h"

#include <utility>

#include "text/utf8.h"

namespace lily {

std::string Utf8Stream::push(std::string_view bytes) {
  const std::string input = std::exchange(pending_, {}).append(bytes);
  std::string_view rest = input;
  std::string text;
  text.reserve(input.size());
  while (!rest.empty()) {
    const size_t valid = valid_utf8_prefix(rest);
    text += rest.substr(0, valid);
    rest.remove_prefix(valid);
    if (rest.empty()) break;
    const Utf8Step step = utf8_step(rest);
    if (step.kind == Utf8Step::Kind::truncated) {
      pending_ = rest;
      break;
    }
    text += replacement_character;
    rest.remove_prefix(step.size);
  }
  return text;
}

std::string Utf8Stream::finish() {
  return std::exchange(pending_, {}).empty() ? std::string() : std::string(replacement_character);
}

}  // namespace lily
