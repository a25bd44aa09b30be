// Items in ascending order, in blocks.
//
// Both ends, and an item by its value, are found in few lines of memory, and an
// item takes no more than its own bytes.
//
// Invariants: the items of all blocks one after the other ascend; no block is empty, and none has
// more than kMost items; lasts_[i] is the last item of block i.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace abers {

template <class T>
class OrderedBlocks {
 public:
  std::size_t size() const { return size_; }

  void clear() {
    blocks_.clear();
    lasts_.clear();
    size_ = 0;
  }

  // Starts anew from items in ascending order.
  void build(const std::vector<T>& items) {
    clear();
    for (std::size_t at = 0; at < items.size(); at += kMost / 2) {
      const auto first = items.begin() + static_cast<std::ptrdiff_t>(at);
      const std::size_t count = std::min(kMost / 2, items.size() - at);
      blocks_.emplace_back(first, first + static_cast<std::ptrdiff_t>(count));
      lasts_.push_back(blocks_.back().back());
    }
    size_ = items.size();
  }

  void insert(const T& item) {
    ++size_;
    if (blocks_.empty()) {
      blocks_.push_back({item});
      lasts_.push_back(item);
      return;
    }
    const std::size_t k = std::min(block_of(item), blocks_.size() - 1);
    std::vector<T>& block = blocks_[k];
    block.insert(std::upper_bound(block.begin(), block.end(), item), item);
    lasts_[k] = block.back();
    if (block.size() > kMost) split(k);
  }

  bool contains(const T& item) const {
    const std::size_t k = block_of(item);
    return k < blocks_.size() && std::binary_search(blocks_[k].begin(), blocks_[k].end(), item);
  }

  // Precondition: the item is there; one that is equal leaves.
  void erase(const T& item) {
    const std::size_t k = block_of(item);
    std::vector<T>& block = blocks_[k];
    block.erase(std::lower_bound(block.begin(), block.end(), item));
    --size_;
    if (block.empty()) {
      blocks_.erase(blocks_.begin() + static_cast<std::ptrdiff_t>(k));
      lasts_.erase(lasts_.begin() + static_cast<std::ptrdiff_t>(k));
    } else {
      lasts_[k] = block.back();
    }
  }

  // The i-th smallest and the i-th largest item, from 0; quick where i is small.
  const T& from_first(std::size_t i) const {
    std::size_t k = 0;
    for (; i >= blocks_[k].size(); ++k) i -= blocks_[k].size();
    return blocks_[k][i];
  }
  const T& from_last(std::size_t i) const {
    std::size_t k = blocks_.size() - 1;
    for (; i >= blocks_[k].size(); --k) i -= blocks_[k].size();
    return blocks_[k][blocks_[k].size() - 1 - i];
  }

  // Calls visit(item) from the smallest, or from the largest, on, as long as it returns true.
  template <class Visit>
  void visit_first(const Visit& visit) const {
    for (const std::vector<T>& block : blocks_) {
      if (!std::all_of(block.begin(), block.end(), visit)) return;
    }
  }
  template <class Visit>
  void visit_last(const Visit& visit) const {
    for (auto block = blocks_.rbegin(); block != blocks_.rend(); ++block) {
      if (!std::all_of(block->rbegin(), block->rend(), visit)) return;
    }
  }

  std::vector<T> items() const {
    std::vector<T> all;
    all.reserve(size_);
    for (const std::vector<T>& block : blocks_) all.insert(all.end(), block.begin(), block.end());
    return all;
  }

  std::size_t bytes() const {
    std::size_t total = lasts_.capacity() * sizeof(T);
    for (const std::vector<T>& block : blocks_) {
      total += sizeof(block) + block.capacity() * sizeof(T);
    }
    return total;
  }

 private:
  static constexpr std::size_t kMost = 256;  // larger blocks move more, and smaller ones are more

  // The first block that may have the item.
  std::size_t block_of(const T& item) const {
    return static_cast<std::size_t>(std::lower_bound(lasts_.begin(), lasts_.end(), item) -
                                    lasts_.begin());
  }

  void split(std::size_t k) {
    std::vector<T>& block = blocks_[k];
    const auto half = block.begin() + static_cast<std::ptrdiff_t>(block.size() / 2);
    std::vector<T> upper(half, block.end());
    block.erase(half, block.end());
    lasts_[k] = block.back();
    lasts_.insert(lasts_.begin() + static_cast<std::ptrdiff_t>(k) + 1, upper.back());
    blocks_.insert(blocks_.begin() + static_cast<std::ptrdiff_t>(k) + 1, std::move(upper));
  }

  std::vector<std::vector<T>> blocks_;
  std::vector<T> lasts_;
  std::size_t size_ = 0;
};

}  // namespace abers
