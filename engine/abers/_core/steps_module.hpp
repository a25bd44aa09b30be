// What the bindings of sets share that learn by steps.
#pragma once

#include <nanobind/nanobind.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "arithmetic.hpp"
#include "check.hpp"
#include "columns_module.hpp"
#include "step.hpp"

namespace abers::bindings {

using Steps = ReadBytes;  // of `Step`

inline bool all(const Steps& steps, Step kind) {
  const std::uint8_t* first = steps.data();
  return std::all_of(first, first + steps.size(), [&](std::uint8_t step) { return step == kind; });
}

// Does weighted steps in turn until one is refused, and returns how many were done. Without
// `weights` each weighs 1, and without `times` none has a time; `sizes` gets the size after each.
template <class Set, class Label, class Predict>
std::size_t run_each(Set& set, const Steps& steps, const double* scores, const Label* labels,
                     const std::int64_t* weights, const double* times, std::int64_t* sizes,
                     Predict predict) {
  const std::size_t n = steps.size();
  for (std::size_t i = 0; i < n; ++i) {
    const std::int64_t weight = weights ? weights[i] : kOne;
    const double time = times ? times[i] : std::nan("");
    switch (steps.data()[i]) {
      case kPredict:
        predict(i, weight, time);
        break;
      case kLearn:
        if (!set.learn(scores[i], labels[i], weight, time)) return i;
        break;
      default:
        if (!set.remove(scores[i], labels[i], weight)) return i;
    }
    if (sizes) sizes[i] = set.size();
  }
  return n;
}

// Checks the invariants of a set; an AssertionError says which one fails.
template <class Set>
void check(const Set& set) {
  try {
    set.check();
  } catch (const CheckFailure& failure) {
    PyErr_SetString(PyExc_AssertionError, failure.what());
    throw nb::python_error();
  }
}

}  // namespace abers::bindings
