// Bodies of POST /v1/responses -> requests, as Codex and OpenAI's clients send them.
#include "server/protocol_fixture.h"

namespace lily::test {
namespace {

using server::responses_api;
using ::testing::HasSubstr;

Parsed parse(const std::string& body) { return {responses_api(), json(body)}; }

// Expects a 400 whose message and param name the field.
void expect_refused(const std::string& body, const std::string& field) {
  const Parsed parsed = parse(body);
  ASSERT_FALSE(parsed.ok()) << body;
  EXPECT_EQ(parsed.error().status, 400) << body;
  EXPECT_EQ(parsed.error().param, field) << body;
  EXPECT_THAT(parsed.error().message, HasSubstr(field)) << body;
  EXPECT_EQ(responses_api().error_document(parsed.error())["error"]["type"], "invalid_request_error");
}

TEST(ResponsesRequest, CodexTurn) {
  Parsed parsed(responses_api(), fixture("codex_turn.json"));
  EXPECT_EQ(shown(parsed.chat().messages),
            "system: You are a coding agent that runs in a terminal.\n"
            "system: Commands run in a sandbox; the network is off.\n"
            "user: <environment>cwd: repo</environment>\n"
            "user: Which files are here?\n"
            "assistant: <I should list them.> I will look. [exec_command {\"cmd\":\"ls\",\"yield_ms\":1000}]"
            " [exec_command {\"cmd\":\"pwd\"}]\n"
            "tool: README.md\nsrc\n\n"
            "tool: repo\n"
            "system: The user has approved reading.\n"
            "user: Go on.\n");
  EXPECT_TRUE(parsed.request().stream);
  EXPECT_TRUE(parsed.chat().enable_thinking);
  EXPECT_EQ(parsed.chat().messages[4].tool_calls[1].id, "call_2");
  EXPECT_FALSE(parsed.chat().reply.max_tokens);  // TH-10: no hidden cap
}

TEST(ResponsesRequest, CT_12_ToolsThatAreNoFunctionsAreLeftOut) {
  Parsed parsed(responses_api(), fixture("codex_turn.json"));
  ASSERT_EQ(parsed.chat().tools.size(), 1u);
  EXPECT_EQ(
      parsed.chat().tools[0].dump(),
      R"({"type":"function","function":{"name":"exec_command","description":"Runs a command.","parameters":)"
      R"({"type":"object","properties":{"cmd":{"type":"string"},"yield_ms":{"type":"number"}},"required":["cmd"],)"
      R"("additionalProperties":false}}})");
  ASSERT_EQ(parsed.request().warnings.size(), 1u);
  for (const char* type :
       {"custom", "namespace", "web_search", "image_generation", "mcp", "local_shell", "tool_search"}) {
    EXPECT_THAT(parsed.request().warnings[0], HasSubstr(type));
  }
  EXPECT_EQ(parsed.format().document()["tools"].size(), 1u);
}

TEST(ResponsesRequest, CT_12_NothingButOtherTools) {
  Parsed parsed = parse(R"({"input":"hi","tools":[{"type":"a_type_of_next_year"}],"tool_choice":"auto"})");
  EXPECT_TRUE(parsed.chat().tools.empty());
  EXPECT_EQ(parsed.request().warnings.size(), 1u);
}

TEST(ResponsesRequest, WarningsAndErrorsStayShortLines) {
  Parsed parsed = parse(R"({"input":"x","tools":[{"type":"a\nb"},{"type":")" + std::string(5000, 'c') + "\"}]}");
  const std::string warning = parsed.request().warnings.at(0);
  EXPECT_EQ(warning.find('\n'), warning.npos);
  EXPECT_LT(warning.size(), 500u);
  std::string name = "x";
  for (int i = 0; i < 1000; ++i) name += "é";
  const OrderedJson document = responses_api().error_document(parse("{\"" + name + "\":1}").error());
  EXPECT_LT(document.dump().size(), 2000u);  // dump() throws at half a character
}

TEST(ResponsesRequest, ProbeWithEmptyInput) {
  for (const char* input : {"[]", "\"\"", "null"}) {
    Parsed parsed = parse(std::string(R"({"model":"m","max_output_tokens":1,"input":)") + input + "}");
    ASSERT_TRUE(parsed.ok()) << input;
    EXPECT_EQ(parsed.chat().reply.max_tokens, 1);
  }
  EXPECT_TRUE(Parsed(responses_api(), fixture("codex_probe.json")).ok());
}

TEST(ResponsesRequest, CT_03_DeveloperIsSystem) {
  Parsed parsed = parse(R"({"input":[{"role":"system","content":"a"},{"role":"developer","content":"b"},
                                     {"role":"user","content":"c"},{"role":"developer","content":"d"}]})");
  EXPECT_EQ(shown(parsed.chat().messages), "system: a\nsystem: b\nuser: c\nsystem: d\n");
}

