// Observations in the order of their scores, in blocks that take insertion and deletion.
//
// The order is that of score, label, time and weight, so it does not depend on
// that of arrival; where nothing ages, equal pairs of score and label are one entry. What a block
// holds in all is found when it is asked for, and kept until the block changes.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <tuple>
#include <utility>
#include <vector>

namespace abers {

struct BufferEntry {
  double score;
  double label;
  double time;          // 0 where nothing ages
  std::int64_t weight;  // fixed point, as it was learned
  std::int64_t seen;    // the same on the scale at which queries see it

  bool operator<(const BufferEntry& other) const {
    return std::tie(score, label, time, weight) <
           std::tie(other.score, other.label, other.time, other.weight);
  }
};

// What a block holds in all, without what is too old to be seen.
struct Outline {
  bool known = false;
  double oldest = 0;                // time of an entry, seen or not
  double smallest = 0;              // label
  double largest = 0;               // label
  std::int64_t weight = 0;          // on the scale of queries
  std::vector<std::int64_t> above;  // weight of the labels above each cut

  // Counts an entry between the two cuts around it; it is above the first.
  void count(const BufferEntry& entry, const std::vector<double>& cuts) {
    weight += entry.seen;
    const auto next = std::lower_bound(cuts.begin(), cuts.end(), entry.label);
    above[static_cast<std::size_t>(next - cuts.begin()) - 1] += entry.seen;
  }

  // To be called when all are counted.
  void add_up() {
    for (std::size_t k = above.size() - 1; k-- > 0;) above[k] += above[k + 1];
  }
};

struct BufferBlock {
  std::vector<BufferEntry> entries;
  Outline outline;
};

// Invariant: no block is empty.
class PredictiveBuffer {
 public:
  const std::vector<BufferBlock>& blocks() const { return blocks_; }

  // The entry of a score and a label, or nothing.
  const BufferEntry* find(double score, double label) const {
    const Place at = place({score, label, 0, 0, 0});
    if (at.block == blocks_.size() || at.entry == blocks_[at.block].entries.size()) return nullptr;
    const BufferEntry& found = blocks_[at.block].entries[at.entry];
    return found.score == score && found.label == label ? &found : nullptr;
  }

  void insert(const BufferEntry& entry) {
    if (blocks_.empty()) return build({entry});
    ++changes_;
    Place at = place(entry);
    if (at.block == blocks_.size()) at = {at.block - 1, blocks_.back().entries.size()};
    BufferBlock& block = blocks_[at.block];
    block.outline.known = false;
    block.entries.insert(block.entries.begin() + static_cast<std::ptrdiff_t>(at.entry), entry);
    if (block.entries.size() == kMost) split(at.block);
  }

  // Takes out an entry that is there.
  void erase(const BufferEntry& entry) {
    ++changes_;
    const Place at = place(entry);
    BufferBlock& block = blocks_[at.block];
    block.outline.known = false;
    block.entries.erase(block.entries.begin() + static_cast<std::ptrdiff_t>(at.entry));
    if (block.entries.empty()) {
      blocks_.erase(blocks_.begin() + static_cast<std::ptrdiff_t>(at.block));
    }
  }

  // Adds to the weight of an entry that is there and does not age.
  void reweigh(const BufferEntry& entry, std::int64_t more) {
    const Place at = place(entry);
    blocks_[at.block].outline.known = false;
    BufferEntry& held = blocks_[at.block].entries[at.entry];
    held.weight += more;
    held.seen = held.weight;
  }

  // Fills an empty buffer from entries in order.
  void build(const std::vector<BufferEntry>& entries) {
    changes_ += entries.size();
    for (std::size_t i = 0; i < entries.size(); i += kMost / 2) {
      std::vector<BufferEntry>& block = blocks_.emplace_back().entries;
      block.reserve(kMost);
      const auto first = entries.begin() + static_cast<std::ptrdiff_t>(i);
      const std::size_t n = std::min(kMost / 2, entries.size() - i);
      block.assign(first, first + static_cast<std::ptrdiff_t>(n));
    }
  }

  template <class Change>
  void for_each(const Change& change) {
    for (BufferBlock& block : blocks_) {
      for (BufferEntry& entry : block.entries) change(entry);
      block.outline.known = false;
    }
  }

  // The place of the first entry with a score not below that given.
  struct Place {
    std::size_t block;
    std::size_t entry;
  };

