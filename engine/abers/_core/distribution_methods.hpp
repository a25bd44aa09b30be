// The methods that a protected distribution mixes; see tests/oracles/distribution_methods.py.
//
// What a method forecasts of an observation is fixed when that is predicted, and kept with what the
// methods will learn from.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "arithmetic.hpp"
#include "distribution_share.hpp"
#include "predictive_set.hpp"
#include "quantile_forecasts.hpp"
#include "residual_line.hpp"
#include "residual_window.hpp"

namespace abers {

// What is given to `ProtectedIVAPR`.
struct DistributionOptions {
  double low, high;        // ends of the support
  std::size_t members;     // quantiles of a forecast
  std::uint8_t pointwise;  // 1 if a score is a number, 0 if it is a list of quantiles
  double base_weight;      // at first
  std::size_t window;      // labels

  double width() const { return high - low; }
  std::size_t score_size() const { return pointwise ? 1 : members; }
};

class DistributionMethods {
 public:
  // In the order of their forecasts; the last two share weights among those before.
  enum Method : std::size_t {
    kBase,
    kRecalibrated,
    kIvapr,
    kIvapr1000,
    kResiduals100,
    kResiduals300,
    kGaussian,
    kLineGaussian,
    kLineResiduals,
    kShare,
    kShare4,
    kCount
  };
  static constexpr std::size_t kShares = 2;
  static constexpr std::size_t kForecasts = kCount - kShares;
  static constexpr std::size_t kLesson = ResidualLine::kSize + 2;
  static constexpr std::size_t kRecent = 1000;  // labels
  using Share = DistributionShare<kForecasts>;

  explicit DistributionMethods(const DistributionOptions& options)
      : options_(options),
        quantiles_(options.members),
        all_(std::make_unique<PredictiveSet>(options.window, 0.0, 0.0)),
        recent_(std::make_unique<PredictiveSet>(kRecent, 0.0, 0.0)),
        pit_(options.members) {}

  // How much of what an observation keeps are weights and the lesson, behind the forecasts.
  static constexpr std::size_t kBehind = kShares * kForecasts + kLesson;
  std::size_t kept_size() const { return kForecasts * options_.members + kBehind; }

  // Writes what an observation keeps: the forecasts, the weights that each share gives to these,
  // and the lesson. It changes nothing but scratch.
  void forecast(const double* score, double* kept) {
    forecast_levels(score, kept);
    const double at = clipped(point(score)), width = options_.width();
    forecast_residuals(at, kept);
    const ResidualLine::Kept lesson = line_.forecast(share(at));
    const double moved = clipped(at + width * lesson.shift);
    forecast_line(moved, kept);
    for (std::size_t k = kRecalibrated; k < kForecasts; ++k) clip(of(kept, k));
    keep(lesson, moved, kept + kForecasts * options_.members);
  }

  // The observation waits for its label from now on.
  void issue(const double* score) { line_.issue(share(clipped(point(score)))); }

  // A label came. What was kept is null where nothing is known of its prediction; the losses are
  // those of the forecasts.
  void learn(const double* score, double label, const double* kept, const double* losses) {
    const double residual = hold(point(score), label);
    errors_.add(residual / options_.width(), kErrorRate);
    if (!kept) return;
    const std::size_t m = options_.members;
    const std::span base(kept, m);
    // In a base without a width a label has no level.
    if (base.front() < base.back()) {
      const double level = quantiles_.pit(base, label);
      ++pit_[std::min(static_cast<std::size_t>(level * static_cast<double>(m)), m - 1)];
    }
    learn_line(kept + kForecasts * m + kShares * kForecasts, residual, label);
    base_loss_ += losses[kBase];
    const double mean = base_loss_ / static_cast<double>(line_.labels());
    if (mean == 0.0) return;  // no loss, or one so small that its mean rounds to 0
    for (Share& one : shares_) one.learn({losses, kForecasts}, mean);
  }

  // Labels that `IVAPR` of the last ones holds.
  std::int64_t size() const { return all_->size(); }

  // Of a score that is a list of quantiles, their mean.
  double point(const double* score) const {
    if (options_.pointwise) return *score;
    double mean = 0.0;
    const auto m = static_cast<double>(options_.members);
    for (std::size_t i = 0; i < options_.members; ++i) mean += score[i] / m;
    constexpr double most = std::numeric_limits<double>::max();  // the sum may be rounded up
    return std::clamp(mean, -most, most) + 0.0;                  // -0.0 becomes 0.0
  }

