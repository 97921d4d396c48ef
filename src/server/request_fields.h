// Fields that mean the same in several APIs.
#pragma once

#include <initializer_list>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "server/json_fields.h"

namespace lily::server {

// temperature, top_p, top_k, min_p, the penalties and seed, over the model card's parameters for `chat.enable_thinking`, which must
// be settled before. Without a seed: a new one.
void read_sampling(JsonFields& body, const ChatService& service, ChatRequest& chat, Fault& fault);

// What a request says about thinking, in any number of places. Off wins over on, and a budget over a guess.
struct ThinkingWish {
  bool on = false, off = false;
  std::optional<int64_t> budget;  // tokens

  void says(std::optional<bool> enabled) { (enabled.value_or(false) ? on : off) |= enabled.has_value(); }
  void apply(bool otherwise, ChatRequest& chat) const;  // `otherwise`: what holds where nothing was said
};

// An effort: "none" and "minimal" mean off, "low" is a budget.
void read_effort(JsonFields& fields, std::string_view key, ThinkingWish& wish);

// chat_template_kwargs, and reasoning_effort, enable_thinking, preserve_thinking and thinking_budget there and in the body.
void read_template_fields(JsonFields& body, ThinkingWish& wish, ChatRequest& chat, Fault& fault);

// A part of one of these types, with a field `text`.
std::string read_part(const OrderedJson& part, const std::string& path, std::initializer_list<std::string_view> types,
                      Fault& fault);

// A text, or a list of such parts, joined as the template joins them; nothing: no text.
std::string read_text(const OrderedJson* content, const std::string& path,
                      std::initializer_list<std::string_view> types, Fault& fault);

// The arguments of a past call, JSON or JSON text. What is malformed stays a text, which the template shows as no arguments.
OrderedJson read_arguments(const OrderedJson& arguments);

// A function as the template shows it, with an empty object of parameters where the client gave none. Also checks it.
OrderedJson read_function(JsonFields& tool, std::string_view parameters);

// A line for the log, where there is something to say.
void warn_of_skipped(const std::set<std::string>& types, ApiRequest& request);

bool declares(const std::vector<OrderedJson>& tools, const std::string& name);
// Whether the functions there are can satisfy the choice.
void check_tool_choice(const ChatRequest& chat, const std::string& path, Fault& fault);

// {"type": "json_schema", "schema": {...}}, "json_object" or "text".
void read_format(const OrderedJson* format, const std::string& path, ChatRequest& chat, Fault& fault);

}  // namespace lily::server
