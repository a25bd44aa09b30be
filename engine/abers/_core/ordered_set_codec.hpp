// The saved form of an order of teaching, and of the labels that it holds back, by number.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ordered_set.hpp"
#include "saved_bytes.hpp"

namespace abers {

// What a calibrator keeps of an observation that needs no more than its score.
using Nothing = std::array<double, 0>;

template <class Kept>
void save_order(std::string& bytes, const OrderedSet<Kept>& learner) {
  std::vector<std::int64_t> numbers;
  for (const auto& [number, lesson] : learner.held()) numbers.push_back(number);
  std::sort(numbers.begin(), numbers.end());
  append_piece(bytes, std::visit([](const auto& one) { return one.save(); }, learner.order()));
  for (const std::int64_t number : numbers) {
    const Lesson<Kept>& lesson = learner.held().at(number);
    append(bytes, number);
    append(bytes, lesson.score);
    append(bytes, static_cast<std::uint8_t>(lesson.label));
    append(bytes, lesson.weight);
    append(bytes, lesson.time);
    for (const double one : lesson.kept) append(bytes, one);
  }
}

// Takes over what `save_order` wrote; `check` refuses what no observation keeps.
template <class Kept, class Check>
void load_order(OrderedSet<Kept>& learner, std::string_view bytes, const Check& check) {
  SavedReader reader(bytes);
  Teaching order = fresh(learner.order());
  const std::vector<Taught> holding = std::visit(
      [&](auto& one) {
        one.load(reader.piece());
        return one.holding();
      },
      order);
  auto next = holding.begin();
  typename OrderedSet<Kept>::Held held;
  while (!reader.done()) {
    const auto number = reader.take<std::int64_t>();
    Lesson<Kept> lesson;
    lesson.score = reader.take<double>();
    const auto label = reader.take<std::uint8_t>();
    lesson.weight = reader.take<std::int64_t>();
    lesson.time = reader.take<double>();
    for (double& one : lesson.kept) one = reader.take<double>();
    require_saved(label <= 1 && lesson.weight > 0 && std::isfinite(lesson.score), "labels");
    lesson.label = label == 1;
    require_saved(next != holding.end() && next->number == number && next->label == lesson.label,
                  "labels");
    ++next;
    check(lesson.kept);
    held.emplace(number, lesson);
  }
  require_saved(next == holding.end(), "labels");
  learner.load(std::move(order), std::move(held));
}

}  // namespace abers
