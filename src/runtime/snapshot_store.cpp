#include "runtime/snapshot_store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <filesystem>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "base/mapped_file.h"
#include "base/output_file.h"

namespace lily {
namespace {

namespace fs = std::filesystem;

constexpr std::array<char, 8> magic = {'L', 'i', 'l', 'y', 'S', 'n', 'a', 'p'};
constexpr uint32_t version = 1;
constexpr const char* suffix = ".snapshot";
// Snapshots that wait hold their memory, so there must be few.
constexpr size_t max_waiting = 4;

// A file: this, the tokens after the base's (int32), the payload of Snapshot::write.
struct Header {
  std::array<char, 8> magic_bytes = magic;
  uint32_t format = version;
  uint32_t name_size = 32;
  std::array<char, 32> name{}, base{};  // hexadecimal; base: zeros for none
  int64_t position = 0, base_position = 0;
  uint64_t payload_bytes = 0;
  uint64_t payload_hash = 0;
  uint64_t head_hash = 0;  // of this with head_hash 0, and of the tokens
};

uint64_t head_hash(Header header, std::span<const int32_t> tokens) {
  header.head_hash = 0;
  return XXH3_64bits_withSeed(tokens.data(), tokens.size_bytes(), XXH3_64bits(&header, sizeof header));
}

std::string text_of(const std::array<char, 32>& name) { return name[0] ? std::string(name.data(), name.size()) : ""; }

std::array<char, 32> array_of(const std::string& name) {
  std::array<char, 32> array{};
  std::copy_n(name.begin(), std::min(name.size(), array.size()), array.begin());
  return array;
}

// Header and tokens of a file, if they are sound and fit the file's size.
std::optional<std::pair<Header, std::vector<int32_t>>> read_head(const std::string& path) {
  const Result<MappedFile> file = MappedFile::open(path);
  if (!file || file->bytes().size() < sizeof(Header)) return std::nullopt;
  Header header;
  std::memcpy(&header, file->bytes().data(), sizeof header);
  if (header.base_position < 0 || header.position <= header.base_position) return std::nullopt;
  const int64_t count = header.position - header.base_position;
  const uint64_t room = file->bytes().size() - sizeof header;
  if (header.magic_bytes != magic || header.format != version ||
      static_cast<uint64_t>(count) > room / sizeof(int32_t) ||
      static_cast<uint64_t>(count) * sizeof(int32_t) + header.payload_bytes != room) {
    return std::nullopt;
  }
  std::vector<int32_t> tokens(static_cast<size_t>(count));
  std::memcpy(tokens.data(), file->bytes().data() + sizeof header, tokens.size() * sizeof(int32_t));
  if (head_hash(header, tokens) != header.head_hash) return std::nullopt;
  return std::pair(header, std::move(tokens));
}

}  // namespace

std::string hash_of(std::span<const int32_t> tokens) {
  const XXH128_hash_t hash = XXH3_128bits(tokens.data(), tokens.size_bytes());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

struct SnapshotStore::Impl {
  struct File {
    std::string base;
    int64_t base_position;
    size_t bytes;
    fs::file_time_type used;
  };
  struct Task {
    std::vector<int32_t> tokens;
    std::string base;
    int64_t base_position;
    std::shared_ptr<const Snapshot> snapshot;
  };

  std::string path_of(const std::string& name) const { return directory + "/" + name + suffix; }
  void warn(const std::string& line) const {
    if (options.warn) options.warn(line);
  }

  Result<void> lock_directory();
  void scan();
  void work();
  void write(const Task& task);
  Result<size_t> write_file(const Task& task, const std::string& name, const std::string& temporary);
  bool drop_oldest_locked(const std::string& needed);
  bool drop_oldest(const std::string& needed);

  StoreOptions options;
  std::string directory;
  int lock_file = -1;
  std::vector<Entry> found;

  std::mutex mutex;  // for all below
  std::condition_variable changed;
  std::map<std::string, File> files;
  size_t bytes = 0;
  std::deque<Task> waiting;
  bool writing = false, stopping = false;
  bool failing = false;  // of the writer: the last file could not be written
  std::thread writer;
};

Result<std::unique_ptr<SnapshotStore>> SnapshotStore::open(const StoreOptions& options) {
  auto impl = std::make_unique<Impl>();
  impl->options = options;
  const XXH64_hash_t model = XXH3_64bits(options.model.data(), options.model.size());
  impl->directory = fmt::format("{}/{:016x}", options.directory, model);
  std::error_code failed;
  fs::create_directories(impl->directory, failed);
  if (failed) return Error{impl->directory, "cannot be made", "", failed.message()};
  // What was said in a chat is nobody else's business; a folder that was there before may be others' too.
  fs::permissions(impl->directory, fs::perms::owner_all, failed);
  LILY_CHECK(impl->lock_directory());
  impl->scan();
  impl->writer = std::thread([impl = impl.get()] { impl->work(); });
  return std::unique_ptr<SnapshotStore>(new SnapshotStore(std::move(impl)));
}

SnapshotStore::SnapshotStore(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

SnapshotStore::~SnapshotStore() {
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->stopping = true;
  }
  impl_->changed.notify_all();
  impl_->writer.join();
  ::close(impl_->lock_file);
}

// Two processes would delete each other's files.
Result<void> SnapshotStore::Impl::lock_directory() {
  const std::string path = directory + "/lock";
  lock_file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (lock_file < 0) return Error{path, "cannot be opened", "", std::strerror(errno)};
  if (::flock(lock_file, LOCK_EX | LOCK_NB) == 0) return {};
  ::close(lock_file);
  return Error{directory, "another process keeps its sessions there"};
}

void SnapshotStore::Impl::scan() {
  std::map<std::string, Entry> entries;
  std::error_code failed;
  for (const auto& item : fs::directory_iterator(directory, failed)) {
    const std::string path = item.path().string();
    if (path.ends_with(".part")) fs::remove(item.path(), failed);  // of a process that was killed
    if (!path.ends_with(suffix)) continue;
    auto head = read_head(path);
    if (!head || text_of(head->first.name) != item.path().stem().string()) {
      warn(path + ": damaged, ignored and removed");
      fs::remove(item.path(), failed);
      continue;
    }
    const std::string name = text_of(head->first.name), base = text_of(head->first.base);
    files[name] = {base, head->first.base_position, item.file_size(failed), item.last_write_time(failed)};
    bytes += files[name].bytes;
    entries[name] = {name, base, std::move(head->second), head->first.position};
  }
  // Shorter ones first; one whose base is missing is of no use.
  std::vector<Entry*> order;
  for (auto& [name, entry] : entries) order.push_back(&entry);
  std::sort(order.begin(), order.end(), [](const Entry* a, const Entry* b) { return a->position < b->position; });
  std::map<std::string, int64_t> good = {{"", 0}};
  for (Entry* entry : order) {
    const auto base = good.find(entry->base);
    if (base == good.end() || base->second + static_cast<int64_t>(entry->tokens.size()) != entry->position) {
      bytes -= files[entry->name].bytes;
      files.erase(entry->name);
      fs::remove(path_of(entry->name), failed);
      continue;
    }
    good[entry->name] = entry->position;
    found.push_back(std::move(*entry));
  }
}

const std::string& SnapshotStore::directory() const { return impl_->directory; }

const std::vector<SnapshotStore::Entry>& SnapshotStore::found() const { return impl_->found; }

bool SnapshotStore::put(std::span<const int32_t> tokens, const std::string& base, int64_t base_position,
                        std::shared_ptr<const Snapshot> snapshot) {
  {
    const std::lock_guard lock(impl_->mutex);
    if (impl_->waiting.size() >= max_waiting) return false;
    impl_->waiting.push_back({{tokens.begin(), tokens.end()}, base, base_position, std::move(snapshot)});
  }
  impl_->changed.notify_all();
  return true;
}

void SnapshotStore::Impl::work() {
  std::unique_lock lock(mutex);
  while (true) {
    changed.wait(lock, [&] { return stopping || !waiting.empty(); });
    if (waiting.empty()) return;
    Task task = std::move(waiting.front());
    waiting.pop_front();
    writing = true;
    lock.unlock();
    write(task);
    task.snapshot.reset();
    lock.lock();
    writing = false;
    changed.notify_all();
  }
}

void SnapshotStore::Impl::write(const Task& task) {
  Task own = task;
  {
    const std::lock_guard lock(mutex);
    if (!own.base.empty() && !files.contains(own.base)) own.base.clear(), own.base_position = 0;  // it went meanwhile
  }
  const std::string name = hash_of(own.tokens), temporary = path_of(name) + ".part";
  std::error_code failed;
  Result<size_t> size = write_file(own, name, temporary);
  for (int attempt = 0; !size && attempt < 8 && drop_oldest(own.base); ++attempt) {  // the disk may be full
    size = write_file(own, name, temporary);
  }
  if (size) fs::rename(temporary, path_of(name), failed);
  if (!size || failed) {
    // Once for a disk that stays full.
    if (!failing) warn(size ? path_of(name) + ": " + failed.message() : size.error().message());
    failing = true;
    fs::remove(temporary, failed);
    return;
  }
  failing = false;
  const std::lock_guard lock(mutex);
  if (const auto old = files.find(name); old != files.end()) bytes -= old->second.bytes;
  files[name] = {own.base, own.base_position, *size, fs::file_time_type::clock::now()};
  bytes += *size;
  while (bytes > options.budget && drop_oldest_locked("")) {
  }
}

Result<size_t> SnapshotStore::Impl::write_file(const Task& task, const std::string& name,
                                               const std::string& temporary) {
  Header header;
  header.name = array_of(name);
  header.base = array_of(task.base);
  header.position = task.snapshot->position();
  header.base_position = task.base_position;
  const auto tokens = std::span(task.tokens).subspan(static_cast<size_t>(task.base_position));
  std::error_code none;
  fs::remove(temporary, none);
  LILY_TRY(const OutputFile file, OutputFile::create(temporary));
  LILY_CHECK(file.write_at(sizeof header, std::as_bytes(tokens)));
  const size_t begin = sizeof header + tokens.size_bytes();
  size_t at = begin;
  Result<void> written;
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> hash(XXH3_createState(), XXH3_freeState);
  XXH3_64bits_reset(hash.get());
  task.snapshot->write(task.base_position, [&](std::span<const std::byte> part) {
    if (!written) return;
    written = file.write_at(static_cast<int64_t>(at), part);
    XXH3_64bits_update(hash.get(), part.data(), part.size());
    at += part.size();
  });
  LILY_CHECK(written);
  header.payload_bytes = at - begin;
  header.payload_hash = XXH3_64bits_digest(hash.get());
  header.head_hash = head_hash(header, tokens);
  LILY_CHECK(file.write_at(0, std::as_bytes(std::span(&header, 1))));
  LILY_CHECK(file.sync());
  return at;
}

// The oldest file, but none that another continues, nor `needed`. False: there is none.
bool SnapshotStore::Impl::drop_oldest_locked(const std::string& needed) {
  std::set<std::string> bases = {needed};
  for (const auto& [name, file] : files) bases.insert(file.base);
  auto oldest = files.end();
  for (auto file = files.begin(); file != files.end(); ++file) {
    if (!bases.contains(file->first) && (oldest == files.end() || file->second.used < oldest->second.used)) {
      oldest = file;
    }
  }
  if (oldest == files.end()) return false;
  std::error_code failed;
  fs::remove(path_of(oldest->first), failed);
  bytes -= oldest->second.bytes;
  files.erase(oldest);
  return true;
}

bool SnapshotStore::Impl::drop_oldest(const std::string& needed) {
  const std::lock_guard lock(mutex);
  return drop_oldest_locked(needed);
}

int64_t SnapshotStore::base_position(const std::string& name) {
  flush();  // it may still wait
  const std::lock_guard lock(impl_->mutex);
  const auto file = impl_->files.find(name);
  return file == impl_->files.end() ? 0 : file->second.base_position;
}

Result<std::unique_ptr<Snapshot>> SnapshotStore::get(const std::string& name, Backend& backend, const Snapshot* base) {
  {
    const std::lock_guard lock(impl_->mutex);
    const auto file = impl_->files.find(name);
    if (file == impl_->files.end()) return Error{impl_->path_of(name), "is gone"};
    file->second.used = fs::file_time_type::clock::now();
  }
  const std::string path = impl_->path_of(name);
  const auto read = [&]() -> Result<std::unique_ptr<Snapshot>> {
    const auto head = read_head(path);
    if (!head) return Error{path, "damaged"};
    LILY_TRY(const MappedFile file, MappedFile::open(path));
    const auto payload = file.bytes().last(head->first.payload_bytes);
    if (head->first.base_position != (base ? base->position() : 0) ||
        XXH3_64bits(payload.data(), payload.size()) != head->first.payload_hash) {
      return Error{path, "damaged"};
    }
    return backend.read_snapshot(base, head->first.position, payload);
  };
  Result<std::unique_ptr<Snapshot>> snapshot = read();
  std::error_code failed;
  if (snapshot) return fs::last_write_time(path, fs::file_time_type::clock::now(), failed), std::move(snapshot);
  impl_->warn(snapshot.error().message() + ", ignored and removed");
  fs::remove(path, failed);
  const std::lock_guard lock(impl_->mutex);
  if (const auto file = impl_->files.find(name); file != impl_->files.end()) {
    impl_->bytes -= file->second.bytes;
    impl_->files.erase(file);
  }
  return snapshot;
}

void SnapshotStore::flush() {
  std::unique_lock lock(impl_->mutex);
  impl_->changed.wait(lock, [&] { return impl_->waiting.empty() && !impl_->writing; });
}

size_t SnapshotStore::bytes() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->bytes;
}

int64_t SnapshotStore::files() const {
  const std::lock_guard lock(impl_->mutex);
  return static_cast<int64_t>(impl_->files.size());
}

}  // namespace lily
