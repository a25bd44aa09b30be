// Protected mixture of vectors of class probabilities; see tests/oracles/class_aggregation.py.
//
// An observation keeps the vectors of all experts, one after the other, of `classes()` doubles
// each.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "experts.hpp"
#include "lanes.hpp"
#include "mixture.hpp"

namespace abers {

class ClassAggregation : public Mixture {
 public:
  ClassAggregation(std::size_t classes, std::size_t shrunk, double raw_weight)
      : Mixture(shrunk + 2, 1, raw_weight, (shrunk + 2) * classes),
        classes_(classes),
        shrunk_(shrunk),
        share_(shrunk + 1) {}

  std::size_t classes() const { return classes_; }
  std::size_t given() const { return shrunk_ + 1; }

  // `given` has the raw vector, then those that the caller shrank; `out` gets a vector.
  void predict(const double* given, std::int64_t number, double* out) {
    if (const auto lane = lanes_.find(number)) {
      const double* const kept = lanes_.kept(*lane);
      for (std::size_t c = 0; c < classes_; ++c) out[c] = served(*lane, kept, c);
      return;
    }
    forecast(given);
    const Lanes::Lane lane = lanes_.next();
    for (std::size_t c = 0; c < classes_; ++c) out[c] = served(lane, now_.data(), c);
    if (number >= 0) lanes_.occupy(number, now_.data());
  }

  void learn(const double* given, std::size_t label, std::int64_t number) {
    std::optional<Lanes::Lane> lane = lanes_.find(number);
    if (lane) {
      gather(lanes_.kept(*lane), label, experts());
    } else {
      forecast(given);
      gather(now_.data(), label, experts());
      if (number < 0) lane = lanes_.occupy(number, now_.data());
    }
    if (lane) settle(*lane, mean(lanes_.weights(*lane), likelihoods_.data(), experts()));
    ++taught_;
    share_.learn(likelihoods_.data(), true);
  }

  // Calls `visit` with each double of the state but for those of the lanes.
  template <class Visit>
  void visit_parameters(const Visit& visit) {
    for (double& one : share_.weights()) visit(one);
    for (Product& product : products_) visit(product.number);
  }

 private:
  // The probabilities of one class by the first experts.
  void gather(const double* vectors, std::size_t label, std::size_t count) {
    for (std::size_t k = 0; k < count; ++k) likelihoods_[k] = vectors[k * classes_ + label];
  }

  double served(Lanes::Lane lane, const double* vectors, std::size_t label) {
    gather(vectors, label, experts());
    return mean(lanes_.weights(lane), likelihoods_.data(), experts());
  }

  // Fills `now_`; before the first label all experts forecast the raw vector.
  void forecast(const double* given) {
    double* const out = now_.data();
    if (taught_ == 0) {
      for (std::size_t k = 0; k < experts(); ++k) std::copy_n(given, classes_, out + k * classes_);
      return;
    }
    std::copy_n(given, this->given() * classes_, out);
    for (std::size_t c = 0; c < classes_; ++c) {
      gather(given, c, this->given());
      out[this->given() * classes_ + c] = share_.mean_of(likelihoods_.data());
    }
  }

  std::size_t classes_, shrunk_;
  FixedShare share_;
};

}  // namespace abers
