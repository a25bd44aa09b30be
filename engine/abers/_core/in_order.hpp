// Observations that wait until they, and all before them, are done with.
//
// The contract is that of `tests/oracles/reorder_buffer.py`: rows go in with ascending numbers, are
// done with in any order, and come out in the order in which they went in.
//
// Invariant: the first row here waits; so a row comes out at the step that ends the last of
// those up to it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

namespace abers {

enum class Kind : std::uint8_t { kPredicts = 0, kLearns = 1, kExpires = 2 };

// A row with a label that comes out.
struct Released {
  std::span<const double> values;
  std::int64_t number;
  std::int64_t time;
  std::int64_t step;  // at which it comes out
  std::int64_t gap;   // rows without labels directly before it
};

class InOrder {
 public:
  static constexpr std::int64_t kAny = std::int64_t{1} << 62;  // none is so many later

  // A row has `width` numbers, the last of them the label's; nothing goes in before `least` labels.
  InOrder(std::size_t width, std::int64_t least) : width_(width), least_(least) {
    if (width == 0) throw std::invalid_argument("a row has no place for a label");
  }

  std::size_t size() const { return numbers_.size() - start_; }
  std::size_t width() const { return width_; }
  bool is_warm() const { return came >= least_; }  // enough labels came
  std::span<const std::int64_t> numbers() const { return held(numbers_); }
  std::span<const std::int64_t> times() const { return held(times_); }
  std::span<const std::uint8_t> open() const { return held(open_); }
  std::span<const double> rows() const { return {rows_.data() + start_ * width_, size() * width_}; }

  // Does the step of this index; of an observation that is predicted, those with numbers
  // `most` lower or more expire. `predicts(row)` writes what is known of an observation when it is
  // predicted, `learns(row)` what its label tells, `releases(row)` takes a row that comes out.
  template <class Predicts, class Learns, class Releases>
  void step(std::size_t index, Kind kind, std::int64_t number, std::int64_t time, std::int64_t most,
            const Predicts& predicts, const Learns& learns, const Releases& releases) {
    if (kind == Kind::kPredicts) {
      if (is_warm()) predicts(push(number, time));
      while (size() && numbers_[start_] <= number - most) {  // the first waits
        open_[start_] = 0;
        release(index, releases);
      }
    } else {
      came += kind == Kind::kLearns;
      const std::size_t at = find(number);
      if (at != numbers_.size()) {
        if (kind == Kind::kLearns) learns(row(at));
        open_[at] = 0;
        release(index, releases);
      }
    }
  }

  // Puts a row in as it was.
  void load(std::int64_t number, std::int64_t time, bool open, std::span<const double> values) {
    std::copy(values.begin(), values.end(), push(number, time).begin());
    open_.back() = open;
  }

  std::int64_t came = 0;     // labels
  std::int64_t skipped = 0;  // of those that came out without a label
  std::int64_t gap = 0;      // of these since the last one with a label

 private:
  template <class T>
  std::span<const T> held(const std::vector<T>& column) const {
    return {column.data() + start_, size()};
  }

  std::span<double> row(std::size_t at) { return {rows_.data() + at * width_, width_}; }

  std::span<double> push(std::int64_t number, std::int64_t time) {
    numbers_.push_back(number);
    times_.push_back(time);
    open_.push_back(1);
    rows_.resize(rows_.size() + width_, std::numeric_limits<double>::quiet_NaN());
    return row(numbers_.size() - 1);
  }

  // The place of an observation that waits; behind the last if it is missing.
  std::size_t find(std::int64_t number) const {
    const auto begin = numbers_.begin() + static_cast<std::ptrdiff_t>(start_);
    const auto at = std::lower_bound(begin, numbers_.end(), number);
    const auto place = static_cast<std::size_t>(at - numbers_.begin());
    const bool waits = at != numbers_.end() && *at == number && open_[place];
    return waits ? place : numbers_.size();
  }

  template <class Releases>
  void release(std::size_t index, const Releases& releases) {
    for (; size() && !open_[start_]; ++start_) {
      const std::span<const double> settled = row(start_);
      if (std::isnan(settled.back())) {
        ++skipped;
        ++gap;
      } else {
        releases(Released{settled, numbers_[start_], times_[start_],
                          static_cast<std::int64_t>(index), std::exchange(gap, 0)});
      }
    }
    if (size() == 0 || (start_ >= kSlack && start_ >= size())) drop();
  }

  void drop() {
    const auto gone = static_cast<std::ptrdiff_t>(start_);
    numbers_.erase(numbers_.begin(), numbers_.begin() + gone);
    times_.erase(times_.begin(), times_.begin() + gone);
    open_.erase(open_.begin(), open_.begin() + gone);
    rows_.erase(rows_.begin(), rows_.begin() + gone * static_cast<std::ptrdiff_t>(width_));
    start_ = 0;
  }

  static constexpr std::size_t kSlack = 8;  // rows that came out may stay, until there are so many

  std::size_t width_;
  std::int64_t least_;
  std::size_t start_ = 0;  // what is before it came out
  std::vector<std::int64_t> numbers_, times_;
  std::vector<std::uint8_t> open_;
  std::vector<double> rows_;
};

}  // namespace abers
