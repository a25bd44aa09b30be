// Sums behind the three answers about a model: of now, of the whole stream, and over time; see
// `AnswerSums` in tests/oracles/answer_sums.py.
//
// Rows come in the order of the predictions. A row counts p (1 - p) units of what labels can show,
// p being its served probability, and a mark stands behind the row that makes them a full 1,000. At
// each mark a window begins; its groups are fixed by the rows before it. So the older of two
// windows has 1,000 to 2,000 units, or all rows until there are so many.
//
// Several classes have several parts: the first choice, which makes the units, and each class.
//
// Invariant: units < kMark, and the newer window has the rows since the last mark; there is no
// newer one before the first mark. All have a fixed size, but for the trail, which is bounded.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "answer_groups.hpp"
#include "label_trail.hpp"
#include "loss_sums.hpp"
#include "saved_fields.hpp"

namespace abers {

// A row: of each part probabilities and labels, and what losses need, see `LossTerms`.
struct AnswerRow {
  struct Part {
    ByView<double> p{}, y{};
  };

  explicit AnswerRow(std::size_t parts) : parts(parts) {}

  // Sets what losses need if there are two classes.
  void set_losses() {
    const auto& [p, y] = parts.front();
    for (std::size_t view = 0; view < kViews; ++view) {
      came[view] = y[view] == 1.0 ? p[view] : 1.0 - p[view];
    }
    const double one = served_to_raw(p[1], p[0]), zero = served_to_raw(1.0 - p[1], 1.0 - p[0]);
    least = std::min(one, zero);
    most = std::max(one, zero);
  }

  std::vector<Part> parts;
  ByView<double> came{};
  double least = 1.0, most = 1.0;
};

// What a row adds to each period.
struct AnswerTerms {
  std::int64_t number = 0, time = 0;
  double units = 0.0;
  std::vector<ByView<GroupTerms>> parts;
  LossTerms losses;
};

struct AnswerPeriod : Stretch {
  double units = 0.0;
  std::vector<ByView<AnswerGroups>> parts;
  LossSums losses;

  void add(const AnswerTerms& row) {
    extend(row.number, row.time);
    units += row.units;
    for (std::size_t k = 0; k < parts.size(); ++k) {
      for (std::size_t view = 0; view < kViews; ++view) parts[k][view].add(row.parts[k][view]);
    }
    losses.add(row.losses);
  }

  template <class Self, class F>
  static void fields(Self& one, F&& each) {
    Stretch::fields(one, each);
    each(one.units);
    for (auto& part : one.parts) {
      for (auto& groups : part) AnswerGroups::fields(groups, each);
    }
    LossSums::fields(one.losses, each);
  }

  void check() const {
    Stretch::check();
    const auto n = static_cast<double>(labels);
    require_saved(units >= 0.0 && units <= n * kRoundedSum, "units");
    for (const auto& part : parts) {
      for (const AnswerGroups& groups : part) groups.check(n);
    }
    losses.check(labels);
  }
};

// Sums of the halves by the raw probability of the first part, and losses.
struct AnswerPoint : Stretch {
  struct View {
    double observed = 0.0, expected = 0.0, squares = 0.0;
  };
  struct Half {
    double labels = 0.0;
    ByView<View> views{};
  };

  std::array<Half, 2> halves{};
  ByView<double> losses{};  // sums of those that are finite
  ByView<std::int64_t> infinite{};

  void add(const AnswerTerms& row, double cut) {
    extend(row.number, row.time);
    const ByView<GroupTerms>& terms = row.parts.front();
    Half& half = halves[terms[0].p >= cut];
    half.labels += 1.0;
    for (std::size_t view = 0; view < kViews; ++view) {
      half.views[view].observed += terms[view].y;
      half.views[view].expected += terms[view].p;
      half.views[view].squares += terms[view].square;
      losses[view] += row.losses.losses[view];
      infinite[view] += row.losses.infinite[view];
    }
  }

  void join(const AnswerPoint& later) {
    extend(later);
    for (std::size_t h = 0; h < halves.size(); ++h) {
      halves[h].labels += later.halves[h].labels;
      for (std::size_t view = 0; view < kViews; ++view) {
        View& mine = halves[h].views[view];
        const View& other = later.halves[h].views[view];
        mine.observed += other.observed;
        mine.expected += other.expected;
        mine.squares += other.squares;
      }
    }
    for (std::size_t view = 0; view < kViews; ++view) {
      losses[view] += later.losses[view];
      infinite[view] += later.infinite[view];
    }
  }

  template <class Self, class F>
  static void fields(Self& one, F&& each) {
    Stretch::fields(one, each);
    for (auto& half : one.halves) {
      each(half.labels);
      for (auto& view : half.views) {
        each(view.observed);
        each(view.expected);
        each(view.squares);
      }
    }
    each(one.losses);
    each(one.infinite);
  }

  void check() const {
    Stretch::check();
    double total = 0.0;
    for (const Half& half : halves) {
      require_saved(is_count(half.labels), "labels of a point");
      total += half.labels;
      for (const View& view : half.views) {
        for (const double value : {view.observed, view.expected, view.squares}) {
          require_saved(value >= 0.0 && value <= half.labels * kRoundedSum, "sums of a point");
        }
      }
    }
    require_saved(total == static_cast<double>(labels), "labels of a point");
    LossSums{losses, infinite, {}, {}}.check(labels);
  }
};

class AnswerSums {
 public:
  // Units from one mark to the next. Each half of a full window has 500 to 1,000, so that its range
  // fits in a tolerance of 1.25. With 500 a mark it hardly does, and Yes comes and goes.
  static constexpr double kMark = 1000.0;

