// Confidence sequence for the mean of bounded outcomes; see tests/oracles/confidence_sequence.py.
//
// Sums and products are taken in the order of this oracle, and logarithms and exponentials are
// those of experts.hpp, so results are equal to the bit on every machine.
#pragma once

#include <algorithm>
#include <cmath>

#include "experts.hpp"

namespace abers {

namespace elementary {

inline constexpr double kHalfLog2Pi = 0x1.d67f1c864beb5p-1;
inline constexpr double kLn2 = 0x1.62e42fefa39efp-1;

// What the logarithm of gamma(a) exceeds (a - 1/2) log a - a + log(2 pi) / 2 by, for a > 0.
inline double stirling(double a) {
  static constexpr std::array<double, 7> series{1.0 / 12.0,    -1.0 / 360.0, 1.0 / 1260.0,
                                                -1.0 / 1680.0, 1.0 / 1188.0, -691.0 / 360360.0,
                                                1.0 / 156.0};
  constexpr double far = 10.0;  // from here on the series is as precise as a double
  double before = 0.0;
  for (; a < far; a += 1.0) before += (a + 0.5) * (logarithm(a + 1.0) - logarithm(a)) - 1.0;
  const double inverse = 1.0 / a;
  return before + inverse * polynomial(series, inverse * inverse);
}

inline double log_gamma(double a) {
  return (a - 0.5) * logarithm(a) - a + kHalfLog2Pi + stirling(a);
}

}  // namespace elementary

class ConfidenceSequence {
 public:
  ConfidenceSequence(double tightest, double alpha, double scale) : scale_(scale) {
    const double log = -2.0 * elementary::logarithm(alpha);
    const double shape = tightest / (scale * scale) / (log + elementary::logarithm(1.0 + log));
    shape_ = std::clamp(shape, 0x1p-300, 0x1p300);  // so that nothing overflows
    constant_ = front(shape_, 0.0) - log_p(shape_, 0.0);
  }

  double log_mixture(double deviation, double squares) const {
    const double s = deviation / scale_, shape = shape_of(squares);
    return without_p(s, shape) + log_p(shape, s);
  }

  // Whether a deviation reaches the boundary at a level of exp(-threshold).
  bool reaches(double deviation, double squares, double threshold) const {
    // No mixture exceeds its largest part, which is at most exp(deviation^2 / (2 squares)).
    if (deviation <= 0.0 || deviation * deviation < 2.0 * squares * threshold) return false;
    const double s = deviation / scale_, shape = shape_of(squares);
    const double most = without_p(s, shape);
    if (most < threshold) return false;
    // P(a, x) is at least 1/2 for x >= a.
    return most - elementary::kLn2 >= threshold || most + log_p(shape, s) >= threshold;
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
  double without_p(double s, double shape) const { return constant_ - front(shape, s); }

  // log(x^a exp(-x) / gamma(a)) for x = a + s.
  static double front(double a, double s) {
    const double rest = 0.5 * elementary::logarithm(a) - elementary::kHalfLog2Pi;
    return a * elementary::logarithm((a + s) / a) - s + rest - elementary::stirling(a);
  }

  // log P(a, a + s), the regularised lower incomplete gamma function. 1 - P is a continued
  // fraction, by Lentz's method; invariant: `fraction` is its value after n terms.
  static double log_p(double a, double s) {
    constexpr double precision = 1e-13, tiny = 1e-300, least = -700.0;
    const double logarithm_before = front(a, s);
    if (logarithm_before < least) return 0.0;
    const auto some = [](double value) { return value == 0.0 ? tiny : value; };
    double b = s + 1.0, c = 1.0 / tiny, d = 1.0 / b;
    double fraction = d, factor = 0.0;
    for (double n = 1.0; std::fabs(factor - 1.0) > precision; n += 1.0) {
      const double term = n * (a - n);
      b += 2.0;
      d = 1.0 / some(term * d + b);
      c = some(b + term / c);
      factor = c * d;
      fraction *= factor;
    }
    return elementary::logarithm(1.0 - fraction * elementary::exponential(logarithm_before));
  }

  double scale_;
  double shape_ = 0.0;
  double constant_ = 0.0;
};

}  // namespace abers
