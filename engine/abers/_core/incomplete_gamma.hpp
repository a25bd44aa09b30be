// The gamma function and its incomplete integrals; see tests/oracles/incomplete_gamma.py.
//
// Sums and products are taken in the order of this oracle, and logarithms and exponentials are
// those of experts.hpp, so results are equal to the bit on every machine.
#pragma once

#include <array>
#include <cmath>

#include "experts.hpp"

namespace abers::elementary {

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

// log(x^a exp(-x) / gamma(a)) for x = a + s.
inline double log_front(double a, double s) {
  const double rest = 0.5 * logarithm(a) - kHalfLog2Pi;
  return a * logarithm((a + s) / a) - s + rest - stirling(a);
}

// log P(a, a + s), the regularised lower incomplete gamma function, for s >= 0. 1 - P is a
// continued fraction, by Lentz's method; invariant: `fraction` is its value after n terms.
inline double log_lower_gamma(double a, double s) {
  constexpr double precision = 1e-13, tiny = 1e-300, least = -700.0;
  const double front = log_front(a, s);
  if (front < least) return 0.0;
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
  return logarithm(1.0 - fraction * exponential(front));
}

// P(a, x) gamma(a) exp(x) / x^a for 0 <= x <= a: the sum of x^n / (a (a + 1) ... (a + n)).
// Invariant: `term` is the last of those in `sum`; later ones are smaller.
inline double lower_gamma_series(double a, double x) {
  constexpr double precision = 1e-14;
  double term = 1.0 / a, sum = term;
  for (double at = a + 1.0; term > precision * sum; at += 1.0) {
    term *= x / at;
    sum += term;
  }
  return sum;
}

}  // namespace abers::elementary
