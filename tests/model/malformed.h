// One spoiled place in a valid checkpoint: one exact error, and `lily inspect` says it in one line and exits with 2.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <ostream>

#include "model/weights.h"
#include "support/temporary_directory.h"
#include "support/test_model.h"

#ifdef LILY_BINARY
#include "support/run_lily.h"
#endif

namespace lily::test {

using nlohmann::json;

inline const std::string layer0 = "language_model.model.layers.0.";

using Damage = std::function<void(const std::string& directory)>;

struct Malformed {
  std::string name;
  std::function<void(TestModel&)> spoil;  // before the files are written
  Damage damage;                          // to the written files
  Error expected;                         // `where` without the folder that it starts with
  bool sharded = false;

  friend void PrintTo(const Malformed& m, std::ostream* out) { *out << m.name; }
};

inline Malformed spoiled(std::string name, std::function<void(TestModel&)> spoil, Error expected) {
  return {std::move(name), std::move(spoil), nullptr, std::move(expected)};
}
inline Malformed damaged(std::string name, Damage damage, Error expected) {
  return {std::move(name), nullptr, std::move(damage), std::move(expected)};
}
inline Malformed damaged_shards(std::string name, Damage damage, Error expected) {
  return {std::move(name), nullptr, std::move(damage), std::move(expected), true};
}

inline Damage replace_file(const std::string& name, const std::string& text) {
  return [=](const std::string& directory) { write_text(directory + "/" + name, text); };
}
inline Damage remove_file(const std::string& name) {
  return [=](const std::string& directory) { std::filesystem::remove(directory + "/" + name); };
}

inline Result<void> load(const std::string& directory) {
  LILY_TRY(const Checkpoint checkpoint, Checkpoint::open(directory));
  LILY_TRY(const ModelWeights weights, bind_weights(checkpoint));
  return {};
}

inline void expect_one_error(const Malformed& m) {
  const TemporaryDirectory directory;
  TestModel model;
  if (m.spoil) m.spoil(model);
  m.sharded ? model.write_sharded(directory.path()) : model.write(directory.path());
  if (m.damage) m.damage(directory.path());

  const Result<void> loaded = load(directory.path());
  ASSERT_FALSE(loaded);
  const Error& error = loaded.error();
  EXPECT_EQ(error.where, directory.path() + m.expected.where);
  EXPECT_EQ(error.what, m.expected.what);
  EXPECT_EQ(error.expected, m.expected.expected);
  EXPECT_EQ(error.got, m.expected.got);

#ifdef LILY_BINARY  // the sanitizers' build has the readers only, and no program
  const ProgramRun run = run_lily("inspect " + directory.path());
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_EQ(run.err, "lily: " + error.message() + "\n");
  EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1);
  EXPECT_EQ(run.out, "");
#endif
}

inline auto all_of(std::initializer_list<std::vector<Malformed>> lists) {
  std::vector<Malformed> all;
  for (const auto& list : lists) all.insert(all.end(), list.begin(), list.end());
  return testing::ValuesIn(all);
}

inline std::string name_of_case(const testing::TestParamInfo<Malformed>& info) { return info.param.name; }

}  // namespace lily::test
