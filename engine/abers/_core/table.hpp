// All that a diagram predicts for queries of the same weights.
//
// A query with label 1 is fitted as if it came right before the next group, one
// with label 0 as if it came right after the last, so k groups have k + 1 fits for either label;
// all of them cost one scan of the diagram, and a query the search for its place.
//
// Why the places: the increment of a query with label 1 is the steepest there can be, so it is
// pooled with what follows it, a tie among the rest. The scan is that of Algorithms 1 to 4 of
// Vovk, Petej & Fedorova (2015).
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>
#include <vector>

#include "arithmetic.hpp"

namespace abers {

// Calls emit(i, d) with the direction d of the fit of a query with label 1, or the greatest of all,
// between the points i and i + 1, for each of them; points[0] is the origin, and the query's own
// increment no flatter than any other.
//
// The points up to the query are moved back by the query's own increment. Invariant: the line from
// `a`, one of these, through the point c > i (or the last) has no other of them, and no point from
// i on, below it. The next moved point lies below or becomes nothing; below, it is the new `a`,
// and as it lies below the line that all later points are above, the new c is not before the old.
template <class A, class Emit>
void fits_of_greatest(const std::vector<Point<A>>& points, const Point<A>& own, const Emit& emit) {
  const std::size_t last = points.size() - 1;
  std::vector<std::size_t> next(points.size(), last);  // the vertex after i of the hull from i on
  for (std::size_t i = last; i-- > 0;) {
    std::size_t j = i + 1;
    while (j != last && compare<A>(between<A>(points[j], points[next[j]]),
                                   between<A>(points[i], points[j])) <= 0) {
      j = next[j];
    }
    next[i] = j;
  }
  Point<A> a{};
  std::size_t c = 0;
  for (std::size_t i = 0; i <= last; ++i) {
    const Point<A> moved{points[i].x - own.x, points[i].y - own.y, points[i].score};
    if (i == 0 || compare<A>(between<A>(a, moved), between<A>(a, points[c])) < 0) {
      a = moved;
      c = std::max(c, i);
      while (c != last &&
             compare<A>(between<A>(points[c], points[next[c]]), between<A>(a, points[c])) <= 0) {
        c = next[c];
      }
    }
    emit(i, between<A>(a, points[c]));
  }
}

// The points of the same diagram with the scores in the opposite order, and y counted down from a
// slope: what is the least label here is the greatest there.
template <class A>
std::vector<Point<A>> turned(std::vector<Point<A>> points, typename A::Sum slope) {
  const Point<A> end = points.back();
  for (auto& p : points) p = {end.x - p.x, slope * (end.x - p.x) - (end.y - p.y), p.score};
  std::reverse(points.begin(), points.end());
  return points;
}

// Holds doubles alone: it does not depend on how weights are counted.
class Table {
 public:
  // From the points of a diagram, the origin first, each with the score of the group it ends.
  template <class A>
  Table(const std::vector<Point<A>>& points, typename A::Sum zero, typename A::Sum one)
      : Table(
            points, {zero, zero, 0.0}, points, {one, one, 0.0}, 1,
            [](const Direction<A>& fit) { return rounded_ratio(fit.dx - fit.dy, fit.dx); },
            [](const Direction<A>& fit) { return rounded_ratio(fit.dy, fit.dx); }) {}

  // From the points of two diagrams of the same scores, one for each end. The query's increment
  // `least` is that of the first diagram `turned` at `slope`; low(fit) is the value of its fit, and
  // high(fit) that of a fit of the second.
  template <class A, class Low, class High>
  Table(const std::vector<Point<A>>& lows, const Point<A>& least,
        const std::vector<Point<A>>& highs, const Point<A>& greatest, typename A::Sum slope,
        const Low& low, const High& high) {
    using D = Direction<A>;
    const std::size_t last = highs.size() - 1;
    scores_.resize(last);
    for (std::size_t i = 0; i < last; ++i) scores_[i] = highs[i + 1].score;
    p0_.resize(last + 1);
    p1_.resize(last + 1);
    D before{0, 0};  // neighbours mostly have the same fit, and a ratio takes long
    double value = 0;
    const auto remembered = [&](const D& fit, const auto& evaluate) {
      if (fit.dx != before.dx || fit.dy != before.dy) value = evaluate(before = fit);
      return value;
    };
    fits_of_greatest<A>(highs, greatest,
                        [&](std::size_t i, const D& fit) { p1_[i] = remembered(fit, high); });
    before = {0, 0};
    fits_of_greatest<A>(turned<A>(lows, slope), least,
                        [&](std::size_t i, const D& fit) { p0_[last - i] = remembered(fit, low); });
    keep_steps();
  }

  void predict(const double* scores, std::size_t count, double* p0, double* p1) const {
    for (std::size_t i = 0; i < count; i += kLanes) {
      const std::size_t lanes = std::min(kLanes, count - i);
      std::array<double, kLanes> queries{};
      std::copy_n(scores + i, lanes, queries.begin());
      const auto before = places(queries);
      for (std::size_t j = 0; j < lanes; ++j) {
        const std::size_t at = before[j];
        p1[i + j] = p1_[at];
        p0[i + j] = p0_[at + (at < scores_.size() && scores_[at] == queries[j])];
      }
    }
  }

  std::size_t bytes() const {
    return (scores_.capacity() + p0_.capacity() + p1_.capacity()) * sizeof(double);
  }

 private:
  static constexpr std::size_t kLanes = 16;  // searches side by side hide each other's waiting
  using Places = std::array<std::size_t, kLanes>;

  // Drops the scores at which neither probability changes: mostly few are left.
  void keep_steps() {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < scores_.size(); ++i) {
      if (p0_[i + 1] == p0_[kept] && p1_[i + 1] == p1_[kept]) continue;
      scores_[kept++] = scores_[i];
      p0_[kept] = p0_[i + 1];
      p1_[kept] = p1_[i + 1];
    }
    scores_.resize(kept);
    for (auto* p : {&p0_, &p1_}) p->resize(kept + 1);
    for (auto* column : {&scores_, &p0_, &p1_}) column->shrink_to_fit();
  }

  // How many scores lie below each query. Invariant: from `at` to `at + rest` of them.
  Places places(const std::array<double, kLanes>& queries) const {
    Places at{};
    for (std::size_t rest = scores_.size(); rest > 0;) {
      const std::size_t half = (rest + 1) / 2;
      for (std::size_t j = 0; j < kLanes; ++j) {
        at[j] += scores_[at[j] + half - 1] < queries[j] ? half : 0;
      }
      rest -= half;
    }
    return at;
  }

  std::vector<double> scores_;  // at which a probability changes
  std::vector<double> p0_;      // of queries that so many scores are at or below
  std::vector<double> p1_;      // of queries that so many scores are below
};

}  // namespace abers
