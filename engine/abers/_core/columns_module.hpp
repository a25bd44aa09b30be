// Columns of numpy as bindings take them.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

namespace abers::bindings {

namespace nb = nanobind;

template <class T>
using Column = nb::ndarray<T, nb::numpy, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Read = Column<const double>;

inline void require(bool condition) {
  if (!condition) throw nb::value_error("columns differ in length");
}

}  // namespace abers::bindings
