// Python's way into protected mixtures; see abers/reference/aggregation.py.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "aggregation.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace abers {
namespace {

template <class T>
using Column = nb::ndarray<T, nb::numpy, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Kinds = Column<const std::uint8_t>;
using Numbers = Column<const std::int64_t>;
using Given = nb::ndarray<const double, nb::numpy, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Flags = Column<std::uint8_t>;
using Floats = Column<double>;
using Read = Column<const double>;
using Integers = Column<std::int64_t>;

void require(bool condition) {
  if (!condition) throw nb::value_error("columns differ in length");
}

template <class T>
std::span<const T> view(const Column<const T>& column) {
  return {column.data(), column.size()};
}

void moments(const Aggregation& mixture, const Kinds& kinds, const Numbers& numbers,
             const Floats& out, const Flags& known) {
  const std::size_t n = kinds.size();
  require(numbers.size() == n && out.size() == n && known.size() == n);
  mixture.lanes().moments(view(kinds), view(numbers), out.data(), known.data());
}

void logistics(const Read& scores, const Floats& out) {
  require(scores.size() == out.size());
  for (std::size_t i = 0; i < scores.size(); ++i) {
    out.data()[i] = elementary::logistic(scores.data()[i]);
  }
}

// Of each column.
void geometric_means(const Given& rows, const Floats& out) {
  const std::size_t count = rows.shape(0), n = rows.shape(1);
  require(out.size() == n);
  const nb::gil_scoped_release released;
  for (std::size_t i = 0; i < n; ++i) {
    out.data()[i] = elementary::geometric_mean(rows.data() + i, count, n);
  }
}

void run(Aggregation& mixture, const Kinds& kinds, const Numbers& numbers, const Kinds& labels,
         const Given& given, const Floats& out) {
  const std::size_t n = kinds.size(), width = mixture.given();
  require(numbers.size() == n && labels.size() == n && out.size() == n);
  require(given.shape(0) == n && given.shape(1) == width);
  const nb::gil_scoped_release released;
  for (std::size_t row = 0; row < n; ++row) {
    const double* const forecasts = given.data() + row * width;
    const std::int64_t number = numbers.data()[row];
    switch (kinds.data()[row]) {
      case kPredict:
        out.data()[row] = mixture.predict(forecasts, number);
        break;
      case kLearn:
        mixture.learn(forecasts, labels.data()[row] != 0, number);
        break;
      case kExpire:
        mixture.expire(number);
        break;
      default:
        throw nb::value_error("nothing is removed");
    }
  }
}

void losses(const Aggregation& mixture, const Floats& out) {
  require(out.size() == mixture.experts() + 1);
  mixture.losses(out.data());
}

void weights(const Aggregation& mixture, const Floats& out) {
  require(out.size() == mixture.experts());
  mixture.lanes().mean_weights(out.data());
}

// The state, as columns: parameters, exponents of the losses; by lane number, moment, weights and
// forecasts.

std::size_t parameters(Aggregation& mixture) {
  std::size_t count = 0;
  mixture.visit_parameters([&](double) { ++count; });
  return count;
}

void save(Aggregation& mixture, const Floats& own, const Integers& exponents,
          const Integers& numbers, const Integers& moments, const Floats& weights,
          const Floats& forecasts) {
  const std::size_t lanes = mixture.lanes().size(), wide = lanes * mixture.experts();
  require(own.size() == parameters(mixture) && exponents.size() == mixture.products().size());
  require(numbers.size() == lanes && moments.size() == lanes);
  require(weights.size() == wide && forecasts.size() == wide);
  double* next = own.data();
  mixture.visit_parameters([&](double one) { *next++ = one; });
  std::int64_t* exponent = exponents.data();
  for (const Product& product : mixture.products()) *exponent++ = product.exponent;
  mixture.lanes().save(numbers.data(), moments.data(), weights.data(), forecasts.data());
}

void load(Aggregation& mixture, std::int64_t moment, std::int64_t labels, std::int64_t taught,
          std::size_t most, const Read& own, const Numbers& exponents, const Numbers& numbers,
          const Numbers& moments, const Read& weights, const Read& forecasts) {
  const std::size_t wide = numbers.size() * mixture.experts();
  require(own.size() == parameters(mixture) && exponents.size() == mixture.products().size());
  require(moments.size() == numbers.size() && weights.size() == wide && forecasts.size() == wide);
  const double* next = own.data();
  mixture.visit_parameters([&](double& one) { one = *next++; });
  const std::int64_t* exponent = exponents.data();
  for (Product& product : mixture.products()) product.exponent = *exponent++;
  Lanes lanes = mixture.lanes();
  lanes.load(moment, most, view(numbers), view(moments), view(weights), view(forecasts));
  mixture.load(labels, taught, std::move(lanes));
}

}  // namespace

void bind_aggregation(nb::module_& module) {
  module.def("logistics", &logistics, "scores"_a, "out"_a);
  module.def("geometric_means", &geometric_means, "rows"_a, "out"_a);
  nb::class_<Aggregation>(module, "Aggregation")
      .def(nb::init<std::size_t, double>(), "shrunk"_a, "raw_weight"_a = 0.25)
      .def_prop_ro("experts", &Aggregation::experts)
      .def_prop_ro("lane_count", [](const Aggregation& one) { return one.lanes().most(); })
      .def_prop_ro("lane_rows", [](const Aggregation& one) { return one.lanes().size(); })
      .def_prop_ro("awaiting_count", [](const Aggregation& one) { return one.lanes().awaiting(); })
      .def_prop_ro("moment", [](const Aggregation& one) { return one.lanes().moment(); })
      .def_prop_ro("labels", &Aggregation::labels)
      .def_prop_ro("taught", &Aggregation::taught)
      .def_prop_ro("parameter_count", &parameters)
      .def("moments", &moments, "kinds"_a, "numbers"_a, "out"_a, "known"_a)
      .def("run", &run, "kinds"_a, "numbers"_a, "labels"_a, "given"_a, "out"_a)
      .def("losses", &losses, "out"_a)
      .def("weights", &weights, "out"_a)
      .def("save", &save, "own"_a, "exponents"_a, "numbers"_a, "moments"_a, "weights"_a,
           "forecasts"_a)
      .def("load", &load, "moment"_a, "labels"_a, "taught"_a, "most"_a, "own"_a, "exponents"_a,
           "numbers"_a, "moments"_a, "weights"_a, "forecasts"_a)
      .def("__sizeof__", [](const Aggregation& one) { return sizeof(one) + one.lanes().bytes(); });
}

}  // namespace abers
