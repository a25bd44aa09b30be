// Predictive CDFs at one score, exactly: divide and conquer over thresholds.
//
// At a threshold t the answer is binary Venn-Abers on 1{label > t}, and its two
// probabilities fall as t grows. So a range of thresholds with known ends needs only what can
// still matter inside it; what cannot is merged or dropped before the range is split further.
//
// A block of the isotonic regression around the query is a stretch to its left and one to its
// right. Both are read outwards from the query, and what the right one wants least of is what the
// left one wants most of. With "hit" for a label above t on the left, and for a label not above t
// on the right, both therefore ask for the same: the stretch (x, y), its weight and the weight of
// its hits, that is largest in y - slope * x; the slope is p on the left and 1 - p on the right.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "arithmetic.hpp"
#include "predictive_hulls.hpp"
#include "predictive_items.hpp"

namespace abers {

// What both CDFs are from a threshold on.
struct CdfStep {
  double threshold;
  double lower;
  double upper;

  // U / (U + 1 - L), in a form that ascends although it is rounded.
  double merged() const { return 1.0 / (1.0 + (1.0 - lower) / upper); }
};

template <class A>
class CdfSolver {
 public:
  using Sum = typename A::Sum;
  using Product = typename A::Product;
  using Stored = typename A::Stored;
  using Ratio = Slope<A>;
  using Vertex = HullVertex<A>;

  // Both probabilities at a threshold, and the CDFs they make.
  struct Ends {
    Ratio p1;
    Ratio p0;
    double lower;
    double upper;
  };

  // Thresholds from one cut to another, with the answers there.
  struct Span {
    std::size_t first, last;  // cuts
    Ends at_first, at_last;
    std::size_t steps;  // found so far, those of this span among them
  };

  // Begins a query of that weight.
  void begin(Sum weight, const std::vector<double>& cuts, const double* levels, std::size_t count) {
    weight_ = weight;
    random_ = 1;
    cuts_ = cuts.data();
    levels_ = levels;
    level_count_ = count;
  }

  // The answers before all thresholds and after all of them, of a query with so much to its left,
  // to its right and at its own score.
  std::array<Ends, 2> extremes(Sum left, Sum own, Sum right) const {
    const Product w = weight_;
    const Product upto = static_cast<Product>(left) + own;
    return {ends({1, 1}, {upto, upto + w}),
            ends({w, static_cast<Product>(own) + right + w}, {0, 1})};
  }

  // Whether a step is wanted that lies between two thresholds with these answers.
  bool wanted(const Ends& from, const Ends& to) const {
    if (level_count_ == 0) return from.lower != to.lower || from.upper != to.upper;
    const CdfStep a{0, from.lower, from.upper};
    const CdfStep b{0, to.lower, to.upper};
    return std::any_of(levels_, levels_ + level_count_, [&](double q) {
      return (a.lower < q && q <= b.lower) || (a.upper < q && q <= b.upper) ||
             (a.merged() < q && q <= b.merged());
    });
  }

  // Begins to read for the thresholds from one cut to another. Observations follow, from the query
  // at that score outwards on each side, the group of its own score first on the right.
  void open(std::size_t first, std::size_t last, double score) {
    first_ = first;
    last_ = last;
    for (Items<A>& side : items_) side.open(score, cuts_[first], cuts_[last]);
  }

  Items<A>& side(Side side) { return items_[side]; }

  // Solves for all steps between the cuts, with bounds of their answers; those at the first
  // may be known. With levels only the steps where a CDF reaches one are sure to be there, and only
  // their spans.
  void solve(const Ends& at_first, bool known, const Ends& at_last) {
    steps_.clear();
    spans_.clear();
    whole_ = {first_, last_, cuts_[first_], cuts_[last_], at_first, at_last, {}};
    for (const Side side : {kLeft, kRight}) {
      whole_.stretch[side] = {0, items_[side].size(), 1};
    }
    if (!known && !std::isinf(whole_.low)) whole_.at_low = answer(whole_.low, whole_);
    if (!std::isinf(whole_.high)) whole_.at_high = answer(whole_.high, whole_);
    descend(whole_, 0);
  }

  // The answers at the ends of what was solved.
  const Ends& at_first() const { return whole_.at_low; }
  const Ends& at_last() const { return whole_.at_high; }

  // The spans into which the one that was solved has been cut, and the steps that were found.
  const std::vector<Span>& spans() const { return spans_; }
  const std::vector<CdfStep>& steps() const { return steps_; }

  // The least slope that a side can have at thresholds between two: p1 at the lower one is the
  // greatest probability there, p0 at the higher one the least.
  template <Side side>
  static Ratio gentlest(const Ends& at_low, const Ends& at_high) {
    return side == kLeft ? at_high.p0 : at_low.p1.complement();
  }

 private:
  enum Half : std::uint8_t { kBelow = 0, kAbove = 1 };

  struct Stretch {  // a part of the items of a side
    std::size_t first, last;
    Sum labels;  // weight of the labels
  };

