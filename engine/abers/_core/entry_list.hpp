// Entries that are found by model and id, and kept in the order in which they came.
//
// An entry is a slot; slots are linked from the oldest to the newest, all of them
// and those of each model, which are counted too, and a hash table of slots finds them. So coming,
// leaving and being the oldest all cost the same for any number of entries. A slot that is left is
// used again only after `recycle`.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

namespace abers {

constexpr double kAssumed = -1;  // in the place of the bytes of features, which are learned

// What an entry is known by. The hash comes from outside, where it is keyed against floods.
struct Name {
  std::uint32_t model;
  std::uint32_t hash;
  std::string_view id;
};

// The neighbours of an entry, or the newest and the oldest entry of a list.
struct Links {
  std::uint32_t before = 0;
  std::uint32_t after = 0;
};

// The entries of one model: the ends of their list, and how many there are.
struct ModelEntries {
  Links ends;
  std::uint32_t count = 0;
};

struct Entry {
  std::unique_ptr<char[]> text;
  std::uint32_t length = 0;
  std::uint32_t model = 0;
  std::uint32_t hash = 0;
  std::uint32_t key = 0;
  std::int64_t time = 0;
  std::int64_t stored = 0;  // the clock of its model when it came
  // Of an early label its value, of an observation the bytes of its features, or kAssumed.
  double value = 0;
  Links all;
  Links of_model;

  std::string_view id() const { return {text.get(), length}; }
  Name name() const { return {model, hash, id()}; }
};

// Slots by name: open addressing, linear probing, at most 2/3 full. Slot 0 means none.
// Invariant: between the home of a slot and its place no cell is empty.
class Slots {
 public:
  template <class Entries>
  std::uint32_t find(const Entries& entries, const Name& name) const {
    if (cells_.empty()) return 0;
    for (std::size_t at = name.hash & mask(); cells_[at].slot; at = (at + 1) & mask()) {
      if (cells_[at].hash != name.hash) continue;
      const Entry& entry = entries[cells_[at].slot];
      if (entry.model == name.model && entry.id() == name.id) return cells_[at].slot;
    }
    return 0;
  }

  // Lets memory bring what `find` will look at; it is further away than all the rest takes.
  void fetch(std::uint32_t hash) const {
    if (!cells_.empty()) __builtin_prefetch(&cells_[hash & mask()]);
  }

  void insert(std::uint32_t hash, std::uint32_t slot) {
    if (3 * (count_ + 1) > 2 * cells_.size()) grow();
    place({hash, slot});
    ++count_;
  }

  void erase(std::uint32_t hash, std::uint32_t slot) {
    std::size_t hole = hash & mask();
    while (cells_[hole].slot != slot) hole = (hole + 1) & mask();
    // Whatever lies beyond the hole and may not lie beyond an empty cell moves into it.
    for (std::size_t at = (hole + 1) & mask(); cells_[at].slot; at = (at + 1) & mask()) {
      const std::size_t home = cells_[at].hash & mask();
      if (((at - home) & mask()) >= ((at - hole) & mask())) {
        cells_[hole] = cells_[at];
        hole = at;
      }
    }
    cells_[hole] = {};
    --count_;
  }

  std::size_t bytes() const { return cells_.capacity() * sizeof(Cell); }

 private:
  struct Cell {
    std::uint32_t hash = 0;
    std::uint32_t slot = 0;
  };

  std::size_t mask() const { return cells_.size() - 1; }

  void place(const Cell& cell) {
    std::size_t at = cell.hash & mask();
    while (cells_[at].slot) at = (at + 1) & mask();
    cells_[at] = cell;
  }

  void grow() {
    std::vector<Cell> old(std::max<std::size_t>(16, 2 * cells_.size()));
    old.swap(cells_);
    for (const Cell& cell : old) {
      if (cell.slot) place(cell);
    }
  }

  std::vector<Cell> cells_;
  std::size_t count_ = 0;
};

class EntryList {
 public:
  // The bytes of an entry besides its id, and whether values count the bytes of features.
  EntryList(std::size_t entry_bytes, bool has_features)
      : entries_(1), entry_bytes_(entry_bytes), has_features_(has_features) {}

  std::size_t count() const { return count_; }
  std::size_t capacity() const { return entries_.size(); }
  // Bytes of the entries, of their ids, and of features.
  std::size_t payload() const { return payload_; }
  std::uint32_t oldest() const { return entries_[0].all.after; }
  std::uint32_t after(std::uint32_t slot) const { return entries_[slot].all.after; }
  std::uint32_t oldest_of(std::uint32_t model) const {
    return model < models_.size() ? models_[model].ends.after : 0;
  }
  std::size_t count_of(std::uint32_t model) const {
    return model < models_.size() ? models_[model].count : 0;
  }
  const Entry& operator[](std::uint32_t slot) const { return entries_[slot]; }
  std::uint32_t find(const Name& name) const { return slots_.find(entries_, name); }
  void fetch(const Name& name) const { slots_.fetch(name.hash); }

