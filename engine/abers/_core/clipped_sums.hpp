// The sums of labels by score, each label clipped to a range that moves with the labels.
//
// A label counts from a base that is not above the range, so that no increment is negative. When
// the range leaves its base behind, or the sums grow out of 64 bits, the base moves and the diagram
// is built anew; as it then leaves room for a range of twice the width, that is rare. The base
// never shows in an answer.
//
// Invariants: the tree has each of the labels, clipped, less the base; base_ <= low_; the labels
// weigh at most 2^62 in all.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "diagram.hpp"
#include "ordered_blocks.hpp"

namespace abers {

// A label in units of the resolution, and the score it came with.
struct LabelledScore {
  std::int64_t label;
  double score;

  bool operator<(const LabelledScore& other) const {
    return label < other.label || (label == other.label && score < other.score);
  }
};

using LabelOrder = OrderedBlocks<LabelledScore>;

// The double nearest to a ratio of any sign.
inline double signed_ratio(int128 num, int128 den) {
  return num < 0 ? -rounded_ratio(-num, den) : rounded_ratio(num, den);
}

class ClippedSums {
 public:
  using P = Point<Summed>;
  using D = Direction<Summed>;

  ClippedSums() { build({}, 0, 0); }

  // Starts anew from labels in the order of their scores, and a range to clip them to.
  void build(const std::vector<LabelledScore>& labels, std::int64_t low, std::int64_t high) {
    low_ = low;
    high_ = high;
    base_ = low - (high - low);
    std::vector<SumGroup> groups;
    groups.reserve(labels.size());
    for (const auto& [label, score] : labels) groups.push_back({score, 1, clipped(label) - base_});
    std::size_t kept = 0;
    for (std::size_t i = 0; i < groups.size(); ++i) {  // pools ties
      if (i > 0 && groups[i].score == groups[kept - 1].score) {
        groups[kept - 1].count += groups[i].count;
        groups[kept - 1].sum += groups[i].sum;
      } else {
        groups[kept++] = groups[i];
      }
    }
    groups.resize(kept);
    build(groups);
  }

  // Makes the range of `count` labels fit, before any of them is in it.
  void make_room(std::int64_t low, std::int64_t high, std::size_t count) {
    constexpr int128 most = int128{1} << 62;
    const int128 widest = static_cast<int128>(std::max(high, high_)) - base_;
    if (std::min(low, low_) >= base_ && widest * static_cast<int128>(count) <= most) return;
    const std::int64_t least = std::min(low, low_);
    const std::int64_t base = least - (std::max(high, high_) - least);
    std::vector<SumGroup> groups;
    for_each_group([&](const SumGroup& g) {
      groups.push_back({g.score, g.count, g.sum + (base_ - base) * g.count});
    });
    base_ = base;
    build(groups);
  }

  // Adds a label with sign 1, or takes away one that is there with sign -1.
  void add(const LabelledScore& item, std::int64_t sign) {
    tree_.change(item.score, sign, sign * (clipped(item.label) - base_));
  }

  // Moves the range; `order` has the labels of the tree. An end beyond the other one goes first, so
  // that the range never turns over, and each end passes few labels.
  void move(const LabelOrder& order, std::int64_t low, std::int64_t high) {
    if (low > high_) move_high(order, high);
    move_low(order, low);
    move_high(order, high);
  }

  std::int64_t low() const { return low_; }
  std::int64_t high() const { return high_; }

  // The fit at a score with the query's label the low or the high end of the range, in units.
  double low_fit(double score) const {
    const Query<Summed> query(tree_);
    return value(query.fit_of_least(query.locate(score), increment(low_)));
  }
  double high_fit(double score) const {
    const Query<Summed> query(tree_);
    return value(query.fit_of_greatest(query.locate(score), increment(high_)));
  }

  // All low fits of this, and all high ones of sums of the same scores.
  Table table(const ClippedSums& highs) const {
    const std::int64_t slope = high_ - base_;
    return Table(
        points_of(tree_), {1, slope - (low_ - base_), 0.0}, points_of(highs.tree_),
        highs.increment(highs.high_), slope,
        [&](const D& fit) { return value({fit.dx, slope * fit.dx - fit.dy}); },
        [&](const D& fit) { return highs.value(fit); });
  }

  const Tree<Summed>& tree() const { return tree_; }
  std::size_t bytes() const { return tree_.bytes(); }

 private:
  struct SumGroup {
    double score;
    std::int64_t count;
    std::int64_t sum;  // of labels less the base
  };

  std::int64_t clipped(std::int64_t label) const { return std::min(std::max(label, low_), high_); }

  P increment(std::int64_t label) const { return {1, label - base_, 0.0}; }

  double value(const D& fit) const { return signed_ratio(fit.dy + base_ * fit.dx, fit.dx); }

  void move_low(const LabelOrder& order, std::int64_t low) {
    const std::int64_t reach = std::max(low, low_);
    const std::int64_t before = low_;
    if (low == before) return;
    order.visit_first([&](const LabelledScore& item) {
      if (item.label >= reach) return false;
      low_ = before;
      const std::int64_t was = clipped(item.label);
      low_ = low;
      tree_.change(item.score, 0, clipped(item.label) - was);
      return true;
    });
    low_ = low;
  }

  void move_high(const LabelOrder& order, std::int64_t high) {
    const std::int64_t reach = std::min(high, high_);
    const std::int64_t before = high_;
    if (high == before) return;
    order.visit_last([&](const LabelledScore& item) {
      if (item.label <= reach) return false;
      high_ = before;
      const std::int64_t was = clipped(item.label);
      high_ = high;
      tree_.change(item.score, 0, clipped(item.label) - was);
      return true;
    });
    high_ = high;
  }

  template <class Visit>
  void for_each_group(const Visit& visit) const {
    tree_.for_each_leaf([&](const Leaf<Summed>& bucket) {
      for (std::size_t i = 0; i < bucket.size(); ++i) {
        if (std::isinf(bucket.score(i))) continue;  // the sentinel
        const D step = bucket.increment(i);
        visit(SumGroup{bucket.score(i), static_cast<std::int64_t>(step.dx),
                       static_cast<std::int64_t>(step.dy)});
      }
    });
  }

  void build(const std::vector<SumGroup>& groups) {
    tree_.build(groups.size(),
                [&](std::size_t i, double& score, std::int64_t& dx, std::int64_t& dy) {
                  score = groups[i].score;
                  dx = groups[i].count;
                  dy = groups[i].sum;
                });
  }

  std::int64_t low_ = 0;
  std::int64_t high_ = 0;
  std::int64_t base_ = 0;
  Tree<Summed> tree_;
};

}  // namespace abers
