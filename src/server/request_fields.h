// Fields that mean the same in several APIs.
#pragma once

#include <string>
#include <vector>

#include "server/field_reader.h"

namespace lily::server {

// temperature, top_p, top_k, min_p, the penalties and seed; without a seed: a new one.
SamplingParams read_sampling(FieldReader& body, SamplingParams defaults);

// A string, or an object of one of `types` with a field `text` ("refusal" holds its text under that name).
std::string read_part(const OrderedJson& part, const std::string& path, Words types, Faults& faults);

// A string, or an array of such parts, joined as the template joins them; absent: no text. The types are those of messages in
// OpenAI's APIs unless said otherwise.
std::string read_text(FieldReader& fields, const char* name,
                      Words types = {"text", "input_text", "output_text", "refusal"});

// The arguments of a past call, JSON or JSON text. None are {}; what is malformed stays a text.
OrderedJson read_arguments(const OrderedJson* arguments);

enum class ToolForm {
  nested,  // {"type": "function", "function": {"name": ..., "parameters": ...}}, kept as it is: Chat Completions
  flat,    // {"type": "function", "name": ..., "parameters": ...}: Responses
  custom,  // {"name": ..., "input_schema": ...}, with the type "custom" or none: Messages
};
// Functions, as the template shows them. Hosted tools cannot run here; agents send them beside their own and do without, so
// that they are left out, with a line for the log.
void read_tools(FieldReader& body, ToolForm form, ChatRequest& chat, std::vector<std::string>& warnings);

// parallel_tool_calls, and tool_choice where it is a word; else its object.
std::optional<FieldReader> read_tool_choice(FieldReader& body, ToolChoice& choice);

bool declares(const std::vector<OrderedJson>& tools, const std::string& name);
// Whether the functions there are can satisfy the choice.
void check_tool_choice(const ChatRequest& chat, const std::string& path, Faults& faults);

// {"type": "json_schema", "schema": {...}}, "json_object" or "text". `wrapper`: of the object that holds the schema.
void read_format(FieldReader& fields, const char* name, const char* wrapper, ChatRequest& chat);

// Whether a last event of the stream should have the numbers of tokens.
bool read_stream_options(FieldReader& body);

}  // namespace lily::server
