// What a Hugging Face repository holds at one commit, and which of it a model needs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "hub/digest.h"

namespace lily::hub {

struct Repository {
  std::string organisation;
  std::string name;
  std::string revision = "main";  // branch, tag or commit

  std::string id() const { return organisation + "/" + name; }
};

// "ORGANISATION/NAME[@REVISION]", or the address of the repository's page.
Result<Repository> parse_repository(const std::string& text);

struct RemoteFile {
  std::string name;  // at the root of the repository: letters, digits, '.', '_', '-'
  int64_t size = 0;  // bytes
  Digest digest;
  bool optional = false;  // a licence or the model card: the engine does not read it
};

struct Snapshot {
  std::string commit;  // 40 hexadecimal digits
  std::vector<RemoteFile> files;

  int64_t bytes() const;
  const RemoteFile* find(const std::string& name) const;
};

// Reads the Hub's answer to /api/models/ID/revision/REVISION?blobs=true and keeps the files that a model
// needs. The text comes from a server: a name that could leave the destination folder refuses it whole.
Result<Snapshot> parse_snapshot(const std::string& where, const std::string& text);

}  // namespace lily::hub
