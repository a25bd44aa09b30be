// What the bindings of mixtures in lanes share.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "arithmetic.hpp"
#include "columns_module.hpp"
#include "lanes.hpp"
#include "mixture.hpp"
#include "mixture_codec.hpp"
#include "saved_module.hpp"

namespace abers::bindings {

template <std::size_t n>
using Given = nb::ndarray<const double, nb::numpy, nb::ndim<n>, nb::c_contig, nb::device::cpu>;

// Binds what every mixture has that keeps lanes.
template <class M>
void bind_lanes(nb::class_<M>& type) {
  type.def_prop_ro("experts", &M::experts)
      .def_prop_ro("labels", &M::labels)
      .def_prop_ro("lane_count", [](const M& one) { return one.lanes().most(); })
      .def_prop_ro("lane_rows", [](const M& one) { return one.lanes().size(); })
      .def_prop_ro("awaiting_count", [](const M& one) { return one.lanes().awaiting(); })
      .def_prop_ro("kept_size", [](const M& one) { return one.lanes().kept_size(); })
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
void save(M& mixture, const Floats& own, const Integers& exponents, const Integers& numbers,
          const Integers& moments, const Floats& weights, const Floats& forecasts) {
  const Lanes& lanes = mixture.lanes();
  const std::size_t count = lanes.size();
  require(own.size() == mixture_codec::parameters(mixture) &&
          exponents.size() == mixture.products().size());
  require(numbers.size() == count && moments.size() == count);
  require(weights.size() == count * lanes.experts());
  require(forecasts.size() == count * lanes.kept_size());
  double* next = own.data();
  mixture.visit_parameters([&](double one) { *next++ = one; });
  std::int64_t* exponent = exponents.data();
  for (const Product& product : mixture.products()) *exponent++ = product.exponent;
  lanes.save(numbers.data(), moments.data(), weights.data(), forecasts.data());
}

// Binds what mixtures of probabilities have besides `bind_lanes`.
template <class M>
void bind_parameters(nb::class_<M>& type) {
  bind_lanes(type);
  type.def_prop_ro("taught", &M::taught)
      .def_prop_ro("parameter_count", &mixture_codec::parameters<M>)
      .def("save", &save<M>, "own"_a, "exponents"_a, "numbers"_a, "moments"_a, "weights"_a,
           "forecasts"_a);
}

}  // namespace abers::bindings
