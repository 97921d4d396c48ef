// Bodies of POST /v1/messages -> requests, as Claude Code and Anthropic's clients send them.
#include "server/protocol_fixture.h"

namespace lily::test {
namespace {

using server::messages_api;
using ::testing::HasSubstr;

Parsed parse(const std::string& body) { return {messages_api(), json(body)}; }

// With the fields that a request needs.
Parsed parse_with(const std::string& fields) {
  return parse(R"({"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"}])" +
               (fields.empty() ? "" : "," + fields) + "}");
}

Parsed parse_messages(const std::string& messages) { return parse(R"({"max_tokens":9,"messages":)" + messages + "}"); }

void expect_refused(const Parsed& parsed, const std::string& field) {
  ASSERT_FALSE(parsed.ok()) << field;
  EXPECT_EQ(parsed.error().status, 400) << field;
  EXPECT_EQ(parsed.error().param, field);
  const OrderedJson document = messages_api().error_document(parsed.error());
  EXPECT_EQ(document["type"], "error");
  EXPECT_EQ(document["error"]["type"], "invalid_request_error");
  EXPECT_THAT(document["error"]["message"].get<std::string>(), HasSubstr(field));
}

TEST(MessagesRequest, ClaudeCodeTurn) {
  Parsed parsed(messages_api(), fixture("claude_code_turn.json"));
  EXPECT_EQ(
      shown(parsed.chat().messages),
      "system: You are an agent for the command line.\n\nBe brief.\nWork in the current folder.\n"
      "user: <system-reminder>\nToday is Monday.\n</system-reminder>\nRead a.txt and b.txt\n"
      "assistant: <Two files.> Reading both. [Read {\"path\":\"a.txt\",\"limit\":5}] [Read {\"path\":\"b.txt\"}]\n"
      "tool: one\ntwo\n\n"
      "tool: Error: no such file\n"
      "user: <system-reminder>\nThe file list changed.\n</system-reminder>\nAnd then?\n"
      "system: The budget is nearly used up.\n");
  EXPECT_TRUE(parsed.request().stream);
  EXPECT_TRUE(parsed.chat().enable_thinking);
  EXPECT_EQ(parsed.chat().reply.max_tokens, 32000);
  EXPECT_FALSE(parsed.chat().reply.thinking_budget);
  ASSERT_EQ(parsed.chat().tools.size(), 2u);
  EXPECT_EQ(parsed.chat().tools[1].dump(),
            R"({"type":"function","function":{"name":"Bash","description":"Runs a command.","parameters":)"
            R"({"type":"object","properties":{"command":{"type":"string"}}}}})");
  ASSERT_EQ(parsed.request().warnings.size(), 1u);
  EXPECT_THAT(parsed.request().warnings[0], HasSubstr("web_search_20250305"));
}

TEST(MessagesRequest, ClaudeCodeTitle) {
  Parsed parsed(messages_api(), fixture("claude_code_title.json"));
  EXPECT_EQ(shown(parsed.chat().messages), "system: Write a title of at most six words.\nuser: Read a.txt and b.txt\n");
  EXPECT_FALSE(parsed.chat().enable_thinking);
  EXPECT_TRUE(parsed.chat().json_schema);
  EXPECT_TRUE(parsed.chat().tools.empty());  // TC-22
}

TEST(MessagesRequest, CT_15_BillingLineIsDroppedAndNothingElse) {
  const auto system = [](const std::string& value) { return shown(parse_with("\"system\":" + value).chat().messages); };
  const std::string line = "x-anthropic-billing-header: cc_version=1; cch=";
  const std::string rest = "user: hi\n";
  EXPECT_EQ(system("[{\"type\":\"text\",\"text\":\"" + line + "aaaaa;\"},{\"type\":\"text\",\"text\":\"A\"}]"),
            system("[{\"type\":\"text\",\"text\":\"" + line + "bbbbb;\"},{\"type\":\"text\",\"text\":\"A\"}]"));
  EXPECT_EQ(system("\"" + line + "1;\\nA\\nB\""), "system: A\nB\n" + rest);
  EXPECT_EQ(system("\"" + line + "1;\\n\\n  A\""), "system: \n  A\n" + rest);
  EXPECT_EQ(system("\"" + line + "1;\""), rest);
  EXPECT_EQ(system("[{\"type\":\"text\",\"text\":\"" + line + "1;\\nA\"}]"), "system: A\n" + rest);
  // Elsewhere these words are what somebody wrote.
  const std::string quoted = "About x-anthropic-billing-header: it is a line.";
  EXPECT_EQ(system("\"" + quoted + "\""), "system: " + quoted + "\n" + rest);
  EXPECT_EQ(shown(parse_messages("[{\"role\":\"user\",\"content\":\"" + line + "\"}]").chat().messages),
            "user: " + line + "\n");
}

TEST(MessagesRequest, CT_11_ToolResultsOfEveryShape) {
  const auto result = [](const std::string& fields) {
    return shown(
        parse_messages(R"([{"role":"user","content":[{"type":"tool_result","tool_use_id":"t")" + fields + "}]}]")
            .chat()
            .messages);
  };
  EXPECT_EQ(result(R"(,"content":"ok")"), "tool: ok\n");
  EXPECT_EQ(result(R"(,"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}])"), "tool: ab\n");
  EXPECT_EQ(result(R"(,"content":[])"), "tool:\n");
  EXPECT_EQ(result(R"(,"content":"")"), "tool:\n");
  EXPECT_EQ(result(R"(,"content":null)"), "tool:\n");
  EXPECT_EQ(result(""), "tool:\n");
  EXPECT_EQ(result(R"(,"content":"bad","is_error":true)"), "tool: Error: bad\n");
  EXPECT_EQ(result(R"(,"is_error":true)"), "tool: Error\n");
  EXPECT_EQ(result(R"(,"content":"fine","is_error":false)"), "tool: fine\n");
}

TEST(MessagesRequest, MessagesOfEveryShape) {
  Parsed parsed =
      parse_messages(R"([{"role":"user","content":[]},{"role":"user","content":""},{"role":"user","content":null},
    {"role":"assistant","content":[]},{"role":"assistant","content":[{"type":"text","text":"a"}]},{"role":"assistant","content":"b"},
    {"role":"system","content":[{"type":"text","text":"s","cache_control":{"type":"ephemeral"}}]},{"role":"developer","content":"d"},
    {"role":"user","content":[{"type":"text","text":"x","citations":[]}]},{"role":"assistant","content":[{"type":"redacted_thinking","data":"A"}]}])");
  EXPECT_EQ(shown(parsed.chat().messages), "user:\nuser:\nuser:\nassistant: ab\nsystem: s\nsystem: d\nuser: x\n");
}

