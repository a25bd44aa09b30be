// Python's way into what is summed, pooled and bet of forecasts and their labels; see
// tests/oracles/tally.py, tests/oracles/reorder_buffer.py and `pool` in
// abers/reference/calibration_set.py.
//
// Sums are taken in the order of the rows, one term after the other, and blocks are
// found by comparing products of integers, which 128 bits hold whatever the counts are.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "arithmetic.hpp"
#include "calibration_set.hpp"
#include "columns_module.hpp"
#include "in_order.hpp"
#include "loss_difference.hpp"
#include "saved_module.hpp"
#include "tally.hpp"

namespace abers {
namespace {

using bindings::Floats;
using bindings::Integers;
using bindings::Read;
using bindings::ReadIntegers;
using bindings::ReadRows;
using bindings::require;

// Scores

double added(double total, const Read& terms) {
  for (std::size_t i = 0; i < terms.size(); ++i) total += terms.data()[i];
  return total;
}

void add_losses(LossDifference& losses, const Read& first, const Read& second, const Read& labels,
                const ReadIntegers& times) {
  const std::size_t n = labels.size();
  require(first.size() == n && second.size() == n && times.size() == n);
  for (std::size_t i = 0; i < n; ++i) {
    losses.add(first.data()[i], second.data()[i], labels.data()[i] == 1.0, times.data()[i]);
  }
}

// Bets

void bet_on_bins(const ReadRows& shares, const Read& null, const Read& prior, const Floats& counts,
                 double forget, const Floats& factors, bool capped) {
  const std::size_t n = shares.shape(0), bins = shares.shape(1);
  require(bins > 0 && null.size() == bins && prior.size() == bins && counts.size() == bins &&
          factors.size() == n);
  double* const held = counts.data();
  for (std::size_t i = 0; i < n; ++i) {
    const double* const share = shares.data() + i * bins;
    double total = 0.0, factor = 0.0;
    for (std::size_t k = 0; k < bins; ++k) total += held[k] + prior.data()[k];
    for (std::size_t k = 0; k < bins; ++k) {
      factor += share[k] * (held[k] + prior.data()[k]) / (total * null.data()[k]);
    }
    const double last = held[bins - 1] + prior.data()[bins - 1];
    const bool won = capped && last > null.data()[bins - 1] * total;
    factors.data()[i] = won ? 1.0 : factor;
    for (std::size_t k = 0; k < bins; ++k) held[k] = held[k] * forget + share[k];
  }
}

// Cells

void add(Tally& tally, const Read& forecasts, const Read& labels) {
  require(labels.size() == forecasts.size());
  for (std::size_t i = 0; i < forecasts.size(); ++i) {
    tally.add(forecasts.data()[i], labels.data()[i] == 1.0);
  }
}

void cells(const Tally& tally, const Floats& forecasts, const Integers& counts,
           const Integers& positives) {
  const std::size_t n = tally.cells().size();
  require(forecasts.size() == n && counts.size() == n && positives.size() == n);
  for (std::size_t i = 0; i < n; ++i) {
    const Tally::Cell& cell = tally.cells()[i];
    forecasts.data()[i] = cell.mean();
    counts.data()[i] = cell.count;
    positives.data()[i] = cell.positives;
  }
}

void cells_of(const Read& forecasts, const Integers& out) {
  require(out.size() == forecasts.size());
  for (std::size_t i = 0; i < out.size(); ++i) {
    out.data()[i] = static_cast<std::int64_t>(Tally::cell_of(forecasts.data()[i]));
  }
}

// Blocks

struct Pool {
  std::int64_t count;
  std::int64_t positives;
};

bool falls(const Pool& left, const Pool& right) {
  return static_cast<int128>(left.positives) * right.count >=
         static_cast<int128>(right.positives) * left.count;
}

std::size_t pooled(const ReadIntegers& counts, const ReadIntegers& positives,
                   const Integers& ends) {
  const std::size_t n = counts.size();
  require(positives.size() == n && ends.size() == n);
  std::vector<Pool> pools;  // of the groups read so far, their shares strictly increasing
  for (std::size_t i = 0; i < n; ++i) {
    Pool last{counts.data()[i], positives.data()[i]};
    while (!pools.empty() && falls(pools.back(), last)) {
      last.count += pools.back().count;
      last.positives += pools.back().positives;
      pools.pop_back();
    }
    ends.data()[pools.size()] = static_cast<std::int64_t>(i) + 1;
    pools.push_back(last);
  }
  return pools.size();
}

}  // namespace

void bind_monitoring(nb::module_& m) {
  m.def("added", &added, "total"_a, "terms"_a);
  m.def("bet_on_bins", &bet_on_bins, "shares"_a, "null"_a, "prior"_a, "counts"_a, "forget"_a,
        "factors"_a, nb::kw_only(), "capped"_a);
  m.def("pooled", &pooled, "counts"_a, "positives"_a, "ends"_a);
  nb::class_<LossDifference>(m, "LossDifference")
      .def(nb::init<>())
      .def("add", &add_losses, "first"_a, "second"_a, "labels"_a, "times"_a)
      .def_rw("total", &LossDifference::total)
      .def_rw("squares", &LossDifference::squares)
      .def_rw("clipped", &LossDifference::clipped)
      .def_rw("count", &LossDifference::count)
      .def_rw("start", &LossDifference::start)
      .def_rw("until", &LossDifference::until);
  nb::class_<Tally>(m, "Tally")
      .def(nb::init<>())
      .def("add", &add, "forecasts"_a, "labels"_a)
      .def(
          "include", [](Tally& tally, const Tally& other) { tally.add(other); }, "other"_a)
      .def("size", [](const Tally& tally) { return tally.cells().size(); })
      .def("cells", &cells, "forecasts"_a, "counts"_a, "positives"_a)
      .def_static("cells_of", &cells_of, "forecasts"_a, "out"_a)
      .def("save", [](const Tally& tally) { return to_python(tally.save()); })
      .def_static(
          "load", [](const nb::bytes& saved) { return Tally::load(view(saved)); }, "saved"_a);
}

}  // namespace abers
