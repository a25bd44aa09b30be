// Mean of the mixtures of both sides of a confidence sequence, with its slopes; see
// `TwoSidedMixture` in tests/oracles/calibration_error.py.
#pragma once

#include "experts.hpp"
#include "incomplete_gamma.hpp"

namespace abers {

// A logarithm, and its first and second derivatives by the deviation.
struct Slopes {
  double value, first, second;
};

// Of outcomes with a range of 1. The mixtures are those of `ConfidenceSequence` at a deviation and
// at its negative, where the incomplete gamma function is needed below its shape.
class TwoSidedMixture {
 public:
  explicit TwoSidedMixture(double shape)
      : shape_(shape),
        constant_(elementary::log_front(shape, 0.0) - elementary::log_lower_gamma(shape, 0.0)) {}

  double shape() const { return shape_; }

  // The logarithm at no deviation, where both mixtures are equal.
  double log_at_zero(double squares) const {
    const double a = squares + shape_;
    return constant_ - elementary::log_front(a, 0.0) + elementary::log_lower_gamma(a, 0.0);
  }

  // Of a deviation s >= 0. With x = a + s the mixture is a constant times P(a, x) exp(x) / x^a, and
  // the derivative of log P(a, x) is `q`.
  Slopes log_at(double s, double squares) const {
    constexpr double negligible = 30.0;  // as a logarithm
    const double a = squares + shape_, x = a + s, y = a - s;
    const double front = elementary::log_front(a, s), share = elementary::log_lower_gamma(a, s);
    const double up = constant_ - front + share;
    const double q = elementary::exponential(front - share) / x;
    const Slopes above{up - elementary::kLn2, s / x + q, a / (x * x) - q * ((s + 1.0) / x + q)};
    if (y <= 0.0) return above;
    const double series = elementary::lower_gamma_series(a, y);
    const double apart = up - constant_ - elementary::logarithm(series);
    if (apart > negligible) return above;
    const double odds = elementary::exponential(-apart), w = odds / (1.0 + odds);
    const double below_q = 1.0 / (y * series), below = s / y - below_q;
    const double curve = a / (y * y) + below_q * ((s - 1.0) / y - below_q);
    const double between = above.first - below;
    return {above.value + elementary::logarithm(1.0 + odds), (1.0 - w) * above.first + w * below,
            (1.0 - w) * above.second + w * curve + w * (1.0 - w) * between * between};
  }

 private:
  double shape_;
  double constant_;
};

}  // namespace abers
