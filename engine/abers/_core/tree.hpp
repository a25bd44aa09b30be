// A balanced binary tree over buckets whose nodes hold the bridges of the lower hull.
//
// Governing rule: the hull of a node's points is the hull of its left child up to the bridge, the
// bridge, and the hull of its right child from there on. Only the bridge is stored, as two points,
// each relative to the start of its own child; so what happens elsewhere does not move it.
// (The idea is Overmars & van Leeuwen 1981; docs/how_it_works.md tells how this differs.)
//
// Invariants of a node: all scores of the left child < first_right <= all scores of the right one;
// left_total is the sum of the left child's increments; u and v are vertices of the children's
// hulls and no point lies below the line through them, nor on it outside [u, v]; the hull edges
// next to u and v have slopes outside (before, after); neither child has more than three times the
// leaves of the other (weight balance; Hirai & Yamamoto 2011).
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "leaf.hpp"

namespace abers {

using Ref = std::uint32_t;  // a node, or with the highest bit set a leaf
constexpr Ref kLeafBit = Ref{1} << 31;
constexpr std::size_t kDepth = 80;  // log(2^31) / log(4/3), the deepest a balanced tree gets
inline bool is_leaf(Ref ref) { return (ref & kLeafBit) != 0; }

template <class A>
struct Vertex {  // a point in stored width, relative to the start of a child
  typename A::Stored x;
  typename A::Stored y;
};

// Bounds on the slopes of the hull edges to the left and to the right of a vertex. Single
// precision, rounded outwards, so that a node of counts fills exactly one line of the cache.
struct Beside {
  float before;  // no edge to the left is steeper
  float after;   // none to the right is flatter

  static constexpr double kOut = 1.0 + 2e-7;  // more than the rounding to single precision
  void set_before(double slope) { before = static_cast<float>(slope * kOut); }
  void set_after(double slope) { after = static_cast<float>(slope / kOut); }

  // Whether a slope is safely between the two, so that the vertex is the extreme one in its
  // direction. Rounding can only make the answer no, which costs a search.
  bool spans(double slope) const {
    constexpr double margin = 1.0 + 1e-14;
    return before * margin < slope && slope * margin < after;
  }
};

template <class A>
struct Node {
  Vertex<A> left_total;
  Vertex<A> u;  // left end of the bridge
  Vertex<A> v;  // right end of the bridge
  double u_score;
  double v_score;
  Beside at_u;  // in the hull of the left child
  Beside at_v;  // in the hull of the right child
  std::uint32_t leaves;
};

// What it takes to find a score, apart from the node, so that all of it stays in the cache.
struct Fork {
  double first_right;
  Ref left;
  Ref right;
  Ref towards(double score) const { return score >= first_right ? right : left; }
};

template <class A>
class Tree {
 public:
  using Sum = typename A::Sum;
  using Stored = typename A::Stored;
  using P = Point<A>;
  using D = Direction<A>;

  Ref root() const { return root_; }
  const Node<A>& node(Ref ref) const { return nodes_[ref]; }
  const Fork& fork(Ref ref) const { return forks_[ref]; }
  const Leaf<A>& leaf(Ref ref) const { return leaves_[ref & ~kLeafBit]; }

  Sum weight() const { return weight_; }  // of all groups

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

  // Adds (dx, dy) at `score`; repairs bridges on the way up, then the balance.
  void change(double score, Sum dx, Sum dy) {
    weight_ += dx;
    Path path = path_to(score);
    Leaf<A>& bucket = leaves_[path.leaf & ~kLeafBit];
    Change change = bucket.change(score, dx, dy);
    const bool emptied = bucket.size() == 0;
    if (emptied) change = drop_empty(path, score);
    for (std::size_t i = path.size; i-- > 0;) {
      change = repair(path.steps[i], score, dx, dy, change);
    }
    if (emptied) {
      rebalance(path, path.size);
    } else if (bucket.size() > Leaf<A>::kCapacity) {
      split(path);
    } else if (bucket.size() < kSparse && path.size > 0) {
      merge(path);
    }
  }

  // Builds the tree from groups in score order, given one at a time by `next(score, dx, dy)`.
  template <class Next>
  void build(std::size_t groups, const Next& next) {
    nodes_.clear();
    forks_.clear();
    leaves_.clear();
    free_nodes_.clear();
    free_leaves_.clear();
    const std::size_t count = groups / kFill + 1;
    std::size_t done = 0;
    for (std::size_t k = 0; k < count; ++k) {
      Leaf<A>& bucket = leaves_.add();
      const std::size_t until = groups * (k + 1) / count;
      bucket.reserve(until - done + (k == 0));
      if (k == 0) bucket.append(-std::numeric_limits<double>::infinity(), 0, 0);  // sentinel
      for (; done < until; ++done) {
        double score;
        Sum dx;
        Sum dy;
        next(done, score, dx, dy);
        bucket.append(score, dx, dy);
      }
      bucket.scan();
    }
    nodes_.reserve(count);
    forks_.reserve(count);
    root_ = join(0, count);
    weight_ = total(root_).x;
  }

