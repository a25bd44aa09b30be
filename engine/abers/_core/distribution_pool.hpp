// Pool of predictive distributions in lanes; see tests/oracles/distribution_pool.py.
//
// An observation keeps the forecasts of the methods, a row of `members` ascending numbers each, and
// then, for each share, the weights that it gives to these: its forecast is their pool. So all
// pools have the same points.
//
// Invariants: `points_` are those of the last observation, in order; `steps_`, `weights_` and
// `found_` are scratch of one call.
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

  // An observation keeps so many numbers behind the weights of the shares.
  DistributionPool(std::size_t forecasts, std::size_t shares, std::size_t members, std::size_t rest,
                   double first_weight, double width)
      : forecasts_(forecasts),
        members_(members),
        rate_(1.0 / (2.0 * width)),
        lanes_(prior(forecasts, shares, first_weight),
               forecasts * members + shares * forecasts + rest),
        scores_(forecasts + shares + 1, 0.0),
        weights_(forecasts),
        found_(forecasts + shares + 1) {}

  std::size_t experts() const { return lanes_.experts(); }
  std::int64_t labels() const { return labels_; }
  const Lanes& lanes() const { return lanes_; }
  // Scores of each expert, then of the pool, over all labels.
  const std::vector<double>& totals() const { return scores_; }

  // The pool of an observation that does not wait for a label.
  std::span<const Point> served(const double* kept) { return served(lanes_.next(), kept); }

  // That of one which waits.
  std::span<const Point> served(Lane lane) { return served(lane, lanes_.kept(lane)); }

  // The observation waits for its label from now on.
  Lane issue(const double* kept, std::int64_t number) { return lanes_.occupy(number, kept); }

  // Its label came; returns the score of each expert, then of the pool.
  std::span<const double> settle(Lane lane, double label) {
    const double* const kept = lanes_.kept(lane);
    const std::size_t shares = experts() - forecasts_;
    sort(kept);
    for (std::size_t k = 0; k < forecasts_; ++k) {
      found_[k] = score(equal_steps(kept + k * members_), label);
    }
    for (std::size_t j = 0; j < shares; ++j) {
      std::copy_n(of_share(kept, j), forecasts_, weights_.begin());
      found_[forecasts_ + j] = score(pooled(), label);
    }
    weigh(lane, kept);
    found_.back() = score(pooled(), label);
    std::vector<double> likelihoods(experts());
    for (std::size_t k = 0; k < experts(); ++k) {
      likelihoods[k] = elementary::exponential(-rate_ * found_[k]);
    }
    lanes_.multiply(lane, likelihoods.data());
    lanes_.release(lane);
    for (std::size_t k = 0; k < found_.size(); ++k) scores_[k] += found_[k];
    ++labels_;
    return found_;
  }

  void expire(std::int64_t number) {
    if (const auto lane = lanes_.find(number)) lanes_.release(*lane);
  }

  void load(std::int64_t labels, std::span<const double> scores, Lanes lanes) {
    labels_ = labels;
    scores_.assign(scores.begin(), scores.end());
    lanes_ = std::move(lanes);
  }

 private:
  // Of what the base leaves, the shares have the part `kOfShares` together.
  static constexpr double kOfShares = 0.7;

  static std::vector<double> prior(std::size_t forecasts, std::size_t shares, double first_weight) {
    const double rest = 1.0 - first_weight;
    std::vector<double> found(forecasts + shares,
                              rest * (1.0 - kOfShares) / static_cast<double>(forecasts - 1));
    found.front() = first_weight;
    std::fill_n(found.begin() + static_cast<std::ptrdiff_t>(forecasts), shares,
                rest * kOfShares / static_cast<double>(shares));
    return found;
  }

  const double* of_share(const double* kept, std::size_t j) const {
    return kept + forecasts_ * members_ + j * forecasts_;
  }

  // The weight of each method in a lane, with what the shares give to it.
  void weigh(Lane lane, const double* kept) {
    const double* const given = lanes_.weights(lane);
    for (std::size_t k = 0; k < forecasts_; ++k) {
      weights_[k] = given[k];
      for (std::size_t j = 0; j + forecasts_ < experts(); ++j) {
        weights_[k] += given[forecasts_ + j] * of_share(kept, j)[k];
      }
    }
  }

  void sort(const double* kept) {
    points_.clear();
    for (std::size_t i = 0; i < forecasts_ * members_; ++i) {
      points_.emplace_back(kept[i], i / members_);
    }
    std::sort(points_.begin(), points_.end());
  }

  std::span<const Point> served(Lane lane, const double* kept) {
    sort(kept);
    weigh(lane, kept);
    return pooled();
  }

  std::span<const Point> equal_steps(const double* forecast) {
    steps_.clear();
    const auto members = static_cast<double>(members_);
    for (std::size_t i = 0; i < members_; ++i) {
      steps_.push_back({forecast[i], (static_cast<double>(i) + 1.0) / members});
    }
    return steps_;
  }

  // The pool by `weights_`. Where several numbers are equal, the CDF has one step.
  std::span<const Point> pooled() {
    steps_.clear();
    double total = 0.0;
    for (std::size_t i = 0; i < points_.size(); ++i) {
      total += weights_[points_[i].second];
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

  std::size_t forecasts_, members_;
  double rate_;
  Lanes lanes_;
  std::vector<double> scores_;  // totals of each expert, then of the pool
  std::int64_t labels_ = 0;     // of observations that had a lane
  std::vector<std::pair<double, std::size_t>> points_;
  std::vector<Point> steps_;
  std::vector<double> weights_, found_;
};

}  // namespace abers
