// What every device of the GPU engine promises: memory, lists in order, recordings and marks.
#include "backend/gpu/device.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "support/kernel_run.h"

namespace lily {
namespace {

using gpu::Buffer;
using gpu::BufferView;
using gpu::Dispatch;

constexpr uint32_t cols = 64;

class GpuDeviceTest : public test::DeviceTest {
 protected:
  BufferView buffer(size_t bytes, bool visible = false) {
    Result<std::unique_ptr<Buffer>> made = visible ? device_->allocate_visible(bytes) : device_->allocate(bytes);
    EXPECT_TRUE(made) << made.error().message();
    buffers_.push_back(std::move(made).value());
    return {buffers_.back().get(), 0, bytes};
  }
  template <class T>
  BufferView buffer_of(const std::vector<T>& data) {
    const BufferView view = buffer(data.size() * sizeof(T));
    ok(device_->upload(view, std::as_bytes(std::span(data))));
    return view;
  }
  template <class T>
  std::vector<T> get(const BufferView& view) {
    std::vector<T> data(view.bytes / sizeof(T));
    ok(device_->download(view, std::as_writable_bytes(std::span(data))));
    return data;
  }
  static void ok(const Result<void>& result) { EXPECT_TRUE(result) << result.error().message(); }

  // y [cols] bf16 = x [cols] float32, normed.
  static Dispatch norm(const BufferView& x, const BufferView& weight, const BufferView& y, bool barrier) {
    const kernels::NormArgs args{cols, 1e-6f};
    const std::span<const std::byte> bytes = std::as_bytes(std::span(&args, 1));
    return {kernels::find_kernel("rms_norm"), {1, 1, 1}, {x, weight, y}, {bytes.begin(), bytes.end()}, barrier};
  }

  std::vector<std::unique_ptr<Buffer>> buffers_;
};

std::vector<uint32_t> counting(size_t count, uint32_t first = 0) {
  std::vector<uint32_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), first);
  return numbers;
}

TEST_P(GpuDeviceTest, SaysWhatItIs) {
  EXPECT_FALSE(device_->traits().name.empty());
  EXPECT_GE(device_->traits().cores, 1);
  EXPECT_GT(device_->traits().memory, size_t{1} << 20);
}

TEST_P(GpuDeviceTest, KeepsWhatIsUploaded) {
  for (const size_t count : {4u, 1000u, 300000u}) {
    const std::vector<uint32_t> data = counting(count);
    EXPECT_EQ(get<uint32_t>(buffer_of(data)), data);
  }
}

// More than any staging memory holds, in uneven pieces; what was uploaded may change right after.
TEST_P(GpuDeviceTest, UploadsMuchMoreThanItStages) {
  const size_t count = (size_t{150} << 20) / 4, piece = 3333332;
  const BufferView all = buffer(count * 4);
  for (size_t first = 0; first < count; first += piece) {
    std::vector<uint32_t> data = counting(std::min(piece, count - first), static_cast<uint32_t>(first));
    ok(device_->upload(all.part(first * 4, data.size() * 4), std::as_bytes(std::span(data))));
    std::fill(data.begin(), data.end(), 0u);
  }
  const std::vector<uint32_t> got = get<uint32_t>(all);
  size_t wrong = 0;
  for (size_t i = 0; i < count; ++i) wrong += got[i] != i;
  EXPECT_EQ(wrong, 0u);
  std::vector<uint32_t> once = counting(count, 7);
  ok(device_->upload(all, std::as_bytes(std::span(once))));
  EXPECT_EQ(get<uint32_t>(all), once);
}

TEST_P(GpuDeviceTest, CopiesAndClearsParts) {
  const BufferView a = buffer_of(counting(64)), b = buffer_of(counting(64, 100));
  ok(device_->copy(a.part(32, 64), b.part(128, 64)));
  ok(device_->fill_zero(b.part(0, 16)));
  std::vector<uint32_t> want = counting(64, 100);
  for (uint32_t i = 0; i < 16; ++i) want[32 + i] = 8 + i;
  std::fill_n(want.begin(), 4, 0u);
  EXPECT_EQ(get<uint32_t>(b), want);
}

