// Experts of protected prediction that correct the raw probability; see tests/oracles/experts.py
// and tests/oracles/elementary.py.
//
// All sums and products are taken in the order of these oracles, so results are equal to the bit.
// No function of the C library that may round otherwise on another machine is called: of them
// sqrt, frexp, ldexp and floor are exact or correctly rounded everywhere.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace abers {

inline constexpr double kClip = 1e-6;
inline constexpr double kFloor = 0x1p-300;

inline double clipped(double p) { return std::min(std::max(p, kClip), 1.0 - kClip); }

// Elementary functions

namespace elementary {

inline constexpr double kFar = 700.0;  // log odds, beyond which a probability is 0 or 1
inline constexpr double kPerLn2 = 0x1.71547652b82fep+0;
inline constexpr double kLn2High = 0x1.62e42feep-1;  // k times this is exact
inline constexpr double kLn2Low = 0x1.a39ef35793c76p-33;
inline constexpr double kHalfRoot = 0x1.6a09e667f3bcdp-1;
inline constexpr std::int64_t kBias = 1023, kMantissaBits = 52;

constexpr std::array<double, 14> taylor() {
  std::array<double, 14> found{};
  double factorial = 1.0;  // exact up to 13!
  for (std::size_t n = 0; n < found.size(); ++n) {
    if (n > 0) factorial *= static_cast<double>(n);
    found[n] = 1.0 / factorial;
  }
  return found;
}

constexpr std::array<double, 12> atanh() {
  std::array<double, 12> found{};
  for (std::size_t n = 0; n < found.size(); ++n) found[n] = 1.0 / static_cast<double>(2 * n + 1);
  return found;
}

template <std::size_t N>
double polynomial(const std::array<double, N>& coefficients, double x) {
  double total = 0.0;
  for (std::size_t n = N; n-- > 0;) total = total * x + coefficients[n];
  return total;
}

// frexp, ldexp and floor of the C library are calls; these are exact too where they are used.

// x times 2 to the power of k.
inline double scaled_by(double x, std::int64_t k) {
  if (k <= -kBias || k > kBias) return std::ldexp(x, static_cast<int>(k));
  return x * std::bit_cast<double>((k + kBias) << kMantissaBits);
}

struct Parts {
  double mantissa;  // from 1/2 to 1
  std::int64_t exponent;
};

inline Parts parts(double x) {
  const auto bits = std::bit_cast<std::int64_t>(x);
  const std::int64_t exponent = bits >> kMantissaBits;
  if (exponent <= 0 || exponent > 2 * kBias) {  // not a normal number above 0
    int found = 0;
    const double mantissa = std::frexp(x, &found);
    return {mantissa, found};
  }
  const std::int64_t half =
      (bits & ((std::int64_t{1} << kMantissaBits) - 1)) | ((kBias - 1) << kMantissaBits);
  return {std::bit_cast<double>(half), exponent - kBias + 1};
}

inline double exponential(double x) {
  static constexpr auto coefficients = taylor();
  const double scaled = x * kPerLn2 + 0.5;
  auto whole = static_cast<std::int64_t>(scaled);
  whole -= static_cast<double>(whole) > scaled;
  const auto k = static_cast<double>(whole);
  const double r = (x - k * kLn2High) - k * kLn2Low;
  return scaled_by(polynomial(coefficients, r), whole);
}

inline double logarithm(double x) {
  static constexpr auto coefficients = atanh();
  auto [m, exponent] = parts(x);
  if (m < kHalfRoot) {
    m *= 2.0;
    --exponent;
  }
  const auto k = static_cast<double>(exponent);
  const double f = (m - 1.0) / (m + 1.0);
  return k * kLn2High + (2.0 * f * polynomial(coefficients, f * f) + k * kLn2Low);
}

inline double logistic(double x) {
  x = std::clamp(x, -kFar, kFar);
  if (x >= 0.0) return 1.0 / (1.0 + exponential(-x));
  const double odds = exponential(x);
  return odds / (1.0 + odds);
}

inline double logit(double p) { return logarithm(p / (1.0 - p)); }

// Of `count` values, `stride` apart; each is NaN, 0, or normal and positive.
inline double geometric_mean(const double* values, std::size_t count, std::size_t stride) {
  double total = 0.0;
  for (std::size_t i = 0; i < count; ++i) {
    const double value = values[i * stride];
    if (std::isnan(value)) return value;
    if (value <= 0.0) return 0.0;
    total += logarithm(value);
  }
  return exponential(total / static_cast<double>(count));
}

}  // namespace elementary

// Weights

// Multiplies by a power of two so that the largest weight is in [1/2, 1), and none vanishes.
inline void scale(double* weights, std::size_t n) {
  int exponent = 0;
  std::frexp(*std::max_element(weights, weights + n), &exponent);
  const double factor = std::ldexp(1.0, -exponent);  // exact, as all weights are normal numbers
  for (std::size_t k = 0; k < n; ++k) weights[k] = std::max(weights[k] * factor, kFloor);
}

// An average that moves to a value at a rate.
inline double moved(double average, double rate, double value) {
  return average + rate * (value - average);
}

