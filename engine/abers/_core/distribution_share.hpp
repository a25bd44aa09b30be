// Fixed share over methods that lose CRPS; see tests/oracles/distribution_methods.py.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>

#include "experts.hpp"

namespace abers {

template <std::size_t K>
class DistributionShare {
 public:
  static constexpr std::array<double, 4> kRates{0.0, 1e-3, 1e-2, 1e-1};
  using Weights = std::array<double, K>;

  // A loss as large as so many mean losses of the base divides a weight by e.
  explicit DistributionShare(double scale) : scale_(scale) {
    for (Weights& one : weights_) one = prior();
  }

  // The weight of each method, over all rates; they sum to one.
  Weights weights() const {
    Weights found{};
    double total = 0.0;
    for (const Weights& one : weights_) {
      for (std::size_t k = 0; k < K; ++k) {
        found[k] += one[k];
        total += one[k];
      }
    }
    for (double& weight : found) weight /= total;
    return found;
  }

  // What is left of a loss is its difference to the least one.
  void learn(std::span<const double> losses, double mean_of_base) {
    const double least = std::ranges::min(losses);
    Weights likelihoods;
    for (std::size_t k = 0; k < K; ++k) {
      const double loss = (losses[k] - least) / (scale_ * mean_of_base);
      likelihoods[k] = elementary::exponential(-std::min(loss, kMost));
    }
    for (std::size_t r = 0; r < kRates.size(); ++r) {
      double total = 0.0;
      for (std::size_t k = 0; k < K; ++k) total += weights_[r][k] *= likelihoods[k];
      for (std::size_t k = 0; k < K; ++k) {
        weights_[r][k] = (1.0 - kRates[r]) * weights_[r][k] + kRates[r] * prior()[k] * total;
      }
    }
    scale(weights_.front().data(), K * kRates.size());
  }

  std::array<Weights, kRates.size()>& table() { return weights_; }
  const std::array<Weights, kRates.size()>& table() const { return weights_; }

 private:
  static constexpr double kBase = 0.3;    // weight of the base at first
  static constexpr double kMost = 300.0;  // loss of a label

  static constexpr Weights prior() {
    Weights found;
    found.fill((1.0 - kBase) / static_cast<double>(K - 1));
    found.front() = kBase;
    return found;
  }

  double scale_;
  std::array<Weights, kRates.size()> weights_;  // by rate
};

}  // namespace abers
