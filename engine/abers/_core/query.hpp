// What a calibration set predicts for one score.
//
// The probabilities are slopes of common lower tangents of the points before the query and
// the points from it on, the latter moved by the query's own increment; nothing is recomputed that
// the stored hull already tells.
//
// With [L, R] the block of the whole diagram that covers the query, for label 1 the tangent's left
// end lies in [L, query] and its right end is a vertex of the whole hull at R or later; for label 0
// it is the other way round. So one end is a search on the stored hull and the other reads only
// inside one block.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>

#include "tree.hpp"

namespace abers {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

template <class A>
class Query {
 public:
  using Sum = typename A::Sum;
  using P = Point<A>;
  using D = Direction<A>;

  explicit Query(const Tree<A>& tree) : tree_(tree) {}

  struct Piece {  // a subtree that lies as a whole on one side of the query
    Ref ref;
    P start;
    Sum end;  // its last x
    P top;    // the end of its parent's bridge, a vertex of its own hull
    Beside beside;
  };

  struct Pieces {
    std::array<Piece, kDepth> items;
    std::size_t size = 0;
    void push(const Piece& piece) { items[size++] = piece; }
    const Piece* begin() const { return items.data(); }
    const Piece* end() const { return items.data() + size; }
  };

  // Where a score falls: the block [left, right] of the whole diagram that covers it (without
  // `right` above all scores), the pieces of that block before and after it, and its bucket.
  struct Place {
    double score;
    P left;
    P right;
    bool has_right;
    bool exists;  // there is a group at this very score
    Pieces before;
    Pieces after;
    const Leaf<A>* bucket;
    P start;                // of the bucket
    std::size_t index;      // first point of the bucket at or after the score
    std::size_t vertices;   // number of hull vertices of the bucket before it
    double steepest_left;   // no edge of the whole hull left of `left` is steeper
    double flattest_right;  // none right of `right` is flatter
  };

  // The two probabilities of a query that weighs so much with label 0, and with label 1.
  std::pair<double, double> predict(double score, Sum zero, Sum one) const {
    const Place at = locate(score);
    const D low = fit_of_least(at, {zero, 0, score});
    const D high = fit_of_greatest(at, {one, one, score});
    return {rounded_ratio(low.dy, low.dx), rounded_ratio(high.dy, high.dx)};
  }

  Place locate(double score) const {
    Place at;
    at.score = score;
    Ref ref = tree_.root();
    P start = origin();
    Sum end = tree_.weight();
    // The bridges above that begin or end nearest to the query: the hull's next edge beyond the
    // block may be one of them.
    const Node<A>* next_left = nullptr;
    const Node<A>* next_right = nullptr;
    const Node<A>* bridge = nullptr;  // the one that covers the query
    while (!is_leaf(ref)) {
      const Node<A>& n = tree_.node(ref);
      const Fork& fork = tree_.fork(ref);
      const P start_of_right = Tree<A>::start_of_right(n, start);
      bool right = score > n.v_score;
      if (bridge || (score > n.u_score && !right)) {
        if (!bridge) {
          bridge = &n;
          at.left = Tree<A>::left_end(n, start);
          at.right = Tree<A>::right_end(n, start);
        }
        right = score >= fork.first_right;
        if (right) {
          at.before.push({fork.left, start, start_of_right.x, Tree<A>::left_end(n, start), n.at_u});
        } else {
          at.after.push({fork.right, start_of_right, end, Tree<A>::right_end(n, start), n.at_v});
        }
      } else if (right) {
        if (!next_left || n.v_score > next_left->v_score) next_left = &n;
      } else {
        if (!next_right || n.u_score < next_right->u_score) next_right = &n;
      }
      if (right) {
        start = start_of_right;
      } else {
        end = start_of_right.x;
      }
      ref = right ? fork.right : fork.left;
    }
    const Leaf<A>& bucket = tree_.leaf(ref);
    bucket.prefetch();
    at.bucket = &bucket;
    at.start = start;
    at.index = bucket.lower_bound(score);
    at.exists = at.index < bucket.size() && bucket.score(at.index) == score;
    at.vertices = bucket.vertices_before(at.index);
    at.has_right = bridge || at.vertices < bucket.hull().size();
    at.steepest_left = bridge ? bridge->at_u.before : -kInfinity;
    at.flattest_right = bridge ? bridge->at_v.after : kInfinity;
    if (!bridge) find_in_bucket(at);
    if (next_left && next_left->v_score == at.left.score) {
      at.steepest_left = std::max(at.steepest_left, Tree<A>::slope(*next_left));
    }
    if (at.has_right && next_right && next_right->u_score == at.right.score) {
      at.flattest_right = std::min(at.flattest_right, Tree<A>::slope(*next_right));
    }
    return at;
  }

