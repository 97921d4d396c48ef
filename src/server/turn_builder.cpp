#include "server/turn_builder.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

namespace lily::server {

// The assistant message in the making; a new one where the part would come before what the message already holds.
Message& TurnBuilder::turn(bool continues) {
  place_results();
  if (messages_.empty() || messages_.back().role != Role::assistant || !continues) {
    messages_.push_back({.role = Role::assistant});
  }
  return messages_.back();
}

void TurnBuilder::place_results() {
  if (results_.empty()) return;
  std::unordered_map<std::string_view, size_t> places;
  if (!messages_.empty()) {
    for (const ToolCall& call : messages_.back().tool_calls) places.emplace(call.id, places.size());
  }
  const auto place = [&](const Result& result) {
    const auto found = places.find(result.call_id);
    return found == places.end() ? places.size() : found->second;
  };
  std::stable_sort(results_.begin(), results_.end(),
                   [&](const Result& a, const Result& b) { return place(a) < place(b); });
  for (Result& result : results_) messages_.push_back({.role = Role::tool, .content = std::move(result.text)});
  results_.clear();
}

void TurnBuilder::text(Role role, std::string text) {
  place_results();
  messages_.push_back({.role = role, .content = std::move(text)});
}

void TurnBuilder::reasoning(const std::string& text) {
  const bool continues = !messages_.empty() && messages_.back().content.empty() && messages_.back().tool_calls.empty();
  turn(continues).reasoning += text;
}

void TurnBuilder::reply(const std::string& text) {
  turn(!messages_.empty() && messages_.back().tool_calls.empty()).content += text;
}

void TurnBuilder::call(ToolCall call) { turn(true).tool_calls.push_back(std::move(call)); }

void TurnBuilder::result(std::string call_id, std::string text) {
  results_.push_back({std::move(call_id), std::move(text)});
}

std::vector<Message> TurnBuilder::take() {
  place_results();
  return std::move(messages_);
}

}  // namespace lily::server
