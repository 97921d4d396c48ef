#include "hub/pull.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "base/mapped_file.h"
#include "base/paths.h"
#include "hub/download.h"
#include "hub/local_copy.h"
#include "hub/partial_file.h"
#include "hub/words.h"

namespace lily::hub {
namespace {

namespace fs = std::filesystem;

std::string default_directory(const Repository& repository) {
  std::string name = repository.name;
  if (repository.revision != "main") {
    name += "@" + repository.revision;
    std::replace(name.begin(), name.end(), '/', '-');
  }
  return data_directory() + "/models/" + repository.organisation + "/" + name;
}

// Held while files are written, so that two pulls never write one file. The system frees it however the
// program ends.
class FolderLock {
 public:
  static Result<FolderLock> take(const std::string& directory) {
    std::error_code failed;
    fs::create_directories(directory, failed);
    FolderLock lock;
    lock.descriptor_ = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (lock.descriptor_ < 0) {
      return Error{.where = directory,
                   .what = "cannot be the destination: " + (failed ? failed.message() : std::strerror(errno))};
    }
    if (::flock(lock.descriptor_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
      return Error{.where = directory, .what = "another `lily pull` is writing there; let it end", .exit_code = 1};
    }
    return lock;
  }
  FolderLock(FolderLock&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  ~FolderLock() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }

 private:
  FolderLock() = default;
  int descriptor_ = -1;
};

Result<void> move_into_place(const std::string& directory, const RemoteFile& file) {
  const std::string path = directory + "/" + file.name;
  if (::rename(partial_path(directory, file).c_str(), path.c_str()) == 0) return {};
  return Error{.where = path, .what = fmt::format("cannot replace: {}", std::strerror(errno)), .exit_code = 1};
}

class Pull {
 public:
  Pull(const PullOptions& options, const std::atomic<bool>& interrupted, const Observer& observer)
      : options_(options), network_(options.network), activity_(interrupted, observer.note), observer_(observer) {
    const std::string& given = options.directory;
    directory_ = fs::absolute(given.empty() ? default_directory(options.repository) : given).lexically_normal();
  }

  Result<Pulled> run();

 private:
  Result<std::string> ask_hub();
  Result<Pulled> without_hub(const Error& error);
  Result<Pulled> use_cache(const std::string& cached);
  Result<Pulled> use_own_folder(const std::string& listing);

  Result<void> compare_files();
  bool needs_hash(const RemoteFile& file) const;
  Error difference() const;
  Result<void> check_space() const;
  Result<void> fetch();
  Result<void> download_wanted();
  void note_leftovers();
  void show(Progress::Phase phase, int64_t done, int64_t total, int files_done, size_t files);
  int64_t bytes_here() const;
  int64_t bytes_wanted() const;
  Pulled pulled(Pulled::How how, std::string why = "") const { return {how, directory_, snapshot_.commit, why}; }

