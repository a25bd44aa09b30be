// Python's way into what is summed and pooled of forecasts and their labels; see abers/_tally.py
// and `pooled` in abers/_isotonic.py.
//
// Governing rule: sums are taken in the order of the rows, one term after the other, and blocks are
// found by comparing products of integers, which 128 bits hold whatever the counts are.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "arithmetic.hpp"
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

constexpr std::size_t kBins = 10;

double added(double total, const Read& terms) {
  for (std::size_t i = 0; i < terms.size(); ++i) total += terms.data()[i];
  return total;
}

std::size_t bin_of(double forecast) {  // compared with the edges, as the specification does
  std::size_t bin = 0;
  while (bin + 1 < kBins && forecast >= static_cast<double>(bin + 1) / kBins) ++bin;
  return bin;
}

bool is_scored(double forecast, double label) {
  return forecast >= 0.0 && forecast <= 1.0 && (label == 0.0 || label == 1.0);
}

std::size_t add_scores(const Read& forecasts, const Read& labels, const Floats& sums,
                       const Integers& counts) {
  const std::size_t n = forecasts.size();
  require(labels.size() == n && sums.size() == 2 + kBins && counts.size() == 1 + 2 * kBins);
  double* sum = sums.data();
  std::int64_t* count = counts.data();
  for (std::size_t i = 0; i < n; ++i) {
    if (!is_scored(forecasts.data()[i], labels.data()[i])) return i;
  }
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
  m.def("add_scores", &add_scores, "forecasts"_a, "labels"_a, "sums"_a, "counts"_a);
  m.def("bet_on_bins", &bet_on_bins, "shares"_a, "null"_a, "prior"_a, "counts"_a, "forget"_a,
        "factors"_a, nb::kw_only(), "capped"_a);
  m.def("pooled", &pooled, "counts"_a, "positives"_a, "ends"_a);
  nb::class_<Tally>(m, "Tally")
      .def(nb::init<>())
      .def("add", &add, "forecasts"_a, "labels"_a)
      .def("load", &load, "numbers"_a, "counts"_a, "positives"_a)
      .def("size", [](const Tally& tally) { return tally.groups().size(); })
      .def("groups", &groups, "numbers"_a, "counts"_a, "positives"_a);
}

}  // namespace abers
