// A bucket of neighbouring score groups and the lower hull of their points.
//
// Governing rule: coordinates are relative to the start of the bucket, and each group owns the
// point at its end; so a bucket knows nothing of its neighbours and buckets share no points.
//
// Invariants: `score` ascends strictly; (x, y) are the cumulative sums of the groups, x strictly
// ascending; `hull` lists the indices of the vertices of the lower hull of these points, the first
// and the last point among them, with strictly increasing slopes.
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

// What a change did to a hull: outside [first, last], both of them scores, it is as it was, but for
// a shift. `leaving` is the slope of the edge to the right of the vertex at `first`, `arriving` that
// of the edge to the left of the vertex at `last`; NaN where there is no such vertex or it is not
// known, infinite where there is no such edge.
struct Change {
  double first;
  double last;
  double leaving;
  double arriving;
};

template <class A>
class Leaf {
 public:
  using Sum = typename A::Sum;
  using Stored = typename A::Stored;
#ifdef ABERS_CHECK
  static constexpr std::size_t kCapacity = 8;  // so that small tests grow large trees
#else
#ifndef CAP
#define CAP 256
#endif
  static constexpr std::size_t kCapacity = CAP;
#endif

  std::size_t size() const { return score_.size(); }
  double score(std::size_t i) const { return score_[i]; }
  Point<A> point(std::size_t i) const {
    return {static_cast<Sum>(x_[i]), static_cast<Sum>(y_[i]), score_[i]};
  }
  Point<A> total() const { return point(size() - 1); }
  const std::vector<std::uint16_t>& hull() const { return hull_; }

  // Weight and weight of label 1 of one group.
  Direction<A> increment(std::size_t i) const {
    if (i == 0) return {static_cast<Sum>(x_[0]), static_cast<Sum>(y_[0])};
    return between<A>(point(i - 1), point(i));
  }

  double slope_between(std::size_t i, std::size_t k) const {
    return steepness(between<A>(point(i), point(k)));
  }

  // Index of the first group whose score is not below `score`; without branches on the data.
  std::size_t lower_bound(double score) const {
    const double* base = score_.data();
    std::size_t n = size();
    while (n > 1) {
      const std::size_t half = n / 2;
      base += (base[half - 1] < score) ? half : 0;
      n -= half;
    }
    return static_cast<std::size_t>(base - score_.data()) + (n == 1 && *base < score ? 1 : 0);
  }

  // Number of hull vertices before point i.
  std::size_t vertices_before(std::size_t i) const {
    return static_cast<std::size_t>(std::lower_bound(hull_.begin(), hull_.end(), i) -
                                    hull_.begin());
  }

  // Appends a group with a score above all others; the hull is due afterwards (`scan`).
  void append(double score, Sum dx, Sum dy) {
    const Sum x = size() ? static_cast<Sum>(x_.back()) : 0;
    const Sum y = size() ? static_cast<Sum>(y_.back()) : 0;
    score_.push_back(score);
    x_.push_back(static_cast<Stored>(x + dx));
    y_.push_back(static_cast<Stored>(y + dy));
  }

  // Whether surely none of the points [from, to) lies on or below a line, given by a point relative
  // to the start of the bucket and a slope. Rounding can only make the answer no.
  bool clear(std::size_t from, std::size_t to, double x, double y, double slope) const {
    const double error = 1e-14 * (std::abs(x) + std::abs(y) + to_double(x_.back()) + 1.0);
    const double height = y - slope * x + error;
    unsigned below = 0;  // a sum of flags, which compilers turn into vector code
    for (std::size_t i = from; i < to; ++i) {
      below |= static_cast<unsigned>(to_double(y_[i]) - slope * to_double(x_[i]) <= height);
    }
    return below == 0;
  }

  // Adds (dx, dy) to the group at `score`, making or dropping the group as needed, and repairs the
  // hull. Precondition: what is taken away is there.
  Change change(double score, Sum dx, Sum dy) {
    const std::size_t at = lower_bound(score);
    const std::size_t left = vertices_before(at);  // these vertices do not move
    if (at == size() || score_[at] != score) insert_group(at, left, score);
    for (std::size_t i = at; i < size(); ++i) x_[i] = static_cast<Stored>(x_[i] + dx);
    for (std::size_t i = at; i < size(); ++i) y_[i] = static_cast<Stored>(y_[i] + dy);
    if (increment(at).dx != 0) return repair(at, left, score, {dx, dy}, false);
    const bool vertex = left < hull_.size() && hull_[left] == at;
    erase_group(at, left);
    return repair(at, left, score, {dx, dy}, vertex);
  }

