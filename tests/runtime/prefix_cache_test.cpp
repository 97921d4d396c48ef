#include "runtime/prefix_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "runtime/sampler.h"
#include "support/fake_backend.h"
#include "support/temporary_directory.h"

namespace lily {
namespace {

using test::FakeBackend;
using test::FakeState;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr size_t plenty = size_t{1} << 30;

std::vector<int32_t> ids(std::initializer_list<int32_t> list) { return list; }

class PrefixCacheTest : public testing::Test {
 protected:
  std::shared_ptr<const Snapshot> snapshot(std::span<const int32_t> tokens) {
    const auto state = backend_.make_state(1 << 20).value();
    std::vector<float> none;
    EXPECT_TRUE(backend_.prefill(*state, tokens, WantLogits::none, none));
    return backend_.snapshot(*state);
  }
  void put(PrefixCache& cache, const std::vector<int32_t>& tokens, bool keep = false) {
    cache.insert(tokens, snapshot(tokens), keep);
  }
  // The sequence that a find gives, empty for none.
  static std::vector<int32_t> found(PrefixCache& cache, const std::vector<int32_t>& tokens, int64_t limit = 1 << 20) {
    const auto snapshot = cache.find(tokens, limit);
    return snapshot ? static_cast<const test::FakeSnapshot&>(*snapshot).rows : std::vector<int32_t>();
  }
  std::unique_ptr<SnapshotStore> store(size_t budget = plenty, const std::string& model = "m") {
    auto opened = SnapshotStore::open(
        {directory_.path(), model, budget, [this](const std::string& line) { warnings_.push_back(line); }});
    EXPECT_TRUE(opened) << opened.error().message();
    return std::move(opened).value();
  }
  std::vector<std::filesystem::path> files() const {
    std::vector<std::filesystem::path> paths;
    for (const auto& item : std::filesystem::recursive_directory_iterator(directory_.path())) {
      if (item.path().extension() == ".snapshot") paths.push_back(item.path());
    }
    return paths;
  }

