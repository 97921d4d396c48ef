// The Hub's file list is a stranger's text: whatever it says, no name may lead out of the destination folder.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "hub/snapshot.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  if (const auto snapshot = lily::hub::parse_snapshot("org/model", text)) {
    if (snapshot->bytes() < 0) std::abort();
    for (const lily::hub::RemoteFile& file : snapshot->files) {
      if (file.name.empty() || file.name.find_first_of("/\\") != std::string::npos || file.name[0] == '.') std::abort();
    }
  }
  if (const auto repository = lily::hub::parse_repository(text)) {
    if (repository->id().find("..") == 0 || repository->id().find("/..") != std::string::npos) std::abort();
  }
  return 0;
}