TEST(ResponsesRequest, CT_05_ArgumentsOfAnyKind) {
  const std::pair<const char*, const char*> cases[] = {{R"("{\"b\":1,\"a\":\"\u00e9\"}")", "{\"b\":1,\"a\":\"é\"}"},
                                                       {R"({"b":1,"a":2})", R"({"b":1,"a":2})"},
                                                       {R"("")", "{}"},
                                                       {"null", "{}"},
                                                       {R"("not json")", R"("not json")"},
                                                       {R"("[1]")", "[1]"}};
  for (const auto& [given, expected] : cases) {
    Parsed parsed = parse(std::string(R"({"input":[{"type":"function_call","call_id":"c","name":"f","arguments":)") +
                          given + "}]}");
    EXPECT_EQ(shown(parsed.chat().messages), std::string("assistant: [f ") + expected + "]\n");
  }
}

TEST(ResponsesRequest, ArgumentsNestedTooDeepStayText) {
  const std::string deep = std::string(200'000, '[') + std::string(200'000, ']');
  Parsed parsed = parse(R"({"input":[{"type":"function_call","call_id":"c","name":"f","arguments":")" + deep + "\"}]}");
  EXPECT_EQ(parsed.chat().messages[0].tool_calls[0].arguments, deep);
}

TEST(ResponsesRequest, CT_11_OutputsOfEveryShape) {
  Parsed parsed = parse(R"({"input":[
    {"type":"function_call","call_id":"a","name":"f","arguments":"{}"},
    {"type":"function_call_output","call_id":"a","output":[{"type":"input_text","text":"ok"}]},
    {"type":"function_call_output","call_id":"?","output":"plain"},
    {"type":"function_call_output","call_id":"?","output":[]},
    {"type":"function_call_output","call_id":"?","output":null}]})");
  EXPECT_EQ(shown(parsed.chat().messages), "assistant: [f {}]\ntool: ok\ntool: plain\ntool:\ntool:\n");
  expect_refused(R"({"input":[{"type":"function_call_output","output":[{"type":"input_image","image_url":"x"}]}]})",
                 "input[0].output[0].type");
}

TEST(ResponsesRequest, ResultsFollowTheOrderOfTheCalls) {
  Parsed parsed = parse(R"({"input":[
    {"type":"function_call","call_id":"a","name":"f","arguments":"{}"},
    {"type":"function_call","call_id":"b","name":"g","arguments":"{}"},
    {"type":"function_call_output","call_id":"b","output":"of g"},
    {"type":"function_call_output","call_id":"a","output":"of f"},
    {"type":"message","role":"assistant","content":"done"}]})");
  EXPECT_EQ(shown(parsed.chat().messages), "assistant: [f {}] [g {}]\ntool: of f\ntool: of g\nassistant: done\n");
}

