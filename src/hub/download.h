// Files of one snapshot from the Hub to a folder, several at once, each resumed after any break and verified.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "hub/connection.h"
#include "hub/snapshot.h"

namespace lily::hub {

constexpr int files_at_once = 4;

// Completes the partial file of each of `files`; `on_verified` is called in its thread when the content is
// proved right. `tick` is called about ten times a second in this thread with the number of files done.
Result<void> download(const NetworkOptions& options, const std::string& base_url, const std::string& directory,
                      const std::vector<RemoteFile>& files, Activity& activity,
                      const std::function<Result<void>(const RemoteFile&)>& on_verified,
                      const std::function<void(int)>& tick);

}  // namespace lily::hub
