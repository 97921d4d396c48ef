// What a server promises: a reply over reused tokens is the reply of a cold run, token for token, whatever a conversation
// did before. With the bundled model, greedy, through prompts, scheduler, cache and disk as the server has them.
#include <gtest/gtest.h>

#include <iostream>

#include "runtime/generate.h"
#include "runtime/prompt_writer.h"
#include "runtime/scheduler.h"
#include "support/temporary_directory.h"
#include "support/tiny_model.h"

namespace lily {
namespace {

using namespace std::chrono_literals;

const char* const questions[] = {"What is a lighthouse?",
                                 "My name is Ada and I live in Turin.",
                                 "Where do I live?",
                                 "What is 17 plus 25?",
                                 "Hello!",
                                 "What does to wander mean?",
                                 "I have a dog called Rex.",
                                 "What is my dog called?",
                                 "What is an owl?"};

class Server {
 public:
  Server(test::TinyModel& model, std::unique_ptr<SnapshotStore> store = nullptr)
      : model_(model),
        memory_(store ? store->directory() + "/replies" : ""),
        prompts_(model.tokenizer, memory_),
        scheduler_(Scheduler::create(*model.backend, model.tokenizer,
                                     {.slots = 2, .context = 4096, .chunk = 200, .cache_bytes = size_t{256} << 20},
                                     std::move(store))
                       .value()) {}

  // The reply, held against that of a cold run.
  Reply ask(const std::vector<Message>& messages, bool thinking) {
    const Prompt prompt = prompts_.write(messages, {.enable_thinking = thinking}, true).value();
    JobRequest request = {.prompt = prompt.ids, .boundaries = prompt.boundaries, .reply = greedy()};
    request.on_finished = [&](const Reply& reply) {
      prompts_.remember(prompt, reply);
      return prompts_.closing(reply);
    };
    const std::shared_ptr<Job> job = scheduler_->submit(std::move(request));
    Reply reply;
    while (auto event = job->wait(60s)) {
      if (auto* done = std::get_if<Reply>(&*event)) {
        reply = std::move(*done);
        break;
      }
    }
    while (scheduler_->stats().running > 0) std::this_thread::sleep_for(1ms);
    Session cold = Session::create(*model_.backend, 4096).value();
    const Reply want = generate(cold, &model_.tokenizer, prompt.ids, {.reply = greedy()}).value();
    EXPECT_EQ(reply.tokens, want.tokens) << "after " << reply.reused_tokens << " reused of " << prompt.ids.size()
                                         << ": " << reply.message.content << " / " << want.message.content;
    return reply;
  }

 private:
  ReplyOptions greedy() const {
    ReplyOptions options;
    options.sampling.temperature = 0;
    options.max_tokens = 50;
    options.end_tokens = model_.backend->config().eos_token_ids;
    return options;
  }

  test::TinyModel& model_;
  ReplyMemory memory_;
  PromptWriter prompts_;
  std::unique_ptr<Scheduler> scheduler_;
};

Message user(std::string text) { return {.role = Role::user, .content = std::move(text)}; }

// As a client sends it back: without the reasoning.
Message shown(const Reply& reply) {
  Message message = reply.message;
  message.reasoning.clear();
  return message;
}

TEST(Reuse, AHitIsAColdRunWhateverTheHistory) {
  test::TinyModel& model = test::tiny_model();
  Random random(7);
  const auto below = [&](size_t limit) { return random.next() % limit; };
  int64_t prompt_tokens = 0, reused = 0;
  Server server(model);
  std::vector<std::vector<Message>> histories = {{}};  // conversations as they once were
  for (int step = 0; step < 60; ++step) {
    std::vector<Message> messages = histories[below(histories.size())];
    switch (below(4)) {
      case 0:  // an edit
        if (messages.size() > 2) messages.resize(2 * below(messages.size() / 2));
        break;
      case 1:  // a branch of its own
        if (below(3) == 0) messages = {{.role = Role::system, .content = "Answer briefly."}};
        break;
      default: break;  // goes on
    }
    messages.push_back(user(questions[below(std::size(questions))]));
    for (size_t again = 0; again < 1 + below(2); ++again) {  // perhaps a regenerate
      const Reply reply = server.ask(messages, below(2) == 0);
      prompt_tokens += reply.prompt_tokens;
      reused += reply.reused_tokens;
      if (again == 0) {
        histories.push_back(messages);
        histories.back().push_back(shown(reply));
      }
    }
    if (histories.back().size() > 12) histories.back().clear();
  }
  std::cout << reused << " of " << prompt_tokens << " prompt tokens reused\n";
  EXPECT_GT(reused, prompt_tokens / 2);
}

class Turns : public testing::Test {
 protected:
  // A system message of about 3,000 tokens.
  static Message long_system() {
    std::string text = "You are a helpful assistant. Know this by heart:";
    while (test::tiny_model().tokenizer.encode(text).size() < 3000)
      text += " a harbour is a place of shelter for ships;";
    return {.role = Role::system, .content = text};
  }
  std::unique_ptr<SnapshotStore> store() {
    return SnapshotStore::open({.directory = directory_.path(), .model = "tiny"}).value();
  }
  // Of the reply to the last message: computed are its tokens and those of the frame around it.
  void expect_only_new(const Reply& reply, int64_t new_tokens, const char* what) {
    EXPECT_LE(reply.prefilled_tokens, new_tokens) << what;
    EXPECT_GE(reply.prompt_tokens, 3000);
  }

