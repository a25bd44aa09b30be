// Labels that teach when their rows have an age by the clock; see tests/oracles/teaching_order.py.
//
// Invariants between two calls: `held_` is a heap, the earliest row first, of the labels that came
// before their rows were that old.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "saved_bytes.hpp"
#include "teaching_order.hpp"
#include "waiting_rows.hpp"

namespace abers {

class TeachingByAge {
 public:
  static constexpr std::int64_t kFar = std::int64_t{1} << 61;  // no time is so far from 0

  // At most `most` labels wait to be taught: beyond, the earliest are taught before their time.
  explicit TeachingByAge(std::int64_t age, std::size_t most = kAnyNumber) : age_(age), most_(most) {
    if (age < 0 || age >= kFar) throw std::invalid_argument("the age must not be negative");
  }

  // A row was predicted; numbers ascend, times need not.
  void predict(std::int64_t number, Taught&, std::int64_t time) {
    if (number <= last_) throw std::invalid_argument("numbers of rows must ascend");
    if (time <= -kFar || time >= kFar) throw std::invalid_argument("a time is too far from 0");
    rows_.push({number, time});
    last_ = number;
    ++alive_;
  }

  // The label of a waiting row came: it is taught now if the row is old enough. False if the row
  // does not wait; then nothing changes.
  bool label(std::int64_t number, std::size_t, Taught& due) {
    const std::size_t at = rows_.find(number);
    if (at == rows_.size()) return false;
    if (old(rows_[at].time)) {
      make_room(due, 1);
      due.push_back(number);
    } else {
      make_room(held_, 1);
      held_.push_back({rows_[at].time, number});
      std::push_heap(held_.begin(), held_.end(), std::greater<>());
      while (held_.size() > most_) teach_earliest(due);
    }
    end(at);
    return true;
  }

  // The row waits no longer, and has no label. Nothing changes if it does not wait.
  void expire(std::int64_t number, Taught&) {
    const std::size_t at = rows_.find(number);
    if (at < rows_.size()) end(at);
  }

  // The clock moved, never back: appends the labels of rows that are now old enough, the earliest
  // first. Labels of the same moment come before, so that all are taught in the order of rows.
  void advance(std::int64_t clock, Taught& due) {
    clock_ = std::max(clock_, clock);
    while (!held_.empty() && old(held_.front().time)) teach_earliest(due);
    give_back(held_, held_.size());
  }

  // Whether a row was predicted and its label has neither come nor expired.
  bool waits(std::int64_t number) const { return rows_.find(number) < rows_.size(); }

  // The rows that wait, by number.
  std::vector<std::int64_t> waiting() const {
    std::vector<std::int64_t> found;
    for (const Row& row : rows_) {
      if (row.alive()) found.push_back(row.number);
    }
    return found;
  }

  // The labels that came and are not taught yet, by number.
  std::vector<std::int64_t> holding() const {
    std::vector<std::int64_t> found;
    for (const Held& one : held_) found.push_back(one.number);
    std::sort(found.begin(), found.end());
    return found;
  }

  std::int64_t last() const { return last_; }  // number of the last row, -1 before the first

  // An empty one with the same options.
  TeachingByAge fresh() const { return TeachingByAge(age_, most_); }

  std::size_t held() const { return held_.size(); }  // labels that came and are not taught yet

  bool one_sided() const { return false; }  // that is for `TeachingOrder`
  void grow() {}                            // likewise

  std::size_t bytes() const {
    return sizeof(*this) + rows_.bytes() + held_.capacity() * sizeof(Held);
  }

  // Equal histories give equal bytes.
  std::string save() const {
    std::string bytes;
    append(bytes, clock_);
    append(bytes, last_);
    append(bytes, static_cast<std::uint64_t>(alive_));
    for (const Row& row : rows_) {
      if (!row.alive()) continue;
      append(bytes, row.number);
      append(bytes, row.time);
    }
    std::vector<Held> sorted = held_;
    std::sort(sorted.begin(), sorted.end());
    append(bytes, static_cast<std::uint64_t>(sorted.size()));
    for (const Held& one : sorted) {
      append(bytes, one.time);
      append(bytes, one.number);
    }
    return bytes;
  }

  // Takes over what `save` wrote for the same age.
  void load(std::string_view bytes) {
    TeachingByAge loaded = fresh();
    SavedReader saved(bytes);
    loaded.clock_ = saved.take<std::int64_t>();
    loaded.last_ = saved.take<std::int64_t>();
    loaded.alive_ = saved.take<std::uint64_t>();
    require_saved(loaded.last_ >= -1, "last number");
    std::int64_t before = -1;
    for (std::size_t i = 0; i < loaded.alive_; ++i) {
      const auto number = saved.take<std::int64_t>(), time = saved.take<std::int64_t>();
      require_saved(before < number && number <= loaded.last_, "numbers of rows");
      require_saved(-kFar < time && time < kFar, "time of a row");
      loaded.rows_.push({before = number, time});
    }
    std::vector<std::int64_t> numbers;
    for (auto left = saved.take<std::uint64_t>(); left > 0; --left) {
      const auto time = saved.take<std::int64_t>(), number = saved.take<std::int64_t>();
      require_saved(-kFar < time && time < kFar && !loaded.old(time), "time of a label");
      require_saved(0 <= number && number <= loaded.last_ && !loaded.waits(number),
                    "number of a label");
      const Held one{time, number};
      require_saved(loaded.held_.empty() || loaded.held_.back() < one, "order of labels");
      loaded.held_.push_back(one);  // ascending, so a heap
      numbers.push_back(number);
    }
    require_saved(saved.done(), "bytes behind the end");
    std::sort(numbers.begin(), numbers.end());
    require_saved(std::adjacent_find(numbers.begin(), numbers.end()) == numbers.end(),
                  "two labels of a row");
    *this = std::move(loaded);
  }

 private:
  struct Row {
    std::int64_t number;
    std::int64_t time;  // kDone: the row is done with

    static constexpr std::int64_t kDone = std::numeric_limits<std::int64_t>::min();
    bool alive() const { return time != kDone; }
  };

  struct Held {
    std::int64_t time, number;

    auto operator<=>(const Held&) const = default;
  };

  bool old(std::int64_t time) const { return time + age_ <= clock_; }

  void teach_earliest(Taught& due) {
    make_room(due, 1);
    due.push_back(held_.front().number);
    std::pop_heap(held_.begin(), held_.end(), std::greater<>());
    held_.pop_back();
  }

  void end(std::size_t at) {
    rows_[at].time = Row::kDone;
    --alive_;
    if (rows_.crowded(alive_)) rows_.drop_dead(alive_);
  }

  std::int64_t age_;
  std::size_t most_;
  std::int64_t clock_ = std::numeric_limits<std::int64_t>::min();
  std::int64_t last_ = -1;  // number of the last row
  WaitingRows<Row> rows_;
  std::size_t alive_ = 0;
  std::vector<Held> held_;
};

}  // namespace abers
