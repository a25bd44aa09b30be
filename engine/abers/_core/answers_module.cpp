// Python's way to the sums behind the answers; see answer_sums.hpp and interval_sums.hpp.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstddef>
#include <cstdint>
#include <tuple>
#include <vector>

#include "answer_sums.hpp"
#include "columns_module.hpp"
#include "interval_sums.hpp"
#include "saved_module.hpp"

namespace abers {
namespace {

using bindings::Read;
using bindings::ReadIntegers;
using bindings::ReadRows;
using bindings::require;
using Counts = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t>;
using Group = std::tuple<double, double, double, double, double, double>;
using Groups = std::tuple<double, std::vector<int>, std::vector<Group>, std::vector<Group>>;
using End = std::tuple<double, double, std::int64_t>;
using Losses = std::tuple<ByView<double>, ByView<std::int64_t>, End, End>;
using Period = std::tuple<Counts, double, std::vector<std::vector<Groups>>, Losses>;
using View = std::tuple<double, double, double>;
using Half = std::tuple<double, std::vector<View>>;
using Point = std::tuple<Counts, std::vector<Half>, ByView<double>, ByView<std::int64_t>>;
using Level = std::tuple<double, double, double, double>;
using Intervals =
    std::tuple<Counts, std::vector<Level>, double, double, double, std::array<double, 3>>;

Counts counts(const Stretch& one) {
  return {one.first, one.last, one.start, one.until, one.labels};
}

Group group(const ForecastGroup& one) {
  return {one.labels, one.observed, one.expected, one.squares, one.least, one.most};
}

Groups groups(const AnswerGroups& one) {
  std::vector<Group> halves, tenths;
  for (const ForecastGroup& half : one.halves) halves.push_back(group(half));
  for (std::size_t k = 0; k < one.size(); ++k) tenths.push_back(group(one.tenths[k]));
  return {one.cut, {one.merged.begin(), one.merged.end()}, halves, tenths};
}

Losses losses(const LossSums& one) {
  const auto end = [](const LossSums::End& of) { return End{of.saved, of.squares, of.open}; };
  return {one.losses, one.infinite, end(one.low), end(one.high)};
}

Period period(const AnswerPeriod& one) {
  std::vector<std::vector<Groups>> parts;
  for (const auto& part : one.parts) parts.push_back({groups(part[0]), groups(part[1])});
  return {counts(one), one.units, parts, losses(one.losses)};
}

Point point(const AnswerPoint& one) {
  std::vector<Half> halves;
  for (const AnswerPoint::Half& half : one.halves) {
    std::vector<View> views;
    for (const AnswerPoint::View& of : half.views) {
      views.emplace_back(of.observed, of.expected, of.squares);
    }
    halves.emplace_back(half.labels, views);
  }
  return {counts(one), halves, one.losses, one.infinite};
}

Intervals intervals(const IntervalPeriod& one) {
  std::vector<Level> levels;
  for (const IntervalPeriod::Level& level : one.levels) {
    levels.emplace_back(level.inside, level.below, level.finite, level.width);
  }
  return {counts(one), levels, one.errors, one.below, one.medians, one.distances};
}

template <class Sums>
nb::class_<Sums> bind_sums(nb::module_& m, const char* name) {
  nb::class_<Sums> type(m, name);
  bind_saved(type);
  return type;
}

template <class Made, class From, class F>
std::vector<Made> made(const std::vector<From>& points, const F& of) {
  std::vector<Made> found;
  for (const From& one : points) found.push_back(of(one));
  return found;
}

// Rows of two classes: raw and served probabilities, and labels.
void add(AnswerSums& sums, const Read& raw, const Read& served, const Read& labels,
         const ReadIntegers& numbers, const ReadIntegers& times) {
  const std::size_t n = labels.size();
  require(sums.parts() == 1 && raw.size() == n && served.size() == n && numbers.size() == n &&
          times.size() == n);
  AnswerRow row(1);
  for (std::size_t i = 0; i < n; ++i) {
    const double y = labels.data()[i] == 1.0 ? 1.0 : 0.0;
    row.parts.front() = {{raw.data()[i], served.data()[i]}, {y, y}};
    row.set_losses();
    sums.add(row, numbers.data()[i], times.data()[i]);
  }
}

void skip(AnswerSums& sums, const Read& raw, const Read& served) {
  require(sums.parts() == 1 && raw.size() == served.size());
  AnswerRow row(1);
  for (std::size_t i = 0; i < raw.size(); ++i) {
    row.parts.front().p = {raw.data()[i], served.data()[i]};
    sums.skip(row);
  }
}

// Rows of inside, below and width of each level, error and distance.
void add_intervals(IntervalSums& sums, const ReadRows& rows, const ReadIntegers& numbers,
                   const ReadIntegers& times) {
  const std::size_t n = numbers.size(), k = sums.levels();
  require(rows.shape(0) == n && rows.shape(1) == 3 * k + 2 && times.size() == n);
  for (std::size_t i = 0; i < n; ++i) {
    const double* const row = rows.data() + i * (3 * k + 2);
    sums.add({row, row + k, row + 2 * k, row[3 * k], row[3 * k + 1]}, numbers.data()[i],
             times.data()[i]);
  }
}

}  // namespace

void bind_answers(nb::module_& m) {
  m.attr("UNITS_OF_A_MARK") = AnswerSums::kMark;
  bind_sums<AnswerSums>(m, "AnswerSums")
      .def(nb::init<double, std::size_t>(), "tolerance"_a, "parts"_a)
      .def("skip", &skip, "raw"_a, "served"_a)
      .def("add", &add, "raw"_a, "served"_a, "labels"_a, "numbers"_a, "times"_a)
      .def_prop_ro("skipped", &AnswerSums::skipped)
      .def("now", [](const AnswerSums& sums) { return period(sums.now()); })
      .def("whole", [](const AnswerSums& sums) { return period(sums.whole()); })
      .def("trail", [](const AnswerSums& sums) { return made<Point>(sums.trail(), point); });
  bind_sums<IntervalSums>(m, "IntervalSums")
      .def(nb::init<std::size_t, std::int64_t>(), "levels"_a, "mark"_a)
      .def("add", &add_intervals, "rows"_a, "numbers"_a, "times"_a)
      .def("now", [](const IntervalSums& sums) { return intervals(sums.now()); })
      .def("whole", [](const IntervalSums& sums) { return intervals(sums.whole()); })
      .def("trail",
           [](const IntervalSums& sums) { return made<Intervals>(sums.trail(), intervals); });
}

}  // namespace abers
