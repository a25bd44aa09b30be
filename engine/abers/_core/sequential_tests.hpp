// Sequential tests by betting, and the size of a change; see tests/oracles/sequential_tests.py.
//
// Tests take a factor for each observation, in the order of these. `abers/monitoring/tests.py` says
// what they mean and guarantee.
//
// Invariant: incidents are numbered from 1, and one is known if and only if there was a crossing.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "experts.hpp"
#include "prefetch.hpp"
#include "saved_bytes.hpp"

namespace abers {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
inline constexpr std::int64_t kNoTime = std::numeric_limits<std::int64_t>::min();

// Of a positive number, which may be infinite.
inline double log_of(double x) { return x < kInfinity ? elementary::logarithm(x) : kInfinity; }

struct Incident {
  std::int64_t number = 0;  // 0 without one
  std::int64_t first = 0, last = 0;
  double log_wealth = 0.0;
};

class SequentialTest {
 public:
  // A test martingale, which becomes active with a probability of at most `alpha`.
  static SequentialTest since_start(double alpha) {
    SequentialTest made;
    made.since_ = true;
    made.limit_ = alpha;
    made.cooldown_ = kInfinity;
    made.least_ = -std::numeric_limits<double>::max();
    made.most_ = kInfinity;
    made.arm_for(1);
    return made;
  }

  // A detector of changes; with a run length in event time, `length` is its parts.
  static SequentialTest of_change(double length, double cooldown, std::int64_t run_time) {
    SequentialTest made;
    made.limit_ = length;
    made.cooldown_ = cooldown;
    made.run_time_ = run_time;
    made.most_ = length;
    made.log_threshold_ = log_of(length);
    return made;
  }

  // Takes a factor, which is positive; returns whether an incident opens.
  bool take(double factor, std::int64_t time) {
    ++count_;
    return since_ ? multiply(factor, time) : detect(factor, time);
  }

  bool active() const {
    if (last_.number == 0) return false;
    return since_ ? last_.number == armed_ : static_cast<double>(count_ - crossed_) < cooldown_;
  }

  // Begins a martingale anew, with less of alpha, if an incident is open.
  void arm() {
    if (!since_ || !active()) return;
    arm_for(armed_ + 1);
    wealth_ = 0.0;
  }

  double log_wealth() const { return since_ ? wealth_ : log_of(std::max(wealth_, 1.0)); }
  double log_threshold() const { return log_threshold_; }
  std::int64_t count() const { return count_; }
  std::int64_t crossed() const { return crossed_; }
  std::int64_t armed() const { return armed_; }
  const Incident& last() const { return last_; }

  void save(std::string& bytes) const {
    append(bytes, wealth_);
    for (const std::int64_t value : {count_, crossed_, last_.number, last_.first, last_.last}) {
      append(bytes, value);
    }
    append(bytes, last_.log_wealth);
    append(bytes, latest_);
    append(bytes, armed_);
  }

  void load(SavedReader& reader) {
    SequentialTest loaded = *this;
    loaded.wealth_ = reader.take<double>();
    for (std::int64_t* const value : {&loaded.count_, &loaded.crossed_, &loaded.last_.number,
                                      &loaded.last_.first, &loaded.last_.last}) {
      *value = reader.take<std::int64_t>();
    }
    loaded.last_.log_wealth = reader.take<double>();
    loaded.latest_ = reader.take<std::int64_t>();
    const auto armed = reader.take<std::int64_t>();
    const Incident& last = loaded.last_;
    require_saved(loaded.wealth_ >= least_ && loaded.wealth_ <= most_, "wealth");
    require_saved(loaded.count_ >= 0 && loaded.count_ <= kMaxCount, "factors");
    require_saved(loaded.crossed_ >= 0 && loaded.crossed_ <= loaded.count_, "crossings");
    require_saved(last.number >= 0 && last.number <= loaded.crossed_ &&
                      (last.number == 0) == (loaded.crossed_ == 0),
                  "incidents");
    require_saved(!std::isnan(last.log_wealth) && (last.number > 0 || is_none(last)), "incidents");
    require_saved((loaded.latest_ != kNoTime) == (run_time_ > 0 && loaded.count_ > 0), "times");
    require_saved(armed >= 1 && armed <= (since_ ? 1 + last.number : 1), "times armed");
    if (since_) loaded.arm_for(armed);
    *this = loaded;
  }

