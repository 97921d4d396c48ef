// Bodies of /v1/chat/completions and /v1/completions -> requests.
#include <gtest/gtest.h>

#include <limits>

#include "server/api.h"
#include "server/wire.h"
#include "support/fake_chat_service.h"

namespace lily::server {
namespace {

using Parsed = std::variant<ApiRequest, ApiError>;

test::FakeChatService& service() {
  static test::FakeChatService fake;
  return fake;
}

Parsed parse(const Api& api, const std::string& text) {
  const auto body = parse_json(text);
  if (const auto* reason = std::get_if<std::string>(&body)) ADD_FAILURE() << *reason << ": " << text;
  return api.parse(std::get<OrderedJson>(body), service());
}

// `fields`: more of them, with a comma in front.
Parsed parse_chat(const std::string& fields) {
  return parse(chat_completions_api(), R"({"messages":[{"role":"user","content":"hi"}])" + fields + "}");
}

ChatRequest chat_of(const Parsed& parsed, const std::string& text) {
  if (const auto* error = std::get_if<ApiError>(&parsed)) {
    ADD_FAILURE() << text << ": " << error->message;
    return {};
  }
  return std::get<ChatRequest>(std::get<ApiRequest>(parsed).request);
}

ChatRequest chat(const std::string& fields) { return chat_of(parse_chat(fields), fields); }

ChatRequest messages(const std::string& list) {
  return chat_of(parse(chat_completions_api(), R"({"messages":)" + list + "}"), list);
}

CompletionRequest completion(const std::string& body) {
  const Parsed parsed = parse(completions_api(), body);
  if (const auto* error = std::get_if<ApiError>(&parsed)) {
    ADD_FAILURE() << body << ": " << error->message;
    return {};
  }
  return std::get<CompletionRequest>(std::get<ApiRequest>(parsed).request);
}

struct Bad {
  const char *text, *param;
};

void expect_refused(const Parsed& parsed, const Bad& bad) {
  const auto* error = std::get_if<ApiError>(&parsed);
  ASSERT_NE(error, nullptr) << bad.text;
  EXPECT_EQ(error->status, 400) << bad.text;
  EXPECT_EQ(error->param, bad.param) << bad.text << ": " << error->message;
  EXPECT_NE(error->message.find(bad.param), std::string::npos) << error->message;
}

TEST(ChatRequest, EveryFieldRefusesWhatItCannotBe) {
  const Bad cases[] = {
      {R"(,"model":1)", "model"},
      {R"(,"stream":"yes")", "stream"},
      {R"(,"stream_options":true)", "stream_options"},
      {R"(,"stream_options":{"include_usage":1})", "stream_options.include_usage"},
      {R"(,"stream_options":{"other":1})", "stream_options.other"},
      {R"(,"max_tokens":0)", "max_tokens"},
      {R"(,"max_tokens":-2)", "max_tokens"},
      {R"(,"max_tokens":1.5)", "max_tokens"},
      {R"(,"max_tokens":"10")", "max_tokens"},
      {R"(,"max_tokens":1e300)", "max_tokens"},
      {R"(,"max_completion_tokens":[])", "max_completion_tokens"},
      {R"(,"temperature":-0.1)", "temperature"},
      {R"(,"temperature":2.1)", "temperature"},
      {R"(,"temperature":true)", "temperature"},
      {R"(,"temperature":1e300)", "temperature"},
      {R"(,"top_p":1.1)", "top_p"},
      {R"(,"top_k":-2)", "top_k"},
      {R"(,"top_k":9999999999999)", "top_k"},
      {R"(,"top_k":2.5)", "top_k"},
      {R"(,"min_p":-1)", "min_p"},
      {R"(,"presence_penalty":3)", "presence_penalty"},
      {R"(,"frequency_penalty":"0")", "frequency_penalty"},
      {R"(,"repetition_penalty":0)", "repetition_penalty"},
      {R"(,"seed":1.5)", "seed"},
      {R"(,"seed":18446744073709551615)", "seed"},
      {R"(,"seed":"1")", "seed"},
      {R"(,"stop":7)", "stop"},
      {R"(,"stop":"")", "stop"},
      {R"(,"stop":["a",null])", "stop"},
      {R"(,"stop":["1","2","3","4","5","6","7","8","9","10","11","12","13","14","15","16","17"])", "stop"},
      {R"(,"n":0)", "n"},
      {R"(,"n":9)", "n"},
      {R"(,"logprobs":1)", "logprobs"},
      {R"(,"logprobs":true,"top_logprobs":21)", "top_logprobs"},
      {R"(,"logprobs":true,"top_logprobs":-1)", "top_logprobs"},
      {R"(,"top_logprobs":3)", "top_logprobs"},
      {R"(,"logit_bias":[])", "logit_bias"},
      {R"(,"logit_bias":{"x":1})", "logit_bias"},
      {R"(,"logit_bias":{"-1":1})", "logit_bias"},
      {R"(,"logit_bias":{"100000":1})", "logit_bias"},
      {R"(,"logit_bias":{"5":101})", "logit_bias.5"},
      {R"(,"logit_bias":{"5":"1"})", "logit_bias.5"},
  };
  for (const Bad& bad : cases) expect_refused(parse_chat(bad.text), bad);
}

TEST(ChatRequest, FieldsOfToolsAndThinkingDoToo) {
  const Bad cases[] = {
      {R"(,"tools":{})", "tools"},
      {R"(,"tools":[1])", "tools[0]"},
      {R"(,"tools":[{"function":{"name":"f"}}])", "tools[0].type"},
      {R"(,"tools":[{"type":"function"}])", "tools[0].function"},
      {R"(,"tools":[{"type":"function","function":{}}])", "tools[0].function.name"},
      {R"(,"tools":[{"type":"function","function":{"name":"a b"}}])", "tools[0].function.name"},
      {R"(,"tools":[{"type":"function","function":{"name":"a>"}}])", "tools[0].function.name"},
      {R"(,"tools":[{"type":"function","function":{"name":"f","parameters":"x"}}])", "tools[0].function.parameters"},
      {R"(,"tools":[{"type":"function","function":{"name":"f","description":1}}])", "tools[0].function.description"},
      {R"(,"tool_choice":"maybe")", "tool_choice"},
      {R"(,"tool_choice":1)", "tool_choice"},
      {R"(,"tool_choice":"required")", "tool_choice"},
      {R"(,"tool_choice":{"type":"function","function":{"name":"g"}})", "tool_choice.function.name"},
      {R"(,"tool_choice":{"type":"allowed_tools"})", "tool_choice.type"},
      {R"(,"parallel_tool_calls":"no")", "parallel_tool_calls"},
      {R"(,"reasoning_effort":"huge")", "reasoning_effort"},
      {R"(,"reasoning_effort":1)", "reasoning_effort"},
      {R"(,"chat_template_kwargs":1)", "chat_template_kwargs"},
      {R"(,"chat_template_kwargs":{"enable_thinking":"false"})", "chat_template_kwargs.enable_thinking"},
      {R"(,"chat_template_kwargs":{"other":1})", "chat_template_kwargs.other"},
      {R"(,"enable_thinking":0)", "enable_thinking"},
      {R"(,"preserve_thinking":"x")", "preserve_thinking"},
      {R"(,"thinking_budget":-1)", "thinking_budget"},
      {R"(,"reasoning":"high")", "reasoning"},
      {R"(,"reasoning":{"effort":"huge"})", "reasoning.effort"},
      {R"(,"reasoning":{"exclude":true})", "reasoning.exclude"},
      {R"(,"thinking":{"type":"maybe"})", "thinking.type"},
      {R"(,"thinking":{"type":"enabled","budget_tokens":"x"})", "thinking.budget_tokens"},
      {R"(,"functions":[])", "functions"},
      {R"(,"function_call":"auto")", "function_call"},
      {R"(,"modalities":["text","audio"])", "modalities"},
      {R"(,"audio":{})", "audio"},
      {R"(,"prediction":{})", "prediction"},
      {R"(,"web_search_options":{})", "web_search_options"},
      {R"(,"verbosity":"low")", "verbosity"},
      {R"(,"best_of":2)", "best_of"},
      {R"(,"unheard_of":1)", "unheard_of"},
  };
  for (const Bad& bad : cases) expect_refused(parse_chat(bad.text), bad);
}

TEST(ChatRequest, MessagesRefuseWhatTheyCannotBe) {
  const Bad cases[] = {
      {R"({})", "messages"},
      {R"({"messages":null})", "messages"},
      {R"({"messages":"hi"})", "messages"},
      {R"({"messages":[]})", "messages"},
      {R"({"messages":["hi"]})", "messages[0]"},
      {R"({"messages":[{"content":"hi"}]})", "messages[0].role"},
      {R"({"messages":[{"role":1}]})", "messages[0].role"},
      {R"({"messages":[{"role":"user"},{"role":"king"}]})", "messages[1].role"},
      {R"({"messages":[{"role":"user","content":7}]})", "messages[0].content"},
      {R"({"messages":[{"role":"user","content":{}}]})", "messages[0].content"},
      {R"({"messages":[{"role":"user","content":[7]}]})", "messages[0].content[0]"},
      {R"({"messages":[{"role":"user","content":[{"type":"text"}]}]})", "messages[0].content[0].text"},
      {R"({"messages":[{"role":"user","content":[{"type":"text","text":1}]}]})", "messages[0].content[0].text"},
      {R"({"messages":[{"role":"user","name":1}]})", "messages[0].name"},
      {R"({"messages":[{"role":"assistant","tool_calls":{}}]})", "messages[0].tool_calls"},
      {R"({"messages":[{"role":"assistant","tool_calls":[{}]}]})", "messages[0].tool_calls[0].function"},
      {R"({"messages":[{"role":"assistant","tool_calls":[{"function":{}}]}]})",
       "messages[0].tool_calls[0].function.name"},
      {R"({"messages":[{"role":"assistant","reasoning":1}]})", "messages[0].reasoning"},
      {R"({"messages":[{"role":"assistant","reasoning_content":[]}]})", "messages[0].reasoning_content"},
  };
  for (const Bad& bad : cases) expect_refused(parse(chat_completions_api(), bad.text), bad);
}

TEST(ChatRequest, CT_06_PartsThatAreNoTextAreNamed) {
  for (const char* type : {"image_url", "input_audio", "file", "video_url", "input_image"}) {
    const std::string body = R"({"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":")" +
                             std::string(type) + R"(","image_url":{"url":"data:"}}]}]})";
    expect_refused(parse(chat_completions_api(), body), {body.c_str(), "messages[0].content[1].type"});
  }
  const ChatRequest request = messages(
      R"([{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},{"role":"user","content":null},
          {"role":"user"},{"role":"user","content":[]}])");
  ASSERT_EQ(request.messages.size(), 4u);
  EXPECT_EQ(request.messages[0].content, "ab");
  for (size_t i = 1; i < 4; ++i) EXPECT_EQ(request.messages[i].content, "");
}