  const PullOptions& options_;
  NetworkOptions network_;
  Activity activity_;
  const Observer& observer_;
  std::string directory_;
  std::optional<Snapshot> record_;     // of an earlier pull
  bool complete_ = false;              // what the record lists is there
  Snapshot snapshot_;                  // what the Hub has now
  std::vector<RemoteFile> wanted_;     // to download
  std::vector<RemoteFile> differing_;  // there, but with other content
};

Result<Pulled> Pull::run() {
  LILY_TRY(network_.endpoint, endpoint());
  LILY_TRY(network_.token, access_token());
  record_ = read_record(directory_);
  complete_ = record_ && is_complete(directory_, *record_);

  const Result<std::string> listing = ask_hub();
  if (activity_.interrupted()) return interruption();
  if (!listing) return without_hub(listing.error());
  LILY_TRY(snapshot_, parse_snapshot(options_.repository.id(), *listing));

  if (options_.directory.empty() && !complete_) {
    const std::string cached = find_in_cache(cache_directory(), options_.repository, snapshot_);
    if (!cached.empty()) return use_cache(cached);
  }
  return use_own_folder(*listing);
}

Result<std::string> Pull::ask_hub() {
  const Repository& repository = options_.repository;
  NetworkOptions network = network_;
  // Whoever has the model already is not kept waiting for a network that is not there.
  const bool here = complete_ || (options_.directory.empty() && !find_in_cache(cache_directory(), repository).empty());
  if (here && !options_.update) {
    network.retries = 0;
    network.stall_limit = std::min(network.stall_limit, std::chrono::milliseconds(10'000));
  }
  Connection connection(network, activity_);
  return connection.get_text(options_.repository.id(),
                             fmt::format("{}/api/models/{}/revision/{}?blobs=true", network.endpoint, repository.id(),
                                         Connection::escaped(repository.revision)));
}

Result<Pulled> Pull::without_hub(const Error& error) {
  if (options_.update) return error;
  if (complete_) {
    snapshot_ = *record_;
    LILY_CHECK(compare_files());
    if (!differing_.empty()) return difference();
    return pulled(Pulled::How::unconfirmed, error.message());
  }
  if (!options_.directory.empty()) return error;
  const std::string cached = find_in_cache(cache_directory(), options_.repository);
  if (cached.empty()) return error;
  directory_ = cached;
  return pulled(Pulled::How::unconfirmed, error.message());
}

Result<Pulled> Pull::use_cache(const std::string& cached) {
  directory_ = cached;
  if (options_.verify) {
    LILY_CHECK(compare_files());
    if (!differing_.empty()) return difference();
  }
  return pulled(Pulled::How::in_cache);
}

Result<Pulled> Pull::use_own_folder(const std::string& listing) {
  LILY_TRY(const FolderLock lock, FolderLock::take(directory_));
  LILY_CHECK(compare_files());
  const bool same_version = record_ && record_->commit == snapshot_.commit;
  if (!differing_.empty() && !options_.update) {
    if (complete_ && !same_version) return pulled(Pulled::How::out_of_date);
    return difference();
  }
  const bool fetching = !wanted_.empty();
  if (fetching) LILY_CHECK(fetch());
  if (!same_version) LILY_CHECK(write_file(record_path(directory_), std::as_bytes(std::span(listing))));
  note_leftovers();
  return pulled(fetching ? Pulled::How::downloaded : Pulled::How::up_to_date);
}

// A size is enough where an earlier pull has verified this very content.
bool Pull::needs_hash(const RemoteFile& file) const {
  const RemoteFile* known = record_ ? record_->find(file.name) : nullptr;
  return options_.verify || !known || known->digest != file.digest;
}

Result<void> Pull::compare_files() {
  int64_t total = 0;
  for (const RemoteFile& file : snapshot_.files) {
    LILY_TRY(const Match match, compare(directory_, file, false, nullptr));
    if (match == Match::same && needs_hash(file)) total += file.size;
  }
  int64_t done = 0;
  int files_done = 0;
  for (const RemoteFile& file : snapshot_.files) {
    LILY_TRY(const Match match, compare(directory_, file, needs_hash(file), [&](int64_t bytes) {
               show(Progress::Phase::checking, done += bytes, total, files_done, snapshot_.files.size());
               return !activity_.stopping();
             }));
    if (activity_.stopping()) return interruption();
    ++files_done;
    if (match == Match::same) continue;
    // A model card or licence that has changed, or that the user has edited, makes no other model.
    if (match == Match::differs && file.optional && !options_.update) continue;
    if (match == Match::differs) differing_.push_back(file);
    wanted_.push_back(file);
  }
  return {};
}

Error Pull::difference() const {
  const RemoteFile& file = differing_.front();
  return {.where = directory_ + "/" + file.name,
          .what = "is not the published file; `lily pull --update` replaces it, `--dir` pulls to another place",
          .expected = fmt::format("{} with checksum {}", readable_bytes(file.size), file.digest.hex)};
}

int64_t Pull::bytes_here() const {
  int64_t bytes = 0;
  for (const RemoteFile& file : wanted_) bytes += partial_bytes(directory_, file);
  return bytes;
}

int64_t Pull::bytes_wanted() const {
  int64_t bytes = 0;
  for (const RemoteFile& file : wanted_) bytes += file.size;
  return bytes;
}

Result<void> Pull::check_space() const {
  std::error_code failed;
  const fs::space_info space = fs::space(directory_, failed);
  const int64_t needed = bytes_wanted() - bytes_here();
  if (failed || space.available >= static_cast<uintmax_t>(needed)) return {};
  return Error{.where = directory_,
               .what = "not enough free space on that disk",
               .expected = readable_bytes(needed),
               .got = readable_bytes(static_cast<int64_t>(space.available)),
               .exit_code = 1};
}

Result<void> Pull::fetch() {
  LILY_CHECK(check_space());
  // The largest first, so that no single long file is left for the end.
  std::stable_sort(wanted_.begin(), wanted_.end(),
                   [](const RemoteFile& a, const RemoteFile& b) { return a.size > b.size; });
  activity_.add_bytes(bytes_here());
  const Result<void> downloaded = download_wanted();
  if (!downloaded) {
    const int64_t kept = bytes_here();
    if (kept > 0)
      observer_.note(fmt::format("{} of unfinished files are kept in {}; the same command goes on from there",
                                 readable_bytes(kept), directory_));
    return downloaded;
  }
  // Files of an older version are replaced only now, when everything of the new one is there.
  for (const RemoteFile& file : differing_) LILY_CHECK(move_into_place(directory_, file));
  return {};
}

Result<void> Pull::download_wanted() {
  const std::string url =
      fmt::format("{}/{}/resolve/{}/", network_.endpoint, options_.repository.id(), snapshot_.commit);
  const auto verified = [&](const RemoteFile& file) -> Result<void> {
    const bool replaces = std::any_of(differing_.begin(), differing_.end(),
                                      [&](const RemoteFile& other) { return other.name == file.name; });
    return replaces ? Result<void>() : move_into_place(directory_, file);
  };
  const auto tick = [&](int files_done) {
    show(Progress::Phase::downloading, activity_.bytes(), bytes_wanted(), files_done, wanted_.size());
  };
  return download(network_, url, directory_, wanted_, activity_, verified, tick);
}

// Says what lies there without belonging to this version; the user decides what becomes of it.
void Pull::note_leftovers() {
  std::string names;
  int64_t bytes = 0;
  std::error_code failed;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory_, failed)) {
    const std::string name = entry.path().filename();
    const bool weights = name.ends_with(".safetensors") && !snapshot_.find(name);
    if (!weights && !name.ends_with(".partial")) continue;
    names += (names.empty() ? "" : ", ") + printable(name);
    bytes += static_cast<int64_t>(entry.file_size(failed));
  }
  if (names.empty()) return;
  observer_.note(
      fmt::format("not part of this version and kept in {}: {} ({})", directory_, names, readable_bytes(bytes)));
}

void Pull::show(Progress::Phase phase, int64_t done, int64_t total, int files_done, size_t files) {
  observer_.progress({phase, done, total, files_done, static_cast<int>(files)});
}

}  // namespace

Result<Pulled> pull(const PullOptions& options, const std::atomic<bool>& interrupted, const Observer& observer) {
  try {
    return Pull(options, interrupted, observer).run();
  } catch (const std::exception& error) {  // of std::filesystem and std::thread
    return Error{.what = error.what(), .exit_code = 1};
  }
}

}  // namespace lily::hub
