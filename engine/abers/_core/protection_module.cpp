// Python's way into protected calibrators; see tests/oracles/protection.py.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>

#include "mixture_module.hpp"
#include "protection_codec.hpp"
#include "saved_module.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace abers {
namespace {

using bindings::Column;
using bindings::Floats;
using bindings::Read;
using Bytes = bindings::Kinds;
using Numbers = std::optional<bindings::Numbers>;

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
std::size_t run(Protection& protection, const Bytes& kinds, const Read& scores, const Bytes& labels,
                const Numbers& weights, const std::optional<Read>& times, const Numbers& numbers,
                const Floats& p0, const Floats& p1, const Floats& p,
                const std::optional<Column<std::int64_t>>& held) {
  const std::size_t n = kinds.size();
  require_length(
      n, {scores.size(), labels.size(), weights ? weights->size() : n, times ? times->size() : n,
          numbers ? numbers->size() : n, p0.size(), p1.size(), p.size(), held ? held->size() : n});
  const nb::gil_scoped_release unlocked;
  for (std::size_t i = 0; i < n; ++i) {
    const ModelStep step{
        kinds.data()[i],      scores.data()[i],           labels.data()[i] != 0,
        at(weights, i, kOne), at(times, i, std::nan("")), at(numbers, i, std::int64_t{-1})};
    ModelForecast found;
    if (!protection.step(step, found)) return i;
    p0.data()[i] = found.p0;
    p1.data()[i] = found.p1;
    p.data()[i] = found.p;
    if (held) held->data()[i] = step.kind == kPredict ? found.labels : protection.size();
  }
  return n;
}

std::tuple<double, double, double> predict(Protection& protection, double score,
                                           std::int64_t weight, double time, std::int64_t number) {
  ModelForecast found;
  protection.step({kPredict, score, false, weight, time, number}, found);
  return {found.p0, found.p1, found.p};
}

bool learn(Protection& protection, double score, bool label, std::int64_t weight, double time,
           std::int64_t number) {
  ModelForecast none;
  return protection.step({kLearn, score, label, weight, time, number}, none);
}

void expire(Protection& protection, std::int64_t number) {
  ModelForecast none;
  protection.step({.kind = kExpire, .score = 0.0, .number = number}, none);
}

}  // namespace

void bind_protection(nb::module_& module) {
  auto type = nb::class_<MethodMixture>(module, "MethodMixture");
  bindings::bind_parameters(type);
  nb::class_<Protection, Model>(module, "Protection")
      .def(
          "__init__",
          [](Protection* self, std::shared_ptr<CalibrationSet> held, unsigned scores,
             double raw_weight, std::int64_t wait, std::int64_t age) {
            new (self) Protection(std::move(held), static_cast<Scores>(scores), raw_weight,
                                  teaching(wait, age));
          },
          "held"_a, "scores"_a = 0, "raw_weight"_a = 0.25, "wait"_a = std::int64_t{0},
          "age"_a = std::int64_t{-1})
      .def_prop_ro("mixture", &Protection::mixture, nb::rv_policy::reference_internal)
      .def_prop_ro("held", &Protection::shared_set)
      .def_prop_ro("scores", [](const Protection& one) { return static_cast<int>(one.scores()); })
      .def_prop_ro("raw_weight", &Protection::raw_weight)
      .def("predict", &predict, "score"_a, "weight"_a, "time"_a, "number"_a)
      .def("learn", &learn, "score"_a, "label"_a, "weight"_a, "time"_a, "number"_a)
      .def("expire", &expire, "number"_a)
      .def("run", &run, "kinds"_a, "scores"_a, "labels"_a, "weights"_a.none(), "times"_a.none(),
           "numbers"_a.none(), "p0"_a, "p1"_a, "p"_a, "held"_a.none())
      .def_static(
          "load", [](const nb::bytes& payload) { return Protection::loaded(view(payload)); },
          "payload"_a);
}

}  // namespace abers
