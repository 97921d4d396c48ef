// A reply's text, cut into tokens in any way, through the splitter.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "support/byte_tokenizer.h"
#include "text/stream_splitter.h"
#include "text/utf8.h"

namespace lily::test {

struct SeenCall {
  std::string name, arguments;
  bool operator==(const SeenCall&) const = default;
};

struct SeenReply {
  std::string reasoning, content;
  std::vector<SeenCall> calls;
  bool stopped = false;
  bool operator==(const SeenReply&) const = default;
};

inline void PrintTo(const SeenReply& reply, std::ostream* out) {
  *out << "reasoning <<" << reply.reasoning << ">> content <<" << reply.content << ">>";
  for (const SeenCall& call : reply.calls) *out << "\n  " << call.name << " " << call.arguments;
  if (reply.stopped) *out << " stopped";
}

// Takes events, and expects them to be in order, and of whole characters.
class SeenEvents {
 public:
  void add(const ReplyEvent& event) {
    EXPECT_EQ(valid_utf8_prefix(event.text), event.text.size()) << event.text;
    const auto calls = static_cast<int>(reply.calls.size());
    switch (event.kind) {
      case ReplyEvent::Kind::reasoning:
      case ReplyEvent::Kind::content:
        EXPECT_FALSE(in_call);
        EXPECT_EQ(event.call, -1);
        EXPECT_FALSE(event.text.empty());
        (event.kind == ReplyEvent::Kind::content ? reply.content : reply.reasoning) += event.text;
        break;
      case ReplyEvent::Kind::call_begin:
        EXPECT_FALSE(in_call);
        EXPECT_EQ(event.call, calls);
        in_call = true;
        reply.calls.push_back({event.text, ""});
        break;
      case ReplyEvent::Kind::call_arguments:
        ASSERT_TRUE(in_call);
        EXPECT_EQ(event.call, calls - 1);
        reply.calls.back().arguments += event.text;
        break;
      case ReplyEvent::Kind::call_end:
        ASSERT_TRUE(in_call);
        EXPECT_EQ(event.call, calls - 1);
        in_call = false;
        EXPECT_TRUE(nlohmann::json::parse(reply.calls.back().arguments, nullptr, false).is_object())
            << reply.calls.back().arguments;
        break;
    }
  }

  SeenReply reply;
  bool in_call = false;
};

// The text's stretches between markers, and the markers.
inline std::vector<std::string> stretches(const std::string& text) {
  std::vector<std::string> list = {""};
  for (size_t at = 0; at < text.size();) {
    const std::string rest = text.substr(at);
    const std::string marker = rest.starts_with("<think>") ? "<think>" : rest.starts_with("</think>") ? "</think>" : "";
    if (marker.empty()) list.back() += text[at++];
    else list.insert(list.end(), {marker, ""}), at += marker.size();
  }
  std::erase(list, "");
  return list;
}

inline bool is_marker(const std::string& text) { return text == "<think>" || text == "</think>"; }

// Every cut of the text into tokens, which are one each in the vocabulary.
class SplitReply {
 public:
  // `thinking`: the prompt opens a thought, else it closes one. In `reply`, <think> and </think> are the markers.
  SplitReply(std::string reply, std::vector<OrderedJson> tools, bool thinking = false,
             std::vector<std::string> stops = {})
      : parts_(stretches(reply)), options_{std::move(tools), std::move(stops)}, thinking_(thinking) {}

  // What the whole stretches give; expects the same of every other cut.
  SeenReply run() {
    std::vector<std::vector<std::string>> cuts = {parts_, {}, {}};
    for (const std::string& part : parts_) {
      for (size_t at = 0; at < part.size(); at += is_marker(part) ? part.size() : 1) {
        cuts[1].push_back(is_marker(part) ? part : part.substr(at, 1));
      }
      for (size_t at = 0; at < part.size(); at += is_marker(part) ? part.size() : 3) {
        cuts[2].push_back(is_marker(part) ? part : part.substr(at, 3));
      }
    }
    for (size_t i = 0; i < parts_.size(); ++i) {
      for (size_t at = 1; at < parts_[i].size() && !is_marker(parts_[i]); ++at) {
        std::vector<std::string> cut = parts_;
        cut[i] = parts_[i].substr(0, at);
        cut.insert(cut.begin() + static_cast<ptrdiff_t>(i) + 1, parts_[i].substr(at));
        cuts.push_back(std::move(cut));
      }
    }
    make_tokenizer(cuts);
    const SeenReply seen = run(cuts[0]);
    for (const auto& cut : cuts) {
      EXPECT_EQ(run(cut), seen) << testing::PrintToString(cut);
      if (testing::Test::HasFailure()) break;
    }
    return seen;
  }

 private:
  void make_tokenizer(const std::vector<std::vector<std::string>>& cuts) {
    std::set<std::string> words;
    for (const auto& cut : cuts) {
      for (const std::string& piece : cut) {
        if (piece.size() > 1 && !is_marker(piece)) words.insert(piece);
      }
    }
    const std::vector<std::string> list(words.begin(), words.end());
    tokenizer_.emplace(byte_tokenizer(list));
    for (size_t i = 0; i < list.size(); ++i) ids_[list[i]] = 256 + static_cast<int32_t>(i);
  }

  int32_t id_of(const std::string& piece) const {
    if (piece.size() == 1) return static_cast<unsigned char>(piece[0]);
    return is_marker(piece) ? *tokenizer_->added_token(piece) : ids_.at(piece);
  }

  SeenReply run(const std::vector<std::string>& pieces) const {
    const std::string prompt = thinking_ ? "<think>\n" : "<think>\n\n</think>\n\n";
    StreamSplitter splitter(*tokenizer_, tokenizer_->encode(prompt, true), options_);
    SeenEvents seen;
    std::vector<ReplyEvent> events;
    for (const std::string& piece : pieces) splitter.push(id_of(piece), events);
    splitter.finish(events);
    for (const ReplyEvent& event : events) seen.add(event);
    EXPECT_FALSE(seen.in_call);
    EXPECT_EQ(splitter.calls(), static_cast<int>(seen.reply.calls.size()));
    seen.reply.stopped = splitter.stopped();
    return seen.reply;
  }

  std::vector<std::string> parts_;
  SplitterOptions options_;
  bool thinking_;
  std::optional<Tokenizer> tokenizer_;
  std::map<std::string, int32_t> ids_;
};

// A declared function whose parameters have these schemas.
inline OrderedJson tool(const std::string& name, const OrderedJson& properties = OrderedJson::object()) {
  return {{"type", "function"},
          {"function", {{"name", name}, {"parameters", {{"type", "object"}, {"properties", properties}}}}}};
}

// A call in the template's form.
inline std::string xml_call(const std::string& name,
                            const std::vector<std::pair<std::string, std::string>>& arguments) {
  std::string text = "<tool_call>\n<function=" + name + ">\n";
  for (const auto& [key, value] : arguments) text += "<parameter=" + key + ">\n" + value + "\n</parameter>\n";
  return text + "</function>\n</tool_call>";
}

}  // namespace lily::test
