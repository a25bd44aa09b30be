// In which order labels teach; see tests/oracles/teaching_order.py.
//
// Each row has a position, the count of predictions before it, and an age, that of predictions
// after it; the age at which its label comes is its delay. In the order of prediction a label
// waits until all earlier rows are done with: taught, expired or passed, which is older than the
// cap, nearly the longest delay of any class, by what it takes to see that labels are missing.
// A label of a passed row is taught at once. Where delays differ, but say nothing of labels, all
// labels are taught as they come. While more labels than usual are missing, no row is passed that
// is not very old, and the order is that of prediction. If more labels wait than may be kept, the
// oldest rows are passed at any age.
//
// Invariants between two calls: all rows before `head_` but those that are passed are done with,
// and the one at `head_` waits for its label; rows at positions below `noted_` were counted among
// the notes, and `noting_` is the place of the first that was not; rows at positions below
// `passed_` are passed.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "class_delays.hpp"
#include "missing_labels.hpp"
#include "saved_bytes.hpp"
#include "waiting_rows.hpp"

namespace abers {

// Rows that are taught, by number, in order.
using Taught = std::vector<std::int64_t>;

inline constexpr std::size_t kAnyNumber = std::numeric_limits<std::size_t>::max();  // of labels

class TeachingOrder {
 public:
  static constexpr std::int64_t kWait = 4096;       // the cap until two classes came, by default
  static constexpr std::int64_t kOldest = 1 << 17;  // beyond which, or the wait, all are passed
  static constexpr std::int64_t kSettled = 8192;    // rows until it is known how many never come
  static constexpr std::int64_t kLabels = 50;       // of each class that came, before that order
  static constexpr std::int64_t kNotes = 1 << 16;   // at most so many notes for a prediction
  // The order of arrival is for logarithms of delays with so large a deviation, with means so near
  // in deviations, and with variances so near in ratio. Equal delays gain nothing by it, and equal
  // means with unequal variances tell the label.
  static constexpr double kSpread = 0.25, kApart = 0.5, kUnequal = 2.0;

  // Rows are passed so many notes after their own that a stall is seen before it has misled: as
  // many as have so many labels of the rarer class, but not more.
  static constexpr double kRareLabels = 5.0, kMostNotes = 256.0;
  static constexpr double kRarer = 1.0 / 3.0;  // share of that class until two came

  // `wait` is the cap, in predictions, until labels of two classes came; at most `most` labels wait
  // to be taught.
  explicit TeachingOrder(std::int64_t wait = 0, std::size_t classes = 2,
                         std::size_t most = kAnyNumber)
      : wait_(wait == 0 ? kWait : wait), most_(most), delays_(classes) {
    if (wait < 0) throw std::invalid_argument("the wait must not be negative");
    weigh();
  }

  // A class more; no label of it came yet.
  void grow() { delays_.emplace_back(); }

  // A row was predicted; numbers ascend. Appends the rows that are taught now, as all that follow.
  // The time is for `TeachingByAge`, which has the same face.
  void predict(std::int64_t number, Taught& due, std::int64_t = 0) {
    if (number <= last_) throw std::invalid_argument("numbers of rows must ascend");
    make_room(due, held_);
    rows_.push(Row::of(number, predictions_, kWaits));
    last_ = number;
    ++alive_;
    ++predictions_;
    const bool before = stalled();
    const std::int64_t older = predictions_ - 1 - cap();  // not all at once where the cap fell
    for (std::int64_t left = kNotes; left > 0 && noted_ < older; --left, ++noted_) note();
    const std::int64_t passed =
        stalled() ? std::min(noted_, oldest()) : noted_ - (before ? 0 : probation());
    passed_ = std::max(passed_, passed);
    teach(due);
  }

  // The label of a waiting row came. False if the row does not wait; then nothing changes.
  bool label(std::int64_t number, std::size_t label, Taught& due) {
    const std::size_t at = rows_.find(number);
    if (at == rows_.size() || rows_[at].state() != kWaits) return false;
    make_room(due, held_ + 1);
    const std::int64_t position = rows_[at].position();
    delays_[label].add(predictions_ - 1 - position);
    weigh();
    if (position < passed_ || (held_ == 0 && at_once())) {
      due.push_back(number);
      end(at);
    } else {
      rows_[at].become(kHeld);
      ++held_;
    }
    teach(due);
    while (held_ > most_) {
      passed_ = rows_[head_].position() + 1;
      teach(due);
    }
    return true;
  }

  // The row waits no longer, and has no label. Nothing changes if it does not wait.
  void expire(std::int64_t number, Taught& due) {
    const std::size_t at = rows_.find(number);
    if (at == rows_.size() || rows_[at].state() != kWaits) return;
    make_room(due, held_);
    expired_ = true;
    if (rows_[at].position() < noted_) {
      end(at);
    } else {
      rows_[at].become(kExpired);  // until it is noted
    }
    teach(due);
  }

