// What every API must do with every body.
#pragma once

#include <cstdlib>
#include <string_view>
#include <vector>

#include "server/api.h"
#include "server/wire.h"
#include "silent_service.h"

namespace lily::test {

inline void require(bool holds) {
  if (!holds) std::abort();
}

inline void fuzz_reply(server::ReplyFormat& format) {
  using Kind = ReplyEvent::Kind;
  ReplyStep step{.id = 1, .channel = Channel::content};
  step.events = {
      {Kind::reasoning, "r"}, {Kind::content, "\xff"}, {Kind::call_begin, "f", 0}, {Kind::call_arguments, "{", 0}};
  ReplyStep last{.channel = Channel::content};
  last.events = {{Kind::call_arguments, "}", 0}, {Kind::call_end, "", 0}};
  std::vector<server::SseEvent> events;
  format.begin(events);
  format.step(0, step, events);
  format.step(0, last, events);
  format.finish(0, Reply{}, events);
  format.end(events);
  format.fail({.status = 500}, events);
  for (const server::SseEvent& event : events) require(OrderedJson::accept(event.data));
  require(format.document().is_object());
}

inline void fuzz_api(const server::Api& api, std::string_view text) {
  static const SilentService service;
  const auto body = server::parse_json(text);
  if (!std::holds_alternative<OrderedJson>(body)) return;
  auto parsed = api.parse(std::get<OrderedJson>(body), service);
  if (auto* request = std::get_if<server::ApiRequest>(&parsed)) return fuzz_reply(*request->format);
  const auto& error = std::get<server::ApiError>(parsed);
  require(error.status >= 400 && !error.message.empty());
  require(!api.error_document(error).dump().empty());
}

}  // namespace lily::test
