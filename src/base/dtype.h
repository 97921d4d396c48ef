// Element types of stored tensors, and the conversions to float32.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace lily {

enum class DType { f32, f16, bf16, u32, i32, u8, i64, f64, other };

constexpr size_t size_of(DType type) {
  switch (type) {
    case DType::f64:
    case DType::i64: return 8;
    case DType::f32:
    case DType::u32:
    case DType::i32: return 4;
    case DType::f16:
    case DType::bf16: return 2;
    default: return 1;
  }
}

constexpr const char* name_of(DType type) {
  switch (type) {
    case DType::f32: return "F32";
    case DType::f16: return "F16";
    case DType::bf16: return "BF16";
    case DType::u32: return "U32";
    case DType::i32: return "I32";
    case DType::u8: return "U8";
    case DType::i64: return "I64";
    case DType::f64: return "F64";
    default: return "other";
  }
}

inline float bf16_to_float(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }

// Round to nearest, ties to even; NaN stays NaN.
inline uint16_t float_to_bf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

// IEEE binary16, subnormals included.
inline float f16_to_float(uint16_t half) {
  const uint32_t sign = uint32_t{half & 0x8000u} << 16;
  const uint32_t magnitude = half & 0x7fffu;
  if (magnitude >= 0x7c00u) return std::bit_cast<float>(sign | 0x7f800000u | ((magnitude & 0x3ffu) << 13));
  // Shifted into a float's fields the exponent is 112 too small; one exact multiplication repairs normals and subnormals.
  const float scaled = std::bit_cast<float>(magnitude << 13) * 0x1p112f;
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(scaled));
}

// Reads element `index` of an array at any address: tensors in MLX files are not aligned.
template <class T>
T load_unaligned(const void* data, size_t index = 0) {
  T value;
  std::memcpy(&value, static_cast<const std::byte*>(data) + index * sizeof(T), sizeof(T));
  return value;
}

// Reads element `index` of a f32, f16 or bf16 array at any address.
inline float load_as_float(const void* data, DType type, size_t index) {
  switch (type) {
    case DType::f32: return load_unaligned<float>(data, index);
    case DType::f16: return f16_to_float(load_unaligned<uint16_t>(data, index));
    default: return bf16_to_float(load_unaligned<uint16_t>(data, index));
  }
}

}  // namespace lily
