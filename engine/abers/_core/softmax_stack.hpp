// Online multinomial regression with a line that all classes share, by Newton steps, which may
// forget; see tests/oracles/softmax_stack.py.
//
// `curvature` has one triangle of the curvature, row by row from its diagonal. It is never below
// that of the prior, so steps are bounded.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include "experts.hpp"
#include "newton_stack.hpp"

namespace abers {

// Makes numbers of classes a vector of probabilities, each at least 1e-6 before the division.
inline void make_vector(double* p, std::size_t classes) {
  double total = 0.0;
  for (std::size_t c = 0; c < classes; ++c) total += p[c] = clipped(p[c]);
  for (std::size_t c = 0; c < classes; ++c) p[c] /= total;
}

// Turns logarithms into probabilities.
inline void softmax(double* z, std::size_t classes) {
  constexpr double least = -35.0;
  const double most = *std::max_element(z, z + classes);
  double total = 0.0;
  for (std::size_t c = 0; c < classes; ++c) {
    total += z[c] = elementary::exponential(std::max(z[c] - most, least));
  }
  for (std::size_t c = 0; c < classes; ++c) z[c] /= total;
}

// Rows of `stride` features, a class each; the first D count.
struct ClassFeatures {
  const double* first;
  std::size_t classes, stride;

  const double* of(std::size_t c) const { return first + c * stride; }
};

template <std::size_t D>
class SoftmaxStack : public FittedLine<D> {
 public:
  using Prior = StackPrior<D>;
  using typename FittedLine<D>::Features;
  using FittedLine<D>::line, FittedLine<D>::curvature;

  explicit SoftmaxStack(const Prior& prior) : FittedLine<D>(prior.line) { begin(prior); }

  // Writes the logarithms of the probabilities of the classes, but for a constant.
  void forecast(const ClassFeatures& f, double* z) const {
    for (std::size_t c = 0; c < f.classes; ++c) {
      const double* const row = f.of(c);
      double total = 0.0;
      for (std::size_t a = 0; a < D; ++a) total += line[a] * row[a];
      z[c] = total;
    }
  }

  // `p` has room for a number a class.
  void learn(const Prior& prior, const ClassFeatures& f, std::size_t label, double* p) {
    forecast(f, p);
    softmax(p, f.classes);
    Features mean{};
    for (std::size_t c = 0; c < f.classes; ++c) {
      for (std::size_t a = 0; a < D; ++a) mean[a] += p[c] * f.of(c)[a];
    }
    Features step;
    for (std::size_t a = 0; a < D; ++a) step[a] = f.of(label)[a] - mean[a];
    if (prior.kept < 1.0) forget(prior, step);
    for (std::size_t c = 0; c < f.classes; ++c) add(f.of(c), mean, p[c]);
    if (!solve(step)) return begin(prior);
    for (std::size_t a = 0; a < D; ++a) line[a] += step[a];
  }

 private:
  using FittedLine<D>::start;

  void begin(const Prior& prior) {
    this->set_diagonal([&](std::size_t a) { return 1.0 / prior.variance[a]; });
  }

  // Draws curvature and line to those of the prior, by as much as is forgotten.
  void forget(const Prior& prior, Features& step) {
    const double lost = 1.0 - prior.kept;
    for (double& one : curvature) one *= prior.kept;
    for (std::size_t a = 0; a < D; ++a) {
      step[a] -= lost * ((line[a] - prior.line[a]) / prior.variance[a]);
      curvature[start(a) + a] += lost / prior.variance[a];
    }
  }

  // Adds the part of a class, with its probability, to the curvature.
  void add(const double* row, const Features& mean, double p) {
    Features away;
    for (std::size_t a = 0; a < D; ++a) away[a] = row[a] - mean[a];
    for (std::size_t a = 0; a < D; ++a) {
      double* const sums = curvature.data() + start(a);
      const double times = p * away[a];
      for (std::size_t b = a; b < D; ++b) sums[b] += times * away[b];
    }
  }

  // Divides by the curvature. False if rounding has made that none.
  bool solve(Features& x) const {
    auto rest = curvature;
    for (std::size_t a = 0; a < D; ++a) {
      const double* const row = rest.data() + start(a);
      if (!(row[a] > 0.0)) return false;
      for (std::size_t b = a + 1; b < D; ++b) {
        const double ratio = row[b] / row[a];
        double* const below = rest.data() + start(b);
        for (std::size_t c = b; c < D; ++c) below[c] -= ratio * row[c];
        x[b] -= ratio * x[a];
      }
    }
    for (std::size_t a = D; a-- > 0;) {
      const double* const row = rest.data() + start(a);
      for (std::size_t b = a + 1; b < D; ++b) x[a] -= row[b] * x[b];
      x[a] /= row[a];
    }
    return true;
  }
};

}  // namespace abers
