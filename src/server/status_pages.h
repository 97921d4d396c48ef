// What the server tells about itself.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "server/api.h"

namespace lily::server {

// Of answered requests, by status.
class HttpCounters {
 public:
  void count(int status);
  std::map<int, int64_t> by_status() const;

 private:
  mutable std::mutex mutex_;
  std::map<int, int64_t> by_status_;
};

OrderedJson health_document(const ChatService& service);

// The model under its own name and every alias.
OrderedJson models_document(const ChatService& service, const std::vector<std::string>& aliases, int64_t created);
OrderedJson model_document(const ChatService& service, const std::string& name, int64_t created);

// Prometheus' text format.
std::string metrics_text(const ChatService& service, const HttpCounters& counters);

}  // namespace lily::server
