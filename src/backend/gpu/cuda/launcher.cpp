#include "backend/gpu/cuda/launcher.h"

#include <algorithm>
#include <cassert>

#include "backend/gpu/cuda/kernel_table.h"
#include "backend/gpu/cuda/memory.h"
#include "backend/gpu/cuda/replacements.h"
#include "kernels/catalog.h"

namespace lily::gpu::cuda {
namespace {

constexpr size_t most_buffers = 31;  // of a kernel, as in Metal

Result<int> attribute(cudaDeviceAttr which) {
  int value = 0;
  LILY_CHECK(check("cudaDeviceGetAttribute", cudaDeviceGetAttribute(&value, which, 0)));
  return value;
}

bool is_empty(const Dispatch& dispatch) {
  return std::any_of(dispatch.groups.begin(), dispatch.groups.end(), [](uint32_t count) { return count == 0; });
}

}  // namespace

Result<void> Launcher::make() {
  LILY_TRY(const int major, attribute(cudaDevAttrComputeCapabilityMajor));
  LILY_TRY(const int minor, attribute(cudaDevAttrComputeCapabilityMinor));
  LILY_TRY(const int shared_bytes, attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin));
  programmatic_launch_ = major >= 9;
  const std::span<const kernels::KernelInfo> catalog = kernels::catalog();
  for (size_t i = 0; i < catalog.size(); ++i) {
    std::vector<Kernel> kernels = {{.function = portable_kernel(static_cast<int>(i)), .threads = catalog[i].threads}};
    for (const Replacement& other : replacements()) {
      if (other.kernel != catalog[i].name || other.compute_capability > 10 * major + minor) continue;
      if (other.shared_bytes > static_cast<size_t>(shared_bytes)) continue;
      kernels.push_back({other.function, other.threads, other.shared_bytes, other.grid, other.applies});
    }
    kernels_.push_back(std::move(kernels));
  }
  // A build without code for this GPU shows at the first kernel.
  cudaFuncAttributes attributes;
  return check("cudaFuncGetAttributes", cudaFuncGetAttributes(&attributes, kernels_[0][0].function));
}

const Launcher::Kernel& Launcher::kernel_for(const Dispatch& dispatch) const {
  const std::vector<Kernel>& kernels = kernels_[dispatch.kernel];
  size_t last = kernels.size() - 1;
  while (last > 0 && kernels[last].applies && !kernels[last].applies(dispatch.args.data())) --last;
  return kernels[last];
}

Result<void> Launcher::prepare(std::span<const Dispatch> list) {
  for (const Dispatch& dispatch : list) {
    Kernel& kernel = const_cast<Kernel&>(kernel_for(dispatch));
    if (kernel.loaded) continue;
    cudaFuncAttributes attributes;
    LILY_CHECK(check("cudaFuncGetAttributes", cudaFuncGetAttributes(&attributes, kernel.function)));
    if (kernel.shared_bytes > 0) {
      LILY_CHECK(check("cudaFuncSetAttribute",
                       cudaFuncSetAttribute(kernel.function, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                            static_cast<int>(kernel.shared_bytes))));
    }
    kernel.loaded = true;
  }
  return {};
}

Result<void> Launcher::launch(std::span<const Dispatch> list, cudaStream_t stream) {
  std::vector<const Dispatch*> stage;
  size_t before = 0;  // dispatches of the stage before
  for (size_t i = 0; i < list.size();) {
    stage.clear();
    do {
      if (!is_empty(list[i])) stage.push_back(&list[i]);
      ++i;
    } while (i < list.size() && !list[i].barrier);
    if (stage.empty()) continue;
    // Only a launch right behind another one can start early: not at forks and joins, nor behind what is no kernel.
    LILY_CHECK(stage.size() == 1 ? launch_one(*stage[0], stream, programmatic_launch_ && before == 1 && stage[0]->early)
                                 : launch_side_by_side(stage, stream));
    before = stage.size();
  }
  return {};
}

Result<void> Launcher::launch_side_by_side(std::span<const Dispatch* const> stage, cudaStream_t stream) {
  const size_t sides = std::min<size_t>(stage.size() - 1, side_streams);
  LILY_CHECK(check("cudaEventRecord", cudaEventRecord(context_->fork, stream)));
  for (size_t i = 0; i < sides; ++i) {
    LILY_CHECK(check("cudaStreamWaitEvent", cudaStreamWaitEvent(context_->side[i], context_->fork, 0)));
  }
  for (size_t i = 0; i < stage.size(); ++i) {
    const size_t lane = i % (sides + 1);
    LILY_CHECK(launch_one(*stage[i], lane == 0 ? stream : context_->side[lane - 1], false));
  }
  for (size_t i = 0; i < sides; ++i) {
    LILY_CHECK(check("cudaEventRecord", cudaEventRecord(context_->join[i], context_->side[i])));
    LILY_CHECK(check("cudaStreamWaitEvent", cudaStreamWaitEvent(stream, context_->join[i], 0)));
  }
  return {};
}

Result<void> Launcher::launch_one(const Dispatch& dispatch, cudaStream_t stream, bool programmatic) {
  const Kernel& kernel = kernel_for(dispatch);
  const kernels::KernelInfo& info = kernels::catalog()[dispatch.kernel];
  assert(kernel.loaded && dispatch.buffers.size() == info.accesses.size() && dispatch.args.size() == info.args_bytes);
  assert(dispatch.buffers.size() <= most_buffers);

  std::array<void*, most_buffers> addresses;
  std::array<void*, most_buffers + 1> parameters;
  const size_t count = dispatch.buffers.size();
  for (size_t i = 0; i < count; ++i) {
    addresses[i] = device_address(dispatch.buffers[i]);
    parameters[i] = &addresses[i];
  }
  parameters[count] = const_cast<std::byte*>(dispatch.args.data());

  const std::array<uint32_t, 3> groups =
      kernel.grid ? kernel.grid(dispatch.args.data(), dispatch.groups) : dispatch.groups;
  cudaLaunchAttribute early;
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(groups[0], groups[1], groups[2]);
  config.blockDim = dim3(kernel.threads);
  config.dynamicSmemBytes = kernel.shared_bytes;
  config.stream = stream;
  config.attrs = &early;
  config.numAttrs = programmatic ? 1 : 0;
  Result<void> launched =
      check("cudaLaunchKernelExC", cudaLaunchKernelExC(&config, kernel.function, parameters.data()));
  if (launched) return launched;
  Error error = launched.error();
  error.where = std::string(info.name);
  return error;
}

}  // namespace lily::gpu::cuda
