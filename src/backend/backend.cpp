#include "backend/backend.h"

#include "backend/cpu/cpu_backend.h"
#include "backend/reference_backend.h"

namespace lily {

Result<std::unique_ptr<Backend>> Backend::load(const std::string& name, std::shared_ptr<const Checkpoint> checkpoint,
                                               const BackendOptions& options) {
  if (name == "auto" || name == "cpu") return cpu::load(std::move(checkpoint), options);
  if (name == "reference") return load_reference(std::move(checkpoint), options);
  return Error{.where = "backend", .what = "unknown", .expected = "auto, cpu or reference", .got = name};
}

}  // namespace lily
