// Cuts text into pre-tokens with the regular expression of tokenizer.json.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

struct pcre2_real_code_8;
struct pcre2_real_match_context_8;
struct pcre2_real_match_data_8;

namespace lily {

class PreTokenizer {
  struct Free {
    void operator()(pcre2_real_code_8* code) const;
    void operator()(pcre2_real_match_context_8* context) const;
    void operator()(pcre2_real_match_data_8* data) const;
  };

 public:
  static Result<PreTokenizer> compile(const std::string& pattern, const std::string& where);

  // The pieces of one text in order: each match, and each stretch between matches. Nothing is lost.
  class Pieces {
   public:
    // `text` is well-formed UTF-8 and outlives this, as does `tokenizer`.
    Pieces(const PreTokenizer& tokenizer, std::string_view text);
    std::string_view next();  // empty: no more

   private:
    void find();  // the next match, at search_ or after
    std::string_view take(size_t end);

    const PreTokenizer& tokenizer_;
    std::string_view text_;
    std::unique_ptr<pcre2_real_match_context_8, Free> limits_;
    std::unique_ptr<pcre2_real_match_data_8, Free> data_;
    size_t taken_ = 0;   // text before this has been given out
    size_t search_ = 0;  // where the next search begins
    size_t match_begin_ = 0, match_end_ = 0;
  };

 private:
  std::unique_ptr<pcre2_real_code_8, Free> code_;
};

}  // namespace lily
