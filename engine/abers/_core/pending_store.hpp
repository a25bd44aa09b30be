// The pending store of a stream: which observations wait for labels, which labels wait for
// observations, and which ids are finished.
//
// Events come in order of arrival, and time is their own: each model has a clock (`clocks.hpp`). An
// entry carries the clock at which it was stored, and expires when more than its span has passed
// since. The numbers of entries are limited for each model, the bytes for all together. If a label
// is assumed, an observation that expires learns it and waits once more as long, for a late label.
// `tests/engine/stream/naive.py` has the rules.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "clocks.hpp"
#include "entry_list.hpp"

namespace abers {

constexpr std::int64_t kUnstamped = kForever - 1;  // of an entry with a clock that began anew

// Bytes that an entry counts for besides its id and features: what it takes, with its prediction.
constexpr std::size_t kPendingBytes = 180;
constexpr std::size_t kEarlyBytes = 110;
constexpr std::size_t kFinishedBytes = 110;

// What an event says of an observation: that it is there, its label, or that it gets none.
enum class EventKind : std::uint8_t { kObserves, kLabels, kEnds };

struct Event {
  Name name;
  EventKind kind;
  std::uint32_t key;
  std::int64_t time;
  double value;  // of a label its value, of an observation the bytes of its features
};

// Kinds of steps. An assumed label is learned, a late one is not.
enum class StepKind : std::uint8_t { kPredicts, kLearns, kAssumes, kLate };

// The result of a label that is no step, or of the end of a wait.
enum class Unsettled : std::uint8_t { kWaits, kRepeats, kLate, kEnds };

// A step of a calibrator: a prediction, or a label.
struct Settled {
  StepKind kind;
  std::int64_t row;  // of the event that brought it about
  std::uint32_t slot;
  std::uint32_t key;
  std::int64_t time;        // of the observation
  std::int64_t label_time;  // of the label
  std::int64_t clock;       // of the model; kNoClock where it is not known yet
  double value;
};

// An observation that waits no longer for a label.
struct Dropped {
  std::int64_t row;  // of the event that ended the wait
  std::uint32_t slot;
  std::uint32_t key;
  bool last;  // after the steps of the event, since their bytes took the room; else before them
};

// A label without its observation.
struct Unknown {
  std::int64_t row;  // of the event that ended the wait by its time
  std::string id;
  std::uint32_t model;
  std::int64_t time;
  double value;
};

enum Count : std::size_t {
  kPredictions,
  kLabels,
  kAssumedLabels,
  kEarlyLabels,
  kDuplicateObservations,
  kDuplicateLabels,
  kLateLabels,
  kLateEvents,
  kAheadEvents,
  kExpired,
  kEvicted,
  kRetiredObservations,
  kUnknownLabels,
  kEvictedLabels,
  kForgotten,
  kCounts
};

class PendingStore {
 public:
  PendingStore(std::int64_t lateness, std::int64_t wait, std::int64_t memory, std::int64_t jump,
               std::size_t max_pending, std::size_t max_early, std::size_t max_finished,
               std::size_t max_bytes, std::optional<double> assumed)
      : lateness_(lateness),
        wait_(wait),
        memory_(memory),
        clock_(jump),
        max_pending_(max_pending),
        max_early_(max_early),
        max_finished_(max_finished),
        max_bytes_(max_bytes),
        assumed_(assumed) {}

  PendingStore(const PendingStore&) = delete;
  PendingStore& operator=(const PendingStore&) = delete;

  // Stores of `store` and `load`.
  enum Store : std::size_t { kPending, kEarly, kFinished, kStores };

  void take(std::int64_t row, const Event& event) {
    row_ = row;
    tick(event);
    switch (event.kind) {
      case EventKind::kObserves:
        observe(event);
        break;
      case EventKind::kLabels:
        settle(event);
        break;
      case EventKind::kEnds:
        end(event);
        break;
    }
    fit();
  }

  // Tells of an event that comes soon.
  void fetch(const Name& name) const {
    for (const EntryList& store : stores_) store.fetch(name);
  }

  // Lets the slots that were left be used again.
  void recycle() {
    for (EntryList& store : stores_) store.recycle();
  }

  // Begins anew with the clock of a model; what waits then waits as if it came by then.
  void restart(std::uint32_t model) {
    clocks.at(model) = {};
    for (EntryList& store : stores_) store.stamp_all(model, kUnstamped);
  }

