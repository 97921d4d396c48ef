#include "runtime/prefix_cache.h"

#include <algorithm>
#include <unordered_map>

namespace lily {

// The tokens on the way from the root to a node are its sequence.
struct PrefixCache::Node {
  std::vector<int32_t> segment;  // those after the parent's
  int64_t end = 0;               // length of the sequence
  Node* parent = nullptr;
  std::vector<std::unique_ptr<Node>> children;  // no two begin with the same token

  std::shared_ptr<const Snapshot> snapshot;  // in memory, and
  std::string stored;                        // name in the store, or empty; a leaf has at least one of the two
  uint64_t used = 0;
};

struct PrefixCache::Place {
  Node* node;       // the last one whose whole segment matches
  Node* child;      // of that one, which matches in part; null: none
  int64_t matched;  // tokens
};

PrefixCache::PrefixCache(Backend& backend, size_t budget, std::unique_ptr<SnapshotStore> store)
    : backend_(backend), budget_(budget), store_(std::move(store)), root_(std::make_unique<Node>()) {
  if (store_) read_store();
}

PrefixCache::~PrefixCache() = default;

PrefixCache::Place PrefixCache::walk(std::span<const int32_t> tokens) const {
  Place place = {root_.get(), nullptr, 0};
  while (true) {
    const auto rest = tokens.subspan(static_cast<size_t>(place.matched));
    const auto& children = place.node->children;
    const auto child = std::find_if(children.begin(), children.end(),
                                    [&](const auto& c) { return !rest.empty() && c->segment[0] == rest[0]; });
    if (child == children.end()) return place;
    const std::vector<int32_t>& segment = (*child)->segment;
    place.matched += std::mismatch(segment.begin(), segment.end(), rest.begin(), rest.end()).first - segment.begin();
    if (place.matched < (*child)->end) return place.child = child->get(), place;
    place.node = child->get();
  }
}

int64_t PrefixCache::shared_prefix(std::span<const int32_t> tokens) const { return walk(tokens).matched; }

// The deepest node on the way along `tokens` that has a snapshot somewhere; the root: none.
PrefixCache::Node& PrefixCache::deepest(std::span<const int32_t> tokens, int64_t limit) const {
  Node* node = walk(tokens).node;
  while (node != root_.get() && (node->end > limit || (!node->snapshot && node->stored.empty()))) node = node->parent;
  return *node;
}

int64_t PrefixCache::longest(std::span<const int32_t> tokens, int64_t limit) const {
  return deepest(tokens, limit).end;
}

std::shared_ptr<const Snapshot> PrefixCache::find(std::span<const int32_t> tokens, int64_t limit) {
  while (true) {
    Node& node = deepest(tokens, limit);
    if (&node == root_.get()) return nullptr;
    if (const std::shared_ptr<const Snapshot> snapshot = load(node)) return snapshot;
    drop_if_useless(&node);  // its file is damaged
  }
}

// The node's snapshot, from the disk where memory does not have it. Null: the file is damaged, and forgotten.
std::shared_ptr<const Snapshot> PrefixCache::load(Node& node) {
  if (!node.snapshot && !node.stored.empty()) {
    node.snapshot = read_stored(node);
    if (!node.snapshot) node.stored.clear();
  }
  if (node.snapshot) node.used = ++clock_;
  return node.snapshot;
}

std::shared_ptr<const Snapshot> PrefixCache::read_stored(const Node& node) {
  const int64_t base_position = store_->base_position(node.stored);
  Node* base = node.parent;
  while (base->end > base_position) base = base->parent;
  const std::shared_ptr<const Snapshot> base_snapshot = base == root_.get() ? nullptr : load(*base);
  if (base != root_.get() && !base_snapshot) return nullptr;
  Result<std::unique_ptr<Snapshot>> snapshot = store_->get(node.stored, backend_, base_snapshot.get());
  return snapshot ? std::shared_ptr<const Snapshot>(std::move(snapshot).value()) : nullptr;
}

// The node of exactly these tokens, made where it is missing.
PrefixCache::Node& PrefixCache::node_at(std::span<const int32_t> tokens) {
  Place place = walk(tokens);
  if (place.child) {  // a new node between it and its parent
    auto& slot = *std::find_if(place.node->children.begin(), place.node->children.end(),
                               [&](const auto& c) { return c.get() == place.child; });
    auto middle = std::make_unique<Node>();
    std::vector<int32_t>& segment = place.child->segment;
    const auto cut = segment.begin() + (place.matched - place.node->end);
    middle->segment.assign(segment.begin(), cut);
    middle->end = place.matched;
    middle->parent = place.node;
    segment.erase(segment.begin(), cut);
    place.child->parent = middle.get();
    place.node = middle.get();
    middle->children.push_back(std::move(slot));
    slot = std::move(middle);
  }
  if (place.matched == static_cast<int64_t>(tokens.size())) return *place.node;
  auto leaf = std::make_unique<Node>();
  leaf->segment.assign(tokens.begin() + place.matched, tokens.end());
  leaf->end = static_cast<int64_t>(tokens.size());
  leaf->parent = place.node;
  place.node->children.push_back(std::move(leaf));
  return *place.node->children.back();
}

void PrefixCache::insert(std::span<const int32_t> tokens, std::shared_ptr<const Snapshot> snapshot, bool keep) {
  if (tokens.empty()) return;
  Node& node = node_at(tokens);
  node.snapshot = std::move(snapshot);
  node.used = ++clock_;
  if (keep && store_ && node.stored.empty()) put_in_store(node, tokens);
  make_room(0);
}

void PrefixCache::put_in_store(Node& node, std::span<const int32_t> tokens) {
  Node* base = node.parent;
  while (base != root_.get() && base->stored.empty()) base = base->parent;
  if (store_->put(tokens, base->stored, base->end, node.snapshot)) node.stored = hash_of(tokens);
}

bool PrefixCache::make_room(size_t bytes) {
  while (backend_.state_bytes() + bytes > budget_) {
    Node* node = oldest();
    if (!node) return false;
    node->snapshot.reset();
    drop_if_useless(node);
  }
  return true;
}

namespace {

template <class Node, class Visit>
void for_each_node(Node& node, const Visit& visit) {
  visit(node);
  for (const auto& child : node.children) for_each_node(*child, visit);
}

}  // namespace

// Of those that only the tree holds: to drop another would free nothing yet.
PrefixCache::Node* PrefixCache::oldest() const {
  Node* found = nullptr;
  for_each_node(*root_, [&](Node& node) {
    if (node.snapshot && node.snapshot.use_count() == 1 && (!found || node.used < found->used)) found = &node;
  });
  return found;
}

void PrefixCache::drop_if_useless(Node* node) {
  while (node != root_.get() && node->children.empty() && !node->snapshot && node->stored.empty()) {
    Node* parent = node->parent;
    std::erase_if(parent->children, [&](const auto& child) { return child.get() == node; });
    node = parent;
  }
}

int64_t PrefixCache::snapshots() const {
  int64_t count = 0;
  for_each_node(*root_, [&](const Node& node) { count += node.snapshot != nullptr; });
  return count;
}

void PrefixCache::read_store() {
  std::unordered_map<std::string, std::vector<int32_t>> sequences;
  for (const SnapshotStore::Entry& entry : store_->found()) {
    std::vector<int32_t> tokens = entry.base.empty() ? std::vector<int32_t>() : sequences[entry.base];
    tokens.insert(tokens.end(), entry.tokens.begin(), entry.tokens.end());
    node_at(tokens).stored = entry.name;
    sequences[entry.name] = std::move(tokens);
  }
}

void PrefixCache::flush() {
  if (store_) store_->flush();
}

}  // namespace lily