TEST(ChatRequest, NullIsAbsent) {
  const char* names[] = {"model",
                         "stream",
                         "stream_options",
                         "max_tokens",
                         "max_completion_tokens",
                         "temperature",
                         "top_p",
                         "top_k",
                         "min_p",
                         "presence_penalty",
                         "frequency_penalty",
                         "repetition_penalty",
                         "seed",
                         "stop",
                         "n",
                         "logprobs",
                         "top_logprobs",
                         "logit_bias",
                         "tools",
                         "tool_choice",
                         "parallel_tool_calls",
                         "response_format",
                         "reasoning_effort",
                         "chat_template_kwargs",
                         "enable_thinking",
                         "preserve_thinking",
                         "thinking_budget",
                         "reasoning",
                         "thinking",
                         "functions",
                         "function_call",
                         "audio",
                         "modalities",
                         "prediction",
                         "web_search_options",
                         "verbosity",
                         "user",
                         "metadata",
                         "store",
                         "service_tier",
                         "unheard_of"};
  std::string fields;
  for (const char* name : names) fields += std::string(",\"") + name + "\":null";
  const ChatRequest request = chat(fields);
  EXPECT_EQ(request.reply.sampling.temperature, 0.6f);
  EXPECT_TRUE(request.enable_thinking);
  EXPECT_FALSE(request.reply.max_tokens || request.reply.thinking_budget || request.reply.top_logprobs ||
               request.preserve_thinking);
}

