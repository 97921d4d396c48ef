#include "server/access.h"

#include <gtest/gtest.h>

namespace lily::server {
namespace {

Access access(const AccessOptions& options = {}) {
  Result<Access> made = Access::create(options);
  if (!made) ADD_FAILURE() << made.error().message();
  return std::move(made).value();
}

TEST(Access, SC_03_HostsAreParsedAndComparedWhole) {
  const Access local = access();
  for (const char* host : {"localhost", "localhost:8080", "LocalHost", "localhost.", "localhost.:80", "127.0.0.1",
                           "127.0.0.1:65535", "127.8.9.1", "[::1]", "[::1]:8080", "[0:0:0:0:0:0:0:1]"}) {
    EXPECT_TRUE(local.allows_host(host)) << host;
  }
  for (const char* host : {"",
                           ".",
                           ":",
                           ":80",
                           "127.0.0.1.evil.example",
                           "localhost.evil.example",
                           "evil.example",
                           "127.1",
                           "0x7f.1",
                           "0x7f.0.0.1",
                           "0177.0.0.1",
                           "2130706433",
                           "[::ffff:127.0.0.1]",
                           "[::2]",
                           "[::1",
                           "::1",
                           "[::1]x",
                           "[::1]]",
                           "[localhost]",
                           "localhost:",
                           "localhost:80:80",
                           "localhost:99999",
                           "localhost:-1",
                           "localhost:8o",
                           "local host",
                           "localhost@evil.example",
                           "evil.example@localhost",
                           "localhost/",
                           "localhost,evil.example",
                           "128.0.0.1",
                           "0.0.0.0",
                           "127.0.0.1..",
                           "localhost..",
                           "localhost\t",
                           "\xff"}) {
    EXPECT_FALSE(local.allows_host(host)) << host;
  }
}

TEST(Access, NothingHidesBehindANulByte) {
  using namespace std::string_view_literals;
  for (const std::string_view host : {"127.0.0.1\0.evil.example"sv, "localhost\0"sv, "\0"sv, "[::1\0]"sv}) {
    EXPECT_FALSE(access().allows_host(host)) << host.size();
    EXPECT_FALSE(parse_host(host)) << host.size();
  }
}

TEST(Access, ServersOfOtherAddressesHaveOtherNames) {
  const Access lan = access({.address = "192.168.1.5", .hosts = {"Lily.Lan", "box:8080"}, .key = "k"});
  for (const char* host : {"192.168.1.5:8080", "127.0.0.1", "lily.lan", "LILY.LAN.:1", "box"})
    EXPECT_TRUE(lan.allows_host(host)) << host;
  for (const char* host : {"192.168.1.6", "192.168.1.50", "xlily.lan", "lily.lan.evil.example"}) {
    EXPECT_FALSE(lan.allows_host(host)) << host;
  }
  const Access all = access({.address = "0.0.0.0", .key = "k"});
  for (const char* host : {"10.1.2.3:8080", "[fe80::1]", "localhost"}) EXPECT_TRUE(all.allows_host(host)) << host;
  EXPECT_FALSE(all.allows_host("rebound.example"));
  const Access named = access({.address = "box.lan", .key = "k"});
  EXPECT_TRUE(named.allows_host("BOX.lan:80"));
  EXPECT_FALSE(named.allows_host("box.lan.evil.example"));
}

TEST(Access, OriginsAreThisHostOrListed) {
  const Access own = access();
  EXPECT_EQ(own.allow_origin("http://localhost:8080", "localhost:8080"), "");
  EXPECT_EQ(own.allow_origin("https://LOCALHOST", "localhost"), "");
  for (const char* origin :
       {"http://localhost:8081", "http://localhost", "http://127.0.0.1:8080", "null", "", "localhost:8080",
        "file://localhost:8080", "http://localhost:8080/", "http://localhost:8080.evil.example", "http://evil.example",
        "http://localhost:8080@evil.example"}) {
    EXPECT_FALSE(own.allow_origin(origin, "localhost:8080")) << origin;
  }
  const Access listed = access({.origins = {"https://App.example", "tauri://localhost"}});
  EXPECT_EQ(listed.allow_origin("https://app.example", "localhost"), "https://app.example");
  EXPECT_EQ(listed.allow_origin("tauri://localhost", "localhost"), "tauri://localhost");
  EXPECT_FALSE(listed.allow_origin("http://app.example", "localhost"));
  EXPECT_FALSE(listed.allow_origin("https://app.example.evil", "localhost"));
  EXPECT_EQ(access({.origins = {"*"}}).allow_origin("https://any.example", "localhost"), "*");
}

TEST(Access, SC_05_OtherMachinesNeedAKey) {
  for (const char* address : {"0.0.0.0", "::", "192.168.1.5", "box.lan", "127.0.0.1.evil.example", "128.0.0.1"}) {
    EXPECT_FALSE(Access::create({.address = address}).ok()) << address;
    EXPECT_TRUE(Access::create({.address = address, .key = "k"}).ok()) << address;
  }
  for (const char* address : {"127.0.0.1", "127.0.0.2", "::1", "localhost"}) {
    EXPECT_TRUE(Access::create({.address = address}).ok()) << address;
  }
  const Access keyed = access({.key = "abc"});
  EXPECT_TRUE(keyed.allows_key("Bearer abc", ""));
  EXPECT_TRUE(keyed.allows_key("", "abc"));
  EXPECT_TRUE(keyed.allows_key("bEARER   abc", ""));
  const char* wrong[] = {"",           "abc",           "Bearer",      "Bearer ",  "Bearer ab",
                         "Bearer abd", "Bearer abcabc", "Bearer abc ", "Basic abc"};
  for (const char* value : wrong) EXPECT_FALSE(keyed.allows_key(value, "")) << value;
  for (const char* value : {"ab", "abcd", "abcabc", "ABC"}) EXPECT_FALSE(keyed.allows_key("", value)) << value;
}

TEST(Access, OptionsAreChecked) {
  EXPECT_FALSE(Access::create({.hosts = {"http://x"}}).ok());
  EXPECT_FALSE(Access::create({.origins = {"example.org"}}).ok());
  EXPECT_FALSE(Access::create({.origins = {"https://example.org/"}}).ok());
}

}  // namespace
}  // namespace lily::server
