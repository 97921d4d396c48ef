#include "server/thinking.h"

namespace lily::server {
namespace {

constexpr int64_t low_budget = 4096;

void set_enabled(Thinking& thinking, std::optional<bool> enabled) {
  if (enabled && !*enabled) thinking.enabled = false;
}

// No tokens to think with: no thinking.
void set_budget(Thinking& thinking, std::optional<int64_t> budget) {
  if (!budget) return;
  if (*budget == 0) thinking.enabled = false;
  else thinking.budget = *budget;
}

void read_effort(FieldReader& fields, const char* name, Thinking& thinking) {
  const std::optional<std::string> effort = fields.text(name);
  if (!effort || thinking.set_effort(*effort)) return;
  fields.faults().add(fields.path_of(name), "no such effort", "none, minimal, low, medium, high, xhigh or max",
                      *effort);
}

// What stands at the top level of a body and inside chat_template_kwargs alike.
void read_switches(FieldReader& fields, Thinking& thinking) {
  read_effort(fields, "reasoning_effort", thinking);
  set_enabled(thinking, fields.boolean("enable_thinking"));
  if (const auto preserve = fields.boolean("preserve_thinking")) thinking.preserve = preserve;
  set_budget(thinking, fields.integer("thinking_budget", 0));
}

// OpenRouter's form.
void read_reasoning(const OrderedJson& object, const std::string& path, Faults& faults, Thinking& thinking) {
  FieldReader fields(object, path, faults);
  read_effort(fields, "effort", thinking);
  set_enabled(thinking, fields.boolean("enabled"));
  set_budget(thinking, fields.integer("max_tokens", 0));
  fields.ignore({"summary", "generate_summary"});  // of the Responses API: the reasoning itself is sent
  fields.refuse_others();
}

// Anthropic's form.
void read_typed(const OrderedJson& object, const std::string& path, Faults& faults, Thinking& thinking) {
  FieldReader fields(object, path, faults);
  const std::string type = fields.text("type").value_or("enabled");
  set_budget(thinking, fields.integer("budget_tokens", 0));
  if (type == "disabled") thinking.enabled = false;
  else if (type != "enabled" && type != "adaptive") {
    faults.add(fields.path_of("type"), "no such type", "enabled, adaptive or disabled", type);
  }
  fields.refuse_others();
}

}  // namespace

bool Thinking::set_effort(const std::string& effort) {
  if (effort == "none" || effort == "minimal") return enabled = false, true;
  // An exact budget from elsewhere is better than this guess.
  if (effort == "low") return budget = budget.value_or(low_budget), true;
  return effort == "medium" || effort == "high" || effort == "xhigh" || effort == "max";
}

Thinking read_thinking(FieldReader& fields) {
  Thinking thinking;
  if (const OrderedJson* kwargs = fields.object("chat_template_kwargs")) {
    FieldReader inner(*kwargs, fields.path_of("chat_template_kwargs"), fields.faults());
    read_switches(inner, thinking);
    inner.refuse_others();
  }
  read_switches(fields, thinking);
  if (const OrderedJson* reasoning = fields.object("reasoning")) {
    read_reasoning(*reasoning, fields.path_of("reasoning"), fields.faults(), thinking);
  }
  if (const OrderedJson* typed = fields.object("thinking")) {
    read_typed(*typed, fields.path_of("thinking"), fields.faults(), thinking);
  }
  return thinking;
}

}  // namespace lily::server
