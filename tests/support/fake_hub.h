// A Hugging Face Hub on this machine's loopback that can be told to misbehave.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <functional>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "hub/digest.h"

namespace lily::test {

struct HubRequest {
  std::string path;           // without the query
  int64_t range_start = -1;   // of "Range: bytes=N-"; -1 without one
  std::string authorization;  // the header's value
  int nth = 0;                // of this path, from 0
};

// What one reply does wrong. All of it zero: nothing.
struct Fault {
  int status = 0;
  std::string headers;       // more lines, each with its CRLF
  std::string body;          // for `status`
  int64_t cut_after = -1;    // bytes of body, then the connection is closed
  int64_t stall_after = -1;  // bytes of body, then silence
  int64_t corrupt_at = -1;   // byte of the file that is sent wrong
  int64_t claim_size = -1;   // Content-Length
  bool ignore_range = false;
  int pause_ms = 0;         // after each piece
  size_t piece = 64 << 10;  // bytes
};

inline std::string digest_hex(const std::string& content, hub::Digest::Kind kind) {
  hub::Hasher hasher(kind, static_cast<int64_t>(content.size()));
  hasher.update(std::as_bytes(std::span(content)));
  return hasher.finish().hex;
}

class FakeHub {
 public:
  explicit FakeHub(const std::string& address = "127.0.0.1") : address_(address) {
    std::signal(SIGPIPE, SIG_IGN);  // clients hang up
    listener_ = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in name{};
    name.sin_family = AF_INET;
    ::inet_pton(AF_INET, address.c_str(), &name.sin_addr);
    ::bind(listener_, reinterpret_cast<sockaddr*>(&name), sizeof name);
    ::listen(listener_, 64);
    socklen_t size = sizeof name;
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&name), &size);
    port_ = ntohs(name.sin_port);
    acceptor_ = std::thread([this] { accept_all(); });
  }
  ~FakeHub() { stop(); }

  // From now on nobody is there.
  void stop() {
    if (stopping_.exchange(true)) return;
    acceptor_.join();
    ::close(listener_);
    for (std::thread& connection : connections_) connection.join();
  }

  std::string url() const { return "http://" + address_ + ":" + std::to_string(port_); }

  // A file of the repository; `large` as Git LFS keeps it (SHA-256), else as a git blob.
  void put(const std::string& name, const std::string& content, bool large = false) {
    const std::lock_guard lock(mutex_);
    files_[name] = {content, large};
  }
  void remove(const std::string& name) {
    const std::lock_guard lock(mutex_);
    files_.erase(name);
  }

  std::string id = "org/model";
  std::string commit = std::string(40, 'a');
  std::function<Fault(const HubRequest&)> fault = [](const HubRequest&) { return Fault{}; };
  std::function<void(nlohmann::json&)> edit_listing = [](nlohmann::json&) {};

  std::vector<HubRequest> requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }
  std::vector<HubRequest> requests_for(const std::string& file) const {
    std::vector<HubRequest> found;
    for (const HubRequest& request : requests()) {
      if (request.path.ends_with("/" + file)) found.push_back(request);
    }
    return found;
  }
  // Downloads of files, of whatever outcome.
  size_t file_requests() const {
    const std::vector<HubRequest> all = requests();
    return static_cast<size_t>(std::count_if(all.begin(), all.end(), [](const HubRequest& request) {
      return request.path.find("/resolve/") != std::string::npos;
    }));
  }
  int64_t bytes_sent(const std::string& file) const {
    const std::lock_guard lock(mutex_);
    const auto found = sent_.find(file);
    return found == sent_.end() ? 0 : found->second;
  }

 private:
  struct File {
    std::string content;
    bool large;
  };

  void accept_all() {
    while (!stopping_) {
      pollfd waiting{listener_, POLLIN, 0};
      if (::poll(&waiting, 1, 20) <= 0) continue;
      const int socket = ::accept(listener_, nullptr, nullptr);
      if (socket >= 0) connections_.emplace_back([this, socket] { serve(socket); });
    }
  }

  void serve(int socket) {
    std::string head;
    char piece[4096];
    while (head.find("\r\n\r\n") == std::string::npos) {
      const ssize_t count = wait_readable(socket) ? ::recv(socket, piece, sizeof piece, 0) : 0;
      if (count <= 0) break;
      head.append(piece, static_cast<size_t>(count));
    }
    if (head.find("\r\n\r\n") != std::string::npos) answer(socket, parse(head));
    ::close(socket);
  }

  bool wait_readable(int socket) const {
    while (!stopping_) {
      pollfd waiting{socket, POLLIN, 0};
      if (::poll(&waiting, 1, 20) > 0) return true;
    }
    return false;
  }

  HubRequest parse(const std::string& head) {
    HubRequest request;
    const size_t start = head.find(' ') + 1;
    request.path = head.substr(start, head.find_first_of(" ?", start) - start);
    request.authorization = header(head, "Authorization: ");
    if (const std::string range = header(head, "Range: bytes="); !range.empty())
      request.range_start = std::stoll(range);
    const std::lock_guard lock(mutex_);
    request.nth = counts_[request.path]++;
    requests_.push_back(request);
    return request;
  }

  static std::string header(const std::string& head, const std::string& name) {
    const size_t found = head.find("\r\n" + name);
    if (found == std::string::npos) return "";
    const size_t start = found + 2 + name.size();
    return head.substr(start, head.find("\r\n", start) - start);
  }

  void answer(int socket, const HubRequest& request) {
    const Fault fault_now = fault(request);
    if (fault_now.status != 0) {
      send_reply(socket, fault_now, fault_now.status, fault_now.headers, fault_now.body);
    } else if (request.path.starts_with("/api/models/" + id + "/revision/")) {
      send_reply(socket, fault_now, 200, fault_now.headers, listing());
    } else {
      send_file(socket, request, fault_now);
    }
  }

  std::string listing() const {
    const std::lock_guard lock(mutex_);
    nlohmann::json siblings = nlohmann::json::array();
    for (const auto& [name, file] : files_) {
      nlohmann::json entry{{"rfilename", name}, {"size", file.content.size()}};
      entry["blobId"] = digest_hex(file.content, hub::Digest::Kind::git_blob);
      if (file.large) entry["lfs"]["sha256"] = digest_hex(file.content, hub::Digest::Kind::sha256);
      siblings.push_back(entry);
    }
    nlohmann::json all{{"id", id}, {"sha", commit}, {"siblings", siblings}};
    edit_listing(all);
    return all.dump();
  }

  void send_file(int socket, const HubRequest& request, const Fault& fault_now) {
    const std::string name = request.path.substr(request.path.rfind('/') + 1);
    std::string content;
    {
      const std::lock_guard lock(mutex_);
      const auto found = files_.find(name);
      if (found == files_.end()) return send_reply(socket, fault_now, 404, "", "no such file");
      content = found->second.content;
    }
    if (fault_now.corrupt_at >= 0) content[static_cast<size_t>(fault_now.corrupt_at)] ^= 1;
    const auto size = static_cast<int64_t>(content.size());
    const int64_t start = fault_now.ignore_range ? 0 : std::max<int64_t>(0, request.range_start);
    const bool partial = start > 0;
    const std::string range = partial ? "Content-Range: bytes " + std::to_string(start) + "-" +
                                            std::to_string(size - 1) + "/" + std::to_string(size) + "\r\n"
                                      : "";
    send_reply(socket, fault_now, partial ? 206 : 200, fault_now.headers + range,
               content.substr(static_cast<size_t>(start)), name);
  }

  void send_reply(int socket, const Fault& fault_now, int status, const std::string& headers, const std::string& body,
                  const std::string& file = "") {
    const auto length = fault_now.claim_size >= 0 ? fault_now.claim_size : static_cast<int64_t>(body.size());
    const std::string head = "HTTP/1.1 " + std::to_string(status) +
                             " Answer\r\nContent-Length: " + std::to_string(length) + "\r\nConnection: close\r\n" +
                             headers + "\r\n";
    if (!send_all(socket, head)) return;
    size_t limit = body.size();
    if (fault_now.cut_after >= 0) limit = std::min(limit, static_cast<size_t>(fault_now.cut_after));
    if (fault_now.stall_after >= 0) limit = std::min(limit, static_cast<size_t>(fault_now.stall_after));
    for (size_t sent = 0; sent < limit && !stopping_; sent += fault_now.piece) {
      const std::string part = body.substr(sent, std::min(fault_now.piece, limit - sent));
      if (!send_all(socket, part)) return;
      count_sent(file, part.size());
      if (fault_now.pause_ms > 0) std::this_thread::sleep_for(std::chrono::milliseconds(fault_now.pause_ms));
    }
    if (fault_now.stall_after >= 0) wait_readable(socket);  // until the client gives up
  }

  void count_sent(const std::string& file, size_t bytes) {
    const std::lock_guard lock(mutex_);
    sent_[file] += static_cast<int64_t>(bytes);
  }

  bool send_all(int socket, const std::string& text) const {
    for (size_t sent = 0; sent < text.size();) {
      const ssize_t count = ::send(socket, text.data() + sent, text.size() - sent, 0);
      if (count <= 0) return false;
      sent += static_cast<size_t>(count);
    }
    return true;
  }

  std::string address_;
  int listener_ = -1;
  int port_ = 0;
  std::atomic<bool> stopping_ = false;
  mutable std::mutex mutex_;
  std::map<std::string, File> files_;
  std::map<std::string, int> counts_;
  std::map<std::string, int64_t> sent_;
  std::vector<HubRequest> requests_;
  std::vector<std::thread> connections_;
  std::thread acceptor_;
};

}  // namespace lily::test
