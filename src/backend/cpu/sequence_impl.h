// What looks along the sequence: convolution, gated delta rule, attention. Included by kernels_impl.h.

// ---- Gated DeltaNet -----------------------------------------------------------------------------------------------

void convolve(const float* w, const float* in, int64_t in_stride, int taps, int64_t channels, float* out) {
  for_vectors(channels, [&](int64_t c, auto get, auto put) {
    F32 total = {};
    for (int j = 0; j < taps; ++j) total += get(w + j * channels + c) * get(in + j * in_stride + c);
    put(out + c, total * sigmoid(total));
  });
}

// `Vectors` neighbouring vectors of columns; the state's columns are independent of each other.
template <int Vectors>
void delta_columns(const DeltaRule& rule, int column) {
  for (int64_t t = 0; t < rule.tokens; ++t) {
    const float *q = rule.q + t * rule.stride, *k = rule.k + t * rule.stride;
    const float* v = rule.v + t * rule.stride + column;
    const float decay = rule.decay[t * rule.gate_stride], beta = rule.beta[t * rule.gate_stride];
    F32 recalled[Vectors] = {}, update[Vectors], result[Vectors] = {};
    for (int i = 0; i < rule.key_dim; ++i) {
      const float* s = rule.state + int64_t{i} * rule.value_dim + column;
#pragma GCC unroll 4
      for (int j = 0; j < Vectors; ++j) recalled[j] += k[i] * load(s + j * lanes);
    }
    for (int j = 0; j < Vectors; ++j) update[j] = beta * (load(v + j * lanes) - decay * recalled[j]);
    for (int i = 0; i < rule.key_dim; ++i) {
      float* s = rule.state + int64_t{i} * rule.value_dim + column;
#pragma GCC unroll 4
      for (int j = 0; j < Vectors; ++j) {
        const F32 next = decay * load(s + j * lanes) + k[i] * update[j];
        store(s + j * lanes, next);
        result[j] += q[i] * next;
      }
    }
    for (int j = 0; j < Vectors; ++j) store(rule.out + t * rule.out_stride + column + j * lanes, result[j]);
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

void delta_rule(const DeltaRule& rule, int first_column, int columns) {
  int c = first_column;
  const int end = first_column + columns;
  for (; c + 2 * lanes <= end; c += 2 * lanes) delta_columns<2>(rule, c);
  for (; c + lanes <= end; c += lanes) delta_columns<1>(rule, c);
  for (; c < end; ++c) delta_column(rule, c);
}

// ---- attention ----------------------------------------------------------------------------------------------------

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

template <class W>
void attend_rows(const W* keys, const W* values, int64_t count, int head_dim, AttentionQuery* queries,
                 int64_t num_queries, float* scores) {
  for (int64_t first = 0; first < num_queries; first += tile_tokens) {
    const int64_t n = smaller(tile_tokens, num_queries - first);
    const float* x[tile_tokens];
    float* out[tile_tokens];
    for (int64_t i = 0; i < n; ++i) {
      x[i] = queries[first + i].q;
      out[i] = scores + (first + i) * count;
    }
    matmul_tokens(keys, count, head_dim, x, n, out);
  }
  for (int64_t q = 0; q < num_queries; ++q) {
    float* row = scores + q * count;
    const int64_t visible = smaller(count, queries[q].visible);
    if (visible > 0) soften(queries[q], row, visible, head_dim);
    for (int64_t i = visible > 0 ? visible : 0; i < count; ++i) row[i] = 0;
  }
  int64_t q = 0;
  for (; q + 8 <= num_queries; q += 8) {
    accumulate_values<8>(values, count, head_dim, queries + q, scores + q * count, count);
  }
  for (; q < num_queries; ++q) {
    accumulate_values<1>(values, count, head_dim, queries + q, scores + q * count, count);
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
