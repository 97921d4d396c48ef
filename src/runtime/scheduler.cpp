#include "runtime/scheduler.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "base/stopwatch.h"
#include "runtime/mailbox.h"
#include "runtime/session.h"

namespace lily {
namespace {

// With others decoding, a chunk is this short: the wait that a listener feels.
constexpr int64_t shared_chunk = 256;
// A prompt waits for another that is computing at least so many tokens which both begin with.
constexpr int64_t worth_waiting = 256;
// Of memory beside a sequence's own tokens: the rest of its last block, and one more for decoding.
constexpr int64_t spare_tokens = 512;

struct Task {
  Task(JobRequest r, std::shared_ptr<Mailbox> m, ReplyWriter w)
      : request(std::move(r)), mailbox(std::move(m)), writer(std::move(w)) {}

  // What the state must hold before the next token can be sampled.
  std::vector<int32_t> tokens() {
    std::vector<int32_t> all = request.prompt;
    const std::vector<int32_t>& reply = writer.reply().tokens;
    all.insert(all.end(), reply.begin(), reply.end());
    return all;
  }
  bool reads() const { return session && session->missing() > 0; }
  bool writes() const { return session && session->missing() == 0; }

  JobRequest request;
  std::shared_ptr<Mailbox> mailbox;
  ReplyWriter writer;
  std::optional<Session> session;  // none: it waits
  std::vector<int32_t> goal;       // the session's, while it reads
  int64_t to_prefill = 0;
  bool sampled = false;  // the last token of the reply has yet to be given to the model
};
using Tasks = std::deque<std::unique_ptr<Task>>;

int64_t common_prefix(std::span<const int32_t> a, std::span<const int32_t> b) {
  return std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin();
}

}  // namespace

struct Scheduler::Impl {
  Impl(Backend& with, const Tokenizer& tokens, const SchedulerOptions& with_options)
      : backend(with), tokenizer(tokens), options(with_options) {}

  Result<void> start(std::unique_ptr<SnapshotStore> store);
  void work();
  void step();

  void drop_cancelled();
  void admit();
  bool waits_for_another(const Task& task, const std::vector<int32_t>& tokens) const;
  Result<bool> start_session(Task& task);
  void read_chunk();
  void write_step();
  void feed(std::span<Task* const> tasks);
  void sample(Task& task);
  void finish(Task& task, Finish finish);
  void read_ahead(Task& task, const std::vector<int32_t>& closing);
  void fail(Task& task, const Error& error);
  void keep_within_budget();
  void remove_ended();
  bool others_write(const Task* task) const;
  void publish();

  Backend& backend;
  const Tokenizer& tokenizer;
  SchedulerOptions options;
  int64_t context = 0;
  std::shared_ptr<PrefixCache> cache;

  // Of the scheduler's thread.
  Tasks running, waiting;
  std::vector<const Task*> ended;  // in this step
  double write_debt = 0;           // seconds that decoding may take before the next chunk
  size_t next_reader = 0;

  mutable std::mutex mutex;  // for all below
  std::condition_variable called;
  Tasks inbox;
  bool stopping = false;
  SchedulerStats stats;
  std::thread thread;
};

Result<std::unique_ptr<Scheduler>> Scheduler::create(Backend& backend, const Tokenizer& tokenizer,
                                                     const SchedulerOptions& options,
                                                     std::unique_ptr<SnapshotStore> store) {
  auto impl = std::make_unique<Impl>(backend, tokenizer, options);
  LILY_CHECK(impl->start(std::move(store)));
  return std::unique_ptr<Scheduler>(new Scheduler(std::move(impl)));
}

Scheduler::Scheduler(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Scheduler::~Scheduler() {
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->stopping = true;
  }
  impl_->called.notify_all();
  impl_->thread.join();
}

Result<void> Scheduler::Impl::start(std::unique_ptr<SnapshotStore> store) {
  const StateCost cost = backend.state_cost();
  const int64_t most = backend.config().max_position_embeddings;
  const size_t fixed = 2 * cost.fixed + spare_tokens * cost.per_token;  // the state and its snapshot
  const int64_t fits =
      options.cache_bytes < fixed ? 0 : static_cast<int64_t>((options.cache_bytes - fixed) / cost.per_token);
  context = options.context > 0 ? std::min(options.context, most) : std::min(most, fits);
  if (context < 1 || context > fits) {
    return Error{
        .where = "cache size",
        .what = "too small for one request",
        .expected = std::to_string(fixed + static_cast<size_t>(std::max<int64_t>(context, 1)) * cost.per_token) +
                    " bytes for a context of " + std::to_string(std::max<int64_t>(context, 1)) + " tokens",
        .got = std::to_string(options.cache_bytes)};
  }
  cache = std::make_shared<PrefixCache>(backend, options.cache_bytes, std::move(store));
  publish();
  thread = std::thread([this] { work(); });
  return {};
}

std::shared_ptr<Job> Scheduler::submit(JobRequest request) {
  const auto vocab = static_cast<int32_t>(impl_->backend.config().vocab_size);
  auto mailbox = std::make_shared<Mailbox>();
  ReplyWriter writer(&impl_->tokenizer, request.prompt, vocab, request.reply);
  auto task = std::make_unique<Task>(std::move(request), mailbox, std::move(writer));
  {
    const std::lock_guard lock(impl_->mutex);
    SchedulerStats& stats = impl_->stats;
    const int64_t room = impl_->options.slots + impl_->options.queue_limit;
    if (stats.running + stats.waiting >= room) return ++stats.rejected, nullptr;
    ++stats.requests;
    ++stats.waiting;
    impl_->inbox.push_back(std::move(task));
  }
  impl_->called.notify_all();
  return std::make_shared<MailboxJob>(std::move(mailbox));
}

int64_t Scheduler::context() const { return impl_->context; }

SchedulerStats Scheduler::stats() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->stats;
}

