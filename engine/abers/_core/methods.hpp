// The methods that a protected probability mixes; see tests/oracles/methods.py.
//
// What a method forecasts of an observation is fixed when that is predicted, and kept with what the
// methods will learn from. A label changes some of the state when it comes, and the rest when it is
// taught.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include "experts.hpp"
#include "newton_stack.hpp"

namespace abers {

inline constexpr double kShrink = 30.0;  // observations that the raw probability counts as
inline constexpr double kNarrowest = 1e-9;

// The merge of an interval, drawn to the raw probability where the interval is wide.
inline double drawn(double merged, double width, double raw) {
  const double evidence = 1.0 / std::max(width, kNarrowest) - 1.0;
  return (evidence * merged + kShrink * raw) / (evidence + kShrink);
}

namespace priors {

inline constexpr double kThird = 1.0 / 3.0;

// Variances of what comes from scores, and of what comes from labels: features 4 to 10.
constexpr StackPrior<14> of_all(double scores, double labels, double kept) {
  StackPrior<14> prior{.line = {kThird, kThird, kThird}, .variance = {}, .kept = kept};
  prior.variance.fill(scores);
  std::fill(&prior.variance[4], &prior.variance[11], labels);
  return prior;
}

inline constexpr std::array kAll{
    of_all(0.01, 0.1, 1.0),
    of_all(0.01, 0.1, 0x1.ffbe76c8b4396p-1),  // 1 - 1/2000
    of_all(0.03, 1.0, 0x1.ff7ced916872bp-1),  // 1 - 1/1000
};
inline constexpr StackPrior<7> kScores{.line = {kThird, kThird, kThird},
                                       .variance = {0.01, 0.01, 0.01, 0.01, 0.01, 0.01, 0.01}};
inline constexpr StackPrior<2> kPlatt{.line = {1.0, 0.0},
                                      .variance = {0.3, 0.3},
                                      .kept = 0x1.fed1824b51373p-1,  // a half-life of 300 labels
                                      .reverts = true};

}  // namespace priors

class Methods {
 public:
  // In the order of their forecasts; the last three share weights among those before.
  enum Method : std::size_t {
    kRaw,
    kVennAbers,
    kJumper,
    kPlatt,
    kStackScores,
    kStackAll,
    kStack2000,
    kStack1000,
    kShare,
    kShare16,
    kShareArrival,
    kCount
  };
  static constexpr std::size_t kShares = 3;
  static constexpr std::size_t kShared = kCount - kShares;
  static constexpr std::size_t kFeatures = 14;
  static constexpr std::size_t kKept = kCount + kFeatures + 1;

  // What an observation keeps: the forecasts, the features, and the log odds of raw.
  using Kept = std::array<double, kKept>;

  static constexpr double kFurthest = 0x1p48;  // labels between two predictions are counted

  static constexpr std::size_t kept() { return kKept; }
  static constexpr std::size_t averages() { return 14; }
  static Kept blank() { return {}; }

  // Changes nothing. `raw` is clipped; `venn_abers` is the merge drawn to it.
  Kept forecast(double raw, double venn_abers) const {
    Kept kept;
    double* const p = kept.data();
    const double x = elementary::logit(raw);
    p[kRaw] = raw;
    p[kVennAbers] = clipped(venn_abers);
    p[kJumper] = jumper_.forecast(raw);
    const Features f = features(p, x);
    std::copy(f.begin(), f.end(), p + kCount);
    kept.back() = x;
    p[kPlatt] = platt_.forecast({x, 1.0});
    p[kStackScores] = scores_.forecast(few(f));
    for (std::size_t k = 0; k < stacks_.size(); ++k) {
      p[kStackAll + k] = stacks_[k].forecast(f);
    }
    for (std::size_t k = 0; k < kShares; ++k) p[kShare + k] = shares_[k].forecast(p);
    return kept;
  }

  // The observation now waits for its label.
  void issue(const Kept& kept) {
    for (std::size_t r = 0; r < 2; ++r) {
      came_[r] = moved(came_[r], kRates[r + 1], positives_);
      said_[r] = moved(said_[r], kRates[r + 1], kept[kRaw]);
    }
    const double x = near(kept.back());
    for (std::size_t r = 0; r < 3; ++r) scores_seen_[r] = moved(scores_seen_[r], kRates[r], x);
    positives_ = 0.0;
  }

