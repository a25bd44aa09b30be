// A balanced binary tree over buckets of score groups.
//
// This module changes the shape of the tree and nothing else; whatever it joins
// anew gets its bridge from the children; their own bridges are right by then.
//
// Invariants of a node: all scores of the left child < first_right <= all scores of the right one;
// neither child has more than three times the leaves of the other (weight balance; Hirai &
// Yamamoto 2011). The leftmost bucket begins with a sentinel, a group without weight at minus
// infinity, with the origin as its point; so the origin is a vertex of every hull it belongs to.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "bridges.hpp"

namespace abers {

template <class A>
class Tree : public Bridges<A> {
 public:
  using typename Bridges<A>::Sum;
  using typename Bridges<A>::Stored;
  using typename Bridges<A>::P;
  using Bridges<A>::leaf;
  using Bridges<A>::total;

  Ref root() const { return root_; }
  Sum weight() const { return weight_; }  // of all groups

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

 private:
  using typename Bridges<A>::Step;
  using Bridges<A>::find_bridge;
  using Bridges<A>::forks_;
  using Bridges<A>::leaves_;
  using Bridges<A>::nodes_;
  using Bridges<A>::repair;

  static constexpr std::size_t kFill = Leaf<A>::kCapacity * 3 / 4;  // when built at once
  static constexpr std::size_t kSparse = Leaf<A>::kCapacity / 4;

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
    return last.right ? Change{n.u_score, score, kUnknown, kUnknown}
                      : Change{score, n.v_score, kUnknown, kUnknown};
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

  Sum weight_ = 0;
  std::vector<Ref> free_nodes_;
  std::vector<Ref> free_leaves_;
  Ref root_ = kLeafBit;
};

}  // namespace abers