  EntryList& store(Store which) { return stores_[which]; }
  const EntryList& store(Store which) const { return stores_[which]; }

  // The pending observations for which no label was assumed.
  std::size_t undecided() const { return store(kPending).count() - assumed_waiting; }

  std::array<std::int64_t, kCounts> counts{};
  std::size_t assumed_waiting = 0;        // pending observations with an assumed label
  std::vector<Clock> clocks;              // by number of the model
  std::vector<Settled> steps;             // since they were cleared
  std::vector<Unknown> unknowns;          // since they were cleared
  std::vector<Dropped> dropped;           // since they were cleared
  std::vector<std::string> assumed_ids;   // of steps that assume a label, since they were cleared
  std::vector<std::int64_t> late_delays;  // of late labels, since they were cleared
  bool notes_unsettled = false;
  std::vector<Unsettled> unsettled;  // of labels, since they were cleared, if they are noted

 private:
  EntryList& pending() { return stores_[kPending]; }
  EntryList& early() { return stores_[kEarly]; }
  EntryList& finished() { return stores_[kFinished]; }

  void tick(const Event& event) {
    const std::uint32_t model = event.name.model;
    if (model >= clocks.size()) clocks.resize(model + 1);
    Clock& clock = clocks[model];
    switch (clock_.tick(clock, event.name, event.time)) {
      case Tick::kStays:
        break;
      case Tick::kMoves:
        expire(model);
        break;
      case Tick::kAhead:
        ++counts[kAheadEvents];
        break;
      case Tick::kAgreed:
        ++counts[kAheadEvents];
        // The events that agreed came at the clock that they made.
        for (const Candidate& one : clock_.agreed) stamp({model, one.hash, one.id}, clock.time);
        expire(model);
        break;
      case Tick::kBegun:
        counts[kAheadEvents] += static_cast<std::int64_t>(clock.candidates.size());
        for (EntryList& store : stores_) store.stamp_all(model, clock.time);
        break;
    }
    if (event.kind != EventKind::kEnds && event.time < clock.time - lateness_)
      ++counts[kLateEvents];
  }

  void stamp(const Name& name, std::int64_t stored) {
    for (EntryList& store : stores_) {
      if (const std::uint32_t slot = store.find(name)) store.stamp(slot, stored);
    }
  }

  std::int64_t now(std::uint32_t model) const {
    const std::int64_t time = clocks[model].time;
    return time == kNoClock ? kUnstamped : time;
  }

  void observe(const Event& event) {
    if (pending().find(event.name) || finished().find(event.name)) {
      ++counts[kDuplicateObservations];
      return;
    }
    const std::uint32_t slot =
        pending().add(event.name, event.key, event.time, now(event.name.model), event.value);
    ++counts[kPredictions];
    step(slot, 0, StepKind::kPredicts, 0);
    if (const std::uint32_t label = early().find(event.name)) {
      const std::int64_t label_time = early()[label].time;
      const double value = early()[label].value;
      early().take(label);
      pair(slot, label_time, value);
    }
    const std::uint32_t model = event.name.model;
    if (pending().count_of(model) > max_pending_)
      drop_pending(pending().oldest_of(model), kEvicted);
  }

  void settle(const Event& event) {
    if (const std::uint32_t slot = pending().find(event.name)) {
      pair(slot, event.time, event.value);
    } else if (const std::uint32_t done = finished().find(event.name)) {
      if (finished()[done].key) {
        ++counts[kDuplicateLabels];
        note(Unsettled::kRepeats);
      } else {
        count_late(event.time - finished()[done].time);
        note(Unsettled::kLate);
      }
    } else if (early().find(event.name)) {
      ++counts[kDuplicateLabels];
      note(Unsettled::kRepeats);
    } else {
      note(Unsettled::kWaits);
      early().add(event.name, 0, event.time, now(event.name.model), event.value);
      ++counts[kEarlyLabels];
      const std::uint32_t model = event.name.model;
      if (early().count_of(model) > max_early_) evict_early(early().oldest_of(model));
    }
  }

  void note(Unsettled what) {
    if (notes_unsettled) unsettled.push_back(what);
  }

  // Ends the wait of an observation that gets no label.
  void end(const Event& event) {
    if (const std::uint32_t slot = pending().find(event.name)) give_up(slot, event.time);
    note(Unsettled::kEnds);
  }

