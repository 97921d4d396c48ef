#include "server/thinking.h"

namespace lily::server {
namespace {

constexpr int64_t low_budget = 4096;  // tokens

// What the places say together.
struct Wish {
  bool on = false, off = false, low = false, shown = true;
  std::optional<bool> preserve;
  std::optional<int64_t> budget;

  void set_enabled(std::optional<bool> enabled) { (enabled.value_or(false) ? on : off) |= enabled.has_value(); }

  // No tokens to think with: no thinking.
  void set_budget(std::optional<int64_t> tokens) {
    if (tokens == 0) off = true;
    else if (tokens) budget = tokens;
  }

  void read_effort(FieldReader& fields, const char* name) {
    const auto effort = fields.choice(name, {"none", "minimal", "low", "medium", "high", "xhigh", "max"});
    if (!effort) return;
    set_enabled(*effort != "none" && *effort != "minimal");
    low |= *effort == "low";
  }

  // What stands at the top level of a body and inside chat_template_kwargs alike.
  void read_switches(FieldReader& fields) {
    read_effort(fields, "reasoning_effort");
    set_enabled(fields.boolean("enable_thinking"));
    if (const auto keeps = fields.boolean("preserve_thinking")) preserve = keeps;
    set_budget(fields.token_count("thinking_budget", 0));
  }

  // Of the Responses API and OpenRouter.
  void read_reasoning(FieldReader fields) {
    read_effort(fields, "effort");
    set_enabled(fields.boolean("enabled"));
    set_budget(fields.token_count("max_tokens", 0));
    fields.ignore({"summary", "generate_summary", "context"});  // the reasoning itself is sent
    fields.refuse_others();
  }

  // Anthropic's form.
  void read_typed(FieldReader fields, bool anthropic) {
    const auto type = fields.choice("type", {"enabled", "adaptive", "disabled"});
    set_enabled(type != "disabled");
    set_budget(fields.token_count("budget_tokens", anthropic ? 1 : 0));
    if (anthropic) {
      if (!type) fields.missing("type", "enabled, adaptive or disabled");
      // Nothing summarises here: "summarized" shows all.
      shown = fields.choice("display", {"summarized", "omitted"}) != "omitted";
    }
    fields.refuse_others();
  }
};

}  // namespace

bool read_thinking(FieldReader& body, ThinkingDefault otherwise, ChatRequest& chat) {
  Wish wish;
  if (auto kwargs = body.inner("chat_template_kwargs")) {
    wish.read_switches(*kwargs);
    kwargs->refuse_others();
  }
  wish.read_switches(body);
  if (auto reasoning = body.inner("reasoning")) wish.read_reasoning(*std::move(reasoning));
  if (auto typed = body.inner("thinking")) wish.read_typed(*std::move(typed), otherwise == ThinkingDefault::off);
  chat.enable_thinking = !wish.off && (wish.on || otherwise == ThinkingDefault::on);
  chat.preserve_thinking = wish.preserve;
  if (wish.low && !wish.budget) wish.budget = low_budget;
  if (chat.enable_thinking) chat.reply.thinking_budget = wish.budget;
  return wish.shown;
}

}  // namespace lily::server