TEST(ResponsesRequest, ReasoningFromContentOrSummary) {
  Parsed parsed = parse(R"({"input":[{"role":"user","content":"q"},
    {"type":"reasoning","summary":[{"type":"summary_text","text":"short"}],"content":[{"type":"reasoning_text","text":"long"}]},
    {"role":"assistant","content":[{"type":"output_text","text":"a"}]},
    {"type":"reasoning","id":"r","summary":[{"type":"summary_text","text":"only"}],"encrypted_content":"gAAA"},
    {"type":"custom_tool_call","call_id":"x","name":"patch","input":"*** Begin"},
    {"type":"custom_tool_call_output","call_id":"x","output":"done"}]})");
  EXPECT_EQ(shown(parsed.chat().messages),
            "user: q\nassistant: <long> a\nassistant: <only> [patch {\"input\":\"*** Begin\"}]\ntool: done\n");
}

TEST(ResponsesRequest, CT_14_ThinkingOffByEveryRoute) {
  for (const char* field :
       {R"("reasoning":{"effort":"none"})", R"("chat_template_kwargs":{"enable_thinking":false})",
        R"("reasoning_effort":"none")", R"("enable_thinking":false)", R"("reasoning":{"effort":"minimal"})",
        R"("reasoning":{"effort":"none"},"chat_template_kwargs":{"enable_thinking":true})",
        R"("reasoning":{"effort":"high"},"chat_template_kwargs":{"enable_thinking":false})"}) {
    Parsed parsed = parse(std::string(R"({"input":"hi",)") + field + "}");
    EXPECT_FALSE(parsed.chat().enable_thinking) << field;
    EXPECT_FLOAT_EQ(parsed.chat().reply.sampling.top_p, 0.8f) << field;  // the other mode's defaults
  }
  Parsed parsed = parse(R"({"input":"hi","reasoning":{"effort":null}})");
  EXPECT_TRUE(parsed.chat().enable_thinking);
  EXPECT_FLOAT_EQ(parsed.chat().reply.sampling.top_p, 0.95f);
  EXPECT_EQ(parse(R"({"input":"hi","reasoning":{"effort":"low"}})").chat().reply.thinking_budget, 4096);
  EXPECT_EQ(parse(R"({"input":"hi","reasoning_effort":"low","thinking_budget":7})").chat().reply.thinking_budget, 7);
  expect_refused(R"({"input":"hi","reasoning":{"effort":"banana"}})", "reasoning.effort");
  expect_refused(R"({"input":"hi","chat_template_kwargs":{"thinking":false}})", "chat_template_kwargs.thinking");
}

TEST(ResponsesRequest, JS_04_TextFormat) {
  Parsed schema = parse(R"({"input":"x","text":{"format":{"type":"json_schema","name":"n","strict":true,
                            "schema":{"type":"object","properties":{"b":{},"a":{}}}}}})");
  ASSERT_TRUE(schema.chat().json_schema);
  EXPECT_EQ(schema.chat().json_schema->dump(), R"({"type":"object","properties":{"b":{},"a":{}}})");
  EXPECT_TRUE(parse(R"({"input":"x","text":{"format":{"type":"json_object"}}})").chat().json);
  Parsed plain = parse(R"({"input":"x","text":{"format":{"type":"text"},"verbosity":"low"}})");
  EXPECT_FALSE(plain.chat().json || plain.chat().json_schema);
  expect_refused(R"({"input":"x","text":{"format":{"type":"banana"}}})", "text.format.type");
  expect_refused(R"({"input":"x","text":{"format":{"type":"json_schema","name":"n"}}})", "text.format.schema");
  expect_refused(R"({"input":"x","text":{"format":"json"}})", "text.format");
  expect_refused(R"({"input":"x","text":{"style":1}})", "text.style");
}

