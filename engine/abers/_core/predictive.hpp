// Predictive CDFs at one score, exactly: divide and conquer over thresholds.
//
// Governing rule: at a threshold t the answer is binary Venn-Abers on 1{label > t}, and its two
// probabilities fall as t grows. So a range of thresholds whose ends are known needs only what can
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

  enum Side : std::uint8_t { kLeft = 0, kRight = 1 };
  enum Half : std::uint8_t { kBelow = 0, kAbove = 1 };

  // Begins a query of that weight; observations follow, from the query outwards on each side, the
  // group of the query's own score first on the right.
  void begin(Sum weight) {
    weight_ = weight;
    random_ = 1;
    smallest_ = std::numeric_limits<double>::infinity();
    largest_ = -smallest_;
    totals_ = {};
    for (const Side side : {kLeft, kRight}) {
      arena_[side].labels = 0;
      arena_[side].marks = 0;
    }
  }

  void add(Side side, double label, Sum weight) {
    arena_[side].append(Label{label, static_cast<Stored>(weight)});
    totals_[side] += weight;
    smallest_ = std::min(smallest_, label);
    largest_ = std::max(largest_, label);
  }

  // Ends a group of equal scores: here a stretch may end.
  void mark(Side side) {
    arena_[side].append(Mark{static_cast<Stored>(totals_[side]), 0,
                             static_cast<std::uint32_t>(arena_[side].labels)});
  }

  double smallest() const { return smallest_; }
  double largest() const { return largest_; }

  // Solves for all steps, the first of them before all thresholds. `own` is the weight of the
  // group at the query's score. With levels only the steps where a CDF reaches one are sure to
  // be there.
  const std::vector<CdfStep>& solve(Sum own, const double* levels, std::size_t count) {
    levels_ = levels;
    level_count_ = count;
    steps_.clear();
    const Product w = weight_;
    const Product upto = static_cast<Product>(totals_[kLeft]) + own;
    const Ends before = ends({1, 1}, {upto, upto + w});
    steps_.push_back({-std::numeric_limits<double>::infinity(), before.lower, before.upper});
    if (smallest_ > largest_) return steps_;  // nothing is held
    const Ends after = ends({w, static_cast<Product>(totals_[kRight]) + w}, {0, 1});
    Range whole{steps_[0].threshold, -steps_[0].threshold, before, after, {}};
    for (const Side side : {kLeft, kRight}) {
      whole.stretch[side] = {0, arena_[side].marks, 0, arena_[side].labels};
    }
    if (wanted(before, after)) split(whole, 0);
    return steps_;
  }

  std::size_t bytes() const {
    return arena_[kLeft].bytes() + arena_[kRight].bytes() + steps_.capacity() * sizeof(CdfStep);
  }

 private:
  // A label that is a hit at some thresholds of the range and none at others.
  struct Label {
    double value;
    Stored weight;
  };

  // An end that a stretch may have: weight so far, weight of the hits that are hits in the whole
  // range, and the end of its open labels.
  struct Mark {
    Stored x;
    Stored y;
    std::uint32_t end;
  };

  struct Ratio {
    Product num;
    Product den;

    Ratio complement() const { return {den - num, den}; }
  };

  // Both probabilities at a threshold, and the CDFs they make.
  struct Ends {
    Ratio p1;
    Ratio p0;
    double lower;
    double upper;
  };

  struct Vertex {
    Sum x;
    Sum y;
  };

  struct Stretch {  // a part of an arena
    std::size_t first_mark, last_mark, first_label, last_label;

    std::size_t labels() const { return last_label - first_label; }
  };

  // Thresholds between two at which the answer is known; labels inside are open.
  struct Range {
    double low, high;
    Ends at_low, at_high;
    std::array<Stretch, 2> stretch;
  };

  // Below all values y * den - x * num.
  static constexpr Product kLowest =
      -((static_cast<Product>(1) << (8 * sizeof(Product) - 2)) - 1) * 2;

  // Stacked stretches, those of a range above those of the range it is part of. Memory is kept
  // from query to query, and grows before it is written to by pointer.
  struct Arena {
    std::vector<Label> label;
    std::vector<Mark> mark;
    std::size_t labels = 0;
    std::size_t marks = 0;

    void reserve(std::size_t more_labels, std::size_t more_marks) {
      if (label.size() < labels + more_labels) label.resize(2 * (labels + more_labels));
      if (mark.size() < marks + more_marks) mark.resize(2 * (marks + more_marks));
    }

    void append(const Label& l) {
      if (labels == label.size()) label.resize(std::max<std::size_t>(64, 2 * labels));
      label[labels++] = l;
    }

    void append(const Mark& m) {
      if (marks == mark.size()) mark.resize(std::max<std::size_t>(64, 2 * marks));
      mark[marks++] = m;
    }

    std::size_t bytes() const {
      return label.capacity() * sizeof(Label) + mark.capacity() * sizeof(Mark);
    }
  };

  Ends ends(const Ratio& p1, const Ratio& p0) const {
    return {p1, p0, rounded_ratio(static_cast<Product>(p1.den - p1.num), p1.den),
            rounded_ratio(static_cast<Product>(p0.den - p0.num), p0.den)};
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

  // Solves the thresholds inside a range in which at least one label is open.
  void split(const Range& range, int depth) {
    const double t = pivot(range, depth);
    make_hull<kLeft>(t, range);
    make_hull<kRight>(t, range);
    const Ends at = tangents();
    if (wanted(range.at_low, at)) {
      narrow_to<kBelow>({range.low, t, range.at_low, at, {}}, range, depth);
    }
    if (wanted(at, range.at_high)) {
      narrow_to<kAbove>({t, range.high, at, range.at_high, {}}, range, depth);
    }
  }

  // Solves a range from what is kept for a wider one, and the step at its high end.
  template <Half half>
  void narrow_to(Range range, const Range& wider, int depth) {
    const std::array<std::size_t, 4> top{arena_[0].labels, arena_[0].marks, arena_[1].labels,
                                         arena_[1].marks};
    range.stretch[kLeft] = narrow<kLeft, half>(wider.stretch[kLeft], range);
    range.stretch[kRight] = narrow<kRight, half>(wider.stretch[kRight], range);
    if (range.stretch[kLeft].labels() + range.stretch[kRight].labels() > 0) {
      split(range, depth + 1);
    } else {
      steps_.push_back({range.high, range.at_high.lower, range.at_high.upper});
    }
    arena_[0].labels = top[0];
    arena_[0].marks = top[1];
    arena_[1].labels = top[2];
    arena_[1].marks = top[3];
  }

  // Keeps what can matter for the thresholds of the wider range below t, or above it. Between two
  // marks the value y - slope * x changes by at most what it does with all open labels hits and
  // the least slope, and at least by what it does with no open label a hit and the greatest. So a
  // mark that is no record of `most` is never better than an earlier one, and one whose `least`
  // does not exceed that of a later mark is never better than that. Both passes go without
  // branches, which could not be predicted.
  template <Side side, Half half>
  Stretch narrow(const Stretch& from, const Range& range) {
    Arena& arena = arena_[side];
    const std::size_t count = from.last_mark - from.first_mark;
    arena.reserve(from.labels() + 1, count + 1);
    const Ratio gentle = gentlest<side>(range);
    const Ratio steep = steepest<side>(range);
    const double t = half == kBelow ? range.high : range.low;
    const Label* const labels = arena.label.data();
    const Label* read = labels + from.first_label;
    Label* write = arena.label.data() + arena.labels;
    const Mark* const wider = arena.mark.data() + from.first_mark;
    Mark* const marks = arena.mark.data() + arena.marks;
    std::size_t kept = 0;
    Sum hits = 0;  // labels open in the wider range that are hits throughout this one
    Sum open = 0;
    Product record = kLowest;
    // Invariant: of the marks read so far those kept are the records of `most`.
    for (std::size_t i = 0; i < count; ++i) {
      for (const Label* const end = labels + wider[i].end; read < end; ++read) {
        const double value = read->value;
        const Stored weight = read->weight;
        const bool opens = half == kBelow ? value < t : value > t;
        open += opens ? weight : 0;
        // A label at or beyond t: above all thresholds left, or below them.
        if constexpr ((side == kLeft) == (half == kBelow)) hits += opens ? 0 : weight;
        write->value = value;
        write->weight = weight;
        write += opens;
      }
      const Stored x = wider[i].x;
      const Sum y = wider[i].y + hits;
      const Product most = gentle.den * (y + open) - gentle.num * x;
      marks[kept].x = x;
      marks[kept].y = static_cast<Stored>(y);
      marks[kept].end = static_cast<std::uint32_t>(write - labels);
      kept += most > record;
      record = std::max(record, most);
    }
    const std::size_t last_label = marks[kept - 1].end;
    // Invariant: of the marks read so far those kept, at the end, are the records of `least`.
    std::size_t first = kept;
    record = kLowest;
    for (std::size_t i = kept; i-- > 0;) {
      const Stored x = marks[i].x;
      const Stored y = marks[i].y;
      const Product least = steep.den * y - steep.num * x;
      marks[first - 1].x = x;
      marks[first - 1].y = y;
      marks[first - 1].end = marks[i].end;
      first -= least > record;
      record = std::max(record, least);
    }
    const Stretch found{arena.marks + first, arena.marks + kept, arena.labels, last_label};
    arena.marks = found.last_mark;
    arena.labels = found.last_label;
    return found;
  }

  // The least and the greatest slope that a side can have in a range: p1 at the low end is the
  // greatest probability there, p0 at the high end the least.
  template <Side side>
  static Ratio gentlest(const Range& range) {
    return side == kLeft ? range.at_high.p0 : range.at_low.p1.complement();
  }

  template <Side side>
  static Ratio steepest(const Range& range) {
    return side == kLeft ? range.at_low.p1 : range.at_high.p0.complement();
  }

  // An open label near the median of the open labels, from a sample; the median itself should
  // samples of hostile data keep failing.
  double pivot(const Range& range, int depth) {
    constexpr std::size_t kSample = 15;
    constexpr int kPatience = 60;
    const Stretch& left = range.stretch[kLeft];
    const Stretch& right = range.stretch[kRight];
    const std::size_t n = left.labels() + right.labels();
    const auto label = [&](std::size_t i) {
      return i < left.labels() ? arena_[kLeft].label[left.first_label + i].value
                               : arena_[kRight].label[right.first_label + i - left.labels()].value;
    };
    sample_.clear();
    if (n <= kSample || depth > kPatience) {
      for (std::size_t i = 0; i < n; ++i) sample_.push_back(label(i));
    } else {
      for (std::size_t i = 0; i < kSample; ++i) {
        random_ = random_ * 6364136223846793005u + 1442695040888963407u;
        sample_.push_back(label((random_ >> 33) % n));
      }
    }
    const auto middle = sample_.begin() + static_cast<std::ptrdiff_t>(sample_.size() / 2);
    std::nth_element(sample_.begin(), middle, sample_.end());
    return *middle;
  }

  // The upper hull of a side's marks at a threshold, where its slopes are in the range.
  template <Side side>
  void make_hull(double t, const Range& range) {
    const Stretch& part = range.stretch[side];
    const Arena& arena = arena_[side];
    const Ratio gentle = gentlest<side>(range);
    const Ratio steep = steepest<side>(range);
    std::vector<Vertex>& hull = hull_[side];
    hull.resize(std::max(hull.size(), part.last_mark - part.first_mark + 1));
    const Label* const labels = arena.label.data();
    const Label* read = labels + part.first_label;
    std::size_t kept = 0;
    Sum hits = 0;
    Product record = kLowest;
    // Invariant: of the marks read so far those kept are the records at the gentle end.
    for (std::size_t i = part.first_mark; i < part.last_mark; ++i) {
      const Mark& m = arena.mark[i];
      for (const Label* const end = labels + m.end; read < end; ++read) {
        const bool above = read->value > t;
        hits += above == (side == kLeft) ? read->weight : 0;
      }
      const Vertex v{static_cast<Sum>(m.x), static_cast<Sum>(m.y) + hits};
      const Product value = gentle.den * v.y - gentle.num * v.x;
      hull[kept] = v;
      kept += value > record;
      record = std::max(record, value);
    }
    // Invariant: of the marks read so far those kept, at the end, are the records at the steep end.
    std::size_t first = kept;
    record = kLowest;
    for (std::size_t i = kept; i-- > 0;) {
      const Vertex v = hull[i];
      const Product value = steep.den * v.y - steep.num * v.x;
      hull[first - 1] = v;
      first -= value > record;
      record = std::max(record, value);
    }
    // Invariant: the first `size` are the upper hull of the marks read so far, its slopes descend.
    std::size_t size = 0;
    for (std::size_t i = first; i < kept; ++i) {
      const Vertex v = hull[i];
      while (size > 1 && !turns_down(hull[size - 2], hull[size - 1], v)) --size;
      hull[size++] = v;
    }
    hull_size_[side] = size;
  }

  // Whether the slope falls at b.
  static bool turns_down(const Vertex& a, const Vertex& b, const Vertex& c) {
    return static_cast<Product>(b.y - a.y) * (c.x - b.x) >
           static_cast<Product>(c.y - b.y) * (b.x - a.x);
  }

  // The slopes of the blocks around the query with label 1 and with label 0. A probability is
  // lowered from 1 until it is the slope of the block that is best for it; on the way the left
  // stretch grows and the right one shrinks, an edge at a time, the steepest first.
  Ends tangents() const {
    std::size_t a = 0;
    std::size_t c = hull_size_[kRight] - 1;
    const Ratio p1 = tangent(a, c, weight_);
    const Ratio p0 = tangent(a, c, 0);
    return ends(p1, p0);
  }

  // Invariant of the loop: a and c are best for every slope from the answer's up to that of the
  // edge taken last.
  Ratio tangent(std::size_t& a, std::size_t& c, Sum own_hits) const {
    const std::vector<Vertex>& left = hull_[kLeft];
    const std::vector<Vertex>& right = hull_[kRight];
    while (true) {
      const Product x = static_cast<Product>(left[a].x) + right[c].x + weight_;
      const Product y = static_cast<Product>(left[a].y) + (right[c].x - right[c].y) + own_hits;
      Vertex growth{0, 0};
      Vertex shrinking{0, 0};
      bool grows = false;
      bool shrinks = false;
      if (a + 1 < hull_size_[kLeft]) {
        growth = {left[a + 1].x - left[a].x, left[a + 1].y - left[a].y};
        grows = growth.y * x > y * growth.x;
      }
      if (c > 0) {
        shrinking.x = right[c].x - right[c - 1].x;
        shrinking.y = shrinking.x - (right[c].y - right[c - 1].y);
        shrinks = shrinking.y * x > y * shrinking.x;
      }
      if (!grows && !shrinks) return {y, x};
      if (grows && shrinks) {
        grows = static_cast<Product>(growth.y) * shrinking.x >=
                static_cast<Product>(shrinking.y) * growth.x;
      }
      if (grows) {
        ++a;
      } else {
        --c;
      }
    }
  }

  Sum weight_ = 1;
  std::uint64_t random_ = 1;
  double smallest_ = 0;
  double largest_ = 0;
  std::array<Sum, 2> totals_{};
  const double* levels_ = nullptr;
  std::size_t level_count_ = 0;
  std::array<Arena, 2> arena_;
  std::array<std::vector<Vertex>, 2> hull_;
  std::array<std::size_t, 2> hull_size_{};
  std::vector<double> sample_;
  std::vector<CdfStep> steps_;
};

}  // namespace abers