  // Learns the label of an observation, unless one was assumed.
  void pair(std::uint32_t slot, std::int64_t label_time, double value) {
    const bool late = pending()[slot].value == kAssumed;
    if (late) {
      count_late(label_time - pending()[slot].time);
    } else {
      ++counts[kLabels];
    }
    step(slot, label_time, late ? StepKind::kLate : StepKind::kLearns, value);
    finish(slot, true);
  }

  void step(std::uint32_t slot, std::int64_t label_time, StepKind kind, double value) {
    const Entry& entry = pending()[slot];
    const Clock& clock = clocks[entry.model];
    steps.push_back({kind, row_, slot, entry.key, entry.time, label_time,
                     clock.known ? clock.time : kNoClock, value});
  }

  // Moves an observation from those that wait to those that are done with.
  void finish(std::uint32_t slot, bool labelled) {
    const Entry& entry = pending()[slot];
    const Name name = entry.name();
    const std::int64_t time = entry.time;
    assumed_waiting -= entry.value == kAssumed;
    const auto text = pending().take(slot);
    finished().add(name, labelled, time, now(name.model), 0);
    if (finished().count_of(name.model) > max_finished_) forget(finished().oldest_of(name.model));
  }

  void forget(std::uint32_t slot) {
    finished().take(slot);
    ++counts[kForgotten];
  }

  void expire(std::uint32_t model) {
    const std::int64_t now = clocks[model].time - lateness_;
    while (const std::uint32_t slot = over(pending(), model, wait_, now))
      give_up(slot, pending()[slot].time + wait_);
    while (const std::uint32_t slot = over(early(), model, wait_, now)) drop_early(slot);
    while (const std::uint32_t slot = over(finished(), model, memory_, now)) finished().take(slot);
  }

  // Assumes the label of an observation at a time if there is one to assume, otherwise drops it.
  void give_up(std::uint32_t slot, std::int64_t time) {
    if (assumed_ && pending()[slot].value != kAssumed) {
      assume(slot, time);
    } else {
      drop_pending(slot, kExpired);
    }
  }

  // Learns the assumed label of an observation, which then waits for a late one.
  void assume(std::uint32_t slot, std::int64_t time) {
    const Entry& entry = pending()[slot];
    ++counts[kAssumedLabels];
    ++assumed_waiting;
    step(slot, time, StepKind::kAssumes, *assumed_);
    assumed_ids.emplace_back(entry.id());
    pending().assume(slot);
    pending().stamp(slot, now(entry.model));
  }

  // The oldest entry of a model if its span is over, otherwise 0.
  static std::uint32_t over(const EntryList& store, std::uint32_t model, std::int64_t span,
                            std::int64_t now) {
    const std::uint32_t oldest = store.oldest_of(model);
    return oldest && store[oldest].stored + span < now ? oldest : 0;
  }

  // Makes room for the bytes of all entries: finished ids go first, observations last, the oldest
  // of all models each time.
  void fit() {
    while (pending().payload() + early().payload() + finished().payload() > max_bytes_) {
      if (finished().count()) {
        forget(finished().oldest());
      } else if (early().count()) {
        evict_early(early().oldest());
      } else {
        drop_pending(pending().oldest(), kEvicted, true);
      }
    }
  }

  // An observation with an assumed label loses nothing.
  void drop_pending(std::uint32_t slot, Count reason, bool last = false) {
    if (pending()[slot].value != kAssumed) {
      ++counts[reason];
      dropped.push_back({row_, slot, pending()[slot].key, last});
    }
    finish(slot, false);
  }

  void count_late(std::int64_t delay) {
    ++counts[kLateLabels];
    late_delays.push_back(delay);
  }

  void evict_early(std::uint32_t slot) {
    ++counts[kEvictedLabels];
    drop_early(slot);
  }

  void drop_early(std::uint32_t slot) {
    const Entry& label = early()[slot];
    ++counts[kUnknownLabels];
    unknowns.push_back({row_, std::string(label.id()), label.model, label.time, label.value});
    early().take(slot);
  }

  std::int64_t lateness_;
  std::int64_t wait_;
  std::int64_t memory_;
  ModelClock clock_;
  std::size_t max_pending_;
  std::size_t max_early_;
  std::size_t max_finished_;
  std::size_t max_bytes_;
  std::optional<double> assumed_;  // the label of an observation without its own
  std::int64_t row_ = 0;
  std::array<EntryList, kStores> stores_{EntryList(kPendingBytes, true),
                                         EntryList(kEarlyBytes, false),
                                         EntryList(kFinishedBytes, false)};
};

}  // namespace abers