  // The query with the greatest label of all, so that no increment is steeper than its `own`: the
  // direction of its block. Invariant: no point after the query lies below the line from `a` to
  // its tangent point; each round `a` moves to the point before the query farthest below that
  // line, which makes it steeper, until none is left.
  D fit_of_greatest(const Place& at, const P& own) const {
    if (!at.has_right) return {own.x, own.y};
    const D block = between<A>(at.left, at.right);
    if (is_along(block, own)) return block;  // all labels from here on are the greatest
    const bool zeros = block.dy == 0;        // then the last point before the query is the lowest
    P a = zeros ? last_before(at) : at.left;
    for (;;) {
      const P from{a.x - own.x, a.y - own.y, 0.0};
      P c = at.right;
      if (!(slope_of(between<A>(from, c)) * kMargin < at.flattest_right)) {
        c = tree_.search(tree_.root(), origin(), [&](const P& p, const P& q) {
          return p.score < at.score || compare<A>(between<A>(p, q), between<A>(from, p)) < 0;
        });
      }
      const D along = between<A>(from, c);
      const P lower = zeros ? a : lowest_before(at, a, along);
      if (lower.x == a.x) return along;
      a = lower;
    }
  }

  // The query with the least label of all: the same seen from the right, each round making the
  // line flatter.
  D fit_of_least(const Place& at, const P& own) const {
    P end = last_before(at);
    end.score = at.score;
    P c = end;
    bool ones = false;   // if all labels of the block are, the first point from the query on is
    if (at.has_right) {  // the lowest
      const D block = between<A>(at.left, at.right);
      if (is_along(block, own)) return block;  // all labels up to here are the least
      ones = A::kShares && block.dy == block.dx;
      c = !ones ? at.right : at.exists ? Tree<A>::in_leaf(*at.bucket, at.index, at.start) : end;
    }
    for (;;) {
      const auto to_query = [&](const P& p) {  // wide, since c.x + own.x may pass Sum
        const D d = between<A>(p, c);
        return D{d.dx + own.x, d.dy + own.y};
      };
      P a = at.left;
      if (!(slope_of(to_query(a)) > at.steepest_left * kMargin)) {
        a = tree_.search(tree_.root(), origin(), [&](const P& p, const P& q) {
          return q.score < at.score && compare<A>(between<A>(p, q), to_query(p)) < 0;
        });
      }
      const D along = to_query(a);
      P lower = c;
      if (!ones) {
        if (!at.exists) lower_of(lower, end, along);
        lowest_after(at, lower, along);
      }
      if (lower.x == c.x) return along;
      c = lower;
    }
  }

 private:
  // The block of a query that no bridge covers: an edge of its bucket's hull.
  static void find_in_bucket(Place& at) {
    const Leaf<A>& bucket = *at.bucket;
    const auto hull = bucket.hull();
    const std::size_t k = at.vertices;
    at.left = Tree<A>::in_leaf(bucket, hull[k - 1], at.start);
    if (k > 1) at.steepest_left = bucket.slope_between(hull[k - 2], hull[k - 1]);
    if (at.has_right) at.right = Tree<A>::in_leaf(bucket, hull[k], at.start);
    if (k + 1 < hull.size()) at.flattest_right = bucket.slope_between(hull[k], hull[k + 1]);
  }

  // Whether a direction is that of a query's own increment.
  static bool is_along(const D& d, const P& own) { return d.dy * own.x == d.dx * own.y; }

  static double slope_of(const D& d) {
    return static_cast<double>(d.dy) / static_cast<double>(d.dx);
  }

  // The last point before the query; without its score if it is not in the query's bucket.
  static P last_before(const Place& at) {
    return at.index ? Tree<A>::in_leaf(*at.bucket, at.index - 1, at.start) : at.start;
  }

  static P origin() { return {0, 0, 0.0}; }

  // Replaces `best` by `p` if p lies lower, measured against a direction.
  static void lower_of(P& best, const P& p, const D& along) {
    if (compare<A>(between<A>(best, p), along) < 0) best = p;
  }

