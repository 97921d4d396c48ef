// The messages of a chat request, in OpenAI's form.
#pragma once

#include <string>
#include <vector>

#include "server/api.h"
#include "server/field_reader.h"

namespace lily::server {

// Every role that OpenAI has ever had. What is not known of a message is left out: clients send back whatever they got.
// Parts that are no text are faults.
std::vector<Message> read_chat_messages(const OrderedJson& list, const std::string& path, Faults& faults);

}  // namespace lily::server
