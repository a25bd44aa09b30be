// Protected mixture of vectors of class probabilities; see abers/reference/class_aggregation.py.
//
// An observation keeps the vectors of all experts, one after the other, of `classes()` doubles
// each.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "aggregation.hpp"
#include "experts.hpp"
#include "lanes.hpp"

namespace abers {

class ClassAggregation {
 public:
  ClassAggregation(std::size_t classes, std::size_t shrunk, double raw_weight)
      : classes_(classes),
        shrunk_(shrunk),
        share_(shrunk + 1),
        lanes_(prior(shrunk, raw_weight), classes),
        products_(shrunk + 3),
        now_(lanes_.kept_size()),
        likelihoods_(lanes_.experts()) {}

  std::size_t classes() const { return classes_; }
  std::size_t experts() const { return lanes_.experts(); }
  std::size_t given() const { return shrunk_ + 1; }
  std::int64_t labels() const { return labels_; }
  std::int64_t taught() const { return taught_; }
  const Lanes& lanes() const { return lanes_; }

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
    if (lane) settle(*lane);
    ++taught_;
    share_.learn(likelihoods_.data(), true);
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
  static std::vector<double> prior(std::size_t shrunk, double raw_weight) {
    const double rest = 1.0 - raw_weight;
    std::vector<double> found(shrunk + 2, rest / 2.0 / static_cast<double>(shrunk));
    found.front() = raw_weight;
    found.back() = rest / 2.0;
    return found;
  }

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

  // The label of the observation of a lane came; `likelihoods_` are its probabilities.
  void settle(Lanes::Lane lane) {
    products_.back().multiply(mean(lanes_.weights(lane), likelihoods_.data(), experts()));
    for (std::size_t k = 0; k < experts(); ++k) products_[k].multiply(likelihoods_[k]);
    lanes_.multiply(lane, likelihoods_.data());
    lanes_.release(lane);
    ++labels_;
  }

  std::size_t classes_, shrunk_;
  FixedShare share_;
  Lanes lanes_;
  std::vector<Product> products_;  // of each expert, then of the mixture
  std::vector<double> now_;        // vectors of the present step
  std::vector<double> likelihoods_;
  std::int64_t labels_ = 0;  // of observations that held a lane
  std::int64_t taught_ = 0;  // that the experts learned
};

}  // namespace abers