void Scheduler::Impl::work() {
  while (true) {
    {
      std::unique_lock lock(mutex);
      called.wait(lock, [&] { return stopping || !inbox.empty() || !running.empty() || !waiting.empty(); });
      std::move(inbox.begin(), inbox.end(), std::back_inserter(waiting));
      inbox.clear();
      if (stopping) break;
    }
    step();
  }
  for (Tasks* tasks : {&running, &waiting}) {
    for (const auto& task : *tasks) finish(*task, Finish::cancelled);
  }
  cache->flush();
}

// A chunk for one that reads, or a token for all that write.
void Scheduler::Impl::step() {
  drop_cancelled();
  admit();
  const bool some_read = std::any_of(running.begin(), running.end(), [](const auto& task) { return task->reads(); });
  if (some_read && (write_debt <= 0 || !others_write(nullptr))) {
    read_chunk();
  } else if (!running.empty()) {
    write_step();
  }
  remove_ended();
  keep_within_budget();
  publish();
}

bool Scheduler::Impl::others_write(const Task* task) const {
  return std::any_of(running.begin(), running.end(),
                     [&](const auto& other) { return other.get() != task && other->writes(); });
}

void Scheduler::Impl::drop_cancelled() {
  for (Tasks* tasks : {&running, &waiting}) {
    for (const auto& task : *tasks) {
      if (task->mailbox->cancelled()) finish(*task, Finish::cancelled);
    }
  }
  remove_ended();
}

void Scheduler::Impl::remove_ended() {
  for (Tasks* tasks : {&running, &waiting}) {
    std::erase_if(*tasks,
                  [&](const auto& task) { return std::find(ended.begin(), ended.end(), task.get()) != ended.end(); });
  }
  ended.clear();
}

// Those that wait get a state, in their order, as long as there are slots and memory.
void Scheduler::Impl::admit() {
  for (auto it = waiting.begin(); it != waiting.end() && static_cast<int>(running.size()) < options.slots;) {
    Task& task = **it;
    const Result<bool> started = start_session(task);
    if (!started) fail(task, started.error());
    if (started && !*started) {
      ++it;
      continue;
    }
    if (started) running.push_back(std::move(*it));
    it = waiting.erase(it);
  }
  ended.clear();  // the failed ones were erased here
}

// True where a running task is about to compute much of what this one begins with.
bool Scheduler::Impl::waits_for_another(const Task& task, const std::vector<int32_t>& tokens) const {
  const int64_t cached = cache->longest(tokens, static_cast<int64_t>(tokens.size()) - 1);
  return std::any_of(running.begin(), running.end(), [&](const auto& other) {
    return other.get() != &task && other->reads() && common_prefix(other->goal, tokens) >= cached + worth_waiting;
  });
}

// False: not yet.
Result<bool> Scheduler::Impl::start_session(Task& task) {
  std::vector<int32_t> tokens = task.tokens();
  const auto total = static_cast<int64_t>(tokens.size());
  if (waits_for_another(task, tokens)) return false;
  {
    const auto prefix = cache->find(tokens, total - 1);  // held, so that making room does not drop it
    const int64_t shared = prefix ? prefix->position() : 0;
    const StateCost cost = backend.state_cost();
    const size_t needed = 2 * cost.fixed + static_cast<size_t>(total - shared + spare_tokens) * cost.per_token;
    if (!cache->make_room(needed) && !running.empty()) return false;
    LILY_TRY(Session session, Session::create(backend, context, cache));
    task.session = std::move(session);
  }
  const int64_t known = cache->shared_prefix(tokens);
  LILY_TRY(const int64_t reused, task.session->begin(tokens, task.request.boundaries));
  Reply& reply = task.writer.reply();
  if (reply.tokens.empty()) {
    reply.prompt_tokens = total;
    reply.reused_tokens = reused;
    reply.known_tokens = known;
  }
  task.sampled = false;
  task.to_prefill = total - reused;
  task.goal = std::move(tokens);
  task.mailbox->post(Progress{0, task.to_prefill});
  return true;
}

