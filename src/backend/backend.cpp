#include "backend/backend.h"

#include <algorithm>

#include "backend/cpu/cpu_backend.h"
#include "backend/gpu/devices.h"
#include "backend/gpu/gpu_backend.h"
#include "backend/reference_backend.h"

namespace lily {

Result<std::unique_ptr<Backend>> Backend::load(const std::string& name, std::shared_ptr<const Checkpoint> checkpoint,
                                               const BackendOptions& options) {
  if (name == "auto" || name == "cpu") return cpu::load(std::move(checkpoint), options);
  if (name == "reference") return load_reference(std::move(checkpoint), options);
  const std::vector<std::string> devices = gpu::device_names();
  if (std::find(devices.begin(), devices.end(), name) != devices.end()) {
    return gpu::load(name, std::move(checkpoint), options);
  }
  std::string known = "auto, cpu, reference";
  for (const std::string& device : devices) known += ", " + device;
  return Error{.where = "backend", .what = "unknown", .expected = known, .got = name};
}

Result<void> Backend::decode_ahead(State&, int32_t, const DeviceSampling&, const std::function<bool(int32_t)>&) {
  return Error{.where = describe(), .what = "does not sample", .exit_code = 1};
}

}  // namespace lily
