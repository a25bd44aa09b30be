// Asserts every invariant of a tree and its buckets, from the definitions.
//
// Nothing is trusted that the tree stores; a failure says what is wrong and shows
// the part of the state where it is.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "tree.hpp"

namespace abers {

struct CheckFailure : std::logic_error {
  using std::logic_error::logic_error;
};

template <class A>
class TreeCheck {
 public:
  explicit TreeCheck(const Tree<A>& tree) : tree_(tree) {}

  // Checks the subtree that starts at `start` and returns its points.
  std::vector<Point<A>> points(Ref ref, const Point<A>& start) const {
    return is_leaf(ref) ? leaf_points(tree_.leaf(ref), start) : node_points(ref, start);
  }

 private:
  using P = Point<A>;

  // The state is a function, for writing it down takes far longer than checking it.
  template <class State>
  static void require(bool holds, const char* what, const State& state) {
    if (!holds) throw CheckFailure(std::string("invariant broken: ") + what + "\n" + state());
  }

  std::vector<P> leaf_points(const Leaf<A>& bucket, const P& start) const {
    std::vector<P> all;
    const auto state = [&] { return dump(bucket); };
    for (std::size_t i = 0; i < bucket.size(); ++i) {
      const auto step = bucket.increment(i);
      require(step.dx > 0 || std::isinf(bucket.score(i)), "a group has no weight", state);
      require(0 <= step.dy && (!A::kShares || step.dy <= step.dx), "label 1 outweighs its group",
              state);
      require(i == 0 || bucket.score(i - 1) < bucket.score(i), "scores ascend", state);
      all.push_back(Tree<A>::in_leaf(bucket, i, start));
    }
    Leaf<A> fresh;
    for (std::size_t i = 0; i < bucket.size(); ++i) {
      const auto step = bucket.increment(i);
      fresh.append(bucket.score(i), static_cast<typename A::Sum>(step.dx),
                   static_cast<typename A::Sum>(step.dy));
    }
    fresh.scan();
    require(!all.empty() && std::ranges::equal(fresh.hull(), bucket.hull()), "hull of a bucket",
            state);
    return all;
  }

  std::vector<P> node_points(Ref ref, const P& start) const {
    const Node<A>& n = tree_.node(ref);
    const Fork& fork = tree_.fork(ref);
    const auto state = [&] { return dump(n, fork); };
    std::vector<P> all = points(fork.left, start);
    const std::vector<P> right = points(fork.right, Tree<A>::start_of_right(n, start));
    const P sum = tree_.total(fork.left);
    require(sum.x == n.left_total.x && sum.y == n.left_total.y, "total of the left child", state);
    require(all.back().score < fork.first_right && fork.first_right <= right.front().score,
            "separator", state);
    const P u = Tree<A>::left_end(n, start);
    const P v = Tree<A>::right_end(n, start);
    require(holds_point(all, u) && holds_point(right, v), "the bridge ends in points", state);
    require(holds_beside(all, u, n.at_u) && holds_beside(right, v, n.at_v),
            "slopes at the bridge's ends", state);
    all.insert(all.end(), right.begin(), right.end());
    for (const P& p : all) {
      const auto side = compare<A>(between<A>(u, p), between<A>(u, v));
      const bool inside = u.score <= p.score && p.score <= v.score;
      require(inside ? side >= 0 : side > 0, "a point lies below the bridge", state);
    }
    const std::uint32_t a = leaves(fork.left);
    const std::uint32_t b = leaves(fork.right);
    require(n.leaves == a + b && a <= 3 * b && b <= 3 * a, "balance", state);
    return all;
  }

  std::uint32_t leaves(Ref ref) const { return is_leaf(ref) ? 1 : tree_.node(ref).leaves; }

  static bool holds_point(const std::vector<P>& points, const P& wanted) {
    for (const P& p : points) {
      if (p.score == wanted.score) return p.x == wanted.x && p.y == wanted.y;
    }
    return false;
  }

  // Whether the lines from a hull vertex to all other points keep to the slopes next to it.
  static bool holds_beside(const std::vector<P>& points, const P& vertex, const Beside& beside) {
    return std::ranges::all_of(points, [&](const P& p) {
      if (p.score == vertex.score) return true;
      return p.score < vertex.score ? steepness(between<A>(p, vertex)) <= beside.before
                                    : steepness(between<A>(vertex, p)) >= beside.after;
    });
  }

  static std::string dump(const Leaf<A>& bucket) {
    std::ostringstream out;
    out.precision(17);
    out << "bucket of " << bucket.size() << " groups (score: x, y)";
    for (std::size_t i = 0; i < bucket.size(); ++i) {
      const P p = bucket.point(i);
      out << "\n  " << p.score << ": " << p.x << ", " << p.y;
    }
    out << "\n  hull:";
    for (const std::size_t i : bucket.hull()) out << ' ' << i;
    return out.str();
  }

  static std::string dump(const Node<A>& n, const Fork& fork) {
    std::ostringstream out;
    out.precision(17);
    out << "node of " << n.leaves << " leaves, total of the left child (" << n.left_total.x << ", "
        << n.left_total.y << "), right child from score " << fork.first_right << "\n  bridge from "
        << n.u_score << " (" << n.u.x << ", " << n.u.y << ") to " << n.v_score << " (" << n.v.x
        << ", " << n.v.y << "), slopes at its ends " << n.at_u.before << ", " << n.at_u.after
        << " and " << n.at_v.before << ", " << n.at_v.after;
    return out.str();
  }

  const Tree<A>& tree_;
};

template <class A>
void check_tree(const Tree<A>& tree) {
  const auto points = TreeCheck<A>(tree).points(tree.root(), Point<A>{0, 0, 0.0});
  if (points.back().x != tree.weight()) throw CheckFailure("invariant broken: total weight");
}

}  // namespace abers