void Scheduler::Impl::read_chunk() {
  std::vector<Task*> readers;
  for (const auto& task : running) {
    if (task->reads()) readers.push_back(task.get());
  }
  Task& task = *readers[next_reader++ % readers.size()];
  const bool alone = !others_write(&task);
  const Stopwatch watch;
  const int64_t before = task.session->missing();
  const Result<void> done = task.session->prefill_chunk(alone ? options.chunk : std::min(options.chunk, shared_chunk));
  const double seconds = watch.seconds();
  write_debt = alone ? 0 : seconds;
  if (!done) return fail(task, done.error());
  Reply& reply = task.writer.reply();
  reply.prefilled_tokens += before - task.session->missing();
  reply.prefill_seconds += seconds;
  task.mailbox->post(Progress{task.to_prefill - task.session->missing(), task.to_prefill});
}

void Scheduler::Impl::write_step() {
  const Stopwatch watch;
  std::vector<Task*> writers, to_feed;
  for (const auto& task : running) {
    if (!task->writes()) continue;
    if (task->writer.finished()) {  // max_tokens: 0
      finish(*task, *task->writer.finished());
    } else if (task->sampled && task->session->full()) {
      finish(*task, Finish::context_full);
    } else {
      writers.push_back(task.get());
      if (task->sampled) to_feed.push_back(task.get());
    }
  }
  if (!to_feed.empty()) feed(to_feed);
  const double seconds = watch.seconds();
  for (Task* task : writers) {
    if (std::find(ended.begin(), ended.end(), task) != ended.end()) continue;
    task->writer.reply().decode_seconds += seconds;
    sample(*task);
  }
  write_debt -= watch.seconds();
}

void Scheduler::Impl::feed(std::span<Task* const> tasks) {
  const Stopwatch watch;
  std::vector<Session*> sessions;
  std::vector<int32_t> tokens;
  for (Task* task : tasks) {
    sessions.push_back(&*task->session);
    tokens.push_back(task->writer.reply().tokens.back());
  }
  const Result<void> decoded = Session::append_each(sessions, tokens);
  for (Task* task : tasks) {
    if (!decoded) {
      fail(*task, decoded.error());
    } else {
      ++task->writer.reply().decoded_tokens;
    }
  }
  const std::lock_guard lock(mutex);
  ++stats.decode_steps;
  stats.decode_seconds += watch.seconds();
}

void Scheduler::Impl::sample(Task& task) {
  const Result<ReplyStep> step = task.writer.next(task.session->logits());
  if (!step) return fail(task, step.error());
  if (step->id >= 0) {
    task.sampled = true;
    task.mailbox->post(*step);
  }
  if (task.writer.finished()) finish(task, *task.writer.finished());
}

void Scheduler::Impl::finish(Task& task, Finish finish) {
  ended.push_back(&task);
  const ReplyStep rest = task.writer.end(finish);
  if (!rest.events.empty()) task.mailbox->post(rest);
  const Reply reply = task.writer.reply();
  const std::vector<int32_t> closing =
      task.request.on_finished ? task.request.on_finished(reply) : std::vector<int32_t>();
  {
    const std::lock_guard lock(mutex);
    ++(finish == Finish::cancelled ? stats.cancelled : stats.finished);
    stats.prompt_tokens += reply.prompt_tokens;
    stats.reused_tokens += reply.reused_tokens;
    stats.prefilled_tokens += reply.prefilled_tokens;
    stats.decoded_tokens += reply.decoded_tokens;
    stats.prefill_seconds += reply.prefill_seconds;
  }
  task.mailbox->post(reply);
  if (!task.session) return;
  finish == Finish::cancelled ? task.session->remember(false) : read_ahead(task, closing);
  task.session.reset();
}

// The reply's last token and what certainly follows it, so that the next turn finds the whole of this one.
void Scheduler::Impl::read_ahead(Task& task, const std::vector<int32_t>& closing) {
  std::vector<int32_t> tokens = task.tokens();
  tokens.insert(tokens.end(), closing.begin(), closing.end());
  Session& session = *task.session;
  if (closing.empty() || static_cast<int64_t>(tokens.size()) > session.capacity()) return session.remember(true);
  if (!session.begin(tokens, {})) return;
  while (session.missing() > 0) {
    if (!session.prefill_chunk(options.chunk)) return;
  }
  session.remember(true);
}

void Scheduler::Impl::fail(Task& task, const Error& error) {
  ended.push_back(&task);
  task.session.reset();
  {
    const std::lock_guard lock(mutex);
    ++stats.failed;
  }
  task.mailbox->post(error);
}

// Sequences grow. Where dropping snapshots is not enough, the youngest gives its memory back and waits its turn again.
void Scheduler::Impl::keep_within_budget() {
  while (!cache->make_room(0) && running.size() > 1) {
    running.back()->session.reset();
    waiting.push_front(std::move(running.back()));
    running.pop_back();
  }
}

void Scheduler::Impl::publish() {
  const std::lock_guard lock(mutex);
  stats.running = static_cast<int64_t>(running.size());
  stats.waiting = static_cast<int64_t>(waiting.size() + inbox.size());
  stats.cache_bytes = backend.state_bytes();
  stats.cache_budget = options.cache_bytes;
  stats.snapshots = cache->snapshots();
  if (cache->store()) stats.store_bytes = cache->store()->bytes();
}

}  // namespace lily