  std::size_t bytes() const {
    std::size_t total = nodes_.capacity() * sizeof(Node<A>) + forks_.capacity() * sizeof(Fork);
    for (std::size_t i = 0; i < leaves_.size(); ++i) total += leaves_[i].bytes();
    return total;
  }

  // Calls visit(leaf) from left to right.
  template <class Visit>
  void for_each_leaf(const Visit& visit) const {
    std::vector<Ref> due{root_};
    while (!due.empty()) {
      const Ref ref = due.back();
      due.pop_back();
      if (is_leaf(ref)) {
        visit(leaf(ref));
      } else {
        due.push_back(forks_[ref].right);
        due.push_back(forks_[ref].left);
      }
    }
  }

  // Sum of all increments below `ref`.
  P total(Ref ref) const {
    P sum{0, 0, 0.0};
    for (; !is_leaf(ref); ref = forks_[ref].right) sum = start_of_right(nodes_[ref], sum);
    const P last = leaf(ref).total();
    return {sum.x + last.x, sum.y + last.y, last.score};
  }

 private:
  static constexpr std::size_t kFill = Leaf<A>::kCapacity * 3 / 4;  // when built at once
  static constexpr std::size_t kSparse = Leaf<A>::kCapacity / 4;

  // Buckets in chunks, so that none ever moves and growth never copies them all.
  class Leaves {
   public:
    Leaf<A>& operator[](std::size_t i) { return (*chunks_[i / kChunk])[i % kChunk]; }
    const Leaf<A>& operator[](std::size_t i) const { return (*chunks_[i / kChunk])[i % kChunk]; }
    std::size_t size() const { return size_; }
    Leaf<A>& add() {
      if (size_ % kChunk == 0) chunks_.push_back(std::make_unique<Chunk>());
      return (*this)[size_++];
    }
    void clear() {
      chunks_.clear();
      size_ = 0;
    }

   private:
    static constexpr std::size_t kChunk = 64;
    using Chunk = std::array<Leaf<A>, kChunk>;
    std::vector<std::unique_ptr<Chunk>> chunks_;
    std::size_t size_ = 0;
  };

  struct Step {
    Ref node;
    bool right;
  };
  struct Path {
    std::array<Step, kDepth> steps;
    std::size_t size = 0;
    Ref leaf = 0;
  };

  Path path_to(double score) const {
    Path path;
    Ref ref = root_;
    while (!is_leaf(ref)) {
      const Fork& fork = forks_[ref];
      path.steps[path.size++] = {ref, score >= fork.first_right};
      ref = fork.towards(score);
    }
    path.leaf = ref;
    return path;
  }

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
      // What changed below the bridge does not show, but its slope does.
      const double rise = slope(n);
      return under ? Change{n.u_score, n.v_score, rise, rise} : below;
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
    constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
    const double rise = slope(n);
    Change all{std::min({below.first, old_u, n.u_score}), std::max({below.last, old_v, n.v_score}),
               unknown, unknown};
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
    return n.at_u.spans(rise) && n.at_v.spans(rise);
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
  // slopes of the edges beside it.
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
  // farthest below that line, until there is none. Each round makes the slope larger, so it ends;
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

  // Makes a node of two neighbouring subtrees; the bridge is found afresh.
  void set_node(Ref ref, Ref left, Ref right, double first_right) {
    forks_[ref] = {first_right, left, right};
    Node<A>& n = nodes_[ref];
    n.leaves = leaves_below(left) + leaves_below(right);
    const P sum = total(left);
    n.left_total = {static_cast<Stored>(sum.x), static_cast<Stored>(sum.y)};
    n.u = n.v = {0, 0};
    find_bridge(ref);
  }

  std::uint32_t leaves_below(Ref ref) const { return is_leaf(ref) ? 1 : nodes_[ref].leaves; }

  Ref join(std::size_t from, std::size_t to) {
    if (to - from == 1) return static_cast<Ref>(from) | kLeafBit;
    const std::size_t middle = from + (to - from) / 2;
    const Ref left = join(from, middle);
    const Ref right = join(middle, to);
    const Ref ref = new_node();
    set_node(ref, left, right, leaves_[middle].score(0));
    return ref;
  }

