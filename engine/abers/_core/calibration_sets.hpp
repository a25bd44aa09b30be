// The calibration sets of a protected calibrator: a single one, one for each of K folds, or one for
// each class against the rest. See tests/oracles/calibration_sets.py.
//
// `given` is what the sets learn of an observation. `merge` writes the ends of intervals and the
// merged probabilities; `forecast` writes the ends, and returns what the observation keeps.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "calibration_set.hpp"
#include "class_methods.hpp"
#include "experts.hpp"
#include "methods.hpp"
#include "model.hpp"
#include "prefetch.hpp"
#include "saved_bytes.hpp"
#include "seal.hpp"
#include "set_codec.hpp"

namespace abers {

// What scores say by themselves; in the order of `Kind` in abers/calibration/protected.py.
enum class Scores : std::uint8_t { kProbability, kLogit, kAny };

inline double probability(Scores scores, double score) {
  return scores == Scores::kLogit ? elementary::logistic(score) : score;
}

inline double score(double given) { return given + 0.0; }  // -0.0 becomes 0.0

using SharedSet = std::shared_ptr<CalibrationSet>;
using SharedSets = std::vector<SharedSet>;

inline SharedSets fresh(const SharedSets& sets) {
  SharedSets found;
  for (const SharedSet& one : sets) found.push_back(one->fresh());
  return found;
}

inline void fetch(const SharedSets& sets) {
  for (const SharedSet& one : sets) prefetch(*one);
}

// Appends each set under a seal.
inline void append_sets(std::string& bytes, const SharedSets& sets) {
  for (const SharedSet& set : sets) {
    append_written(bytes,
                   [&] { append_sealed(bytes, kSetMagic, [&] { bytes.append(save_set(*set)); }); });
  }
}

// The sets that `append_sets` wrote, up to the end; all have one rule of forgetting.
inline SharedSets take_sets(SavedReader& reader) {
  SharedSets found;
  while (!reader.done()) {
    found.push_back(load_set(unsealed(kSetMagic, reader.piece())));
    require_same_rule(*found.front(), *found.back());
  }
  return found;
}

inline SharedSet only(SharedSets sets) {
  require_saved(sets.size() == 1, "sets");
  return std::move(sets.front());
}

class OneSet {
 public:
  using Methods = abers::Methods;
  using Label = std::uint8_t;
  using Given = std::array<double, 1>;
  static constexpr std::string_view kMagic = "abersPV\x01", kMergeMagic = "abersVO\x01";

  explicit OneSet(SharedSet set) : set_(std::move(set)) {}
  explicit OneSet(SharedSets sets) : OneSet(only(std::move(sets))) {}

  OneSet fresh() const { return OneSet(SharedSet(set_->fresh())); }
  SharedSets sets() const { return {set_}; }
  void fetch() const { prefetch(*set_); }

  static std::size_t classes() { return 2; }
  static std::size_t score_width() { return 1; }
  static std::size_t forecast_width() { return 3; }
  static Methods methods() { return {}; }

  std::int64_t size() const { return set_->size(); }
  std::int64_t total() const { return set_->total(); }
  std::int64_t heaviest() const { return set_->rates().heaviest(); }
  std::int64_t weight(const ModelStep& step) const {
    return set_->rates().weight(static_cast<int>(step.label), step.weight);
  }
  bool takes(const ModelStep& step, std::int64_t weight) const {
    return set_->takes(weight, step.time);
  }

  static Given given(const ModelStep& step) { return {score(step.scores[0])}; }
  static Given blank() { return {}; }
  static bool may_give(const Given&) { return true; }

  template <class Lesson>
  void learn(const Lesson& lesson) const {
    set_->add_observation(lesson.given[0], lesson.label != 0, lesson.weight, lesson.time);
  }

  void merge(const ModelStep& step, double* out) const {
    std::tie(out[0], out[1]) = set_->predict(score(step.scores[0]), step.weight, step.time);
    out[2] = merged(out[0], out[1]);
  }

