#include "server/access.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>

namespace lily::server {
namespace {

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return result;
}

bool is_port(std::string_view text) {
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  return !text.empty() && text.size() <= 5 && std::all_of(text.begin(), text.end(), digit) &&
         std::stoi(std::string(text)) <= 65535;
}

struct Address {
  bool v6 = false;
  std::array<unsigned char, 16> bytes{};
  bool operator==(const Address&) const = default;
};

// Four decimal numbers or IPv6, with or without brackets; no short, octal or hexadecimal forms.
std::optional<Address> parse_address(std::string host) {
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  Address address;
  if (::inet_pton(AF_INET, host.c_str(), address.bytes.data()) == 1) return address;
  address.v6 = true;
  if (::inet_pton(AF_INET6, host.c_str(), address.bytes.data()) == 1) return address;
  return std::nullopt;
}

bool is_loopback(const Address& address) {
  return address.v6 ? address == *parse_address("::1") : address.bytes[0] == 127;
}

bool is_any(const Address& address) { return address.bytes == Address{}.bytes; }

bool is_local(const std::string& host) {
  const std::optional<Address> address = parse_address(host);
  return address ? is_loopback(*address) : lower(host) == "localhost";
}

bool same_secret(std::string_view given, std::string_view secret) {
  bool same = given.size() == secret.size();
  unsigned difference = 0;
  for (size_t i = 0; i < given.size(); ++i) {
    difference |= static_cast<unsigned char>(given[i]) ^ static_cast<unsigned char>(secret[i % secret.size()]);
  }
  same &= difference == 0;
  return same;
}

std::string_view bearer_of(std::string_view authorization) {
  constexpr std::string_view scheme = "bearer ";
  if (lower(authorization.substr(0, scheme.size())) != scheme) return {};
  authorization.remove_prefix(scheme.size());
  return authorization.substr(std::min(authorization.find_first_not_of(' '), authorization.size()));
}

}  // namespace

std::optional<HostPort> parse_host(std::string_view text) {
  const size_t bracket = text.starts_with('[') ? text.find(']') : 0;
  if (bracket == text.npos) return std::nullopt;
  const size_t colon = text.find(':', bracket);
  HostPort result{lower(text.substr(0, colon)), ""};
  if (colon != text.npos) {
    result.port = text.substr(colon + 1);
    if (!is_port(result.port)) return std::nullopt;
  }
  if (bracket != 0 && result.host.size() != bracket + 1) return std::nullopt;
  if (result.host.ends_with('.')) result.host.pop_back();
  constexpr std::string_view marks = "-._[]:";
  const auto ordinary = [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || marks.find(c) != marks.npos;
  };
  if (result.host.empty() || !std::all_of(result.host.begin(), result.host.end(), ordinary)) return std::nullopt;
  return result;
}

Result<Access> Access::create(const AccessOptions& options) {
  if (options.key.empty() && !is_local(options.address)) {
    return Error{.where = "--host " + options.address,
                 .what = "others can reach this address",
                 .expected = "a key for them: --api-key or --api-key-file",
                 .got = "none"};
  }
  Access access(options);
  for (std::string& host : access.options_.hosts) {
    const std::optional<HostPort> parsed = parse_host(host);
    if (!parsed) return Error{.where = "--allow-host", .what = "no name of a host", .got = host};
    host = parsed->host;
  }
  for (std::string& origin : access.options_.origins) {
    origin = lower(origin);
    if (origin != "*" && (origin.find("://") == origin.npos || origin.ends_with('/'))) {
      return Error{
          .where = "--cors-origin", .what = "no origin", .expected = "SCHEME://HOST[:PORT] or *", .got = origin};
    }
  }
  return access;
}

bool Access::allows_host(std::string_view header) const {
  const std::optional<HostPort> parsed = parse_host(header);
  if (!parsed) return false;
  const auto& names = options_.hosts;
  if (std::find(names.begin(), names.end(), parsed->host) != names.end()) return true;
  const std::optional<Address> address = parse_address(parsed->host);
  const std::optional<Address> own = parse_address(options_.address);
  if (!address) return parsed->host == "localhost" || (!own && parsed->host == lower(options_.address));
  return is_loopback(*address) || (own && (is_any(*own) || *own == *address));
}

std::optional<std::string> Access::allow_origin(std::string_view origin, std::string_view host) const {
  const std::string text = lower(origin);
  const size_t scheme = text.find("://");
  const bool web = scheme != text.npos && (text.substr(0, scheme) == "http" || text.substr(0, scheme) == "https");
  if (web) {
    const std::optional<HostPort> page = parse_host(std::string_view(text).substr(scheme + 3));
    const std::optional<HostPort> here = parse_host(host);
    if (page && here && page->host == here->host && page->port == here->port) return "";
  }
  const auto& listed = options_.origins;
  if (std::find(listed.begin(), listed.end(), "*") != listed.end()) return "*";
  if (std::find(listed.begin(), listed.end(), text) != listed.end()) return std::string(origin);
  return std::nullopt;
}

bool Access::allows_key(std::string_view authorization, std::string_view api_key) const {
  if (options_.key.empty()) return true;
  const bool bearer = same_secret(bearer_of(authorization), options_.key);
  const bool header = same_secret(api_key, options_.key);
  return bearer || header;
}

}  // namespace lily::server
