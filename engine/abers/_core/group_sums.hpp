// Sums over groups of forecasts with labels; see `GroupSums` in tests/oracles/group_sums.py.
//
// Terms are added row by row in the order of this oracle, so sums are equal to the bit however rows
// are batched.
//
// Invariant: `cut` is the mean, by the weights p (1 - p), of the log odds of all rows so far, and
// `weight` the sum of these weights.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>

#include "experts.hpp"
#include "findings.hpp"
#include "saved_bytes.hpp"

namespace abers {

inline constexpr std::size_t kBins = 10;

inline std::size_t bin_of(double forecast) {  // compared with the edges, as the oracle does
  std::size_t bin = 0;
  for (std::size_t k = 1; k < kBins; ++k) bin += forecast >= static_cast<double>(k) / kBins;
  return bin;
}

inline constexpr std::size_t kTolerances = 16;     // that of the verdicts, then a grid
inline constexpr double kRoundedSum = 1.0 + 1e-9;  // sums of numbers up to 1 may be a little more
using Tolerances = std::array<double, kTolerances>;

inline Tolerances tolerances_of(std::span<const double> given) {
  if (given.size() != kTolerances) throw std::invalid_argument("there are 16 tolerances");
  Tolerances found;
  std::ranges::copy(given, found.begin());
  return found;
}

inline bool is_count(double value) {
  return value >= 0.0 && value <= static_cast<double>(kMaxCount) && value == std::floor(value);
}

class GroupSums {
 public:
  static constexpr std::size_t kCounted = 4;  // labels, ones, forecasts, squares
  static constexpr std::size_t kBinSums = kCounted + 2;
  static constexpr std::size_t kHalfSums = kCounted + 2 * kTolerances;
  static constexpr std::size_t kHead = 2;  // weight, cut
  static constexpr std::size_t kSize = kHead + 2 * kHalfSums + kBins * kBinSums;
  static constexpr std::size_t kGroups = kFirstBin + kBins;
  using Groups = std::array<ForecastGroup, kGroups>;
  using MainGroups = std::array<ForecastGroup, kFirstBin>;

  // The first tolerance is that of the bins.
  explicit GroupSums(const Tolerances& tolerances) : tolerances_(tolerances) {}

  void add(double p, double y) {
    const double w = p * (1.0 - p), x = elementary::logit(std::clamp(p, kLeast, 1.0 - kLeast));
    double& weight = sums_[0];
    double& cut = sums_[1];
    const bool upper = weight == 0.0 || x >= cut;
    weight += w;
    if (w > 0.0) cut += (x - cut) * (w / weight);
    double* const half = half_sums(upper ? 1 : 0);
    const double q = 1.0 - p;
    double* const lower_ends = half + kCounted;
    double* const upper_ends = lower_ends + kTolerances;
    std::array<double, kTolerances> lower, above;
    for (std::size_t k = 0; k < kTolerances; ++k) lower[k] = p / (p + q * tolerances_[k]);
    for (std::size_t k = 0; k < kTolerances; ++k) {
      above[k] = p * tolerances_[k] / (p * tolerances_[k] + q);
    }
    count(half, p, y);
    for (std::size_t k = 0; k < kTolerances; ++k) lower_ends[k] += lower[k];
    for (std::size_t k = 0; k < kTolerances; ++k) upper_ends[k] += above[k];
    double* const bin = bin_sums(bin_of(p));
    count(bin, p, y);
    bin[kCounted] += lower[0];
    bin[kCounted + 1] += above[0];
  }

  std::span<const double> sums() const { return sums_; }
  const Tolerances& tolerances() const { return tolerances_; }

  std::int64_t labels() const { return static_cast<std::int64_t>(*half_sums(0) + *half_sums(1)); }

  // The forecast at which the halves meet now.
  double cut() const { return elementary::logistic(sums_[1]); }

  // The sums of all forecasts, the lower half, the upper half, and each bin.
  Groups groups() const {
    Groups found;
    std::ranges::copy(main_groups(0), found.begin());
    for (std::size_t k = 0; k < kBins; ++k) {
      const double* const bin = bin_sums(k);
      found[kFirstBin + k] = {bin[0], bin[1], bin[2], bin[3], bin[kCounted], bin[kCounted + 1]};
    }
    return found;
  }

  // The sums of all forecasts and of both halves at one of the tolerances.
  MainGroups main_groups(std::size_t tolerance) const {
    const ForecastGroup lower = half(0, tolerance), upper = half(1, tolerance);
    return {lower + upper, lower, upper};
  }

