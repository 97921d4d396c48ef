#define PCRE2_CODE_UNIT_WIDTH 8
#include "text/pre_tokenizer.h"

#include <fmt/format.h>
#include <pcre2.h>

#include <algorithm>

#include "text/tokenizer_json.h"
#include "text/utf8.h"

namespace lily {
namespace {

// PCRE2's \s still holds U+180E, which Unicode has not counted as white space since 6.3.
std::string with_unicode_spaces(std::string_view pattern) {
  std::string out;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '\\' || i + 1 == pattern.size()) {
      out += pattern[i];
      continue;
    }
    const char escaped = pattern[++i];
    if (escaped == 's') out += "\\p{White_Space}";
    else if (escaped == 'S') out += "\\P{White_Space}";
    else (out += '\\') += escaped;
  }
  return out;
}

PCRE2_SPTR units(std::string_view text) { return reinterpret_cast<PCRE2_SPTR>(text.data()); }

// A run of one character class costs one step a character; patterns that explode stop here.
uint32_t match_limit(size_t text_size) {
  constexpr size_t base = 10'000'000, per_byte = 8, most = 4'000'000'000;
  return static_cast<uint32_t>(std::min(base + per_byte * std::min(text_size, most), most));
}
constexpr uint32_t heap_limit_kib = 64 * 1024;

}  // namespace

void PreTokenizer::Free::operator()(pcre2_code* code) const { pcre2_code_free(code); }
void PreTokenizer::Free::operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
void PreTokenizer::Free::operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }

Result<PreTokenizer> PreTokenizer::compile(const std::string& pattern, const std::string& where) {
  const std::string source = with_unicode_spaces(pattern);
  int code = 0;
  PCRE2_SIZE offset = 0;
  PreTokenizer tokenizer;
  tokenizer.code_.reset(pcre2_compile(units(source), source.size(), PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C,
                                      &code, &offset, nullptr));
  if (!tokenizer.code_) {
    PCRE2_UCHAR message[256] = {};
    pcre2_get_error_message(code, message, sizeof message);
    return Error{where, "pre_tokenizer: bad regular expression " + excerpt(source), "",
                 fmt::format("{} at byte {}", reinterpret_cast<const char*>(message), offset)};
  }
  pcre2_jit_compile(tokenizer.code_.get(), PCRE2_JIT_COMPLETE);  // where it cannot, matching interprets
  return tokenizer;
}

PreTokenizer::Pieces::Pieces(const PreTokenizer& tokenizer, std::string_view text)
    : tokenizer_(tokenizer),
      text_(text),
      limits_(pcre2_match_context_create(nullptr)),
      data_(pcre2_match_data_create_from_pattern(tokenizer.code_.get(), nullptr)) {
  pcre2_set_match_limit(limits_.get(), match_limit(text.size()));
  pcre2_set_heap_limit(limits_.get(), heap_limit_kib);
}

std::string_view PreTokenizer::Pieces::next() {
  while (taken_ < text_.size()) {
    if (match_end_ > taken_) return take(match_begin_ > taken_ ? match_begin_ : match_end_);
    find();
  }
  return {};
}

std::string_view PreTokenizer::Pieces::take(size_t end) {
  const std::string_view piece = text_.substr(taken_, end - taken_);
  taken_ = end;
  return piece;
}

void PreTokenizer::Pieces::find() {
  const auto match = [&](uint32_t options) {
    return pcre2_match(tokenizer_.code_.get(), units(text_), text_.size(), search_, options | PCRE2_NO_UTF_CHECK,
                       data_.get(), limits_.get());
  };
  int count = search_ <= text_.size() ? match(0) : PCRE2_ERROR_NOMATCH;
  if (count == PCRE2_ERROR_JIT_STACKLIMIT) count = match(PCRE2_NO_JIT);
  if (count < 0) {  // no match, or a limit reached: the rest is one piece
    match_begin_ = match_end_ = search_ = text_.size();
    return;
  }
  const PCRE2_SIZE* bounds = pcre2_get_ovector_pointer(data_.get());
  match_begin_ = bounds[0], match_end_ = bounds[1];
  search_ = match_end_;
  if (match_begin_ == match_end_) search_ += search_ < text_.size() ? utf8_step(text_.substr(search_)).size : 1;
}

}  // namespace lily