TEST(ResponsesRequest, ToolChoice) {
  const std::string tools =
      R"("tools":[{"type":"function","name":"f"},{"type":"function","name":"g"},{"type":"mcp"}],)";
  const auto choose = [&](const std::string& choice) {
    return parse(R"({"input":"x",)" + tools + R"("parallel_tool_calls":false,"tool_choice":)" + choice + "}");
  };
  using Kind = ToolChoice::Kind;
  EXPECT_EQ(choose("\"auto\"").chat().tool_choice.kind, Kind::automatic);
  EXPECT_EQ(choose("\"none\"").chat().tool_choice.kind, Kind::none);
  EXPECT_EQ(choose("\"required\"").chat().tool_choice.kind, Kind::required);
  EXPECT_FALSE(choose("null").chat().tool_choice.parallel);
  Parsed named = choose(R"({"type":"function","name":"g"})");
  EXPECT_EQ(named.chat().tool_choice.kind, Kind::named);
  EXPECT_EQ(named.chat().tool_choice.name, "g");
  Parsed allowed = choose(R"({"type":"allowed_tools","mode":"required","tools":[{"type":"function","name":"g"}]})");
  EXPECT_EQ(allowed.chat().tool_choice.kind, Kind::required);
  ASSERT_EQ(allowed.chat().tools.size(), 1u);
  EXPECT_EQ(allowed.chat().tools[0]["function"]["name"], "g");
  for (const char* bad : {"\"always\"", R"({"type":"function","name":"h"})", "7"}) {
    EXPECT_THAT(choose(bad).error().param, HasSubstr("tool_choice")) << bad;
  }
  expect_refused(R"({"input":"x","tool_choice":{"type":"mcp","server_label":"s"}})", "tool_choice.type");
  expect_refused(R"({"input":"x","tools":[{"type":"mcp"}],"tool_choice":"required"})", "tool_choice");
}

TEST(ResponsesRequest, TC_22_EmptyToolsAreNone) {
  EXPECT_TRUE(parse(R"({"input":"x","instructions":"","tools":[],"tool_choice":"auto"})").chat().tools.empty());
  EXPECT_TRUE(parse(R"({"input":"x","tools":null,"tool_choice":null})").chat().tools.empty());
}

TEST(ResponsesRequest, FunctionWithoutParameters) {
  EXPECT_EQ(parse(R"({"input":"x","tools":[{"type":"function","name":"f","parameters":null}]})").chat().tools[0].dump(),
            R"({"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{}}}})");
  expect_refused(R"({"input":"x","tools":[{"type":"function"}]})", "tools[0].name");
  expect_refused(R"({"input":"x","tools":[{"name":"f"}]})", "tools[0].type");
  expect_refused(R"({"input":"x","tools":["f"]})", "tools[0]");
}

TEST(ResponsesRequest, SamplingOverTheDefaults) {
  Parsed parsed = parse(R"({"input":"x","temperature":0,"top_p":0.5,"top_k":3,"seed":7,"presence_penalty":1.5})");
  const SamplingParams& sampling = parsed.chat().reply.sampling;
  EXPECT_EQ(sampling.temperature, 0);
  EXPECT_FLOAT_EQ(sampling.top_p, 0.5f);
  EXPECT_EQ(sampling.top_k, 3);
  EXPECT_EQ(sampling.seed, 7u);
  EXPECT_FLOAT_EQ(sampling.presence_penalty, 1.5f);
  // Without a seed no two replies need to be alike.
  EXPECT_NE(parse(R"({"input":"x"})").chat().reply.sampling.seed, parse(R"({"input":"x"})").chat().reply.sampling.seed);
  EXPECT_EQ(parse(R"({"input":"x","seed":9223372036854775807})").chat().reply.sampling.seed, 0x7fffffffffffffffu);
  EXPECT_EQ(parse(R"({"input":"x","seed":-1})").chat().reply.sampling.seed, 0xffffffffffffffffu);
  expect_refused(R"({"input":"x","temperature":-1})", "temperature");
  expect_refused(R"({"input":"x","temperature":1e300})", "temperature");
  expect_refused(R"({"input":"x","top_p":"high"})", "top_p");
}