TEST(ChatRequest, HarmlessFieldsAreAccepted) {
  chat(
      R"(,"user":"u","metadata":{"a":"b"},"store":true,"service_tier":"auto","safety_identifier":"s","prompt_cache_key":"k")");
  chat(R"(,"modalities":["text"],"verbosity":"medium","response_format":{"type":"text"})");
}

TEST(ChatRequest, SamplingFieldsReplaceTheModelsDefaults) {
  const SamplingParams all =
      chat(R"(,"temperature":0,"top_p":0.5,"top_k":7,"min_p":0.1,"presence_penalty":-1,"frequency_penalty":1.5,
      "repetition_penalty":1.1,"seed":42,"logit_bias":{"5":-100,"7":2.5})")
          .reply.sampling;
  EXPECT_EQ(all.temperature, 0.0f);
  EXPECT_EQ(all.top_p, 0.5f);
  EXPECT_EQ(all.top_k, 7);
  EXPECT_EQ(all.min_p, 0.1f);
  EXPECT_EQ(all.presence_penalty, -1.0f);
  EXPECT_EQ(all.frequency_penalty, 1.5f);
  EXPECT_EQ(all.repetition_penalty, 1.1f);
  EXPECT_EQ(all.seed, 42u);
  EXPECT_EQ(all.logit_bias, (std::unordered_map<int32_t, float>{{5, -100.0f}, {7, 2.5f}}));
  EXPECT_EQ(chat(R"(,"top_k":-1)").reply.sampling.top_k, 0);
  EXPECT_EQ(chat(R"(,"seed":-1)").reply.sampling.seed, std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(chat(R"(,"seed":3.0)").reply.sampling.seed, 3u);
  EXPECT_NE(chat("").reply.sampling.seed, chat("").reply.sampling.seed);
  EXPECT_EQ(chat(R"(,"enable_thinking":false)").reply.sampling.top_p, 0.8f);
  EXPECT_TRUE(check(chat(R"(,"top_p":0)").reply.sampling).ok());
}

TEST(ChatRequest, TH_10_ThereIsNoHiddenLimit) {
  EXPECT_FALSE(chat("").reply.max_tokens);
  EXPECT_FALSE(chat(R"(,"max_tokens":-1)").reply.max_tokens);
  EXPECT_EQ(chat(R"(,"max_tokens":6000)").reply.max_tokens, 6000);
  EXPECT_EQ(chat(R"(,"max_tokens":5,"max_completion_tokens":7)").reply.max_tokens, 7);
  EXPECT_EQ(chat(R"(,"max_completion_tokens":7,"max_tokens":5)").reply.max_tokens, 7);
}

TEST(ChatRequest, StopsChoicesAndLogprobs) {
  EXPECT_EQ(chat(R"(,"stop":"x")").reply.splitter.stops, std::vector<std::string>{"x"});
  EXPECT_EQ(chat(R"(,"stop":["two three","xyz"])").reply.splitter.stops,
            (std::vector<std::string>{"two three", "xyz"}));
  EXPECT_TRUE(chat(R"(,"stop":[])").reply.splitter.stops.empty());
  EXPECT_EQ(std::get<ApiRequest>(parse_chat(R"(,"n":8)")).n, 8);
  EXPECT_EQ(chat(R"(,"logprobs":true)").reply.top_logprobs, 0);
  EXPECT_EQ(chat(R"(,"logprobs":true,"top_logprobs":20)").reply.top_logprobs, 20);
  EXPECT_FALSE(chat(R"(,"logprobs":false,"top_logprobs":0)").reply.top_logprobs);
}

const std::string weather =
    R"({"type":"function","function":{"name":"get_weather","description":"d","parameters":{"type":"object","properties":{"b":{},"a":{}}},"strict":true}})";

TEST(ChatRequest, ToolsKeepTheirOrderOfKeys) {
  const ChatRequest request = chat(",\"tools\":[" + weather + "],\"parallel_tool_calls\":false");
  ASSERT_EQ(request.tools.size(), 1u);
  EXPECT_EQ(request.tools[0].dump(), weather);
  EXPECT_EQ(request.tool_choice.kind, ToolChoice::Kind::automatic);
  EXPECT_FALSE(request.tool_choice.parallel);
}

TEST(ChatRequest, TC_22_NoToolsAreNoTools) {
  EXPECT_TRUE(chat(R"(,"tools":[])").tools.empty());
  EXPECT_TRUE(chat(R"(,"tools":[],"tool_choice":"auto")").tools.empty());
  EXPECT_TRUE(chat(R"(,"tools":[],"tool_choice":"none")").tools.empty());
}

TEST(ChatRequest, CT_12_ToolsThatAreNoFunctionsAreLeftOut) {
  std::string tools = weather;
  for (const char* type : {"custom", "web_search", "namespace", "image_generation", "mcp"}) {
    tools += R"(,{"type":")" + std::string(type) + R"(","name":"x"})";
  }
  const Parsed parsed = parse_chat(",\"tools\":[" + tools + "]");
  EXPECT_EQ(chat_of(parsed, tools).tools.size(), 1u);
  EXPECT_EQ(std::get<ApiRequest>(parsed).warnings.size(), 1u);
  EXPECT_NE(std::get<ApiRequest>(parsed).warnings.at(0).find("web_search"), std::string::npos);
}

TEST(ChatRequest, ToolChoices) {
  const std::string tools = ",\"tools\":[" + weather + "],\"tool_choice\":";
  EXPECT_EQ(chat(tools + "\"auto\"").tool_choice.kind, ToolChoice::Kind::automatic);
  EXPECT_EQ(chat(tools + "\"none\"").tool_choice.kind, ToolChoice::Kind::none);
  EXPECT_EQ(chat(tools + "\"required\"").tool_choice.kind, ToolChoice::Kind::required);
  const ToolChoice named = chat(tools + R"({"type":"function","function":{"name":"get_weather"}})").tool_choice;
  EXPECT_EQ(named.kind, ToolChoice::Kind::named);
  EXPECT_EQ(named.name, "get_weather");
}

TEST(ChatRequest, CT_03_RolesOldAndNew) {
  const ChatRequest request = messages(
      R"([{"role":"developer","content":"a"},{"role":"system","content":"b"},{"role":"user","content":"c","name":"n"},
      {"role":"assistant","content":"d"},{"role":"tool","tool_call_id":"x","content":[{"type":"text","text":"e"}]},{"role":"function","name":"f","content":"g"}])");
  std::vector<Role> roles;
  for (const Message& message : request.messages) roles.push_back(message.role);
  EXPECT_EQ(roles,
            (std::vector<Role>{Role::system, Role::system, Role::user, Role::assistant, Role::tool, Role::tool}));
  EXPECT_EQ(request.messages[4].content, "e");
}