 private:
  static constexpr double kParts = 1e6;  // of a run length in event time
  static constexpr double kLargestStake = 0.01;

  static bool is_none(const Incident& one) {
    return one.first == 0 && one.last == 0 && one.log_wealth == 0.0;
  }

  void arm_for(std::int64_t times) {
    armed_ = times;
    const double k = static_cast<double>(times);
    log_threshold_ = -log_of(times > 1 ? limit_ / (k * (k + 1.0)) : limit_);
  }

  bool multiply(double factor, std::int64_t time) {
    wealth_ += log_of(factor);  // an infinite product stays so: no factor is 0
    return wealth_ >= log_threshold_ && cross(time, wealth_, !active());
  }

  bool detect(double factor, std::int64_t time) {
    const double stake = run_time_ > 0 ? grown(time) : 1.0;
    if (factor == 1.0) return false;
    // What was impossible counts even where no time has passed, and nothing is at stake.
    wealth_ = factor < kInfinity ? (wealth_ + stake) * factor : kInfinity;
    if (wealth_ < limit_) return false;
    const bool opens = last_.number == 0 || static_cast<double>(count_ - 1 - crossed_) >= cooldown_;
    const double reached = log_of(wealth_);
    wealth_ = 0.0;
    return cross(time, reached, opens);
  }

  // The stake at an observation, in parts of the run length.
  double grown(std::int64_t time) {
    std::uint64_t passed = 0;  // of two's complements, so that no difference overflows
    if (latest_ != kNoTime && time > latest_) {
      passed = static_cast<std::uint64_t>(time) - static_cast<std::uint64_t>(latest_);
    }
    latest_ = std::max(latest_, time);
    const double share = static_cast<double>(passed) / static_cast<double>(run_time_);
    return std::min(share, kLargestStake) * kParts;
  }

  bool cross(std::int64_t time, double log_wealth, bool opens) {
    if (opens) last_ = {last_.number + 1, time, time, 0.0};
    last_.last = time;
    last_.log_wealth = log_wealth;
    crossed_ = count_;
    return opens;
  }

  bool since_ = false;
  double limit_ = 0.0;  // alpha, or the run length
  double cooldown_ = 0.0;
  std::int64_t run_time_ = 0;  // 0 if observations count
  double least_ = 0.0, most_ = 0.0;
  double log_threshold_ = 0.0;
  double wealth_ = 0.0;  // of a martingale the logarithm
  std::int64_t count_ = 0, crossed_ = 0, armed_ = 1, latest_ = kNoTime;
  Incident last_;
};

// Labels observed and expected since the estimated begin of a change.
struct Shift {
  std::int64_t since, labels;
  std::size_t column;  // of the largest difference in standard deviations
  double observed, expected, deviation;
};

class ShiftEstimate {
 public:
  explicit ShiftEstimate(std::size_t columns) : sums_(columns) {}

  std::size_t columns() const { return sums_.size(); }

  void take(double factor, std::span<const double> forecasts, std::span<const double> labels,
            std::int64_t time) {
    if (wealth_ <= 1.0) clear(time);
    wealth_ *= factor;
    ++labels_;
    for (std::size_t i = 0; i < sums_.size(); ++i) {
      sums_[i][0] += labels[i];
      sums_[i][1] += forecasts[i];
      sums_[i][2] += forecasts[i] * (1.0 - forecasts[i]);
    }
  }

