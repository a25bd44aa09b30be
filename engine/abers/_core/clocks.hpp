// The clocks of the models of a stream: event time that one wrong time cannot move far.
//
// An event further ahead than `jump` is used, but its time is only a candidate: the clock moves to
// the earliest of `kQuorum` candidates of different ids that came within `kRecent` events of the
// model. After that, for `kRecent` events, one event may move it by `kApart` times the distance of
// the nearest two of them, as events may be rare. The first `kQuorum` ids begin a clock, with the
// median of their times; before that it is unknown. `tests/engine/stream/naive.py` has the rules.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "entry_list.hpp"
#include "step.hpp"

namespace abers {

constexpr std::int64_t kForever = std::int64_t{1} << 53;  // of a jump: no time is too far ahead
constexpr std::size_t kQuorum = 3;     // ids that agree where a clock begins, or moves far
constexpr std::int64_t kRecent = 100;  // events of their model within which they come
constexpr std::int64_t kApart = 3;     // times as far as those that agreed are apart

// A time that a clock may move to.
struct Candidate {
  std::string id;
  std::uint32_t hash;
  std::int64_t time;
  std::int64_t number;  // of the event, in its model
};

struct Clock {
  std::int64_t time = kNoClock;
  bool known = false;
  std::int64_t events = 0;
  std::int64_t step = 0;    // how far one event may be ahead, while those that agreed are recent
  std::int64_t agreed = 0;  // number of the event with which they agreed
  std::vector<Candidate> candidates;  // fewer than kQuorum between two events
};

// What an event does to the clock of its model.
enum class Tick : std::uint8_t {
  kStays,
  kMoves,
  kAhead,   // a candidate, or an id that is one
  kAgreed,  // the last of a quorum: the clock moves far
  kBegun,   // the clock is known from now on
};

class ModelClock {
 public:
  explicit ModelClock(std::int64_t jump) : jump_(jump) {}

  // Those of a quorum after `kAgreed` and `kBegun`.
  std::vector<Candidate> agreed;

  Tick tick(Clock& clock, const Name& name, std::int64_t time) {
    ++clock.events;
    if (!clock.known) return begin(clock, name, time);
    if (!near(clock, clock.time, time)) return propose(clock, name, time);
    if (time <= clock.time) return Tick::kStays;
    clock.time = time;
    return Tick::kMoves;
  }

 private:
  // Whether one event alone moves the clock from a time to a later one.
  bool near(const Clock& clock, std::int64_t time, std::int64_t later) const {
    const bool recent = clock.agreed > clock.events - kRecent;
    return later <= time + std::max(jump_, recent ? clock.step : 0);
  }

  static void agree(Clock& clock, const std::vector<std::int64_t>& times) {
    clock.step = kApart * std::min(times[1] - times[0], times[2] - times[1]);
    clock.agreed = clock.events;
  }

  static Candidate* proposed(Clock& clock, const Name& name) {
    const auto found = std::find_if(clock.candidates.begin(), clock.candidates.end(),
                                    [&](const Candidate& one) { return one.id == name.id; });
    return found == clock.candidates.end() ? nullptr : &*found;
  }

  static void add(Clock& clock, const Name& name, std::int64_t time) {
    clock.candidates.push_back({std::string(name.id), name.hash, time, clock.events});
  }

  // Keeps the candidates that are recent, and further ahead of the clock than the jump.
  void prune(Clock& clock) const {
    std::erase_if(clock.candidates, [&](const Candidate& one) {
      return near(clock, clock.time, one.time) || one.number <= clock.events - kRecent;
    });
  }

  static std::vector<std::int64_t> times(const Clock& clock) {
    std::vector<std::int64_t> sorted;
    for (const Candidate& one : clock.candidates) sorted.push_back(one.time);
    std::sort(sorted.begin(), sorted.end());
    return sorted;
  }

  // Until enough ids came the clock is provisional: of two that disagree the earlier one. Then it
  // is the median of three, or the latest that is near it.
  Tick begin(Clock& clock, const Name& name, std::int64_t time) {
    if (jump_ >= kForever) {
      clock.time = time;
      clock.known = true;
      return Tick::kBegun;
    }
    if (Candidate* one = proposed(clock, name)) {
      if (one->time < time && near(clock, one->time, time)) one->time = time;
    } else {
      add(clock, name, time);
    }
    const std::vector<std::int64_t> sorted = times(clock);
    if (sorted.size() < kQuorum) {
      clock.time = near(clock, sorted.front(), sorted.back()) ? sorted.back() : sorted.front();
      return Tick::kStays;
    }
    agree(clock, sorted);
    clock.time = near(clock, sorted[1], sorted[2]) ? sorted[2] : sorted[1];
    clock.known = true;
    prune(clock);
    return Tick::kBegun;
  }

  // Invariant: candidates are of different ids, and each is further ahead than the jump.
  Tick propose(Clock& clock, const Name& name, std::int64_t time) {
    prune(clock);
    if (proposed(clock, name)) return Tick::kAhead;
    add(clock, name, time);
    if (clock.candidates.size() < kQuorum) return Tick::kAhead;
    const std::vector<std::int64_t> sorted = times(clock);
    agree(clock, sorted);
    clock.time = sorted[0];
    for (const std::int64_t later : sorted) {
      if (near(clock, clock.time, later)) clock.time = later;
    }
    agreed = clock.candidates;
    prune(clock);
    return Tick::kAgreed;
  }

  std::int64_t jump_;
};

}  // namespace abers
