// Python's way to what scores settled rows of many models; see binary_scores.hpp.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "binary_scores.hpp"
#include "columns_module.hpp"
#include "saved_module.hpp"

namespace abers {
namespace {

using bindings::Column;
using bindings::Read;
using bindings::ReadBytes;
using bindings::ReadIntegers;
using bindings::require;

bool is_scored(double forecast, double label) {
  return forecast >= 0.0 && forecast <= 1.0 && (label == 0.0 || label == 1.0);
}

std::size_t first_unscored(const Read& forecasts, const Read& labels) {
  const std::size_t n = forecasts.size();
  require(labels.size() == n);
  for (std::size_t i = 0; i < n; ++i) {
    if (!is_scored(forecasts.data()[i], labels.data()[i])) return i;
  }
  return n;
}

// Scores rows, all of them or none; returns the first that cannot be scored, or their number.
std::size_t add_scores(BinaryScores& scores, const Read& forecasts, const Read& labels) {
  const std::size_t n = forecasts.size();
  if (const std::size_t row = first_unscored(forecasts, labels); row < n) return row;
  for (std::size_t i = 0; i < n; ++i) {
    scores.add(forecasts.data()[i], labels.data()[i] == 1.0);
  }
  return n;
}

// What watches one model, with the objects that have it.
struct WatchedModel {
  WatchedModel(const nb::typed<nb::object, BinaryScores>& calibrated,
               const nb::typed<nb::object, BinaryScores>& raw,
               const nb::typed<nb::object, OutsideCount>& outside,
               const nb::typed<nb::object, WindowCounter>& window)
      : parts{calibrated, raw, outside, window},
        watched{nb::cast<BinaryScores*>(calibrated), nb::cast<BinaryScores*>(raw),
                nb::cast<OutsideCount*>(outside), nb::cast<WindowCounter*>(window)} {
    if (!watched.calibrated || !watched.window) throw nb::value_error("nothing is watched");
  }

  std::array<nb::object, 4> parts;
  Watched watched;
};

// The sums of a view as `ViewScores.totals` has them.
using ViewTotals = std::tuple<std::int64_t, double, double, std::vector<std::int64_t>,
                              std::vector<double>, std::vector<std::int64_t>>;
using ScoreTotals = std::tuple<double, ViewTotals, std::optional<ViewTotals>>;
// A window that ended: its model, labels up to its end, first and latest time, and the totals of
// scores and of what is outside.
using ClosedWindow = std::tuple<std::size_t, std::int64_t, std::int64_t, std::int64_t, ScoreTotals,
                                std::optional<std::tuple<std::int64_t, std::int64_t>>>;

ViewTotals totals(const BinaryScores& one) {
  const auto *const forecasts = one.sums.data() + 2, *const end = one.sums.data() + one.kSums;
  const auto* const labels = one.counts.data() + 1;
  return {one.counts[0],    one.sums[0],
          one.sums[1],      {labels, labels + kBins},
          {forecasts, end}, {labels + kBins, labels + 2 * kBins}};
}

ClosedWindow closed(std::size_t model, const Watched& one) {
  std::optional<ViewTotals> raw;
  if (one.raw) raw = totals(*one.raw);
  std::optional<std::tuple<std::int64_t, std::int64_t>> outside;
  if (one.outside) outside = {one.outside->labels, one.outside->outside};
  const WindowCounter& window = *one.window;
  return {model,
          window.count,
          window.first,
          window.last,
          {one.calibrated->widths, totals(*one.calibrated), raw},
          outside};
}

// Scores the rows of each model, order[offsets[g]] to order[offsets[g + 1] - 1]; returns the
// windows that ended, in their order.
std::vector<ClosedWindow> score_rows(const std::vector<WatchedModel*>& models,
                                     const ReadIntegers& order, const ReadIntegers& offsets,
                                     const Read& labels, const Read& served,
                                     const std::optional<Read>& scores, const Read& widths,
                                     const std::optional<ReadBytes>& is_outside,
                                     const ReadIntegers& times) {
  const std::size_t n = labels.size();
  require(offsets.size() == models.size() + 1);
  require(served.size() == n && widths.size() == n && times.size() == n);
  require((!scores || scores->size() == n) && (!is_outside || is_outside->size() == n));
  const auto some = static_cast<std::int64_t>(order.size());
  for (std::size_t g = 0; g < models.size(); ++g) {
    const std::int64_t from = offsets.data()[g], to = offsets.data()[g + 1];
    require(from >= 0 && from <= to && to <= some);
    require(scores.has_value() == (models[g]->watched.raw != nullptr));
    require(is_outside.has_value() == (models[g]->watched.outside != nullptr));
  }
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::int64_t row = order.data()[i];
    require(row >= 0 && row < static_cast<std::int64_t>(n));
    const auto at = static_cast<std::size_t>(row);
    const double label = labels.data()[at];
    if (!is_scored(served.data()[at], label) || (scores && !is_scored(scores->data()[at], label))) {
      throw nb::value_error("a row has no probability or no label");
    }
  }
  const SettledColumns columns{labels.data(),
                               served.data(),
                               scores ? scores->data() : nullptr,
                               widths.data(),
                               is_outside ? is_outside->data() : nullptr,
                               times.data()};
  const std::span<const std::int64_t> rows(order.data(), order.size());
  std::vector<ClosedWindow> found;
  for (std::size_t g = 0; g < models.size(); ++g) {
    const auto from = static_cast<std::size_t>(offsets.data()[g]);
    const auto to = static_cast<std::size_t>(offsets.data()[g + 1]);
    if (g + 2 < models.size()) models[g + 2]->watched.fetch();
    const Watched& one = models[g]->watched;
    one.add(rows.subspan(from, to - from), columns, [&] { found.push_back(closed(g, one)); });
  }
  return found;
}

// Sets the sums to those that were saved apart, which are checked.
void restore(BinaryScores& scores, std::int64_t infinite, double log_loss, double squares,
             const std::array<std::int64_t, kBins>& counts,
             const std::array<double, kBins>& forecasts,
             const std::array<std::int64_t, kBins>& positives,
             const std::optional<nb::bytes>& tally) {
  BinaryScores found;
  found.sums[0] = log_loss;
  found.sums[1] = squares;
  found.counts[0] = infinite;
  std::ranges::copy(forecasts, found.sums.begin() + 2);
  std::ranges::copy(counts, found.counts.begin() + 1);
  std::ranges::copy(positives, found.counts.begin() + 1 + kBins);
  found.require_sound();
  if (tally) found.tally = Tally::load(view(*tally));
  scores = std::move(found);
}

template <class T, std::size_t N>
nb::ndarray<T, nb::numpy, nb::ndim<1>> values(std::array<T, N>& held, nb::handle owner) {
  return {held.data(), {N}, owner};
}

}  // namespace