TEST(ResponsesRequest, HugeLimitsAreSafeToAddTo) {
  const int64_t limit = *parse(R"({"input":"x","max_output_tokens":9223372036854775807})").chat().reply.max_tokens;
  EXPECT_GT(limit, int64_t{1} << 32);
  EXPECT_LT(limit, int64_t{1} << 62);
  EXPECT_EQ(parse(R"({"input":"x","max_output_tokens":4096.0})").chat().reply.max_tokens, 4096);
}

TEST(ResponsesRequest, FieldsThatPass) {
  EXPECT_TRUE(parse(R"({"model":"any","input":"x","store":true,"metadata":{"a":"b"},"user":"u","service_tier":"flex",
    "truncation":"disabled","background":false,"top_logprobs":0,"previous_response_id":null,"conversation":null,
    "prompt_cache_key":"k","prompt_cache_retention":"24h","safety_identifier":"s","max_tool_calls":3,
    "include":["reasoning.encrypted_content"],"stream_options":{"include_obfuscation":false},"moderation":null})")
                  .ok());
}

TEST(ResponsesRequest, FieldsThatDoNot) {
  const std::pair<const char*, const char*> cases[] = {
      {R"("previous_response_id":"resp_1")", "previous_response_id"},
      {R"("conversation":"conv_1")", "conversation"},
      {R"("prompt":{"id":"p"})", "prompt"},
      {R"("background":true)", "background"},
      {R"("truncation":"auto")", "truncation"},
      {R"("top_logprobs":2)", "top_logprobs"},
      {R"("include":["message.output_text.logprobs"])", "include[0]"},
      {R"("max_output_tokens":0)", "max_output_tokens"},
      {R"("max_output_tokens":1.5)", "max_output_tokens"},
      {R"("max_output_tokens":1e30)", "max_output_tokens"},
      {R"("stream":"yes")", "stream"},
      {R"("instructions":["a"])", "instructions"},
      {R"("messages":[])", "messages"},
      {R"("stop":["a"])", "stop"},
      {R"("reasoning":{"magic":1})", "reasoning.magic"},
      {R"("stream_options":{"x":1})", "stream_options.x"},
  };
  for (const auto& [field, name] : cases) expect_refused(std::string(R"({"input":"x",)") + field + "}", name);
}

TEST(ResponsesRequest, ItemsThatDoNotPass) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"type":"item_reference","id":"rs_1"})", "input[0].type"},
      {R"({"type":"web_search_call","id":"ws"})", "input[0].type"},
      {R"({"type":7})", "input[0].type"},
      {R"({})", "input[0].role"},
      {R"({"role":"critic","content":"x"})", "input[0].role"},
      {R"({"role":"user","content":[{"type":"input_image","image_url":"data:"}]})", "input[0].content[0].type"},
      {R"({"role":"user","content":{"text":"x"}})", "input[0].content"},
      {R"({"type":"function_call","arguments":"{}"})", "input[0].name"},
      {"\"text\"", "input[0]"},
  };
  for (const auto& [item, name] : cases) expect_refused(std::string(R"({"input":[)") + item + "]}", name);
  expect_refused(R"({"input":7})", "input");
  EXPECT_FALSE(parse("[]").ok());
  EXPECT_FALSE(parse("null").ok());
}

TEST(ResponsesRequest, CX_03_OverflowWords) {
  const server::ApiError error = server::to_api_error(
      {.kind = ServiceError::Kind::context_overflow, .error = {}, .prompt_tokens = 5000, .context = 4096});
  const OrderedJson document = responses_api().error_document(error)["error"];
  EXPECT_EQ(error.status, 400);
  EXPECT_EQ(document["code"], "context_length_exceeded");
  for (const char* words : {"context_length_exceeded", "exceeds the available context size", "5000", "4096"}) {
    EXPECT_THAT(document["message"].get<std::string>(), HasSubstr(words));
  }
}

}  // namespace
}  // namespace lily::test
