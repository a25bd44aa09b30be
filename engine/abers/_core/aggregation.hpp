// Protected mixture of experts in lanes; see abers/reference/aggregation.py.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "experts.hpp"
#include "lanes.hpp"

namespace abers {

// A product of probabilities, as a number and a power of two.
struct Product {
  double number = 1.0;
  std::int64_t exponent = 0;

  void multiply(double p) {
    number *= p;
    if (number < 0x1p-512) {
      number *= 0x1p512;
      exponent -= 512;
    }
  }

  double loss() const {
    return -(elementary::logarithm(number) + static_cast<double>(exponent) * 0x1.62e42fefa39efp-1);
  }
};

class Aggregation {
 public:
  Aggregation(std::size_t shrunk, double raw_weight)
      : shrunk_(shrunk),
        share_(shrunk + 3),
        lanes_(prior(shrunk + 4, raw_weight)),
        products_(shrunk + 5),
        now_(experts()),
        likelihoods_(experts()) {}

  std::size_t experts() const { return lanes_.experts(); }
  std::size_t given() const { return shrunk_ + 1; }
  std::int64_t labels() const { return labels_; }
  std::int64_t taught() const { return taught_; }
  const Lanes& lanes() const { return lanes_; }

  // `given` has the raw probability, then those that the caller shrank.
  double predict(const double* given, std::int64_t number) {
    if (const auto lane = lanes_.find(number)) {
      return mixed(lanes_.weights(*lane), lanes_.kept(*lane), experts());
    }
    forecast(given, now_.data());
    const double probability = mixed(lanes_.weights(lanes_.next()), now_.data(), experts());
    if (number >= 0) lanes_.occupy(number, now_.data());
    return probability;
  }

  void learn(const double* given, bool label, std::int64_t number) {
    std::optional<Lanes::Lane> lane = lanes_.find(number);
    if (!lane) {
      forecast(given, now_.data());
      if (number < 0) lane = lanes_.occupy(number, now_.data());
    } else {
      std::copy_n(lanes_.kept(*lane), experts(), now_.data());
    }
    if (lane) settle(*lane, label);
    ++taught_;
    platt_.learn(elementary::logit(now_[0]), label);
    jumper_.learn(now_[0], label);
    share_.learn(now_.data(), label);
  }

  void expire(std::int64_t number) {
    if (const auto lane = lanes_.find(number)) lanes_.release(*lane);
  }

  void losses(double* out) const {
    for (const Product& product : products_) *out++ = product.loss();
  }

  // Calls `visit` with each double of the state but for those of the lanes.
  template <class Visit>
  void visit_parameters(const Visit& visit) {
    for (double* one : {&platt_.slope, &platt_.level, &platt_.p00, &platt_.p01, &platt_.p11}) {
      visit(*one);
    }
    for (double& one : jumper_.weights) visit(one);
    for (double& one : share_.weights) visit(one);
    for (Product& product : products_) visit(product.number);
  }

  std::vector<Product>& products() { return products_; }

  void load(std::int64_t labels, std::int64_t taught, Lanes lanes) {
    labels_ = labels;
    taught_ = taught;
    lanes_ = std::move(lanes);
  }

 private:
  static std::vector<double> prior(std::size_t experts, double raw_weight) {
    const double rest = 1.0 - raw_weight;
    std::vector<double> found(experts, rest / 2.0 / static_cast<double>(experts - 2));
    found.front() = raw_weight;
    found.back() = rest / 2.0;
    return found;
  }

  // Before the first label all experts forecast the raw probability.
  void forecast(const double* given, double* out) const {
    if (taught_ == 0) {
      std::fill(out, out + experts(), clipped(given[0]));
      return;
    }
    for (std::size_t k = 0; k <= shrunk_; ++k) out[k] = clipped(given[k]);
    out[shrunk_ + 1] = platt_.forecast(elementary::logit(out[0]));
    out[shrunk_ + 2] = jumper_.forecast(out[0]);
    out[shrunk_ + 3] = share_.forecast(out);
  }

  // The label of the observation of a lane, whose forecasts are `now_`.
  void settle(Lanes::Lane lane, bool label) {
    const double served = mixed(lanes_.weights(lane), now_.data(), experts());
    for (std::size_t k = 0; k < experts(); ++k) {
      likelihoods_[k] = of_label(now_[k], label);
      products_[k].multiply(likelihoods_[k]);
    }
    products_.back().multiply(of_label(served, label));
    lanes_.multiply(lane, likelihoods_.data());
    lanes_.release(lane);
    ++labels_;
  }

  std::size_t shrunk_;
  OnlinePlatt platt_;
  Jumper jumper_;
  FixedShare share_;
  Lanes lanes_;
  std::vector<Product> products_;  // of each expert, then of the mixture
  std::vector<double> now_;        // forecasts of the present step
  std::vector<double> likelihoods_;
  std::int64_t labels_ = 0;  // of observations that held a lane
  std::int64_t taught_ = 0;  // that the experts learned
};

}  // namespace abers
