#include "backend/gpu/cuda/cuda_device.h"

#include <array>
#include <cassert>

#include "backend/gpu/cuda/context.h"
#include "backend/gpu/cuda/launcher.h"
#include "backend/gpu/cuda/memory.h"

namespace lily::gpu::cuda {
namespace {

constexpr size_t mark_events = 64;

class CudaRecording : public Recording {
 public:
  CudaRecording(std::shared_ptr<Context> context, cudaGraphExec_t graph)
      : context_(std::move(context)), graph_(graph) {}
  ~CudaRecording() override { cudaGraphExecDestroy(graph_); }  // runs of it that are under way end well
  cudaGraphExec_t graph() const { return graph_; }

 private:
  std::shared_ptr<Context> context_;
  cudaGraphExec_t graph_;
};

class CudaDevice : public Device {
 public:
  CudaDevice() : context_(std::make_shared<Context>()), uploader_(context_), launcher_(context_) {}
  ~CudaDevice() override {
    cudaStreamSynchronize(context_->main);
    for (cudaEvent_t event : marks_) {
      if (event) cudaEventDestroy(event);
    }
  }

  Result<void> make() {
    cudaDeviceProp properties;
    LILY_CHECK(check("cudaGetDeviceProperties", cudaGetDeviceProperties(&properties, 0)));
    LILY_CHECK(check("cudaSetDevice", cudaSetDevice(0)));
    LILY_CHECK(context_->make());
    for (cudaEvent_t& event : marks_) {
      LILY_CHECK(check("cudaEventCreateWithFlags", cudaEventCreateWithFlags(&event, cudaEventDisableTiming)));
    }
    LILY_CHECK(launcher_.make());
    size_t total = 0;
    LILY_CHECK(check("cudaMemGetInfo", cudaMemGetInfo(&traits_.memory, &total)));
    traits_.name = properties.name;
    traits_.cores = properties.multiProcessorCount;
    return {};
  }

  const DeviceTraits& traits() const override { return traits_; }

  Result<std::unique_ptr<Buffer>> allocate(size_t bytes) override { return cuda::allocate(context_, bytes, false); }
  Result<std::unique_ptr<Buffer>> allocate_visible(size_t bytes) override {
    return cuda::allocate(context_, bytes, true);
  }

  Result<void> upload(const BufferView& to, std::span<const std::byte> from) override {
    assert(from.size() <= to.bytes);
    return uploader_.upload(device_address(to), from);
  }
  Result<void> download(const BufferView& from, std::span<std::byte> to) override {
    assert(to.size() <= from.bytes);
    LILY_CHECK(check("cudaMemcpyAsync",
                     cudaMemcpyAsync(to.data(), device_address(from), to.size(), cudaMemcpyDefault, context_->main)));
    return wait();
  }
  Result<void> copy(const BufferView& from, const BufferView& to) override {
    assert(from.bytes <= to.bytes);
    return check("cudaMemcpyAsync", cudaMemcpyAsync(device_address(to), device_address(from), from.bytes,
                                                    cudaMemcpyDefault, context_->main));
  }
  Result<void> fill_zero(const BufferView& view) override {
    return check("cudaMemsetAsync", cudaMemsetAsync(device_address(view), 0, view.bytes, context_->main));
  }

  // The list as the graph that a capture of its launches leaves.
  Result<std::unique_ptr<Recording>> record(std::vector<Dispatch> list) override {
    LILY_CHECK(launcher_.prepare(list));
    LILY_CHECK(
        check("cudaStreamBeginCapture", cudaStreamBeginCapture(context_->capture, cudaStreamCaptureModeThreadLocal)));
    const Result<void> launched = launcher_.launch(list, context_->capture);
    cudaGraph_t graph = nullptr;
    const Result<void> ended = check("cudaStreamEndCapture", cudaStreamEndCapture(context_->capture, &graph));
    cudaGraphExec_t ready = nullptr;
    Result<void> made = !launched ? launched : ended;
    if (made) made = check("cudaGraphInstantiate", cudaGraphInstantiate(&ready, graph, 0));
    if (graph) cudaGraphDestroy(graph);
    if (!made) return made.error();
    auto recording = std::make_unique<CudaRecording>(context_, ready);
    LILY_CHECK(check("cudaGraphUpload", cudaGraphUpload(ready, context_->main)));
    return std::unique_ptr<Recording>(std::move(recording));
  }
  Result<void> submit(const Recording& recording) override {
    const cudaGraphExec_t graph = static_cast<const CudaRecording&>(recording).graph();
    return check("cudaGraphLaunch", cudaGraphLaunch(graph, context_->main));
  }
  Result<void> submit(std::span<const Dispatch> list) override {
    LILY_CHECK(launcher_.prepare(list));
    return launcher_.launch(list, context_->main);
  }
  Result<void> wait() override { return check("cudaStreamSynchronize", cudaStreamSynchronize(context_->main)); }

  // Marks share a ring of events: an old mark's event may have been taken for a later one, which is passed no earlier.
  Result<uint64_t> mark() override {
    LILY_CHECK(check("cudaEventRecord", cudaEventRecord(marks_[next_mark_ % mark_events], context_->main)));
    return next_mark_++;
  }
  Result<void> wait_for(uint64_t mark) override {
    assert(mark < next_mark_);
    return check("cudaEventSynchronize", cudaEventSynchronize(marks_[mark % mark_events]));
  }

 private:
  std::shared_ptr<Context> context_;
  Uploader uploader_;
  Launcher launcher_;
  DeviceTraits traits_;
  std::array<cudaEvent_t, mark_events> marks_ = {};
  uint64_t next_mark_ = 0;
};

}  // namespace

Result<std::unique_ptr<Device>> open() {
  int count = 0;
  const Result<void> there = check("cudaGetDeviceCount", cudaGetDeviceCount(&count));
  if (!there || count == 0) {
    return Error{.where = "cuda",
                 .what = "no NVIDIA GPU can be used here",
                 .got = there ? "no device" : there.error().what,
                 .exit_code = 1};
  }
  auto device = std::make_unique<CudaDevice>();
  LILY_CHECK(device->make());
  return std::unique_ptr<Device>(std::move(device));
}

}  // namespace lily::gpu::cuda