  AnswerSums(double tolerance, std::size_t parts)
      : tolerance_(tolerance), history_(parts), trail_(AnswerPoint{}) {
    terms_.parts.resize(parts);
    for (AnswerPeriod* const one : {&older_, &newer_, &whole_}) one->parts.resize(parts);
  }

  // A prediction of the warm-up, which only helps to fix the groups of the first periods.
  void skip(const AnswerRow& row) {
    ++skipped_;
    for (std::size_t k = 0; k < row.parts.size(); ++k) {
      for (std::size_t view = 0; view < kViews; ++view) {
        const double p = row.parts[k].p[view];
        history_[k][view].add(p, bin_of(p));
      }
    }
  }

  // A labelled row; it is the prediction with this number.
  void add(const AnswerRow& row, std::int64_t number, std::int64_t time) {
    if (whole_.labels == 0) {
      fix(whole_, false);
      begin(older_);
    }
    set_terms(row, number, time);
    older_.add(terms_);
    if (marks_ > 0) newer_.add(terms_);
    whole_.add(terms_);
    trail_.next().add(terms_, whole_.parts.front()[0].cut);
    units_ += terms_.units;
    note();
    if (units_ < kMark) return;
    units_ -= kMark;
    if (marks_ > 0) older_ = newer_;
    ++marks_;
    begin(newer_);
  }

  std::size_t parts() const { return history_.size(); }
  std::int64_t skipped() const { return skipped_; }
  const AnswerPeriod& now() const { return older_; }
  const AnswerPeriod& whole() const { return whole_; }
  const std::vector<AnswerPoint>& trail() const { return trail_.points(); }

  std::string save() const {
    return saved_sums([&](FieldWriter& write) { fields(*this, write); }, trail_);
  }

  // Takes over what `save` wrote; std::invalid_argument, with nothing changed, for all else, also
  // for sums at another tolerance.
  void load(std::string_view bytes) {
    SavedReader reader(bytes);
    AnswerSums one(tolerance_, parts());
    FieldReader read(reader);
    fields(one, read);
    one.check(tolerance_);
    one.trail_.load(reader, one.whole_.labels);
    require_saved(reader.done(), "too long");
    *this = one;
  }

 private:
  void set_terms(const AnswerRow& row, std::int64_t number, std::int64_t time) {
    const double p = row.parts.front().p[1];
    terms_.number = number;
    terms_.time = time;
    terms_.units = p * (1.0 - p);
    for (std::size_t k = 0; k < row.parts.size(); ++k) {
      for (std::size_t view = 0; view < kViews; ++view) {
        const AnswerRow::Part& part = row.parts[k];
        terms_.parts[k][view] = GroupTerms::of(part.p[view], part.y[view], tolerance_);
      }
    }
    terms_.losses = LossTerms::of(row.came, row.least, row.most);
  }

  // Lets the present row help to fix the groups of the next window.
  void note() {
    for (std::size_t k = 0; k < parts(); ++k) {
      for (std::size_t view = 0; view < kViews; ++view) {
        const GroupTerms& row = terms_.parts[k][view];
        history_[k][view].add(row.p, row.tenth);
      }
    }
  }

  void fix(AnswerPeriod& period, bool merges) const {
    for (std::size_t k = 0; k < parts(); ++k) {
      for (std::size_t view = 0; view < kViews; ++view) {
        period.parts[k][view] = AnswerGroups::after(history_[k][view], merges);
      }
    }
  }

  void begin(AnswerPeriod& window) {
    static_cast<Stretch&>(window) = {};
    window.units = 0.0;
    window.losses = {};
    fix(window, true);
    std::ranges::fill(history_, ByView<GroupHistory>{});
  }

  template <class Self, class F>
  static void fields(Self& one, F&& each) {
    each(one.tolerance_);
    each(one.skipped_);
    each(one.marks_);
    each(one.units_);
    for (auto& part : one.history_) {
      for (auto& history : part) GroupHistory::fields(history, each);
    }
    for (auto* const period : {&one.older_, &one.newer_, &one.whole_}) {
      AnswerPeriod::fields(*period, each);
    }
  }

  void check(double tolerance) const {
    require_saved(tolerance_ == tolerance, "tolerance");
    require_saved(skipped_ >= 0 && skipped_ <= kMaxCount, "rows");
    require_saved(marks_ >= 0 && marks_ <= whole_.labels, "marks");
    require_saved(units_ >= 0.0 && units_ < kMark, "units");
    for (const auto& part : history_) {
      for (const GroupHistory& history : part) history.check();
    }
    for (const AnswerPeriod* const one : {&older_, &newer_, &whole_}) one->check();
    require_saved(marks_ > 0 || newer_.labels == 0, "labels of a window");
    require_saved(newer_.labels <= older_.labels && older_.labels <= whole_.labels,
                  "labels of a window");
  }

  double tolerance_;
  std::int64_t skipped_ = 0, marks_ = 0;
  double units_ = 0.0;                         // since the last mark
  std::vector<ByView<GroupHistory>> history_;  // of each part, since the last mark
  AnswerPeriod older_, newer_, whole_;
  LabelTrail<AnswerPoint> trail_;
  AnswerTerms terms_;  // of the present row
};

}  // namespace abers
