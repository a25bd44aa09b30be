// Calibration sets that are taught in an order of their own; see
// tests/oracles/ordered_calibrator.py.
//
// Invariant: `held_` has the labels that came and are not taught yet, and `held_weight_` the sum of
// their weights. The sets take all of these: that is asked when they come.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "arithmetic.hpp"
#include "forgetting.hpp"
#include "lanes.hpp"
#include "model.hpp"
#include "teaching_by_age.hpp"
#include "teaching_order.hpp"

namespace abers {

using Teaching = std::variant<TeachingOrder, TeachingByAge>;

// How a model is taught: until labels of two classes came by their `wait` in predictions, or where
// `age` is 0 or more when observations are so old. Labels that wait take at most `room` bytes
// where that is 0 or more.
struct TeachingOptions {
  std::int64_t wait;
  std::int64_t age;
  std::int64_t room;
};

// The number of the last row that was predicted, -1 if none was.
inline std::int64_t last_number(const Teaching& teaching) {
  return std::visit([](const auto& one) { return one.last(); }, teaching);
}

// An empty one with the same options.
inline Teaching fresh(const Teaching& teaching) {
  return std::visit([](const auto& one) -> Teaching { return one.fresh(); }, teaching);
}

// A label to be taught, and what the observation gave to the sets and kept for the rest.
template <class Given, class Kept>
struct Lesson {
  Given given{};
  std::uint32_t label = 0;
  std::int64_t weight = kOne;  // with which the sets learn it
  double time = std::nan("");  // NaN for none
  Kept kept{};
};

// Bytes that values take besides their object.
template <std::size_t n>
std::size_t apart(const std::array<double, n>&) {
  return 0;
}
inline std::size_t apart(const std::vector<double>& values) {
  return (values.size() + 2) * sizeof(double);
}

// The order of teaching for labels with so much given and kept.
template <class Given, class Kept>
Teaching teaching(const TeachingOptions& options, std::size_t classes, const Given& given,
                  const Kept& kept) {
  constexpr std::size_t row = 64;  // of the order, and what a map takes
  const std::size_t label = sizeof(Lesson<Given, Kept>) + row + apart(given) + apart(kept);
  const auto room = static_cast<std::size_t>(options.room);
  const std::size_t most = options.room < 0 ? kAnyNumber : room / label;
  if (options.age < 0) return TeachingOrder(options.wait, classes, most);
  return TeachingByAge(options.age, most);
}

// `Sets` say what of the scores they learn, and learn that; see calibration_sets.hpp.
template <class Sets, class Kept>
class OrderedSet {
 public:
  using Lesson = abers::Lesson<typename Sets::Given, Kept>;
  using Held = std::unordered_map<std::int64_t, Lesson, MixedBits>;

  OrderedSet(Sets sets, Teaching order) : sets_(std::move(sets)), order_(std::move(order)) {}

  const Sets& sets() const { return sets_; }
  const Held& held() const { return held_; }
  const Teaching& order() const { return order_; }
  std::int64_t total() const {
    const std::int64_t taught = sets_.total();
    return held_weight_ < kLimit - taught ? taught + held_weight_ : kLimit;
  }

  Lesson lesson(const ModelStep& step, Kept kept) const {
    return {sets_.given(step), static_cast<std::uint32_t>(step.label), sets_.weight(step),
            step.time, std::move(kept)};
  }

  // What waits weighs at most what a set may, also where it is too late to be learned.
  bool takes(const ModelStep& step) const {
    const std::int64_t weight = sets_.weight(step);
    return weight <= sets_.sets().front()->limit() - held_weight_ &&
           sets_.takes(step, weight + held_weight_);
  }

  // Teaches the sets alone, at once.
  void learn(const ModelStep& step) { sets_.learn(lesson(step, {})); }

  bool waits(std::int64_t number) const {
    return std::visit([&](const auto& one) { return one.waits(number); }, order_);
  }

  // Whether labels that come may be of one class more often than they should be.
  bool one_sided() const {
    return std::visit([](const auto& one) { return one.one_sided(); }, order_);
  }

  // The rest calls `taught` with each lesson that is due, when the sets have learned it.

  // An observation was predicted; the numbers of these ascend.
  template <class Learn>
  void predict(std::int64_t number, std::int64_t moment, const Learn& taught) {
    std::visit([&](auto& one) { one.predict(number, due_, moment); }, order_);
    teach(taught);
  }

  // The label of a waiting observation came.
  template <class Learn>
  void label(std::int64_t number, Lesson lesson, const Learn& taught) {
    const std::size_t label = lesson.label;
    held_weight_ += lesson.weight;
    held_.emplace(number, std::move(lesson));
    std::visit([&](auto& one) { one.label(number, label, due_); }, order_);
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

  // There is one class more, with a set of its own; no label may wait to be taught.
  template <class Set>
  void grow(Set set) {
    sets_.grow(std::move(set));
    std::visit([](auto& one) { one.grow(); }, order_);
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
    for (const std::int64_t number : due_) {
      const auto at = held_.find(number);
      const Lesson& lesson = at->second;
      sets_.learn(lesson);
      taught(lesson);
      held_weight_ -= lesson.weight;
      held_.erase(at);
    }
    due_.clear();
  }

  Sets sets_;
  Teaching order_;
  Held held_;
  std::int64_t held_weight_ = 0;
  Taught due_;  // scratch of one call
};

}  // namespace abers
