// A bucket of neighbouring score groups and the lower hull of their points.
//
// Coordinates are relative to the start of the bucket, and each group owns the
// point at its end; so a bucket knows nothing of its neighbours and buckets share no points.
//
// All arrays of a bucket lie in one block of memory, since at a million observations nothing costs
// as much as memory that is not in the cache.
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
#include <memory>
#include <span>

#include "arithmetic.hpp"

namespace abers {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

// What a change did to a hull: outside [first, last], both of them scores, it is as it was, but for
// a shift. `leaving` is the slope of the edge to the right of the vertex at `first`, `arriving`
// that of the edge to the left of the vertex at `last`; NaN where there is no such vertex or it is
// not known, infinite where there is no such edge.
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
  using Index = std::uint8_t;
#ifdef ABERS_CHECK
  static constexpr std::size_t kCapacity = 8;  // so that small tests grow large trees
#else
  static constexpr std::size_t kCapacity = 128;  // repairs cost more above, the tree below
#endif

  std::size_t size() const { return size_; }
  double score(std::size_t i) const { return scores()[i]; }
  Point<A> point(std::size_t i) const {
    return {static_cast<Sum>(xs()[i]), static_cast<Sum>(ys()[i]), scores()[i]};
  }
  Point<A> total() const { return point(size() - 1); }
  std::span<const Index> hull() const { return {indices(), hull_size_}; }

  // Weight and weight of label 1, or sum of labels, of one group.
  Direction<A> increment(std::size_t i) const {
    if (i == 0) return {static_cast<Sum>(xs()[0]), static_cast<Sum>(ys()[0])};
    return between<A>(point(i - 1), point(i));
  }

  double slope_between(std::size_t i, std::size_t k) const {
    return steepness(between<A>(point(i), point(k)));
  }

  // Asks for all lines of the block at once, instead of waiting for one after the other: a fifth
  // of a call that comes alone, with other work in between.
  void prefetch() const {
    constexpr std::size_t line = 64;
    const std::size_t bytes = capacity_ * (sizeof(double) + 2 * sizeof(Stored) + sizeof(Index));
    for (std::size_t at = 0; at < bytes; at += line) __builtin_prefetch(block_.get() + at);
  }

  // Index of the first group with a score not below `score`; without branches on the data.
  std::size_t lower_bound(double score) const {
    if (size_ == 0) return 0;
    const double* base = scores();
    std::size_t n = size_;
    while (n > 1) {
      const std::size_t half = n / 2;
      base += (base[half - 1] < score) ? half : 0;
      n -= half;
    }
    return static_cast<std::size_t>(base - scores()) + (*base < score ? 1 : 0);
  }

  // Number of hull vertices before point i; there are few, so counting beats bisecting.
  std::size_t vertices_before(std::size_t i) const {
    const Index* const vertices = indices();
    std::size_t count = 0;
    for (std::size_t k = 0; k < hull_size_; ++k) count += vertices[k] < i;
    return count;
  }

  // Appends a group with a score above all others; the hull is due afterwards (`scan`).
  void append(double score, Sum dx, Sum dy) {
    if (size_ == capacity_) reserve(size_ + kGrowth);
    const std::size_t i = size_++;
    scores()[i] = score;
    xs()[i] = static_cast<Stored>((i ? xs()[i - 1] : 0) + dx);
    ys()[i] = static_cast<Stored>((i ? ys()[i - 1] : 0) + dy);
  }

  // Whether surely none of the points [from, to) lies on or below a line, given by a point relative
  // to the start of the bucket and a slope. Rounding can only make the answer no.
  bool clear(std::size_t from, std::size_t to, double x, double y, double slope) const {
    const double across = std::abs(x) + to_double(xs()[size_ - 1]);
    const double along = std::abs(y) + to_double(ys()[size_ - 1]);
    const double error = 1e-14 * (slope * across + along + 1.0);
    const double height = y - slope * x + error;
    unsigned below = 0;  // a sum of flags, which compilers turn into vector code
    for (std::size_t i = from; i < to; ++i) {
      below |= static_cast<unsigned>(to_double(ys()[i]) - slope * to_double(xs()[i]) <= height);
    }
    return below == 0;
  }

