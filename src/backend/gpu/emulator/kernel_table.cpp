#include "backend/gpu/emulator/kernel_table.h"

#include <tuple>
#include <type_traits>
#include <utility>

#include "kernels/list.h"
// The words are macros, so they come after all other headers, and the kernels after them.
#include "kernels/dialect/host_words.h"
// then
#include "kernels/all.h"

namespace lily::gpu::emulator {
namespace {

template <class T>
decltype(auto) parameter(void* const* buffers, size_t index, const void* args) {
  if constexpr (std::is_pointer_v<T>) {
    return static_cast<T>(buffers[index]);
  } else {
    return *static_cast<const std::remove_reference_t<T>*>(args);
  }
}

template <class... T, size_t... index>
void call(void (*kernel)(T...), void* const* buffers, const void* args, std::index_sequence<index...>) {
  kernel(parameter<T>(buffers, index, args)...);
}

template <auto kernel, class... T>
void adapt(void* const* buffers, const void* args) {
  call(kernel, buffers, args, std::make_index_sequence<sizeof...(T)>{});
}

template <auto kernel, class... T>
HostKernel adapter(void (*)(T...)) {
  return adapt<kernel, T...>;
}

#define LILY_ENTRY(name, threads, accesses, args) \
  {{#name, threads, accesses, sizeof(kernels::args)}, adapter<kernels::name>(kernels::name)},
const KernelEntry all[] = {LILY_KERNELS(LILY_ENTRY)};
#undef LILY_ENTRY

}  // namespace

std::span<const KernelEntry> kernel_table() { return all; }

}  // namespace lily::gpu::emulator
