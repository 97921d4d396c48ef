// What looks along the sequence: convolution, gated delta rule, attention. Included by kernels_impl.h.

// ---- Gated DeltaNet -----------------------------------------------------------------------------------------------

void convolve(const Convolution& c, int taps, int64_t channels, float* out) {
  for_vectors(channels, [&](int64_t i, auto get, auto put) {
    F32 total = {};
    for (int j = 0; j < taps; ++j) total += get(c.w + j * c.w_stride + i) * get(c.in + j * c.in_stride + i);
    put(out + i, total * sigmoid(total));
  });
}

// Rank-one updates that the state still lacks: S = keep * S + sum of k[j] update[j].
template <int V>
struct PendingUpdates {
  float keep = 1;
  const float* k[2];
  F32 update[2][V] = {};
};

// One pass over V vectors of columns: applies what is pending, and reads the state by the keys and queries of T tokens.
template <int V, int T, bool Pending>
inline void delta_pass(float* s, int key_dim, int value_dim, const PendingUpdates<V>& pending,
                       const float* const (&k)[T], const float* const (&q)[T], F32 (&recalled)[T][V],
                       F32 (&read)[T][V]) {
  for (int i = 0; i < key_dim; ++i, s += value_dim) {
#pragma GCC unroll 8
    for (int j = 0; j < V; ++j) {
      F32 row = load(s + j * lanes);
      if constexpr (Pending) {
        row = pending.keep * row + pending.k[0][i] * pending.update[0][j] + pending.k[1][i] * pending.update[1][j];
        store(s + j * lanes, row);
      }
#pragma GCC unroll 2
      for (int t = 0; t < T; ++t) {
        recalled[t][j] += k[t][i] * row;
        read[t][j] += q[t][i] * row;
      }
    }
  }
}

// T tokens from `t` on. With S the state before them, the second sees keep[0] * S + k[0] update[0]: products of keys
// and queries stand for the reads of what was not written yet.
template <int V, int T, bool Pending>
inline void delta_tokens(const DeltaRule& rule, int64_t t, int column, PendingUpdates<V>& pending) {
  const float *k[T], *q[T];
  for (int i = 0; i < T; ++i) {
    k[i] = rule.k + (t + i) * rule.stride;
    q[i] = rule.q + (t + i) * rule.stride;
  }
  F32 recalled[T][V] = {}, read[T][V] = {};
  delta_pass<V, T, Pending>(rule.state + column, rule.key_dim, rule.value_dim, pending, k, q, recalled, read);

  pending.keep = 1;
  for (int i = 0; i < T; ++i) {
    const float decay = rule.decay[(t + i) * rule.gate_stride], beta = rule.beta[(t + i) * rule.gate_stride];
    const float* v = rule.v + (t + i) * rule.stride + column;
    float* out = rule.out + (t + i) * rule.out_stride + column;
    pending.keep *= decay;
    const float k_q = dot(k[i], q[i], rule.key_dim);
    const float k_k = i > 0 ? dot(k[0], k[i], rule.key_dim) : 0, k0_q = i > 0 ? dot(k[0], q[i], rule.key_dim) : 0;
    for (int j = 0; j < V; ++j) {
      const F32 before = pending.keep * recalled[i][j] + (i > 0 ? decay * k_k * pending.update[0][j] : F32{});
      const F32 update = beta * (load(v + j * lanes) - before);
      const F32 others = pending.keep * read[i][j] + (i > 0 ? decay * k0_q * pending.update[0][j] : F32{});
      store(out + j * lanes, others + k_q * update);
      if (i > 0) pending.update[0][j] *= decay;
      pending.update[i][j] = update;
      if (T == 1) pending.update[1][j] = F32{};
    }
    pending.k[i] = k[i];
    if (T == 1) pending.k[1] = k[0];
  }
}

// `V` neighbouring vectors of columns; the state's columns are independent of each other. Two tokens at a time: the
// state is then loaded and stored half as often, and more sums run side by side.
template <int V>
void delta_columns(const DeltaRule& rule, int column) {
  PendingUpdates<V> pending;
  const bool odd = rule.tokens % 2 == 1;
  odd ? delta_tokens<V, 1, false>(rule, 0, column, pending) : delta_tokens<V, 2, false>(rule, 0, column, pending);
  for (int64_t t = odd ? 1 : 2; t < rule.tokens; t += 2) delta_tokens<V, 2, true>(rule, t, column, pending);
  float* s = rule.state + column;
  for (int i = 0; i < rule.key_dim; ++i, s += rule.value_dim) {
    for (int j = 0; j < V; ++j) {
      store(s + j * lanes, pending.keep * load(s + j * lanes) + pending.k[0][i] * pending.update[0][j] +
                               pending.k[1][i] * pending.update[1][j]);
    }
  }
}

