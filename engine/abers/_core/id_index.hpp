// The models of the observations of a partition by their ids, for labels that carry only the id.
//
// What is here must follow from the records that were read of both inputs, each in its order, but
// not from the order in which they were merged, so that it can be made again from them. Therefore
// time goes by two clocks, one of observations and one of labels, and it is cut into parts: kSpan
// parts are the span, the time that an observation waits for its label, and a label for its
// observation.
//
// - An observation came in the part p of the clock of observations, a label in the part v of that
//   of labels. The label finds the observation if v <= p + kSpan.
// - An observation is forgotten at the latest when its clock is 2 * kSpan parts later. Let f be
//   the last part with a forgotten observation: a label expires where v <= f + kSpan.
//
// So a label that found an observation which is forgotten now has expired now: f >= p. Hence "found
// or expired" never turns false again as observations come, and a label waits exactly if it is
// false after all observations read so far.
//
// A label keeps its part. So after a silence of more than the span the first two labels have the
// part before it, as the clock of labels moves with the third: they do not wait if they are early.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include "clocks.hpp"
#include "id_table.hpp"
#include "label_waits.hpp"
#include "saved_bytes.hpp"
#include "siphash.hpp"

namespace abers {

constexpr std::int64_t kSpan = 32;  // parts of time

// Results of a label that are not the number of a model.
constexpr std::int64_t kUnknownId = -1;
constexpr std::int64_t kAmbiguousId = -2;
constexpr std::int64_t kLabelWaits = -3;

struct ReleasedLabel {
  std::int64_t row;     // of the observation that released it
  std::int64_t offset;  // of the label
  std::int64_t result;
};

struct IdOptions {
  SipKey key;
  std::int64_t span;    // milliseconds
  std::int64_t jump;    // how far one event alone moves a clock
  std::size_t max_ids;  // remembered, but for those before the clock is known
};

// Observations that came in one part of time, or some of them. Forgotten together.
struct IdGeneration {
  std::int64_t part;
  std::uint64_t count;  // of arrivals, also of an id that came again
};

struct FirstId {
  std::uint64_t hash;
  std::uint32_t model;
};

class IdIndex {
 public:
  explicit IdIndex(const IdOptions& options)
      : options_(options),
        unit_(std::max<std::int64_t>(1, (options.span + kSpan - 1) / kSpan)),
        model_clock_(options.jump) {}

  std::uint64_t hash_of(std::string_view id) const { return SipHash(options_.key).of(id); }
  void fetch(std::uint64_t hash) const { table_.fetch(hash); }

  void observe(std::int64_t row, std::uint64_t hash, std::uint32_t model, std::int64_t time) {
    came_.clear();
    tick(hash, time);
    add(hash, model);
    const auto release = [&](std::int64_t result) {
      return
          [this, row, result](std::int64_t offset) { released.push_back({row, offset, result}); };
    };
    for (const std::uint64_t one : came_) {
      const Found found = find(one);
      waits_.match(one, found.last_part, release(found.result));
    }
    waits_.expire(last_expired(), release(kUnknownId));
  }

  // The model of a label, or another result; offsets ascend.
  std::int64_t label(std::uint64_t hash, std::int64_t time, std::int64_t offset) {
    last_offset_ = offset;
    with_name(hash, [&](const Name& name) { model_clock_.tick(label_clock_, name, time); });
    const std::int64_t part = part_of(label_clock_);
    const Found found = find(hash);
    if (part <= found.last_part) return found.result;
    if (part <= last_expired()) return kUnknownId;
    waits_.add(offset, {hash, part});
    return kLabelWaits;
  }

  // Ends the wait of a label.
  void drop(std::int64_t offset) { waits_.drop(offset); }

  std::size_t ids() const { return total_ + first_ids_.size(); }
  const LabelWaits::ByOffset& waits() const { return waits_.all(); }
  std::int64_t last_offset() const { return last_offset_; }

  // Calls emit(model) for each id, with kAmbiguous for one of several models.
  template <class Emit>
  void each_model(const Emit& emit) {
    for (const FirstId& one : first_ids_) emit(one.model);
    table_.each(window(), [&](std::uint64_t, IdCell cell) { emit(cell.model()); });
  }

  std::size_t bytes() const {
    constexpr std::size_t wait = 3 * 4 * sizeof(void*) + sizeof(LabelWait) + 5 * 8;
    return table_.bytes() + waits_.count() * wait + generations_.size() * sizeof(IdGeneration);
  }

  std::vector<ReleasedLabel> released;  // since it was cleared
  std::uint64_t evicted = 0;            // ids that were forgotten early, for want of room

 private:
  friend class IdIndexCodec;

  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::min() / 2;
  static constexpr std::int64_t kAlways = std::numeric_limits<std::int64_t>::max();

  // What a label finds if it came in a part of time up to `last_part`.
  struct Found {
    std::int64_t last_part;
    std::int64_t result;
  };

