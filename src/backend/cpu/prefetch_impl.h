// Spreads the fetching of what is wanted next over the steps of a product, so that memory and arithmetic work at the
// same time. Included inside the namespace of each file of kernels.

class Prefetcher {
 public:
  Prefetcher(const Upcoming& next, int64_t steps) : next_(next) {
    int64_t lines = 0;
    for (const int64_t bytes : next.bytes) lines += (bytes + line - 1) / line;
    lines_per_step_ = (lines + steps - 1) / steps;
  }

  void step() {
    for (int64_t i = 0; i < lines_per_step_; ++i) {
      while (at_ >= next_.bytes[range_]) {
        if (range_ + 1 == Upcoming::ranges) return;
        ++range_;
        at_ = 0;
      }
      __builtin_prefetch(next_.data[range_] + at_, 0, 2);
      at_ += line;
    }
  }

 private:
  static constexpr int64_t line = 64;

  const Upcoming& next_;
  int64_t lines_per_step_ = 0;
  int range_ = 0;
  int64_t at_ = 0;
};