TEST(MessagesRequest, ReasoningOfALaterStepStaysBehindTheResults) {
  Parsed parsed = parse_messages(R"([{"role":"user","content":"q"},
    {"role":"assistant","content":[{"type":"thinking","thinking":"r1","signature":"s"},{"type":"tool_use","id":"1","name":"f","input":{}}]},
    {"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":"one"}]},
    {"role":"assistant","content":[{"type":"thinking","thinking":"r2","signature":"s"},{"type":"tool_use","id":"2","name":"f","input":{"a":[1,null]}}]},
    {"role":"user","content":[{"type":"tool_result","tool_use_id":"2","content":"two"}]}])");
  EXPECT_EQ(shown(parsed.chat().messages),
            "user: q\nassistant: <r1> [f {}]\ntool: one\nassistant: <r2> [f {\"a\":[1,null]}]\ntool: two\n");
}

TEST(MessagesRequest, CT_14_ThinkingByEveryRoute) {
  // As in Anthropic's API: none unless asked for.
  for (const char* off : {"", R"("thinking":{"type":"disabled"})", R"("thinking":null)",
                          R"("thinking":{"type":"adaptive"},"chat_template_kwargs":{"enable_thinking":false})"}) {
    Parsed parsed = parse_with(off);
    EXPECT_FALSE(parsed.chat().enable_thinking) << off;
    EXPECT_FLOAT_EQ(parsed.chat().reply.sampling.temperature, 0.7f) << off;
  }
  Parsed enabled = parse_with(R"("thinking":{"type":"enabled","budget_tokens":2048})");
  EXPECT_TRUE(enabled.chat().enable_thinking);
  EXPECT_EQ(enabled.chat().reply.thinking_budget, 2048);
  EXPECT_FLOAT_EQ(enabled.chat().reply.sampling.temperature, 0.6f);
  EXPECT_TRUE(parse_with(R"("thinking":{"type":"adaptive","display":"omitted"})").chat().enable_thinking);
  EXPECT_TRUE(parse_with(R"("chat_template_kwargs":{"enable_thinking":true})").chat().enable_thinking);
  expect_refused(parse_with(R"("thinking":{"type":"sometimes"})"), "thinking.type");
  expect_refused(parse_with(R"("thinking":{"type":"enabled","budget_tokens":0})"), "thinking.budget_tokens");
}