  void advance(std::int64_t, Taught&) {}  // the clock is for `TeachingByAge`

  // Whether a row was predicted and its label has neither come nor expired.
  bool waits(std::int64_t number) const {
    const std::size_t at = rows_.find(number);
    return at < rows_.size() && rows_[at].state() == kWaits;
  }

  // The rows that wait, by number.
  std::vector<std::int64_t> waiting() const {
    std::vector<std::int64_t> found;
    for (const Row& row : rows_) {
      if (row.state() == kWaits) found.push_back(row.number);
    }
    return found;
  }

  // The labels that came and are not taught yet, by number.
  std::vector<std::int64_t> holding() const {
    std::vector<std::int64_t> found;
    for (const Row& row : rows_) {
      if (row.state() == kHeld) found.push_back(row.number);
    }
    return found;
  }

  std::int64_t last() const { return last_; }  // number of the last row, -1 before the first

  // An empty one with the same options.
  TeachingOrder fresh() const { return TeachingOrder(wait_, delays_.size(), most_); }

  std::size_t held() const { return held_; }  // labels that came and are not taught yet

  // The age beyond which rows are passed. By class, or a rare late class would be cut off.
  std::int64_t cap() const { return cap_; }

  bool stalled() const { return missing_.stalled(); }

  // Whether labels that come may be of one class more often than they should be.
  bool one_sided() const { return stalled() || !several_; }

  // Whether delays say nothing of labels, so that these are taught as they come, but in a stall.
  bool by_arrival() const { return by_arrival_; }

  std::size_t bytes() const {
    return sizeof(*this) + rows_.bytes() + delays_.capacity() * sizeof(ClassDelays);
  }

  // Equal histories give equal bytes.
  std::string save() const {
    std::string bytes;
    for (const std::int64_t one : {predictions_, last_, noted_, passed_}) append(bytes, one);
    append(bytes, static_cast<std::uint8_t>(expired_));
    missing_.save(bytes);
    for (const ClassDelays& delays : delays_) delays.save(bytes);
    append(bytes, static_cast<std::uint64_t>(alive_));
    for (const Row& row : rows_) {
      if (!row.alive()) continue;
      append(bytes, row.number);
      append(bytes, row.placed);
    }
    return bytes;
  }

  // Takes over what `save` wrote for the same options.
  void load(std::string_view bytes) {
    TeachingOrder loaded = fresh();
    SavedReader saved(bytes);
    for (std::int64_t* const one :
         {&loaded.predictions_, &loaded.last_, &loaded.noted_, &loaded.passed_}) {
      *one = saved.take<std::int64_t>();
    }
    const auto expired = saved.take<std::uint8_t>();
    require_saved(expired <= 1, "whether a row expired");
    loaded.expired_ = expired != 0;
    loaded.missing_ = MissingLabels::load(saved);
    for (ClassDelays& delays : loaded.delays_) delays = ClassDelays::load(saved);
    loaded.weigh();
    loaded.alive_ = saved.take<std::uint64_t>();
    for (std::size_t i = 0; i < loaded.alive_; ++i) {
      const auto number = saved.take<std::int64_t>();
      loaded.rows_.push({number, saved.take<std::int64_t>()});
    }
    require_saved(saved.done(), "bytes behind the end");
    loaded.check();
    *this = std::move(loaded);
  }

 private:
  enum State : std::uint8_t { kDone, kWaits, kHeld, kExpired };

  struct Row {
    std::int64_t number;
    std::int64_t placed;  // kStates * position + state

    static constexpr std::int64_t kStates = 4;
    static Row of(std::int64_t number, std::int64_t position, State state) {
      return {number, kStates * position + state};
    }
    std::int64_t position() const { return placed / kStates; }
    State state() const { return static_cast<State>(placed % kStates); }
    bool alive() const { return state() != kDone; }
    bool held() const { return state() == kHeld; }
    void become(State state) { *this = of(number, position(), state); }
  };

  // Renews what follows from the delays of the classes that came.
  void weigh() {
    std::int64_t all = 0, fewest = kMaxCount, longest = 0;
    std::size_t came = 0;
    for (const ClassDelays& one : delays_) {
      if (one.labels() == 0) continue;
      ++came;
      all += one.labels();
      fewest = std::min(fewest, one.labels());
      longest = std::max(longest, one.quantile());
    }
    several_ = came > 1;
    cap_ = several_ ? longest : wait_;
    rarer_ = several_ ? static_cast<double>(fewest) / static_cast<double>(all) : kRarer;
    by_arrival_ = several_ && fewest >= kLabels && says_nothing();
  }

  std::int64_t probation() const {
    return static_cast<std::int64_t>(std::min(kRareLabels / rarer_, kMostNotes));
  }

