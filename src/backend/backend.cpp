#include "backend/backend.h"

#include <algorithm>

#include "backend/cpu/cpu_backend.h"
#include "backend/gpu/devices.h"
#include "backend/gpu/gpu_backend.h"
#include "backend/reference_backend.h"

namespace lily {

namespace {

// A GPU that can hold the model, else the CPU. `--exact` and `--isa` speak of the CPU.
Result<std::unique_ptr<Backend>> load_best(std::shared_ptr<const Checkpoint> checkpoint,
                                           const BackendOptions& options) {
  for (const std::string& device : gpu::device_names()) {
    if (device == "emulator" || options.exact || !options.isa.empty()) continue;
    Result<std::unique_ptr<Backend>> backend = gpu::load(device, checkpoint, options);
    if (backend) return backend;
  }
  return cpu::load(std::move(checkpoint), options);
}

}  // namespace

Result<std::unique_ptr<Backend>> Backend::load(const std::string& name, std::shared_ptr<const Checkpoint> checkpoint,
                                               const BackendOptions& options) {
  if (name == "auto") return load_best(std::move(checkpoint), options);
  if (name == "cpu") return cpu::load(std::move(checkpoint), options);
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

Result<void> Backend::without(const std::string& mechanism) {
  if (mechanism.empty()) return {};
  return Error{.where = describe(), .what = "has no such mechanism", .got = mechanism};
}

}  // namespace lily