  // Reports an alarm at the last row, which had this time, and begins anew behind it.
  Shift reported(std::int64_t time) {
    Shift found{since_, labels_, 0, 0.0, 0.0, 0.0};
    double largest = -1.0;
    for (std::size_t i = 0; i < sums_.size(); ++i) {
      const auto [observed, expected, variance] = sums_[i];
      const double deviation = std::sqrt(variance);
      // A forecast that is certain has no deviation; the largest finite gap then counts.
      const double gap = std::abs(observed - expected) / std::max(deviation, 1e-9);
      if (gap <= largest) continue;
      largest = gap;
      found = {since_, labels_, i, observed, expected, deviation};
    }
    clear(time);
    return found;
  }

  void save(std::string& bytes) const {
    append(bytes, wealth_);
    append(bytes, since_);
    append(bytes, labels_);
    for (const auto& sums : sums_) {
      for (const double value : sums) append(bytes, value);
    }
  }

  void load(SavedReader& reader) {
    ShiftEstimate loaded(sums_.size());
    loaded.wealth_ = reader.take<double>();
    loaded.since_ = reader.take<std::int64_t>();
    loaded.labels_ = reader.take<std::int64_t>();
    require_saved(loaded.wealth_ >= 0.0, "wealth");
    require_saved(loaded.since_ != kNoTime, "times");
    require_saved(loaded.labels_ >= 0 && loaded.labels_ <= kMaxCount, "labels");
    const double most = static_cast<double>(loaded.labels_) * (1.0 + 1e-9);  // sums are rounded
    for (auto& sums : loaded.sums_) {
      for (double& value : sums) {
        value = reader.take<double>();
        require_saved(value >= 0.0 && value <= most, "sums");
      }
    }
    *this = loaded;
  }

 private:
  void clear(std::int64_t time) {
    wealth_ = 1.0;
    since_ = time;
    labels_ = 0;
    for (auto& sums : sums_) sums.fill(0.0);
  }

  double wealth_ = 1.0;  // product of the factors since the estimated begin
  std::int64_t since_ = 0, labels_ = 0;
  std::vector<std::array<double, 3>> sums_;  // of labels, forecasts, and variances of these
};

// The tests of one view; the last raises alarms and reports their size.
class ViewTests {
 public:
  ViewTests(std::vector<SequentialTest> tests, std::size_t columns)
      : tests_(std::move(tests)), shift_(columns) {}

  std::span<const SequentialTest> tests() const { return tests_; }
  std::size_t columns() const { return shift_.columns(); }

  // Takes the factor of the last test; returns whether an alarm is raised.
  bool alarms(double factor, std::span<const double> forecasts, std::span<const double> labels,
              std::int64_t time) {
    shift_.take(factor, forecasts, labels, time);
    return tests_.back().take(factor, time);
  }

  // Fetches the tests into the cache.
  void fetch() const { prefetch(tests_.data(), tests_.size() * sizeof(SequentialTest)); }

  const Incident& alarm() const { return tests_.back().last(); }
  Shift reported(std::int64_t time) { return shift_.reported(time); }

  // Takes the factors of the other tests at a row; `opens(test, incident)` for each that opens.
  template <class Opens>
  void others(const double* factors, std::int64_t time, const Opens& opens) {
    for (std::size_t t = 0; t + 1 < tests_.size(); ++t) {
      if (tests_[t].take(factors[t], time)) opens(t, tests_[t].last());
    }
  }

  // Arms the other tests: what triggered them is over.
  void arm() {
    for (std::size_t t = 0; t + 1 < tests_.size(); ++t) tests_[t].arm();
  }

  std::string save() const {
    std::string bytes;
    for (const SequentialTest& test : tests_) test.save(bytes);
    shift_.save(bytes);
    return bytes;
  }

  void load(std::string_view bytes) {
    ViewTests loaded = *this;
    SavedReader reader(bytes);
    for (SequentialTest& test : loaded.tests_) test.load(reader);
    loaded.shift_.load(reader);
    require_saved(reader.done(), "tests");
    *this = std::move(loaded);
  }

 private:
  std::vector<SequentialTest> tests_;
  ShiftEstimate shift_;
};

}  // namespace abers
