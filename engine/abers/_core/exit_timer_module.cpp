// Python's way to the timer of exit_timer.hpp.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "exit_timer.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace abers {

void bind_exit_timer(nb::module_& m) {
  nb::class_<ExitTimer>(m, "ExitTimer")
      .def(nb::init<double>(), "period"_a)
      .def("start", &ExitTimer::start, "periods"_a, "before"_a, "after"_a)
      .def("stop", &ExitTimer::stop)
      .def("close", &ExitTimer::close);
}

}  // namespace abers
