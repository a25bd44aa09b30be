// The ledger of a stream: which observations wait for labels, which labels for observations, and
// which ids are done with.
//
// Governing rule: the same contract as `abers/_ledger.py`, which is the specification; events come
// in order of arrival, and time is their own.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "waiting.hpp"

namespace abers {

constexpr std::int64_t kNoClock = std::numeric_limits<std::int64_t>::min() / 4;

struct Event {
  Name name;
  bool is_label;
  std::uint32_t key;
  std::int64_t time;
  double value;
};

// A step of a calibrator: a prediction, or a label that is learned.
struct Settled {
  bool learns;
  std::int64_t row;  // of the event that brought it about
  std::uint32_t slot;
  std::uint32_t key;
  std::int64_t time;  // of the observation
  std::int64_t told;  // of the label
  double value;
};

// An observation that waited in vain.
struct Dropped {
  std::int64_t row;  // of the event that ended the wait
  std::uint32_t slot;
  std::uint32_t key;
};

// A label that waited in vain.
struct Unknown {
  std::int64_t row;  // of the event whose time ended the wait
  std::string id;
  std::uint32_t model;
  std::int64_t time;
  double value;
};

enum Count : std::size_t {
  kEarlyLabels,
  kDuplicateObservations,
  kDuplicateLabels,
  kLateLabels,
  kLateEvents,
  kExpired,
  kEvicted,
  kUnknownLabels,
  kForgotten,
  kCounts
};

class Ledger {
 public:
  Ledger(std::int64_t lateness, std::int64_t wait, std::int64_t memory, std::size_t max_pending,
         std::size_t max_early, std::size_t max_finished)
      : lateness_(lateness),
        wait_(wait),
        memory_(memory),
        max_pending_(max_pending),
        max_early_(max_early),
        max_finished_(max_finished) {}

  Ledger(const Ledger&) = delete;
  Ledger& operator=(const Ledger&) = delete;

  // Stores of `store` and `load`.
  enum Store : std::size_t { kPending, kEarly, kFinished, kStores };

  void take(std::int64_t row, const Event& event) {
    row_ = row;
    if (event.time > clock_) {
      clock_ = event.time;
      expire();
    } else if (event.time < clock_ - lateness_) {
      ++counts[kLateEvents];
    }
    event.is_label ? settle(event) : observe(event);
  }

  // Tells of an event that comes soon.
  void fetch(const Name& name) const {
    for (const Waiting& store : stores_) store.fetch(name);
  }

  // Lets the slots that were left be used again.
  void recycle() {
    for (Waiting& store : stores_) store.recycle();
  }

  std::int64_t clock() const { return clock_; }
  void set_clock(std::int64_t clock) { clock_ = clock; }
  Waiting& store(Store which) { return stores_[which]; }
  const Waiting& store(Store which) const { return stores_[which]; }

  std::array<std::int64_t, kCounts> counts{};
  std::vector<Settled> steps;     // since they were cleared
  std::vector<Unknown> unknowns;  // since they were cleared
  std::vector<Dropped> dropped;   // since they were cleared

 private:
  Waiting& pending() { return stores_[kPending]; }
  Waiting& early() { return stores_[kEarly]; }
  Waiting& finished() { return stores_[kFinished]; }

  void observe(const Event& event) {
    if (pending().find(event.name) || finished().find(event.name)) {
      ++counts[kDuplicateObservations];
      return;
    }
    const std::uint32_t slot = pending().add(event.name, event.key, event.time, clock_, 0);
    steps.push_back({false, row_, slot, event.key, event.time, 0, 0});
    if (const std::uint32_t label = early().find(event.name)) {
      const std::int64_t told = early()[label].time;
      const double value = early()[label].value;
      early().take(label);
      pair(slot, told, value);
    }
    if (pending().count() > max_pending_) drop_pending(kEvicted);
  }

  void settle(const Event& event) {
    if (const std::uint32_t slot = pending().find(event.name)) {
      pair(slot, event.time, event.value);
    } else if (const std::uint32_t done = finished().find(event.name)) {
      ++counts[finished()[done].key ? kDuplicateLabels : kLateLabels];
    } else if (early().find(event.name)) {
      ++counts[kDuplicateLabels];
    } else {
      early().add(event.name, 0, event.time, clock_, event.value);
      ++counts[kEarlyLabels];
      if (early().count() > max_early_) drop_early();
    }
  }

  void pair(std::uint32_t slot, std::int64_t told, double value) {
    const Entry& entry = pending()[slot];
    steps.push_back({true, row_, slot, entry.key, entry.time, told, value});
    finish(slot, true);
  }

  // Moves an observation from those that wait to those that are done with.
  void finish(std::uint32_t slot, bool labelled) {
    const Entry& entry = pending()[slot];
    const Name name = entry.name();
    const auto text = pending().take(slot);
    finished().add(name, labelled, 0, clock_, 0);
    if (finished().count() > max_finished_) {
      finished().take(finished().oldest());
      ++counts[kForgotten];
    }
  }

  void expire() {
    while (over(pending(), wait_)) drop_pending(kExpired);
    while (over(early(), wait_)) drop_early();
    while (over(finished(), memory_)) finished().take(finished().oldest());
  }

  bool over(const Waiting& store, std::int64_t span) const {
    const std::uint32_t oldest = store.oldest();
    return oldest && store[oldest].stored + span < clock_ - lateness_;
  }

  void drop_pending(Count reason) {
    const std::uint32_t slot = pending().oldest();
    ++counts[reason];
    dropped.push_back({row_, slot, pending()[slot].key});
    finish(slot, false);
  }

  void drop_early() {
    const std::uint32_t slot = early().oldest();
    const Entry& label = early()[slot];
    ++counts[kUnknownLabels];
    unknowns.push_back({row_, std::string(label.id()), label.model, label.time, label.value});
    early().take(slot);
  }

  std::int64_t lateness_;
  std::int64_t wait_;
  std::int64_t memory_;
  std::size_t max_pending_;
  std::size_t max_early_;
  std::size_t max_finished_;
  std::int64_t clock_ = kNoClock;
  std::int64_t row_ = 0;
  std::array<Waiting, kStores> stores_;
};

}  // namespace abers