  // Of the points of the block before the query, one that is lowest, or `best` if none is lower.
  P lowest_before(const Place& at, P best, const D& along) const {
    for (const Piece& piece : at.before) lowest_in(piece, best, along);
    const auto hull = at.bucket->hull();
    if (at.vertices > 0) lowest_vertex(at, 0, at.vertices, best, along);
    const std::size_t begin = at.vertices > 0 ? hull[at.vertices - 1] + std::size_t{1} : 0;
    lowest_point(at, begin, at.index, best, along);
    return best;
  }

  void lowest_after(const Place& at, P& best, const D& along) const {
    for (const Piece& piece : at.after) lowest_in(piece, best, along);
    const auto hull = at.bucket->hull();
    const bool bounded = at.vertices < hull.size();
    if (bounded) lowest_vertex(at, at.vertices, hull.size(), best, along);
    lowest_point(at, at.index, bounded ? hull[at.vertices] : at.bucket->size(), best, along);
  }

  // Mostly the nodes tell that no point of a piece is lower, and its buckets stay unseen.
  void lowest_in(const Piece& piece, P& best, const D& along) const {
    Ref ref = piece.ref;
    P start = piece.start;
    Sum end = piece.end;
    if (settled(piece.top, piece.beside.before, piece.beside.after, start.x, end, best, along))
      return;
    while (!is_leaf(ref)) {
      const Node<A>& n = tree_.node(ref);
      const P u = Tree<A>::left_end(n, start);
      const P v = Tree<A>::right_end(n, start);
      const double rise = Tree<A>::slope(n);
      if (compare<A>(between<A>(u, v), along) < 0) {
        if (settled(v, rise, n.at_v.after, start.x, end, best, along)) return;
        start = Tree<A>::start_of_right(n, start);
        ref = tree_.fork(ref).right;
      } else {
        if (settled(u, n.at_u.before, rise, start.x, end, best, along)) return;
        end = Tree<A>::start_of_right(n, start).x;
        ref = tree_.fork(ref).left;
      }
    }
    const Leaf<A>& bucket = tree_.leaf(ref);
    const std::size_t i =
        Tree<A>::search_leaf(bucket, 0, bucket.hull().size(), start, Falls{along});
    lower_of(best, Tree<A>::in_leaf(bucket, i, start), along);
  }

  // Whether a hull vertex, with bounds on the slopes of the edges before and after it, tells all
  // about the points from x = `begin` to x = `end`: it is the lowest of them, or none is lower
  // than `best`. Rounding can only make the answer no.
  bool settled(const P& vertex, double before, double after, Sum begin, Sum end, P& best,
               const D& along) const {
    const double slope = slope_of(along);
    if (before * kMargin < slope && slope * kMargin < after) {
      lower_of(best, vertex, along);
      return true;
    }
    const double height =
        static_cast<double>(vertex.y - best.y) - slope * static_cast<double>(vertex.x - best.x);
    const double left = (slope - before) * static_cast<double>(vertex.x - begin);
    const double right = (after - slope) * static_cast<double>(end - vertex.x);
    const double across = static_cast<double>(end - begin);
    const double error =
        1e-14 * (std::abs(static_cast<double>(vertex.y - best.y)) +
                 slope * (std::abs(static_cast<double>(vertex.x - best.x)) + across));
    return height + std::min(std::min(0.0, left), right) > error;
  }

  // The edges of a hull that lead down, measured against a direction.
  struct Falls {
    const D& along;
    bool operator()(const P& p, const P& q) const {
      return compare<A>(between<A>(p, q), along) < 0;
    }
  };

  void lowest_vertex(const Place& at, std::size_t from, std::size_t to, P& best,
                     const D& along) const {
    const std::size_t i = Tree<A>::search_leaf(*at.bucket, from, to, at.start, Falls{along});
    lower_of(best, Tree<A>::in_leaf(*at.bucket, i, at.start), along);
  }

  void lowest_point(const Place& at, std::size_t from, std::size_t to, P& best,
                    const D& along) const {
    if (at.bucket->clear(from, to, static_cast<double>(best.x - at.start.x),
                         static_cast<double>(best.y - at.start.y), slope_of(along))) {
      return;
    }
    for (std::size_t i = from; i < to; ++i) {
      lower_of(best, Tree<A>::in_leaf(*at.bucket, i, at.start), along);
    }
  }

  const Tree<A>& tree_;
};

}  // namespace abers