TEST_P(GpuDeviceTest, VisibleMemoryIsTheHostsToo) {
  const BufferView visible = buffer(256, true);
  ASSERT_NE(visible.buffer->host(), nullptr);
  const BufferView source = buffer_of(counting(64, 5));
  ok(device_->copy(source, visible));
  Result<uint64_t> mark = device_->mark();
  ASSERT_TRUE(mark);
  ok(device_->wait_for(*mark));
  const uint32_t* const seen = reinterpret_cast<const uint32_t*>(visible.buffer->host());
  EXPECT_EQ(std::vector<uint32_t>(seen, seen + 64), counting(64, 5));

  ok(device_->fill_zero(visible.part(0, 64)));
  ok(device_->wait());
  EXPECT_EQ(seen[15], 0u);
  EXPECT_EQ(seen[16], 21u);

  // The host writes, a kernel reads: uniform x, so that the normed values are the weights.
  const std::vector<float> ones(cols, 1.0f);
  std::memcpy(visible.buffer->host(), ones.data(), visible.bytes);
  const BufferView weight = buffer_of(std::vector<float>(cols, 3.0f)), y = buffer(cols * 2, true);
  const Dispatch dispatch = norm(visible, weight, y, false);
  ok(device_->submit(std::span(&dispatch, 1)));
  ok(device_->wait());
  EXPECT_EQ(reinterpret_cast<const uint16_t*>(y.buffer->host())[63], float_to_bf16(3.0f));
}

// Norms, each with its own output. The input of a stage is what the stage before wrote, its pairs of bf16 taken as floats, so that
// a stage that starts too early leaves other numbers.
struct Chain {
  std::vector<Dispatch> list;
  std::vector<BufferView> outputs;
};

class GpuOrderTest : public GpuDeviceTest {
 protected:
  // Stages of `widths` norms side by side. Input and output are cols floats, of which a norm writes the first half.
  Chain chain(const std::vector<int>& widths) {
    Chain chain;
    BufferView input = buffer_of(std::vector<float>(cols, 2.0f));
    const BufferView weight = buffer_of(std::vector<float>(cols, 1.5f));
    for (const int width : widths) {
      for (int i = 0; i < width; ++i) {
        chain.outputs.push_back(buffer_of(std::vector<float>(cols, 0.0f)));
        chain.list.push_back(norm(input, weight, chain.outputs.back(), i == 0));
      }
      input = chain.outputs.back();
    }
    return chain;
  }

  // The same on the host. Bits of the outputs, of all stages.
  static std::vector<std::vector<float>> expected(const std::vector<int>& widths) {
    std::vector<std::vector<float>> all;
    std::vector<float> x(cols, 2.0f);
    for (const int width : widths) {
      double sum = 0;
      for (const float v : x) sum += double{v} * v;
      std::vector<float> y(cols, 0.0f);
      for (uint32_t i = 0; i < cols; ++i) {
        const uint16_t bits = float_to_bf16(static_cast<float>(x[i] / std::sqrt(sum / cols + 1e-6) * 1.5));
        std::memcpy(reinterpret_cast<std::byte*>(y.data()) + 2 * i, &bits, 2);
      }
      all.insert(all.end(), static_cast<size_t>(width), y);
      x = y;
    }
    return all;
  }

  void expect_outputs(const Chain& chain, const std::vector<int>& widths) {
    const std::vector<std::vector<float>> want = expected(widths);
    for (size_t i = 0; i < want.size(); ++i) {
      const std::vector<float> got = get<float>(chain.outputs[i]);
      for (uint32_t c = 0; c < cols; ++c)
        ASSERT_NEAR(got[c], want[i][c], 0.02f * std::abs(want[i][c])) << i << ' ' << c;
    }
  }
  void clear(const Chain& chain) {
    for (const BufferView& output : chain.outputs) ok(device_->fill_zero(output));
  }
};