  // Calls `visit` with each part of the state that is no list of labels.
  template <class Self, class Visit>
  static void visit(Self& self, Visit& visit) {
    for (auto& count : self.pit_) visit(count);
    visit(self.errors_.mean);
    visit(self.errors_.variance);
    visit(self.errors_.count);
    visit(self.base_loss_);
    for (auto& one : self.shares_) visit(one.table());
    ResidualLine::visit(self.line_, visit);
  }

 private:
  friend class DistributionCodec;

  static constexpr double kNoTime = std::numeric_limits<double>::quiet_NaN();
  static constexpr double kErrorRate = 0.02;
  static constexpr std::int64_t kFewest = 10;  // labels

  double clipped(double value) const {
    return std::clamp(value, options_.low, options_.high) + 0.0;  // -0.0 becomes 0.0
  }

  void clip(std::span<double> forecast) const {
    for (double& one : forecast) one = clipped(one);
  }

  std::span<double> of(double* kept, std::size_t method) const {
    return {kept + method * options_.members, options_.members};
  }

  // The base, its calibration, and Venn-Abers bands drawn to it.
  void forecast_levels(const double* score, double* kept) {
    const std::span<double> base = of(kept, kBase);
    if (options_.pointwise) {
      quantiles_.moved(clipped(*score), residuals_.ascending(), base);
    } else {
      std::copy_n(score, options_.members, base.begin());
    }
    clip(base);
    quantiles_.recalibrated(base, pit_, of(kept, kRecalibrated));
    const double at = point(score);
    quantiles_.shrunk(all_->predict(at, kNoTime).steps, base, of(kept, kIvapr));
    quantiles_.shrunk(recent_->predict(at, kNoTime).steps, base, of(kept, kIvapr1000));
  }

  // Of few labels nothing but the base is known.
  void forecast_residuals(double at, double* kept) const {
    if (errors_.count < kFewest) return copy_base(kept, kResiduals100, kGaussian);
    quantiles_.moved(at, few_.ascending(), of(kept, kResiduals100));
    quantiles_.moved(at, some_.ascending(), of(kept, kResiduals300));
    const double width = options_.width();
    quantiles_.normal(at + width * errors_.mean, width * std::sqrt(errors_.variance),
                      of(kept, kGaussian));
  }

  void forecast_line(double at, double* kept) const {
    if (line_.labels() < kFewest) return copy_base(kept, kLineGaussian, kLineResiduals);
    quantiles_.normal(at, options_.width() * line_.deviation(), of(kept, kLineGaussian));
    quantiles_.moved(at, of_line_.ascending(), of(kept, kLineResiduals));
  }

  void copy_base(double* kept, std::size_t first, std::size_t last) const {
    for (std::size_t k = first; k <= last; ++k) {
      std::ranges::copy(of(kept, kBase), of(kept, k).begin());
    }
  }

  // A number inside the support as a share of its width.
  double share(double value) const { return (value - options_.low) / options_.width(); }

  void keep(const ResidualLine::Kept& lesson, double moved, double* out) const {
    for (const Share& one : shares_) out = std::ranges::copy(one.weights(), out).out;
    out = std::ranges::copy(lesson.features, out).out;
    *out++ = lesson.scale;
    *out = moved;
  }

  // Adds a label to all windows of labels and residuals, and returns its residual.
  double hold(double point, double label) {
    all_->learn(point, label, kOne, kNoTime);
    recent_->learn(point, label, kOne, kNoTime);
    const double residual = label - clipped(point);
    if (options_.pointwise) residuals_.add(residual);
    few_.add(residual);
    some_.add(residual);
    return residual;
  }

  void learn_line(const double* lesson, double residual, double label) {
    ResidualLine::Kept kept{};
    std::copy_n(lesson, ResidualLine::kSize, kept.features.begin());
    kept.scale = lesson[ResidualLine::kSize];
    const double from_line = label - lesson[ResidualLine::kSize + 1];
    of_line_.add(from_line);
    line_.learn(kept, residual / options_.width(), from_line / options_.width());
  }

  DistributionOptions options_;
  QuantileForecasts quantiles_;
  std::unique_ptr<PredictiveSet> all_, recent_;  // of the last labels
  std::vector<std::uint64_t> pit_;               // counts of PIT values of the base
  ResidualWindow residuals_{kRecent}, few_{100}, some_{300};
  Moments errors_;  // of the score, lately
  ResidualLine line_;
  ResidualWindow of_line_{300};
  double base_loss_ = 0.0;  // CRPS of the base in all
  std::array<Share, kShares> shares_{Share(1.0), Share(4.0)};
};

}  // namespace abers