TEST(ChatRequest, CT_05_ArgumentsAreJsonOrItsText) {
  const struct {
    const char *given, *read;
  } cases[] = {
      {R"("{\"city\":\"Paris\",\"a\":1}")", R"({"city":"Paris","a":1})"},
      {R"({"city":"Zürich","n":{"x":[1,2.5,null]}})", R"({"city":"Zürich","n":{"x":[1,2.5,null]}})"},
      {R"("")", "{}"},
      {"null", "{}"},
      {R"("not json")", R"("not json")"},
      {R"("[1]")", "[1]"},
  };
  for (const auto& [given, read] : cases) {
    const ChatRequest request =
        messages(R"([{"role":"user"},{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function",
        "function":{"name":"f","arguments":)" +
                 std::string(given) + "}}]}]");
    ASSERT_EQ(request.messages[1].tool_calls.size(), 1u);
    EXPECT_EQ(request.messages[1].tool_calls[0].id, "c1");
    EXPECT_EQ(request.messages[1].tool_calls[0].arguments.dump(), read) << given;
  }
  const std::string deep = "\"" + std::string(100'000, '[') + "\"";
  EXPECT_TRUE(messages(R"([{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":)" + deep + "}}]}]")
                  .messages[0]
                  .tool_calls[0]
                  .arguments.is_string());
}

