// Python's way into what is summed, pooled and bet of forecasts and their labels; see
// tests/oracles/tally.py, tests/oracles/group_sums.py, tests/oracles/reorder_buffer.py and `pool`
// in abers/reference/calibration_set.py.
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
#include "experts.hpp"
#include "group_sums.hpp"
#include "in_order.hpp"
#include "tally.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace abers {
namespace {

template <class T>
using Column = nb::ndarray<T, nb::numpy, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Read = Column<const double>;
using Counts = Column<const std::int64_t>;
using Floats = Column<double>;
using Integers = Column<std::int64_t>;
using Rows = nb::ndarray<const double, nb::numpy, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

void require(bool condition) {
  if (!condition) throw nb::value_error("columns differ in length");
}

// Scores

double added(double total, const Read& terms) {
  for (std::size_t i = 0; i < terms.size(); ++i) total += terms.data()[i];
  return total;
}

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

std::size_t add_scores(const Read& forecasts, const Read& labels, const Floats& sums,
                       const Integers& counts) {
  const std::size_t n = forecasts.size();
  require(sums.size() == 2 + kBins && counts.size() == 1 + 2 * kBins);
  if (const std::size_t row = first_unscored(forecasts, labels); row < n) return row;
  double* sum = sums.data();
  std::int64_t* count = counts.data();
  for (std::size_t i = 0; i < n; ++i) {
    const double p = forecasts.data()[i], y = labels.data()[i];
    const double of_label = y == 1.0 ? p : 1.0 - p;
    if (of_label > 0.0) {
      sum[0] -= std::log(of_label);
    } else {
      ++count[0];
    }
    sum[1] += (y - p) * (y - p);
    const std::size_t bin = bin_of(p);
    sum[2 + bin] += p;
    ++count[1 + bin];
    count[1 + kBins + bin] += y == 1.0;
  }
  return n;
}

double loss_difference(double first, double second, bool label) {
  const auto probability = [&](double p) { return std::max(label ? p : 1.0 - p, kClip); };
  return elementary::logarithm(probability(second) / probability(first));
}

void add_loss_differences(const Read& first, const Read& second, const Read& labels, double largest,
                          const Floats& sums) {
  const std::size_t n = labels.size();
  require(first.size() == n && second.size() == n && sums.size() == 3);
  double* const sum = sums.data();
  for (std::size_t i = 0; i < n; ++i) {
    const double d = loss_difference(first.data()[i], second.data()[i], labels.data()[i] == 1.0);
    const double within = std::clamp(d, -largest, largest);
    sum[0] += within;
    sum[1] += within * within;
    sum[2] += d != within;
  }
}

// Bets

void bet_on_bins(const Rows& shares, const Read& null, const Read& prior, const Floats& counts,
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

// Observations that wait, and bets on them

using Bytes = Column<const std::uint8_t>;
using Flags = Column<std::uint8_t>;
using Table = nb::ndarray<double, nb::numpy, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

constexpr double kGrid = 4096.0;  // forecasts are rounded to its parts, so that sets stay small
constexpr double kDoubt = 100.0;  // labels that speak for a bet as much as the forecast for itself
constexpr double kSmallest = 0x1p-53, kLargest = 1.0 - 0x1p-53;  // so that no factor is 0
// What a row has of each view, in this order; its sets are that of all labels and that of the last.
enum Place : std::size_t { kForecast, kOfAll, kOfRecent, kLabel, kPlaces };
using Sets = std::vector<CalibrationSet*>;
constexpr std::size_t kSets = 2;  // of a view

std::int64_t run(InOrder& queue, const Bytes& kinds, const Counts& numbers, const Counts& times,
                 const Rows& values) {
  const std::size_t n = kinds.size(), width = queue.width();
  require(numbers.size() == n && times.size() == n && values.shape(0) == n &&
          values.shape(1) == width);
  for (std::size_t i = 0; i < n; ++i) {
    const double* const given = values.data() + i * width;
    queue.step(
        i, Kind{kinds.data()[i]}, numbers.data()[i], times.data()[i], [](std::span<double>) {},
        [&](std::span<double> row) { std::copy_n(given, width, row.begin()); },
        [](std::span<const double> row, std::vector<double>& out) {
          out.insert(out.end(), row.begin(), row.end());
        });
  }
  return static_cast<std::int64_t>(queue.due());
}

double inside(double p) { return std::min(std::max(p, kSmallest), kLargest); }

double rounded(double forecast) { return std::nearbyint(forecast * kGrid) / kGrid; }

// What a set says of a forecast, merged and drawn to the forecast.
double bet_of(CalibrationSet& held, double forecast) {
  const auto [p0, p1] = held.predict(rounded(forecast), kOne, std::nan(""));
  const double merged = inside(p1 / (1.0 - p0 + p1)), count = static_cast<double>(held.size());
  return inside((count * merged + kDoubt * forecast) / (count + kDoubt));
}

double won(double bet, double forecast, double label) {
  return label == 1.0 ? bet / forecast : (1.0 - bet) / (1.0 - forecast);
}

// The probability nearest to a bet of those whose odds are at most so many times off the
// forecast's.
double tolerated(double bet, double p, double tolerance) {
  const double lower = p / (p + (1.0 - p) * tolerance);
  const double upper = p * tolerance / (p * tolerance + (1.0 - p));
  return std::min(std::max(bet, lower), upper);
}

// Appends forecast, label, and the factors: of both bets, first against the forecast, then
// against what is tolerated.
void settle(std::span<const double> row, double tolerance, std::vector<double>& out) {
  const double p = row[kForecast], y = row[kLabel];
  out.insert(out.end(), {p, y});
  for (const Place of : {kOfAll, kOfRecent}) out.push_back(won(row[of], p, y));
  for (const Place of : {kOfAll, kOfRecent}) {
    out.push_back(won(row[of], tolerated(row[of], p, tolerance), y));
  }
}

// The first step with a forecast or a label that cannot be one; their number if there is none.
std::size_t first_bad(const Bytes& kinds, const Rows& values, std::size_t views) {
  const std::size_t n = kinds.size(), width = values.shape(1);
  for (std::size_t i = 0; i < n; ++i) {
    const bool predicts = Kind{kinds.data()[i]} == Kind::kPredicts;
    for (std::size_t view = 0; view < views; ++view) {
      const double value = values.data()[i * width + view];
      if (!(predicts ? value >= 0.0 && value <= 1.0 : value == 0.0 || value == 1.0)) return i;
    }
  }
  return n;
}

std::int64_t bet(InOrder& queue, const Sets& sets, double tolerance, const Bytes& kinds,
                 const Counts& numbers, const Counts& times, const Rows& values) {
  const std::size_t n = kinds.size(), width = values.shape(1), views = sets.size() / kSets;
  // What a label brings beside, which stands in front: the last number of a row is the label.
  const std::size_t more = width - views;
  require(numbers.size() == n && times.size() == n && values.shape(0) == n && width >= views &&
          sets.size() == kSets * views && queue.width() == more + kPlaces * views);
  if (const std::size_t bad = first_bad(kinds, values, views); bad < n) {
    return static_cast<std::int64_t>(bad) - static_cast<std::int64_t>(n);
  }
  for (std::size_t i = 0; i < n; ++i) {
    const double* const value = values.data() + i * width;
    queue.step(
        i, Kind{kinds.data()[i]}, numbers.data()[i], times.data()[i],
        [&](std::span<double> row) {
          for (std::size_t view = 0; view < views; ++view) {
            double* const part = row.data() + more + kPlaces * view;
            part[kForecast] = value[view] + 0.0;  // -0.0 becomes 0.0, so that no factor is negative
            part[kOfAll] = bet_of(*sets[kSets * view], value[view]);
            part[kOfRecent] = bet_of(*sets[kSets * view + 1], value[view]);
          }
        },
        [&](std::span<double> row) {
          std::copy_n(value + views, more, row.begin());
          for (std::size_t view = 0; view < views; ++view) {
            double* const part = row.data() + more + kPlaces * view;
            part[kLabel] = value[view];
            // None is refused before there are 2^33.
            for (std::size_t set = 0; set < kSets; ++set) {
              sets[kSets * view + set]->learn(rounded(part[kForecast]), value[view] == 1.0, kOne,
                                              std::nan(""));
            }
          }
        },
        [&](std::span<const double> row, std::vector<double>& out) {
          for (std::size_t view = 0; view < views; ++view) {
            settle(row.subspan(more + kPlaces * view, kPlaces), tolerance, out);
          }
          out.insert(out.end(), row.begin(), row.begin() + static_cast<std::ptrdiff_t>(more));
        });
  }
  return static_cast<std::int64_t>(queue.due());
}

void settled(InOrder& queue, const Integers& times, const Integers& steps, const Integers& gaps,
             const Table& values) {
  require(times.size() == queue.due() && steps.size() == queue.due() &&
          gaps.size() == queue.due() && values.shape(0) == queue.due());
  const Released all = queue.released();
  require(values.size() == all.values.size());
  std::ranges::copy(all.times, times.data());
  std::ranges::copy(all.steps, steps.data());
  std::ranges::copy(all.gaps, gaps.data());
  std::ranges::copy(all.values, values.data());
}

void columns(const InOrder& queue, const Integers& numbers, const Integers& times,
             const Flags& waits, const Table& rows) {
  const std::size_t n = queue.size();
  require(numbers.size() == n && times.size() == n && waits.size() == n && rows.shape(0) == n &&
          rows.shape(1) == queue.width());
  std::ranges::copy(queue.numbers(), numbers.data());
  std::ranges::copy(queue.times(), times.data());
  std::ranges::copy(queue.open(), waits.data());
  std::ranges::copy(queue.rows(), rows.data());
}

void load_rows(InOrder& queue, const Counts& numbers, const Counts& times, const Bytes& waits,
               const Rows& rows) {
  const std::size_t n = numbers.size(), width = queue.width();
  require(times.size() == n && waits.size() == n && rows.shape(0) == n && rows.shape(1) == width);
  for (std::size_t i = 0; i < n; ++i) {
    queue.load(numbers.data()[i], times.data()[i], waits.data()[i] != 0,
               {rows.data() + i * width, width});
  }
}

// Groups

void add(Tally& tally, const Read& forecasts, const Read& labels) {
  require(labels.size() == forecasts.size());
  for (std::size_t i = 0; i < forecasts.size(); ++i) {
    tally.add(forecasts.data()[i], labels.data()[i] == 1.0);
  }
}

void load(Tally& tally, const Counts& numbers, const Counts& counts, const Counts& positives) {
  require(counts.size() == numbers.size() && positives.size() == numbers.size());
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    tally.add({numbers.data()[i], counts.data()[i], positives.data()[i]});
  }
}

void groups(const Tally& tally, const Integers& numbers, const Integers& counts,
            const Integers& positives) {
  const std::size_t n = tally.groups().size();
  require(numbers.size() == n && counts.size() == n && positives.size() == n);
  for (std::size_t i = 0; i < n; ++i) {
    const Tally::Group& group = tally.groups()[i];
    numbers.data()[i] = group.number;
    counts.data()[i] = group.count;
    positives.data()[i] = group.positives;
  }
}

void add_rows(GroupSums& groups, const Read& forecasts, const Read& labels) {
  require(labels.size() == forecasts.size());
  for (std::size_t i = 0; i < forecasts.size(); ++i) {
    groups.add(forecasts.data()[i], labels.data()[i]);
  }
}

void write_sums(const GroupSums& groups, const Floats& out) {
  require(out.size() == groups.sums().size());
  std::ranges::copy(groups.sums(), out.data());
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

std::size_t pooled(const Counts& counts, const Counts& positives, const Integers& ends) {
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
  m.def("add_loss_differences", &add_loss_differences, "first"_a, "second"_a, "labels"_a,
        "largest"_a, "sums"_a);
  m.def("add_scores", &add_scores, "forecasts"_a, "labels"_a, "sums"_a, "counts"_a);
  m.def("bet_on_bins", &bet_on_bins, "shares"_a, "null"_a, "prior"_a, "counts"_a, "forget"_a,
        "factors"_a, nb::kw_only(), "capped"_a);
  m.def("first_unscored", &first_unscored, "forecasts"_a, "labels"_a);
  m.def("pooled", &pooled, "counts"_a, "positives"_a, "ends"_a);
  nb::class_<InOrder>(m, "ReorderBuffer")
      .def(nb::init<std::size_t, std::int64_t>(), "width"_a, "least"_a)
      .def_rw("came", &InOrder::came)
      .def_rw("skipped", &InOrder::skipped)
      .def_rw("gap", &InOrder::gap)
      .def("run", &run, "kinds"_a, "numbers"_a, "times"_a, "values"_a)
      .def("bet", &bet, "sets"_a, "tolerance"_a, "kinds"_a, "numbers"_a, "times"_a, "values"_a)
      .def("settled", &settled, "times"_a, "steps"_a, "gaps"_a, "values"_a)
      .def("size", &InOrder::size)
      .def("first", &InOrder::first)
      .def("columns", &columns, "numbers"_a, "times"_a, "waits"_a, "rows"_a)
      .def("load", &load_rows, "numbers"_a, "times"_a, "waits"_a, "rows"_a);
  nb::class_<GroupSums>(m, "GroupSums")
      .def(
          "__init__",
          [](GroupSums* groups, const Read& tolerances) {
            new (groups) GroupSums({tolerances.data(), tolerances.size()});
          },
          "tolerances"_a)
      .def("add", &add_rows, "forecasts"_a, "labels"_a)
      .def("size", [](const GroupSums& groups) { return groups.sums().size(); })
      .def("sums", &write_sums, "out"_a)
      .def("is_undecided", &GroupSums::is_undecided, "main"_a, "bins"_a)
      .def(
          "load",
          [](GroupSums& groups, const Read& sums) { groups.load({sums.data(), sums.size()}); },
          "sums"_a);
  nb::class_<Tally>(m, "Tally")
      .def(nb::init<>())
      .def("add", &add, "forecasts"_a, "labels"_a)
      .def("load", &load, "numbers"_a, "counts"_a, "positives"_a)
      .def("size", [](const Tally& tally) { return tally.groups().size(); })
      .def("groups", &groups, "numbers"_a, "counts"_a, "positives"_a);
}

}  // namespace abers
