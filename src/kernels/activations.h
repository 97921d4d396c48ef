// Functions of one number that several kernels share.
#pragma once

namespace lily::kernels {

FN float sigmoid(float x) { return divide_f(1.0f, 1.0f + exp_f(-x)); }
FN float silu(float x) { return divide_f(x, 1.0f + exp_f(-x)); }

// log(1 + exp(x)), to float32's precision for every x: log(1 + e) = 2 atanh(e / (2 + e)) for e <= 1, by its series.
FN float softplus(float x) {
  const float e = exp_f(x > 0 ? -x : x), s = divide_f(e, 2.0f + e), s2 = s * s;
  float series = 1.0f / 15;
  series = series * s2 + 1.0f / 13;
  series = series * s2 + 1.0f / 11;
  series = series * s2 + 1.0f / 9;
  series = series * s2 + 1.0f / 7;
  series = series * s2 + 1.0f / 5;
  series = series * s2 + 1.0f / 3;
  series = series * s2 + 1.0f;
  return max_f(x, 0.0f) + 2.0f * s * series;
}

// exp(-x) for x >= 0. Near 1, where errors of a decay add up over thousands of tokens, by its series: a device's fast
// exponential is off by a few units there.
FN float decay_of(float x) {
  if (x > 0.25f) return exp_f(-x);
  float series = 1.0f / 720;
  series = series * -x + 1.0f / 120;
  series = series * -x + 1.0f / 24;
  series = series * -x + 1.0f / 6;
  series = series * -x + 0.5f;
  series = series * -x + 1.0f;
  return 1.0f - x * series;
}

}  // namespace lily::kernels