TEST(ChatRequest, TH_05_ReasoningComesBackUnderEitherName) {
  const ChatRequest request = messages(R"([{"role":"assistant","content":"a","reasoning":"r","reasoning_content":null},
      {"role":"assistant","content":"a","reasoning_content":"r"},{"role":"assistant","reasoning":"x","reasoning_content":"r"},
      {"role":"assistant","reasoning":"r","reasoning_content":""},{"role":"assistant","content":null,"refusal":"no","annotations":[],"audio":null}])");
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(request.messages[i].reasoning, "r") << i;
  EXPECT_EQ(request.messages[4].content, "no");
}

TEST(ChatRequest, CT_14_EveryWayToTurnThinkingOff) {
  const char* ways[] = {R"(,"enable_thinking":false)",
                        R"(,"chat_template_kwargs":{"enable_thinking":false})",
                        R"(,"chat_template_kwargs":{"reasoning_effort":"none"})",
                        R"(,"reasoning_effort":"none")",
                        R"(,"reasoning_effort":"minimal")",
                        R"(,"reasoning":{"effort":"none"})",
                        R"(,"reasoning":{"enabled":false})",
                        R"(,"reasoning":{"max_tokens":0})",
                        R"(,"thinking":{"type":"disabled"})",
                        R"(,"thinking_budget":0)",
                        R"(,"reasoning_effort":"medium","chat_template_kwargs":{"enable_thinking":false})"};
  for (const char* way : ways) {
    const ChatRequest request = chat(way);
    EXPECT_FALSE(request.enable_thinking) << way;
    EXPECT_FALSE(request.reply.thinking_budget) << way;
    EXPECT_EQ(request.reply.sampling.temperature, 0.7f) << way;
  }
  for (const char* way :
       {"", R"(,"enable_thinking":true)", R"(,"reasoning_effort":"xhigh")", R"(,"thinking":{"type":"enabled"})"}) {
    EXPECT_TRUE(chat(way).enable_thinking) << way;
    EXPECT_FALSE(chat(way).reply.thinking_budget) << way;
  }
}

