#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "support/run_lily.h"
#include "text/tokenizer.h"

namespace lily {
namespace {

using test::run_lily;
using test::TemporaryDirectory;

const std::string golden_directory = std::string(LILY_SOURCE_DIR) + "/tests/text/goldens";
const std::string command = "tokenize -m " + golden_directory + " ";

std::string ids_line(const std::string& text, bool trusted) {
  const Tokenizer tokenizer = Tokenizer::load(golden_directory + "/tokenizer.json").value();
  std::string line;
  for (const int32_t id : tokenizer.encode(text, trusted))
    line.append(line.empty() ? "" : " ").append(std::to_string(id));
  return line + "\n";
}

TEST(Tokenize, PrintsIds) {
  const auto run = run_lily(command + "--text 'Hello, 灯塔 <think>'");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.out, ids_line("Hello, 灯塔 <think>", false));
  EXPECT_EQ(run_lily(command + "--trusted --text '<think>'").out, ids_line("<think>", true));
  EXPECT_EQ(run_lily(command + "--text ''").out, "\n");
}

TEST(Tokenize, ReadsFilesAndStandardInput) {
  const TemporaryDirectory folder;
  const std::string text = "two\nlines\n";
  std::ofstream(folder / "text") << text;
  EXPECT_EQ(run_lily(command + "--file " + folder / "text").out, ids_line(text, false));
  EXPECT_EQ(run_lily(command, text).out, ids_line(text, false));
}

TEST(Tokenize, Decodes) {
  const std::string text = "Hello, 灯塔 <think>\n  x";
  const auto run = run_lily(command + "--decode", ids_line(text, true));
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.out, text);
}

TEST(Tokenize, PrintsPieces) {
  const auto run = run_lily(command + "--format json --text '鱼<'");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  std::string bytes;
  for (const auto& token : nlohmann::json::parse(run.out)) {
    EXPECT_TRUE(token["id"].is_number_integer());
    bytes +=
        token.contains("bytes") ? "(" + token["bytes"].get<std::string>() + ")" : token["piece"].get<std::string>();
  }
  EXPECT_EQ(bytes, "(e9)(b1)(bc)<");
}

TEST(Tokenize, RefusesWrongInput) {
  for (const char* arguments :
       {"--decode --text '1 x'", "--decode --text '-1'", "--decode --text 999999", "--decode --text 1.5",
        "--file /nowhere/text", "--text a --file b", "--format xml --text a"}) {
    const auto run = run_lily(command + arguments);
    EXPECT_EQ(run.exit_code, 2) << arguments;
    EXPECT_EQ(run.out, "") << arguments;
    EXPECT_NE(run.err, "") << arguments;
  }
  EXPECT_EQ(run_lily("tokenize -m /nowhere --text a").exit_code, 2);
}

}  // namespace
}  // namespace lily
