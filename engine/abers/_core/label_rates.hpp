// The rates at which labels of each class arrive, and what they make of weights.
//
// If an observation of class y gets its label with a known probability r_y, those with labels stand
// for 1 / r_y of all observations: so much each of them weighs, and so much a query would.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "arithmetic.hpp"

namespace abers {

inline constexpr double kLeastRate = 1e-6;

// Of a query, by the label that it is given.
struct QueryWeights {
  std::int64_t zero = kOne;
  std::int64_t one = kOne;

  bool operator==(const QueryWeights&) const = default;
};

class LabelRates {
 public:
  LabelRates() = default;

  // Rates are from kLeastRate to 1.
  LabelRates(double zero, double one)
      : rates_{zero, one}, factors_{factor_of(zero), factor_of(one)} {}

  bool operator==(const LabelRates&) const = default;

  double zero() const { return rates_[0]; }
  double one() const { return rates_[1]; }

  // The weight over the rate of its label; at most what 64 bits hold.
  std::int64_t weight(int label, std::int64_t weight) const {
    const std::int64_t factor = factors_[label != 0];
    if (factor == kOne) return weight;
    const int128 exact = (static_cast<int128>(weight) * factor + kOne / 2) >> kOneBits;
    return static_cast<std::int64_t>(std::min<int128>(exact, kMost));
  }

  QueryWeights of_query(std::int64_t given) const { return {weight(0, given), weight(1, given)}; }

  // The most that a label of weight 1 weighs.
  std::int64_t heaviest() const { return std::max(factors_[0], factors_[1]); }

 private:
  static constexpr std::int64_t kMost = 0x7fffffffffffffff;

  static std::int64_t factor_of(double rate) {
    return static_cast<std::int64_t>(std::nearbyint(static_cast<double>(kOne) / rate));
  }

  std::array<double, 2> rates_{1.0, 1.0};
  std::array<std::int64_t, 2> factors_{kOne, kOne};  // 1 / rate in units
};

}  // namespace abers
