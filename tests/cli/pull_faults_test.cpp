// lily pull against a network and a server that fail in every way we know.
#include "support/pull_fixture.h"

namespace lily::test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

std::vector<int64_t> starts(const std::vector<HubRequest>& requests) {
  std::vector<int64_t> found;
  for (const HubRequest& request : requests) found.push_back(request.range_start);
  return found;
}

TEST_F(PullTest, LD_08_DroppedConnectionsResumeWhereTheyBroke) {
  hub.fault = fault_on(first, {.cut_after = 800'000}, 3);
  const Ran ran = pull();
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  expect_model();
  EXPECT_THAT(starts(hub.requests_for(first)), ElementsAre(-1, 800'000, 1'600'000, 2'400'000));
  EXPECT_EQ(hub.bytes_sent(first), 3'000'000);
  EXPECT_THAT(ran.err, HasSubstr("trying again in"));
}

TEST_F(PullTest, EndlessDropsEndInOneErrorAndKeepWhatIsHere) {
  hub.fault = fault_on(first, {.cut_after = 100'000}, 1000);
  const Ran ran = pull();
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_THAT(ran.err, AllOf(HasSubstr("tried 5 times"), HasSubstr("the same command goes on from there")));
  EXPECT_FALSE(std::filesystem::exists(folder() / first));
  hub.fault = fault_on(first, {});
  pull_well();
  expect_model();
  EXPECT_EQ(hub.bytes_sent(first), 3'000'000);
}

TEST_F(PullTest, KilledProgramLosesNothing) {
  hub.fault = fault_on(first, {.stall_after = 1'310'720});
  timeout = 60;
  Program program(command(), environment);
  wait_until_sent(first, 1'310'720);
  ::usleep(200'000);
  program.send_signal(SIGKILL);
  EXPECT_EQ(program.wait().exit_code, 128 + SIGKILL);
  pull_well();
  expect_model();
  EXPECT_THAT(starts(hub.requests_for(first)), ElementsAre(-1, 1'310'720));
  EXPECT_EQ(hub.bytes_sent(first), 3'000'000);
  EXPECT_EQ(hub.bytes_sent(second), 2'000'000);
}

TEST_F(PullTest, CtrlCSaysHowToGoOn) {
  hub.fault = fault_on(first, {.stall_after = 1'000'000});
  timeout = 60;
  Program program(command(), environment);
  wait_until_sent(first, 1'000'000);
  ::usleep(200'000);
  program.send_signal(SIGINT);
  const Ran ran = program.wait();
  EXPECT_EQ(ran.exit_code, 130);
  EXPECT_THAT(ran.err, AllOf(HasSubstr("lily: interrupted\n"), HasSubstr("1.0 MB of unfinished files are kept")));
  pull_well();
  expect_model();
  EXPECT_EQ(hub.bytes_sent(first), 3'000'000);
}

TEST_F(PullTest, SilenceIsABreakToo) {
  hub.fault = fault_on(first, {.stall_after = 500'000});
  const Ran ran = pull();
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_THAT(ran.err, HasSubstr("bytes came in 1 s; trying again"));
  EXPECT_THAT(starts(hub.requests_for(first)), ElementsAre(-1, 500'000));
}

TEST_F(PullTest, TrickleIsABreakToo) {
  hub.fault = fault_on("config.json", {.pause_ms = 300, .piece = 1});
  const Ran ran = pull();
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_THAT(ran.err, HasSubstr("bytes came in 1 s; trying again"));
}

TEST_F(PullTest, LD_08_ServerThatIgnoresRanges) {
  hub.fault = [&](const HubRequest& request) {
    if (!request.path.ends_with(first)) return Fault{};
    // The second reply breaks before it reaches what was already here.
    if (request.nth < 2) return Fault{.cut_after = request.nth == 0 ? 2'000'000 : 900'000, .ignore_range = true};
    return Fault{.ignore_range = true};
  };
  pull_well();
  expect_model();
  EXPECT_THAT(starts(hub.requests_for(first)), ElementsAre(-1, 2'000'000, 2'000'000));
}

TEST_F(PullTest, RangeThatTheServerDoesNotKnow) {
  hub.fault = [&](const HubRequest& request) {
    if (!request.path.ends_with(first)) return Fault{};
    if (request.nth == 0) return Fault{.cut_after = 1'000'000};
    if (request.nth == 1) return Fault{.status = 416};
    return Fault{};
  };
  pull_well();
  expect_model();
  EXPECT_THAT(starts(hub.requests_for(first)), ElementsAre(-1, 1'000'000, -1));
}

TEST_F(PullTest, CompletePartialFileNeedsNoRequest) {
  const std::string content = random_bytes(3'000'000, 2);
  const std::string digest = digest_hex(content, hub::Digest::Kind::sha256);
  write_text(folder() / (first + "." + digest.substr(0, 12) + ".partial"), content);
  pull_well();
  expect_model();
  EXPECT_THAT(hub.requests_for(first), SizeIs(0));
}

TEST_F(PullTest, DamagedPartialFileIsFetchedAgain) {
  const std::string digest = digest_hex(random_bytes(3'000'000, 2), hub::Digest::Kind::sha256);
  const auto partial = folder() / (first + "." + digest.substr(0, 12) + ".partial");
  write_text(partial, std::string(1'000'000, '\0'));  // as after a power cut
  pull_well();
  expect_model();
  EXPECT_THAT(starts(hub.requests_for(first)), ElementsAre(1'000'000, -1));
  std::filesystem::remove(folder() / first);
  write_text(partial, std::string(3'000'001, 'x'));  // longer than the file
  pull_well();
  expect_model();
}

TEST_F(PullTest, CorruptBytesAreFetchedOnceMore) {
  hub.fault = fault_on(first, {.corrupt_at = 2'345'678});
  const Ran ran = pull();
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_THAT(ran.err, HasSubstr("not the published ones"));
  expect_model();
}

class CorruptTest : public PullTest, public testing::WithParamInterface<const char*> {};

TEST_P(CorruptTest, CorruptBytesNeverGetTheFilesName) {
  const std::string name = GetParam();
  hub.fault = fault_on(name, {.corrupt_at = 5}, 1000);
  const Ran ran = pull();
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_THAT(ran.err, AllOf(HasSubstr(name), HasSubstr("expected checksum")));
  EXPECT_FALSE(std::filesystem::exists(folder() / name));
  EXPECT_THAT(hub.requests_for(name), SizeIs(2));
  EXPECT_EQ(last_model(), "");
}

// SHA-256, and git's SHA-1.
INSTANTIATE_TEST_SUITE_P(Both, CorruptTest, testing::Values("tokenizer.json", "config.json"));

TEST_F(PullTest, LD_08_VersionsAreNeverMixed) {
  hub.fault = fault_on(first, {.cut_after = 1'000'000}, 1000);
  retries = 0;
  EXPECT_EQ(pull().exit_code, 1);
  hub.commit = std::string(40, 'b');
  hub.put(first, random_bytes(3'000'000, 7), true);
  hub.fault = fault_on(first, {}, 0);
  const Ran ran = pull();
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  expect_whole(first, random_bytes(3'000'000, 7));
  EXPECT_THAT(starts(hub.requests_for(first)), ElementsAre(-1, -1));
  EXPECT_THAT(partials(), SizeIs(1));  // of the older version: kept, and said
  EXPECT_THAT(ran.err, AllOf(HasSubstr("not part of this version"), HasSubstr(".partial (1.0 MB)")));
}

TEST_F(PullTest, AnotherSizeThanListed) {
  hub.fault = fault_on(first, {.claim_size = 2'999'999}, 1000);
  EXPECT_THAT(pull().err, AllOf(HasSubstr("another size"), HasSubstr("expected 3000000 bytes, got 2999999")));
  hub.fault = fault_on(first, {.headers = "Content-Range: bytes 5-9/10\r\n"}, 1000);
  std::filesystem::remove_all(folder());
  EXPECT_EQ(pull().exit_code, 0);  // a stray header on a whole file
  hub.fault = [&](const HubRequest& request) {
    if (!request.path.ends_with(first)) return Fault{};
    if (request.nth % 2 == 0) return Fault{.cut_after = 1'000'000};
    return Fault{.status = 206, .headers = "Content-Range: bytes 7-9/10\r\n", .body = "abc"};
  };
  std::filesystem::remove_all(folder());
  retries = 1;
  const Ran ran = pull();
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_THAT(ran.err, AllOf(HasSubstr("another range"), HasSubstr("got bytes 7-9/10")));
}

struct Refusal {
  Fault fault;
  std::string token;
  std::string words;
};

TEST_F(PullTest, RefusalsAreFinalAndSayWhatToDo) {
  const std::vector<Refusal> cases{
      {{.status = 401}, "", "not found, or private: expected the right name, or HF_TOKEN"},
      {{.status = 401, .headers = "X-Error-Code: GatedRepo\r\n"}, "", "gated: expected its terms accepted"},
      {{.status = 403, .headers = "X-Error-Code: GatedRepo\r\n"}, "abc", "gated: expected its terms accepted"},
      {{.status = 401, .headers = "X-Error-Message: Invalid \033[1m credentials\r\n"},
       "abc",
       "from HF_TOKEN is refused"},
      {{.status = 404, .headers = "X-Error-Code: RepoNotFound\r\n"}, "", "not found on http://127.0.0.1"},
      {{.status = 404, .headers = "X-Error-Code: RevisionNotFound\r\n"}, "", "no such revision"},
  };
  for (const Refusal& refusal : cases) {
    hub.fault = fault_on_listing(refusal.fault);
    environment["HF_TOKEN"] = refusal.token;
    const Ran ran = pull();
    EXPECT_EQ(ran.exit_code, 2) << ran.err;
    EXPECT_THAT(ran.err, AllOf(HasSubstr("org/model: "), HasSubstr(refusal.words), Not(HasSubstr("\033")),
                               Not(HasSubstr("abc"))));
    EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
  }
  EXPECT_THAT(hub.requests(), SizeIs(cases.size()));  // not one was repeated
}

TEST_F(PullTest, RefusedFileStopsThePull) {
  hub.fault = fault_on(second, {.status = 404}, 1000);
  const Ran ran = pull();
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_THAT(ran.err, HasSubstr(second + ": not found"));
}

TEST_F(PullTest, BusyServersAreWaitedFor) {
  hub.fault = [&](const HubRequest& request) {
    if (request.path.starts_with("/api/") && request.nth == 0) return Fault{.status = 503, .body = "<html>"};
    if (request.path.ends_with(first) && request.nth == 0) return Fault{.status = 429, .headers = "Retry-After: 1\r\n"};
    if (request.path.ends_with(second) && request.nth == 0) {
      return Fault{.status = 429, .headers = "RateLimit: \"resolvers\";r=0;t=1\r\n"};
    }
    return Fault{};
  };
  const auto start = std::chrono::steady_clock::now();
  const Ran ran = pull();
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::seconds(1));
  EXPECT_THAT(ran.err, AllOf(HasSubstr("answers 503"),
                             HasSubstr(first + ": the server answers 429, too many requests; trying again in 1.0 s"),
                             HasSubstr(second + ": the server answers 429, too many requests; trying again in 1.0 s")));
  expect_model();
}

TEST_F(PullTest, BusyServersAreNotWaitedForForever) {
  hub.fault = fault_on_listing({.status = 503});
  Ran ran = pull();
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_THAT(ran.err, HasSubstr("answers 503 (tried 5 times)"));
  hub.fault = fault_on_listing({.status = 429, .headers = "Retry-After: 7200\r\n"});
  ran = pull();
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_THAT(ran.err, HasSubstr("asks to come back in 120 minutes"));
}

TEST_F(PullTest, TokenStaysWithItsHost) {
  FakeHub storage;
  storage.id = "cdn/cdn";
  storage.put(first, random_bytes(3'000'000, 2), true);
  storage.fault = fault_on(first, {.cut_after = 1'000'000});
  hub.fault = [&](const HubRequest& request) {
    if (request.path.ends_with(first))
      return Fault{.status = 302, .headers = "Location: " + storage.url() + "/x/resolve/x/" + first + "\r\n"};
    if (request.path.ends_with("/resolve/" + hub.commit + "/config.json")) {  // the Hub's way with small files
      return Fault{.status = 307, .headers = "Location: /api/resolve-cache/models/config.json\r\n"};
    }
    return Fault{};
  };
  environment["HF_TOKEN"] = "secret";
  pull_well();
  expect_model();
  EXPECT_THAT(starts(storage.requests_for(first)), ElementsAre(-1, 1'000'000));
  for (const HubRequest& request : storage.requests()) EXPECT_EQ(request.authorization, "");
  for (const HubRequest& request : hub.requests()) EXPECT_EQ(request.authorization, "Bearer secret") << request.path;
}

TEST_F(PullTest, SignedAddressThatRanOutIsAskedForAgain) {
  FakeHub storage;
  storage.put(first, random_bytes(3'000'000, 2), true);
  storage.fault = fault_on(first, {.status = 403}, 2);
  hub.fault = fault_on(
      first, {.status = 302, .headers = "Location: " + storage.url() + "/x/resolve/x/" + first + "\r\n"}, 1000);
  pull_well();
  expect_model();
  EXPECT_THAT(hub.requests_for(first), SizeIs(3));
}

TEST_F(PullTest, RedirectsAreLimited) {
  hub.fault = fault_on(first, {.status = 302, .headers = "Location: /again/" + first + "\r\n"}, 1000);
  Ran ran = pull();
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_THAT(hub.requests_for(first), SizeIs(6));
  hub.fault = fault_on(first, {.status = 302, .headers = "Location: file:///etc/passwd\r\n"}, 1000);
  ran = pull();
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_FALSE(std::filesystem::exists(folder() / first));
}

TEST_F(PullTest, ListingsThatCannotBeTrusted) {
  const std::vector<std::pair<std::function<void(nlohmann::json&)>, std::string>> cases{
      {[](auto& all) { all["siblings"][0]["rfilename"] = "../../.bashrc"; }, "not safe: got ../../.bashrc"},
      {[](auto& all) { all["siblings"][0]["rfilename"] = "/etc/cron.d/x"; }, "not safe"},
      {[](auto& all) { all["siblings"][0]["rfilename"] = "a\\..\\b"; }, "not safe"},
      {[](auto& all) { all["siblings"][0]["rfilename"] = "a\033[2Jb"; }, "not safe: got a?[2Jb"},
      {[](auto& all) { all["siblings"][1]["rfilename"] = "config.json"; }, "a file twice"},
      {[](auto& all) { all["siblings"][0].erase("blobId"); }, "no checksum"},
      {[](auto& all) { all["siblings"][0]["size"] = -1; }, "no valid size"},
      {[](auto& all) { all["siblings"] = "none"; }, "no files"},
      {[](auto& all) { all.erase("sha"); }, "no commit"},
      {[](auto& all) { all = "text"; }, "not JSON"},
      {[](auto& all) { all["siblings"].erase(0); }, "no config.json"},
  };
  for (const auto& [edit, words] : cases) {
    hub.edit_listing = edit;
    const Ran ran = pull();
    EXPECT_NE(ran.exit_code, 0) << words;
    EXPECT_THAT(ran.err, HasSubstr(words));
    EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
  }
  EXPECT_EQ(hub.file_requests(), 0U);
  EXPECT_FALSE(std::filesystem::exists(folder()));
}

}  // namespace
}  // namespace lily::test