  Window window() const { return {oldest_ + generations_.size() - 1, generations_.size()}; }
  std::int64_t last_expired() const { return forgotten_ + kSpan; }

  std::int64_t part_of(const Clock& clock) const {
    const std::int64_t rest = clock.time % unit_;
    return clock.time / unit_ - (rest < 0);
  }

  // Clocks know ids by their hashes.
  template <class Call>
  static void with_name(std::uint64_t hash, const Call& call) {
    char id[sizeof(hash)];
    put(id, hash);
    call(Name{0, static_cast<std::uint32_t>(hash), {id, sizeof(id)}});
  }

  void tick(std::uint64_t hash, std::int64_t time) {
    Tick tick = Tick::kStays;
    with_name(hash, [&](const Name& name) { tick = model_clock_.tick(clock_, name, time); });
    if (tick == Tick::kAgreed) {
      advance_agreed();
    } else if (tick == Tick::kMoves || tick == Tick::kBegun) {
      advance();
    }
  }

  // Observations that agreed to move the clock far came at the clock that they made.
  void advance_agreed() {
    std::vector<FirstId> agreed;
    for (const Candidate& one : model_clock_.agreed) {
      const auto hash = number<std::uint64_t>(one.id.data());
      if (const IdCell* const cell = table_.find(hash, window()))
        agreed.push_back({hash, cell->model()});
    }
    advance();
    for (const FirstId& one : agreed) add(one.hash, one.model);
  }

  void advance() {
    const std::int64_t last = part_of(clock_) - 2 * kSpan - 1;
    while (!generations_.empty() && generations_.front().part <= last) forget();
    forgotten_ = std::max(forgotten_, last);
  }

  // Forgets the oldest generation.
  void forget() {
    forgotten_ = std::max(forgotten_, generations_.front().part);
    total_ -= generations_.front().count;
    generations_.pop_front();
    ++oldest_;
  }

  void add(std::uint64_t hash, std::uint32_t model) {
    came_.push_back(hash);
    if (FirstId* const first = first_id(hash)) {
      first->model = joined(first->model, model);
    } else if (clock_.known) {
      remember(hash, model);
    } else {
      first_ids_.push_back({hash, model});
    }
  }

  static std::uint32_t joined(std::uint32_t before, std::uint32_t model) {
    return before == model ? model : kAmbiguous;
  }

  void remember(std::uint64_t hash, std::uint32_t model) {
    open();
    const IdCell* const found = table_.find(hash, window());
    const bool counts = found && window().age(*found) == 0;
    const std::uint32_t all = found ? joined(found->model(), model) : model;
    table_.put(hash, IdCell::of(all, window().newest), window());
    if (counts) return;
    ++generations_.back().count;
    ++total_;
    while (total_ > options_.max_ids) {
      evicted += generations_.front().count;
      forget();
    }
  }

  // Opens a generation in a new part of time, or where the last has a kSpan-th of all ids.
  void open() {
    const std::int64_t part = part_of(clock_);
    const std::size_t most = std::max<std::size_t>(1, options_.max_ids / kSpan);
    if (!generations_.empty() && generations_.back().part == part &&
        generations_.back().count < most)
      return;
    generations_.push_back({part, 0});
    if (generations_.size() > kMostGenerations) forget();
  }

  FirstId* first_id(std::uint64_t hash) {
    const auto found = std::find_if(first_ids_.begin(), first_ids_.end(),
                                    [&](const FirstId& one) { return one.hash == hash; });
    return found == first_ids_.end() ? nullptr : &*found;
  }

  Found find(std::uint64_t hash) {
    if (const FirstId* const first = first_id(hash)) return {kAlways, result_of(first->model)};
    const IdCell* const cell = table_.find(hash, window());
    if (!cell) return {kNever, kUnknownId};
    const IdGeneration& one = *(generations_.end() - 1 - window_age(*cell));
    return {one.part + kSpan, result_of(cell->model())};
  }

  std::ptrdiff_t window_age(IdCell cell) const {
    return static_cast<std::ptrdiff_t>(window().age(cell));
  }

  static std::int64_t result_of(std::uint32_t model) {
    return model == kAmbiguous ? kAmbiguousId : std::int64_t{model};
  }

  IdOptions options_;
  std::int64_t unit_;  // milliseconds of a part
  ModelClock model_clock_;
  Clock clock_;        // of observations
  Clock label_clock_;  // of labels
  IdTable table_;
  // Those before the clock is known, fewer than kQuorum. They are never forgotten: nobody knows
  // when they came.
  std::vector<FirstId> first_ids_;
  std::deque<IdGeneration> generations_;
  std::uint64_t oldest_ = 1;         // number of the first generation
  std::uint64_t total_ = 0;          // arrivals in all generations
  std::int64_t forgotten_ = kNever;  // the last part with a forgotten observation
  std::vector<std::uint64_t> came_;  // ids of the last observation, and of those that it stamped
  LabelWaits waits_;
  std::int64_t last_offset_ = -1;  // of a label
};

}  // namespace abers