TEST_P(GpuOrderTest, ListsKeepTheirBarriers) {
  for (const std::vector<int>& widths :
       std::vector<std::vector<int>>{{1, 1, 1, 1}, {2, 1, 5, 1, 1, 9}, {3}, {1, 2, 2, 1}}) {
    const Chain chain = this->chain(widths);
    ok(device_->submit(std::span<const Dispatch>(chain.list)));
    expect_outputs(chain, widths);
  }
}

TEST_P(GpuOrderTest, RecordingsRunAgainAndAgain) {
  const std::vector<int> widths = {1, 1, 4, 1, 1, 1, 2, 6, 1};
  const Chain chain = this->chain(widths);
  Result<std::unique_ptr<gpu::Recording>> recording = device_->record(chain.list);
  ASSERT_TRUE(recording) << recording.error().message();
  for (int i = 0; i < 20; ++i) {
    clear(chain);
    ok(device_->submit(**recording));
    ok(device_->submit(**recording));
    if (i % 5 == 0) expect_outputs(chain, widths);
  }
  expect_outputs(chain, widths);
}

TEST_P(GpuOrderTest, RecordingsAndBuffersMayGoWhileTheyRun) {
  const std::vector<int> widths(200, 1);
  Chain chain = this->chain(widths);
  Result<std::unique_ptr<gpu::Recording>> recording = device_->record(chain.list);
  ASSERT_TRUE(recording) << recording.error().message();
  ok(device_->submit(**recording));
  *recording = nullptr;
  buffers_.clear();
  ok(device_->wait());
}

TEST_P(GpuOrderTest, EmptyGridsAndListsDoNothing) {
  Chain chain = this->chain({1, 1});
  chain.list[0].groups = {0, 1, 1};
  ok(device_->submit(std::span<const Dispatch>(chain.list).first(1)));
  ok(device_->submit(std::span<const Dispatch>()));
  EXPECT_EQ(get<float>(chain.outputs[0]), std::vector<float>(cols, 0.0f));
  Result<std::unique_ptr<gpu::Recording>> recording = device_->record({});
  ASSERT_TRUE(recording) << recording.error().message();
  ok(device_->submit(**recording));
  ok(device_->wait());
}

TEST_P(GpuOrderTest, MarksArePassedInOrder) {
  const Chain chain = this->chain({1, 1, 1});
  std::vector<uint64_t> marks;
  for (int i = 0; i < 200; ++i) {
    ok(device_->submit(std::span<const Dispatch>(chain.list)));
    Result<uint64_t> mark = device_->mark();
    ASSERT_TRUE(mark) << mark.error().message();
    marks.push_back(*mark);
  }
  for (const size_t i : {size_t{199}, size_t{0}, size_t{150}}) ok(device_->wait_for(marks[i]));
}

TEST(GpuDevices, UnknownNamesAreErrors) {
  const Result<std::unique_ptr<gpu::Device>> device = gpu::open_device("abacus");
  ASSERT_FALSE(device);
  EXPECT_NE(device.error().message().find("abacus"), std::string::npos);
}

// A build with CUDA runs where there is none.
TEST(GpuDevices, OpenOrSayWhyNot) {
  for (const std::string& name : gpu::device_names()) {
    const Result<std::unique_ptr<gpu::Device>> device = gpu::open_device(name);
    if (!device) {
      EXPECT_FALSE(device.error().message().empty());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, GpuDeviceTest, testing::ValuesIn(gpu::device_names()));
INSTANTIATE_TEST_SUITE_P(Devices, GpuOrderTest, testing::ValuesIn(gpu::device_names()));

}  // namespace
}  // namespace lily