  // Whether nothing can be decided; deviations count as in `ConfidenceSequence::reaches`, which has
  // no smaller threshold.
  bool is_undecided(double main, double bins) const {
    const MainGroups each = main_groups(0);
    for (const ForecastGroup& one : each) {
      if (may_be_outside(one, main)) return false;
    }
    for (std::size_t k = 0; k < kBins; ++k) {
      const double* const bin = bin_sums(k);
      const ForecastGroup one{bin[0], bin[1], bin[2], bin[3], bin[kCounted], bin[kCounted + 1]};
      if (may_be_outside(one, bins)) return false;
    }
    return !may_be_inside(each[kAll], main) ||
           !std::all_of(each.begin() + kLower, each.end(), [main](const ForecastGroup& one) {
             return one.labels == 0.0 || may_be_inside(one, main);
           });
  }

  void clear() { sums_.fill(0.0); }

  // Adds the sums of other forecasts; the cut becomes the mean.
  void add(const GroupSums& other) {
    require_saved(other.tolerances_ == tolerances_, "tolerances differ");
    const double cut = sums_[1], weight = sums_[0] + other.sums_[0];
    for (std::size_t i = 0; i < kSize; ++i) sums_[i] += other.sums_[i];
    const double share = weight > 0.0 ? other.sums_[0] / weight : 0.0;
    sums_[1] = cut + (other.sums_[1] - cut) * share;
  }

  // std::invalid_argument, with nothing changed, unless these can be sums of the same forecasts.
  void load(std::span<const double> sums) {
    require_saved(sums.size() == kSize, "sums of other groups");
    std::array<double, 2> in_halves{}, in_bins{};
    const auto check = [](const double* group, std::size_t width, std::array<double, 2>& all) {
      require_saved(is_count(group[0]) && is_count(group[1]), "labels of groups");
      for (std::size_t i = 1; i < width; ++i) {
        require_saved(group[i] >= 0.0 && group[i] <= group[0] * kRoundedSum, "sums of groups");
      }
      require_saved(group[1] <= group[0], "labels of groups");
      for (std::size_t i = 0; i < all.size(); ++i) all[i] += group[i];
    };
    const double* const first = sums.data() + kHead;
    for (std::size_t h = 0; h < 2; ++h) check(first + h * kHalfSums, kHalfSums, in_halves);
    for (std::size_t k = 0; k < kBins; ++k) {
      check(first + 2 * kHalfSums + k * kBinSums, kBinSums, in_bins);
    }
    require_saved(in_halves == in_bins, "labels of groups");
    require_saved(sums[0] >= 0.0 && sums[0] <= in_halves[0] && std::fabs(sums[1]) <= kFarthest,
                  "cut");
    std::ranges::copy(sums, sums_.begin());
  }

  void save(std::string& bytes) const {
    for (const double one : sums_) append(bytes, one);
  }

  void load(SavedReader& reader) {
    std::array<double, kSize> sums;
    for (double& one : sums) one = reader.take<double>();
    load(sums);
  }

 private:
  static constexpr double kLeast = 0x1.4875c38cc6b4ap-22;  // log odds of -15
  static constexpr double kFarthest = 15.01;               // log odds, of a saved cut

  static bool may_reach(const ForecastGroup& one, double deviation, double threshold) {
    return deviation > 0.0 && deviation * deviation >= 2.0 * one.squares * threshold;
  }
  static bool may_be_outside(const ForecastGroup& one, double threshold) {
    return may_reach(one, one.observed - one.most, threshold) ||
           may_reach(one, one.least - one.observed, threshold);
  }
  static bool may_be_inside(const ForecastGroup& one, double threshold) {
    return may_reach(one, one.most - one.observed, threshold) &&
           may_reach(one, one.observed - one.least, threshold);
  }

  double* half_sums(std::size_t which) { return sums_.data() + kHead + which * kHalfSums; }
  const double* half_sums(std::size_t which) const {
    return sums_.data() + kHead + which * kHalfSums;
  }
  double* bin_sums(std::size_t bin) { return half_sums(2) + bin * kBinSums; }
  const double* bin_sums(std::size_t bin) const { return half_sums(2) + bin * kBinSums; }

  ForecastGroup half(std::size_t which, std::size_t tolerance) const {
    const double* const sums = half_sums(which);
    return {sums[0],
            sums[1],
            sums[2],
            sums[3],
            sums[kCounted + tolerance],
            sums[kCounted + kTolerances + tolerance]};
  }

  static void count(double* sums, double p, double y) {
    sums[0] += 1.0;
    sums[1] += y;
    sums[2] += p;
    sums[3] += (y - p) * (y - p);
  }

  Tolerances tolerances_;
  std::array<double, kSize> sums_{};
};

}  // namespace abers
