#include "server/connection.h"

#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace lily::server {
namespace {

using namespace std::chrono_literals;

constexpr size_t buffer_bytes = 64 << 10;
constexpr size_t chunk_overhead = 1 << 20;  // of the frames in which a body may come
constexpr auto look_around = 100ms;         // how often a wait is interrupted to see whether it makes sense
constexpr auto linger_time = 500ms;

#ifdef MSG_NOSIGNAL
constexpr int no_signal = MSG_NOSIGNAL;
#else
constexpr int no_signal = 0;      // httplib ignores SIGPIPE
#endif
#ifdef POLLRDHUP
constexpr short half_closed = POLLRDHUP;
#else
constexpr short half_closed = 0;  // POLLHUP says it
#endif

bool would_block() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

void name_of(const sockaddr_storage& address, socklen_t size, std::string& ip, int& port) {
  char host[NI_MAXHOST], service[NI_MAXSERV];
  const int failed = ::getnameinfo(reinterpret_cast<const sockaddr*>(&address), size, host, sizeof host, service,
                                   sizeof service, NI_NUMERICHOST | NI_NUMERICSERV);
  if (failed) return;
  ip = host;
  port = std::atoi(service);
}

}  // namespace

Connection::Connection(int socket, const ConnectionLimits& limits, const std::atomic<bool>& closing)
    : socket_(socket),
      limits_(limits),
      closing_(closing),
      deadline_(Clock::now() + limits.head_time),
      left_(limits.head_bytes) {
  // Events are small and must not wait for each other.
  const int on = 1;
  ::setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

// Closing with unread bytes resets the connection, and the client might lose the reply to a request that was refused
// before its end.
Connection::~Connection() {
  ::shutdown(socket_, SHUT_WR);
  const auto deadline = Clock::now() + linger_time;
  char scratch[4096];
  while (!closing_ && wait_for(POLLIN, deadline)) {
    if (::recv(socket_, scratch, sizeof scratch, MSG_DONTWAIT) <= 0) break;
  }
  ::close(socket_);
}

void Connection::head_done() {
  deadline_ = Clock::now() + limits_.body_time;
  left_ = limits_.body_bytes + chunk_overhead;
}

bool Connection::wait_for(short events, Clock::time_point deadline) const {
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    pollfd entry{socket_, events, 0};
    const int ready =
        ::poll(&entry, 1, static_cast<int>(std::clamp(left, 0ms, std::chrono::milliseconds(look_around)).count()));
    if (ready > 0) return true;
    if (closing_ || left <= 0ms) return false;
  }
}

bool Connection::peer_gone() const {
  pollfd entry{socket_, POLLIN | half_closed, 0};
  if (::poll(&entry, 1, 0) <= 0) return false;
  if (entry.revents & (POLLERR | POLLHUP | POLLNVAL | half_closed)) return true;
  char byte;
  const ssize_t count = ::recv(socket_, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return count == 0 || (count < 0 && !would_block());
}

bool Connection::fill() {
  at_ = 0;
  buffer_.resize(buffer_bytes);
  while (true) {
    const auto deadline = std::min(deadline_, Clock::now() + limits_.stall_time);
    const ssize_t count =
        wait_for(POLLIN, deadline) ? ::recv(socket_, buffer_.data(), buffer_.size(), MSG_DONTWAIT) : 0;
    if (count < 0 && would_block()) continue;
    buffer_.resize(static_cast<size_t>(std::max<ssize_t>(count, 0)));
    return !buffer_.empty();
  }
}

ssize_t Connection::read(char* data, size_t size) {
  if (left_ == 0) too_large_ = true;
  size = std::min(size, left_);
  if (size == 0 || (at_ == buffer_.size() && !fill())) return -1;
  const size_t count = std::min(size, buffer_.size() - at_);
  std::copy_n(buffer_.data() + at_, count, data);
  at_ += count;
  left_ -= count;
  return static_cast<ssize_t>(count);
}

ssize_t Connection::write(const char* data, size_t size) {
  size_t sent = 0;
  while (sent < size) {
    const ssize_t count = ::send(socket_, data + sent, size - sent, MSG_DONTWAIT | no_signal);
    if (count > 0) sent += static_cast<size_t>(count);
    else if (!would_block() || !wait_for(POLLOUT, Clock::now() + limits_.stall_time)) return -1;
  }
  return static_cast<ssize_t>(size);
}

void Connection::get_remote_ip_and_port(std::string& ip, int& port) const {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (::getpeername(socket_, reinterpret_cast<sockaddr*>(&address), &size) == 0) name_of(address, size, ip, port);
}

void Connection::get_local_ip_and_port(std::string& ip, int& port) const {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size) == 0) name_of(address, size, ip, port);
}

}  // namespace lily::server
