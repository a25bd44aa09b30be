// A calibration set that is taught in an order of its own; see
// tests/oracles/ordered_venn_abers.py.
//
// Invariant: `held_` has the labels that came and are not taught yet, and `held_weight_` the sum of
// their weights. The set takes all of these: that is asked when they come.
#pragma once

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "arithmetic.hpp"
#include "calibration_set.hpp"
#include "lanes.hpp"
#include "teaching_by_age.hpp"
#include "teaching_order.hpp"

namespace abers {

using Teaching = std::variant<TeachingOrder, TeachingByAge>;

// The order of teaching until labels of both classes came by their `wait` in predictions, or where
// `age` is 0 or more when observations are so old.
inline Teaching teaching(std::int64_t wait, std::int64_t age) {
  if (age < 0) return TeachingOrder(wait);
  return TeachingByAge(age);
}

// The number of the last row that was predicted, -1 if none was.
inline std::int64_t last_number(const Teaching& teaching) {
  return std::visit([](const auto& one) { return one.last(); }, teaching);
}

// An empty one with the same options.
inline Teaching fresh(const Teaching& teaching) {
  return std::visit([](const auto& one) -> Teaching { return one.fresh(); }, teaching);
}

// A label to be taught, and what the observation kept for that.
template <class Kept>
struct Lesson {
  double score;
  bool label;
  std::int64_t weight = kOne;
  double time = std::nan("");  // NaN for none
  Kept kept{};
};

template <class Kept>
class OrderedSet {
 public:
  using Held = std::unordered_map<std::int64_t, Lesson<Kept>, MixedBits>;

  OrderedSet(std::shared_ptr<CalibrationSet> set, Teaching order)
      : set_(std::move(set)), order_(std::move(order)) {}

  CalibrationSet& set() const { return *set_; }
  const std::shared_ptr<CalibrationSet>& shared_set() const { return set_; }
  const Held& held() const { return held_; }
  const Teaching& order() const { return order_; }
  std::int64_t total() const { return set_->total() + held_weight_; }

  bool takes(std::int64_t weight, double time) const {
    return set_->takes(weight + held_weight_, time);
  }

  bool waits(std::int64_t number) const {
    return std::visit([&](const auto& one) { return one.waits(number); }, order_);
  }

  // Whether labels that come may be of one class more often than they should be.
  bool one_sided() const {
    return std::visit([](const auto& one) { return one.one_sided(); }, order_);
  }

  // The rest calls `taught` with each lesson that is due, when the set has learned it.

  // An observation was predicted; the numbers of these ascend.
  template <class Learn>
  void predict(std::int64_t number, std::int64_t moment, const Learn& taught) {
    std::visit([&](auto& one) { one.predict(number, due_, moment); }, order_);
    teach(taught);
  }

  // The label of a waiting observation came.
  template <class Learn>
  void label(std::int64_t number, const Lesson<Kept>& lesson, const Learn& taught) {
    held_.emplace(number, lesson);
    held_weight_ += lesson.weight;
    std::visit([&](auto& one) { one.label(number, lesson.label, due_); }, order_);
    teach(taught);
  }

  // The label of a waiting observation will not come.
  template <class Learn>
  void expire(std::int64_t number, const Learn& taught) {
    std::visit([&](auto& one) { one.expire(number, due_); }, order_);
    teach(taught);
  }

  // The clock moved, or is not known yet.
  template <class Learn>
  void advance(std::int64_t clock, const Learn& taught) {
    std::visit([&](auto& one) { one.advance(clock, due_); }, order_);
    teach(taught);
  }

  void load(Teaching order, Held held) {
    order_ = std::move(order);
    held_ = std::move(held);
    held_weight_ = 0;
    for (const auto& [number, lesson] : held_) held_weight_ += lesson.weight;
  }

 private:
  template <class Learn>
  void teach(const Learn& taught) {
    for (const Taught& one : due_) {
      const auto at = held_.find(one.number);
      const Lesson<Kept>& lesson = at->second;
      set_->learn(lesson.score, lesson.label, lesson.weight, lesson.time);
      taught(lesson);
      held_weight_ -= lesson.weight;
      held_.erase(at);
    }
    due_.clear();
  }

  std::shared_ptr<CalibrationSet> set_;
  Teaching order_;
  Held held_;
  std::int64_t held_weight_ = 0;
  std::vector<Taught> due_;  // scratch of one call
};

}  // namespace abers
