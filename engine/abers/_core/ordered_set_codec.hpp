// The saved form of an order of teaching, and of the labels that it holds back, by number.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "ordered_set.hpp"
#include "saved_bytes.hpp"
#include "set_codec.hpp"

namespace abers {

// What a calibrator keeps of an observation that needs no more than its scores.
using Nothing = std::array<double, 0>;

template <class Sets, class Kept>
void save_order(std::string& bytes, const OrderedSet<Sets, Kept>& learner) {
  std::vector<std::int64_t> numbers;
  for (const auto& [number, lesson] : learner.held()) numbers.push_back(number);
  std::sort(numbers.begin(), numbers.end());
  append_piece(bytes, std::visit([](const auto& one) { return one.save(); }, learner.order()));
  for (const std::int64_t number : numbers) {
    const auto& lesson = learner.held().at(number);
    append(bytes, number);
    for (const double one : lesson.given) append(bytes, one);
    append(bytes, static_cast<typename Sets::Label>(lesson.label));
    append(bytes, lesson.weight);
    append(bytes, lesson.time);
    for (const double one : lesson.kept) append(bytes, one);
  }
}

// Takes over what `save_order` wrote. Lessons have the lengths of a blank one; `check` refuses what
// no observation keeps.
template <class Sets, class Kept, class Check>
void load_order(OrderedSet<Sets, Kept>& learner, std::string_view bytes,
                const typename OrderedSet<Sets, Kept>::Lesson& blank, const Check& check) {
  SavedReader reader(bytes);
  Teaching order = fresh(learner.order());
  const std::vector<std::int64_t> holding = std::visit(
      [&](auto& one) {
        one.load(reader.piece());
        return one.holding();
      },
      order);
  auto next = holding.begin();
  typename OrderedSet<Sets, Kept>::Held held;
  const auto set = learner.sets().sets().front();
  std::int64_t room = set->limit();
  while (!reader.done()) {
    const auto number = reader.take<std::int64_t>();
    auto lesson = blank;
    for (double& one : lesson.given) one = reader.take<double>();
    lesson.label = reader.take<typename Sets::Label>();
    lesson.weight = reader.take<std::int64_t>();
    lesson.time = reader.take<double>();
    for (double& one : lesson.kept) one = reader.take<double>();
    const bool finite =
        std::ranges::all_of(lesson.given, [](double score) { return std::isfinite(score); });
    require_saved(finite && lesson.label < learner.sets().classes(), "labels");
    require_saved(learner.sets().may_give(lesson.given), "labels");
    require_saved(0 < lesson.weight && lesson.weight <= room, "weights of labels");
    require_saved(set_codec::sound_time(*set, lesson.time), "times of labels");
    room -= lesson.weight;
    require_saved(next != holding.end() && *next == number, "labels");
    ++next;
    check(lesson.kept);
    held.emplace(number, std::move(lesson));
  }
  require_saved(next == holding.end(), "labels");
  learner.load(std::move(order), std::move(held));
}

}  // namespace abers
