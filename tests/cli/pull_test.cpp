// lily pull: what is taken, where it goes, and which copies on this machine are used instead.
#include <sys/file.h>

#include "support/pull_fixture.h"

namespace lily::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

TEST_F(PullTest, TakesWhatTheEngineNeedsAndRemembersIt) {
  hub.put("README.md", "# Model");
  hub.put("modeling.py", "print()");
  hub.put("model.gguf", "GGUF", true);
  hub.put("consolidated.safetensors", "a second copy", true);
  hub.put("original/model.safetensors", "another", true);
  const Ran ran = pull();
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  expect_model();
  expect_whole("README.md", "# Model");
  for (const char* name : {"modeling.py", "model.gguf", "consolidated.safetensors", "original"}) {
    EXPECT_FALSE(std::filesystem::exists(folder() / name)) << name;
  }
  EXPECT_EQ(last_model(), folder().string() + "\n");
  EXPECT_THAT(ran.out, AllOf(HasSubstr("org/model"), HasSubstr(folder().string())));
}

TEST_F(PullTest, OtherCommandsUseTheModelFromThenOn) {
  pull_well();
  const Ran ran = Program({LILY_BINARY, "generate", "--prompt", "Hello"}, environment).wait();
  EXPECT_EQ(ran.exit_code, 2);  // its config.json is none that runs
  EXPECT_THAT(ran.err, HasSubstr((folder() / "config.json").string()));
}

TEST_F(PullTest, PrintsPlainLinesWithoutATerminal) {
  hub.fault = [](const HubRequest&) { return Fault{.pause_ms = 2}; };
  const Ran ran = pull();
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_THAT(ran.err, AllOf(HasSubstr("pulling 5 files, 5.1 MB"), HasSubstr(" % ("), HasSubstr("100 % ("),
                             Not(HasSubstr("\r")), Not(HasSubstr("\033"))));
  EXPECT_LE(std::count(ran.err.begin(), ran.err.end(), '\n'), 12);
}