  // `share` is the running share of label 1.
  Methods::Kept forecast(const Methods& methods, Scores scores, double share, const ModelStep& step,
                         double* out) const {
    merge(step, out);
    const double given = score(step.scores[0]);
    const double raw = clipped(scores == Scores::kAny ? share : probability(scores, given));
    return methods.forecast(raw, drawn(out[2], out[1] - out[0], raw));
  }

  static double* served(double* out) { return out + 2; }

 private:
  SharedSet set_;
};

// A step has a score for each fold, and the fold of the observation; the set of that learns it.
class FoldSets {
 public:
  using Methods = abers::Methods;
  using Label = std::uint8_t;
  using Given = std::array<double, 2>;  // score and fold
  static constexpr std::string_view kMagic = "abersPC\x01", kMergeMagic = "abersCO\x01";

  explicit FoldSets(SharedSets sets) : sets_(std::move(sets)), room_(2 * sets_.size()) {
    require_saved(sets_.size() > 1, "folds");
  }

  FoldSets fresh() const { return FoldSets(abers::fresh(sets_)); }
  const SharedSets& sets() const { return sets_; }
  void fetch() const { abers::fetch(sets_); }

  static std::size_t classes() { return 2; }
  std::size_t score_width() const { return sets_.size() + 1; }
  static std::size_t forecast_width() { return 3; }
  static Methods methods() { return {}; }

  std::int64_t size() const {
    std::int64_t found = 0;
    for (const SharedSet& one : sets_) found += one->size();
    return found;
  }

  std::int64_t total() const {
    std::int64_t found = 0;
    for (const SharedSet& one : sets_) found = std::max(found, one->total());
    return found;
  }
  static std::int64_t heaviest() { return kOne; }

  static std::int64_t weight(const ModelStep& step) { return step.weight; }
  bool takes(const ModelStep& step, std::int64_t weight) const {
    return sets_[fold(step)]->takes(weight, step.time);
  }

  Given given(const ModelStep& step) const {
    const std::size_t at = fold(step);
    return {score(step.scores[at]), static_cast<double>(at)};
  }

  static Given blank() { return {}; }
  bool may_give(const Given& given) const {
    return given[1] >= 0.0 && given[1] < static_cast<double>(sets_.size()) &&
           given[1] == std::floor(given[1]);
  }

  template <class Lesson>
  void learn(const Lesson& lesson) const {
    const auto at = static_cast<std::size_t>(lesson.given[1]);
    sets_[at]->add_observation(lesson.given[0], lesson.label != 0, lesson.weight, lesson.time);
  }

  // Ends and merge are those of `CrossInterval`.
  void merge(const ModelStep& step, double* out) const {
    const std::size_t n = sets_.size();
    double* const zeros = room_.data();
    double* const ones = zeros + n;
    for (std::size_t k = 0; k < n; ++k) {
      std::tie(zeros[k], ones[k]) =
          sets_[k]->predict(score(step.scores[k]), step.weight, step.time);
      zeros[k] = 1.0 - zeros[k];
    }
    const double for_0 = elementary::geometric_mean(zeros, n, 1);
    const double for_1 = elementary::geometric_mean(ones, n, 1);
    std::tie(out[0], out[1]) = std::minmax(1.0 - for_0, for_1);
    out[2] = inside(for_1 / (for_0 + for_1));
  }

  Methods::Kept forecast(const Methods& methods, Scores scores, double share, const ModelStep& step,
                         double* out) const {
    merge(step, out);
    const double raw = clipped(scores == Scores::kAny ? share : median(scores, step.scores));
    return methods.forecast(raw, drawn(out[2], out[1] - out[0], raw));
  }

  static double* served(double* out) { return out + 2; }

 private:
  std::size_t fold(const ModelStep& step) const {
    const double given = step.scores[sets_.size()];
    if (!(given >= 0.0 && given < static_cast<double>(sets_.size()))) {
      throw std::invalid_argument("there is no such fold");
    }
    return static_cast<std::size_t>(given);
  }

