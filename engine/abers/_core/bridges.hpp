// The lower hull of a tree of buckets, kept as one bridge per node.
//
// The hull of a node's points is the hull of its left child up to the bridge, the
// bridge, and the hull of its right child from there on. Only the bridge is stored, as two points,
// each relative to the start of its own child; so what happens elsewhere does not move it.
// (The idea is Overmars & van Leeuwen 1981; docs/how_it_works.md tells how this differs.)
//
// Invariants of a node: left_total is the sum of the left child's increments; u and v are vertices
// of the children's hulls and no point lies below the line through them, nor on it outside [u, v];
// the hull edges next to u and v have slopes outside (before, after).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "nodes.hpp"

namespace abers {

template <class A>
class Bridges {
 public:
  using Sum = typename A::Sum;
  using Stored = typename A::Stored;
  using P = Point<A>;
  using D = Direction<A>;

  const Node<A>& node(Ref ref) const { return nodes_[ref]; }
  const Fork& fork(Ref ref) const { return forks_[ref]; }
  const Leaf<A>& leaf(Ref ref) const { return leaves_[ref & ~kLeafBit]; }

  // Slope of a node's bridge, nearly.
  static double slope(const Node<A>& n) { return steepness(bridge(n)); }

  // Ends of a node's bridge, given where the node starts.
  static P left_end(const Node<A>& n, const P& start) {
    return {start.x + static_cast<Sum>(n.u.x), start.y + static_cast<Sum>(n.u.y), n.u_score};
  }
  static P right_end(const Node<A>& n, const P& start) {
    return {start.x + static_cast<Sum>(n.left_total.x) + static_cast<Sum>(n.v.x),
            start.y + static_cast<Sum>(n.left_total.y) + static_cast<Sum>(n.v.y), n.v_score};
  }
  static P start_of_right(const Node<A>& n, const P& start) {
    return {start.x + static_cast<Sum>(n.left_total.x), start.y + static_cast<Sum>(n.left_total.y),
            0.0};
  }
  static P in_leaf(const Leaf<A>& leaf, std::size_t i, const P& start) {
    const P p = leaf.point(i);
    return {start.x + p.x, start.y + p.y, p.score};
  }

  // The vertex of the hull below `ref` from which `go_right(a, b)` does not lead to the next one;
  // go_right must be true for a first part of the hull's edges and false for the others.
  template <class GoRight>
  P search(Ref ref, P start, const GoRight& go_right) const {
    while (!is_leaf(ref)) {
      const Node<A>& n = nodes_[ref];
      if (go_right(left_end(n, start), right_end(n, start))) {
        start = start_of_right(n, start);
        ref = forks_[ref].right;
      } else {
        ref = forks_[ref].left;
      }
    }
    const Leaf<A>& bucket = leaf(ref);
    return in_leaf(bucket, search_leaf(bucket, 0, bucket.hull().size(), start, go_right), start);
  }

  // The same among the hull vertices [from, to) of one bucket; index of the point.
  template <class GoRight>
  static std::size_t search_leaf(const Leaf<A>& bucket, std::size_t from, std::size_t to,
                                 const P& start, const GoRight& go_right) {
    const auto hull = bucket.hull();
    while (to - from > 1) {
      const std::size_t k = from + (to - from) / 2 - 1;
      if (go_right(in_leaf(bucket, hull[k], start), in_leaf(bucket, hull[k + 1], start))) {
        from = k + 1;
      } else {
        to = k + 1;
      }
    }
    return hull[from];
  }

  // Sum of all increments below `ref`.
  P total(Ref ref) const {
    P sum{0, 0, 0.0};
    for (; !is_leaf(ref); ref = forks_[ref].right) sum = start_of_right(nodes_[ref], sum);
    const P last = leaf(ref).total();
    return {sum.x + last.x, sum.y + last.y, last.score};
  }

 protected:
  struct Step {
    Ref node;
    bool right;
  };
  // Brings one node up to date after a change at `score` in one of its children; returns what it
  // did to the hull of the node itself.
  Change repair(const Step& step, double score, Sum dx, Sum dy, const Change& below) {
    Node<A>& n = nodes_[step.node];
    if (step.right) {
      if (n.v_score >= score) shift(n.v, dx, dy);
    } else {
      shift(n.left_total, dx, dy);
      if (n.u_score >= score) shift(n.u, dx, dy);
    }
    const double end = step.right ? n.v_score : n.u_score;
    const bool touched = below.first <= end && end <= below.last;
    const bool under = n.u_score < score && score <= n.v_score;
    if (!touched && !under) return below;  // the change lies beyond the bridge, on the hull
    Beside& beside = step.right ? n.at_v : n.at_u;
    if ((!touched || keeps_vertex(beside, end, below)) && still_bridge(n)) {
      // What changed below the bridge does not show, but its slope does: also to the right of u
      // where the change begins there.
      const double rise = slope(n);
      if (under) return {n.u_score, n.v_score, rise, rise};
      const bool from_u = !step.right && below.first == n.u_score;
      return from_u ? Change{n.u_score, n.u_score, rise, kUnknown} : below;
    }
    const double old_u = n.u_score;
    const double old_v = n.v_score;
    if (!touched || !move_one_end(step)) find_bridge(step.node);
    return joined(below, old_u, old_v, n);
  }

  // Whether a vertex is still one of its hull though the hull has changed next to it; takes over
  // the slope of the edge there.
  static bool keeps_vertex(Beside& beside, double vertex, const Change& below) {
    if (vertex == below.first && !std::isnan(below.leaving)) {
      beside.set_after(below.leaving);
      return true;
    }
    if (vertex == below.last && !std::isnan(below.arriving)) {
      beside.set_before(below.arriving);
      return true;
    }
    return false;
  }

