// Python's way into protected calibrators; see tests/oracles/protection.py.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <tuple>
#include <vector>

#include "protection.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace abers {
namespace {

template <class T>
using Column = nb::ndarray<T, nb::numpy, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Bytes = Column<const std::uint8_t>;
using Read = Column<const double>;
using Numbers = std::optional<Column<const std::int64_t>>;
using Floats = Column<double>;

template <class T, class U>
T at(const std::optional<Column<const T>>& column, std::size_t row, U absent) {
  return column ? column->data()[row] : absent;
}

void require_length(std::size_t wanted, std::initializer_list<std::size_t> lengths) {
  for (const std::size_t length : lengths) {
    if (length != wanted) throw nb::value_error("columns differ in length");
  }
}

// Steps done until one was refused; all of them if none was.
std::size_t run(Protection& protection, const Bytes& kinds, const Read& scores, const Read& raw,
                const Bytes& labels, const Numbers& weights, const std::optional<Read>& times,
                const Numbers& numbers, const Floats& p0, const Floats& p1, const Floats& p,
                const std::optional<Column<std::int64_t>>& held) {
  const std::size_t n = kinds.size();
  require_length(n, {scores.size(), raw.size(), labels.size(), weights ? weights->size() : n,
                     times ? times->size() : n, numbers ? numbers->size() : n, p0.size(), p1.size(),
                     p.size(), held ? held->size() : n});
  const nb::gil_scoped_release unlocked;
  for (std::size_t i = 0; i < n; ++i) {
    const ProtectedStep step{kinds.data()[i],
                             scores.data()[i],
                             raw.data()[i],
                             labels.data()[i] != 0,
                             at(weights, i, kOne),
                             at(times, i, std::nan("")),
                             at(numbers, i, std::int64_t{-1})};
    ProtectedForecast found;
    if (!protection.step(step, found)) return i;
    p0.data()[i] = found.p0;
    p1.data()[i] = found.p1;
    p.data()[i] = found.p;
    if (held) held->data()[i] = protection.held();
  }
  return n;
}

std::tuple<double, double, double> predict(Protection& protection, double score, double raw,
                                           std::int64_t weight, double time, std::int64_t number) {
  ProtectedForecast found;
  protection.step({kPredict, score, raw, false, weight, time, number}, found);
  return {found.p0, found.p1, found.p};
}

bool learn(Protection& protection, double score, double raw, bool label, std::int64_t weight,
           double time, std::int64_t number) {
  ProtectedForecast none;
  return protection.step({kLearn, score, raw, label, weight, time, number}, none);
}

void expire(Protection& protection, std::int64_t number) {
  ProtectedForecast none;
  protection.step({kExpire, 0.0, 0.0, false, kOne, 0.0, number}, none);
}

}  // namespace

void bind_protection(nb::module_& module) {
  nb::class_<Protection>(module, "Protection")
      .def(nb::init<Aggregation&, std::vector<CalibrationSet*>, std::int64_t>(), "mixture"_a,
           "sets"_a, "positives"_a = 0, nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>())
      .def_prop_ro("positives", &Protection::positives)
      .def("predict", &predict, "score"_a, "raw"_a, "weight"_a, "time"_a, "number"_a)
      .def("learn", &learn, "score"_a, "raw"_a, "label"_a, "weight"_a, "time"_a, "number"_a)
      .def("expire", &expire, "number"_a)
      .def("run", &run, "kinds"_a, "scores"_a, "raw"_a, "labels"_a, "weights"_a.none(),
           "times"_a.none(), "numbers"_a.none(), "p0"_a, "p1"_a, "p"_a, "held"_a.none());
}

}  // namespace abers
