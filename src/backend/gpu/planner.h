// Turns the operations of a schedule into a list of dispatches: finds which of them depend on each other, puts independent ones
// side by side, and gives the temporaries between them places in one buffer.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "backend/gpu/device.h"

namespace lily::gpu {

// Memory that an operation uses: of a buffer that exists, or a temporary of the plan.
struct Operand {
  BufferView view;
  int temporary = -1;      // >= 0: number of the temporary; view has offset and bytes within it
  bool unordered = false;  // no dependency goes through it: others see to the order

  Operand part(size_t first, size_t count) const { return {view.part(first, count), temporary, unordered}; }
};

inline Operand external(const BufferView& view) { return {.view = view}; }
inline Operand unordered(const BufferView& view) { return {.view = view, .unordered = true}; }

struct PlanOptions {
  bool concurrent = true;  // independent operations side by side; else each waits for the one before
  bool reuse = true;       // of places, for temporaries that do not live at the same time
};

class Plan {
 public:
  int kernels() const { return static_cast<int>(operations_.size()); }
  int stages() const { return stages_; }  // sequential steps: between two of them all wait
  size_t temporary_bytes() const { return temporary_bytes_; }
  size_t intermediate_bytes() const { return intermediate_bytes_; }  // written to temporaries by all kernels

  // The list, with the temporaries in `memory`, which has at least temporary_bytes().
  std::vector<Dispatch> dispatches(const Buffer& memory) const;

  struct Operation {
    Dispatch dispatch;
    std::vector<Operand> operands;
    int stage;
  };
  const std::vector<Operation>& operations() const { return operations_; }

 private:
  friend class Planner;

  std::vector<Operation> operations_;  // by stage
  std::vector<size_t> places_;         // of temporaries
  int stages_ = 0;
  size_t temporary_bytes_ = 0, intermediate_bytes_ = 0;
};

class Planner {
 public:
  explicit Planner(const PlanOptions& options = {}) : options_(options) {}

  Operand temporary(size_t bytes);

  // In the order of a program that would run one operation after another. `operands` in the kernel's order.
  template <class Args>
  void add(const std::string& kernel, std::array<uint32_t, 3> groups, std::vector<Operand> operands, const Args& args) {
    std::vector<std::byte> bytes(sizeof args);
    std::memcpy(bytes.data(), &args, sizeof args);
    add_operation(kernel, groups, std::move(operands), std::move(bytes));
  }

  Plan finish();

 private:
  struct Use {  // of memory, by the operation of a stage
    size_t first, end;
    int stage;
    bool writes;
  };
  struct Memory {
    const Buffer* buffer;
    int temporary;
    std::vector<Use> uses;
  };

  void add_operation(const std::string& kernel, std::array<uint32_t, 3> groups, std::vector<Operand> operands,
                     std::vector<std::byte> args);
  Memory& memory_of(const Operand& operand);
  void place_temporaries(Plan& plan) const;

  PlanOptions options_;
  std::vector<Plan::Operation> operations_;
  std::vector<Memory> memories_;
  std::vector<size_t> temporaries_;  // bytes
};

}  // namespace lily::gpu
