// The program itself on real checkpoints: the oracles beside the checkout, and the bundled model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "support/oracle.h"
#include "support/terminal.h"

namespace lily {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::Piped;
using test::program;
using test::run_piped;
using testing::HasSubstr;

std::string scratch(const std::string& name) {
  return testing::TempDir() + "run_model_" + std::to_string(::getpid()) + name;
}

std::string token_file(std::span<const int32_t> ids) {
  const std::string path = scratch(".tokens");
  std::ofstream file(path);
  for (const int32_t id : ids) file << id << "\n";
  return path;
}

std::vector<int32_t> numbers_in(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<int32_t>(in), {}};
}

class RunOracle : public testing::TestWithParam<const char*> {};

TEST_P(RunOracle, GenerateContinuesGreedilyAsTransformersDoes) {
  LILY_NEED_ORACLE(GetParam());
  const test::Oracle oracle = test::open_oracle(GetParam());
  const auto ids = oracle.get<int32_t>("greedy_ids");
  const std::string tokens = token_file(ids.first(17));
  for (const char* chunk : {"1", "7", "512"}) {
    const Piped run = run_piped(program({"generate", "-m", oracle.directory, "--tokens", tokens, "-n", "64",
                                         "--temperature", "0", "--format", "ids", "--chunk", chunk}),
                                "");
    EXPECT_EQ(run.code, 0) << run.err;
    const auto expected = ids.subspan(17);
    EXPECT_EQ(numbers_in(run.out), std::vector<int32_t>(expected.begin(), expected.end())) << "chunk " << chunk;
  }
}

TEST_P(RunOracle, EvalLogitsAreTheReferences) {
  LILY_NEED_ORACLE(GetParam());
  const test::Oracle oracle = test::open_oracle(GetParam());
  const std::string out = scratch(".safetensors");
  const Piped eval = run_piped(program({"eval", "logits", "--exact", "-m", oracle.directory, "--tokens",
                                        token_file(oracle.input_ids()), "--out", out, "--chunk", "50"}),
                               "");
  ASSERT_EQ(eval.code, 0) << eval.err;
  const Piped compare =
      run_piped(program({"eval", "compare", out, oracle.directory + "/reference.safetensors", "--json"}), "");
  ASSERT_EQ(compare.code, 0) << compare.err;
  const json result = json::parse(compare.out);
  EXPECT_EQ(result["positions"], oracle.input_ids().size());
  EXPECT_LE(result["relative_error"].get<double>(), 1e-4) << compare.out;
  for (const json& agreement : result["top1"]) {
    if (agreement["margin"].is_null()) continue;  // everywhere: near-ties may go either way
    EXPECT_EQ(agreement["positions"], agreement["equal"]) << compare.out;
  }
  fs::remove(out);
}

INSTANTIATE_TEST_SUITE_P(Oracles, RunOracle, testing::Values("a", "b", "f", "g"));

TEST(RunModel, GenerateJsonRepeatsWithItsSeed) {
  LILY_NEED_ORACLE("a");
  const test::Oracle oracle = test::open_oracle("a");
  const std::vector<std::string> arguments = {
      "generate", "-m", oracle.directory, "--tokens", token_file(oracle.input_ids().first(20)),
      "-n",       "8",  "--format",       "json"};
  const json first = json::parse(run_piped(program(arguments), "").out);
  std::vector<std::string> again = arguments;
  again.insert(again.end(), {"--seed", std::to_string(first["seed"].get<uint64_t>())});
  EXPECT_EQ(json::parse(run_piped(program(again), "").out)["ids"], first["ids"]);
  EXPECT_EQ(first["ids"].size(), 8u);
  EXPECT_EQ(first["finish"], "length");
  EXPECT_EQ(first["prefill_tokens"], 20);
}

TEST(RunModel, PerplexityIsThatOfTheReferencesLogits) {
  LILY_NEED_ORACLE("f");
  const test::Oracle oracle = test::open_oracle("f");
  const auto ids = oracle.input_ids();
  const auto logits = oracle.get<float>("logits");
  const size_t vocab = logits.size() / ids.size();
  double nll = 0;
  for (size_t i = 0; i + 1 < ids.size(); ++i) {
    const auto row = logits.subspan(i * vocab, vocab);
    double sum = 0;
    for (const float logit : row) sum += std::exp(double{logit});
    nll += std::log(sum) - row[static_cast<size_t>(ids[i + 1])];
  }
  const Piped run = run_piped(
      program({"eval", "perplexity", "--exact", "-m", oracle.directory, "--tokens", token_file(ids), "--json"}), "");
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_NEAR(json::parse(run.out)["mean_nll"].get<double>(), nll / static_cast<double>(ids.size() - 1), 1e-4);
}

