// Python's way to tests of predictions, and to rows that leave in order; see
// tests/oracles/reorder_buffer.py, tests/oracles/sequential_tests.py and
// tests/oracles/binary_tests.py.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "binary_tests.hpp"
#include "columns_module.hpp"
#include "grid_bets.hpp"
#include "in_order.hpp"
#include "prefetch.hpp"
#include "saved_module.hpp"
#include "sequential_tests.hpp"

namespace abers {
namespace {

using bindings::Column;
using bindings::Integers;
using bindings::Read;
using bindings::ReadBytes;
using bindings::ReadIntegers;
using bindings::ReadRows;
using bindings::require;
using bindings::Rows;
using Flags = Column<std::uint8_t>;

// Arrays that own what was computed

template <class T>
nb::capsule owner_of(std::vector<T>* values) {
  return nb::capsule(values, [](void* held) noexcept {
    std::unique_ptr<std::vector<T>>(static_cast<std::vector<T>*>(held));
  });
}

template <class T>
Column<T> column_of(std::vector<T> values) {
  auto held = std::make_unique<std::vector<T>>(std::move(values));
  T* const data = held->data();
  const std::size_t n = held->size();
  return Column<T>(data, {n}, owner_of(held.release()));
}

Rows table_of(std::vector<double> values, std::size_t rows, std::size_t width) {
  auto held = std::make_unique<std::vector<double>>(std::move(values));
  double* const data = held->data();
  return Rows(data, {rows, width}, owner_of(held.release()));
}

// Rows that wait

using Settled = std::tuple<Integers, Integers, Integers, Integers, Rows>;

// Numbers, times, steps, rows that were skipped before each, and values.
Settled run(InOrder& queue, const ReadBytes& kinds, const ReadIntegers& numbers,
            const ReadIntegers& times, const ReadRows& values, std::optional<std::int64_t> most) {
  const std::size_t n = kinds.size(), width = queue.width();
  require(numbers.size() == n && times.size() == n && values.shape(0) == n &&
          values.shape(1) == width);
  std::vector<std::int64_t> made, left, steps, gaps;
  std::vector<double> rows;
  for (std::size_t i = 0; i < n; ++i) {
    const double* const given = values.data() + i * width;
    queue.step(
        i, Kind{kinds.data()[i]}, numbers.data()[i], times.data()[i], most.value_or(InOrder::kAny),
        [](std::span<double>) {},
        [&](std::span<double> row) { std::copy_n(given, width, row.begin()); },
        [&](const Released& row) {
          made.push_back(row.number);
          left.push_back(row.time);
          steps.push_back(row.step);
          gaps.push_back(row.gap);
          rows.insert(rows.end(), row.values.begin(), row.values.end());
        });
  }
  const std::size_t settled = left.size();
  return {column_of(std::move(made)), column_of(std::move(left)), column_of(std::move(steps)),
          column_of(std::move(gaps)), table_of(std::move(rows), settled, width)};
}

void columns(const InOrder& queue, const Integers& numbers, const Integers& times,
             const Flags& waits, const Rows& rows) {
  const std::size_t n = queue.size();
  require(numbers.size() == n && times.size() == n && waits.size() == n && rows.shape(0) == n &&
          rows.shape(1) == queue.width());
  std::ranges::copy(queue.numbers(), numbers.data());
  std::ranges::copy(queue.times(), times.data());
  std::ranges::copy(queue.open(), waits.data());
  std::ranges::copy(queue.rows(), rows.data());
}

void load_rows(InOrder& queue, const ReadIntegers& numbers, const ReadIntegers& times,
               const ReadBytes& waits, const ReadRows& rows) {
  const std::size_t n = numbers.size(), width = queue.width();
  require(times.size() == n && waits.size() == n && rows.shape(0) == n && rows.shape(1) == width);
  for (std::size_t i = 0; i < n; ++i) {
    queue.load(numbers.data()[i], times.data()[i], waits.data()[i] != 0,
               {rows.data() + i * width, width});
  }
}

// Tests

using IncidentTuple = std::tuple<std::int64_t, std::int64_t, std::int64_t, double>;
using ShiftTuple = std::tuple<std::int64_t, std::int64_t, std::size_t, double, double, double>;

IncidentTuple as_tuple(const Incident& one) {
  return {one.number, one.first, one.last, one.log_wealth};
}

ShiftTuple as_tuple(const Shift& one) {
  return {one.since, one.labels, one.column, one.observed, one.expected, one.deviation};
}

std::optional<IncidentTuple> last(const SequentialTest& test) {
  if (test.last().number == 0) return std::nullopt;
  return as_tuple(test.last());
}

std::vector<std::tuple<std::size_t, IncidentTuple>> update(SequentialTest& test,
                                                           const Read& factors,
                                                           const ReadIntegers& times) {
  require(times.size() == factors.size());
  for (const double factor : bindings::view(factors)) {
    if (!(factor > 0.0)) throw nb::value_error("a factor is not positive");
  }
  std::vector<std::tuple<std::size_t, IncidentTuple>> opened;
  for (std::size_t i = 0; i < factors.size(); ++i) {
    if (test.take(factors.data()[i], times.data()[i])) {
      opened.emplace_back(i, as_tuple(test.last()));
    }
  }
  return opened;
}

nb::bytes save_test(const SequentialTest& test) {
  std::string bytes;
  test.save(bytes);
  return to_python(bytes);
}

void load_test(SequentialTest& test, const nb::bytes& saved) {
  SequentialTest loaded = test;
  SavedReader reader(view(saved));
  loaded.load(reader);
  require_saved(reader.done(), "form");
  test = loaded;
}

// Tests of one view

using Alarms = std::vector<std::tuple<std::size_t, IncidentTuple, ShiftTuple>>;
using Openeds = std::vector<std::tuple<std::size_t, std::size_t, IncidentTuple>>;

Alarms alarms(ViewTests& tests, const Read& factors, const ReadRows& forecasts,
              const ReadRows& labels, const ReadIntegers& times) {
  const std::size_t n = times.size(), width = tests.columns();
  require(!tests.tests().empty() && factors.size() == n && forecasts.shape(0) == n &&
          labels.shape(0) == n && forecasts.shape(1) == width && labels.shape(1) == width);
  Alarms found;
  for (std::size_t i = 0; i < n; ++i) {
    const std::int64_t time = times.data()[i];
    if (tests.alarms(factors.data()[i], {forecasts.data() + i * width, width},
                     {labels.data() + i * width, width}, time)) {
      found.emplace_back(i, as_tuple(tests.alarm()), as_tuple(tests.reported(time)));
    }
  }
  return found;
}

Openeds others(ViewTests& tests, const ReadRows& factors, const ReadIntegers& times,
               const ReadIntegers& over) {
  const std::size_t n = times.size(), width = factors.shape(1);
  require(factors.shape(0) == n && width == tests.tests().size());
  Openeds found;
  const std::int64_t* next = over.data();
  for (std::size_t row = 0; row < n; ++row) {
    tests.others(factors.data() + row * width, times.data()[row],
                 [&](std::size_t test, const Incident& incident) {
                   found.emplace_back(test, row, as_tuple(incident));
                 });
    for (; next != over.data() + over.size() && *next == static_cast<std::int64_t>(row); ++next) {
      tests.arm();
    }
  }
  std::ranges::stable_sort(found, {}, [](const auto& one) { return std::get<0>(one); });
  return found;
}

// Tests of binary forecasts

using Records = std::vector<BinaryTests*>;
// Record, view, test, step and incident of each that opened; the shift of an alarm.
using RecordOpeneds = std::vector<std::tuple<std::size_t, std::size_t, std::size_t, std::int64_t,
                                             IncidentTuple, std::optional<ShiftTuple>>>;

TestedSteps steps_of(const ReadBytes& kinds, const ReadIntegers& numbers, const ReadIntegers& times,
                     const ReadRows& values, std::int64_t most) {
  const std::size_t n = kinds.size();
  require(numbers.size() == n && times.size() == n && values.shape(0) == n);
  return {kinds.data(), numbers.data(), times.data(), values.data(), values.shape(1), most};
}

// The first step that is refused; None if all can be done.
std::optional<std::size_t> refused(const ReadBytes& kinds, const ReadRows& values,
                                   std::size_t views) {
  const std::size_t n = kinds.size();
  require(values.shape(0) == n && values.shape(1) >= views);
  const TestedSteps steps{kinds.data(), nullptr, nullptr, values.data(), values.shape(1), 0};
  const std::size_t at = first_refused(steps, n, views);
  return at < n ? std::optional(at) : std::nullopt;
}

// Runs the steps of each record, which end where `ends` says; returns the incidents that opened.
RecordOpeneds run_records(const Records& records, const ReadIntegers& ends, const ReadBytes& kinds,
                          const ReadIntegers& numbers, const ReadIntegers& times,
                          const ReadRows& values, std::optional<std::int64_t> most) {
  const TestedSteps steps = steps_of(kinds, numbers, times, values, most.value_or(InOrder::kAny));
  require(ends.size() == records.size());
  std::int64_t before = 0;
  for (std::size_t g = 0; g < records.size(); ++g) {
    require(ends.data()[g] >= before && records[g]->width() == steps.width);
    before = ends.data()[g];
  }
  require(before == static_cast<std::int64_t>(kinds.size()));
  RecordOpeneds found;
  std::size_t begin = 0;
  for (std::size_t g = 0; g < records.size(); ++g) {
    if (g + 2 < records.size()) prefetch(*records[g + 2]);
    if (g + 1 < records.size()) records[g + 1]->fetch_parts();
    const auto end = static_cast<std::size_t>(ends.data()[g]);
    for (const OpenedIncident& one : records[g]->run(steps, begin, end)) {
      std::optional<ShiftTuple> shift;
      if (one.shift) shift = as_tuple(*one.shift);
      found.emplace_back(g, one.view, one.test, one.step, as_tuple(one.incident), shift);
    }
    begin = end;
  }
  return found;
}

BinaryTests made(const std::vector<ViewTests*>& tests,
                 const std::vector<BinaryTests::Verdicts*>& verdicts, const LossDifference* losses,
                 bool several, double tolerance, std::int64_t least) {
  require(!tests.empty() && verdicts.size() % tests.size() == 0);
  const std::size_t columns = verdicts.size() / tests.size();
  std::vector<BinaryTests::View> views;
  for (std::size_t v = 0; v < tests.size(); ++v) {
    BinaryTests::View one{GridBets(), *tests[v], {}};
    for (std::size_t k = 0; k < columns; ++k) one.verdicts.push_back(*verdicts[v * columns + k]);
    views.push_back(std::move(one));
  }
  std::optional<LossDifference> compared;
  if (losses) compared = *losses;
  return BinaryTests(std::move(views), compared, several, tolerance, least);
}

}  // namespace

void bind_tests(nb::module_& m) {
  nb::class_<InOrder>(m, "ReorderBuffer")
      .def(nb::init<std::size_t, std::int64_t>(), "width"_a, "least"_a)
      .def_rw("came", &InOrder::came)
      .def_rw("skipped", &InOrder::skipped)
      .def_rw("gap", &InOrder::gap)
      .def("run", &run, "kinds"_a, "numbers"_a, "times"_a, "values"_a, "most"_a.none() = nb::none())
      .def("size", &InOrder::size)
      .def("columns", &columns, "numbers"_a, "times"_a, "waits"_a, "rows"_a)
      .def("load", &load_rows, "numbers"_a, "times"_a, "waits"_a, "rows"_a);
  nb::class_<SequentialTest>(m, "SequentialTest")
      .def_static("since_start", &SequentialTest::since_start, "alpha"_a)
      .def_static("of_change", &SequentialTest::of_change, "length"_a, "cooldown"_a, "run_time"_a)
      .def_prop_ro("log_wealth", &SequentialTest::log_wealth)
      .def_prop_ro("log_threshold", &SequentialTest::log_threshold)
      .def_prop_ro("count", &SequentialTest::count)
      .def_prop_ro("crossed", &SequentialTest::crossed)
      .def_prop_ro("armed", &SequentialTest::armed)
      .def_prop_ro("active", &SequentialTest::active)
      .def_prop_ro("last", &last)
      .def("arm", &SequentialTest::arm)
      .def("update", &update, "factors"_a, "times"_a)
      .def("save", &save_test)
      .def("load", &load_test, "saved"_a);
  nb::class_<ViewTests>(m, "ViewTests")
      .def(
          "__init__",
          [](ViewTests* made, const std::vector<SequentialTest*>& tests, std::size_t columns) {
            std::vector<SequentialTest> copied;
            for (const SequentialTest* const test : tests) copied.push_back(*test);
            new (made) ViewTests(std::move(copied), columns);
          },
          "tests"_a, "columns"_a)
      .def(
          "test",
          [](const ViewTests& tests, std::size_t at) {
            if (at >= tests.tests().size()) throw nb::index_error("test");
            return tests.tests()[at];
          },
          "at"_a)
      .def("alarms", &alarms, "factors"_a, "forecasts"_a, "labels"_a, "times"_a)
      .def("others", &others, "factors"_a, "times"_a, "over"_a)
      .def("save", [](const ViewTests& tests) { return to_python(tests.save()); })
      .def(
          "load", [](ViewTests& tests, const nb::bytes& saved) { tests.load(view(saved)); },
          "saved"_a);
  nb::class_<GridBets>(m, "GridBets")
      .def(nb::init<>())
      .def(
          "bet",
          [](const GridBets& bets, double forecast) {
            const GridBets::Bets found = bets.bet(forecast);
            return std::tuple{found[0], found[1]};
          },
          "forecast"_a)
      .def("learn", &GridBets::learn, "forecast"_a, "label"_a)
      .def("save", [](const GridBets& bets) { return to_python(bets.save()); })
      .def_static(
          "load", [](const nb::bytes& saved) { return GridBets::load(view(saved)); }, "saved"_a);
  nb::class_<BinaryTests>(m, "BinaryTests")
      .def(
          "__init__",
          [](BinaryTests* record, const std::vector<ViewTests*>& tests,
             const std::vector<BinaryTests::Verdicts*>& verdicts, const LossDifference* losses,
             bool several, double tolerance, std::int64_t least) {
            new (record) BinaryTests(made(tests, verdicts, losses, several, tolerance, least));
          },
          "tests"_a, "verdicts"_a, "losses"_a.none(), "several"_a, "tolerance"_a, "least"_a)
      .def_prop_ro(
          "queue", [](BinaryTests& record) -> InOrder& { return record.queue; },
          nb::rv_policy::reference_internal)
      .def_prop_ro(
          "answers", [](BinaryTests& record) -> AnswerSums& { return record.answers; },
          nb::rv_policy::reference_internal)
      .def(
          "tests",
          [](BinaryTests& record, std::size_t at) -> ViewTests& {
            return record.views.at(at).tests;
          },
          "view"_a, nb::rv_policy::reference_internal)
      .def(
          "verdicts",
          [](BinaryTests& record, std::size_t view, std::size_t at) -> BinaryTests::Verdicts& {
            return record.views.at(view).verdicts.at(at);
          },
          "view"_a, "at"_a, nb::rv_policy::reference_internal)
      .def_prop_ro(
          "losses", [](BinaryTests& record) { return record.losses ? &*record.losses : nullptr; },
          nb::rv_policy::reference_internal)
      .def(
          "save_bets",
          [](const BinaryTests& record, std::size_t at) {
            return to_python(record.views.at(at).bets.save());
          },
          "view"_a)
      .def(
          "load_bets",
          [](BinaryTests& record, std::size_t at, const nb::bytes& saved) {
            record.views.at(at).bets = GridBets::load(view(saved));
          },
          "view"_a, "saved"_a);
  m.def("first_refused", &refused, "kinds"_a, "values"_a, "views"_a);
  m.def("run_binary_tests", &run_records, "records"_a, "ends"_a, "kinds"_a, "numbers"_a, "times"_a,
        "values"_a, "most"_a.none() = nb::none());
}

}  // namespace abers
