// The set behind unbounded intervals for a mean: real labels, sums of them clipped to two ranges,
// and the rule by which observations are forgotten.
//
// The contract is that of `abers/reference/mean_set.py`, the definition. Let k labels be
// o_1 <= ... <= o_k. One set of sums has them clipped to [o_m, o_(k-m)], and its query has the
// label o_m; the other has them clipped to [o_(m+1), o_(k-m+1)], and its query the label o_(k-m+1).
// An observation that comes or leaves moves each end of a range to a neighbour among the o_i at
// most, so few labels have to be clipped anew.
//
// Invariant: `order_` has the labels that a query sees, and the sums have them if there are 2m.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <limits>
#include <optional>
#include <tuple>
#include <vector>

#include "check.hpp"
#include "clipped_sums.hpp"
#include "forgetting.hpp"
#include "groups.hpp"
#include "step.hpp"
#include "table_cache.hpp"

namespace abers {

// The ends of an interval, and the labels that its query had for them.
struct MeanFit {
  double low;
  double high;
  double lowest;
  double highest;
};

class MeanSet {
 public:
  struct Labelled {
    double time;
    double score;
    std::int64_t label;  // in units of the resolution

    bool operator<(const Labelled& other) const {  // canonical order
      return std::tie(time, score, label) < std::tie(other.time, other.score, other.label);
    }
    LabelledScore item() const { return {label, score}; }
  };

  // Number of labels times the largest, in units: leaves room for the base of the sums.
  static constexpr std::int64_t kMost = std::int64_t{1} << 60;

  MeanSet(std::size_t m, double resolution, std::size_t window, double max_age)
      : m_(m), resolution_(resolution), window_(window), lifetime_(max_age) {}

  MeanSet(const MeanSet&) = delete;
  MeanSet& operator=(const MeanSet&) = delete;

  std::size_t m() const { return m_; }
  double resolution() const { return resolution_; }
  std::size_t window() const { return window_; }
  double lifetime() const { return lifetime_; }
  std::int64_t size() const { return size_; }
  std::int64_t late() const { return late_; }

  // No label kept is further from 0, in units.
  std::int64_t furthest() const {
    const bool is_empty = order_.size() == 0;
    const std::int64_t least = is_empty ? 0 : order_.from_first(0).label;
    const std::int64_t most = is_empty ? 0 : order_.from_last(0).label;
    return std::max({std::abs(least), std::abs(most), hidden_most_});
  }

  MeanFit predict(double score, double time) {
    look_at(time);
    if (order_.size() < 2 * m_) return vacuous();
    return fit(lows_.low_fit(score), highs_.high_fit(score));
  }

  // As `predict` for each score, without a time; writes the four columns of the fits.
  void predict_many(const double* scores, std::size_t count, double* out) {
    look_at(std::nan(""));
    const auto make = [&] { return lows_.table(highs_); };
    const bool is_vacuous = order_.size() < 2 * m_;
    const Table* table = is_vacuous ? nullptr : tables_.find(count, QueryWeights{}, size_, make);
    if (!table) {
      for (std::size_t i = 0; i < count; ++i) {
        write(predict(scores[i], std::nan("")), out + i, count);
      }
      return;
    }
    table->predict(scores, count, out, out + count);
    const MeanFit ends = fit(0.0, 0.0);
    std::for_each(out, out + 2 * count, [&](double& units) { units *= resolution_; });
    std::fill_n(out + 2 * count, count, ends.lowest);
    std::fill_n(out + 3 * count, count, ends.highest);
  }

  // Writes a fit into a column of a table with `width` numbers in a row.
  static void write(const MeanFit& found, double* out, std::size_t width) {
    out[0] = found.low;
    out[width] = found.high;
    out[2 * width] = found.lowest;
    out[3 * width] = found.highest;
  }

  // False, with nothing changed, if the sums might pass 64 bits.
  bool learn(double score, double label, double time) {
    if (is_late(time)) {
      ++late_;
      return true;
    }
    const std::optional<std::int64_t> units = in_units(label);
    return units && takes(*units, 1) && learn_units({time, score, *units});
  }

  // As `learn` for each, by building anew; false, with nothing changed, where that does not pay,
  // forgetting is to be done, or a label might be refused.
  bool learn_many(const double* scores, const double* labels, std::size_t count) {
    if (window_ > 0 || lifetime_ > 0 || !pays(count, size_)) return false;
    std::vector<LabelledScore> all;
    all.reserve(count + order_.size());
    std::int64_t most = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const std::optional<std::int64_t> units = in_units(labels[i]);
      if (!units) return false;
      most = std::max(most, std::abs(*units));
      all.push_back({*units, scores[i]});
    }
    if (!takes(most, count)) return false;
    add_all(all);
    return true;
  }