TEST(ChatRequest, BudgetsOfThinking) {
  EXPECT_EQ(chat(R"(,"thinking_budget":9)").reply.thinking_budget, 9);
  EXPECT_EQ(chat(R"(,"reasoning":{"max_tokens":9})").reply.thinking_budget, 9);
  EXPECT_EQ(chat(R"(,"thinking":{"type":"enabled","budget_tokens":9})").reply.thinking_budget, 9);
  EXPECT_EQ(chat(R"(,"reasoning_effort":"low")").reply.thinking_budget, 4096);
  EXPECT_EQ(chat(R"(,"reasoning_effort":"low","thinking_budget":9)").reply.thinking_budget, 9);
  EXPECT_EQ(chat(R"(,"chat_template_kwargs":{"preserve_thinking":true})").preserve_thinking, true);
  EXPECT_EQ(chat(R"(,"preserve_thinking":false)").preserve_thinking, false);
}

TEST(ChatRequest, JS_03_FormatsAreKeptOrRefused) {
  EXPECT_TRUE(chat(R"(,"response_format":{"type":"json_object"})").json);
  const ChatRequest schema = chat(
      R"(,"response_format":{"type":"json_schema","json_schema":{"name":"a","strict":true,"schema":{"type":"object"}}})");
  ASSERT_TRUE(schema.json_schema);
  EXPECT_EQ(schema.json_schema->dump(), R"({"type":"object"})");
  EXPECT_EQ(schema.schema_field, "response_format.json_schema.schema");
  EXPECT_FALSE(chat(R"(,"response_format":{"type":"text"})").json);
  const Bad cases[] = {
      {R"(,"response_format":"json")", "response_format"},
      {R"(,"response_format":{})", "response_format.type"},
      {R"(,"response_format":{"type":"banana"})", "response_format.type"},
      {R"(,"response_format":{"type":1})", "response_format.type"},
      {R"(,"response_format":{"type":"json_schema"})", "response_format.json_schema"},
      {R"(,"response_format":{"type":"json_schema","json_schema":{}})", "response_format.json_schema.schema"},
      {R"(,"response_format":{"type":"json_schema","json_schema":{"schema":"x"}})",
       "response_format.json_schema.schema"},
      {R"(,"response_format":{"type":"json_object","schema":{}})", "response_format.schema"},
  };
  for (const Bad& bad : cases) expect_refused(parse_chat(bad.text), bad);
}