  FakeBackend backend_{1000};
  test::TemporaryDirectory directory_;
  std::vector<std::string> warnings_;
};

TEST_F(PrefixCacheTest, FindsTheLongestPrefixWithinTheLimit) {
  PrefixCache cache(backend_, plenty);
  EXPECT_THAT(found(cache, ids({1, 2, 3})), IsEmpty());
  put(cache, ids({1, 2, 3, 4, 5}));
  put(cache, ids({1, 2}));        // a prefix, put in later
  put(cache, ids({1, 2, 3, 9}));  // parts inside the first
  EXPECT_THAT(found(cache, ids({1, 2, 3, 4, 5, 6})), ElementsAre(1, 2, 3, 4, 5));
  EXPECT_THAT(found(cache, ids({1, 2, 3, 4, 5, 6}), 4), ElementsAre(1, 2));
  EXPECT_THAT(found(cache, ids({1, 2, 3, 9})), ElementsAre(1, 2, 3, 9));
  EXPECT_THAT(found(cache, ids({1, 2, 3, 7})), ElementsAre(1, 2));
  EXPECT_THAT(found(cache, ids({2, 2})), IsEmpty());
  EXPECT_EQ(cache.longest(ids({1, 2, 3, 4}), 100), 2);
  EXPECT_EQ(cache.shared_prefix(ids({1, 2, 3, 7})), 3);
  EXPECT_EQ(cache.shared_prefix(ids({7})), 0);
}

// Against a plain list of what was put in.
TEST_F(PrefixCacheTest, FindsWhatAListWouldFind) {
  Random random(3);
  PrefixCache cache(backend_, plenty);
  std::vector<std::vector<int32_t>> list;
  const auto some = [&] {
    std::vector<int32_t> tokens(1 + random.next() % 9);
    for (int32_t& token : tokens) token = static_cast<int32_t>(random.next() % 2);
    return tokens;
  };
  for (int step = 0; step < 2000; ++step) {
    const std::vector<int32_t> tokens = some();
    std::vector<int32_t> best;
    int64_t shared = 0;
    for (const auto& one : list) {
      const auto common = std::mismatch(one.begin(), one.end(), tokens.begin(), tokens.end()).first - one.begin();
      shared = std::max<int64_t>(shared, common);
      if (common == static_cast<int64_t>(one.size()) && one.size() > best.size()) best = one;
    }
    ASSERT_EQ(found(cache, tokens), best);
    ASSERT_EQ(cache.shared_prefix(tokens), shared);
    list.push_back(some());
    put(cache, list.back());
  }
}

TEST_F(PrefixCacheTest, WhatWasNotUsedForTheLongestTimeGoes) {
  PrefixCache cache(backend_, 3 * FakeState::fixed_bytes);
  put(cache, ids({1}));
  put(cache, ids({2}));
  found(cache, ids({1}));
  put(cache, ids({3}));
  put(cache, ids({4}));
  EXPECT_THAT(found(cache, ids({2})), IsEmpty());
  EXPECT_THAT(found(cache, ids({1})), ElementsAre(1));
  EXPECT_EQ(cache.snapshots(), 3);
  EXPECT_TRUE(cache.make_room(2 * FakeState::fixed_bytes));
  EXPECT_THAT(found(cache, ids({1})), ElementsAre(1));
  EXPECT_FALSE(cache.make_room(4 * FakeState::fixed_bytes));
  EXPECT_EQ(backend_.state_bytes(), 0u);
}

TEST_F(PrefixCacheTest, PC_07_ManyTurnsStayWithinTheBudget) {
  const size_t budget = 10 * FakeState::fixed_bytes;
  PrefixCache cache(backend_, budget);
  std::vector<int32_t> tokens;
  for (int32_t turn = 0; turn < 200; ++turn) {
    tokens.insert(tokens.end(), {turn, turn});
    put(cache, tokens);
    ASSERT_LE(backend_.state_bytes(), budget);
  }
  EXPECT_EQ(found(cache, tokens), tokens);
}

TEST_F(PrefixCacheTest, PC_05_SnapshotsOutliveTheProcess) {
  {
    PrefixCache cache(backend_, plenty, store());
    put(cache, ids({1, 2, 3}), true);
    put(cache, ids({1, 2, 3, 4, 5}), true);
    put(cache, ids({1, 2, 8}), true);
    put(cache, ids({1, 2, 3, 4, 5, 6}), false);
  }
  EXPECT_EQ(files().size(), 3u);
  PrefixCache cache(backend_, plenty, store());
  EXPECT_EQ(cache.snapshots(), 0);
  EXPECT_THAT(found(cache, ids({1, 2, 3, 4, 5, 6})), ElementsAre(1, 2, 3, 4, 5));
  EXPECT_THAT(found(cache, ids({1, 2, 8, 8})), ElementsAre(1, 2, 8));
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(PrefixCacheTest, WhatMemoryLostComesFromTheStore) {
  PrefixCache cache(backend_, 2 * FakeState::fixed_bytes, store());
  for (int32_t i = 0; i < 10; ++i) {
    put(cache, ids({i, 1}), true);
    cache.flush();
  }
  EXPECT_LE(cache.snapshots(), 2);
  for (int32_t i = 0; i < 10; ++i) EXPECT_THAT(found(cache, ids({i, 1, 2})), ElementsAre(i, 1));
}

// Every byte of a file matters; whatever is wrong with it, it is reported and passed over, and others still serve.
TEST_F(PrefixCacheTest, ADamagedFileIsIgnoredWithAWarning) {
  {
    PrefixCache cache(backend_, plenty, store());
    put(cache, ids({1, 2, 3}), true);
    cache.flush();
    put(cache, ids({1, 2, 3, 4, 5}), true);
  }
  std::map<std::filesystem::path, std::string> whole;
  for (const auto& path : files()) {
    std::ifstream in(path, std::ios::binary);
    whole[path] = std::string((std::istreambuf_iterator<char>(in)), {});
  }
  ASSERT_EQ(whole.size(), 2u);
  const auto try_file = [&](const std::filesystem::path& damaged, const std::string& data, const std::string& what) {
    for (const auto& [path, good] : whole) std::ofstream(path, std::ios::binary) << (path == damaged ? data : good);
    warnings_.clear();
    PrefixCache cache(backend_, plenty, store());
    const std::vector<int32_t> got = found(cache, ids({1, 2, 3, 4, 5, 6}));
    EXPECT_TRUE(got.empty() || got == ids({1, 2, 3})) << what;
    ASSERT_FALSE(warnings_.empty()) << what;
    EXPECT_THAT(warnings_[0], HasSubstr("damaged, ignored")) << what;
  };
  for (const auto& [path, good] : whole) {
    for (size_t i = 0; i < good.size(); ++i) {
      std::string bad = good;
      bad[i] = static_cast<char>(bad[i] ^ 0x10);
      try_file(path, bad, "byte " + std::to_string(i));
    }
    for (const size_t size : {size_t{0}, size_t{5}, good.size() / 2, good.size() - 1}) {
      try_file(path, good.substr(0, size), "cut to " + std::to_string(size));
    }
    try_file(path, good + "x", "a byte too many");
  }
}

TEST_F(PrefixCacheTest, AnotherModelSeesNothing) {
  {
    PrefixCache cache(backend_, plenty, store());
    put(cache, ids({1, 2, 3}), true);
  }
  PrefixCache cache(backend_, plenty, store(plenty, "another"));
  EXPECT_THAT(found(cache, ids({1, 2, 3, 4})), IsEmpty());
}

TEST_F(PrefixCacheTest, TwoProcessesDoNotShareADirectory) {
  const auto first = store();
  const auto second = SnapshotStore::open({directory_.path(), "m", plenty, {}});
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().message(), HasSubstr("another process"));
}

// Someone may name a folder such as /tmp.
TEST_F(PrefixCacheTest, AFolderThatIsThereKeepsItsModeAndTheOneWithinIsPrivate) {
  namespace fs = std::filesystem;
  fs::permissions(directory_.path(), fs::perms(01777));
  const auto opened = store();
  EXPECT_EQ(fs::status(directory_.path()).permissions(), fs::perms(01777));
  EXPECT_EQ(fs::status(opened->directory()).permissions(), fs::perms::owner_all);
}

TEST_F(PrefixCacheTest, FilesStayWithinTheirBudgetAndNoneLosesItsBase) {
  size_t one = 0;
  {
    const auto probe = store();
    probe->put(ids({1}), "", 0, snapshot(ids({1})));
    probe->flush();
    one = probe->bytes();
  }
  std::filesystem::remove(files()[0]);
  {
    PrefixCache cache(backend_, plenty, store(5 * one));
    std::vector<int32_t> chain;
    for (int32_t i = 0; i < 12; ++i) {
      chain.push_back(i);
      put(cache, chain, true);
      put(cache, ids({500 + i}), true);
      cache.flush();
    }
    EXPECT_LE(cache.store()->bytes(), 6 * one);
  }
  warnings_.clear();
  PrefixCache cache(backend_, plenty, store(5 * one));
  EXPECT_THAT(warnings_, IsEmpty());
  EXPECT_EQ(static_cast<int64_t>(files().size()), cache.store()->files());
}

TEST_F(PrefixCacheTest, TheSameSequenceAgainTakesNoMoreRoom) {
  const auto kept = store();
  for (int i = 0; i < 3; ++i) {
    kept->put(ids({1, 2}), "", 0, snapshot(ids({1, 2})));
    kept->flush();
  }
  EXPECT_EQ(kept->bytes(), std::filesystem::file_size(files()[0]));
}

// A process that is killed leaves at most a part of a file beside the whole ones.
TEST_F(PrefixCacheTest, APartOfAFileIsCleanedAway) {
  {
    PrefixCache cache(backend_, plenty, store());
    put(cache, ids({1, 2, 3}), true);
  }
  const std::string part = files()[0].string() + ".part";
  std::ofstream(part, std::ios::binary) << "half";
  PrefixCache cache(backend_, plenty, store());
  EXPECT_FALSE(std::filesystem::exists(part));
  EXPECT_THAT(found(cache, ids({1, 2, 3, 4})), ElementsAre(1, 2, 3));
}

}  // namespace
}  // namespace lily
