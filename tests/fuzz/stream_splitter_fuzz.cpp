// Any tokens: events of whole characters in their order, arguments that are one JSON object, no letter lost, and the same in
// single bytes. Input: a byte of choices, then a byte for each token: ASCII, or one of the snippets.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "../support/byte_tokenizer_json.h"
#include "text/stream_splitter.h"
#include "text/utf8.h"

namespace {

using lily::OrderedJson;
using lily::ReplyEvent;

void require(bool condition) {
  if (!condition) std::abort();
}

const std::vector<std::string> snippets = {"<tool_call>",
                                           "</tool_call>",
                                           "<function=",
                                           "</function>",
                                           "<parameter=",
                                           "</parameter>",
                                           "<tool_call>\n<function=f>\n",
                                           "\n</parameter>\n</function>\n</tool_call>",
                                           "<function=f>",
                                           "<function=g>\n",
                                           "<parameter=a>",
                                           "<parameter=b>\n",
                                           "<parameter=c>\n",
                                           "\n</parameter>\n",
                                           "\n<",
                                           "</",
                                           "param",
                                           "eter>",
                                           "<tool",
                                           "_call>",
                                           "{\"name\": \"f\", \"arguments\": {",
                                           "}}",
                                           "\"a\": 1",
                                           "{'k': True}",
                                           "null",
                                           "None",
                                           "[1, 2]",
                                           "```\n",
                                           "``",
                                           "STOP",
                                           "ST",
                                           "GG",
                                           "HIJ",
                                           "K\nM",
                                           "é",
                                           "🙂",
                                           "{\"name\": ",
                                           "\n\n",
                                           "\"arguments\": ",
                                           "f>",
                                           "f>\n<para"};

// Ids, and the text that they stand for.
struct Tokens {
  std::vector<int32_t> ids;
  std::string text;
};

const lily::Tokenizer& tokenizer() {
  static const lily::Tokenizer instance =
      lily::Tokenizer::parse(lily::test::byte_tokenizer_json(snippets), "fuzz").value();
  return instance;
}

Tokens tokens_of(const uint8_t* data, size_t size) {
  Tokens tokens;
  for (size_t i = 0; i < size; ++i) {
    const size_t snippet = data[i] - 128u;
    int32_t id = data[i];
    if (data[i] == 0xFF) id = *tokenizer().added_token("</think>");
    else if (data[i] == 0xFE) id = *tokenizer().added_token("<think>");
    else if (data[i] >= 128 && snippet < snippets.size()) id = 256 + static_cast<int32_t>(snippet);
    tokens.ids.push_back(id);
  }
  tokens.ids.insert(tokens.ids.end(), {'.', '\n'});  // a tag that the end cuts is dropped in a call
  for (const int32_t id : tokens.ids) tokens.text += tokenizer().bytes_of(id);
  return tokens;
}

std::vector<int32_t> in_bytes(const std::vector<int32_t>& ids) {
  std::vector<int32_t> bytes;
  for (const int32_t id : ids) {
    if (tokenizer().added_token(tokenizer().bytes_of(id)) == id) {
      bytes.push_back(id);
    } else {
      for (const char byte : tokenizer().bytes_of(id)) bytes.push_back(static_cast<uint8_t>(byte));
    }
  }
  return bytes;
}

lily::SplitterOptions options_of(uint8_t choices) {
  static const OrderedJson f = OrderedJson::parse(
      R"({"type":"function","function":{"name":"f","parameters":{"properties":{"a":{"type":"integer"},"b":{"type":"string"},)"
      R"("c":{"anyOf":[{"type":"object"},{"type":"null"},{"type":"boolean"}]}}}}})");
  static const OrderedJson g = OrderedJson::parse(
      R"({"type":"function","function":{"name":"g","parameters":{"properties":{"a":{"type":["string","null"]},"b":{"enum":[1,"x"]}}}}})");
  lily::SplitterOptions options;
  if (choices & 1) options.tools.push_back(f);
  if (choices & 2) options.tools.push_back(g);
  if (choices & 4) options.stops = {"STOP", "\n\n"};
  return options;
}

struct Seen {
  std::string text;  // all of it: reasoning, content, calls in their order
  std::string letters;
  bool stopped = false;
};

// Letters that no conversion of an argument changes.
bool counts(char c) { return std::string_view("GHIJKMOPQVWXYZ").find(c) != std::string_view::npos; }

Seen run(const std::vector<int32_t>& ids, uint8_t choices) {
  const std::vector<int32_t> prompt = tokenizer().encode(choices & 8 ? "<think>" : "<think></think>", true);
  lily::StreamSplitter splitter(tokenizer(), prompt, options_of(choices));
  std::vector<ReplyEvent> events;
  for (const int32_t id : ids) splitter.push(id, events);
  splitter.finish(events);
  Seen seen;
  std::string arguments;
  std::optional<ReplyEvent::Kind> last;
  int calls = 0;
  bool in_call = false;
  for (const ReplyEvent& event : events) {
    require(lily::valid_utf8_prefix(event.text) == event.text.size());
    const bool of_call = event.kind != ReplyEvent::Kind::reasoning && event.kind != ReplyEvent::Kind::content;
    require(of_call ? event.call == calls - (event.kind != ReplyEvent::Kind::call_begin) : event.call == -1);
    require(in_call == (of_call && event.kind != ReplyEvent::Kind::call_begin));
    if (event.kind == ReplyEvent::Kind::call_begin) in_call = true, ++calls;
    if (event.kind == ReplyEvent::Kind::call_arguments) arguments += event.text;
    if (event.kind == ReplyEvent::Kind::call_end) {
      in_call = false;
      require(arguments.starts_with('{') && OrderedJson::accept(arguments));
      arguments.clear();
    }
    if (last != event.kind) seen.text += "\n[" + std::to_string(static_cast<int>(event.kind)) + "]";
    last = event.kind;
    seen.text += event.text;
  }
  require(!in_call && calls == splitter.calls());
  std::copy_if(seen.text.begin(), seen.text.end(), std::back_inserter(seen.letters), counts);
  std::sort(seen.letters.begin(), seen.letters.end());
  seen.stopped = splitter.stopped();
  return seen;
}

bool keeps_letters(const std::string& text) {
  for (const char* word : {"\\", "\"id\"", "'id'", "\"type\"", "'type'"}) {
    if (text.find(word) != text.npos) return false;
  }
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0 || size > 2000) return 0;
  const Tokens tokens = tokens_of(data + 1, size - 1);
  const Seen seen = run(tokens.ids, data[0]), bytes = run(in_bytes(tokens.ids), data[0]);
  require(seen.text == bytes.text && seen.stopped == bytes.stopped);
  if (seen.stopped || !keeps_letters(tokens.text)) return 0;
  std::string letters;
  std::copy_if(tokens.text.begin(), tokens.text.end(), std::back_inserter(letters), counts);
  std::sort(letters.begin(), letters.end());
  require(letters == seen.letters);
  return 0;
}