template <class Doubles, class Visit>
void visit_all(Doubles&& values, const Visit& visit) {
  for (double& one : values) visit(one);
}

inline double of_label(double p, bool label) { return label ? p : 1.0 - p; }

// Mean of forecasts by weight; there are `rows` sets in turn; of equal forecasts, their
// value.
inline double mean(const double* weights, const double* forecasts, std::size_t n,
                   std::size_t rows = 1) {
  double total = 0.0, ones = 0.0;
  for (std::size_t r = 0; r < rows; ++r, weights += n) {
    for (std::size_t k = 0; k < n; ++k) {
      total += weights[k];
      ones += weights[k] * forecasts[k];
    }
  }
  const auto [low, high] = std::minmax_element(forecasts, forecasts + n);
  return std::min(std::max(ones / total, *low), *high);
}

// The clipped mean of forecasts of label 1.
inline double mixed(const double* weights, const double* forecasts, std::size_t n,
                    std::size_t rows = 1) {
  return clipped(mean(weights, forecasts, n, rows));
}

// Experts

class Jumper {
 public:
  static constexpr std::size_t kMaps = 9;
  static constexpr std::array<double, 3> kRates{1e-2, 1e-3, 1e-4};
  static constexpr std::size_t kSize = kMaps * kRates.size();
  using Maps = std::array<double, kMaps>;

  Jumper() { weights.fill(1.0 / static_cast<double>(kMaps)); }

  double forecast(double raw) const {
    Maps zeros, ones;
    cox(raw, zeros, ones);
    return mixed(weights.data(), ones.data(), kMaps, kRates.size());
  }

  void learn(double raw, bool label) {
    Maps zeros, ones;
    cox(raw, zeros, ones);
    const Maps& likelihood = label ? ones : zeros;
    for (std::size_t r = 0; r < kRates.size(); ++r) {
      double* const held = weights.data() + r * kMaps;
      double total = 0.0;
      for (std::size_t i = 0; i < kMaps; ++i) {
        held[i] *= likelihood[i];
        total += held[i];
      }
      const double arriving = kRates[r] / static_cast<double>(kMaps) * total;
      for (std::size_t i = 0; i < kMaps; ++i) held[i] = (1.0 - kRates[r]) * held[i] + arriving;
    }
    scale(weights.data(), kSize);
  }

  std::array<double, kSize> weights;

 private:
  static constexpr double kE = 0x1.5bf0a8b145769p+1;

  static void cox(double raw, Maps& zeros, Maps& ones) {
    const double odds = raw / (1.0 - raw);
    std::size_t i = 0;
    for (const double power : {odds, std::sqrt(odds), odds * odds}) {
      for (const double moved : {power, power / kE, power * kE}) {
        zeros[i] = 1.0 / (1.0 + moved);
        ones[i] = moved * zeros[i];
        ++i;
      }
    }
  }
};

class FixedShare {
 public:
  static constexpr std::array<double, 5> kRates{0.0, 1e-4, 1e-3, 1e-2, 1e-1};

  // Likelihoods count to the power of 1/2^`roots`.
  explicit FixedShare(std::size_t experts, int roots = 0)
      : experts_(experts), roots_(roots), values_(experts * (kRates.size() + 1)) {
    for (std::size_t i = 0; i < weights().size(); ++i) weights()[i] = prior(i % experts);
  }

  std::span<double> weights() { return {values_.data(), experts_ * kRates.size()}; }

  double forecast(const double* forecasts) const {
    return mixed(values_.data(), forecasts, experts_, kRates.size());
  }

  // Writes the weight of each expert over all rates; these sum to 1.
  void pooled(double* out) const {
    double total = 0.0;
    for (std::size_t k = 0; k < experts_; ++k) {
      out[k] = 0.0;
      for (std::size_t r = 0; r < kRates.size(); ++r) out[k] += values_[r * experts_ + k];
      total += out[k];
    }
    for (std::size_t k = 0; k < experts_; ++k) out[k] /= total;
  }

  void learn(const double* forecasts, bool label) {
    const std::size_t n = experts_;
    double* const likelihoods = values_.data() + weights().size();
    for (std::size_t k = 0; k < n; ++k) {
      likelihoods[k] = of_label(forecasts[k], label);
      for (int root = 0; root < roots_; ++root) likelihoods[k] = std::sqrt(likelihoods[k]);
    }
    for (std::size_t r = 0; r < kRates.size(); ++r) {
      double* const held = values_.data() + r * n;
      double total = 0.0;
      for (std::size_t k = 0; k < n; ++k) {
        held[k] *= likelihoods[k];
        total += held[k];
      }
      for (std::size_t k = 0; k < n; ++k) {
        held[k] = (1.0 - kRates[r]) * held[k] + kRates[r] * prior(k) * total;
      }
    }
    scale(values_.data(), weights().size());
  }

 private:
  double prior(std::size_t k) const {
    return k == 0 ? 0.5 : 0.5 / static_cast<double>(experts_ - 1);
  }

  std::size_t experts_;
  int roots_;
  std::vector<double> values_;  // weights by rate, and room for the likelihoods of one call
};

}  // namespace abers