  // Computes the hull from nothing: the scan of Graham, left to right.
  void scan() {
    hull_.clear();
    for (std::size_t i = 0; i < size(); ++i) {
      while (hull_.size() > 1 && bends_down(hull_[hull_.size() - 2], hull_.back(), i)) {
        hull_.pop_back();
      }
      hull_.push_back(static_cast<std::uint16_t>(i));
    }
    hull_.shrink_to_fit();
  }

  // Moves the upper half of the groups into a new bucket.
  Leaf split() {
    const std::size_t half = size() / 2;
    Leaf upper;
    upper.reserve(size() - half);
    for (std::size_t i = half; i < size(); ++i) {
      const auto step = increment(i);
      upper.append(score_[i], static_cast<Sum>(step.dx), static_cast<Sum>(step.dy));
    }
    score_.resize(half);
    x_.resize(half);
    y_.resize(half);
    shrink();
    scan();
    upper.scan();
    return upper;
  }

  // Appends all groups of the bucket to the right of this one.
  void absorb(const Leaf& upper) {
    reserve(size() + upper.size());
    for (std::size_t i = 0; i < upper.size(); ++i) {
      const auto step = upper.increment(i);
      append(upper.score_[i], static_cast<Sum>(step.dx), static_cast<Sum>(step.dy));
    }
    scan();
  }

  void reserve(std::size_t n) {
    score_.reserve(n);
    x_.reserve(n);
    y_.reserve(n);
  }

  std::size_t bytes() const {
    return sizeof(*this) + score_.capacity() * sizeof(double) +
           (x_.capacity() + y_.capacity()) * sizeof(Stored) +
           hull_.capacity() * sizeof(std::uint16_t);
  }

 private:
  static constexpr std::size_t kGrowth = kCapacity / 8;  // groups of slack

  // Whether the middle point lies on or above the line through the other two.
  bool bends_down(std::size_t a, std::size_t b, std::size_t c) const {
    return compare<A>(between<A>(point(a), point(b)), between<A>(point(b), point(c))) >= 0;
  }

  void insert_group(std::size_t at, std::size_t left, double score) {
    if (size() == score_.capacity()) reserve(size() + kGrowth);
    const Stored x = at ? x_[at - 1] : 0;
    const Stored y = at ? y_[at - 1] : 0;
    score_.insert(score_.begin() + static_cast<std::ptrdiff_t>(at), score);
    x_.insert(x_.begin() + static_cast<std::ptrdiff_t>(at), x);
    y_.insert(y_.begin() + static_cast<std::ptrdiff_t>(at), y);
    for (std::size_t k = left; k < hull_.size(); ++k) ++hull_[k];
  }

  void erase_group(std::size_t at, std::size_t left) {
    score_.erase(score_.begin() + static_cast<std::ptrdiff_t>(at));
    x_.erase(x_.begin() + static_cast<std::ptrdiff_t>(at));
    y_.erase(y_.begin() + static_cast<std::ptrdiff_t>(at));
    if (left < hull_.size() && hull_[left] == at) {
      hull_.erase(hull_.begin() + static_cast<std::ptrdiff_t>(left));
    }
    for (std::size_t k = left; k < hull_.size(); ++k) --hull_[k];
  }

  // The hull while it is repaired: the first `kept` vertices of the old one, then fresh ones.
  struct Chain {
    std::size_t kept = 0;
    std::size_t fresh = 0;
    std::array<std::uint16_t, kCapacity + 1> items;

    std::size_t size() const { return kept + fresh; }
    void push(std::size_t i) { items[fresh++] = static_cast<std::uint16_t>(i); }
    void pop() { --(fresh ? fresh : kept); }
  };

