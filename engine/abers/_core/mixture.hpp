// What mixtures of probabilities in lanes share; see tests/oracles/mixture.py.
//
// `likelihoods_` has what the forecasts of an observation gave to its label, an expert each; it is
// scratch of one call.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "experts.hpp"
#include "lanes.hpp"
#include "prefetch.hpp"

namespace abers {

// A product of probabilities, as a number and a power of two.
struct Product {
  static constexpr double kLeast = 0x1p-512;

  double number = 1.0;  // from kLeast to 1
  std::int64_t exponent = 0;

  void multiply(double p) {
    number *= p;
    if (number < kLeast) {
      number *= 0x1p512;
      exponent -= 512;
    }
  }

  double loss() const {
    return -(elementary::logarithm(number) + static_cast<double>(exponent) * 0x1.62e42fefa39efp-1);
  }
};

class Mixture {
 public:
  std::size_t experts() const { return lanes_.experts(); }
  std::int64_t labels() const { return labels_; }
  std::int64_t taught() const { return taught_; }
  const Lanes& lanes() const { return lanes_; }

  void expire(std::int64_t number) {
    if (const auto lane = lanes_.find(number)) lanes_.release(*lane);
  }

  void losses(double* out) const {
    for (const Product& product : products_) *out++ = product.loss();
  }

  std::vector<Product>& products() { return products_; }

  // Fetches what steps read into the cache.
  void fetch() const {
    prefetch(products_.data(), products_.size() * sizeof(Product));
    lanes_.fetch();
  }

  void load(std::int64_t labels, std::int64_t taught, Lanes lanes) {
    labels_ = labels;
    taught_ = taught;
    lanes_ = std::move(lanes);
  }

 protected:
  // The first expert is raw, the last ones share weights among those before. An observation keeps
  // so many doubles.
  Mixture(std::size_t experts, std::size_t shares, double raw_weight, std::size_t kept)
      : lanes_(prior(experts, shares, raw_weight), kept),
        products_(experts + 1),
        likelihoods_(experts) {}

  // The label of the observation of a lane came; `likelihoods_` and `served` are what the experts
  // and the mixture gave to it.
  void settle(Lanes::Lane lane, double served) {
    for (std::size_t k = 0; k < experts(); ++k) products_[k].multiply(likelihoods_[k]);
    products_.back().multiply(served);
    lanes_.multiply(lane, likelihoods_.data());
    lanes_.release(lane);
    ++labels_;
  }

  Lanes lanes_;
  std::vector<Product> products_;  // of each expert, then of the mixture
  std::vector<double> likelihoods_;
  std::int64_t labels_ = 0;  // of observations that had a lane
  std::int64_t taught_ = 0;  // that the experts learned

 private:
  static std::vector<double> prior(std::size_t experts, std::size_t shares, double raw_weight) {
    const double half = (1.0 - raw_weight) / 2.0;
    std::vector<double> found(experts, half / static_cast<double>(experts - 1 - shares));
    found.front() = raw_weight;
    std::fill(found.end() - static_cast<std::ptrdiff_t>(shares), found.end(),
              half / static_cast<double>(shares));
    return found;
  }
};

}  // namespace abers
