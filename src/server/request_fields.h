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

// chat_template_kwargs, enable_thinking and reasoning_effort, which say more than the API's own fields and win over them.
void read_template_fields(JsonFields& body, ChatRequest& chat, Fault& fault);

// Any effort but "none" means thinking: the model knows no degrees.
void read_effort(JsonFields& fields, std::string_view key, ChatRequest& chat);

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