  template <class Before>
  Place first_not(const Before& before) const {
    const auto block =
        std::partition_point(blocks_.begin(), blocks_.end(),
                             [&](const BufferBlock& b) { return before(b.entries.back()); });
    if (block == blocks_.end()) return {blocks_.size(), 0};
    const std::vector<BufferEntry>& all = block->entries;
    const auto entry = std::partition_point(all.begin(), all.end(), before);
    return {static_cast<std::size_t>(block - blocks_.begin()),
            static_cast<std::size_t>(entry - all.begin())};
  }

  // Labels between which the outlines of the blocks count, from minus infinity to infinity; so
  // many that the thresholds between two have answers about as near to each other as chance lets
  // them be, n^(-1/3).
  const std::vector<double>& cuts() const { return cuts_; }

  // Brings the outlines up to date for a query that sees nothing before the horizon; chooses the
  // cuts anew when as much has changed as was kept then. Gives the smallest and the largest label
  // seen; the first is above the second if nothing is seen.
  std::pair<double, double> outline(double horizon) {
    if (changes_ - chosen_at_ >= chosen_of_) choose_cuts();
    double smallest = std::numeric_limits<double>::infinity();
    double largest = -smallest;
    for (BufferBlock& block : blocks_) {
      Outline& outline = block.outline;
      if (!outline.known || outline.oldest < horizon) outline_block(block, horizon);
      outline.known = outline.oldest >= horizon;
      smallest = std::min(smallest, outline.smallest);
      largest = std::max(largest, outline.largest);
    }
    return {smallest, largest};
  }

  std::size_t bytes() const {
    return blocks_.capacity() * sizeof(BufferBlock) +
           blocks_.size() * (kMost * sizeof(BufferEntry) + cuts_.size() * sizeof(std::int64_t)) +
           cuts_.capacity() * sizeof(double);
  }

 private:
#ifdef ABERS_CHECK
  static constexpr std::size_t kMost = 8;  // so that small bags have many blocks
#else
  static constexpr std::size_t kMost = 256;  // entries a block; moving half of them takes 0.1 µs
#endif

  Place place(const BufferEntry& entry) const {
    return first_not([&](const BufferEntry& e) { return e < entry; });
  }

  void split(std::size_t at) {
    BufferBlock right;
    right.entries.reserve(kMost);
    std::vector<BufferEntry>& left = blocks_[at].entries;
    const auto half = left.begin() + kMost / 2;
    right.entries.assign(half, left.end());
    left.erase(half, left.end());
    blocks_.insert(blocks_.begin() + static_cast<std::ptrdiff_t>(at) + 1, std::move(right));
  }

  // The cuts are quantiles of the labels, of a sample of the entries at equal steps.
  void choose_cuts() {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    std::size_t n = 0;
    for (const BufferBlock& block : blocks_) n += block.entries.size();
    const auto parts = static_cast<std::size_t>(3.0 * std::cbrt(static_cast<double>(n))) + 1;
    const std::size_t stride = n / (32 * parts) + 1;
    std::vector<double> sample;
    std::size_t i = 0;
    for (const BufferBlock& block : blocks_) {
      for (; i < block.entries.size(); i += stride) sample.push_back(block.entries[i].label);
      i -= block.entries.size();
    }
    std::sort(sample.begin(), sample.end());
    cuts_.assign(1, -kInfinity);
    for (std::size_t k = 1; k < parts; ++k) {
      const double label = sample[k * sample.size() / parts];
      if (label > cuts_.back()) cuts_.push_back(label);
    }
    cuts_.push_back(kInfinity);
    chosen_at_ = changes_;
    chosen_of_ = n;
    for (BufferBlock& block : blocks_) block.outline.known = false;
  }

  void outline_block(BufferBlock& block, double horizon) const {
    Outline& outline = block.outline;
    outline.oldest = outline.smallest = std::numeric_limits<double>::infinity();
    outline.largest = -outline.smallest;
    outline.weight = 0;
    outline.above.assign(cuts_.size(), 0);
    for (const BufferEntry& entry : block.entries) {
      outline.oldest = std::min(outline.oldest, entry.time);
      if (entry.time < horizon || entry.seen == 0) continue;
      outline.smallest = std::min(outline.smallest, entry.label);
      outline.largest = std::max(outline.largest, entry.label);
      outline.count(entry, cuts_);
    }
    outline.add_up();
  }

  std::vector<BufferBlock> blocks_;
  std::vector<double> cuts_;
  std::size_t changes_ = 0;
  std::size_t chosen_at_ = 0;  // changes when the cuts were chosen
  std::size_t chosen_of_ = 0;  // entries then
};

}  // namespace abers
