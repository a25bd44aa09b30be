// Python's way into the elementary functions of the core; see tests/oracles/elementary.py.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>

#include "columns_module.hpp"
#include "experts.hpp"

namespace abers {
namespace {

using bindings::Column;
using bindings::Read;
using bindings::require;
using Rows = nb::ndarray<const double, nb::numpy, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

void logistics(const Read& scores, const Column<double>& out) {
  require(scores.size() == out.size());
  for (std::size_t i = 0; i < scores.size(); ++i) {
    out.data()[i] = elementary::logistic(scores.data()[i]);
  }
}

// Of each column.
void geometric_means(const Rows& rows, const Column<double>& out) {
  const std::size_t count = rows.shape(0), n = rows.shape(1);
  require(out.size() == n);
  const nb::gil_scoped_release released;
  for (std::size_t i = 0; i < n; ++i) {
    out.data()[i] = elementary::geometric_mean(rows.data() + i, count, n);
  }
}

}  // namespace

void bind_elementary(nb::module_& module) {
  module.def("logistics", &logistics, "scores"_a, "out"_a);
  module.def("geometric_means", &geometric_means, "rows"_a, "out"_a);
}

}  // namespace abers
