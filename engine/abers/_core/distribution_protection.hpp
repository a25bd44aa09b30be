// A pool of methods as a calibrator of distributions; see tests/oracles/distribution_protection.py.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "distribution_methods.hpp"
#include "distribution_pool.hpp"

namespace abers {

class DistributionProtection {
 public:
  using Lane = Lanes::Lane;
  using Point = DistributionPool::Point;

  explicit DistributionProtection(const DistributionOptions& options)
      : options_(options),
        methods_(options),
        pool_(DistributionMethods::kForecasts, DistributionMethods::kShares, options.members,
              DistributionMethods::kLesson, options.base_weight, options.width()),
        kept_(methods_.kept_size()) {}

  const DistributionOptions& options() const { return options_; }
  std::int64_t size() const { return methods_.size(); }
  std::size_t experts() const { return pool_.experts(); }
  std::int64_t labels() const { return pool_.labels(); }
  const Lanes& lanes() const { return pool_.lanes(); }
  void losses(double* out) const { std::ranges::copy(pool_.totals(), out); }

  // An observation with a number waits for its label from now on; one that does so already is given
  // its first answer.
  std::span<const Point> predict(const double* score, std::int64_t number) {
    if (const auto lane = lanes().find(number)) return pool_.served(*lane);
    methods_.forecast(score, kept_.data());
    return number < 0 ? pool_.served(kept_.data()) : pool_.served(issue(score, number));
  }

  // Without a number the observation is predicted and learned; of an unknown number nothing is
  // known but the label.
  void learn(const double* score, double label, std::int64_t number) {
    std::optional<Lane> lane = lanes().find(number);
    if (!lane && number >= 0) return methods_.learn(score, label, nullptr, nullptr);
    if (!lane) {
      methods_.forecast(score, kept_.data());
      lane = issue(score, number);
    }
    std::copy_n(lanes().kept(*lane), kept_.size(), kept_.begin());
    const std::span<const double> losses = pool_.settle(*lane, label);
    methods_.learn(score, label, kept_.data(), losses.data());
  }

  void expire(std::int64_t number) { pool_.expire(number); }

 private:
  friend class DistributionCodec;

  Lane issue(const double* score, std::int64_t number) {
    const Lane lane = pool_.issue(kept_.data(), number);
    methods_.issue(score);
    return lane;
  }

  DistributionOptions options_;
  DistributionMethods methods_;
  DistributionPool pool_;
  std::vector<double> kept_;  // scratch of one call
};

}  // namespace abers