TEST(CompletionRequest, PromptsAreTextOrIds) {
  EXPECT_EQ(completion(R"({"prompt":"a b"})").prompt, "a b");
  EXPECT_EQ(completion(R"({"prompt":["a b"]})").prompt, "a b");
  EXPECT_EQ(completion(R"({"prompt":[1,2,3]})").ids, (std::vector<int32_t>{1, 2, 3}));
  EXPECT_EQ(completion(R"({"prompt":[[1,2,3]]})").ids, (std::vector<int32_t>{1, 2, 3}));
  const CompletionRequest full = completion(
      R"({"prompt":"","max_tokens":16,"logprobs":5,"echo":false,"suffix":null,"best_of":1,"temperature":0.1,"stop":"\n"})");
  EXPECT_EQ(full.reply.max_tokens, 16);
  EXPECT_EQ(full.reply.top_logprobs, 5);
  EXPECT_EQ(full.reply.sampling.temperature, 0.1f);
}

TEST(CompletionRequest, RefusesWhatItCannotDo) {
  const Bad cases[] = {
      {R"({})", "prompt"},
      {R"({"prompt":7})", "prompt"},
      {R"({"prompt":[]})", "prompt"},
      {R"({"prompt":[[]]})", "prompt"},
      {R"({"prompt":["a","b"]})", "prompt"},
      {R"({"prompt":[1,-1]})", "prompt"},
      {R"({"prompt":[1,99999999999]})", "prompt"},
      {R"({"prompt":[1,1.5]})", "prompt"},
      {R"({"prompt":[1,"a"]})", "prompt"},
      {R"({"prompt":"a","echo":true})", "echo"},
      {R"({"prompt":"a","suffix":"b"})", "suffix"},
      {R"({"prompt":"a","best_of":2})", "best_of"},
      {R"({"prompt":"a","logprobs":true})", "logprobs"},
      {R"({"prompt":"a","logprobs":21})", "logprobs"},
      {R"({"prompt":"a","messages":[]})", "messages"},
      {R"({"prompt":"a","tools":[]})", "tools"},
  };
  for (const Bad& bad : cases) expect_refused(parse(completions_api(), bad.text), bad);
}

TEST(Requests, BodiesThatAreNoObjectsAreRefused) {
  for (const char* body : {"[]", "7", "\"x\"", "null", "true"}) {
    for (const Api* api : {&chat_completions_api(), &completions_api()}) {
      EXPECT_TRUE(std::holds_alternative<ApiError>(parse(*api, body))) << body;
    }
  }
}

}  // namespace
}  // namespace lily::server