  // Of the classes that came.
  bool says_nothing() const {
    double variances = 0.0, count = 0.0;
    double low = std::numeric_limits<double>::infinity(), least = low, high = 0.0, most = 0.0;
    for (const ClassDelays& one : delays_) {
      if (one.labels() == 0) continue;
      const double mean = one.mean(), variance = one.variance();
      low = std::min(low, mean);
      high = std::max(high, mean);
      least = std::min(least, variance);
      most = std::max(most, variance);
      variances += variance;
      count += 1.0;
    }
    const double deviation = std::sqrt(variances / count);
    return deviation >= kSpread && most <= kUnequal * least && high - low <= kApart * deviation;
  }

  // Whether it is known how many labels never come, for labels of two classes came, and a row is
  // old enough, or one expired. Before, a label that is missing may be one that is late.
  bool settled() const { return several_ && (expired_ || predictions_ > kSettled); }

  bool at_once() const { return by_arrival_ && !stalled(); }

  // The position below which rows are passed in a stall, too, for the labels behind them are kept.
  std::int64_t oldest() const { return predictions_ - 1 - std::max(wait_, kOldest); }

  void end(std::size_t at) {
    rows_[at].become(kDone);
    --alive_;
  }

  void teach_held(std::size_t at, Taught& due) {
    due.push_back(rows_[at].number);
    --held_;
    end(at);
  }

  // Notes the row at position `noted_`; if no row is there, its label came and was taught.
  void note() {
    bool missing = false;
    if (noting_ < rows_.size() && rows_[noting_].position() == noted_) {
      const State state = rows_[noting_].state();
      missing = state == kWaits || state == kExpired;
      if (state == kExpired) end(noting_);
      ++noting_;
    }
    missing_.note(missing, several_, settled(), rarer_);
  }

  // Restores the invariants of `head_`, and drops dead rows.
  void teach(Taught& due) {
    for (; head_ < rows_.size(); ++head_) {
      const Row& row = rows_[head_];
      if (row.state() == kWaits && row.position() >= passed_) break;
      if (row.held()) teach_held(head_, due);
    }
    if (at_once()) {
      for (std::size_t at = head_; held_ > 0; ++at) {
        if (rows_[at].held()) teach_held(at, due);
      }
    }
    if (rows_.crowded(alive_)) rows_.drop_dead(alive_, {&head_, &noting_});
  }

  // Checks what was loaded, and finds the places of its rows.
  void check() {
    std::int64_t labels = 0;
    for (const ClassDelays& one : delays_) labels += one.labels();
    require_saved(0 <= predictions_ && predictions_ <= kMaxCount, "count of predictions");
    require_saved(predictions_ == 0 ? last_ == -1 : predictions_ - 1 <= last_, "last number");
    for (const std::int64_t one : {passed_, noted_}) {
      require_saved(0 <= one && one <= predictions_, "passed rows");
    }
    // No row is older than all caps there are, but for those of the last notes.
    require_saved(predictions_ - noted_ - kNotes <= std::max(wait_, ClassDelays::kLongest),
                  "notes on rows");
    bool blocked = false;  // by a row that waits, so that labels after it wait
    std::int64_t position = -1, gaps = 0, without = 0;
    for (const Row& row : rows_) {
      const State state = row.state();
      require_saved(row.number >= 0 && row.placed >= 0 && row.position() > position,
                    "order of rows");
      position = row.position();
      // As many numbers as positions, or more, lie between two rows.
      require_saved(row.number - position >= gaps, "numbers of rows");
      gaps = row.number - position;
      require_saved(kDone < state && state <= kExpired, "state of a row");
      require_saved(state != kExpired || (expired_ && position >= noted_), "an expired row");
      blocked |= state == kWaits && position >= passed_;
      require_saved(!row.held() || blocked, "a label that waits for nothing");
      held_ += row.held();
      without += !row.held();
      if (!blocked) ++head_;
      if (position < noted_) ++noting_;
    }
    require_saved(position < predictions_ && gaps <= last_ - (predictions_ - 1), "numbers of rows");
    require_saved(labels <= predictions_ - (without > 0 ? without : expired_),
                  "counts of labels and rows");
    require_saved(held_ == 0 || !at_once(), "labels that wait for nothing");
  }

  std::int64_t wait_;
  std::size_t most_;
  std::int64_t predictions_ = 0;
  std::int64_t last_ = -1;   // number of the last row
  std::int64_t noted_ = 0;   // positions below were noted
  std::int64_t passed_ = 0;  // positions below are passed
  MissingLabels missing_;
  std::vector<ClassDelays> delays_;  // by class
  // What follows from these: whether labels of two classes came, the cap, the share of the rarest
  // class that came, and whether delays say nothing of labels.
  bool several_ = false, by_arrival_ = false;
  std::int64_t cap_ = 0;
  double rarer_ = kRarer;
  bool expired_ = false;  // whether any row did
  WaitingRows<Row> rows_;
  std::size_t alive_ = 0, held_ = 0;   // rows
  std::size_t head_ = 0, noting_ = 0;  // places
};

}  // namespace abers
