// A confidence sequence for the calibration error in bins; see tests/oracles/calibration_error.py.
//
// Let D be the ones of a bin less its forecasts, V its sum of squares, G the sum of its true
// probabilities less its forecasts, and L the two-sided mixture. A label moves one bin, so the
// product of L(D - G, V) over bins is a supermartingale from 1. What it stays below 1 / alpha for
// are sums |G| from `low` to `high`: Sum |D| less, and plus, the most by which bins can be off when
// they share a budget of evidence.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

#include "experts.hpp"
#include "findings.hpp"
#include "two_sided_mixture.hpp"

namespace abers {

// The most that distances r of bins add up to, each from 0 to its limit, if the evidence
// log L(r, V) - log L(0, V) of all together is within a budget.
//
// At the most all slopes of the evidence are equal, but for bins at their limits. The slope is
// found by Newton's method within a bracket, and so are the distances with this slope.
class EvidenceBudget {
 public:
  explicit EvidenceBudget(const TwoSidedMixture& mixture) : mixture_(mixture) {}

  void add(double squares, double at_zero, double limit) {
    if (limit <= 0.0) return;
    const Slopes last = mixture_.log_at(limit, squares);
    bins_.push_back({squares, at_zero, limit, last.value - at_zero, last.first, limit, last});
  }

  double most(double budget) {
    double spent = 0.0, total = 0.0, weight = 0.0, least = 0.0, steepest = 0.0;
    for (const Bin& one : bins_) {
      spent += one.last_value;
      total += one.limit;
      weight += one.squares + mixture_.shape();
      steepest = std::max(steepest, one.last_slope);
    }
    if (spent <= budget) return total;
    double slope = std::min(std::sqrt(2.0 * budget / weight), 0.5 * steepest);
    for (Bin& one : bins_) one.at = std::min(slope * one.squares, one.limit);
    // Invariant: the slope of the most is from `least` to `steepest`.
    for (int step = 0; step < kSteps; ++step) {
      double gain = 0.0;
      spent = total = 0.0;
      for (Bin& one : bins_) {
        const bool is_free = move(one, slope);
        spent += one.found.value - one.at_zero;
        total += one.at;
        if (is_free) gain += slope / one.found.second;
      }
      const double excess = spent - budget;
      // By duality the most is at most this at any slope, so the end is on the cautious side.
      total -= excess / slope;
      if (std::fabs(excess) <= kPrecision * budget) break;
      (excess > 0.0 ? steepest : least) = slope;
      double next = slope - excess / gain;
      if (!(next > least && next < steepest)) next = 0.5 * (least + steepest);
      for (Bin& one : bins_) {
        const double moved = one.at + (next - slope) / one.found.second;
        one.at = std::clamp(moved, 0.0, one.limit);
      }
      slope = next;
    }
    return total;
  }

 private:
  static constexpr int kSteps = 60;
  static constexpr double kPrecision = 1e-7;  // of the budget; the total has its square

  struct Bin {
    double squares, at_zero, limit;
    double last_value, last_slope;  // at the limit
    double at;
    Slopes found;  // where it is
  };

  // Moves a bin to where its evidence has a slope; whether that is before its limit.
  bool move(Bin& one, double slope) const {
    if (one.last_slope <= slope) {
      one.at = one.limit;
      one.found = {one.last_value + one.at_zero, one.last_slope, one.found.second};
      return false;
    }
    double low = 0.0, high = one.limit;
    // Invariant: the slope is reached from `low` to `high`.
    for (int step = 1;; ++step) {
      one.found = mixture_.log_at(one.at, one.squares);
      const double missing = slope - one.found.first;
      if (step == kSteps || std::fabs(missing) <= kPrecision * slope) break;
      (missing > 0.0 ? low : high) = one.at;
      const double next = one.at + missing / one.found.second;
      one.at = next > low && next < high ? next : 0.5 * (low + high);
    }
    return true;
  }

  const TwoSidedMixture& mixture_;
  std::vector<Bin> bins_;
};

// Ends of a sum of true distances over bins.
struct ErrorEnds {
  double low, high;
};

// The ends are about as tight as can be where a bin has 1.5 times this as its sum of squares. That
// is so in a full window of now; younger and rarer streams gain more from less than old ones lose.
inline constexpr double kErrorShape = 60.0;

// The largest |G| of a bin if it has all of the budget. G is at most `ahead` from 0 on the side of
// D; on the other side |G| may be larger, but G is then farther from D.
inline double farthest(const TwoSidedMixture& mixture, const ForecastGroup& one, double at_zero,
                       double budget) {
  const double deviation = std::fabs(one.observed - one.expected);
  const double ahead = one.observed < one.expected ? one.expected : one.labels - one.expected;
  const double across = one.labels - ahead, rest = std::max(ahead - deviation, 0.0);
  if (across <= ahead || mixture.log_at(rest, one.squares).value - at_zero > budget) return ahead;
  EvidenceBudget alone(mixture);
  alone.add(one.squares, at_zero, deviation + across);
  return std::max(ahead, alone.most(budget) - deviation);
}

inline ErrorEnds calibration_error(std::span<const ForecastGroup> bins, double alpha) {
  static const TwoSidedMixture mixture(kErrorShape);
  double budget = -elementary::logarithm(alpha);
  std::vector<double> at_zero;
  for (const ForecastGroup& one : bins) {
    at_zero.push_back(one.labels == 0.0 ? 0.0 : mixture.log_at_zero(one.squares));
    budget -= at_zero.back();
  }
  EvidenceBudget nearer(mixture), farther(mixture);
  double distance = 0.0;
  for (std::size_t k = 0; k < bins.size(); ++k) {
    if (bins[k].labels == 0.0) continue;
    const double deviation = std::fabs(bins[k].observed - bins[k].expected);
    const double most = farthest(mixture, bins[k], at_zero[k], budget);
    distance += deviation;
    nearer.add(bins[k].squares, at_zero[k], deviation);
    farther.add(bins[k].squares, at_zero[k], most - deviation);
  }
  const double low = distance - nearer.most(budget);
  return {std::max(low, 0.0), distance + farther.most(budget)};
}

}  // namespace abers
