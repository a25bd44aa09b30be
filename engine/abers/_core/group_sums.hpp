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
#include <cstddef>
#include <span>
#include <stdexcept>
#include <vector>

#include "experts.hpp"

namespace abers {

inline constexpr std::size_t kBins = 10;

inline std::size_t bin_of(double forecast) {  // compared with the edges, as the oracle does
  std::size_t bin = 0;
  while (bin + 1 < kBins && forecast >= static_cast<double>(bin + 1) / kBins) ++bin;
  return bin;
}

class GroupSums {
 public:
  static constexpr std::size_t kCounted = 4;  // labels, labels 1, forecasts, squares
  static constexpr std::size_t kBinSums = kCounted + 2;

  // The first tolerance is that of the bins.
  explicit GroupSums(std::span<const double> tolerances)
      : tolerances_(tolerances.begin(), tolerances.end()),
        ends_(2 * tolerances.size()),
        sums_(kHead + 2 * half_sums() + kBins * kBinSums) {
    if (tolerances_.empty()) throw std::invalid_argument("there is no tolerance");
  }

  void add(double p, double y) {
    const double w = p * (1.0 - p), x = elementary::logit(std::clamp(p, kLeast, 1.0 - kLeast));
    double& weight = sums_[0];
    double& cut = sums_[1];
    const bool upper = weight == 0.0 || x >= cut;
    weight += w;
    if (w > 0.0) cut += (x - cut) * (w / weight);
    find_ends(p);
    const std::size_t n = tolerances_.size();
    double* const half = sums_.data() + kHead + (upper ? half_sums() : 0);
    count(half, p, y);
    for (std::size_t k = 0; k < 2 * n; ++k) half[kCounted + k] += ends_[k];
    double* const bin = sums_.data() + kHead + 2 * half_sums() + bin_of(p) * kBinSums;
    count(bin, p, y);
    bin[kCounted] += ends_[0];
    bin[kCounted + 1] += ends_[n];
  }

  std::span<const double> sums() const { return sums_; }

  // Deviations count as in `ConfidenceSequence.reaches`, which has no smaller threshold.
  bool is_undecided(double main, double bins) const {
    const std::array<Group, 2> halves = {half(0), half(1)};
    const Group both = halves[0] + halves[1];
    for (const Group& one : {both, halves[0], halves[1]}) {
      if (one.may_be_outside(main)) return false;
    }
    for (std::size_t k = 0; k < kBins; ++k) {
      const double* const bin = sums_.data() + kHead + 2 * half_sums() + k * kBinSums;
      if (Group{bin[0], bin[1], bin[3], bin[4], bin[5]}.may_be_outside(bins)) return false;
    }
    return !both.may_be_inside(main) || !std::ranges::all_of(halves, [main](const Group& one) {
      return one.labels == 0.0 || one.may_be_inside(main);
    });
  }

  void load(std::span<const double> sums) {
    if (sums.size() != sums_.size()) throw std::invalid_argument("sums of other groups");
    std::ranges::copy(sums, sums_.begin());
  }

 private:
  static constexpr std::size_t kHead = 2;                  // weight, cut
  static constexpr double kLeast = 0x1.4875c38cc6b4ap-22;  // log odds of -15

  // The sums of a group at the first tolerance.
  struct Group {
    double labels, observed, squares, least, most;

    Group operator+(const Group& other) const {
      return {labels + other.labels, observed + other.observed, squares + other.squares,
              least + other.least, most + other.most};
    }
    bool may_reach(double deviation, double threshold) const {
      return deviation > 0.0 && deviation * deviation >= 2.0 * squares * threshold;
    }
    bool may_be_outside(double threshold) const {
      return may_reach(observed - most, threshold) || may_reach(least - observed, threshold);
    }
    bool may_be_inside(double threshold) const {
      return may_reach(most - observed, threshold) && may_reach(observed - least, threshold);
    }
  };

  Group half(std::size_t which) const {
    const double* const sums = sums_.data() + kHead + which * half_sums();
    return {sums[0], sums[1], sums[3], sums[kCounted], sums[kCounted + tolerances_.size()]};
  }

  std::size_t half_sums() const { return kCounted + 2 * tolerances_.size(); }

  static void count(double* sums, double p, double y) {
    sums[0] += 1.0;
    sums[1] += y;
    sums[2] += p;
    sums[3] += (y - p) * (y - p);
  }

  // The ends of what the forecast may stand for: all lower ones, then all upper ones.
  void find_ends(double p) {
    const std::size_t n = tolerances_.size();
    const double q = 1.0 - p;
    double* const lower = ends_.data();
    double* const upper = lower + n;
    const double* const tolerance = tolerances_.data();
    for (std::size_t k = 0; k < n; ++k) lower[k] = p / (p + q * tolerance[k]);
    for (std::size_t k = 0; k < n; ++k) upper[k] = p * tolerance[k] / (p * tolerance[k] + q);
  }

  std::vector<double> tolerances_;
  std::vector<double> ends_;  // of one forecast
  std::vector<double> sums_;
};

}  // namespace abers
