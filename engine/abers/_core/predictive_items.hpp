// What is read of one side of a query: open labels, and the ends that a stretch may have.
//
// Labels that are on the same side of all thresholds in question are only counted,
// and of the ends between them only those are kept that can be better than both their neighbours.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace abers {

enum Side : std::uint8_t { kLeft = 0, kRight = 1 };

// A slope, exactly.
template <class A>
struct Slope {
  typename A::Product num;
  typename A::Product den;

  // Below all values y * den - x * num.
  static constexpr typename A::Product kLowest =
      -((static_cast<typename A::Product>(1) << (8 * sizeof(typename A::Product) - 2)) - 1) * 2;

  Slope complement() const { return {den - num, den}; }
};

// A label that is a hit at some thresholds and none at others, and behind it an end that a stretch
// may have: the weight so far, and that of the hits at all thresholds. Either may be missing.
template <class A>
struct Item {
  double label;
  typename A::Stored weight;  // of the label, 0 without one
  typename A::Stored x;
  typename A::Stored y;
  typename A::Stored ends;  // 1 if a stretch may end here, else 0
};

// The items of a side, stacked: those of a range above those of the range it is part of. Memory
// is kept from query to query, and grows before it is written to by pointer.
template <class A>
class Items {
 public:
  using Sum = typename A::Sum;
  using Stored = typename A::Stored;

  std::size_t size() const { return size_; }
  void resize(std::size_t size) { size_ = size; }  // to what is reserved
  Item<A>* data() { return items_.data(); }
  const Item<A>* data() const { return items_.data(); }

  void reserve(std::size_t more) {
    if (items_.size() < size_ + more + 1) items_.resize(2 * (size_ + more) + 64);
  }

  // Begins to read outwards from a query, for the thresholds from `low` to `high`.
  void open(double score, double low, double high) {
    low_ = low;
    high_ = high;
    size_ = 0;
    reading_ = {};
    reading_.score = score;
  }

  // Reads entries, all that are seen at a horizon.
  template <Side side, class Iterator>
  void read(Iterator entry, Iterator last, double horizon) {
    reserve(2 * static_cast<std::size_t>(last - entry));
    Reading now = reading_;  // the compiler keeps it in registers
    now.top = data() + size_;
    for (; entry != last; ++entry) {
      const std::int64_t seen = entry->seen >> A::kShift;
      if (entry->time < horizon || seen == 0) continue;
      if (entry->score != now.score) end_group(now);
      now.score = entry->score;
      now.x += seen;
      now.y += (side == kLeft ? entry->label > high_ : entry->label <= low_) ? seen : 0;
      *now.top = {entry->label, static_cast<Stored>(seen), 0, 0, 0};
      const bool open = low_ < entry->label && entry->label <= high_;
      now.top += open;
      now.opened |= open;
    }
    keep(now);
  }

  // Passes over whole groups of equal scores where all labels are hits or none is.
  void pass(double from, double to, Sum weight, Sum hits) {
    if (from != reading_.score) close();
    reading_.score = to;
    reading_.x += weight;
    reading_.y += hits;
  }

  // Ends a group, in the end the last one.
  void close() {
    reserve(1);
    Reading now = reading_;
    now.top = data() + size_;
    end_group(now);
    keep(now);
  }

 private:
  struct Reading {
    double score = 0;        // of the group that is read
    Sum x = 0;               // weight
    Sum y = 0;               // weight of the hits at all thresholds
    Sum y_before = 0;        // the same before the group
    Sum misses = 0;          // weight of all others, up to the last end
    bool opened = false;     // whether the group has open labels
    bool ended = false;      // whether there is an end
    Item<A>* top = nullptr;  // behind all items
  };

  void keep(const Reading& now) {
    reading_ = now;
    size_ = static_cast<std::size_t>(now.top - data());
  }

  // Ends a group of equal scores: here a stretch may end. That is never better than to end before
  // the group if it has no hit, and never worse than to end where all since were hits.
  static void end_group(Reading& now) {
    if (now.y != now.y_before || now.opened || !now.ended) {
      const bool instead = now.ended && now.x - now.y == now.misses;
      if (!now.opened && !instead) *now.top++ = {0, 0, 0, 0, 0};
      Item<A>& item = now.top[-1];
      item.x = static_cast<Stored>(now.x);
      item.y = static_cast<Stored>(now.y);
      item.ends = 1;
      now.misses = now.x - now.y;
      now.ended = true;
    }
    now.y_before = now.y;
    now.opened = false;
  }

  std::vector<Item<A>> items_;
  std::size_t size_ = 0;
  double low_ = 0;
  double high_ = 0;
  Reading reading_;
};

}  // namespace abers
