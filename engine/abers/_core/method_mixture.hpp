// The mixture of the methods of a protected probability; see tests/oracles/protection.py.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "class_methods.hpp"
#include "lanes.hpp"
#include "methods.hpp"
#include "mixture.hpp"

namespace abers {

template <class M>
class MethodMixture : public Mixture {
 public:
  using Kept = typename M::Kept;

  MethodMixture(double raw_weight, M methods)
      : Mixture(M::kCount, M::kShares, raw_weight, methods.kept()), methods_(std::move(methods)) {}

  const M& methods() const { return methods_; }

  // Writes what is served of an observation that does not wait for a label.
  void serve(const Kept& kept, double* out) const {
    methods_.serve(lanes_.weights(lanes_.next()), kept.data(), out);
  }

  // That of one which waits.
  void serve(Lanes::Lane lane, double* out) const {
    methods_.serve(lanes_.weights(lane), lanes_.kept(lane), out);
  }

  // The observation waits for its label from now on.
  Lanes::Lane issue(const Kept& kept, std::int64_t number) {
    const Lanes::Lane lane = lanes_.occupy(number, kept.data());
    methods_.issue(kept);
    return lane;
  }

  // Its label came; returns what it kept.
  Kept arrive(Lanes::Lane lane, std::size_t label) {
    Kept kept = methods_.blank();
    std::copy_n(lanes_.kept(lane), kept.size(), kept.begin());
    methods_.of_label(kept.data(), label, likelihoods_.data());
    settle(lane, methods_.served(lanes_.weights(lane), kept.data(), label));
    methods_.arrive(kept, label);
    return kept;
  }

  void teach(const Kept& kept, std::size_t label) { methods_.learn(kept, label); }

  void distrust() { methods_.distrust(); }

  // The calibration sets learned a label.
  void count() { ++taught_; }

  // There is one class more; no observation may wait for a label.
  void grow() {
    methods_.grow();
    lanes_.keep(methods_.kept());
  }

  void fetch() const {
    Mixture::fetch();
    methods_.fetch();
  }

  // Calls `visit` with each double of the state but for those of the lanes.
  template <class Visit>
  void visit_parameters(const Visit& visit) {
    methods_.visit(visit);
    for (Product& product : products_) visit(product.number);
  }

 private:
  M methods_;
};

}  // namespace abers
