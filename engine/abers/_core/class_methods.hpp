// The methods that protected probabilities of several classes mix; see
// tests/oracles/class_methods.py.
//
// A method forecasts a vector of probabilities. As with two classes, what it forecasts of an
// observation is fixed when that is predicted, and kept with what the methods will learn from.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "experts.hpp"
#include "prefetch.hpp"
#include "softmax_stack.hpp"

namespace abers {

namespace priors {

// The weight of raw, that of Venn-Abers is the rest; variances of what comes from scores, and of
// what comes from labels: features 2 to 4.
constexpr StackPrior<7> of_classes(double raw, double scores, double labels, double kept) {
  return {.line = {raw, 1.0 - raw},
          .variance = {scores, scores, labels, labels, labels, scores, scores},
          .kept = kept};
}

inline constexpr std::array kClasses{
    of_classes(0.5, 0.01, 0.1, 1.0),
    of_classes(0.5, 0.03, 1.0, 0x1.ff7ced916872bp-1),  // 1 - 1/1000
    of_classes(1.0, 0.01, 0.1, 0x1.fae147ae147aep-1),  // 1 - 1/100
};
inline constexpr StackPrior<2> kClassScores{.line = {0.5, 0.5}, .variance = {0.01, 0.01}};

}  // namespace priors

class ClassMethods {
 public:
  // In the order of their forecasts; the last three weigh those before by their shares.
  enum Method : std::size_t {
    kRaw,
    kVennAbers,
    kStackScores,
    kStackAll,
    kStack1000,
    kStack100,
    kShare,
    kShare16,
    kProduct,
    kCount
  };
  static constexpr std::size_t kShares = 3;
  static constexpr std::size_t kShared = kCount - kShares;
  static constexpr std::size_t kFeatures = 7;
  static constexpr std::size_t kWeights = 2 * FixedShare::kRates.size() * kShared;
  static constexpr double kFurthest = 32.0;  // more than a logarithm less the mean of all

  // What an observation keeps: the vectors of all methods, then the features by class.
  using Kept = std::vector<double>;

  explicit ClassMethods(std::size_t classes) : classes_(classes), room_(classes) {
    for (auto* const averages : {&errors_, &labels_, &seen_}) averages->fill(Average(classes));
  }

  std::size_t classes() const { return classes_; }
  std::size_t kept() const { return (kCount + kFeatures) * classes_; }
  std::size_t averages() const { return 3 * kRates.size() * classes_; }
  Kept blank() const { return Kept(kept()); }

  // A new class; nothing was seen of it.
  void grow() {
    ++classes_;
    room_.resize(classes_);
    for (auto* const averages : {&errors_, &labels_, &seen_}) {
      for (Average& one : *averages) one.push_back(0.0);
    }
  }

  // The first two vectors are there; adds the others. Changes nothing.
  void forecast(Kept& kept) const {
    double* const p = kept.data();
    std::array<double, kShared> shares[2];
    for (std::size_t k = 0; k < 2; ++k) shares_[k].pooled(shares[k].data());
    features(p);
    const ClassFeatures f = features_of(kept);
    double* const product = p + kProduct * classes_;
    for (std::size_t c = 0; c < classes_; ++c) {
      product[c] = shares[0][kRaw] * f.of(c)[0] + shares[0][kVennAbers] * f.of(c)[1];
    }
    const auto stack = [&](const auto& one, std::size_t method) {
      double* const z = p + method * classes_;
      one.forecast(f, z);
      for (std::size_t c = 0; c < classes_; ++c) product[c] += shares[0][method] * z[c];
      finish(z);
    };
    stack(scores_, kStackScores);
    for (std::size_t k = 0; k < stacks_.size(); ++k) stack(stacks_[k], kStackAll + k);
    finish(product);
    for (std::size_t k = 0; k < 2; ++k) {
      blend(shares[k].data(), kShared, p, p + (kShare + k) * classes_);
    }
  }

  // The observation now waits for its label.
  void issue(const Kept& kept) {
    const ClassFeatures f = features_of(kept);
    for (std::size_t r = 0; r < kRates.size(); ++r) {
      for (std::size_t c = 0; c < classes_; ++c) move(seen_[r][c], kRates[r], f.of(c)[0]);
    }
  }

  // The label of the observation came.
  void arrive(const Kept& kept, std::size_t label) {
    for (std::size_t r = 0; r < kRates.size(); ++r) {
      for (std::size_t c = 0; c < classes_; ++c) {
        const double is = c == label ? 1.0 : 0.0;
        move(labels_[r][c], kRates[r], is);
        move(errors_[r][c], kRates[r], is - kept[c]);
      }
    }
  }

  void distrust() {}  // no method learns from labels before these are taught