  test::TinyModel& model_ = test::tiny_model();
  test::TemporaryDirectory directory_;
};

TEST_F(Turns, TH_08_PC_01_OnlyWhatIsNewIsComputed) {
  const auto tokens = [&](const char* text) {
    return static_cast<int64_t>(model_.tokenizer.encode(text, true).size());
  };
  for (const bool thinking : {true, false}) {
    const int64_t frame = tokens("<|im_start|>user\n<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n");
    Server server(model_);
    std::vector<Message> messages = {long_system(), user("What is an owl?")};
    const Reply first = server.ask(messages, thinking);
    EXPECT_EQ(first.reused_tokens, 0);
    const Reply again = server.ask(messages, thinking);
    expect_only_new(again, frame, "the same again");
    EXPECT_EQ(again.tokens, first.tokens);

    messages[1] = user("What is a lighthouse?");
    const Reply edited = server.ask(messages, thinking);
    expect_only_new(edited, frame + tokens("What is a lighthouse?"), "the last message edited");

    messages.push_back(shown(edited));
    messages.push_back(user("Hello!"));
    const Reply second = server.ask(messages, thinking);
    expect_only_new(second, frame + tokens("Hello!"), "a second turn");
    EXPECT_GT(second.reused_tokens, edited.prompt_tokens + static_cast<int64_t>(edited.tokens.size()));
  }
}

// A beginning of a few hundred tokens is as good as a long one.
TEST_F(Turns, PC_10_AShortPrefixIsReusedToo) {
  Server server(model_);
  Message system = {.role = Role::system, .content = "Know this:"};
  while (model_.tokenizer.encode(system.content).size() < 470) system.content += " a harbour is a place of shelter;";
  EXPECT_EQ(server.ask({system, user("What is an owl?")}, false).reused_tokens, 0);
  EXPECT_GE(server.ask({system, user("Hello!")}, false).reused_tokens, 470);
}

TEST_F(Turns, PC_05_AfterARestartToo) {
  std::vector<Message> messages = {long_system(), user("What is an owl?")};
  {
    Server server(model_, store());
    messages.push_back(shown(server.ask(messages, true)));
  }
  messages.push_back(user("Hello!"));
  Server server(model_, store());
  expect_only_new(server.ask(messages, true), 16, "after a restart");
}

// TH-07: a chain of calls that this server did not make, then a question: the template drops think blocks far back.
TEST_F(Turns, TH_07_AChainOfCallsFromElsewhereIsReusedUpToItsQuestion) {
  Server server(model_);
  std::vector<Message> messages = {long_system(), user("What is the weather in Turin?")};
  for (int i = 0; i < 5; ++i) {
    messages.push_back({.role = Role::assistant,
                        .tool_calls = {{.id = "c", .name = "weather", .arguments = {{"day", std::to_string(i)}}}}});
    messages.push_back({.role = Role::tool, .content = "It is sunny on day " + std::to_string(i)});
  }
  const Reply chain = server.ask(messages, true);
  messages.push_back({.role = Role::assistant, .content = "It is sunny."});
  messages.push_back(user("Tell me a joke."));
  const Reply joke = server.ask(messages, true);
  EXPECT_GE(joke.reused_tokens, 3000);
  EXPECT_LT(joke.prefilled_tokens, chain.prompt_tokens - 3000);
}

}  // namespace
}  // namespace lily
