// Observations in the order of their scores, in blocks that take insertion and deletion.
//
// Governing rule: the order is that of score, label, time and weight, so it does not depend on
// that of arrival; where nothing ages, equal pairs of score and label are one entry.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <tuple>
#include <utility>
#include <vector>

namespace abers {

struct Entry {
  double score;
  double label;
  double time;          // 0 where nothing ages
  std::int64_t weight;  // fixed point, as it was learned
  std::int64_t seen;    // the same on the scale at which queries see it

  bool operator<(const Entry& other) const {
    return std::tie(score, label, time, weight) <
           std::tie(other.score, other.label, other.time, other.weight);
  }
};

// Invariant: no block is empty.
class PredictiveBuffer {
 public:
  using Block = std::vector<Entry>;

  const std::vector<Block>& blocks() const { return blocks_; }

  // The entry of a score and a label, or nothing.
  Entry* find(double score, double label) {
    const Place at = place({score, label, 0, 0, 0});
    if (at.block == blocks_.size() || at.entry == blocks_[at.block].size()) return nullptr;
    Entry& found = blocks_[at.block][at.entry];
    return found.score == score && found.label == label ? &found : nullptr;
  }

  void insert(const Entry& entry) {
    if (blocks_.empty()) return build({entry});
    Place at = place(entry);
    if (at.block == blocks_.size()) at = {at.block - 1, blocks_.back().size()};
    Block& block = blocks_[at.block];
    block.insert(block.begin() + static_cast<std::ptrdiff_t>(at.entry), entry);
    if (block.size() == kMost) split(at.block);
  }

  // Takes out an entry that is there.
  void erase(const Entry& entry) {
    const Place at = place(entry);
    Block& block = blocks_[at.block];
    block.erase(block.begin() + static_cast<std::ptrdiff_t>(at.entry));
    if (block.empty()) blocks_.erase(blocks_.begin() + static_cast<std::ptrdiff_t>(at.block));
  }

  // Fills an empty buffer from entries in order.
  void build(const std::vector<Entry>& entries) {
    for (std::size_t i = 0; i < entries.size(); i += kMost / 2) {
      Block& block = blocks_.emplace_back();
      block.reserve(kMost);
      const auto first = entries.begin() + static_cast<std::ptrdiff_t>(i);
      const std::size_t n = std::min(kMost / 2, entries.size() - i);
      block.assign(first, first + static_cast<std::ptrdiff_t>(n));
    }
  }

  template <class Change>
  void for_each(const Change& change) {
    for (Block& block : blocks_) {
      for (Entry& entry : block) change(entry);
    }
  }

  // The place of the first entry whose score is not below the one given.
  struct Place {
    std::size_t block;
    std::size_t entry;
  };

  template <class Before>
  Place first_not(const Before& before) const {
    const auto block = std::partition_point(blocks_.begin(), blocks_.end(),
                                            [&](const Block& b) { return before(b.back()); });
    if (block == blocks_.end()) return {blocks_.size(), 0};
    const auto entry = std::partition_point(block->begin(), block->end(), before);
    return {static_cast<std::size_t>(block - blocks_.begin()),
            static_cast<std::size_t>(entry - block->begin())};
  }

  std::size_t bytes() const {
    return blocks_.capacity() * sizeof(Block) + blocks_.size() * kMost * sizeof(Entry);
  }

 private:
  static constexpr std::size_t kMost = 256;  // entries a block; moving half of them takes 0.1 µs

  Place place(const Entry& entry) const {
    return first_not([&](const Entry& e) { return e < entry; });
  }

  void split(std::size_t at) {
    Block right;
    right.reserve(kMost);
    Block& left = blocks_[at];
    const auto half = left.begin() + kMost / 2;
    right.assign(half, left.end());
    left.erase(half, left.end());
    blocks_.insert(blocks_.begin() + static_cast<std::ptrdiff_t>(at) + 1, std::move(right));
  }

  std::vector<Block> blocks_;
};

}  // namespace abers