  // Thresholds between two at which the answer is known; labels inside are open.
  struct Range {
    std::size_t first, last;  // the innermost cuts around it
    double low, high;
    Ends at_low, at_high;
    std::array<Stretch, 2> stretch;
  };

  Ends ends(const Ratio& p1, const Ratio& p0) const {
    return {p1, p0, rounded_ratio(static_cast<Product>(p1.den - p1.num), p1.den),
            rounded_ratio(static_cast<Product>(p0.den - p0.num), p0.den)};
  }

  // Solves a range that ends in cuts: at the cuts between them first, then from cut to cut.
  void descend(const Range& range, int depth) {
    const bool deeper = wanted(range.at_low, range.at_high);
    if (deeper && range.last - range.first > 1) return split(range, depth);
    if (deeper) solve_inside(range, depth);
    if (deeper || level_count_ == 0) {
      spans_.push_back({range.first, range.last, range.at_low, range.at_high, steps_.size()});
    }
  }

  // Solves a range between two cuts in succession.
  void solve_inside(const Range& range, int depth) {
    if (range.stretch[kLeft].labels + range.stretch[kRight].labels > 0) {
      split(range, depth);
    } else {
      steps_.push_back({range.high, range.at_high.lower, range.at_high.upper});
    }
  }

  // Solves a range by way of a threshold inside.
  void split(const Range& range, int depth) {
    const bool by_cuts = range.last - range.first > 1;
    const std::size_t cut = range.first + (range.last - range.first) / 2;
    const double t = by_cuts ? cuts_[cut] : pivot(range, depth);
    const Ends at = answer(t, range);
    if (by_cuts || wanted(range.at_low, at)) {
      const std::size_t last = by_cuts ? cut : range.last;
      narrow_to<kBelow>({range.first, last, range.low, t, range.at_low, at, {}}, range, depth);
    }
    if (by_cuts || wanted(at, range.at_high)) {
      const std::size_t first = by_cuts ? cut : range.first;
      narrow_to<kAbove>({first, range.last, t, range.high, at, range.at_high, {}}, range, depth);
    }
  }

  // Solves a range from what is kept for a wider one, and the step at its high end.
  template <Half half>
  void narrow_to(Range range, const Range& wider, int depth) {
    const std::array<std::size_t, 2> top{items_[kLeft].size(), items_[kRight].size()};
    range.stretch[kLeft] = narrow<kLeft, half>(wider.stretch[kLeft], range);
    range.stretch[kRight] = narrow<kRight, half>(wider.stretch[kRight], range);
    if (wider.last - wider.first > 1) {
      descend(range, depth + 1);
    } else {
      solve_inside(range, depth + 1);
    }
    items_[kLeft].resize(top[kLeft]);
    items_[kRight].resize(top[kRight]);
  }

  // Keeps what can matter for the thresholds of the wider range below t, or above it. Between two
  // ends the value y - slope * x changes by at most what it does with all open labels hits and
  // the least slope, and at least by what it does with no open label a hit and the greatest. So an
  // end that is no record of `most` is never better than an earlier one, and one with a `least`
  // that does not exceed that of a later end is never better than that. Both passes go without
  // branches, which could not be predicted.
  template <Side side, Half half>
  Stretch narrow(const Stretch& from, const Range& range) {
    Items<A>& items = items_[side];
    items.reserve(from.last - from.first);
    const Ratio gentle = gentlest<side>(range);
    const Ratio steep = steepest<side>(range);
    const double t = half == kBelow ? range.high : range.low;
    const Item<A>* const last = items.data() + from.last;
    Item<A>* const base = items.data() + items.size();
    Item<A>* write = base;
    Sum hits = 0;  // labels open in the wider range that are hits throughout this one
    Sum open = 0;
    Product record = Ratio::kLowest;
    // Invariant: of the ends read so far those kept are the records of `most`.
    for (const Item<A>* read = items.data() + from.first; read < last; ++read) {
      const Item<A> item = *read;
      const Stored still = item.weight & -Stored{half == kBelow ? item.label < t : item.label > t};
      open += still;
      // A label at or beyond t: above all thresholds left, or below them.
      if constexpr ((side == kLeft) == (half == kBelow)) hits += item.weight - still;
      const Sum y = item.y + hits;
      const Product most = only(item.ends, gentle.den * (y + open) - gentle.num * item.x);
      const bool ends = most > record;
      record = std::max(record, most);
      write->label = item.label;
      write->weight = still;
      write->x = item.x;
      write->y = static_cast<Stored>(y);
      write->ends = ends;
      write += (ends | still) != 0;
    }
    for (; !(write - 1)->ends; --write) open -= (write - 1)->weight;
    // Invariant: of the ends read so far those kept, at the end, are the records of `least`.
    record = Ratio::kLowest;
    for (Item<A>* item = write; item-- > base;) {
      const Product least = only(item->ends, steep.den * item->y - steep.num * item->x);
      item->ends = least > record;
      record = std::max(record, least);
    }
    const std::size_t first = items.size();
    items.resize(static_cast<std::size_t>(write - items.data()));
    return {first, items.size(), open};
  }

