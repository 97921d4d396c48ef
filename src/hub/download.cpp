#include "hub/download.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <mutex>
#include <string_view>
#include <thread>

#include "hub/partial_file.h"

namespace lily::hub {
namespace {

using Verdict = Attempt::Verdict;

Attempt wrong_reply(std::string what, std::string expected, std::string got) {
  return {Verdict::again,
          Error{.what = std::move(what), .expected = std::move(expected), .got = std::move(got), .exit_code = 1}};
}

// "bytes 100-199/200" as {100, 200}; {-1, -1} where it is anything else. An unknown total (*) is -1.
std::pair<int64_t, int64_t> parse_content_range(std::string_view text) {
  constexpr std::string_view unit = "bytes ";
  const size_t dash = text.find('-');
  const size_t slash = text.find('/');
  if (!text.starts_with(unit) || dash == std::string_view::npos || slash == std::string_view::npos) return {-1, -1};
  int64_t start = -1;
  int64_t total = -1;
  std::from_chars(text.data() + unit.size(), text.data() + dash, start);
  std::from_chars(text.data() + slash + 1, text.data() + text.size(), total);
  return {start, total};
}

// Does the reply carry the bytes from `start` (or all, with status 200) of a file of this size?
std::optional<Attempt> check_head(const ReplyHead& head, int64_t start, int64_t size) {
  if (head.status == 206) {
    const auto [from, total] = parse_content_range(head.content_range);
    if (from != start || (total >= 0 && total != size)) {
      return wrong_reply("the server sends another range", fmt::format("bytes {}-{}/{}", start, size - 1, size),
                         head.content_range);
    }
  } else if (head.length >= 0 && head.length != size) {
    return wrong_reply("the server sends another size than it lists", fmt::format("{} bytes", size),
                       fmt::format("{}", head.length));
  }
  return std::nullopt;
}

// One GET of what is missing.
Attempt get_rest(Connection& connection, const std::string& url, const RemoteFile& file, PartialFile& partial) {
  const int64_t start = partial.size();
  int64_t to_skip = -1;
  Attempt attempt = connection.get(url, start, [&](const ReplyHead& head, std::span<const std::byte> bytes) {
    if (to_skip < 0) {
      if (auto wrong = check_head(head, start, file.size)) return wrong;
      // A server that ignores ranges sends it all again; what is here already need not be written twice.
      to_skip = head.status == 200 ? start : 0;
    }
    const auto skipped = std::min(to_skip, static_cast<int64_t>(bytes.size()));
    to_skip -= skipped;
    bytes = bytes.subspan(static_cast<size_t>(skipped));
    if (partial.size() + static_cast<int64_t>(bytes.size()) > file.size) {
      return std::optional(
          wrong_reply("the server sends more than it lists", fmt::format("{} bytes", file.size), "more"));
    }
    if (auto written = partial.append(bytes); !written) {
      return std::optional(Attempt{Verdict::never, written.error()});
    }
    return std::optional<Attempt>();
  });
  attempt.received = partial.size() - start;  // what was skipped is no progress
  if (attempt.verdict == Verdict::done && partial.size() < file.size) {
    attempt =
        wrong_reply("the server ends too early", fmt::format("{} bytes", file.size), fmt::format("{}", partial.size()));
  }
  if (attempt.status == 416 && start > 0) {  // a range that it does not know: without one, then
    if (auto emptied = partial.restart(); !emptied) return {Verdict::never, emptied.error()};
  }
  return attempt;
}

Result<void> complete(Connection& connection, const std::string& url, const RemoteFile& file, PartialFile& partial,
                      Activity& activity) {
  for (int round = 0;; ++round) {
    if (partial.size() < file.size) {
      LILY_CHECK(connection.retry(file.name, [&] { return get_rest(connection, url, file, partial); }));
    }
    const Digest digest = partial.finish();
    if (digest == file.digest) return partial.sync();
    // Wrong bytes are of no use to anybody: they are dropped, so that they do not fill the disk, and fetched
    // once more.
    LILY_CHECK(partial.restart());
    const Error error{.where = file.name,
                      .what = "the bytes that came are not the published ones",
                      .expected = "checksum " + file.digest.hex,
                      .got = digest.hex,
                      .exit_code = 1};
    if (round == 1) return error;
    activity.note(error.message() + "; fetching the file again");
  }
}

}  // namespace

Result<void> download(const NetworkOptions& options, const std::string& base_url, const std::string& directory,
                      const std::vector<RemoteFile>& files, Activity& activity,
                      const std::function<Result<void>(const RemoteFile&)>& on_verified,
                      const std::function<void(int)>& tick) {
  std::atomic<size_t> next = 0;
  std::atomic<int> done = 0;
  std::atomic<int> working = std::min<int>(files_at_once, static_cast<int>(files.size()));
  std::mutex mutex;
  Result<void> outcome;

  const auto fetch = [&](Connection& connection, const RemoteFile& file) -> Result<void> {
    LILY_TRY(PartialFile partial, PartialFile::open(directory, file, activity));
    LILY_CHECK(complete(connection, base_url + Connection::escaped(file.name), file, partial, activity));
    return on_verified(file);
  };
  const auto work = [&] {
    Connection connection(options, activity);
    for (size_t i = next++; i < files.size() && !activity.stopping(); i = next++) {
      if (Result<void> fetched = fetch(connection, files[i]); fetched) {
        ++done;
      } else {
        const std::lock_guard lock(mutex);
        if (outcome) outcome = fetched;  // the others only stop because of this one
        activity.fail();
      }
    }
    --working;
  };
  std::vector<std::thread> threads;
  for (int i = working; i > 0; --i) threads.emplace_back(work);
  while (working > 0) {
    tick(done);
    std::this_thread::sleep_for(std::chrono::milliseconds(working > 0 ? 50 : 0));
  }
  for (std::thread& thread : threads) thread.join();
  tick(done);
  if (outcome && done < static_cast<int>(files.size())) outcome = interruption();
  return outcome;
}

}  // namespace lily::hub