  void split(const Path& path) {
    const Ref upper = new_leaf();
    leaves_[upper & ~kLeafBit] = leaves_[path.leaf & ~kLeafBit].split();
    const Ref ref = new_node();
    set_node(ref, path.leaf, upper, leaf(upper).score(0));
    hang(path, path.size, ref);
    rebalance(path, path.size);
  }

  // Joins a sparse bucket with its sibling if that is a bucket with room.
  void merge(const Path& path) {
    const Step& last = path.steps[path.size - 1];
    const Fork n = forks_[last.node];
    if (!is_leaf(n.left) || !is_leaf(n.right)) return;
    Leaf<A>& lower = leaves_[n.left & ~kLeafBit];
    Leaf<A>& upper = leaves_[n.right & ~kLeafBit];
    if (lower.size() + upper.size() > Leaf<A>::kCapacity / 2) return;
    lower.absorb(upper);
    free_leaf(n.right);
    free_nodes_.push_back(last.node);
    hang(path, path.size - 1, n.left);
    rebalance(path, path.size - 1);
  }

  // Takes an empty bucket and its parent out; returns where the hull of what is left in their
  // place differs from the parent's. (The leftmost bucket holds the sentinel and is never empty.)
  Change drop_empty(Path& path, double score) {
    const Step last = path.steps[--path.size];
    const Node<A>& n = nodes_[last.node];
    const Fork& fork = forks_[last.node];
    free_leaf(path.leaf);
    free_nodes_.push_back(last.node);
    hang(path, path.size, last.right ? fork.left : fork.right);
    constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
    return last.right ? Change{n.u_score, score, unknown, unknown}
                      : Change{score, n.v_score, unknown, unknown};
  }

  void hang(const Path& path, std::size_t depth, Ref child) {
    if (depth == 0) {
      root_ = child;
    } else {
      Fork& parent = forks_[path.steps[depth - 1].node];
      (path.steps[depth - 1].right ? parent.right : parent.left) = child;
    }
  }

  // Restores counts and balance of the first `depth` nodes of a path, from the last one up.
  void rebalance(const Path& path, std::size_t depth) {
    while (depth-- > 0) {
      const Ref ref = path.steps[depth].node;
      const std::uint32_t left = leaves_below(forks_[ref].left);
      const std::uint32_t right = leaves_below(forks_[ref].right);
      nodes_[ref].leaves = left + right;
      if (right > 3 * left) {
        rotate_left(ref);
      } else if (left > 3 * right) {
        rotate_right(ref);
      }
    }
  }

  // (a, (b, c)) becomes ((a, b), c); if b is too heavy for that, it is split first.
  void rotate_left(Ref ref) {
    const Ref heavy = forks_[ref].right;
    if (leaves_below(forks_[heavy].left) >= 2 * leaves_below(forks_[heavy].right)) {
      lift_left(heavy);
    }
    lift_right(ref);
  }

  void rotate_right(Ref ref) {
    const Ref heavy = forks_[ref].left;
    if (leaves_below(forks_[heavy].right) >= 2 * leaves_below(forks_[heavy].left)) {
      lift_right(heavy);
    }
    lift_left(ref);
  }

  void lift_right(Ref ref) {
    const Fork n = forks_[ref];
    const Fork child = forks_[n.right];
    set_node(n.right, n.left, child.left, n.first_right);
    set_node(ref, n.right, child.right, child.first_right);
  }

  void lift_left(Ref ref) {
    const Fork n = forks_[ref];
    const Fork child = forks_[n.left];
    set_node(n.left, child.right, n.right, n.first_right);
    set_node(ref, child.left, n.left, child.first_right);
  }

  Ref new_node() {
    if (!free_nodes_.empty()) {
      const Ref ref = free_nodes_.back();
      free_nodes_.pop_back();
      return ref;
    }
    nodes_.emplace_back();
    forks_.emplace_back();
    return static_cast<Ref>(nodes_.size() - 1);
  }

  Ref new_leaf() {
    if (!free_leaves_.empty()) {
      const Ref ref = free_leaves_.back();
      free_leaves_.pop_back();
      return ref;
    }
    leaves_.add();
    return static_cast<Ref>(leaves_.size() - 1) | kLeafBit;
  }

  void free_leaf(Ref ref) {
    leaves_[ref & ~kLeafBit] = {};
    free_leaves_.push_back(ref);
  }

  std::vector<Node<A>> nodes_;
  std::vector<Fork> forks_;
  Leaves leaves_;
  Sum weight_ = 0;
  std::vector<Ref> free_nodes_;
  std::vector<Ref> free_leaves_;
  Ref root_ = kLeafBit;
};

}  // namespace abers