TEST_F(PullTest, TakesSeveralFilesAtOnceButFourAtMost) {
  hub.fault = [](const HubRequest& request) {
    return request.path.starts_with("/api/") ? Fault{} : Fault{.stall_after = 0};
  };
  timeout = 60;
  Program program(command(), environment);
  for (int i = 0; i < 500 && hub.file_requests() < 4; ++i) ::usleep(10'000);
  ::usleep(200'000);
  EXPECT_EQ(hub.file_requests(), 4U);
  program.send_signal(SIGINT);
  EXPECT_EQ(program.wait().exit_code, 130);
}

TEST_F(PullTest, SecondPullFetchesNothing) {
  pull_well();
  const size_t before = hub.file_requests();
  const Ran ran = pull();
  EXPECT_EQ(ran.exit_code, 0);
  EXPECT_THAT(ran.out, HasSubstr("up to date"));
  EXPECT_EQ(hub.file_requests(), before);
}

TEST_F(PullTest, FilesThatAreAlreadyThereAreVerifiedNotFetched) {
  write_text(folder() / first, random_bytes(3'000'000, 2));
  pull_well();
  expect_model();
  EXPECT_THAT(hub.requests_for(first), IsEmpty());
}

TEST_F(PullTest, AnotherFileOfThatNameIsNotTouched) {
  write_text(folder() / first, std::string(3'000'000, 'x'));
  const Ran ran = pull();
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_THAT(ran.err, AllOf(HasSubstr(first), HasSubstr("not the published file"), HasSubstr("--update")));
  expect_whole(first, std::string(3'000'000, 'x'));
  EXPECT_EQ(hub.file_requests(), 0U);
  pull_well({"--update"});
  expect_model();
}

TEST_F(PullTest, VerifyFindsBitRot) {
  pull_well();
  std::string rotten = random_bytes(2'000'000, 3);
  rotten[1'234'567] ^= 4;
  write_text(folder() / second, rotten);
  EXPECT_EQ(pull().exit_code, 0);  // sizes only
  const Ran ran = pull({"--verify"});
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_THAT(ran.err, HasSubstr(second));
  pull_well({"--verify", "--update"});
  expect_model();
}

TEST_F(PullTest, LD_09_NewerVersionLeavesTheOldOneInUseUntilUpdate) {
  pull_well();
  hub.commit = std::string(40, 'b');
  hub.put(first, random_bytes(3'000'000, 7), true);
  hub.remove(second);
  hub.put("model-00003.safetensors", "new", true);
  const Ran ran = pull();
  EXPECT_EQ(ran.exit_code, 0);
  EXPECT_THAT(ran.out, AllOf(HasSubstr("bbbbbbbb"), HasSubstr("stays in use"), HasSubstr("--update")));
  expect_model();

  const Ran updated = pull({"--update"});
  ASSERT_EQ(updated.exit_code, 0) << updated.err;
  expect_whole(first, random_bytes(3'000'000, 7));
  expect_whole("model-00003.safetensors", "new");
  expect_whole(second, random_bytes(2'000'000, 3));  // no longer published, never deleted
  EXPECT_THAT(updated.err, AllOf(HasSubstr("not part of this version"), HasSubstr(second)));
}

TEST_F(PullTest, LD_09_OldFilesStayWholeWhileAnUpdateFails) {
  pull_well();
  hub.commit = std::string(40, 'b');
  hub.put(first, random_bytes(3'000'000, 7), true);
  hub.put(second, random_bytes(2'000'000, 8), true);
  hub.fault = fault_on(first, {.status = 503}, 1000);
  EXPECT_EQ(pull({"--update"}).exit_code, 1);
  expect_whole(first, random_bytes(3'000'000, 2));
  expect_whole(second, random_bytes(2'000'000, 3));
  hub.fault = [](const HubRequest&) { return Fault{}; };
  const size_t before = hub.requests_for(second).size();
  pull_well({"--update"});
  expect_whole(first, random_bytes(3'000'000, 7));
  expect_whole(second, random_bytes(2'000'000, 8));
  EXPECT_EQ(hub.requests_for(second).size(), before);  // it was there, verified and waiting
}

TEST_F(PullTest, ChangedModelCardIsNoNewModel) {
  hub.put("README.md", "# Model");
  pull_well();
  hub.commit = std::string(40, 'b');
  hub.put("README.md", "# Model, with a table");
  const Ran ran = pull();
  EXPECT_THAT(ran.out, HasSubstr("up to date"));
  expect_whole("README.md", "# Model");
}

TEST_F(PullTest, LD_09_OfflineUsesWhatIsThere) {
  pull_well();
  std::filesystem::remove(home / "data/lily/last_model");
  hub.stop();
  const Ran ran = pull();
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_THAT(ran.out, AllOf(HasSubstr("could not be asked"), HasSubstr("is here and usable")));
  EXPECT_EQ(last_model(), folder().string() + "\n");
  std::filesystem::remove(folder() / second);
  EXPECT_EQ(pull().exit_code, 1);  // no longer complete
}

TEST_F(PullTest, RevisionsLieSideBySide) {
  pull_well();
  Ran ran = Program({LILY_BINARY, "pull", "org/model@v2/beta"}, environment).wait();
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_TRUE(std::filesystem::exists(folder().string() + "@v2-beta/config.json"));
  EXPECT_EQ(hub.requests().back().path.find("/org/model/resolve/"), 0U);
}

TEST_F(PullTest, DestinationCanBeGiven) {
  pull_well({"--dir", home / "here"});
  EXPECT_TRUE(std::filesystem::exists(home / "here" / second));
  EXPECT_EQ(last_model(), (home / "here").string() + "\n");
}

class CacheTest : public PullTest {
 protected:
  // The cache as the Hub's own programs lay it out: links to blobs.
  void fill_cache(const std::filesystem::path& cache) {
    const auto repository = cache / "models--org--model";
    const auto snapshot = repository / "snapshots" / hub.commit;
    write_text(repository / "refs/main", hub.commit);
    pull_well({"--dir", home / "source"});
    std::filesystem::remove(home / "data/lily/last_model");
    std::filesystem::create_directories(snapshot);
    for (const std::string name :
         {"config.json", "tokenizer.json", "model.safetensors.index.json", first.c_str(), second.c_str()}) {
      write_text(repository / "blobs" / name, read_text(home / "source" / name));
      std::filesystem::create_symlink("../../blobs/" + name, snapshot / name);
    }
    requests_before = hub.file_requests();
  }
  std::filesystem::path snapshot(const std::filesystem::path& cache) const {
    return cache / "models--org--model/snapshots" / hub.commit;
  }
  size_t requests_before = 0;
};

TEST_F(CacheTest, CompleteCacheIsUsedInPlace) {
  const auto cache = home / ".cache/huggingface/hub";
  fill_cache(cache);
  const Ran ran = pull({"--verify"});
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("nothing was downloaded"));
  EXPECT_EQ(last_model(), snapshot(cache).string() + "\n");
  EXPECT_FALSE(std::filesystem::exists(folder()));
  EXPECT_EQ(hub.file_requests(), requests_before);
}

TEST_F(CacheTest, OfflineCacheIsUsedToo) {
  const auto cache = home / "elsewhere";
  environment["HF_HUB_CACHE"] = cache;
  fill_cache(cache);
  hub.stop();
  const Ran ran = pull();
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_EQ(last_model(), snapshot(cache).string() + "\n");
}

TEST_F(CacheTest, CacheIsNoReasonToGiveUpOnAGivenFolder) {
  fill_cache(home / ".cache/huggingface/hub");
  hub.fault = [](const HubRequest& request) {
    return request.path.starts_with("/api/") && request.nth == 1 ? Fault{.status = 503} : Fault{};
  };
  pull_well({"--dir", home / "here"});
  EXPECT_TRUE(std::filesystem::exists(home / "here" / second));
}

TEST_F(CacheTest, IncompleteCacheIsNot) {
  const auto cache = home / "hf/hub";
  environment["HF_HOME"] = home / "hf";
  fill_cache(cache);
  std::filesystem::remove(cache / "models--org--model/blobs" / second);
  pull_well();
  expect_model();
  EXPECT_EQ(last_model(), folder().string() + "\n");
  std::filesystem::remove_all(folder());
  hub.stop();
  EXPECT_EQ(pull().exit_code, 1);
}

TEST_F(CacheTest, VerifyFindsDamageInTheCache) {
  const auto cache = home / ".cache/huggingface/hub";
  fill_cache(cache);
  write_text(cache / "models--org--model/blobs" / second, std::string(2'000'000, 'x'));
  const Ran ran = pull({"--verify"});
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_THAT(ran.err, HasSubstr(second));
}

TEST_F(PullTest, TokenComesFromTheNearestPlace) {
  const auto asked_with = [&] {
    EXPECT_EQ(pull().exit_code, 0);
    const std::vector<HubRequest> all = hub.requests();
    return all.back().authorization;
  };
  pull_well();
  EXPECT_EQ(asked_with(), "");
  write_text(home / ".cache/huggingface/token", "of-the-home\n");
  EXPECT_EQ(asked_with(), "Bearer of-the-home");
  environment["HF_HOME"] = home / "hf";
  write_text(home / "hf/token", "of-hf-home\n");
  EXPECT_EQ(asked_with(), "Bearer of-hf-home");
  environment["HF_TOKEN_PATH"] = home / "token";
  write_text(home / "token", "of-the-path");
  EXPECT_EQ(asked_with(), "Bearer of-the-path");
  environment["HF_TOKEN"] = "of-the-variable";
  EXPECT_EQ(asked_with(), "Bearer of-the-variable");
  environment["HF_TOKEN"] = "two\r\nlines: 1";
  const Ran ran = pull();
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_THAT(ran.err, AllOf(HasSubstr("HF_TOKEN"), Not(HasSubstr("lines"))));
}

#ifdef __linux__  // where all of 127.0.0.0/8 is the loopback
TEST_F(PullTest, NoTokenGoesInTheClearToAnotherMachine) {
  FakeHub mirror("127.0.0.2");
  mirror.put("config.json", "{}");
  mirror.put("model.safetensors", "weights", true);
  environment["HF_ENDPOINT"] = mirror.url();
  environment["HF_TOKEN"] = "secret";
  pull_well();
  for (const HubRequest& request : mirror.requests()) EXPECT_EQ(request.authorization, "");
}
#endif

TEST_F(PullTest, OnlyOnePullAtATime) {
  std::filesystem::create_directories(folder());
  const int held = ::open(folder().c_str(), O_RDONLY);
  ASSERT_EQ(::flock(held, LOCK_EX | LOCK_NB), 0);
  const Ran ran = pull();
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_THAT(ran.err, AllOf(HasSubstr("another `lily pull`"), HasSubstr(folder().string())));
  ::close(held);
  pull_well();
}

TEST_F(PullTest, WrongRequestsAreSaidInOneLine) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"./models/tiny", "path on this machine"},
      {LILY_SOURCE_DIR, "path on this machine"},
      {"gpt2", "ORGANISATION/NAME"},
      {"org/../model", "ORGANISATION/NAME"},
      {"org/mo del", "ORGANISATION/NAME"},
      {"org/model@../../x", "ORGANISATION/NAME"},
  };
  for (const auto& [repository, words] : cases) {
    const Ran ran = Program({LILY_BINARY, "pull", repository}, environment).wait();
    EXPECT_EQ(ran.exit_code, 2) << repository;
    EXPECT_THAT(ran.err, HasSubstr(words)) << repository;
    EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
  }
  environment["HF_ENDPOINT"] = "ftp://mirror";
  EXPECT_EQ(pull().exit_code, 2);
  EXPECT_EQ(hub.requests().size(), 0U);
}

