// Snapshots of sequences, found again by their tokens: a radix tree over token ids with one byte budget. The recurrent state
// cannot be rewound, so a prefix can be reused just where a snapshot was taken.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "base/result.h"
#include "runtime/snapshot_store.h"

namespace lily {

// Used by one thread.
class PrefixCache {
 public:
  // `budget`: bytes of all states and snapshots of the backend, which must outlive the cache. `store`: where snapshots
  // outlive the process, or null.
  PrefixCache(Backend& backend, size_t budget, std::unique_ptr<SnapshotStore> store = nullptr);
  ~PrefixCache();

  // The longest snapshot of a prefix of `tokens`, of at most `limit` tokens; null: none.
  std::shared_ptr<const Snapshot> find(std::span<const int32_t> tokens, int64_t limit);
  int64_t longest(std::span<const int32_t> tokens, int64_t limit) const;  // its length; 0: none
  // How many of `tokens` begin some sequence in the cache: where the two part, a snapshot may be of use to a third.
  int64_t shared_prefix(std::span<const int32_t> tokens) const;

  // Puts in the snapshot of exactly `tokens` and makes room for it. `keep`: in the store as well.
  void insert(std::span<const int32_t> tokens, std::shared_ptr<const Snapshot> snapshot, bool keep);

  // Drops what was not used for the longest time until `bytes` more fit. False: they do not fit in an empty cache.
  bool make_room(size_t bytes);

  size_t budget() const { return budget_; }
  int64_t snapshots() const;  // in memory
  const SnapshotStore* store() const { return store_.get(); }
  void flush();  // waits until the store has written everything

 private:
  struct Node;
  struct Place;  // where a walk along tokens ends

  Place walk(std::span<const int32_t> tokens) const;
  Node& deepest(std::span<const int32_t> tokens, int64_t limit) const;
  Node& node_at(std::span<const int32_t> tokens);
  std::shared_ptr<const Snapshot> load(Node& node);
  std::shared_ptr<const Snapshot> read_stored(const Node& node);
  void read_store();
  void put_in_store(Node& node, std::span<const int32_t> tokens);
  Node* oldest() const;
  void drop_if_useless(Node* node);

  Backend& backend_;
  size_t budget_;
  std::unique_ptr<SnapshotStore> store_;
  std::unique_ptr<Node> root_;
  uint64_t clock_ = 0;
};

}  // namespace lily
