// Who may talk to the server: a browser page of a stranger may not, nor whoever lacks the key.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace lily::server {

struct AccessOptions {
  std::string address = "127.0.0.1";  // that the server listens on
  std::vector<std::string> hosts;     // further names that a Host header may hold
  std::vector<std::string> origins;   // pages of other hosts that may call: "https://example.org"; "*": every page
  std::string key;                    // empty: none is needed
};

// "Localhost.:8080" -> "localhost", "8080"; nothing if it is no host and port. The brackets of IPv6 stay.
struct HostPort {
  std::string host, port;
};
std::optional<HostPort> parse_host(std::string_view text);

class Access {
 public:
  // An error where the address is not this machine's alone and there is no key.
  static Result<Access> create(const AccessOptions& options);

  // Against DNS rebinding: loopback, the address of the server or one of `hosts`. Any numeric address where the server
  // listens on all: no name leads there.
  bool allows_host(std::string_view header) const;

  // The value of Access-Control-Allow-Origin, empty where the page is of this server itself; nothing: refused.
  std::optional<std::string> allow_origin(std::string_view origin, std::string_view host) const;

  // Values of the headers Authorization and x-api-key. Takes the same time for every wrong key of a length.
  bool allows_key(std::string_view authorization, std::string_view api_key) const;

 private:
  explicit Access(const AccessOptions& options) : options_(options) {}

  AccessOptions options_;
};

}  // namespace lily::server
