// The mixture of the methods of a protected probability; see tests/oracles/protection.py.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "experts.hpp"
#include "lanes.hpp"
#include "methods.hpp"
#include "mixture.hpp"

namespace abers {

class MethodMixture : public Mixture {
 public:
  using Kept = Methods::Kept;

  explicit MethodMixture(double raw_weight)
      : Mixture(Methods::kCount, Methods::kShares, raw_weight, Methods::kKept) {}

  const Methods& methods() const { return methods_; }

  // The probability of an observation that does not wait for a label.
  double served(const Kept& kept) const { return weighed(lanes_.next(), kept.data()); }

  // That of one which waits.
  double served(Lanes::Lane lane) const { return weighed(lane, lanes_.kept(lane)); }

  // The observation waits for its label from now on.
  Lanes::Lane issue(const Kept& kept, std::int64_t number) {
    const Lanes::Lane lane = lanes_.occupy(number, kept.data());
    methods_.issue(kept);
    return lane;
  }

  // Its label came; returns what it kept.
  Kept arrive(Lanes::Lane lane, bool label) {
    Kept kept;
    std::copy_n(lanes_.kept(lane), kept.size(), kept.begin());
    for (std::size_t k = 0; k < experts(); ++k) likelihoods_[k] = of_label(kept[k], label);
    settle(lane, of_label(served(lane), label));
    methods_.arrive(kept, label);
    return kept;
  }

  void teach(const Kept& kept, bool label) { methods_.learn(kept, label); }

  void distrust() { methods_.distrust(); }

  // The calibration set learned a label.
  void count() { ++taught_; }

  // Calls `visit` with each double of the state but for those of the lanes.
  template <class Visit>
  void visit_parameters(const Visit& visit) {
    methods_.visit(visit);
    for (Product& product : products_) visit(product.number);
  }

 private:
  double weighed(Lanes::Lane lane, const double* forecasts) const {
    return mixed(lanes_.weights(lane), forecasts, experts());
  }

  Methods methods_;
};

}  // namespace abers
