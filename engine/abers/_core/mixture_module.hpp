// What the bindings of mixtures in lanes share.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "arithmetic.hpp"
#include "lanes.hpp"
#include "mixture.hpp"

namespace abers::bindings {

namespace nb = nanobind;
using namespace nb::literals;

template <class T>
using Column = nb::ndarray<T, nb::numpy, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <std::size_t n>
using Given = nb::ndarray<const double, nb::numpy, nb::ndim<n>, nb::c_contig, nb::device::cpu>;
using Kinds = Column<const std::uint8_t>;
using Numbers = Column<const std::int64_t>;
using Table = nb::ndarray<double, nb::numpy, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Flags = Column<std::uint8_t>;
using Floats = Column<double>;
using Read = Column<const double>;
using Integers = Column<std::int64_t>;

inline void require(bool condition) {
  if (!condition) throw nb::value_error("columns differ in length");
}

template <class T>
std::span<const T> view(const Column<const T>& column) {
  return {column.data(), column.size()};
}

// Binds what every mixture has that keeps lanes.
template <class M>
void bind_lanes(nb::class_<M>& type) {
  type.def_prop_ro("experts", &M::experts)
      .def_prop_ro("labels", &M::labels)
      .def_prop_ro("lane_count", [](const M& one) { return one.lanes().most(); })
      .def_prop_ro("lane_rows", [](const M& one) { return one.lanes().size(); })
      .def_prop_ro("awaiting_count", [](const M& one) { return one.lanes().awaiting(); })
      .def_prop_ro("moment", [](const M& one) { return one.lanes().moment(); })
      .def(
          "weights",
          [](const M& one, const Floats& out) {
            require(out.size() == one.experts());
            one.lanes().mean_weights(out.data());
          },
          "out"_a)
      .def(
          "losses",
          [](const M& one, const Floats& out) {
            require(out.size() == one.experts() + 1);
            one.losses(out.data());
          },
          "out"_a)
      .def("__sizeof__", [](const M& one) { return sizeof(one) + one.lanes().bytes(); });
}

// The state of a mixture of probabilities, as columns: parameters, exponents of the losses; by lane
// number, moment, weights and forecasts.

template <class M>
std::size_t parameters(M& mixture) {
  std::size_t count = 0;
  mixture.visit_parameters([&](double) { ++count; });
  return count;
}

template <class M>
void save(M& mixture, const Floats& own, const Integers& exponents, const Integers& numbers,
          const Integers& moments, const Floats& weights, const Floats& forecasts) {
  const Lanes& lanes = mixture.lanes();
  const std::size_t count = lanes.size();
  require(own.size() == parameters(mixture) && exponents.size() == mixture.products().size());
  require(numbers.size() == count && moments.size() == count);
  require(weights.size() == count * lanes.experts());
  require(forecasts.size() == count * lanes.kept_size());
  double* next = own.data();
  mixture.visit_parameters([&](double one) { *next++ = one; });
  std::int64_t* exponent = exponents.data();
  for (const Product& product : mixture.products()) *exponent++ = product.exponent;
  lanes.save(numbers.data(), moments.data(), weights.data(), forecasts.data());
}

template <class M>
void load(M& mixture, std::int64_t moment, std::int64_t labels, std::int64_t taught,
          std::size_t most, const Read& own, const Numbers& exponents, const Numbers& numbers,
          const Numbers& moments, const Read& weights, const Read& forecasts) {
  Lanes lanes = mixture.lanes();
  require(own.size() == parameters(mixture) && exponents.size() == mixture.products().size());
  require(moments.size() == numbers.size());
  require(weights.size() == numbers.size() * lanes.experts());
  require(forecasts.size() == numbers.size() * lanes.kept_size());
  lanes.load(moment, most, view(numbers), view(moments), view(weights), view(forecasts));
  const double* next = own.data();
  mixture.visit_parameters([&](double& one) { one = *next++; });
  const std::int64_t* exponent = exponents.data();
  for (Product& product : mixture.products()) product.exponent = *exponent++;
  mixture.load(labels, taught, std::move(lanes));
}

// Binds what mixtures of probabilities have beside `bind_lanes`.
template <class M>
void bind_mixture(nb::class_<M>& type) {
  bind_lanes(type);
  type.def_prop_ro("taught", &M::taught)
      .def_prop_ro("parameter_count", &parameters<M>)
      .def(
          "moments",
          [](const M& one, const Kinds& kinds, const Numbers& numbers, const Floats& out,
             const Flags& known) {
            const std::size_t n = kinds.size();
            require(numbers.size() == n && out.size() == n && known.size() == n);
            one.lanes().moments(view(kinds), view(numbers), out.data(), known.data());
          },
          "kinds"_a, "numbers"_a, "out"_a, "known"_a)
      .def("save", &save<M>, "own"_a, "exponents"_a, "numbers"_a, "moments"_a, "weights"_a,
           "forecasts"_a)
      .def("load", &load<M>, "moment"_a, "labels"_a, "taught"_a, "most"_a, "own"_a, "exponents"_a,
           "numbers"_a, "moments"_a, "weights"_a, "forecasts"_a);
}

// Runs steps, each by one of the calls, which get its row.
template <class Predict, class Learn>
void run(Mixture& mixture, const Kinds& kinds, const Numbers& numbers, const Predict& predict,
         const Learn& learn) {
  const nb::gil_scoped_release released;
  for (std::size_t row = 0; row < kinds.size(); ++row) {
    switch (kinds.data()[row]) {
      case kPredict:
        predict(row);
        break;
      case kLearn:
        learn(row);
        break;
      case kExpire:
        mixture.expire(numbers.data()[row]);
        break;
      default:
        throw nb::value_error("nothing is removed");
    }
  }
}

}  // namespace abers::bindings
