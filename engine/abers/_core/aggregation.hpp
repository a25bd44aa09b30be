// Protected mixture of experts in lanes; see tests/oracles/aggregation.py.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "experts.hpp"
#include "lanes.hpp"
#include "mixture.hpp"

namespace abers {

class Aggregation : public Mixture {
 public:
  Aggregation(std::size_t shrunk, double raw_weight)
      : Mixture(shrunk + 4, 1, raw_weight, shrunk + 4), shrunk_(shrunk), share_(shrunk + 3) {}

  std::size_t given() const { return shrunk_ + 1; }

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
    if (lane) {
      for (std::size_t k = 0; k < experts(); ++k) likelihoods_[k] = of_label(now_[k], label);
      const double served = mixed(lanes_.weights(*lane), now_.data(), experts());
      settle(*lane, of_label(served, label));
    }
    ++taught_;
    platt_.learn(elementary::logit(now_[0]), label);
    jumper_.learn(now_[0], label);
    share_.learn(now_.data(), label);
  }

  // Calls `visit` with each double of the state but for those of the lanes.
  template <class Visit>
  void visit_parameters(const Visit& visit) {
    for (double* one : {&platt_.slope, &platt_.level, &platt_.p00, &platt_.p01, &platt_.p11}) {
      visit(*one);
    }
    for (double& one : jumper_.weights) visit(one);
    for (double& one : share_.weights()) visit(one);
    for (Product& product : products_) visit(product.number);
  }

 private:
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

  std::size_t shrunk_;
  OnlinePlatt platt_;
  Jumper jumper_;
  FixedShare share_;
};

}  // namespace abers