  // The change of a child's hull and the change of the bridge, as one.
  static Change joined(const Change& below, double old_u, double old_v, const Node<A>& n) {
    const double rise = slope(n);
    Change all{std::min({below.first, old_u, n.u_score}), std::max({below.last, old_v, n.v_score}),
               kUnknown, kUnknown};
    if (all.first == n.u_score) {
      all.leaving = rise;
    } else if (all.first == below.first) {
      all.leaving = below.leaving;
    }
    if (all.last == n.v_score) {
      all.arriving = rise;
    } else if (all.last == below.last) {
      all.arriving = below.arriving;
    }
    return all;
  }

  static void shift(Vertex<A>& point, Sum dx, Sum dy) {
    point.x = static_cast<Stored>(point.x + dx);
    point.y = static_cast<Stored>(point.y + dy);
  }

  static D bridge(const Node<A>& n) {
    const P zero{0, 0, 0.0};
    return between<A>(left_end(n, zero), right_end(n, zero));
  }

  static bool still_bridge(const Node<A>& n) {
    const double rise = slope(n);
    return (n.at_u.spans(rise) && n.at_v.spans(rise)) || is_border(n);
  }

  // Whether a bridge lies on the line below which no point can be. Increments have slopes from 0
  // on, those of shares to 1: with slope 0 it does if it begins at the first point of all, with
  // slope 1 if it ends at the last; and it is as long as that line if the edge beyond its other
  // end has another slope.
  static bool is_border(const Node<A>& n) {
    constexpr float none = std::numeric_limits<float>::infinity();
    const D along = bridge(n);
    if (along.dy == 0) return n.at_u.before == -none && n.at_v.after > 0;
    return A::kShares && along.dy == along.dx && n.at_v.after == none && n.at_u.before < 1;
  }

  // The leftmost vertex that the line from `v` on the right touches, and the rightmost one that
  // the line from `u` on the left touches.
  P tangent_to_left(Ref child, const P& start, const P& v) const {
    return search(child, start, [&](const P& a, const P& b) {
      return compare<A>(between<A>(a, b), between<A>(a, v)) < 0;
    });
  }
  P tangent_to_right(Ref child, const P& start, const P& u) const {
    return search(child, start, [&](const P& a, const P& b) {
      return compare<A>(between<A>(u, b), between<A>(u, a)) <= 0;
    });
  }

  // Extreme vertex of a child in a direction, the first or the last of two that are level, and the
  // slopes of the edges next to it.
  template <bool last>
  P extreme(Ref child, const P& start, const D& along, Beside& beside) const {
    double before = -std::numeric_limits<double>::infinity();
    double after = std::numeric_limits<double>::infinity();
    const P found = search(child, start, [&](const P& a, const P& b) {
      const D edge = between<A>(a, b);
      const auto order = compare<A>(edge, along);
      const bool right = last ? order <= 0 : order < 0;
      if (right) {
        before = std::max(before, steepness(edge));
      } else {
        after = std::min(after, steepness(edge));
      }
      return right;
    });
    beside.set_before(before);
    beside.set_after(after);
    return found;
  }

  void set_u(Node<A>& n, const P& u) const {
    n.u = {static_cast<Stored>(u.x), static_cast<Stored>(u.y)};
    n.u_score = u.score;
  }
  void set_v(Node<A>& n, const P& v) const {
    n.v = {static_cast<Stored>(v.x - n.left_total.x), static_cast<Stored>(v.y - n.left_total.y)};
    n.v_score = v.score;
  }

  // Finds the bridge if only its end in the changed child moves, without a look at the other child;
  // false if the other end has to move too.
  bool move_one_end(const Step& step) {
    const P zero{0, 0, 0.0};
    Node<A>& n = nodes_[step.node];
    const Fork& fork = forks_[step.node];
    if (step.right) {
      const P u = left_end(n, zero);
      const P start = start_of_right(n, zero);
      const D along = between<A>(u, tangent_to_right(fork.right, start, u));
      if (!n.at_u.spans(steepness(along))) return false;
      set_v(n, extreme<true>(fork.right, start, along, n.at_v));
    } else {
      const P v = right_end(n, zero);
      const D along = between<A>(tangent_to_left(fork.left, zero, v), v);
      if (!n.at_v.spans(steepness(along))) return false;
      set_u(n, extreme<false>(fork.left, zero, along, n.at_u));
    }
    return true;
  }

  // Finds the bridge: the tangent from a vertex u on the left to the right child, then the vertex
  // farthest below that line, until no vertex does. Each round makes the slope larger, so it ends;
  // in practice after one or two rounds, as with Newton's method.
  void find_bridge(Ref ref) {
    const P zero{0, 0, 0.0};
    Node<A>& n = nodes_[ref];
    const Fork& fork = forks_[ref];
    const P start = start_of_right(n, zero);
    D along = bridge(n);  // the old one is a good guess; any direction to the right would do
    if (along.dx <= 0) along = {2, 1};
    P u = extreme<false>(fork.left, zero, along, n.at_u);
    for (;;) {
      const P v = tangent_to_right(fork.right, start, u);
      along = between<A>(u, v);
      u = extreme<false>(fork.left, zero, along, n.at_u);
      if (compare<A>(between<A>(u, v), along) == 0) break;
    }
    set_u(n, u);
    set_v(n, extreme<true>(fork.right, start, along, n.at_v));
  }

  std::vector<Node<A>> nodes_;
  std::vector<Fork> forks_;  // one for each node
  Leaves<A> leaves_;
};

}  // namespace abers
