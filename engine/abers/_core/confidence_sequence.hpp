// Confidence sequence for the mean of bounded outcomes; see tests/oracles/confidence_sequence.py.
//
// Sums and products are taken in the order of this oracle, and logarithms and exponentials are
// those of experts.hpp, so results are equal to the bit on every machine.
#pragma once

#include <algorithm>
#include <cmath>

#include "experts.hpp"
#include "incomplete_gamma.hpp"

namespace abers {

class ConfidenceSequence {
 public:
  ConfidenceSequence(double tightest, double alpha, double scale) : scale_(scale) {
    const double log = -2.0 * elementary::logarithm(alpha);
    const double shape = tightest / (scale * scale) / (log + elementary::logarithm(1.0 + log));
    shape_ = std::clamp(shape, 0x1p-300, 0x1p300);  // so that nothing overflows
    constant_ = elementary::log_front(shape_, 0.0) - elementary::log_lower_gamma(shape_, 0.0);
  }

  double log_mixture(double deviation, double squares) const {
    const double s = deviation / scale_, shape = shape_of(squares);
    return without_p(s, shape) + elementary::log_lower_gamma(shape, s);
  }

  // Whether a deviation reaches the boundary at a level of exp(-threshold).
  bool reaches(double deviation, double squares, double threshold) const {
    // No mixture exceeds its largest part, which is at most exp(deviation^2 / (2 squares)).
    if (deviation <= 0.0 || deviation * deviation < 2.0 * squares * threshold) return false;
    const double s = deviation / scale_, shape = shape_of(squares);
    const double most = without_p(s, shape);
    if (most < threshold) return false;
    // P(a, x) is at least 1/2 for x >= a.
    return most - elementary::kLn2 >= threshold ||
           most + elementary::log_lower_gamma(shape, s) >= threshold;
  }

  // By the secant of what the mixture exceeds the threshold at both ends; an end that stays twice
  // counts half (Dowell & Jarratt 1971). Each step goes a little too far, so that it comes out
  // behind the boundary when it is near. Invariant: the boundary is above `low`, not above `high`.
  double boundary(double squares, double threshold) const {
    constexpr double precision = 1e-10;
    double low = std::sqrt(2.0 * squares * threshold), high = low + scale_;
    double below = log_mixture(low, squares) - threshold;
    double above = log_mixture(high, squares) - threshold;
    while (above < 0.0) {
      low = high;
      below = above;
      high = 2.0 * high;
      above = log_mixture(high, squares) - threshold;
    }
    for (int stays = 0; high - low > precision * high;) {
      const double step = precision / 4.0 * high;
      double at = (below * high - above * low) / (below - above);
      at = std::clamp(at < 0.5 * (low + high) ? at + step : at - step, low + step, high - step);
      const double found = log_mixture(at, squares) - threshold;
      if (found < 0.0) {
        low = at;
        below = found;
        above = stays == -1 ? above / 2.0 : above;
        stays = -1;
      } else {
        high = at;
        above = found;
        below = stays == 1 ? below / 2.0 : below;
        stays = 1;
      }
    }
    return high;
  }

 private:
  double shape_of(double squares) const { return squares / (scale_ * scale_) + shape_; }

  // The logarithm of the mixture but for P(shape, s + shape).
  double without_p(double s, double shape) const {
    return constant_ - elementary::log_front(shape, s);
  }

  double scale_;
  double shape_ = 0.0;
  double constant_ = 0.0;
};

}  // namespace abers
