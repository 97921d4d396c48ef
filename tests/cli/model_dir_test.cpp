#include "cli/model_dir.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/paths.h"

namespace lily::cli {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class ModelDirTest : public testing::Test {
 protected:
  void SetUp() override {
    root = fs::path(testing::TempDir()) / ("model_dir_test" + std::to_string(::getpid()));
    fs::create_directories(root);
    ::setenv("XDG_DATA_HOME", (root / "data").c_str(), 1);
    ::unsetenv("LILY_MODEL");
  }
  void TearDown() override { fs::remove_all(root); }

  std::string model(const std::string& name) {
    fs::create_directories(root / name);
    std::ofstream(root / name / "config.json") << "{}";
    return root / name;
  }
  void pulled(const std::string& path) {
    fs::create_directories(data_directory());
    std::ofstream(last_model_file()) << path << "\n";
  }

  fs::path root;
};

TEST_F(ModelDirTest, GivenBeforeEnvironmentBeforePulled) {
  pulled(model("c"));
  EXPECT_EQ(*find_model(""), (root / "c").string());
  ::setenv("LILY_MODEL", model("b").c_str(), 1);
  EXPECT_EQ(*find_model(""), (root / "b").string());
  EXPECT_EQ(*find_model(model("a")), (root / "a").string());
}

TEST_F(ModelDirTest, ADirectoryWithoutAModelIsSaidNotReplaced) {
  const auto given = find_model(root / "absent");
  ASSERT_FALSE(given.ok());
  EXPECT_THAT(given.error().message(), HasSubstr("--model: no model there"));
  pulled(root / "moved");
  ASSERT_FALSE(find_model("").ok());
  EXPECT_THAT(find_model("").error().message(), HasSubstr("last_model: no model there"));
  ::setenv("LILY_MODEL", (root / "gone").c_str(), 1);
  EXPECT_THAT(find_model("").error().message(), HasSubstr("LILY_MODEL: no model there"));
}

TEST_F(ModelDirTest, TheDataFolderIsTheUsers) {
  EXPECT_EQ(data_directory(), (root / "data/lily").string());
  ::unsetenv("XDG_DATA_HOME");
  ::setenv("HOME", "/tmp/somebody", 1);
  EXPECT_EQ(data_directory(), "/tmp/somebody/.local/share/lily");
}

// The test program lies in build/<preset>/tests, one folder beside the program's own.
TEST_F(ModelDirTest, TheBundledModelIsFoundFromTheSourceTree) {
  if (!fs::exists(fs::path(LILY_SOURCE_DIR) / "models/tiny/config.json")) GTEST_SKIP() << "no models/tiny";
  const auto found = find_model("");
  ASSERT_TRUE(found.ok()) << found.error().message();
  EXPECT_TRUE(fs::equivalent(*found, fs::path(LILY_SOURCE_DIR) / "models/tiny"));
}

}  // namespace
}  // namespace lily::cli