void delta_column(const DeltaRule& rule, int column) {  // a single one, for dimensions that fill no vector
  for (int64_t t = 0; t < rule.tokens; ++t) {
    const float *q = rule.q + t * rule.stride, *k = rule.k + t * rule.stride;
    float* s = rule.state + column;
    float recalled = 0, result = 0;
    for (int i = 0; i < rule.key_dim; ++i) recalled += k[i] * s[int64_t{i} * rule.value_dim];
    const float decay = rule.decay[t * rule.gate_stride];
    const float update = rule.beta[t * rule.gate_stride] * (rule.v[t * rule.stride + column] - decay * recalled);
    for (int i = 0; i < rule.key_dim; ++i) {
      float& element = s[int64_t{i} * rule.value_dim];
      element = decay * element + k[i] * update;
      result += q[i] * element;
    }
    rule.out[t * rule.out_stride + column] = result;
  }
}

// Two sums a vector stay in registers.
constexpr int state_vectors = lanes == 16 ? 8 : 4;

void delta_rule(const DeltaRule& rule, int first_column, int columns) {
  int c = first_column;
  const int end = first_column + columns;
  if (rule.tokens == 1) {  // the state comes from memory: whole rows, so that it streams
    for (; c + state_vectors * lanes <= end; c += state_vectors * lanes) delta_columns<state_vectors>(rule, c);
  }
  for (; c + 2 * lanes <= end; c += 2 * lanes) delta_columns<2>(rule, c);
  for (; c + lanes <= end; c += lanes) delta_columns<1>(rule, c);
  for (; c < end; ++c) delta_column(rule, c);
}

// ---- attention ----------------------------------------------------------------------------------------------------

// Keys and values are float, or uint16_t for bf16.
inline F32 load_floats(const float* p) { return load(p); }
inline F32 load_floats(const uint16_t* p) { return widen_bf16(load_as<U16>(p)); }
inline float to_float(float x) { return x; }
inline float to_float(uint16_t bf16) { return bit_cast<float>(uint32_t{bf16} << 16); }

// Takes `count` more scores into the running softmax; scores become exp(score - max).
void soften(AttentionQuery& query, float* scores, int64_t count, int head_dim) {
  float top = query.max;
  for (int64_t i = 0; i < count; ++i) top = scores[i] > top ? scores[i] : top;
  if (top > query.max && query.total > 0) {
    const float shrink = exp(splat(query.max - top))[0];
    query.total *= shrink;
    for_vectors(head_dim, [&](int64_t i, auto get, auto put) { put(query.sum + i, get(query.sum + i) * shrink); });
  }
  query.max = top;
  F32 total = {};
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const F32 p = exp(load(scores + i) - top);
    store(scores + i, p);
    total += p;
  }
  query.total += sum(total);
  for (; i < count; ++i) query.total += scores[i] = exp(splat(scores[i] - top))[0];
}

// sum += p V for up to Q queries; a query's p is zero past what it may see.
template <int Q, class W>
void accumulate_values(const W* values, int64_t keys, int head_dim, AttentionQuery* queries, const float* p,
                       int64_t p_stride) {
  int64_t d = 0;
  for (; d + lanes <= head_dim; d += lanes) {
    F32 acc[Q];
    for (int q = 0; q < Q; ++q) acc[q] = load(queries[q].sum + d);
    for (int64_t key = 0; key < keys; ++key) {
      const F32 v = load_floats(values + key * head_dim + d);
#pragma GCC unroll 8
      for (int q = 0; q < Q; ++q) acc[q] += p[q * p_stride + key] * v;
    }
    for (int q = 0; q < Q; ++q) store(queries[q].sum + d, acc[q]);
  }
  for (; d < head_dim; ++d) {
    for (int q = 0; q < Q; ++q) {
      for (int64_t key = 0; key < keys; ++key) {
        queries[q].sum[d] += p[q * p_stride + key] * to_float(values[key * head_dim + d]);
      }
    }
  }
}

constexpr int64_t part = attention_part;
constexpr int key_vectors = (lanes == 16 ? 32 : 16) / lanes;  // of a register tile, and its queries
constexpr int score_queries = lanes == 16 ? 8 : 4;