  // False, with nothing changed, if that observation is not there.
  bool remove(double score, double label) {
    const std::optional<std::int64_t> units = in_units(label);
    if (!units || !order_.contains({*units, score})) return false;
    --size_;
    erase({*units, score});
    return true;
  }

  // Those of a window by arrival, those that age in canonical order, all others by label and score.
  std::vector<Labelled> observations() const {
    if (lifetime_ > 0) return ages_.sorted();
    if (window_ > 0) return {arrivals_.begin(), arrivals_.end()};
    std::vector<Labelled> all;
    all.reserve(order_.size());
    for (const auto& [label, score] : order_.items()) all.push_back({std::nan(""), score, label});
    return all;
  }

  // Fills an empty set; false if it cannot have had these observations.
  bool load(const std::vector<Labelled>& observations, std::int64_t late) {
    std::int64_t most = 0;
    for (const Labelled& o : observations) {
      if (o.label > kMost || o.label < -kMost) return false;
      most = std::max(most, std::abs(o.label));
    }
    if (!takes(most, observations.size())) return false;
    if (window_ > 0 || lifetime_ > 0) {
      for (const Labelled& o : observations) learn_units(o);
    } else {
      std::vector<LabelledScore> all;
      all.reserve(observations.size());
      for (const Labelled& o : observations) all.push_back(o.item());
      add_all(all);
    }
    late_ = late;
    return size_ == static_cast<std::int64_t>(observations.size());
  }

  void check() const {
    check_tree(lows_.tree());
    check_tree(highs_.tree());
    const std::vector<LabelledScore> all = order_.items();
    const bool ascends = std::is_sorted(all.begin(), all.end());
    if (!ascends || all.size() != order_.size()) throw CheckFailure("invariant broken: order");
    const std::size_t summed = all.size() < 2 * m_ ? 0 : all.size();
    for (const ClippedSums* sums : {&lows_, &highs_}) {
      if (sums->tree().weight() != static_cast<std::int64_t>(summed)) {
        throw CheckFailure("invariant broken: number of summed labels");
      }
    }
    if (summed > 0) check_range(lows_, low_range());
    if (summed > 0) check_range(highs_, high_range());
  }

  std::size_t bytes() const {
    return sizeof(*this) + order_.bytes() + lows_.bytes() + highs_.bytes() + ages_.bytes() +
           tables_.bytes() + arrivals_.size() * sizeof(Labelled);
  }

 private:
  struct Range {
    std::int64_t low;
    std::int64_t high;
  };

  static MeanFit vacuous() {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    return {-infinity, infinity, -infinity, infinity};
  }

  // From the ends in units.
  MeanFit fit(double low, double high) const {
    return {low * resolution_, high * resolution_, static_cast<double>(lows_.low()) * resolution_,
            static_cast<double>(highs_.high()) * resolution_};
  }

  bool is_late(double time) const { return lifetime_ > 0 && time < newest_ - lifetime_; }

  std::optional<std::int64_t> in_units(double label) const {
    const double units = std::nearbyint(label / resolution_);
    if (!(std::abs(units) <= static_cast<double>(kMost))) return std::nullopt;
    return static_cast<std::int64_t>(units);
  }

  // Whether the sums stay in 64 bits with so many more labels of that size, as if none left.
  bool takes(std::int64_t units, std::size_t more) {
    const auto count = static_cast<int128>(size_) + static_cast<int128>(more);
    if (count * std::max(std::abs(units), furthest()) <= kMost) return true;
    hidden_most_ = 0;
    for (const Labelled& o : ages_.hidden()) {
      hidden_most_ = std::max(hidden_most_, std::abs(o.label));
    }
    return count * std::max(std::abs(units), furthest()) <= kMost;
  }

  bool learn_units(const Labelled& observation) {
    if (lifetime_ > 0) {
      age(observation);
      return true;
    }
    if (window_ > 0 && arrivals_.size() == window_) {
      erase(arrivals_.front().item());
      arrivals_.pop_front();
      --size_;
    }
    if (window_ > 0) arrivals_.push_back(observation);
    ++size_;
    insert(observation.item());
    return true;
  }