  double median(Scores scores, const double* given) const {
    const std::size_t n = sets_.size();
    for (std::size_t k = 0; k < n; ++k) room_[k] = probability(scores, given[k]);
    std::sort(room_.begin(), room_.begin() + static_cast<std::ptrdiff_t>(n));
    return (room_[(n - 1) / 2] + room_[n / 2]) / 2.0;
  }

  SharedSets sets_;
  mutable std::vector<double> room_;  // of one call
};

class ClassSets {
 public:
  using Methods = ClassMethods;
  using Label = std::uint32_t;
  using Given = std::vector<double>;
  static constexpr std::string_view kMagic = "abersPN\x01", kMergeMagic = "abersRO\x01";

  explicit ClassSets(SharedSets sets) : sets_(std::move(sets)) {
    require_saved(sets_.size() > 1, "classes");
    for (const SharedSet& one : sets_) require_alike(*one);
  }

  ClassSets fresh() const { return ClassSets(abers::fresh(sets_)); }
  const SharedSets& sets() const { return sets_; }
  void fetch() const { abers::fetch(sets_); }

  std::size_t classes() const { return sets_.size(); }
  std::size_t score_width() const { return classes(); }
  std::size_t forecast_width() const { return 3 * classes(); }
  Methods methods() const { return Methods(classes()); }

  std::int64_t size() const { return sets_.front()->size(); }
  std::int64_t total() const { return sets_.front()->total(); }
  static std::int64_t heaviest() { return kOne; }
  static std::int64_t weight(const ModelStep& step) { return step.weight; }
  bool takes(const ModelStep& step, std::int64_t weight) const {
    return sets_.front()->takes(weight, step.time);
  }

  Given given(const ModelStep& step) const {
    Given found = blank();
    std::transform(step.scores, step.scores + classes(), found.begin(), score);
    return found;
  }

  Given blank() const { return Given(classes()); }
  static bool may_give(const Given&) { return true; }

  template <class Lesson>
  void learn(const Lesson& lesson) const {
    for (std::size_t c = 0; c < classes(); ++c) {
      sets_[c]->add_observation(lesson.given[c], lesson.label == c, lesson.weight, lesson.time);
    }
  }

  // Those of `OneVsRest`.
  void merge(const ModelStep& step, double* out) const {
    const std::size_t n = classes();
    each(step, out);
    const double total = std::accumulate(out, out + n, 0.0);
    for (std::size_t c = 0; c < n; ++c) out[c] /= total;
  }

  Methods::Kept forecast(const Methods& methods, Scores, double, const ModelStep& step,
                         double* out) const {
    const std::size_t n = classes();
    each(step, out);
    const double* const low = out + n;
    const double* const high = low + n;
    Methods::Kept kept = methods.blank();
    double* const raw = kept.data();
    double* const calibrated = raw + n;
    std::copy_n(step.scores, n, raw);
    make_vector(raw, n);
    for (std::size_t c = 0; c < n; ++c) calibrated[c] = drawn(out[c], high[c] - low[c], raw[c]);
    make_vector(calibrated, n);
    methods.forecast(kept);
    return kept;
  }

  static double* served(double* out) { return out; }

  // The set of a new class has learned as many observations as the others.
  void grow(SharedSet set) {
    require_alike(*set);
    sets_.push_back(std::move(set));
  }

 private:
  // Writes what the set of each class says by itself: merged, then the lower and the upper ends.
  void each(const ModelStep& step, double* out) const {
    const std::size_t n = classes();
    double* const low = out + n;
    double* const high = low + n;
    for (std::size_t c = 0; c < n; ++c) {
      std::tie(low[c], high[c]) = sets_[c]->predict(score(step.scores[c]), step.weight, step.time);
      out[c] = merged(low[c], high[c]);
    }
  }

  void require_alike(const CalibrationSet& set) const {
    const CalibrationSet& first = *sets_.front();
    require_same_rule(first, set);
    const bool same =
        set.size() == first.size() && set.total() == first.total() && set.late() == first.late();
    require_saved(same, "sets");
  }

  SharedSets sets_;
};

}  // namespace abers
