// Where the KV pool has what (see AttentionArgs).
#pragma once

#include "kernels/args.h"

namespace lily::kernels {

// Where the keys of a KV head begin in a block of the pool; their values are kv_heads * kv_block_tokens * head_dim further.
FN ulong block_place(uint block, AttentionArgs a, uint kv_head) {
  const uint head = (block * a.kv_layers + a.kv_layer) * 2 * a.kv_heads + kv_head;
  return ulong(head) * kv_block_tokens * head_dim;
}
FN ulong key_place(device const uint* blocks, AttentionArgs a, uint kv_head, uint token) {
  return block_place(blocks[token / kv_block_tokens], a, kv_head) + token % kv_block_tokens * head_dim;
}
FN ulong value_distance(AttentionArgs a) { return ulong(a.kv_heads) * kv_block_tokens * head_dim; }

}  // namespace lily::kernels
