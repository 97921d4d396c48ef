#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "model/checkpoint.h"
#include "model/json.h"

namespace lily {
namespace {

using nlohmann::json;

constexpr uint64_t max_header_bytes = 100'000'000;  // the limit of the format's reference implementation

struct StoredType {
  const char* name;
  DType type;
  uint64_t bytes;
};

constexpr std::array<StoredType, 17> stored_types = {{
    {"F32", DType::f32, 4},
    {"F16", DType::f16, 2},
    {"BF16", DType::bf16, 2},
    {"U32", DType::u32, 4},
    {"I32", DType::i32, 4},
    {"U8", DType::u8, 1},
    {"I64", DType::i64, 8},
    {"F64", DType::f64, 8},
    {"BOOL", DType::other, 1},
    {"I8", DType::other, 1},
    {"U16", DType::other, 2},
    {"I16", DType::other, 2},
    {"U64", DType::other, 8},
    {"F8_E4M3", DType::other, 1},
    {"F8_E5M2", DType::other, 1},
    {"F8_E8M0", DType::other, 1},
    {"C64", DType::other, 8},
}};

std::string bytes_text(uint64_t bytes) { return std::to_string(bytes) + " bytes"; }

struct Header {
  json object;
  std::span<const std::byte> data;  // what follows the header
};

Result<Header> read_header(std::span<const std::byte> file, const std::string& path) {
  if (file.size() < 8) return Error{path, "truncated: no header", "at least 8 bytes", bytes_text(file.size())};
  const auto length = load_unaligned<uint64_t>(file.data());
  if (length > max_header_bytes) {
    return Error{path, "header length", "at most " + bytes_text(max_header_bytes), bytes_text(length)};
  }
  const uint64_t rest = file.size() - 8;
  if (length > rest) {
    return Error{path, "truncated inside the header", bytes_text(8 + length),
                 bytes_text(file.size()) + " (" + bytes_text(length - rest) + " missing)"};
  }
  const std::string_view text(reinterpret_cast<const char*>(file.data()) + 8, length);
  LILY_TRY(json object, parse_json(text, path));
  if (!object.is_object()) return Error{path, "header", "a JSON object", kind_of(object)};
  return Header{std::move(object), file.subspan(8 + length)};
}

// Product of the shape times the size of an element; nothing on overflow or a dimension that is no size.
std::optional<uint64_t> byte_count(const json& shape, uint64_t element_bytes, std::vector<int64_t>& dims) {
  uint64_t total = element_bytes;
  for (const json& dim : shape) {
    if (!dim.is_number_unsigned() || dim.get<uint64_t>() > INT64_MAX) return std::nullopt;
    dims.push_back(dim.get<int64_t>());
    if (__builtin_mul_overflow(total, dim.get<uint64_t>(), &total) || total > INT64_MAX) return std::nullopt;
  }
  return total;
}

struct Extent {
  uint64_t begin, end;
  const std::string* name;
};

// One entry of the header; the tensor's data pointer is set once all extents are known to lie in the file.
Result<Tensor> read_entry(const json& entry, const std::string& where, Extent& extent) {
  const auto dtype = entry.is_object() ? entry.find("dtype") : entry.end();
  const auto shape = entry.is_object() ? entry.find("shape") : entry.end();
  const auto offsets = entry.is_object() ? entry.find("data_offsets") : entry.end();
  if (dtype == entry.end() || shape == entry.end() || offsets == entry.end() || !shape->is_array()) {
    return Error{where, "header entry", "dtype, shape and data_offsets", "an entry without them"};
  }
  const auto type = std::find_if(stored_types.begin(), stored_types.end(), [&](auto& t) { return *dtype == t.name; });
  if (type == stored_types.end()) return Error{where, "unknown dtype", "a safetensors dtype", short_form(*dtype)};
  if (!offsets->is_array() || offsets->size() != 2 || !(*offsets)[0].is_number_unsigned() ||
      !(*offsets)[1].is_number_unsigned()) {
    return Error{where, "data_offsets", "two byte offsets", short_form(*offsets)};
  }
  extent.begin = (*offsets)[0].get<uint64_t>();
  extent.end = (*offsets)[1].get<uint64_t>();
  Tensor tensor;
  tensor.dtype = type->type;
  const auto bytes = byte_count(*shape, type->bytes, tensor.shape);
  if (!bytes) return Error{where, "shape", "sizes whose product fits 63 bits", shape->dump().substr(0, 80)};
  if (extent.end < extent.begin || extent.end - extent.begin != *bytes) {
    return Error{where, "data_offsets do not fit the shape", bytes_text(*bytes) + " for " + tensor.describe(),
                 "[" + std::to_string(extent.begin) + ", " + std::to_string(extent.end) + "]"};
  }
  tensor.bytes = *bytes;
  return tensor;
}

// The tensors must tile the data section: no gap, no overlap, nothing past the end of the file.
Result<void> check_extents(std::vector<Extent>& extents, uint64_t data_bytes, const std::string& path) {
  std::sort(extents.begin(), extents.end(),
            [](const Extent& a, const Extent& b) { return std::pair(a.begin, a.end) < std::pair(b.begin, b.end); });
  uint64_t end = 0;
  for (const Extent& extent : extents) {
    if (extent.begin != end) {
      return Error{path + ": " + *extent.name,
                   extent.begin < end ? "overlaps the tensor before it" : "gap before the tensor",
                   "data at offset " + std::to_string(end), "offset " + std::to_string(extent.begin)};
    }
    end = extent.end;
  }
  for (const Extent& extent : extents) {
    if (extent.end <= data_bytes) continue;
    return Error{path + ": " + *extent.name, "file truncated", bytes_text(end) + " of tensor data",
                 bytes_text(data_bytes) + " (" + bytes_text(end - data_bytes) + " missing)"};
  }
  if (end != data_bytes) {
    return Error{path, "data after the last tensor", bytes_text(end) + " of tensor data", bytes_text(data_bytes)};
  }
  return {};
}

}  // namespace

int64_t Tensor::elements() const {
  int64_t count = 1;
  for (const int64_t dim : shape) count *= dim;
  return count;
}

std::string Tensor::describe() const {
  std::string text = std::string(name_of(dtype)) + " [";
  for (size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

Result<TensorMap> parse_safetensors(std::span<const std::byte> file, const std::string& path) {
  LILY_TRY(const Header header, read_header(file, path));
  TensorMap tensors;
  std::vector<Extent> extents;
  for (const auto& [name, entry] : header.object.items()) {
    if (name == "__metadata__") continue;
    Extent extent{};
    LILY_TRY(Tensor tensor, read_entry(entry, path + ": " + name, extent));
    tensor.file = path;
    const auto place = tensors.emplace(name, std::move(tensor)).first;
    extents.push_back({extent.begin, extent.end, &place->first});
  }
  LILY_CHECK(check_extents(extents, header.data.size(), path));
  for (const Extent& extent : extents) tensors.find(*extent.name)->second.data = header.data.data() + extent.begin;
  return tensors;
}

}  // namespace lily
