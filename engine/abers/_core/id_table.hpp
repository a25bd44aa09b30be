// A table from 64 bits of an id to the model of its observation, in 12 bytes a cell.
//
// The cells of a shard are an ascending array with gaps: open addressing, where a larger hash has a
// later home. So a search ends at the first larger hash, a shard is saved in order without sorting,
// and its layout after a rebuild depends only on what is in it. A generation of ids is forgotten in
// one step; its cells go when their shard is next rebuilt. There are 256 shards, so that a rebuild
// moves a 256th part.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace abers {

constexpr std::uint32_t kNoModel = 0xffffff;    // of an empty cell
constexpr std::uint32_t kAmbiguous = 0xfffffe;  // of an id of several models
constexpr std::uint64_t kMostGenerations = 128;

// What a cell says of an id: its model, and the lowest 8 bits of its generation.
struct IdCell {
  std::uint32_t word = kNoModel;

  static IdCell of(std::uint32_t model, std::uint64_t generation) {
    return {static_cast<std::uint32_t>(generation << 24) | model};
  }
  bool empty() const { return model() == kNoModel; }
  std::uint32_t model() const { return word & 0xffffff; }
  std::uint64_t generation() const { return word >> 24; }
};

struct Known {
  std::uint64_t hash;
  IdCell cell;
};

// The generations that are remembered: `count` of them, at most kMostGenerations, up to `newest`.
struct Window {
  std::uint64_t newest;
  std::uint64_t count;

  std::uint64_t age(IdCell cell) const { return (newest - cell.generation()) & 0xff; }
  bool has(IdCell cell) const { return !cell.empty() && age(cell) < count; }
};

// Invariants: the hashes of cells that are not empty ascend; none lies before its home, and no
// empty cell between its home and its place. No cell is of a generation older than 255.
class IdShard {
 public:
  // The cell of an id, which may be forgotten; nullptr without one.
  IdCell* find(std::uint64_t hash) {
    const std::size_t at = place(hash);
    return filled(at) && hashes_[at] == hash ? &cells_[at] : nullptr;
  }

  // Lets memory bring what `find` will look at.
  void fetch(std::uint64_t hash) const {
    if (cells_.empty()) return;
    const std::size_t at = home(hash);
    __builtin_prefetch(&hashes_[at]);
    __builtin_prefetch(&cells_[at]);
  }

  // Adds an id that has no cell.
  void insert(std::uint64_t hash, IdCell cell, const Window& window) {
    if (8 * (count_ + 1) > 7 * capacity_) rebuild(window);
    if (free_from(place(hash)) == cells_.size()) rebuild(window);  // which leaves the tail free
    const std::size_t at = place(hash);
    const auto first = static_cast<std::ptrdiff_t>(at);
    const auto gap = static_cast<std::ptrdiff_t>(free_from(at));
    std::move_backward(hashes_.begin() + first, hashes_.begin() + gap, hashes_.begin() + gap + 1);
    std::move_backward(cells_.begin() + first, cells_.begin() + gap, cells_.begin() + gap + 1);
    hashes_[at] = hash;
    cells_[at] = cell;
    ++count_;
  }

  // Removes what is forgotten before the 8 bits of its generation come again.
  void refresh(const Window& window) {
    if (window.newest - rebuilt_ >= kMostGenerations) rebuild(window);
  }

  // Calls emit(hash, cell) for what is remembered, by ascending hash.
  template <class Emit>
  void each(const Window& window, const Emit& emit) const {
    for (std::size_t at = 0; at < cells_.size(); ++at) {
      if (window.has(cells_[at])) emit(hashes_[at], cells_[at]);
    }
  }

  // Lays out ids, ascending, with room for two fifths more.
  void fill(const std::vector<Known>& ids, const Window& window) {
    capacity_ = std::max<std::size_t>(kTail, (ids.size() + 1) * 10 / 7 + 1);
    std::size_t end = 0;
    for (const Known& one : ids) end = std::max(home(one.hash), end) + 1;
    const std::size_t size = std::max(capacity_, end) + kTail;
    std::vector<std::uint64_t>(size).swap(hashes_);
    std::vector<IdCell>(size).swap(cells_);
    std::size_t at = 0;
    for (const Known& one : ids) {
      at = std::max(home(one.hash), at);
      hashes_[at] = one.hash;
      cells_[at++] = one.cell;
    }
    count_ = ids.size();
    rebuilt_ = window.newest;
  }

  std::size_t bytes() const {
    return hashes_.capacity() * sizeof(std::uint64_t) + cells_.capacity() * sizeof(IdCell);
  }

 private:
  static constexpr std::size_t kTail = 8;  // cells that stay free at the end

  // Grows with the hash; the first 8 of its 64 bits are the shard's.
  std::size_t home(std::uint64_t hash) const { return (((hash << 8) >> 32) * capacity_) >> 32; }

  bool filled(std::size_t at) const { return at < cells_.size() && !cells_[at].empty(); }

  // The first cell from the home on that is empty or not of a smaller hash.
  std::size_t place(std::uint64_t hash) const {
    std::size_t at = home(hash);
    while (filled(at) && hashes_[at] < hash) ++at;
    return at;
  }

  std::size_t free_from(std::size_t at) const {
    while (filled(at)) ++at;
    return at;
  }

  void rebuild(const Window& window) {
    std::vector<Known> kept;
    each(window, [&](std::uint64_t hash, IdCell cell) { kept.push_back({hash, cell}); });
    fill(kept, window);
  }

  std::vector<std::uint64_t> hashes_;
  std::vector<IdCell> cells_;
  std::size_t capacity_ = 0;   // the homes
  std::size_t count_ = 0;      // cells that are not empty
  std::uint64_t rebuilt_ = 0;  // the newest generation then
};

class IdTable {
 public:
  IdCell* find(std::uint64_t hash, const Window& window) {
    IdCell* const found = shard(hash, window).find(hash);
    return found && window.has(*found) ? found : nullptr;
  }

  void fetch(std::uint64_t hash) const { shards_[hash >> 56].fetch(hash); }

  // Sets the cell of an id.
  void put(std::uint64_t hash, IdCell cell, const Window& window) {
    IdShard& one = shard(hash, window);
    if (IdCell* const found = one.find(hash)) {
      *found = cell;
    } else {
      one.insert(hash, cell, window);
    }
  }

  // Takes ids, ascending, into an empty table.
  void fill(const std::vector<Known>& ids, const Window& window) {
    auto first = ids.begin();
    for (std::uint64_t number = 0; number < shards_.size(); ++number) {
      const auto last = std::find_if(first, ids.end(),
                                     [&](const Known& one) { return one.hash >> 56 != number; });
      shards_[number].fill({first, last}, window);
      first = last;
    }
  }

  // Calls emit(hash, cell) for what is remembered, by ascending hash.
  template <class Emit>
  void each(const Window& window, const Emit& emit) {
    for (IdShard& one : shards_) {
      one.refresh(window);
      one.each(window, emit);
    }
  }

  std::size_t bytes() const {
    std::size_t sum = shards_.size() * sizeof(IdShard);
    for (const IdShard& one : shards_) sum += one.bytes();
    return sum;
  }

 private:
  IdShard& shard(std::uint64_t hash, const Window& window) {
    IdShard& one = shards_[hash >> 56];
    one.refresh(window);
    return one;
  }

  std::vector<IdShard> shards_ = std::vector<IdShard>(256);
};

}  // namespace abers