TEST(RunModel, BadInputIsOneLineAndExitCodeTwo) {
  LILY_NEED_ORACLE("a");
  const test::Oracle oracle = test::open_oracle("a");
  const std::string good = token_file(oracle.input_ids().first(5)), bad = scratch(".bad");
  std::ofstream(bad) << "1 2 x3";
  const std::string outside = scratch(".outside");
  std::ofstream(outside) << "1 2 1024";
  const std::pair<std::vector<std::string>, const char*> cases[] = {
      {{"generate", "-m", "absent", "--tokens", good}, "--model: no model there"},
      {{"generate", "-m", oracle.directory, "--tokens", bad}, "token 2: bad id"},
      {{"generate", "-m", oracle.directory, "--tokens", outside, "-n", "1"}, "1024"},
      {{"generate", "-m", oracle.directory}, "needs a prompt"},
      {{"generate", "-m", oracle.directory, "--prompt", "x"}, "tokenizer.json: cannot open"},
      {{"generate", "-m", oracle.directory, "--tokens", good, "--top-p", "2"}, "top_p: out of range"},
      {{"generate", "-m", oracle.directory, "--tokens", good, "--backend", "abacus"}, "abacus"},
      {{"generate", "-m", oracle.directory, "--tokens", good, "--context", "3"}, "context is full"},
      {{"chat", "-m", oracle.directory, "-p", "x"}, "tokenizer.json: cannot open"},
      {{"eval", "logits", "-m", oracle.directory, "--tokens", good, "--out", "/nowhere/x"}, "/nowhere/x"},
      {{"eval", "perplexity", "-m", oracle.directory}, "needs a text"},
      {{"eval", "compare", good, good}, "run_model"},
  };
  for (const auto& [arguments, message] : cases) {
    const Piped run = run_piped(program(arguments), "");
    EXPECT_EQ(run.code, 2) << message;
    EXPECT_THAT(run.err, HasSubstr(message));
    EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1) << run.err;
    EXPECT_EQ(run.out, "");
  }
}

// Nothing but what is in the repository: no -m, no pulled model.
class BundledModel : public testing::Test {
 protected:
  void SetUp() override {
    if (!fs::exists(fs::path(LILY_SOURCE_DIR) / "models/tiny/config.json")) GTEST_SKIP() << "no models/tiny yet";
    ::unsetenv("LILY_MODEL");
    ::setenv("XDG_DATA_HOME", scratch(".data").c_str(), 1);
    ::setenv("TERM", "xterm", 1);
  }
};

TEST_F(BundledModel, AnswersAPipedLine) {
  const Piped run = run_piped(program({"chat", "--temperature", "0"}), "What is a lighthouse?\n");
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("light"));
  EXPECT_EQ(run.err, "");
}

TEST_F(BundledModel, RemembersTheConversation) {
  const Piped run = run_piped(program({"chat", "--temperature", "0"}), "My name is Ada.\nWhat is my name?\n");
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out.substr(run.out.find('\n')), HasSubstr("Ada"));
}

TEST_F(BundledModel, ChatsAtATerminal) {
  test::Terminal terminal(program({"chat", "--temperature", "0"}));
  EXPECT_TRUE(terminal.shows("tiny"));
  EXPECT_TRUE(terminal.shows(">\033[0m "));
  terminal.type("Hello!\r");
  EXPECT_TRUE(terminal.shows("tok/s"));
  terminal.type("\x04");
  EXPECT_EQ(terminal.exit_code(), 0);
}

TEST_F(BundledModel, AStopStringEndsTheReplyExactly) {
  const std::vector<std::string> arguments = {
      "generate", "--chat", "--no-think", "--prompt", "What is a lighthouse?", "--temperature", "0"};
  const std::string whole = run_piped(program(arguments), "").out;
  ASSERT_GT(whole.size(), 12u);
  const std::string stop = whole.substr(6, 5);
  std::vector<std::string> stopped = arguments;
  stopped.insert(stopped.end(), {"--stop", stop});
  EXPECT_EQ(run_piped(program(stopped), "").out, whole.substr(0, whole.find(stop)) + "\n");
}

}  // namespace
}  // namespace lily