  std::uint32_t add(const Name& name, std::uint32_t key, std::int64_t time, std::int64_t stored,
                    double value) {
    std::uint32_t slot = 0;
    if (free_.empty()) {
      slot = static_cast<std::uint32_t>(entries_.size());
      entries_.emplace_back();
    } else {
      slot = free_.back();
      free_.pop_back();
    }
    Entry& entry = entries_[slot];
    entry.text = std::make_unique_for_overwrite<char[]>(name.id.size());
    std::memcpy(entry.text.get(), name.id.data(), name.id.size());
    entry.length = static_cast<std::uint32_t>(name.id.size());
    entry.model = name.model;
    entry.hash = name.hash;
    entry.key = key;
    entry.time = time;
    entry.stored = stored;
    entry.value = value;
    if (name.model >= models_.size()) models_.resize(name.model + 1);
    link(slot);
    slots_.insert(name.hash, slot);
    payload_ += payload_of(entry);
    ++count_;
    return slot;
  }

  // Takes an entry out and gives it away; its other fields can be read until `recycle`.
  std::unique_ptr<char[]> take(std::uint32_t slot) {
    Entry& entry = entries_[slot];
    slots_.erase(entry.hash, slot);
    unlink(slot);
    payload_ -= payload_of(entry);
    left_.push_back(slot);
    --count_;
    return std::move(entry.text);
  }

  // Marks an observation with an assumed label: its features are no longer kept.
  void assume(std::uint32_t slot) {
    payload_ -= payload_of(entries_[slot]);
    entries_[slot].value = kAssumed;
    payload_ += payload_of(entries_[slot]);
  }

  // Sets when an entry came: then, and after all others.
  void stamp(std::uint32_t slot, std::int64_t stored) {
    unlink(slot);
    entries_[slot].stored = stored;
    link(slot);
  }

  // Sets when all entries of a model came.
  void stamp_all(std::uint32_t model, std::int64_t stored) {
    for (std::uint32_t slot = oldest_of(model); slot; slot = entries_[slot].of_model.after) {
      entries_[slot].stored = stored;
    }
  }

  void recycle() {
    free_.insert(free_.end(), left_.begin(), left_.end());
    left_.clear();
  }

  std::size_t bytes() const {
    std::size_t texts = 0;
    for (const Entry& entry : entries_) {
      if (entry.text) texts += std::max<std::size_t>(32, (entry.length + 8 + 15) / 16 * 16);
    }
    return texts + entries_.size() * sizeof(Entry) + slots_.bytes() +
           models_.capacity() * sizeof(ModelEntries) +
           (free_.capacity() + left_.capacity()) * sizeof(std::uint32_t);
  }

 private:
  std::size_t payload_of(const Entry& entry) const {
    const bool counts = has_features_ && entry.value != kAssumed;
    return entry_bytes_ + entry.length + (counts ? static_cast<std::size_t>(entry.value) : 0);
  }

  // The ends of a list stand in its `ends`: the oldest after them, the newest before.
  void link(std::uint32_t slot) {
    append(entries_[0].all, &Entry::all, slot);
    ModelEntries& own = models_[entries_[slot].model];
    append(own.ends, &Entry::of_model, slot);
    ++own.count;
  }

  void unlink(std::uint32_t slot) {
    remove(entries_[0].all, &Entry::all, slot);
    ModelEntries& own = models_[entries_[slot].model];
    remove(own.ends, &Entry::of_model, slot);
    --own.count;
  }

  void append(Links& ends, Links Entry::* links, std::uint32_t slot) {
    entries_[slot].*links = {ends.before, 0};
    (ends.before ? (entries_[ends.before].*links).after : ends.after) = slot;
    ends.before = slot;
  }

  void remove(Links& ends, Links Entry::* links, std::uint32_t slot) {
    const Links gone = entries_[slot].*links;
    (gone.before ? (entries_[gone.before].*links).after : ends.after) = gone.after;
    (gone.after ? (entries_[gone.after].*links).before : ends.before) = gone.before;
  }

  std::deque<Entry> entries_;  // slot 0 has the ends of the list of all
  std::vector<ModelEntries> models_;
  Slots slots_;
  std::vector<std::uint32_t> free_;
  std::vector<std::uint32_t> left_;
  std::size_t count_ = 0;
  std::size_t payload_ = 0;
  std::size_t entry_bytes_;
  bool has_features_;
};

}  // namespace abers