void bind_settled_rows(nb::module_& m) {
  m.def("first_unscored", &first_unscored, "forecasts"_a, "labels"_a);
  nb::class_<BinaryScores>(m, "BinaryScores")
      .def(nb::init<>())
      .def("add", &add_scores, "forecasts"_a, "labels"_a)
      .def_prop_ro("sums",
                   [](nb::handle_t<BinaryScores> self) {
                     return values(nb::cast<BinaryScores&>(self).sums, self);
                   })
      .def_prop_ro("counts",
                   [](nb::handle_t<BinaryScores> self) {
                     return values(nb::cast<BinaryScores&>(self).counts, self);
                   })
      .def_rw("widths", &BinaryScores::widths)
      .def_ro("tally", &BinaryScores::tally)
      .def("restore", &restore, nb::arg("infinite").noconvert(), nb::arg("log_loss").noconvert(),
           nb::arg("squares").noconvert(), nb::arg("counts").noconvert(),
           nb::arg("forecasts").noconvert(), nb::arg("positives").noconvert(),
           "tally"_a.none() = nb::none())
      .def("__getstate__", [](const BinaryScores& one) { return to_python(one.save()); })
      .def("__setstate__", [](BinaryScores& one, const nb::bytes& saved) {
        new (&one) BinaryScores(BinaryScores::load(view(saved)));
      });
  nb::class_<OutsideCount>(m, "OutsideCount")
      .def(nb::init<>())
      .def_rw("labels", &OutsideCount::labels)
      .def_rw("outside", &OutsideCount::outside)
      .def("__getstate__",
           [](const OutsideCount& one) { return std::tuple(one.labels, one.outside); })
      .def("__setstate__",
           [](OutsideCount& one, const std::tuple<std::int64_t, std::int64_t>& saved) {
             const auto [labels, outside] = saved;
             new (&one) OutsideCount{labels, outside};
           });
  nb::class_<WindowCounter>(m, "WindowCounter")
      .def(
          "__init__",
          [](WindowCounter* one, std::int64_t most) { new (one) WindowCounter{.most = most}; },
          "most"_a)
      .def_prop_rw(
          "size", [](const WindowCounter& one) { return one.size; },
          [](WindowCounter& one, std::int64_t size) {
            if (size < 1) throw nb::value_error("a window has a label");
            one.size = size;
          })
      .def_ro("most", &WindowCounter::most)
      .def_rw("count", &WindowCounter::count)
      .def_rw("first", &WindowCounter::first)
      .def_rw("last", &WindowCounter::last)
      .def("__getstate__",
           [](const WindowCounter& one) {
             return std::tuple(one.size, one.most, one.count, one.first, one.last);
           })
      .def("__setstate__",
           [](WindowCounter& one, const std::tuple<std::int64_t, std::int64_t, std::int64_t,
                                                   std::int64_t, std::int64_t>& saved) {
             const auto [size, most, count, first, last] = saved;
             new (&one) WindowCounter{std::max<std::int64_t>(size, 1), most, count, first, last};
           });
  nb::class_<WatchedModel>(m, "WatchedModel")
      .def(nb::init<const nb::typed<nb::object, BinaryScores>&,
                    const nb::typed<nb::object, BinaryScores>&,
                    const nb::typed<nb::object, OutsideCount>&,
                    const nb::typed<nb::object, WindowCounter>&>(),
           "calibrated"_a, "raw"_a.none(), "outside"_a.none(), "window"_a);
  m.def("score_rows", &score_rows, "models"_a, "order"_a, "offsets"_a, "labels"_a, "served"_a,
        "scores"_a.none(), "widths"_a, "is_outside"_a.none(), "times"_a);
}

}  // namespace abers
