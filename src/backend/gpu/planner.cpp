#include "backend/gpu/planner.h"

#include <algorithm>
#include <cassert>
#include <numeric>

#include "kernels/catalog.h"

namespace lily::gpu {
namespace {

constexpr size_t alignment = 256;  // of temporaries: a full line of every cache

size_t round_up(size_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

}  // namespace

std::vector<Dispatch> Plan::dispatches(const Buffer& memory) const {
  assert(memory.bytes() >= temporary_bytes_);
  std::vector<Dispatch> list;
  for (const Operation& operation : operations_) {
    Dispatch dispatch = operation.dispatch;
    dispatch.barrier = !list.empty() && operation.stage != operations_[list.size() - 1].stage;
    for (const Operand& operand : operation.operands) {
      BufferView view = operand.view;
      if (operand.temporary >= 0) view = {&memory, places_[operand.temporary] + view.offset, view.bytes};
      dispatch.buffers.push_back(view);
    }
    list.push_back(std::move(dispatch));
  }
  return list;
}

Operand Planner::temporary(size_t bytes) {
  temporaries_.push_back(round_up(bytes));
  return {.view = {nullptr, 0, bytes}, .temporary = static_cast<int>(temporaries_.size()) - 1};
}

Planner::Memory& Planner::memory_of(const Operand& operand) {
  for (Memory& memory : memories_) {
    if (memory.buffer == operand.view.buffer && memory.temporary == operand.temporary) return memory;
  }
  return memories_.emplace_back(Memory{operand.view.buffer, operand.temporary, {}});
}

void Planner::add_operation(const std::string& kernel, std::array<uint32_t, 3> groups, std::vector<Operand> operands,
                            std::vector<std::byte> args) {
  Dispatch dispatch{.kernel = kernels::find_kernel(kernel), .groups = groups, .args = std::move(args)};
  const kernels::KernelInfo& info = kernels::catalog()[dispatch.kernel];
  assert(operands.size() == info.accesses.size() && dispatch.args.size() == info.args_bytes);

  int stage = options_.concurrent || operations_.empty() ? 0 : operations_.back().stage + 1;
  const auto writes = [&](size_t i) { return info.accesses[i] != 'r' && info.accesses[i] != 'e'; };
  for (size_t i = 0; i < operands.size(); ++i) {
    if (operands[i].unordered) continue;
    const size_t first = operands[i].view.offset, end = first + operands[i].view.bytes;
    for (const Use& use : memory_of(operands[i]).uses) {
      if (use.first < end && first < use.end && (use.writes || writes(i))) stage = std::max(stage, use.stage + 1);
    }
  }
  for (size_t i = 0; i < operands.size(); ++i) {  // what it reads early must be older than the stage before
    if (info.accesses[i] != 'e') continue;
    const size_t first = operands[i].view.offset, end = first + operands[i].view.bytes;
    for (const Use& use : memory_of(operands[i]).uses) {
      if (use.writes && use.stage + 1 == stage && use.first < end && first < use.end) dispatch.early = false;
    }
  }
  for (size_t i = 0; i < operands.size(); ++i) {
    if (operands[i].unordered) continue;
    const size_t first = operands[i].view.offset, end = first + operands[i].view.bytes;
    std::vector<Use>& uses = memory_of(operands[i]).uses;
    // Whoever comes after this write waits for it, and so for everything that it covers.
    if (writes(i)) std::erase_if(uses, [&](const Use& use) { return use.first >= first && use.end <= end; });
    uses.push_back({first, end, stage, writes(i)});
  }
  operations_.push_back({std::move(dispatch), std::move(operands), stage});
}

Plan Planner::finish() {
  std::stable_sort(operations_.begin(), operations_.end(),
                   [](const Plan::Operation& a, const Plan::Operation& b) { return a.stage < b.stage; });
  Plan plan;
  plan.operations_ = std::move(operations_);
  plan.stages_ = plan.operations_.empty() ? 0 : plan.operations_.back().stage + 1;
  place_temporaries(plan);
  for (const Plan::Operation& operation : plan.operations_) {
    const std::string_view accesses = kernels::catalog()[operation.dispatch.kernel].accesses;
    for (size_t i = 0; i < operation.operands.size(); ++i) {
      const Operand& operand = operation.operands[i];
      if (operand.temporary >= 0 && accesses[i] != 'r' && accesses[i] != 'e')
        plan.intermediate_bytes_ += operand.view.bytes;
    }
  }
  *this = Planner(options_);
  return plan;
}

// Largest first, each at the lowest place that is free in all the stages where it lives.
void Planner::place_temporaries(Plan& plan) const {
  struct Life {
    int first = -1, last = -1;
  };
  std::vector<Life> lives(temporaries_.size());
  for (const Plan::Operation& operation : plan.operations_) {
    for (const Operand& operand : operation.operands) {
      if (operand.temporary < 0) continue;
      Life& life = lives[operand.temporary];
      if (life.first < 0) life.first = operation.stage;
      life.last = operation.stage;
    }
  }
  std::vector<int> order(temporaries_.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return temporaries_[a] > temporaries_[b]; });
  plan.places_.assign(temporaries_.size(), 0);
  std::vector<int> placed;
  for (const int t : order) {
    std::vector<std::pair<size_t, size_t>> taken;  // [first, end) of places in use while t lives
    for (const int other : placed) {
      const bool together = lives[other].first <= lives[t].last && lives[t].first <= lives[other].last;
      if (together || !options_.reuse) {
        taken.push_back({plan.places_[other], plan.places_[other] + temporaries_[other]});
      }
    }
    std::sort(taken.begin(), taken.end());
    size_t place = 0;
    for (const auto& [first, end] : taken) {
      if (place + temporaries_[t] <= first) break;
      place = std::max(place, end);
    }
    plan.places_[t] = place;
    plan.temporary_bytes_ = std::max(plan.temporary_bytes_, place + temporaries_[t]);
    placed.push_back(t);
  }
}

}  // namespace lily::gpu
