#include "base/paths.h"

#include <pwd.h>
#include <unistd.h>

#include <cstdlib>

namespace lily {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

std::string home_directory() {
  if (std::string home = environment("HOME"); !home.empty()) return home;
  const passwd* user = ::getpwuid(::getuid());
  return user && user->pw_dir ? user->pw_dir : "";
}

std::string data_directory() {
  // The XDG rules: a relative path there is to be ignored.
  if (const std::string base = environment("XDG_DATA_HOME"); base.starts_with('/')) return base + "/lily";
  return home_directory() + "/.local/share/lily";
}

std::string last_model_file() { return data_directory() + "/last_model"; }

}  // namespace lily