  void age(const Labelled& observation) {
    newest_ = std::max(newest_, observation.time);
    if (size_ == 0) now_ = newest_;  // nothing is shown yet, so the view moves without work
    if (newest_ > now_) look_from(newest_);
    ages_.drop_before(newest_ - lifetime_, [&](const Labelled&) { --size_; });
    ++size_;
    if (ages_.push(observation, now_ - lifetime_)) {
      insert(observation.item());
    } else {
      hidden_most_ = std::max(hidden_most_, std::abs(observation.label));
    }
  }

  void look_at(double time) { look_from(time > newest_ ? time : newest_); }

  // Brings the sums to what a query at `now` sees.
  void look_from(double now) {
    if (lifetime_ == 0 || size_ == 0 || now == now_) return;
    now_ = now;
    ages_.move_horizon(
        now - lifetime_,
        [&](const Labelled& o) {
          hidden_most_ = std::max(hidden_most_, std::abs(o.label));
          erase(o.item());
        },
        [&](const Labelled& o) { insert(o.item()); });
  }

  // Precondition: there are 2m labels.
  Range low_range() const { return {order_.from_first(m_ - 1).label, order_.from_last(m_).label}; }
  Range high_range() const { return {order_.from_first(m_).label, order_.from_last(m_ - 1).label}; }

  void insert(const LabelledScore& item) {
    tables_.change(1);
    order_.insert(item);
    if (order_.size() == 2 * m_) {
      std::vector<LabelledScore> all = order_.items();
      sort(all, [](const LabelledScore& each) { return each.score; });
      build(all);
    } else if (order_.size() > 2 * m_) {
      change(lows_, low_range(), item, 1);
      change(highs_, high_range(), item, 1);
    }
    checked();
  }

  void erase(const LabelledScore& item) {
    tables_.change(1);
    order_.erase(item);
    if (order_.size() >= 2 * m_) {
      change(lows_, low_range(), item, -1);
      change(highs_, high_range(), item, -1);
    } else {
      lows_.build({}, 0, 0);
      highs_.build({}, 0, 0);
    }
    checked();
  }

  // The label comes into the old range, or leaves it, before that moves; so no label is an
  // exception.
  void change(ClippedSums& sums, const Range& range, const LabelledScore& item, std::int64_t sign) {
    sums.make_room(range.low, range.high, order_.size() + 1);
    sums.add(item, sign);
    sums.move(order_, range.low, range.high);
  }

  // Adds labels in any order, by sorting all: by their scores, and then by themselves.
  void add_all(const std::vector<LabelledScore>& more) {
    tables_.change(more.size());
    size_ += static_cast<std::int64_t>(more.size());
    std::vector<LabelledScore> all = order_.items();
    all.insert(all.end(), more.begin(), more.end());
    sort(all, [](const LabelledScore& item) { return item.score; });
    std::vector<LabelledScore> by_label = all;
    sort(by_label, [](const LabelledScore& item) { return static_cast<double>(item.label); });
    order_.build(by_label);
    if (order_.size() >= 2 * m_) build(all);
    checked();
  }

  // Ties keep their order. The key of an item is one of its two parts.
  template <class Key>
  static void sort(std::vector<LabelledScore>& items, const Key& key) {
    std::vector<Group> keyed;
    keyed.reserve(items.size());
    for (const LabelledScore& item : items) {
      keyed.push_back({key(item), item.label, std::bit_cast<std::int64_t>(item.score)});
    }
    sort_by_score(keyed);
    for (std::size_t i = 0; i < items.size(); ++i) {
      items[i] = {keyed[i].negatives, std::bit_cast<double>(keyed[i].positives)};
    }
  }

  // From all labels, in the order of their scores.
  void build(const std::vector<LabelledScore>& labels) {
    lows_.build(labels, low_range().low, low_range().high);
    highs_.build(labels, high_range().low, high_range().high);
  }

  static void check_range(const ClippedSums& sums, const Range& range) {
    if (sums.low() != range.low || sums.high() != range.high) {
      throw CheckFailure("invariant broken: range of the sums");
    }
  }

  void checked() const {
#ifdef ABERS_CHECK
    check();
#endif
  }

  std::size_t m_;
  double resolution_;
  std::size_t window_;
  double lifetime_;
  std::int64_t size_ = 0;
  std::int64_t late_ = 0;
  double newest_ = -std::numeric_limits<double>::infinity();
  double now_ = -std::numeric_limits<double>::infinity();  // what the sums show
  std::int64_t hidden_most_ = 0;  // no label that is hidden is further from 0
  LabelOrder order_;
  ClippedSums lows_;
  ClippedSums highs_;
  TableCache tables_;
  std::deque<Labelled> arrivals_;  // with a window, oldest first
  Ages<Labelled> ages_;
};

}  // namespace abers
