// Any bytes as a snapshot's file and as the file of past replies: they are read or passed over, and nothing else happens.
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "runtime/prefix_cache.h"
#include "runtime/reply_memory.h"
#include "support/fake_backend.h"
#include "support/temporary_directory.h"

namespace {

using namespace lily;

// The sequence 1 2 3 under its own name, written once to learn where the store keeps it.
std::string snapshot_path(const std::string& directory, test::FakeBackend& backend) {
  const std::vector<int32_t> tokens = {1, 2, 3};
  const auto state = backend.make_state(10).value();
  (void)backend.prefill(*state, tokens, WantLogits::none, {});
  const auto store = SnapshotStore::open({.directory = directory, .model = "fuzz"}).value();
  store->put(tokens, "", 0, backend.snapshot(*state));
  store->flush();
  return store->directory() + "/" + hash_of(tokens) + ".snapshot";
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const test::TemporaryDirectory directory;
  static test::FakeBackend backend(16);
  static const std::string path = snapshot_path(directory.path(), backend);
  for (const std::string& file : {path, directory.path() + "/replies"}) {
    std::ofstream(file, std::ios::binary)
        .write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
  }
  {
    PrefixCache cache(backend, size_t{1} << 20,
                      SnapshotStore::open({directory.path(), "fuzz", size_t{1} << 20, {}}).value());
    const std::vector<int32_t> tokens = {1, 2, 3, 4};
    const auto found = cache.find(tokens, 4);
    if (found && found->position() > 4) __builtin_trap();
  }
  const ReplyMemory memory(directory.path() + "/replies");
  (void)memory.recall({}, {});
  return 0;
}
