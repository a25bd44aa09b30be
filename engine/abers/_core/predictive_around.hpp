// The blocks around a query: what is known of them without reading them.
//
// A block a given number of blocks from the query's own is known by its outline alone. From
// outlines follows beyond which block nothing matters, for certain (`reach`), and what the answers
// at the cuts are, nearly (`estimate`).
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "predictive_buffer.hpp"
#include "predictive_items.hpp"

namespace abers {

// Numbers of blocks on each side of the query's own.
using Near = std::array<std::size_t, 2>;

inline Near farther(const Near& a, const Near& b) {
  return {std::max(a[kLeft], b[kLeft]), std::max(a[kRight], b[kRight])};
}

template <class A>
class Around {
 public:
  using Product = typename A::Product;

  void place(const PredictiveBuffer& buffer, double score, double horizon) {
    blocks_ = buffer.blocks().data();
    cuts_ = &buffer.cuts();
    horizon_ = horizon;
    const std::size_t n = buffer.blocks().size();
    const auto start = buffer.first_not([&](const BufferEntry& e) { return e.score < score; });
    home_ = std::min(start.block, n - 1);
    at_ = start.block == n ? blocks_[home_].entries.size() : start.entry;
    far_ = {home_, n - 1 - home_};
    outline_home();
  }

  // All blocks.
  const Near& far() const { return far_; }

  // The entries of the query's own block, and those of them that lie before it.
  const std::vector<BufferEntry>& home() const { return blocks_[home_].entries; }
  std::size_t home_before() const { return at_; }

  // Weight of all that is before the query's score, and from it on.
  std::array<std::int64_t, 2> totals() const {
    std::array<std::int64_t, 2> all{own_[kLeft].weight, own_[kRight].weight};
    for (std::size_t i = 1; i <= far_[kLeft]; ++i) all[kLeft] += block<kLeft>(i).outline.weight;
    for (std::size_t i = 1; i <= far_[kRight]; ++i) all[kRight] += block<kRight>(i).outline.weight;
    return all;
  }

  // The block a given number of blocks from the query's own.
  template <Side side>
  const BufferBlock& block(std::size_t distance) const {
    return blocks_[side == kLeft ? home_ - distance : home_ + distance];
  }

  template <Side side>
  static double nearest(const BufferBlock& b) {
    return side == kLeft ? b.entries.back().score : b.entries.front().score;
  }

  template <Side side>
  static double farthest(const BufferBlock& b) {
    return side == kLeft ? b.entries.front().score : b.entries.back().score;
  }

  // Whether a group of equal scores ends behind that block.
  template <Side side>
  bool ends_at(std::size_t distance) const {
    return distance == far_[side] ||
           farthest<side>(block<side>(distance)) != nearest<side>(block<side>(distance + 1));
  }

  // Weight of the hits of a block at a cut.
  template <Side side>
  static std::int64_t hits(const Outline& all, std::size_t cut) {
    return side == kLeft ? all.above[cut] : all.weight - all.above[cut];
  }

  // The least number of blocks beyond which no end can be better than the best one before, where
  // the hits are at most those at a cut, and the slope is at least that. An end inside a block with
  // hits of weight h is above the block's beginning by at most (1 - slope) * h, as if they all came
  // first.
  template <Side side>
  std::size_t reach(std::size_t cut, const Slope<A>& slope) const {
    std::size_t least = 0;
    Product value = 0;  // of y - slope * x behind a block, less that behind the query's own
    Product record = ends_at<side>(0) ? 0 : Slope<A>::kLowest;
    for (std::size_t distance = 1; distance <= far_[side]; ++distance) {
      const Outline& all = block<side>(distance).outline;
      const Product hit = hits<side>(all, cut) >> A::kShift;
      const Product weight = all.weight >> A::kShift;
      if (value + (slope.den - slope.num) * hit > record) least = distance;
      value += slope.den * hit - slope.num * weight;
      if (value > record && ends_at<side>(distance)) record = value;
    }
    return least;
  }

  // The probability at a cut, nearly: as if only whole blocks could be pooled. It is sought from a
  // guess.
  double estimate(std::size_t cut, double p) const {
    constexpr int kRounds = 6;
    constexpr double kPrecise = 1e-4;
    for (int i = 0; i < kRounds; ++i) {
      const auto [x, y] = best<kLeft>(cut, p);
      const auto [u, v] = best<kRight>(cut, 1.0 - p);
      const double before = std::exchange(p, (y + u - v + 0.5 * kOne) / (x + u + kOne));
      if (std::abs(p - before) < kPrecise) break;
    }
    return p;
  }

  // Which blocks are likely to matter between two cuts with these probabilities.
  Near likely(std::size_t cut, double at_cut, double at_next) const {
    constexpr Product kFine = 1 << 20;
    const auto slope = [](double p) { return Slope<A>{static_cast<Product>(p * kFine), kFine}; };
    return {reach<kLeft>(cut, slope(at_next)), reach<kRight>(cut + 1, slope(1.0 - at_cut))};
  }

 private:
  // Outlines of the two parts of the query's own block.
  void outline_home() {
    for (const Side side : {kLeft, kRight}) {
      own_[side].weight = 0;
      own_[side].above.assign(cuts_->size(), 0);
    }
    for (std::size_t i = 0; i < home().size(); ++i) {
      const BufferEntry& entry = home()[i];
      if (entry.time >= horizon_) own_[i < at_ ? kLeft : kRight].count(entry, *cuts_);
    }
    for (const Side side : {kLeft, kRight}) own_[side].add_up();
  }

  // The whole blocks that are best for a slope, by their weight and their hits.
  template <Side side>
  std::pair<double, double> best(std::size_t cut, double slope) const {
    auto x = static_cast<double>(own_[side].weight);
    auto y = static_cast<double>(hits<side>(own_[side], cut));
    std::pair<double, double> found{x, y};
    double record = y - slope * x;
    for (std::size_t i = 1; i <= far_[side]; ++i) {
      const Outline& all = block<side>(i).outline;
      x += static_cast<double>(all.weight);
      y += static_cast<double>(hits<side>(all, cut));
      if (y - slope * x > record) {
        record = y - slope * x;
        found = {x, y};
      }
    }
    return found;
  }

  const BufferBlock* blocks_ = nullptr;
  const std::vector<double>* cuts_ = nullptr;
  double horizon_ = 0;
  std::size_t home_ = 0;  // the query's own block
  std::size_t at_ = 0;    // its entries before the query
  Near far_{};
  std::array<Outline, 2> own_;
};

}  // namespace abers