  // The vertex `back` places before the end of a chain.
  std::size_t vertex(const Chain& chain, std::size_t back) const {
    return back < chain.fresh ? chain.items[chain.fresh - 1 - back]
                              : hull_[chain.size() - 1 - back];
  }

  // Whether point i comes to lie so that the last vertex of the chain is one no more.
  bool hides_last(const Chain& chain, std::size_t i) const {
    return chain.size() > 1 && bends_down(vertex(chain, 1), vertex(chain, 0), i);
  }

  void read(Chain& chain, std::size_t i) const {
    while (hides_last(chain, i)) chain.pop();
    chain.push(i);
  }

  // Repairs the hull after the points from `at` on have moved by `moved`. Before, the first `left`
  // vertices are the hull of the points up to the last of them, and the others that of the points
  // from the first of them on; only points between these two can become vertices, and only
  // vertices next to them can cease to be.
  //
  // Invariant of all loops: the chain is the hull of all points read.
  Change repair(std::size_t at, std::size_t left, double score, const Direction<A>& moved,
                bool lost_vertex) {
    Chain chain;
    chain.kept = left;
    const bool bounded = left < hull_.size();
    std::size_t settled = bounded ? hull_[left] : size() - 1;  // edges right of it are as before
    std::size_t begin = left ? hull_[left - 1] + std::size_t{1} : 0;
    std::size_t end = size() ? settled + 1 : 0;
    if (left && bounded && !lost_vertex) {
      // Below the chord of one edge only the points on one side can appear: on the left if the
      // chord turned up, on the right if it turned down; most often not even those.
      const Point<A> from = point(hull_[left - 1]);
      const Direction<A> chord = between<A>(from, point(settled));
      const auto turn = compare<A>(moved, chord);
      if (turn > 0) {
        end = at;
      } else {
        begin = at;
        end = settled;
      }
      if (turn != 0 && !clear(begin, end, to_double(from.x), to_double(from.y),
                              steepness(chord))) {
        for (std::size_t i = begin; i < end; ++i) read(chain, i);
      }
      read(chain, settled);
    } else {
      for (std::size_t i = begin; i < end; ++i) read(chain, i);
    }
    std::size_t next = left + bounded;  // first old vertex that has not been read
    while (next < hull_.size() && hides_last(chain, hull_[next])) {
      settled = hull_[next++];
      read(chain, settled);
    }
    const Change change = summary(chain, settled, score);
    splice(chain, next);
    return change;
  }

  Change summary(const Chain& chain, std::size_t settled, double score) const {
    constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
    constexpr double none = std::numeric_limits<double>::infinity();
    Change change{score, score, unknown, unknown};
    if (chain.kept) {
      const std::size_t last_kept = hull_[chain.kept - 1];
      change.first = score_[last_kept];
      change.leaving = chain.fresh ? slope_between(last_kept, chain.items[0]) : none;
    }
    if (size() && score_[settled] >= score) {
      change.last = score_[settled];
      change.arriving = chain.size() > 1 ? slope_between(vertex(chain, 1), settled) : -none;
    }
    return change;
  }

  static double to_double(Sum sum) { return static_cast<double>(sum); }
  static double to_double(std::uint32_t sum) {  // counts fit a signed number, which converts faster
    return static_cast<double>(static_cast<std::int32_t>(sum));
  }

  // Replaces the old vertices from the first one not kept up to `next` by the fresh ones.
  void splice(const Chain& chain, std::size_t next) {
    const std::size_t common = std::min(next - chain.kept, chain.fresh);
    const auto fresh = chain.items.begin();
    const auto middle = std::copy_n(
        fresh, common, hull_.begin() + static_cast<std::ptrdiff_t>(chain.kept));
    if (common < chain.fresh) {
      hull_.insert(middle, fresh + common, fresh + chain.fresh);
    } else {
      hull_.erase(middle, hull_.begin() + static_cast<std::ptrdiff_t>(next));
    }
  }

  void shrink() {
    score_.shrink_to_fit();
    x_.shrink_to_fit();
    y_.shrink_to_fit();
  }

  std::vector<double> score_;
  std::vector<Stored> x_;
  std::vector<Stored> y_;
  std::vector<std::uint16_t> hull_;
};

}  // namespace abers