  // The label is taught.
  void learn(const Kept& kept, std::size_t label) {
    const ClassFeatures f = features_of(kept);
    scores_.learn(priors::kClassScores, f, label, room_.data());
    for (std::size_t k = 0; k < stacks_.size(); ++k) {
      stacks_[k].learn(priors::kClasses[k], f, label, room_.data());
    }
    std::array<double, kCount> chances;
    of_label(kept.data(), label, chances.data());
    for (FixedShare& share : shares_) share.learn(chances.data(), true);
  }

  // The probabilities that the methods gave to a label.
  void of_label(const double* kept, std::size_t label, double* out) const {
    for (std::size_t k = 0; k < kCount; ++k) out[k] = kept[k * classes_ + label];
  }

  // What the mean by weight gave to a label.
  double served(const double* weights, const double* kept, std::size_t label) const {
    double total = 0.0, chance = 0.0;
    for (std::size_t k = 0; k < kCount; ++k) {
      total += weights[k];
      chance += weights[k] * kept[k * classes_ + label];
    }
    return chance / total;
  }

  // Writes the vector of the mean by weight.
  void serve(const double* weights, const double* kept, double* out) const {
    for (std::size_t c = 0; c < classes_; ++c) out[c] = served(weights, kept, c);
  }

  // Whether an observation may keep these: probabilities that sum to 1.
  bool are_forecasts(const double* kept) const {
    constexpr double rounded = 1e-9;
    for (std::size_t k = 0; k < kCount; ++k, kept += classes_) {
      double total = 0.0;
      for (std::size_t c = 0; c < classes_; ++c) {
        if (!(kept[c] >= kClip / 2.0)) return false;  // what is clipped is divided by its sum
        total += kept[c];
      }
      if (!(std::abs(total - 1.0) < rounded)) return false;
    }
    return true;
  }

  void fetch() const {
    for (const auto* const averages : {&errors_, &labels_, &seen_}) {
      for (const Average& one : *averages) prefetch(one.data(), one.size() * sizeof(double));
    }
  }

  // Calls `visit` with each double of the state: first the weights, then lines, curvatures and
  // averages.
  template <class Visit>
  void visit(const Visit& visit) {
    for (FixedShare& share : shares_) visit_all(share.weights(), visit);
    scores_.visit(visit);
    for (Stack& one : stacks_) one.visit(visit);
    for (auto* const averages : {&errors_, &labels_, &seen_}) {
      for (Average& one : *averages) visit_all(one, visit);
    }
  }

 private:
  using Average = std::vector<double>;  // by class
  using Stack = SoftmaxStack<kFeatures>;
  static constexpr std::array<double, 2> kRates{0.1, 0.01};

  static void move(double& average, double rate, double value) {
    average = moved(average, rate, value);
  }

  ClassFeatures features_of(const Kept& kept) const {
    return {kept.data() + kCount * classes_, classes_, kFeatures};
  }

  void finish(double* z) const {
    softmax(z, classes_);
    make_vector(z, classes_);
  }

  // The mean of vectors, one after the other, by weights that sum to 1.
  void blend(const double* weights, std::size_t count, const double* vectors, double* out) const {
    for (std::size_t c = 0; c < classes_; ++c) {
      double total = 0.0;
      for (std::size_t k = 0; k < count; ++k) total += weights[k] * vectors[k * classes_ + c];
      out[c] = total;
    }
  }

  // Writes logarithms, less their mean over the classes, to a feature.
  void centred(const double* p, double* f) const {
    double total = 0.0;
    for (std::size_t c = 0; c < classes_; ++c) {
      total += f[c * kFeatures] = elementary::logarithm(p[c]);
    }
    const double mean = total / static_cast<double>(classes_);
    for (std::size_t c = 0; c < classes_; ++c) f[c * kFeatures] -= mean;
  }

  void features(double* p) const {
    double* const f = p + kCount * classes_;
    centred(p, f);
    centred(p + classes_, f + 1);
    for (std::size_t c = 0; c < classes_; ++c) {
      double* const row = f + c * kFeatures;
      row[2] = errors_[0][c];
      row[3] = errors_[1][c];
      row[4] = labels_[0][c] - labels_[1][c];
      row[5] = seen_[0][c];
      row[6] = seen_[1][c];
    }
  }

  std::size_t classes_;
  std::array<FixedShare, 2> shares_{FixedShare(kShared), FixedShare(kShared, 4)};
  SoftmaxStack<2> scores_{priors::kClassScores};
  std::array<Stack, 3> stacks_{Stack(priors::kClasses[0]), Stack(priors::kClasses[1]),
                               Stack(priors::kClasses[2])};
  // Averages at the rates of kRates: of errors of raw, of labels, of centred logarithms of raw.
  std::array<Average, kRates.size()> errors_, labels_, seen_;
  std::vector<double> room_;  // of one call
};

}  // namespace abers