TEST_F(PullTest, DestinationThatCannotBeWritten) {
  write_text(home / "file", "");
  const Ran ran = pull({"--dir", home / "file/model"});
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_THAT(ran.err, HasSubstr((home / "file/model").string()));
}

TEST_F(PullTest, DestinationThatMayNotBeWritten) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may write everywhere";
  std::filesystem::create_directories(home / "closed");
  std::filesystem::permissions(home / "closed",
                               std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec);
  const Ran ran = pull({"--dir", home / "closed"});
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_THAT(ran.err, HasSubstr("closed"));
}

TEST_F(PullTest, FreeSpaceIsCheckedFirst) {
  hub.edit_listing = [](nlohmann::json& listing) {
    for (auto& file : listing["siblings"]) file["size"] = int64_t{1} << 44;
  };
  const Ran ran = pull();
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_THAT(ran.err, AllOf(HasSubstr("not enough free space"), HasSubstr("expected 87960.93 GB")));
  EXPECT_EQ(hub.file_requests(), 0U);
}

TEST_F(PullTest, DiskThatTakesNoMoreIsSaid) {
  std::vector<std::string> words{"/bin/sh", "-c", "trap '' XFSZ; ulimit -f 1000; exec \"$@\"", "sh"};
  for (const std::string& word : command({})) words.push_back(word);
  const Ran ran = Program(words, environment).wait();
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_THAT(ran.err, AllOf(HasSubstr("cannot write: File too large"), HasSubstr("are kept in")));
  pull_well();
  expect_model();
}

}  // namespace
}  // namespace lily::test
