#include "backend/gpu/measure_peak.h"

#include <algorithm>
#include <cstring>
#include <functional>

#include "base/stopwatch.h"
#include "kernels/catalog.h"

namespace lily::gpu {
namespace {

constexpr int rounds = 5;

// Seconds of the fastest round; the first warms up.
Result<double> fastest(Device& device, const std::function<Result<void>()>& work) {
  double best = 0;
  for (int i = 0; i <= rounds; ++i) {
    LILY_CHECK(device.wait());
    const Stopwatch watch;
    LILY_CHECK(work());
    LILY_CHECK(device.wait());
    if (i == 1 || (i > 1 && watch.seconds() < best)) best = watch.seconds();
  }
  return std::max(best, 1e-9);
}

}  // namespace

// A copy reads and writes; its bytes count both ways.
Result<Peak> measure_peak(Device& device) {
  const bool card = !device.traits().unified_memory;
  const size_t bytes = card ? size_t{2} << 30 : size_t{64} << 20;
  Peak peak{.arithmetic = "bf16 tiles"};
  {
    LILY_TRY(const std::unique_ptr<Buffer> from, device.allocate(bytes));
    LILY_TRY(const std::unique_ptr<Buffer> to, device.allocate(bytes));
    const BufferView source{from.get(), 0, bytes}, target{to.get(), 0, bytes};
    LILY_TRY(const double seconds, fastest(device, [&] { return device.copy(source, target); }));
    peak.bytes_per_second = 2.0 * static_cast<double>(bytes) / seconds;
  }
  const auto groups = static_cast<uint32_t>(device.traits().cores) * 4;
  const kernels::PeakArgs args{card ? 2000u : 1u};
  LILY_TRY(const std::unique_ptr<Buffer> out, device.allocate(groups * sizeof(float)));
  Dispatch dispatch{.kernel = kernels::find_kernel("measure_tiles"),
                    .groups = {groups, 1, 1},
                    .buffers = {{out.get(), 0, out->bytes()}}};
  dispatch.args.resize(sizeof args);
  std::memcpy(dispatch.args.data(), &args, sizeof args);
  LILY_TRY(const double seconds, fastest(device, [&] { return device.submit({&dispatch, 1}); }));
  peak.flops_per_second = 2.0 * 64 * 64 * 64 * 4 * groups * args.loops / seconds;
  return peak;
}

}  // namespace lily::gpu
