// What the kernels that are CUDA's alone say besides the dialect. Included after dialect/cuda.h.
#pragma once

namespace lily::kernels {

// 16 bytes from global into threadgroup memory behind the back of the threads, or zeros.
FN void copy_async(void* to, const void* from, bool there) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from), "r"(there ? 16 : 0)
               : "memory");
}
FN void copies_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// All but the last `pending` groups of copies of this thread have arrived.
template <int pending>
FN void copies_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
}

// Two by two 8x8 matrices of bf16, each transposed: of lane l, `row` is row l % 8 of matrix l / 8.
FN void load_matrices_transposed(uint (&out)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
               : "r"(shared_address(row)));
}
// 2^x in one instruction; what is below 2^-126 becomes zero.
FN float exp2_f(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
FN uint load_pair(const bf16* from) { return *reinterpret_cast<const uint*>(from); }
FN void store_pair(bf16* to, uint pair) { *reinterpret_cast<uint*>(to) = pair; }

// a * b + c of pairs of bf16, rounded once.
FN uint fma_pairs(uint a, uint b, uint c) {
  uint d;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
  return d;
}
// Bytes of (y, x) picked by the digits of `order`, the last one first.
FN uint pick_bytes(uint x, uint y, uint order) { return __byte_perm(x, y, order); }
// (a & b) | c
FN uint and_or(uint a, uint b, uint c) {
  uint d;
  asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
  return d;
}
FN uint log2_u(uint power) { return 31 - __clz(power); }
FN uint bits_of(bf16 v) { return __bfloat16_as_ushort(v); }

}  // namespace lily::kernels
