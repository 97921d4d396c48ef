// `lily serve` as a process, with the bundled model.
#include <gtest/gtest.h>

#include <regex>

#include "support/http_client.h"
#include "support/program.h"
#include "support/run_lily.h"

namespace lily {
namespace {

using test::HttpAnswer;

class Serve {
 public:
  explicit Serve(std::vector<std::string> options = {})
      : program_(words(std::move(options)), {{"HOME", home_.path()}, {"PATH", "/usr/bin"}}) {
    // The line tells the port, once the model is there.
    for (int i = 0; i < 2000 && port_ == 0; ++i) {
      std::smatch found;
      const std::string out = program_.out_so_far();
      if (std::regex_search(out, found, std::regex(R"(http://127\.0\.0\.1:(\d+) )"))) port_ = std::stoi(found.str(1));
      else ::usleep(10'000);
    }
    EXPECT_NE(port_, 0);
  }

  int port() const { return port_; }
  HttpAnswer post(const std::string& path, const std::string& body) const {
    return test::ask(port_, test::post_text(path, body));
  }
  test::Ran end(int signal) {
    program_.send_signal(signal);
    return program_.wait();
  }

 private:
  static std::vector<std::string> words(std::vector<std::string> options) {
    options.insert(options.begin(), {LILY_BINARY, "serve", "-m", LILY_SOURCE_DIR "/models/tiny", "--port", "0"});
    return options;
  }

  test::TemporaryDirectory home_;
  test::Program program_;
  int port_ = 0;
};

const std::string question =
    R"("messages":[{"role":"user","content":"What is a lighthouse?"}],"temperature":0,"max_tokens":40)";

TEST(Serve, AnswersAndEndsOnASignal) {
  Serve serve;
  EXPECT_EQ(test::ask(serve.port(), test::get_text("/health")).json()["status"], "ok");
  const HttpAnswer whole = serve.post("/v1/chat/completions", "{" + question + "}");
  EXPECT_EQ(whole.status, 200) << whole.body;
  const HttpAnswer stream = serve.post("/v1/chat/completions", R"({"stream":true,)" + question + "}");
  EXPECT_EQ(stream.status, 200);
  EXPECT_EQ(stream.events().back(), "[DONE]");
  const test::Ran ran = serve.end(SIGTERM);
  EXPECT_EQ(ran.exit_code, 0);
  EXPECT_NE(ran.err.find("POST /v1/chat/completions 200"), std::string::npos) << ran.err;
  EXPECT_EQ(ran.err.find("lighthouse"), std::string::npos) << ran.err;
}

TEST(Serve, EveryApiIsThere) {
  Serve serve({"--api-key", "secret", "--no-cache-dir", "--quiet"});
  const std::string key = "Host: localhost\r\nx-api-key: secret\r\n";
  const auto ask = [&](const char* path, const std::string& body) {
    return test::ask(serve.port(), test::post_text(path, body, key));
  };
  const std::string user = R"("messages":[{"role":"user","content":"hi"}])";
  EXPECT_EQ(ask("/v1/completions", R"({"prompt":"a","max_tokens":2})").status, 200);
  EXPECT_EQ(ask("/v1/responses", R"({"input":"hi","max_output_tokens":2})").status, 200);
  EXPECT_EQ(ask("/v1/messages", R"({"max_tokens":2,)" + user + "}").status, 200);
  EXPECT_GT(ask("/v1/messages/count_tokens", "{" + user + "}").json()["input_tokens"], 0);
  EXPECT_EQ(ask("/v1/messages", R"({"model":"other","max_tokens":2,)" + user + "}").json()["type"], "error");
  EXPECT_EQ(serve.post("/v1/messages", "{}").status, 401);
  const test::Ran ran = serve.end(SIGINT);
  EXPECT_EQ(ran.exit_code, 0);
  EXPECT_EQ(ran.err, "");
}

TEST(Serve, NoSizeIsNegative) {
  for (const std::string option : {"--cache-size", "--cache-dir-size"}) {
    const test::ProgramRun run = test::run_lily("serve " + option + " -1");
    EXPECT_EQ(run.exit_code, 2) << option;
    EXPECT_NE(run.err.find(option + ": expected a size"), std::string::npos) << run.err;
  }
}

TEST(Serve, SC_05_OtherAddressesNeedAKey) {
  const test::ProgramRun run = test::run_lily("serve --host 0.0.0.0");
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_NE(run.err.find("--api-key"), std::string::npos) << run.err;
}

}  // namespace
}  // namespace lily