TEST(MessagesRequest, ToolChoice) {
  using ToolKind = ToolChoice::Kind;
  const auto choose = [](const std::string& choice) {
    return parse_with(R"("tools":[{"name":"f","input_schema":{"type":"object"}}],"tool_choice":)" + choice);
  };
  EXPECT_EQ(choose(R"({"type":"auto"})").chat().tool_choice.kind, ToolKind::automatic);
  EXPECT_EQ(choose(R"({"type":"any"})").chat().tool_choice.kind, ToolKind::required);
  EXPECT_EQ(choose(R"({"type":"none"})").chat().tool_choice.kind, ToolKind::none);
  Parsed named = choose(R"({"type":"tool","name":"f","disable_parallel_tool_use":true})");
  EXPECT_EQ(named.chat().tool_choice.kind, ToolKind::named);
  EXPECT_EQ(named.chat().tool_choice.name, "f");
  EXPECT_FALSE(named.chat().tool_choice.parallel);
  expect_refused(choose(R"({"type":"tool","name":"g"})"), "tool_choice");
  expect_refused(choose(R"({"type":"tool"})"), "tool_choice.name");
  expect_refused(choose(R"("auto")"), "tool_choice");
  expect_refused(parse_with(R"("tools":[{"type":"bash_20250124","name":"bash"}],"tool_choice":{"type":"any"})"),
                 "tool_choice");
}

TEST(MessagesRequest, JS_04_OutputFormat) {
  const std::string format = R"({"type":"json_schema","schema":{"type":"object","properties":{"b":{},"a":{}}}})";
  for (const char* field : {R"("output_config":{"effort":"high","format":)", R"("output_format":)"}) {
    const std::string close = field[8] == 'c' ? "}" : "";
    Parsed parsed = parse_with(field + format + close);
    ASSERT_TRUE(parsed.chat().json_schema) << field;
    EXPECT_EQ(parsed.chat().json_schema->dump(), R"({"type":"object","properties":{"b":{},"a":{}}})");
  }
  expect_refused(parse_with(R"("output_config":{"format":{"type":"banana"}})"), "output_config.format.type");
  expect_refused(parse_with(R"("output_config":{"tone":1})"), "output_config.tone");
}

TEST(MessagesRequest, FieldsThatPass) {
  Parsed parsed =
      parse_with(R"("temperature":1,"top_p":0.9,"top_k":40,"stop_sequences":["END","\n\n"],"service_tier":"auto",
    "metadata":{"user_id":"u"},"betas":["b"],"cache_control":{"type":"ephemeral"},"container":null,"mcp_servers":[],
    "context_management":{"edits":[{"type":"clear_tool_uses_20250919"}]},"speed":"standard","stream":false)");
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  EXPECT_EQ(parsed.chat().reply.splitter.stops, (std::vector<std::string>{"END", "\n\n"}));
  EXPECT_EQ(parsed.chat().reply.sampling.top_k, 40);
  Parsed extremes = parse_with(R"("top_k":-1,"top_p":0,"temperature":2)");
  ASSERT_TRUE(extremes.ok()) << extremes.error().message;
  EXPECT_EQ(extremes.chat().reply.sampling.top_k, 0);
  EXPECT_TRUE(check(extremes.chat().reply.sampling));
}