  // Adds (dx, dy) to the group at `score`, making or dropping the group as needed, and repairs the
  // hull. Precondition: what is taken away is there.
  Change change(double score, Sum dx, Sum dy) {
    const std::size_t at = lower_bound(score);
    const std::size_t left = vertices_before(at);  // these vertices do not move
    if (at == size_ || scores()[at] != score) insert_group(at, left, score);
    for (std::size_t i = at; i < size_; ++i) xs()[i] = static_cast<Stored>(xs()[i] + dx);
    for (std::size_t i = at; i < size_; ++i) ys()[i] = static_cast<Stored>(ys()[i] + dy);
    if (increment(at).dx != 0) return repair(at, left, score, {dx, dy}, false);
    const bool vertex = left < hull_size_ && hull_at(left) == at;
    erase_group(at, left);
    return repair(at, left, score, {dx, dy}, vertex);
  }

  // Computes the hull from nothing: the scan of Graham, left to right.
  void scan() {
    std::array<Point<A>, kCapacity + 1> chain;
    Index* const hull = indices();
    std::size_t k = 0;
    for (std::size_t i = 0; i < size_; ++i) {
      const Point<A> p = point(i);
      while (k > 1 &&
             compare<A>(between<A>(chain[k - 2], chain[k - 1]), between<A>(chain[k - 1], p)) >= 0) {
        --k;
      }
      chain[k] = p;
      hull[k++] = static_cast<Index>(i);
    }
    hull_size_ = static_cast<std::uint16_t>(k);
  }

  // Moves the upper half of the groups into a new bucket.
  Leaf split() {
    const std::size_t half = size_ / 2;
    Leaf upper;
    upper.reserve(size_ - half + kGrowth / 2);
    for (std::size_t i = half; i < size_; ++i) upper.append_from(*this, i);
    size_ = static_cast<std::uint16_t>(half);
    reserve(half + kGrowth / 2);
    scan();
    upper.scan();
    return upper;
  }

  // Appends all groups of the bucket to the right of this one.
  void absorb(const Leaf& upper) {
    reserve(size_ + upper.size_ + kGrowth / 2);
    for (std::size_t i = 0; i < upper.size_; ++i) append_from(upper, i);
    scan();
  }

  // Moves into a block for `capacity` groups, at least as many as there are.
  void reserve(std::size_t capacity) {
    Leaf grown;
    grown.capacity_ = static_cast<std::uint16_t>(capacity);
    grown.block_ = std::make_unique_for_overwrite<std::byte[]>(
        capacity * (sizeof(double) + 2 * sizeof(Stored) + sizeof(Index)));
    if (block_) {
      std::copy_n(scores(), size_, grown.scores());
      std::copy_n(xs(), size_, grown.xs());
      std::copy_n(ys(), size_, grown.ys());
      std::copy_n(indices(), std::min<std::size_t>(hull_size_, size_), grown.indices());
    }
    capacity_ = grown.capacity_;
    block_ = std::move(grown.block_);
  }

  std::size_t bytes() const {
    return sizeof(*this) + capacity_ * (sizeof(double) + 2 * sizeof(Stored) + sizeof(Index));
  }

 private:
  static constexpr std::size_t kGrowth = kCapacity / 8;  // groups of slack at most

  // The block: scores, x, y, then the indices of the vertices, each with room for `capacity_`.
  double* scores() const { return reinterpret_cast<double*>(block_.get()); }
  Stored* xs() const { return reinterpret_cast<Stored*>(scores() + capacity_); }
  Stored* ys() const { return xs() + capacity_; }
  Index* indices() const { return reinterpret_cast<Index*>(ys() + capacity_); }
  std::size_t hull_at(std::size_t k) const { return indices()[k]; }

  void append_from(const Leaf& other, std::size_t i) {
    const auto step = other.increment(i);
    append(other.score(i), static_cast<Sum>(step.dx), static_cast<Sum>(step.dy));
  }

  // Whether the middle point lies on or above the line through the other two.
  bool bends_down(std::size_t a, std::size_t b, std::size_t c) const {
    return compare<A>(between<A>(point(a), point(b)), between<A>(point(b), point(c))) >= 0;
  }

