// Sums behind the answers about a model of numbers: of now, of the whole stream, and over time; see
// `IntervalSums` in tests/oracles/answer_sums.py.
//
// As `AnswerSums`, but each label counts the same, so a mark stands at each `mark` labels.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "group_sums.hpp"
#include "label_trail.hpp"
#include "saved_fields.hpp"

namespace abers {

// A label: of each level whether it is inside and below the interval, and how wide this is; how far
// it is above the model's number; and how far it is from the median, NaN without one.
struct IntervalRow {
  const double *inside, *below, *widths;
  double error, distance;
};

struct IntervalPeriod : Stretch {
  struct Level {
    double inside = 0.0, below = 0.0;
    double finite = 0.0, width = 0.0;  // intervals with both ends, and the sum of their widths
  };

  explicit IntervalPeriod(std::size_t levels) : levels(levels) {}

  void add(const IntervalRow& row, std::int64_t number, std::int64_t time) {
    extend(number, time);
    for (std::size_t k = 0; k < levels.size(); ++k) {
      levels[k].inside += row.inside[k];
      levels[k].below += row.below[k];
      if (std::isfinite(row.widths[k])) {
        levels[k].finite += 1.0;
        levels[k].width += row.widths[k];
      }
    }
    const double distance = std::fabs(row.error);
    errors += row.error;
    below += row.error < 0.0;
    distances[0] += distance;
    if (!std::isfinite(row.distance)) return;
    medians += 1.0;
    distances[1] += distance;
    distances[2] += row.distance;
  }

  void join(const IntervalPeriod& later) {
    extend(later);
    for (std::size_t k = 0; k < levels.size(); ++k) {
      levels[k].inside += later.levels[k].inside;
      levels[k].below += later.levels[k].below;
      levels[k].finite += later.levels[k].finite;
      levels[k].width += later.levels[k].width;
    }
    errors += later.errors;
    below += later.below;
    medians += later.medians;
    for (std::size_t i = 0; i < distances.size(); ++i) distances[i] += later.distances[i];
  }

  void clear() {
    static_cast<Stretch&>(*this) = {};
    levels.assign(levels.size(), {});
    errors = below = medians = 0.0;
    distances = {};
  }

  template <class Self, class F>
  static void fields(Self& one, F&& each) {
    Stretch::fields(one, each);
    for (auto& level : one.levels) {
      each(level.inside);
      each(level.below);
      each(level.finite);
      each(level.width);
    }
    each(one.errors);
    each(one.below);
    each(one.medians);
    each(one.distances);
  }

  void check() const {
    Stretch::check();
    const auto n = static_cast<double>(labels);
    for (const Level& one : levels) {
      for (const double value : {one.inside, one.below, one.finite}) {
        require_saved(is_count(value) && value <= n, "labels of a level");
      }
      require_saved(one.inside + one.below <= n && one.width >= 0.0, "labels of a level");
    }
    require_saved(is_count(below) && below <= n, "labels below");
    require_saved(is_count(medians) && medians <= n, "medians");
    for (const double one : distances) require_saved(!(one < 0.0), "errors");
  }

  std::vector<Level> levels;
  double errors = 0.0, below = 0.0;  // of the model's number, and labels below it
  double medians = 0.0;              // labels with a finite median
  // From the model's number; of labels with a finite median from it, and from this.
  std::array<double, 3> distances{};
};

class IntervalSums {
 public:
  IntervalSums(std::size_t levels, std::int64_t mark)
      : mark_(mark), older_(levels), newer_(levels), whole_(levels), trail_(older_) {}

  void add(const IntervalRow& row, std::int64_t number, std::int64_t time) {
    older_.add(row, number, time);
    if (whole_.labels >= mark_) newer_.add(row, number, time);
    whole_.add(row, number, time);
    trail_.next().add(row, number, time);
    if (whole_.labels % mark_ != 0) return;
    if (whole_.labels > mark_) older_ = newer_;
    newer_.clear();
  }

  std::size_t levels() const { return whole_.levels.size(); }
  const IntervalPeriod& now() const { return older_; }
  const IntervalPeriod& whole() const { return whole_; }
  const std::vector<IntervalPeriod>& trail() const { return trail_.points(); }

  std::string save() const {
    return saved_sums([&](FieldWriter& write) { fields(*this, write); }, trail_);
  }

  // Takes over what `save` wrote; std::invalid_argument, with nothing changed, for all else.
  void load(std::string_view bytes) {
    SavedReader reader(bytes);
    IntervalSums one(levels(), mark_);
    FieldReader read(reader);
    fields(one, read);
    require_saved(one.mark_ == mark_, "levels");
    for (const IntervalPeriod* const period : {&one.older_, &one.newer_, &one.whole_}) {
      period->check();
    }
    const std::int64_t n = one.whole_.labels, since = n % mark_;
    require_saved(one.older_.labels == (n < 2 * mark_ ? n : mark_ + since), "labels of a window");
    require_saved(one.newer_.labels == (n < mark_ ? 0 : since), "labels of a window");
    one.trail_.load(reader, n);
    require_saved(reader.done(), "too long");
    *this = one;
  }

 private:
  template <class Self, class F>
  static void fields(Self& one, F&& each) {
    each(one.mark_);
    for (auto* const period : {&one.older_, &one.newer_, &one.whole_}) {
      IntervalPeriod::fields(*period, each);
    }
  }

  std::int64_t mark_;  // labels from one mark to the next
  IntervalPeriod older_, newer_, whole_;
  LabelTrail<IntervalPeriod> trail_;
};

}  // namespace abers