TEST(MessagesRequest, FieldsThatDoNot) {
  const std::pair<const char*, const char*> cases[] = {
      {R"("container":"c1")", "container"},
      {R"("mcp_servers":[{"type":"url","url":"http://x"}])", "mcp_servers"},
      {R"("stop_sequences":[""])", "stop_sequences[0]"},
      {R"("stop_sequences":"END")", "stop_sequences"},
      {R"("stop":["END"])", "stop"},
      {R"("system":[{"type":"image"}])", "system[0].type"},
      {R"("system":7)", "system"},
      {R"("tools":[{"input_schema":{}}])", "tools[0].name"},
      {R"("tools":[{"name":"f","input_schema":[]}])", "tools[0].input_schema"},
      {R"("temperature":-0.5)", "temperature"},
      {R"("temperature":2.5)", "temperature"},
      {R"("top_k":-2)", "top_k"},
      {R"("top_p":-1)", "top_p"},
      {R"("banana":1)", "banana"},
  };
  for (const auto& [field, name] : cases) expect_refused(parse_with(field), name);
  expect_refused(parse(R"({"messages":[]})"), "max_tokens");
  expect_refused(parse(R"({"messages":[],"max_tokens":0})"), "max_tokens");
  expect_refused(parse(R"({"max_tokens":5})"), "messages");
  EXPECT_FALSE(parse("[]").ok());
}

TEST(MessagesRequest, BlocksThatDoNotPass) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"role":"user","content":[{"type":"image","source":{}}]})", "messages[0].content[0].type"},
      {R"({"role":"user","content":[{"type":"text","text":"a"},{"type":"document","source":{}}]})",
       "messages[0].content[1].type"},
      {R"({"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"image"}]}]})",
       "messages[0].content[0].content[0].type"},
      {R"({"role":"user","content":[{"type":"tool_result"}]})", "messages[0].content[0].tool_use_id"},
      {R"({"role":"assistant","content":[{"type":"server_tool_use","id":"s","name":"web_search","input":{}}]})",
       "messages[0].content[0].type"},
      {R"({"role":"user","content":["a"]})", "messages[0].content[0]"},
      {R"({"role":"user","content":7})", "messages[0].content"},
      {R"({"role":"robot","content":"a"})", "messages[0].role"},
      {R"({"content":"a"})", "messages[0].role"},
      {R"("a")", "messages[0]"},
  };
  for (const auto& [message, name] : cases) expect_refused(parse_messages(std::string("[") + message + "]"), name);
}

TEST(MessagesRequest, CountTokensNeedsNoMaxTokens) {
  OrderedJson body = fixture("claude_code_turn.json");
  Parsed parsed(messages_api(), body);
  for (const char* field : {"max_tokens", "stream"}) body.erase(field);
  auto counted = server::parse_count_tokens(body, Parsed::service());
  ASSERT_EQ(counted.index(), 0u);
  EXPECT_EQ(shown(std::get<0>(counted).messages), shown(parsed.chat().messages));
  EXPECT_EQ(std::get<0>(counted).tools, parsed.chat().tools);
  EXPECT_TRUE(std::get<0>(counted).enable_thinking);
  EXPECT_EQ(server::parse_count_tokens(json(R"({"messages":7})"), Parsed::service()).index(), 1u);
}

TEST(MessagesRequest, US_03_ErrorsByStatus) {
  const std::pair<int, const char*> cases[] = {{400, "invalid_request_error"},
                                               {401, "authentication_error"},
                                               {403, "permission_error"},
                                               {404, "not_found_error"},
                                               {413, "request_too_large"},
                                               {429, "rate_limit_error"},
                                               {500, "api_error"},
                                               {503, "overloaded_error"}};
  for (const auto& [status, type] : cases) {
    EXPECT_EQ(messages_api().error_document({.status = status, .message = "m"})["error"]["type"], type);
  }
}

TEST(MessagesRequest, CX_03_OverflowWords) {
  const server::ApiError error = server::to_api_error(
      {.kind = ServiceError::Kind::context_overflow, .error = {}, .prompt_tokens = 5000, .context = 4096});
  const OrderedJson document = messages_api().error_document(error);
  EXPECT_EQ(document["error"]["type"], "invalid_request_error");
  for (const char* words : {"context_length_exceeded", "exceeds the available context size",
                            "prompt is too long: 5000 tokens > 4096 maximum"}) {
    EXPECT_THAT(document["error"]["message"].get<std::string>(), HasSubstr(words));
  }
}

}  // namespace
}  // namespace lily::test