// scores[q][key] = q k for Q queries and a register tile of keys. Lanes are keys, so nothing is summed across lanes.
template <int Q, class W>
inline void score_tile(const W* keys, int64_t first, int head_dim, const AttentionQuery* queries,
                       Prefetcher& prefetcher, float* scores) {
  const W* k[key_vectors];
  for (int v = 0; v < key_vectors; ++v) {
    const int64_t key = first + v * lanes;
    k[v] = keys + key / key_group * key_group * head_dim + key % key_group;
  }
  F32 acc[key_vectors][Q] = {};
  for (int d = 0; d < head_dim; ++d) {
    if (d % 4 == 0) prefetcher.step();
    F32 kv[key_vectors];
#pragma GCC unroll 4
    for (int v = 0; v < key_vectors; ++v) kv[v] = load_floats(k[v] + int64_t{d} * key_group);
#pragma GCC unroll 8
    for (int q = 0; q < Q; ++q) {
      const F32 x = splat(queries[q].q[d]);
#pragma GCC unroll 4
      for (int v = 0; v < key_vectors; ++v) acc[v][q] += kv[v] * x;
    }
  }
  for (int q = 0; q < Q; ++q) {
    for (int v = 0; v < key_vectors; ++v) store(scores + q * part + first + v * lanes, acc[v][q]);
  }
}

// scores [queries, part] of a part's keys. The part's values and the keys after it are fetched meanwhile.
template <class W>
void score_keys(const W* keys, int64_t count, int head_dim, const AttentionQuery* queries, int64_t num_queries,
                const Upcoming& next, float* scores) {
  constexpr int tile = key_vectors * lanes;
  const int64_t tiles = (count + tile - 1) / tile * ((num_queries + score_queries - 1) / score_queries);
  Prefetcher prefetcher(next, tiles * ((head_dim + 3) / 4));
  for (int64_t key = 0; key < count; key += tile) {
    int64_t q = 0;
    for (; q + score_queries <= num_queries; q += score_queries) {
      score_tile<score_queries>(keys, key, head_dim, queries + q, prefetcher, scores + q * part);
    }
    for (; q < num_queries; ++q) score_tile<1>(keys, key, head_dim, queries + q, prefetcher, scores + q * part);
  }
}

// Keys [first, first + count) of a block; next_count more come after them.
template <class W>
void attend_part(const W* keys, const W* values, int64_t first, int64_t count, int64_t next_count, int head_dim,
                 AttentionQuery* queries, int64_t num_queries, float* scores) {
  const int64_t row_bytes = head_dim * sizeof(W);
  const W *k = keys + first * head_dim, *v = values + first * head_dim;
  const Upcoming next = {
      .data = {reinterpret_cast<const uint8_t*>(v), reinterpret_cast<const uint8_t*>(k + count * head_dim)},
      .bytes = {count * row_bytes, next_count * row_bytes}};
  score_keys(k, count, head_dim, queries, num_queries, next, scores);
  for (int64_t q = 0; q < num_queries; ++q) {
    float* row = scores + q * part;
    const int64_t visible = smaller(count, queries[q].visible - first);
    if (visible > 0) soften(queries[q], row, visible, head_dim);
    for (int64_t i = visible > 0 ? visible : 0; i < count; ++i) row[i] = 0;
  }
  int64_t q = 0;
  for (; q + 8 <= num_queries; q += 8) accumulate_values<8>(v, count, head_dim, queries + q, scores + q * part, part);
  for (; q < num_queries; ++q) accumulate_values<1>(v, count, head_dim, queries + q, scores + q * part, part);
}

template <class W>
void attend_rows(const W* keys, const W* values, int64_t count, int head_dim, AttentionQuery* queries,
                 int64_t num_queries, float* scores) {
  for (int64_t first = 0; first < count; first += part) {
    const int64_t n = smaller(part, count - first), after = smaller(part, count - first - n);
    attend_part(keys, values, first, n, after, head_dim, queries, num_queries, scores);
  }
}

void attend(const void* keys, const void* values, DType dtype, int64_t count, int head_dim, AttentionQuery* queries,
            int64_t num_queries, float* scores) {
  const auto run = [&]<class W>(const W* k) {
    attend_rows(k, static_cast<const W*>(values), count, head_dim, queries, num_queries, scores);
  };
  if (dtype == DType::bf16) return run(static_cast<const uint16_t*>(keys));
  run(static_cast<const float*>(keys));
}
