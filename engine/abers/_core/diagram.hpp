// The cumulative sum diagram of a calibration set: its groups, its blocks and its predictions.
//
// The diagram is what was learned, pooled by score; everything else follows from
// it.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "query.hpp"
#include "table.hpp"

namespace abers {

struct Group {
  double score;
  std::int64_t negatives;  // weights in fixed point
  std::int64_t positives;
};

struct Block {
  double lower;
  double upper;
  std::int64_t weight;  // fixed point
  std::int64_t positives;
  double value;
};

// A score and its fitted value on the left, and on the right.
using Neighbours = std::tuple<double, double, double, double>;

// The points of a diagram: the origin, and one at the end of each group.
template <class A>
std::vector<Point<A>> points_of(const Tree<A>& tree) {
  std::vector<Point<A>> points{{0, 0, 0.0}};
  tree.for_each_leaf([&](const Leaf<A>& bucket) {
    for (std::size_t i = 0; i < bucket.size(); ++i) {
      if (std::isinf(bucket.score(i))) continue;  // the sentinel
      const Direction<A> step = bucket.increment(i);
      const Point<A>& before = points.back();
      points.push_back({before.x + static_cast<typename A::Sum>(step.dx),
                        before.y + static_cast<typename A::Sum>(step.dy), bucket.score(i)});
    }
  });
  return points;
}

template <class A>
class Diagram {
 public:
  using Sum = typename A::Sum;
  using Product = typename A::Product;
  using P = Point<A>;
  using D = Direction<A>;

  Diagram() {
    build(0, [](std::size_t) { return Group{}; });
  }

  void add(double score, int label, Sum weight) { tree_.change(score, weight, label ? weight : 0); }

  // Starts anew from `count` groups in score order; group(i) gives the i-th.
  template <class GetGroup>
  void build(std::size_t count, const GetGroup& group) {
    tree_.build(count, [&](std::size_t i, double& score, Sum& dx, Sum& dy) {
      const Group g = group(i);
      score = g.score;
      dy = g.positives >> A::kShift;
      dx = dy + (g.negatives >> A::kShift);
    });
  }

  // The two probabilities of a query that weighs so much with label 0, and with label 1.
  std::pair<double, double> predict(double score, Sum zero, Sum one) const {
    return Query<A>(tree_).predict(score, zero, one);
  }

  // What `predict` gives for every score there is.
  Table table(Sum zero, Sum one) const { return Table(points_of(tree_), zero, one); }

  // Weight of one label at exactly this score.
  Sum held(double score, int label) const {
    const auto at = Query<A>(tree_).locate(score);
    if (!at.exists) return 0;
    const D step = at.bucket->increment(at.index);
    return static_cast<Sum>(label ? step.dy : step.dx - step.dy);
  }

  // Nearest scores of the fit on either side of a score, each with its fitted value.
  std::optional<Neighbours> around(double score) const {
    const P last = tree_.total(tree_.root());
    if (last.x == 0) return std::nullopt;
    const double inside = std::min(score, last.score);
    const auto at = Query<A>(tree_).locate(inside);
    const Block block = block_between(at.left, at.right);
    if (inside >= block.lower || std::isinf(at.left.score)) {
      return Neighbours{block.upper, block.value, block.lower, block.value};
    }
    const auto before = Query<A>(tree_).locate(at.left.score);
    const Block previous = block_between(before.left, before.right);
    return Neighbours{previous.upper, previous.value, block.lower, block.value};
  }

  // All blocks of the isotonic regression in score order.
  std::vector<Block> blocks() const {
    std::vector<Block> found;
    const double last = tree_.total(tree_.root()).score;
    for (double upper = -std::numeric_limits<double>::infinity(); upper < last;) {
      const auto at = Query<A>(tree_).locate(next_after(upper));
      found.push_back(block_between(at.left, at.right));
      upper = at.right.score;
    }
    return found;
  }

  std::size_t group_count() const {
    std::size_t count = 0;
    tree_.for_each_leaf([&](const Leaf<A>& bucket) { count += bucket.size(); });
    return count - 1;  // without the sentinel
  }

  // Calls visit(group) for every group in score order.
  template <class Visit>
  void for_each_group(const Visit& visit) const {
    tree_.for_each_leaf([&](const Leaf<A>& bucket) {
      for (std::size_t i = 0; i < bucket.size(); ++i) {
        if (std::isinf(bucket.score(i))) continue;  // the sentinel
        const D step = bucket.increment(i);
        visit(Group{bucket.score(i), fixed(step.dx - step.dy), fixed(step.dy)});
      }
    });
  }

  std::size_t bytes() const { return tree_.bytes(); }
  const Tree<A>& tree() const { return tree_; }

 private:
  // Smallest kept score that is greater than `score`, which is not the largest.
  double next_after(double score) const {
    Ref ref = tree_.root();
    Ref later = ref;
    while (!is_leaf(ref)) {
      const Fork& fork = tree_.fork(ref);
      if (score < fork.first_right) later = fork.right;
      ref = fork.towards(score);
    }
    const Leaf<A>& bucket = tree_.leaf(ref);
    std::size_t i = bucket.lower_bound(score);
    if (i < bucket.size() && bucket.score(i) == score) ++i;
    if (i < bucket.size()) return bucket.score(i);
    while (!is_leaf(later)) later = tree_.fork(later).left;
    return tree_.leaf(later).score(0);
  }

  Block block_between(const P& left, const P& right) const {
    const D step = between<A>(left, right);
    return {next_after(left.score), right.score, fixed(step.dx), fixed(step.dy),
            rounded_ratio(step.dy, step.dx)};
  }

  static std::int64_t fixed(Product weight) {
    return static_cast<std::int64_t>(weight) << A::kShift;
  }

  Tree<A> tree_;
};

}  // namespace abers
