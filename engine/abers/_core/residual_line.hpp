// A line of scores and late residuals by recursive least squares; see
// tests/oracles/residual_line.py.
//
// Numbers come as shares of the width of the support, so no square overflows. Features and targets
// are divided by the deviation of residuals at their prediction, so the line does not depend on a
// unit. `inverse` has one triangle of P, the inverse of the squares, as `NewtonStack` does.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace abers {

// Mean and variance of numbers that come one after the other: of all of them, or the newest count
// for more.
struct Moments {
  double mean = 0.0, variance = 0.0;
  std::int64_t count = 0;

  void add(double value, double least_rate = 0.0) {
    const double rate = std::max(1.0 / static_cast<double>(++count), least_rate);
    const double away = value - mean;
    mean += rate * away;
    variance += rate * (away * (value - mean) - variance);
  }
};

class ResidualLine {
 public:
  static constexpr std::size_t kSize = 5;
  static constexpr std::size_t kTriangle = kSize * (kSize + 1) / 2;
  using Features = std::array<double, kSize>;

  // What an observation keeps.
  struct Kept {
    Features features;  // 1; the score; the last residual and averages of residuals
    double scale;       // the deviation of residuals when it was predicted
    double shift;       // of the line from the score
  };

  ResidualLine() { begin(); }

  double deviation() const { return std::sqrt(variance_); }

  Kept forecast(double score) const {
    const double scale = std::sqrt(square_);
    if (scale == 0.0) return {};
    const double spread = std::sqrt(scores_.variance);
    const double seen = spread > 0.0 ? (score - scores_.mean) / spread : 0.0;
    const Features features{1.0, std::clamp(seen, -kFar, kFar), last_ / scale, averages_[0] / scale,
                            averages_[1] / scale};
    return {features, scale, scale * dot(line_, features)};
  }

  // The observation waits for its label from now on.
  void issue(double score) { scores_.add(score); }

  // Its label came: how far this is from the score, and from the line's number.
  void learn(const Kept& kept, double residual, double from_line) {
    if (kept.scale > 0.0) fit(kept.features, std::clamp(residual / kept.scale, -kFar, kFar));
    const double rate = std::max(kRate, 1.0 / static_cast<double>(++labels_));
    square_ += rate * (residual * residual - square_);
    variance_ += rate * (from_line * from_line - variance_);
    last_ = residual;
    for (std::size_t i = 0; i < 2; ++i) averages_[i] += kRates[i] * (residual - averages_[i]);
  }

  std::int64_t labels() const { return labels_; }
  const Moments& scores() const { return scores_; }

  // Whether the state can be that of a line: its weights, and the residuals, are no larger.
  bool sound(double steepest, double widest) const {
    const auto below = [](double most) { return [=](double x) { return std::abs(x) <= most; }; };
    bool found = std::ranges::all_of(line_, below(steepest)) &&
                 std::ranges::all_of(inverse_, below(steepest)) &&
                 std::ranges::all_of(averages_, below(widest)) && below(widest)(last_);
    for (std::size_t a = 0; a < kSize; ++a) found = found && inverse_[at(a, a)] >= 0.0;
    for (const double one : {square_, variance_}) found = found && 0.0 <= one && one <= widest;
    return found;
  }

  // Calls `visit` with each part of the state.
  template <class Self, class Visit>
  static void visit(Self& self, Visit& visit) {
    visit(self.line_);
    visit(self.inverse_);
    visit(self.last_);
    visit(self.averages_);
    visit(self.square_);
    visit(self.variance_);
    visit(self.scores_.mean);
    visit(self.scores_.variance);
    visit(self.scores_.count);
    visit(self.labels_);
  }

 private:
  static constexpr double kPrior = 0.1;                  // variance of each weight at first
  static constexpr double kWidest = 1.0;                 // which forgetting leaves
  static constexpr double kKept = 0x1.ff7ced916872bp-1;  // .999, what a label leaves of the others
  static constexpr double kFar = 8.0;                    // deviations
  static constexpr double kRate = 0.01;                  // of squares
  static constexpr std::array<double, 2> kRates{0.1, 0.01};  // of residuals

  static constexpr std::size_t at(std::size_t a, std::size_t b) {
    return a <= b ? a * kSize - a * (a + 1) / 2 + b : at(b, a);
  }

  static double dot(const Features& one, const Features& other) {
    double total = 0.0;
    for (std::size_t a = 0; a < kSize; ++a) total += one[a] * other[a];
    return total;
  }

  void begin() {
    inverse_.fill(0.0);
    for (std::size_t a = 0; a < kSize; ++a) inverse_[at(a, a)] = kPrior;
  }

  // Divides P by what is kept, but lets no variance grow beyond the widest.
  void forget() {
    Features bound;
    for (std::size_t a = 0; a < kSize; ++a) {
      const double now = inverse_[at(a, a)];
      bound[a] = now > kWidest * kKept ? std::sqrt(kWidest * kKept / now) : 1.0;
    }
    for (std::size_t a = 0; a < kSize; ++a) {
      for (std::size_t b = a; b < kSize; ++b) inverse_[at(a, b)] *= bound[a] * bound[b] / kKept;
    }
  }

  void fit(const Features& f, double target) {
    forget();
    Features g{};
    for (std::size_t a = 0; a < kSize; ++a) {
      for (std::size_t b = 0; b < kSize; ++b) g[a] += inverse_[at(a, b)] * f[b];
    }
    const double q = dot(g, f);
    if (!(q >= 0.0)) return begin();
    const double rest = 1.0 / (1.0 + q);
    for (std::size_t a = 0; a < kSize; ++a) {
      for (std::size_t b = a; b < kSize; ++b) inverse_[at(a, b)] -= g[a] * g[b] * rest;
      if (!(inverse_[at(a, a)] >= 0.0)) return begin();
    }
    const double error = (target - dot(line_, f)) * rest;
    for (std::size_t a = 0; a < kSize; ++a) line_[a] += g[a] * error;
  }

  Features line_{};
  std::array<double, kTriangle> inverse_{};
  double last_ = 0.0;
  std::array<double, 2> averages_{};
  double square_ = 0.0;    // of residuals, lately
  double variance_ = 0.0;  // of the line's own residuals about 0, lately
  Moments scores_;
  std::int64_t labels_ = 0;
};

}  // namespace abers
