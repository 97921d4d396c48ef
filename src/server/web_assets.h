// The files of src/server/web/, as the build put them into the program.
#pragma once

#include <span>
#include <string_view>

namespace lily::server {

struct WebAsset {
  std::string_view path;  // "/style.css"
  std::string_view bytes;
  std::string_view tag;  // for ETag, quotes included
};

std::span<const WebAsset> web_assets();

}  // namespace lily::server
