// Online logistic regression by Newton steps, which may forget; see tests/oracles/newton_stack.py.
//
// `curvature` has one triangle of P, the inverse of the curvature, row by row from its diagonal: P
// of a and b stands there once, so rounding cannot make the two differ, which forgetting would let
// grow.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <type_traits>
#include <utility>

#include "experts.hpp"

namespace abers {

// Where a stack begins, and how fast it forgets.
template <std::size_t D>
struct StackPrior {
  std::array<double, D> line;      // theta_0
  std::array<double, D> variance;  // s^2, the diagonal of P
  double kept = 1.0;               // lambda, the share of what is known that a label leaves
  bool reverts = false;            // whether forgetting draws the line back to theta_0
};

// A line, and one triangle of a symmetric matrix, row by row from its diagonal.
template <std::size_t D>
struct FittedLine {
  using Features = std::array<double, D>;
  static constexpr std::size_t kTriangle = D * (D + 1) / 2;

  Features line;
  std::array<double, kTriangle> curvature;

  template <class Visit>
  void visit(const Visit& visit) {
    visit_all(line, visit);
    visit_all(curvature, visit);
  }

 protected:
  explicit FittedLine(const Features& first) : line(first) {}

  // Where column 0 of a row would be.
  static constexpr std::size_t start(std::size_t row) { return row * D - row * (row + 1) / 2; }

  // Makes the matrix a diagonal one, with `at(a)` in row a.
  template <class At>
  void set_diagonal(const At& at) {
    curvature.fill(0.0);
    for (std::size_t a = 0; a < D; ++a) curvature[start(a) + a] = at(a);
  }
};

template <std::size_t D>
class NewtonStack : public FittedLine<D> {
 public:
  using Prior = StackPrior<D>;
  using typename FittedLine<D>::Features;
  using FittedLine<D>::line, FittedLine<D>::curvature;

  explicit NewtonStack(const Prior& prior) : FittedLine<D>(prior.line) { begin(prior); }

  double forecast(const Features& f) const { return clipped(probability(f)); }

  void learn(const Prior& prior, const Features& f, bool label) {
    const double p = probability(f);
    if (prior.reverts) revert(prior);
    if (prior.kept < 1.0) forget(prior);
    const double h = std::max(p * (1.0 - p), kFlat);
    const Features g = times(f);
    const double q = dot(g, f);
    if (!(q >= 0.0)) return begin(prior);
    const double rest = 1.0 / (1.0 + h * q), root = std::sqrt(h * rest);
    Features u;
    for (std::size_t a = 0; a < D; ++a) u[a] = root * g[a];
    bool sound = true;
    for_rows([&](auto a) {
      double* const row = curvature.data() + start(a);
      for (std::size_t b = a; b < D; ++b) row[b] -= u[a] * u[b];
      sound = sound && row[a] >= 0.0;
    });
    if (!sound) return begin(prior);
    const double error = ((label ? 1.0 : 0.0) - p) * rest;
    for (std::size_t a = 0; a < D; ++a) line[a] += g[a] * error;
  }

 private:
  using FittedLine<D>::start;

  static constexpr double kFlat = 0.001;     // least curvature of the loss
  static constexpr double kSteepest = 35.0;  // log odds

  // Calls `each` with the number of each row as a constant, so that the loops along rows have
  // lengths that the compiler knows.
  template <class Each>
  static void for_rows(const Each& each) {
    [&]<std::size_t... row>(std::index_sequence<row...>) {
      (each(std::integral_constant<std::size_t, row>()), ...);
    }(std::make_index_sequence<D>());
  }

  void begin(const Prior& prior) {
    this->set_diagonal([&](std::size_t a) { return prior.variance[a]; });
  }

  double probability(const Features& f) const {
    return elementary::logistic(std::clamp(dot(line, f), -kSteepest, kSteepest));
  }

  static double dot(const Features& one, const Features& other) {
    double total = 0.0;
    for (std::size_t a = 0; a < D; ++a) total += one[a] * other[a];
    return total;
  }

  // P times a vector; behind the diagonal every other product has a sum of its own.
  Features times(const Features& f) const {
    Features g{};
    for_rows([&](auto a) {
      const double* const row = curvature.data() + start(a);
      for (std::size_t b = a; b < D; ++b) g[b] += row[b] * f[a];
      double odd = 0.0, even = 0.0;
      for (std::size_t b = a + 1; b < D; b += 2) odd += row[b] * f[b];
      for (std::size_t b = a + 2; b < D; b += 2) even += row[b] * f[b];
      g[a] += odd + even;
    });
    return g;
  }

  // Draws the line to the first one, by as much as is forgotten.
  void revert(const Prior& prior) {
    Features away;
    for (std::size_t a = 0; a < D; ++a) away[a] = (line[a] - prior.line[a]) / prior.variance[a];
    const Features g = times(away);
    for (std::size_t a = 0; a < D; ++a) line[a] -= (1.0 - prior.kept) * g[a];
  }

  // Divides P by lambda, but lets no variance grow beyond that of the prior.
  void forget(const Prior& prior) {
    const double more = 1.0 / prior.kept;
    Features bound;
    bool bounded = false;
    for (std::size_t a = 0; a < D; ++a) {
      const double now = curvature[start(a) + a], most = prior.variance[a] * prior.kept;
      bound[a] = now > most ? std::sqrt(most / now) : 1.0;
      bounded = bounded || now > most;
    }
    if (!bounded) {
      for (double& one : curvature) one *= more;
      return;
    }
    for_rows([&](auto a) {
      double* const row = curvature.data() + start(a);
      for (std::size_t b = a; b < D; ++b) row[b] *= bound[a] * bound[b] * more;
    });
  }
};

}  // namespace abers
