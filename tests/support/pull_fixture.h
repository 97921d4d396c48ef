// A fake Hub with a small model, and `lily pull` with a home of its own.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "support/fake_hub.h"
#include "support/program.h"

namespace lily::test {

inline std::string random_bytes(size_t size, unsigned seed) {
  std::minstd_rand random(seed);
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random() >> 8);
  return bytes;
}

class PullTest : public testing::Test {
 protected:
  PullTest() {
    hub.put("config.json", R"({"model_type": "qwen3_5_moe"})");
    hub.put("tokenizer.json", random_bytes(100'000, 1), true);
    hub.put("model.safetensors.index.json",
            R"({"weight_map": {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}})");
    hub.put(first, random_bytes(3'000'000, 2), true);
    hub.put(second, random_bytes(2'000'000, 3), true);
    environment = {{"HOME", home},
                   {"PATH", "/usr/bin:/bin"},
                   {"XDG_DATA_HOME", home / "data"},
                   {"HF_ENDPOINT", hub.url()},
                   {"no_proxy", "*"}};
  }

  std::vector<std::string> command(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words{LILY_BINARY,
                                   "pull",
                                   "org/model",
                                   "--retry-wait=0.02",
                                   "--timeout=" + std::to_string(timeout),
                                   "--retries=" + std::to_string(retries)};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  Ran pull(const std::vector<std::string>& more = {}) const { return Program(command(more), environment).wait(); }

  std::filesystem::path folder() const { return home / "data/lily/models/org/model"; }
  std::string last_model() const { return read_text(home / "data/lily/last_model"); }

  // Pulls, and wants no fault.
  void pull_well(const std::vector<std::string>& more = {}) const {
    const Ran ran = pull(more);
    ASSERT_EQ(ran.exit_code, 0) << ran.err;
  }
  void expect_whole(const std::string& name, const std::string& content) const {
    EXPECT_TRUE(read_text(folder() / name) == content) << name;
  }
  void expect_model() const {
    expect_whole(first, random_bytes(3'000'000, 2));
    expect_whole(second, random_bytes(2'000'000, 3));
    expect_whole("tokenizer.json", random_bytes(100'000, 1));
    expect_no_partials();
  }
  std::vector<std::filesystem::path> partials() const {
    std::vector<std::filesystem::path> found;
    for (const auto& entry : std::filesystem::directory_iterator(folder())) {
      if (entry.path().extension() == ".partial") found.push_back(entry.path());
    }
    return found;
  }
  void expect_no_partials() const { EXPECT_TRUE(partials().empty()); }

  // Waits until the fake Hub has sent that much of a file.
  void wait_until_sent(const std::string& name, int64_t bytes) const {
    for (int i = 0; i < 500 && hub.bytes_sent(name) < bytes; ++i) ::usleep(10'000);
    ASSERT_GE(hub.bytes_sent(name), bytes);
  }

  const std::string first = "model-00001-of-00002.safetensors";
  const std::string second = "model-00002-of-00002.safetensors";
  TemporaryDirectory temporary;
  const std::filesystem::path home = std::filesystem::path(temporary.path()).lexically_normal();
  FakeHub hub;
  Environment environment;
  int timeout = 1;  // seconds
  int retries = 4;
};

// The same fault for the first `times` requests of one file.
inline auto fault_on(const std::string& name, Fault fault, int times = 1) {
  return [=](const HubRequest& request) {
    const bool hit = request.path.ends_with("/" + name) && request.nth < times;
    return hit ? fault : Fault{};
  };
}

// A refused or failing listing.
inline auto fault_on_listing(Fault fault, int times = 1000) {
  return [=](const HubRequest& request) {
    return request.path.starts_with("/api/") && request.nth < times ? fault : Fault{};
  };
}

}  // namespace lily::test
