// Python's way to verdicts on forecasts, and to the sums and the confidence sequence behind them;
// see verdict_sequence.hpp.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "calibration_error.hpp"
#include "columns_module.hpp"
#include "confidence_sequence.hpp"
#include "findings.hpp"
#include "group_sums.hpp"
#include "level_sums.hpp"
#include "saved_module.hpp"
#include "verdict_sequence.hpp"

namespace abers {
namespace {

using bindings::Column;
using bindings::Read;
using bindings::ReadIntegers;
using bindings::ReadRows;
using bindings::require;
using Row = std::tuple<double, double, double, double, double, double>;
using Found = std::tuple<std::size_t, std::size_t, bool>;
// Status, group, cut, since, start, until, confirmed, labels, came, counted, observed, expected,
// margin, tolerance, established.
using Record =
    std::tuple<std::size_t, std::size_t, double, std::int64_t, std::int64_t, std::int64_t,
               std::int64_t, std::int64_t, std::optional<double>, std::int64_t, std::int64_t,
               double, double, double, std::optional<double>>;

Record record(const VerdictRecord& one) {
  std::optional<double> came, established;
  if (one.labels > 0) came = one.came;
  if (one.established > 0.0) established = one.established;
  return {static_cast<std::size_t>(one.finding.status),
          one.finding.group,
          one.cut,
          one.since,
          one.start,
          one.until,
          one.confirmed,
          one.labels,
          came,
          one.counted,
          one.observed,
          one.expected,
          one.margin,
          one.tolerance,
          established};
}

Row row(const ForecastGroup& one) {
  return {one.labels, one.observed, one.expected, one.squares, one.least, one.most};
}

template <class Groups>
std::vector<Row> rows(const Groups& groups) {
  std::vector<Row> found;
  for (const ForecastGroup& one : groups) found.push_back(row(one));
  return found;
}

Found find_groups(const ReadRows& table, double alpha) {
  require(table.shape(0) >= kFirstBin && table.shape(1) == 6);
  std::vector<ForecastGroup> groups;
  for (std::size_t i = 0; i < table.shape(0); ++i) {
    const double* const at = table.data() + i * 6;
    groups.push_back({at[0], at[1], at[2], at[3], at[4], at[5]});
  }
  const Finding found = find(groups, alpha);
  return {static_cast<std::size_t>(found.status), found.group, found.inside};
}

// Rows of labels, ones, forecasts and squares.
std::pair<double, double> error_ends(const ReadRows& table, double alpha) {
  require(table.shape(1) == 4);
  std::vector<ForecastGroup> bins;
  for (std::size_t i = 0; i < table.shape(0); ++i) {
    const double* const at = table.data() + i * 4;
    bins.push_back({at[0], at[1], at[2], at[3], 0.0, 0.0});
  }
  const ErrorEnds found = calibration_error(bins, alpha);
  return {found.low, found.high};
}

// What both kinds of sums have.
template <class Sums>
nb::class_<Sums> bind_sums(nb::module_& m, const char* name) {
  return nb::class_<Sums>(m, name)
      .def(
          "add",
          [](Sums& sums, const Read& forecasts, const Read& labels) {
            require(labels.size() == forecasts.size());
            for (std::size_t i = 0; i < forecasts.size(); ++i) {
              sums.add(forecasts.data()[i], labels.data()[i]);
            }
          },
          "forecasts"_a, "labels"_a)
      .def(
          "add_sums", [](Sums& sums, const Sums& other) { sums.add(other); }, "other"_a)
      .def_prop_ro("labels", &Sums::labels)
      .def_prop_ro("cut", &Sums::cut)
      .def("groups", [](const Sums& sums) { return rows(sums.groups()); })
      .def(
          "main_groups",
          [](const Sums& sums, std::size_t tolerance) {
            require(tolerance < kTolerances);
            return rows(sums.main_groups(tolerance));
          },
          "tolerance"_a)
      .def("is_undecided", &Sums::is_undecided, "main"_a, "bins"_a)
      .def("size", [](const Sums& sums) { return sums.sums().size(); })
      .def(
          "sums",
          [](const Sums& sums, const Column<double>& out) {
            require(out.size() == sums.sums().size());
            std::ranges::copy(sums.sums(), out.data());
          },
          "out"_a)
      .def(
          "load", [](Sums& sums, const Read& saved) { sums.load(bindings::view(saved)); },
          "sums"_a);
}

// What verdicts on both kinds of sums have.
template <class Sums>
nb::class_<VerdictSequence<Sums>> bind_sequence(nb::module_& m, const char* name) {
  using Sequence = VerdictSequence<Sums>;
  return nb::class_<Sequence>(m, name)
      .def(
          "add",
          [](Sequence& one, const Read& forecasts, const Read& labels, const ReadIntegers& times,
             const std::optional<ReadIntegers>& skipped) {
            const std::size_t n = forecasts.size();
            require(labels.size() == n && times.size() == n && (!skipped || skipped->size() == n));
            std::vector<std::size_t> turns;
            for (std::size_t i = 0; i < n; ++i) {
              if (one.add(forecasts.data()[i], labels.data()[i], times.data()[i],
                          skipped ? skipped->data()[i] : 0)) {
                turns.push_back(i);
              }
            }
            return turns;
          },
          "forecasts"_a, "labels"_a, "times"_a, "skipped"_a.none() = nb::none())
      .def("restart", &Sequence::restart, "time"_a, "began"_a)
      .def("verdict", [](const Sequence& one) { return record(one.verdict()); })
      .def("brief",
           [](const Sequence& one) {
             const auto [status, ratio] = one.brief();
             return std::tuple(static_cast<std::size_t>(status), ratio);
           })
      .def_prop_ro("held",
                   [](const Sequence& one) {
                     return one.held() ? std::optional(record(*one.held())) : std::nullopt;
                   })
      .def_prop_ro("sums", [](const Sequence& one) { return one.sums(); })
      .def_prop_ro("level", &Sequence::level)
      .def_prop_ro("partitions", &Sequence::partitions)
      .def_prop_ro("blocks", &Sequence::blocks)
      .def_prop_ro("open", &Sequence::open)
      .def_prop_ro("began", &Sequence::began)
      .def_prop_ro("labels", &Sequence::labels)
      .def_prop_ro("skipped", &Sequence::skipped)
      .def_prop_ro("next", &Sequence::next)
      .def_prop_ro("start", &Sequence::start)
      .def_prop_ro("until", &Sequence::until)
      .def(
          "total",
          [](const Sequence& one, const std::vector<const Sequence*>& others) {
            std::vector<const Sequence*> all{&one};
            all.insert(all.end(), others.begin(), others.end());
            return Sequence::total(all);
          },
          "others"_a)
      .def("save", [](const Sequence& one) { return to_python(one.save()); })
      .def("load", [](Sequence& one, const nb::bytes& saved) { one.load(view(saved)); }, "saved"_a);
}

}  // namespace

void bind_verdicts(nb::module_& m) {
  m.def("find_groups", &find_groups, "groups"_a, "alpha"_a);
  m.def("calibration_error", &error_ends, "bins"_a, "alpha"_a);
  m.def("margin", &margin, "squares"_a, "group"_a, "alpha"_a);
  m.def("verdict_level", &verdict_level, "alpha"_a, "blocks"_a, "partitions"_a);
  nb::class_<ConfidenceSequence>(m, "ConfidenceSequence")
      .def(nb::init<double, double, double>(), "tightest"_a, "alpha"_a, "scale"_a)
      .def("log_mixture", &ConfidenceSequence::log_mixture, "deviation"_a, "squares"_a)
      .def(
          "reaches",
          [](const ConfidenceSequence& one, double deviation, double squares, double alpha) {
            return one.reaches(deviation, squares, -elementary::logarithm(alpha));
          },
          "deviation"_a, "squares"_a, "alpha"_a)
      .def(
          "boundary",
          [](const ConfidenceSequence& one, double squares, double alpha) {
            return one.boundary(squares, -elementary::logarithm(alpha));
          },
          "squares"_a, "alpha"_a);
  bind_sums<GroupSums>(m, "GroupSums")
      .def(
          "__init__",
          [](GroupSums* sums, const Read& tolerances) {
            new (sums) GroupSums(tolerances_of(bindings::view(tolerances)));
          },
          "tolerances"_a);
  bind_sums<LevelSums>(m, "LevelSums")
      .def(
          "__init__",
          [](LevelSums* sums, double level, const Read& tolerances) {
            new (sums) LevelSums(level, tolerances_of(bindings::view(tolerances)));
          },
          "level"_a, "tolerances"_a);
  bind_sequence<GroupSums>(m, "GroupVerdicts")
      .def(
          "__init__",
          [](VerdictSequence<GroupSums>* one, double alpha, const Read& tolerances) {
            new (one) VerdictSequence<GroupSums>(
                alpha, GroupSums(tolerances_of(bindings::view(tolerances))));
          },
          "alpha"_a, "tolerances"_a);
  bind_sequence<LevelSums>(m, "LevelVerdicts")
      .def(
          "__init__",
          [](VerdictSequence<LevelSums>* one, double alpha, double level, const Read& tolerances) {
            new (one) VerdictSequence<LevelSums>(
                alpha, LevelSums(level, tolerances_of(bindings::view(tolerances))));
          },
          "alpha"_a, "level"_a, "tolerances"_a);
}

}  // namespace abers