  // The value if a stretch may end there, else the lowest.
  static Product only(Stored ends, Product value) {
    const Product mask = -static_cast<Product>(ends);
    return (value & mask) | (Ratio::kLowest & ~mask);
  }

  template <Side side>
  static Ratio gentlest(const Range& range) {
    return gentlest<side>(range.at_low, range.at_high);
  }

  // The greatest slope likewise.
  template <Side side>
  static Ratio steepest(const Range& range) {
    return side == kLeft ? range.at_low.p1 : range.at_high.p0.complement();
  }

  // An open label near the median of the open labels, from a sample; the median itself should
  // samples of hostile data keep failing.
  double pivot(const Range& range, int depth) {
    constexpr std::size_t kSample = 15;
    constexpr int kPatience = 60;
    const std::array<Stretch, 2>& parts = range.stretch;
    const std::size_t lefts = parts[kLeft].last - parts[kLeft].first;
    const std::size_t n = lefts + parts[kRight].last - parts[kRight].first;
    const auto take = [&](std::size_t i) {
      const Item<A>& item = i < lefts ? items_[kLeft].data()[parts[kLeft].first + i]
                                      : items_[kRight].data()[parts[kRight].first + i - lefts];
      if (item.weight != 0) sample_.push_back(item.label);
    };
    sample_.clear();
    if (n > kSample && depth <= kPatience) {
      for (std::size_t i = 0; i < kSample; ++i) {
        random_ = random_ * 6364136223846793005u + 1442695040888963407u;
        take((random_ >> 33) % n);
      }
    }
    if (sample_.empty()) {
      for (std::size_t i = 0; i < n; ++i) take(i);
    }
    const auto middle = sample_.begin() + static_cast<std::ptrdiff_t>(sample_.size() / 2);
    std::nth_element(sample_.begin(), middle, sample_.end());
    return *middle;
  }

  // Both probabilities at a threshold of a range.
  Ends answer(double t, const Range& range) {
    make_hull<kLeft>(t, range);
    make_hull<kRight>(t, range);
    return tangents();
  }

  // The upper hull of a side's ends at a threshold, where its slopes are in the range.
  template <Side side>
  void make_hull(double t, const Range& range) {
    const Stretch& part = range.stretch[side];
    const Ratio gentle = gentlest<side>(range);
    const Ratio steep = steepest<side>(range);
    std::vector<Vertex>& hull = hull_[side];
    if (hull.size() <= part.last - part.first) hull.resize(part.last - part.first + 1);
    const Item<A>* read = items_[side].data() + part.first;
    const Item<A>* const last = items_[side].data() + part.last;
    std::size_t kept = 0;
    Sum hits = 0;
    Product record = Ratio::kLowest;
    // Invariant: of the ends read so far those kept are the records at the gentle end.
    for (; read < last; ++read) {
      const Stored mask = -Stored{(read->label > t) == (side == kLeft)};
      hits += read->weight & mask;
      const Vertex v{static_cast<Sum>(read->x), static_cast<Sum>(read->y) + hits};
      const Product value = only(read->ends, gentle.den * v.y - gentle.num * v.x);
      hull[kept] = v;
      kept += value > record;
      record = std::max(record, value);
    }
    // Invariant: of the ends read so far those kept, at the end, are the records at the steep end.
    std::size_t first = kept;
    record = Ratio::kLowest;
    for (std::size_t i = kept; i-- > 0;) {
      const Vertex v = hull[i];
      const Product value = steep.den * v.y - steep.num * v.x;
      hull[first - 1] = v;
      first -= value > record;
      record = std::max(record, value);
    }
    // Invariant: the first `size` are the upper hull of the ends read so far, its slopes descend.
    std::size_t size = 0;
    for (std::size_t i = first; i < kept; ++i) {
      const Vertex v = hull[i];
      while (size > 1 && !turns_down<A>(hull[size - 2], hull[size - 1], v)) --size;
      hull[size++] = v;
    }
    hull_size_[side] = size;
  }

  // The slopes of the blocks around the query with label 1 and, from there on, with label 0.
  Ends tangents() const {
    BlockSearch<A> search(hull_[kLeft].data(), hull_size_[kLeft], hull_[kRight].data(),
                          hull_size_[kRight]);
    const Ratio p1 = search.slope(weight_, weight_);
    const Ratio p0 = search.slope(weight_, 0);
    return ends(p1, p0);
  }

  Sum weight_ = 1;
  std::uint64_t random_ = 1;
  std::size_t first_ = 0;
  std::size_t last_ = 0;
  const double* cuts_ = nullptr;
  Range whole_{};
  const double* levels_ = nullptr;
  std::size_t level_count_ = 0;
  std::array<Items<A>, 2> items_;
  std::array<std::vector<Vertex>, 2> hull_;
  std::array<std::size_t, 2> hull_size_{};
  std::vector<double> sample_;
  std::vector<Span> spans_;
  std::vector<CdfStep> steps_;
};

}  // namespace abers
