// Python's way into the set behind unbounded intervals for a mean.
//
// The rules are those of module.cpp.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <tuple>
#include <vector>

#include "columns_module.hpp"
#include "mean_set.hpp"
#include "steps_module.hpp"

namespace abers {
namespace {

using bindings::all;
using bindings::Column;
using bindings::require;
using bindings::Rows;
using Labelled = MeanSet::Labelled;

// Steps done until one was refused; all of them if none was. Steps of one kind are done together
// where that is faster; it never shows in an answer. `out` has the four rows of the fits.
std::size_t run(MeanSet& set, const bindings::Steps& steps, const Column<const double>& scores,
                const Column<const double>& labels,
                const std::optional<Column<const double>>& times, const Rows& out,
                const std::optional<Column<std::int64_t>>& held) {
  const std::size_t n = steps.size();
  require(scores.size() == n && labels.size() == n && (!times || times->size() == n) &&
          out.shape(0) == 4 && out.shape(1) == n && (!held || held->size() == n));
  const double* time = times ? times->data() : nullptr;
  std::int64_t* sizes = held ? held->data() : nullptr;
  const nb::gil_scoped_release unlocked;
  if (!time && !sizes && all(steps, kPredict)) {
    set.predict_many(scores.data(), n, out.data());
    return n;
  }
  if (!time && !sizes && all(steps, kLearn) && set.learn_many(scores.data(), labels.data(), n)) {
    return n;
  }
  for (std::size_t i = 0; i < n; ++i) {
    const double score = scores.data()[i];
    const double label = labels.data()[i];
    const double t = time ? time[i] : std::nan("");
    switch (steps.data()[i]) {
      case kPredict:
        MeanSet::write(set.predict(score, t), out.data() + i, n);
        break;
      case kLearn:
        if (!set.learn(score, label, t)) return i;
        break;
      default:
        if (!set.remove(score, label)) return i;
    }
    if (sizes) sizes[i] = set.size();
  }
  return n;
}

void observations(const MeanSet& set, const Column<double>& scores,
                  const Column<std::int64_t>& labels, const Column<double>& times) {
  const std::vector<Labelled> all = set.observations();
  require(scores.size() == all.size() && labels.size() == all.size() && times.size() == all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    scores.data()[i] = all[i].score;
    labels.data()[i] = all[i].label;
    times.data()[i] = all[i].time;
  }
}

bool load_observations(MeanSet& set, const Column<const double>& scores,
                       const Column<const std::int64_t>& labels, const Column<const double>& times,
                       std::int64_t late) {
  const std::size_t n = scores.size();
  require(labels.size() == n && times.size() == n);
  std::vector<Labelled> all(n);
  for (std::size_t i = 0; i < n; ++i) {
    all[i] = {times.data()[i], scores.data()[i], labels.data()[i]};
  }
  return set.load(all, late);
}

}  // namespace

void bind_mean(nb::module_& m) {
  nb::class_<MeanSet>(m, "MeanSet")
      .def(nb::init<std::size_t, double, std::size_t, double>(), "m"_a, "resolution"_a,
           "window"_a = 0, "max_age"_a = 0.0)
      .def_prop_ro("m", &MeanSet::m)
      .def_prop_ro("resolution", &MeanSet::resolution)
      .def_prop_ro("window", &MeanSet::window)
      .def_prop_ro("lifetime", &MeanSet::lifetime)
      .def_prop_ro("size", &MeanSet::size)
      .def_prop_ro("late", &MeanSet::late)
      .def_prop_ro("furthest", &MeanSet::furthest)
      .def(
          "predict",
          [](MeanSet& set, double score, double time) {
            const MeanFit found = set.predict(score, time);
            return std::tuple(found.low, found.high, found.lowest, found.highest);
          },
          "score"_a, "time"_a = std::nan(""))
      .def("learn", &MeanSet::learn, "score"_a, "label"_a, "time"_a = std::nan(""))
      .def("remove", &MeanSet::remove, "score"_a, "label"_a)
      .def("run", &abers::run, "steps"_a, "scores"_a, "labels"_a, "times"_a.none(), "out"_a,
           "held"_a.none() = nb::none())
      .def("observation_count", [](const MeanSet& set) { return set.observations().size(); })
      .def("observations", &abers::observations, "scores"_a, "labels"_a, "times"_a)
      .def("load_observations", &abers::load_observations, "scores"_a, "labels"_a, "times"_a,
           "late"_a)
      .def("check", &bindings::check<MeanSet>)
      .def("__sizeof__", &MeanSet::bytes);
}

}  // namespace abers
