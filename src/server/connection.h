// One client's socket, for httplib: with limits on what it sends and how slowly, and a way to see that it has gone.
#pragma once

// The parts of httplib that are not ours to choose are set by its package; see src/server/CMakeLists.txt.
#include <httplib.h>

#include <atomic>
#include <chrono>
#include <string>

namespace lily::server {

struct ConnectionLimits {
  size_t head_bytes = 64 << 10;  // of request line and headers
  size_t body_bytes = 32 << 20;
  std::chrono::milliseconds head_time{10'000};   // for the whole head
  std::chrono::milliseconds body_time{300'000};  // for the whole body
  std::chrono::milliseconds stall_time{30'000};  // without any byte, of the body or of the reply
};

class Connection final : public httplib::Stream {
 public:
  // `closing`: give up at once.
  Connection(int socket, const ConnectionLimits& limits, const std::atomic<bool>& closing);
  ~Connection() override;  // closes the socket, in a way that lets the client read all of the reply
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void head_done();                              // what is read from now on is the body
  bool too_large() const { return too_large_; }  // head or body
  bool peer_gone() const;                        // also where it only closed its sending side

  bool is_readable() const override { return true; }
  bool is_writable() const override { return !peer_gone(); }
  ssize_t read(char* data, size_t size) override;
  ssize_t write(const char* data, size_t size) override;
  void get_remote_ip_and_port(std::string& ip, int& port) const override;
  void get_local_ip_and_port(std::string& ip, int& port) const override;
  socket_t socket() const override { return socket_; }

  // Newer versions of httplib ask for these too.
  bool wait_readable() const { return true; }
  bool wait_writable() const { return !peer_gone(); }
  time_t duration() const { return 0; }

 private:
  using Clock = std::chrono::steady_clock;

  bool fill();  // buffer_ with what the socket has
  bool wait_for(short events, Clock::time_point deadline) const;

  const int socket_;
  const ConnectionLimits& limits_;
  const std::atomic<bool>& closing_;
  Clock::time_point deadline_;  // for all that is still to be read of the head or the body
  std::string buffer_;
  size_t at_ = 0;
  size_t left_;  // bytes that the client may still send
  bool too_large_ = false;
};

}  // namespace lily::server
