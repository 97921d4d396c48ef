#include "text/tokenizer.h"

#include <utility>

#include "base/mapped_file.h"
#include "text/added_tokens.h"
#include "text/bpe.h"
#include "text/normalize.h"
#include "text/pre_tokenizer.h"
#include "text/tokenizer_fields.h"
#include "text/tokenizer_json.h"
#include "text/utf8.h"
#include "text/vocabulary.h"

namespace lily {

struct Tokenizer::Impl {
  Vocabulary vocabulary;
  Bpe bpe;
  PreTokenizer pre_tokenizer;
  AddedTokens added_tokens;
  bool nfc;
  bool ignore_merges;

  void encode_run(std::string_view run, std::vector<int32_t>& ids, Bpe::Scratch& scratch) const;
  void encode_text(std::string_view text, std::vector<int32_t>& ids, Bpe::Scratch& scratch) const;
};

// Text between added tokens. Bytes that are no UTF-8 are neither normalised nor split: each stretch is one word.
void Tokenizer::Impl::encode_run(std::string_view run, std::vector<int32_t>& ids, Bpe::Scratch& scratch) const {
  while (!run.empty()) {
    const size_t valid = valid_utf8_prefix(run);
    const std::string_view text = run.substr(0, valid);
    encode_text(nfc ? to_nfc(text) : std::string(text), ids, scratch);
    run.remove_prefix(valid);
    size_t malformed = 0;
    while (malformed < run.size()) {
      const Utf8Step step = utf8_step(run.substr(malformed));
      if (step.kind == Utf8Step::Kind::character) break;
      malformed += step.size;
    }
    bpe.encode(run.substr(0, malformed), ids, scratch);
    run.remove_prefix(malformed);
  }
}

void Tokenizer::Impl::encode_text(std::string_view text, std::vector<int32_t>& ids, Bpe::Scratch& scratch) const {
  PreTokenizer::Pieces pieces(pre_tokenizer, text);
  for (std::string_view word = pieces.next(); !word.empty(); word = pieces.next()) {
    const auto whole = ignore_merges ? vocabulary.id_of(word) : std::nullopt;
    if (whole && vocabulary.kind(*whole) == Vocabulary::Kind::ordinary) {
      ids.push_back(*whole);
    } else {
      bpe.encode(word, ids, scratch);
    }
  }
}

Result<Tokenizer> Tokenizer::load(const std::string& path) {
  LILY_TRY(const MappedFile file, MappedFile::open(path));
  return parse({reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()}, path);
}

Result<Tokenizer> Tokenizer::parse(std::string_view text, const std::string& where) {
  LILY_TRY(TokenizerJson json, read_tokenizer_json(text, where));
  LILY_TRY(TokenizerFields fields, read_tokenizer_fields(json.document, where));
  LILY_TRY(PreTokenizer pre_tokenizer, PreTokenizer::compile(fields.split_pattern, where));
  LILY_TRY(Vocabulary vocabulary, Vocabulary::make(json, fields.added_tokens, where));
  LILY_TRY(Bpe bpe, Bpe::make(json, vocabulary, where));
  return Tokenizer(
      std::unique_ptr<Impl>(new Impl{std::move(vocabulary), std::move(bpe), std::move(pre_tokenizer),
                                     AddedTokens(std::move(fields.added_tokens)), fields.nfc, fields.ignore_merges}));
}

Tokenizer::Tokenizer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

std::vector<int32_t> Tokenizer::encode(std::span<const TextPiece> pieces) const {
  std::vector<int32_t> ids;
  Bpe::Scratch scratch;
  std::string run;
  for (const TextPiece& piece : pieces) {
    std::string_view rest = piece.text;
    while (const auto token = piece.trusted ? impl_->added_tokens.find(rest) : std::nullopt) {
      run += rest.substr(0, token->begin);
      impl_->encode_run(std::exchange(run, {}), ids, scratch);
      ids.push_back(token->id);
      rest.remove_prefix(token->begin + token->size);
    }
    run += rest;
  }
  impl_->encode_run(run, ids, scratch);
  return ids;
}

std::vector<int32_t> Tokenizer::encode(std::string_view text, bool trusted) const {
  const TextPiece piece{std::string(text), trusted};
  return encode(std::span(&piece, 1));
}

std::string_view Tokenizer::bytes_of(int32_t id) const { return impl_->vocabulary.bytes_of(id); }

std::string Tokenizer::decode(std::span<const int32_t> ids) const {
  std::string text;
  for (const int32_t id : ids) text += bytes_of(id);
  return text;
}

bool Tokenizer::is_special(int32_t id) const { return impl_->vocabulary.kind(id) == Vocabulary::Kind::special; }

std::optional<int32_t> Tokenizer::added_token(std::string_view text) const { return impl_->added_tokens.id_of(text); }

int32_t Tokenizer::size() const { return impl_->vocabulary.size(); }

}  // namespace lily
