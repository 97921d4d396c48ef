// A client that sends exactly the bytes it is told to.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/chat.h"

namespace lily::test {

struct HttpAnswer {
  int status = 0;                              // 0: none
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;                            // chunks put together
  bool complete = false;                       // as long as it said

  OrderedJson json() const { return OrderedJson::parse(body, nullptr, false); }
  std::string header(const std::string& name) const {
    const auto found = headers.find(name);
    return found == headers.end() ? "" : found->second;
  }
  // The data of every server-sent event, comments as ": ...".
  std::vector<std::string> events() const {
    std::vector<std::string> all;
    for (size_t at = 0, end; (end = body.find("\n\n", at)) != body.npos; at = end + 2) {
      const std::string event = body.substr(at, end - at);
      all.push_back(event.starts_with("data: ") ? event.substr(6) : event);
    }
    return all;
  }
};

class Socket {
 public:
  explicit Socket(int port, int receive_buffer = 0) : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
    if (receive_buffer > 0) ::setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = ::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }
  ~Socket() { close(); }
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)), connected_(other.connected_) {}
  Socket(const Socket&) = delete;

  bool connected() const { return connected_; }
  void send(std::string_view text) const {
    while (!text.empty()) {
      const ssize_t count = ::send(fd_, text.data(), text.size(), MSG_NOSIGNAL);
      if (count <= 0) return;
      text.remove_prefix(static_cast<size_t>(count));
    }
  }
  void half_close() const { ::shutdown(fd_, SHUT_WR); }
  void close() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }

  // More bytes; empty at the end, or when none come in time.
  std::string receive(std::chrono::milliseconds timeout = std::chrono::seconds(5)) const {
    pollfd entry{fd_, POLLIN, 0};
    if (::poll(&entry, 1, static_cast<int>(timeout.count())) <= 0) return "";
    std::string text(1 << 16, '\0');
    const ssize_t count = ::recv(fd_, text.data(), text.size(), 0);
    text.resize(static_cast<size_t>(std::max<ssize_t>(count, 0)));
    return text;
  }
  std::string receive_until(std::string_view wanted) const {
    std::string text;
    while (text.find(wanted) == text.npos) {
      const std::string more = receive();
      if (more.empty()) break;
      text += more;
    }
    return text;
  }
  std::string receive_all() const {
    std::string text;
    for (std::string more; !(more = receive()).empty();) text += more;
    return text;
  }

 private:
  int fd_;
  bool connected_ = false;
};

inline HttpAnswer parse_answer(const std::string& text) {
  HttpAnswer answer;
  const size_t end = text.find("\r\n\r\n");
  if (end == text.npos || !text.starts_with("HTTP/1.1 ")) return answer;
  answer.status = std::stoi(text.substr(9, 3));
  for (size_t at = text.find("\r\n") + 2; at < end + 2;) {
    const size_t stop = text.find("\r\n", at), colon = text.find(": ", at);
    std::string name = text.substr(at, colon - at);
    for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    answer.headers[name] = text.substr(colon + 2, stop - colon - 2);
    at = stop + 2;
  }
  std::string_view rest = std::string_view(text).substr(end + 4);
  if (answer.header("transfer-encoding") != "chunked") {
    answer.body = rest;
    answer.complete = std::to_string(answer.body.size()) == answer.header("content-length");
    return answer;
  }
  for (size_t line; (line = rest.find("\r\n")) != rest.npos;) {
    const size_t size = std::stoul(std::string(rest.substr(0, line)), nullptr, 16);
    if (size == 0) answer.complete = true;
    if (size == 0 || rest.size() < line + 2 + size) break;
    answer.body += rest.substr(line + 2, size);
    rest.remove_prefix(std::min(rest.size(), line + 4 + size));
  }
  return answer;
}

inline std::string get_text(const std::string& path, const std::string& headers = "Host: localhost\r\n") {
  return "GET " + path + " HTTP/1.1\r\n" + headers + "\r\n";
}

inline std::string post_text(const std::string& path, const std::string& body,
                             const std::string& headers = "Host: localhost\r\n") {
  return "POST " + path + " HTTP/1.1\r\n" + headers +
         "Content-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

// One request on a connection of its own.
inline HttpAnswer ask(int port, const std::string& request) {
  const Socket socket(port);
  socket.send(request);
  return parse_answer(socket.receive_all());
}

}  // namespace lily::test
