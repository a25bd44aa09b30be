// Columns of numpy as bindings take them.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <span>

namespace abers {

namespace nb = nanobind;
using namespace nb::literals;

}  // namespace abers

namespace abers::bindings {

template <class T>
using Column = nb::ndarray<T, nb::numpy, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Matrix = nb::ndarray<T, nb::numpy, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Read = Column<const double>;
using ReadIntegers = Column<const std::int64_t>;
using ReadBytes = Column<const std::uint8_t>;
using ReadRows = Matrix<const double>;
using Floats = Column<double>;
using Integers = Column<std::int64_t>;
using Rows = Matrix<double>;

template <class T>
std::span<const T> view(const Column<const T>& column) {
  return {column.data(), column.size()};
}

inline void require(bool condition) {
  if (!condition) throw nb::value_error("columns differ in length");
}

}  // namespace abers::bindings
