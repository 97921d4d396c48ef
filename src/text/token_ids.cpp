#include "text/token_ids.h"

#include <algorithm>
#include <charconv>

namespace lily {

Result<std::vector<int32_t>> parse_token_ids(std::string_view text, const std::string& where) {
  constexpr const char* space = " \t\r\n\f\v";
  std::vector<int32_t> ids;
  for (size_t at = text.find_first_not_of(space); at != text.npos; at = text.find_first_not_of(space, at)) {
    const size_t end = std::min(text.find_first_of(space, at), text.size());
    const char* last = text.data() + end;
    int32_t id = 0;
    const auto [stop, error] = std::from_chars(text.data() + at, last, id);
    if (error != std::errc{} || stop != last || id < 0) {
      return Error{.where = where + ": token " + std::to_string(ids.size()),
                   .what = "bad id",
                   .expected = "a decimal number",
                   .got = std::string(text.substr(at, std::min<size_t>(end - at, 40)))};
    }
    ids.push_back(id);
    at = end;
  }
  if (ids.empty()) return Error{.where = where, .what = "no token ids in it"};
  return ids;
}

}  // namespace lily