  // The label of the observation came.
  void arrive(const Kept& kept, std::size_t label) {
    const double y = label > 0 ? 1.0 : 0.0;
    for (std::size_t r = 0; r < 3; ++r) {
      labels_[r] = moved(labels_[r], kRates[r], y);
      errors_[r] = moved(errors_[r], kRates[r], y - kept[kRaw]);
    }
    positives_ += y;
    shares_[2].learn(kept.data(), label > 0);
  }

  // The labels that come are one-sided: weights that these moved become those of taught labels.
  void distrust() { shares_[2] = shares_[0]; }

  // The label is taught.
  void learn(const Kept& kept, std::size_t number) {
    const bool label = number > 0;
    jumper_.learn(kept[kRaw], label);
    platt_.learn(priors::kPlatt, {kept.back(), 1.0}, label);
    Features f;
    std::copy_n(kept.data() + kCount, kFeatures, f.begin());
    scores_.learn(priors::kScores, few(f), label);
    for (std::size_t k = 0; k < stacks_.size(); ++k) stacks_[k].learn(priors::kAll[k], f, label);
    shares_[0].learn(kept.data(), label);
    shares_[1].learn(kept.data(), label);
  }

  // The probabilities that the methods gave to a label.
  static void of_label(const double* kept, std::size_t label, double* out) {
    for (std::size_t k = 0; k < kCount; ++k) out[k] = abers::of_label(kept[k], label > 0);
  }

  // What the mean by weight gave to a label.
  static double served(const double* weights, const double* kept, std::size_t label) {
    return abers::of_label(mixed(weights, kept, kCount), label > 0);
  }

  // Writes the probability of label 1 by the mean by weight.
  static void serve(const double* weights, const double* kept, double* out) {
    *out = mixed(weights, kept, kCount);
  }

  // Whether an observation may keep these.
  static bool are_forecasts(const double* kept) {
    return std::all_of(kept, kept + kCount,
                       [](double p) { return p >= kClip && p <= 1.0 - kClip; });
  }

  void fetch() const {}  // all is in one place

  // Calls `visit` with each double of the state: first the weights, then lines, curvatures and
  // averages.
  template <class Visit>
  void visit(const Visit& visit) {
    visit_all(jumper_.weights, visit);
    for (FixedShare& share : shares_) visit_all(share.weights(), visit);
    platt_.visit(visit);
    scores_.visit(visit);
    for (Stack& one : stacks_) one.visit(visit);
    for (auto* const averages : {&labels_, &errors_, &scores_seen_}) visit_all(*averages, visit);
    for (auto* const averages : {&came_, &said_}) visit_all(*averages, visit);
    visit(positives_);
  }
  static constexpr std::size_t kWeights =
      Jumper::kSize + kShares * FixedShare::kRates.size() * kShared;

 private:
  using Stack = NewtonStack<kFeatures>;
  using Features = Stack::Features;
  using Few = NewtonStack<7>::Features;  // without what labels say

  static constexpr double kFar = 8.0;  // log odds in features
  static constexpr std::array<double, 3> kRates{0.5, 0.1, 0.01};

  static double near(double x) { return std::clamp(x, -kFar, kFar); }

  static Few few(const Features& f) { return {f[0], f[1], f[2], f[3], f[11], f[12], f[13]}; }

  Features features(const double* p, double x) const {
    const double va = elementary::logit(p[kVennAbers]), jumper = elementary::logit(p[kJumper]);
    return {near(x),
            near(va),
            near(jumper),
            1.0,
            errors_[0],
            errors_[1],
            errors_[2],
            labels_[1] - labels_[0],
            labels_[2] - labels_[0],
            moved(came_[0], kRates[1], positives_) - said_[0],
            moved(came_[1], kRates[2], positives_) - said_[1],
            scores_seen_[1],
            scores_seen_[2],
            scores_seen_[0]};
  }

  Jumper jumper_;
  std::array<FixedShare, kShares> shares_{FixedShare(kShared), FixedShare(kShared, 4),
                                          FixedShare(kShared)};
  NewtonStack<2> platt_{priors::kPlatt};
  NewtonStack<7> scores_{priors::kScores};
  std::array<Stack, 3> stacks_{Stack(priors::kAll[0]), Stack(priors::kAll[1]),
                               Stack(priors::kAll[2])};
  // Averages, at the rates of kRates or the last two of these: of labels, of errors of raw, of log
  // odds of raw; of the number of labels that are 1 between predictions, of raw.
  std::array<double, 3> labels_{}, errors_{}, scores_seen_{};
  std::array<double, 2> came_{}, said_{};
  double positives_ = 0.0;  // ones that came since the last prediction
};

}  // namespace abers