  void insert_group(std::size_t at, std::size_t left, double score) {
    if (size_ == capacity_) reserve(size_ + kGrowth);
    const Stored x = at ? xs()[at - 1] : 0;
    const Stored y = at ? ys()[at - 1] : 0;
    insert(scores(), at, score);
    insert(xs(), at, x);
    insert(ys(), at, y);
    ++size_;
    for (std::size_t k = left; k < hull_size_; ++k) ++indices()[k];
  }

  void erase_group(std::size_t at, std::size_t left) {
    erase(scores(), at);
    erase(xs(), at);
    erase(ys(), at);
    --size_;
    if (left < hull_size_ && hull_at(left) == at) {
      std::copy(indices() + left + 1, indices() + hull_size_, indices() + left);
      --hull_size_;
    }
    for (std::size_t k = left; k < hull_size_; ++k) --indices()[k];
  }

  template <class T>
  void insert(T* values, std::size_t at, T value) const {
    std::copy_backward(values + at, values + size_, values + size_ + 1);
    values[at] = value;
  }

  template <class T>
  void erase(T* values, std::size_t at) const {
    std::copy(values + at + 1, values + size_, values + at);
  }

  // The hull while it is repaired: the first `kept` vertices of the old one, then fresh ones.
  struct Chain {
    std::size_t kept = 0;
    std::size_t fresh = 0;
    std::array<Index, kCapacity + 1> items;

    std::size_t size() const { return kept + fresh; }
    void push(std::size_t i) { items[fresh++] = static_cast<Index>(i); }
    void pop() { --(fresh ? fresh : kept); }
  };

  // The vertex `back` places before the end of a chain.
  std::size_t vertex(const Chain& chain, std::size_t back) const {
    return back < chain.fresh ? chain.items[chain.fresh - 1 - back]
                              : hull_at(chain.size() - 1 - back);
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
    const bool bounded = left < hull_size_;
    std::size_t settled = bounded ? hull_at(left) : size() - 1;  // edges right of it are as before
    std::size_t begin = left ? hull_at(left - 1) + std::size_t{1} : 0;
    std::size_t end = size() ? settled + 1 : 0;
    if (left && bounded && !lost_vertex) {
      // Below the chord of one edge only the points on one side can appear: on the left if the
      // chord turned up, on the right if it turned down; most often not even those.
      const Point<A> from = point(hull_at(left - 1));
      const Direction<A> chord = between<A>(from, point(settled));
      const auto turn = compare<A>(moved, chord);
      if (turn > 0) {
        end = at;
      } else {
        begin = at;
        end = settled;
      }
      if (turn != 0 && !clear(begin, end, to_double(from.x), to_double(from.y), steepness(chord))) {
        for (std::size_t i = begin; i < end; ++i) read(chain, i);
      }
      read(chain, settled);
    } else {
      for (std::size_t i = begin; i < end; ++i) read(chain, i);
    }
    std::size_t next = left + bounded;  // first old vertex that has not been read
    while (next < hull_size_ && hides_last(chain, hull_at(next))) {
      settled = hull_at(next++);
      read(chain, settled);
    }
    const Change change = summary(chain, settled, score);
    splice(chain, next);
    return change;
  }

  Change summary(const Chain& chain, std::size_t settled, double score) const {
    constexpr double none = std::numeric_limits<double>::infinity();
    Change change{score, score, kUnknown, kUnknown};
    if (chain.kept) {
      const std::size_t last_kept = hull_at(chain.kept - 1);
      change.first = scores()[last_kept];
      change.leaving = chain.fresh ? slope_between(last_kept, chain.items[0]) : none;
    }
    if (size() && scores()[settled] >= score) {
      change.last = scores()[settled];
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
    const std::size_t end = chain.kept + chain.fresh;
    Index* const hull = indices();
    if (end < next) {
      std::copy(hull + next, hull + hull_size_, hull + end);
    } else if (end > next) {
      std::copy_backward(hull + next, hull + hull_size_, hull + hull_size_ + (end - next));
    }
    std::copy_n(chain.items.begin(), chain.fresh, hull + chain.kept);
    hull_size_ = static_cast<std::uint16_t>(hull_size_ + end - next);
  }

  std::unique_ptr<std::byte[]> block_;
  std::uint16_t size_ = 0;
  std::uint16_t hull_size_ = 0;
  std::uint16_t capacity_ = 0;
};

}  // namespace abers
