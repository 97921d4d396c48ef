// What every shape of a reply needs to know of its steps.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "runtime/reply_writer.h"

namespace lily::server {

inline bool is_cut(const Reply& reply) {
  return reply.finish == Finish::length || reply.finish == Finish::context_full || reply.finish == Finish::cancelled;
}

// Holds back what the end of a reply brings until it is known how it ended: a call that was cut off must not look complete, or a
// client runs half a command.
class EventOrder {
 public:
  // The events to show now.
  std::vector<ReplyEvent> of(const ReplyStep& step) {
    if (step.id >= 0) return step.events;
    last_.insert(last_.end(), step.events.begin(), step.events.end());
    return {};
  }

  std::vector<ReplyEvent> of(const Reply& reply) {
    if (is_cut(reply)) {
      std::erase_if(last_, [](const ReplyEvent& event) {
        return event.kind == ReplyEvent::Kind::call_arguments || event.kind == ReplyEvent::Kind::call_end;
      });
    }
    return std::exchange(last_, {});
  }

 private:
  std::vector<ReplyEvent> last_;
};

}  // namespace lily::server
