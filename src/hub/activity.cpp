#include "hub/activity.h"

#include <algorithm>
#include <thread>

namespace lily::hub {

bool Activity::sleep(std::chrono::milliseconds duration) const {
  const auto end = std::chrono::steady_clock::now() + duration;
  while (!stopping()) {
    const auto left = end - std::chrono::steady_clock::now();
    if (left <= left.zero()) return true;
    std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(left, std::chrono::milliseconds(50)));
  }
  return false;
}

void Activity::note(const std::string& text) {
  const std::lock_guard lock(mutex_);
  on_note_(text);
}

}  // namespace lily::hub
