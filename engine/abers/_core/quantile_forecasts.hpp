// Forecasts as quantiles: m numbers in order, at the levels (i - 1/2) / m; see
// tests/oracles/quantile_forecasts.py.
//
// Sums run from the first to the last, so that every machine rounds them alike.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "normal_quantile.hpp"
#include "predictive.hpp"

namespace abers {

class QuantileForecasts {
 public:
  using Given = std::span<const double>;
  using Out = std::span<double>;

  explicit QuantileForecasts(std::size_t members) : inner_(members), normal_(members) {
    for (std::size_t i = 0; i < members; ++i) {
      inner_[i] = (static_cast<double>(i) + 0.5) / static_cast<double>(members);
      normal_[i] = normal_quantile(inner_[i]);
    }
    levels_.push_back(0.0);
    levels_.insert(levels_.end(), inner_.begin(), inner_.end());
    levels_.push_back(1.0);
  }

  std::size_t members() const { return inner_.size(); }

  // A number plus past residuals, which ascend; without any, the number.
  void moved(double number, Given residuals, Out out) const {
    const std::size_t n = residuals.size(), m = members();
    for (std::size_t i = 0; i < m; ++i) {
      // The first residual at which the share of those up to it reaches (2i + 1) / 2m.
      const std::size_t rank = (n * (2 * i + 1) + 2 * m - 1) / (2 * m);
      out[i] = n == 0 ? number : number + residuals[rank - 1];
    }
  }

  // A normal distribution.
  void normal(double mean, double deviation, Out out) const {
    for (std::size_t i = 0; i < members(); ++i) out[i] = mean + deviation * normal_[i];
  }

  // The level at which the quantile function of a base passes a label.
  double pit(Given base, double label) {
    extend(base);
    const auto left = std::ranges::lower_bound(values_, label) - values_.begin();
    const auto right = std::ranges::upper_bound(values_, label) - values_.begin();
    const auto at = static_cast<std::size_t>(left);
    if (at == values_.size()) return 1.0;
    if (left < right) return (levels_[at] + levels_[static_cast<std::size_t>(right) - 1]) / 2.0;
    if (at == 0) return 0.0;
    const double share = (label - values_[at - 1]) / (values_[at] - values_[at - 1]);
    return levels_[at - 1] + share * (levels_[at] - levels_[at - 1]);
  }

  // The quantile calibration of a base: levels are mapped to the shares of PIT values, by their
  // counts in bins of equal width. The base adds a uniform share of `kDrawn`.
  void recalibrated(Given base, std::span<const std::uint64_t> counts, Out out) {
    const auto bins = static_cast<double>(counts.size());
    double labels = 0.0, below = 0.0;
    for (const std::uint64_t count : counts) labels += static_cast<double>(count);
    if (labels == 0.0) {
      std::ranges::copy(base, out.begin());
      return;
    }
    cdf_.assign(1, 0.0);
    at_.assign(1, 0.0);
    for (const std::uint64_t count : counts) {
      below += static_cast<double>(count) + kDrawn / bins;
      cdf_.push_back(below / (labels + kDrawn));
      at_.push_back(static_cast<double>(at_.size()) / bins);
    }
    cdf_.back() = 1.0;
    extend(base);
    for (std::size_t i = 0; i < members(); ++i) {
      const double level = interpolated(inner_[i], cdf_, at_);
      out[i] = interpolated(level, levels_, values_);
      if (i > 0) out[i] = std::max(out[i], out[i - 1]);
    }
  }

  // The merged distribution of a Venn-Abers band, drawn to the base. A band with the mean width w
  // over the base rests on about 1/w - 1 labels; the base counts as `kDrawn`, and takes the masses
  // beyond all labels.
  void shrunk(const std::vector<CdfStep>& band, Given base, Out out) {
    if (band.size() == 1) {
      std::ranges::copy(base, out.begin());
      return;
    }
    const auto m = static_cast<double>(members());
    const double evidence = 1.0 / std::max(width(band, base) / m, kNarrowest) - 1.0;
    double inside = 0.0;
    for (std::size_t i = 1; i < band.size(); ++i) inside += mass(band, i);
    const double of_base = (kDrawn + evidence * std::max(1.0 - inside, 0.0)) / m;
    merge(band, base, evidence, of_base);
    const double total = at_.back();
    std::size_t reached = 0;
    for (std::size_t i = 0; i < members(); ++i) {
      while (at_[reached] < inner_[i] * total - kRounding * total) ++reached;
      out[i] = cdf_[reached];
    }
  }

 private:
  static constexpr double kDrawn = 30.0;  // observations that the base counts as
  static constexpr double kNarrowest = 1e-9, kRounding = 1e-12;

  // The quantile function of a base; its ends are half a step further out.
  void extend(Given base) {
    values_.assign(1, base[0] - (base[1] - base[0]) / 2.0);
    values_.insert(values_.end(), base.begin(), base.end());
    const std::size_t last = base.size() - 1;
    values_.push_back(base[last] + (base[last] - base[last - 1]) / 2.0);
  }

  static double interpolated(double x, const std::vector<double>& at,
                             const std::vector<double>& values) {
    const auto found = std::ranges::upper_bound(at, x) - at.begin();
    const std::size_t right =
        std::clamp<std::size_t>(static_cast<std::size_t>(found), 1, at.size() - 1);
    const double share = (x - at[right - 1]) / (at[right] - at[right - 1]);
    return values[right - 1] + share * (values[right] - values[right - 1]);
  }

  static double mass(const std::vector<CdfStep>& band, std::size_t i) {
    return band[i].merged() - band[i - 1].merged();
  }

  // The sum over the base of the band's widths.
  static double width(const std::vector<CdfStep>& band, Given base) {
    double total = 0.0;
    std::size_t step = 0;
    for (const double one : base) {
      while (step + 1 < band.size() && band[step + 1].threshold <= one) ++step;
      total += band[step].upper - band[step].lower;
    }
    return total;
  }

  // Puts the points of both in order, those of the band first, into `cdf_`, and the sums of their
  // masses into `at_`.
  void merge(const std::vector<CdfStep>& band, Given base, double evidence, double of_base) {
    cdf_.clear();
    at_.clear();
    double total = 0.0;
    for (std::size_t i = 1, k = 0; i < band.size() || k < base.size();) {
      const bool next = i < band.size() && (k == base.size() || band[i].threshold <= base[k]);
      total += next ? evidence * mass(band, i) : of_base;
      cdf_.push_back(next ? band[i++].threshold : base[k++]);
      at_.push_back(total);
    }
  }

  std::vector<double> inner_;              // levels of the members
  std::vector<double> normal_;             // of the standard normal distribution, at these
  std::vector<double> levels_;             // the same between 0 and 1
  std::vector<double> values_, cdf_, at_;  // scratch of one call
};

}  // namespace abers
