// Tools -> the grammar of a reply that calls them. token_constraint.h says what such a reply is.
#pragma once

#include <span>

#include "base/result.h"
#include "text/chat.h"
#include "text/grammar.h"

namespace lily {

Result<Grammar> call_grammar(std::span<const OrderedJson> tools, bool parallel);

}  // namespace lily
