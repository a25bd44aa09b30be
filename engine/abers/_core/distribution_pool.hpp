// Pool of predictive distributions in lanes; see tests/oracles/distribution_pool.py.
//
// Invariants: the forecasts of an observation are a row of `members` ascending numbers an expert;
// `steps_` and `points_` are scratch of one call.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "experts.hpp"
#include "lanes.hpp"

namespace abers {

class DistributionPool {
 public:
  using Lane = Lanes::Lane;

  // A step CDF: where it jumps, and its value from there on.
  struct Point {
    double at;
    double cdf;
  };

  DistributionPool(std::size_t experts, std::size_t members, double first_weight, double width)
      : members_(members),
        rate_(1.0 / (2.0 * width)),
        lanes_(prior(experts, first_weight), experts * members),
        scores_(experts + 1, 0.0) {}

  std::size_t experts() const { return lanes_.experts(); }
  std::size_t members() const { return members_; }
  std::int64_t labels() const { return labels_; }
  const Lanes& lanes() const { return lanes_; }
  // Scores of each expert, then of the pool, over all labels.
  const std::vector<double>& totals() const { return scores_; }
  void losses(double* out) const { std::copy(scores_.begin(), scores_.end(), out); }

  // The pool; an observation with a number occupies a lane from now on.
  std::span<const Point> predict(const double* forecasts, std::int64_t number) {
    auto lane = lanes_.find(number);
    if (!lane && number >= 0) lane = lanes_.occupy(number, forecasts);
    return lane ? pooled(*lane, lanes_.kept(*lane)) : pooled(lanes_.next(), forecasts);
  }

  // The forecasts of an awaiting observation, or nullptr.
  const double* kept(std::int64_t number) const {
    const auto lane = lanes_.find(number);
    return lane ? lanes_.kept(*lane) : nullptr;
  }

  void learn(const double* forecasts, double label, std::int64_t number) {
    auto lane = lanes_.find(number);
    if (!lane && number >= 0) return;
    if (!lane) lane = lanes_.occupy(number, forecasts);
    const double* const held = lanes_.kept(*lane);
    std::vector<double> found(experts() + 1), likelihoods(experts());
    found.back() = score(pooled(*lane, held), label);
    for (std::size_t k = 0; k < experts(); ++k) {
      found[k] = score(equal_steps(held + k * members_), label);
      likelihoods[k] = elementary::exponential(-rate_ * found[k]);
    }
    lanes_.multiply(*lane, likelihoods.data());
    lanes_.release(*lane);
    for (std::size_t k = 0; k < found.size(); ++k) scores_[k] += found[k];
    ++labels_;
  }

  void expire(std::int64_t number) {
    if (const auto lane = lanes_.find(number)) lanes_.release(*lane);
  }

  void load(std::int64_t moment, std::int64_t labels, std::size_t most,
            std::span<const std::int64_t> numbers, std::span<const std::int64_t> moments,
            std::span<const double> weights, std::span<const double> forecasts,
            std::span<const double> scores) {
    lanes_.load(moment, most, numbers, moments, weights, forecasts);
    labels_ = labels;
    scores_.assign(scores.begin(), scores.end());
  }

 private:
  static std::vector<double> prior(std::size_t experts, double first_weight) {
    std::vector<double> found(experts, (1.0 - first_weight) / static_cast<double>(experts - 1));
    found.front() = first_weight;
    return found;
  }

  std::span<const Point> equal_steps(const double* forecast) {
    steps_.clear();
    const auto members = static_cast<double>(members_);
    for (std::size_t i = 0; i < members_; ++i) {
      steps_.push_back({forecast[i], (static_cast<double>(i) + 1.0) / members});
    }
    return steps_;
  }

  // Where several numbers are equal, the CDF has one step.
  std::span<const Point> pooled(Lane lane, const double* forecasts) {
    const double* const weights = lanes_.weights(lane);
    points_.clear();
    for (std::size_t i = 0; i < lanes_.kept_size(); ++i) {
      points_.emplace_back(forecasts[i], i / members_);
    }
    std::sort(points_.begin(), points_.end());
    steps_.clear();
    double total = 0.0;
    for (std::size_t i = 0; i < points_.size(); ++i) {
      total += weights[points_[i].second];
      if (i + 1 == points_.size() || points_[i + 1].first != points_[i].first) {
        steps_.push_back({points_[i].first, total});
      }
    }
    for (Point& point : steps_) point.cdf /= total;
    return steps_;
  }

  // The continuous ranked probability score of a step CDF that ends at 1.
  static double score(std::span<const Point> steps, double label) {
    double total = std::max(steps.front().at - label, 0.0) + std::max(label - steps.back().at, 0.0);
    for (std::size_t i = 0; i + 1 < steps.size(); ++i) {
      const double low = steps[i].at, high = steps[i + 1].at, below = steps[i].cdf;
      const double middle = std::min(std::max(label, low), high);
      total += below * below * (middle - low);
      total += (1.0 - below) * (1.0 - below) * (high - middle);
    }
    return total;
  }

  std::size_t members_;
  double rate_;
  Lanes lanes_;
  std::vector<double> scores_;  // totals of each expert, then of the pool
  std::int64_t labels_ = 0;     // of observations that had a lane
  std::vector<std::pair<double, std::size_t>> points_;
  std::vector<Point> steps_;
};

}  // namespace abers
