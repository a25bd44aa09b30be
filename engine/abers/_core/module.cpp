// The native core as a Python module; the typed stub is `_core.pyi`.
//
// Arguments are checked in Python before they come here; arrays are read and
// filled in place; whatever takes time runs without the interpreter lock.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "calibration_set.hpp"
#include "columns_module.hpp"
#include "saved_module.hpp"
#include "set_codec.hpp"
#include "steps_module.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace abers {

void bind_elementary(nb::module_& m);               // in elementary_module.cpp
void bind_distribution_protection(nb::module_& m);  // in distribution_protection_module.cpp
void bind_exit_timer(nb::module_& m);               // in exit_timer_module.cpp
void bind_id_index(nb::module_& m);                 // in id_index_module.cpp
void bind_pending_store(nb::module_& m);            // in pending_store_module.cpp
void bind_mean(nb::module_& m);                     // in mean_module.cpp
void bind_models(nb::module_& m);                   // in models_module.cpp
void bind_monitoring(nb::module_& m);               // in monitoring_module.cpp
void bind_answers(nb::module_& m);                  // in answers_module.cpp
void bind_plain_calls(nb::module_& m);              // in plain_calls_module.cpp
void bind_predictive(nb::module_& m);               // in predictive_module.cpp
void bind_protection(nb::module_& m);               // in protection_module.cpp
void bind_teaching_order(nb::module_& m);           // in teaching_order_module.cpp
void bind_settled_rows(nb::module_& m);             // in settled_rows_module.cpp
void bind_tests(nb::module_& m);                    // in tests_module.cpp
void bind_texts(nb::module_& m);                    // in texts_module.cpp
void bind_verdicts(nb::module_& m);                 // in verdicts_module.cpp

namespace {

using bindings::all;
using bindings::Column;
using Unlocked = nb::call_guard<nb::gil_scoped_release>;

using Floats = Column<double>;
using Integers = Column<std::int64_t>;
using Bytes = Column<std::uint8_t>;

void require_length(std::size_t wanted, std::initializer_list<std::size_t> lengths) {
  for (const std::size_t length : lengths) {
    if (length != wanted) throw nb::value_error("columns differ in length");
  }
}

// Steps done until one was refused; all of them if none was. Steps of one kind are done together
// where that is faster; it never shows in an answer.
std::size_t run(CalibrationSet& set, const bindings::Steps& steps,
                const Column<const double>& scores, const Column<const std::uint8_t>& labels,
                const std::optional<Column<const std::int64_t>>& weights,
                const std::optional<Column<const double>>& times, const Floats& p0,
                const Floats& p1, const std::optional<Integers>& held) {
  const std::size_t n = steps.size();
  require_length(n, {scores.size(), labels.size(), weights ? weights->size() : n,
                     times ? times->size() : n, held ? held->size() : n});
  const std::int64_t* weight = weights ? weights->data() : nullptr;
  const double* time = times ? times->data() : nullptr;
  std::int64_t* sizes = held ? held->data() : nullptr;
  const bool predicts = p0.size() == n && p1.size() == n;
  const nb::gil_scoped_release unlocked;
  const bool plain = !time && !sizes;
  if (plain && !weight && predicts && all(steps, kPredict)) {
    set.predict_many(scores.data(), n, p0.data(), p1.data());
    return n;
  }
  if (plain && all(steps, kLearn)) {
    std::vector<Observation> observations(n);
    for (std::size_t i = 0; i < n; ++i) {
      observations[i] = {0.0, scores.data()[i], weight ? weight[i] : kOne, labels.data()[i]};
    }
    if (set.learn_many(std::move(observations))) return n;
  }
  const auto predict = [&](std::size_t i, std::int64_t w, double t) {
    if (predicts) std::tie(p0.data()[i], p1.data()[i]) = set.predict(scores.data()[i], w, t);
  };
  return bindings::run_each(set, steps, scores.data(), labels.data(), weight, time, sizes, predict);
}

void groups(CalibrationSet& set, const Floats& scores, const Integers& negatives,
            const Integers& positives) {
  require_length(set.group_count(), {scores.size(), negatives.size(), positives.size()});
  std::size_t i = 0;
  set.for_each_group([&](const Group& g) {
    scores.data()[i] = g.score;
    negatives.data()[i] = g.negatives;
    positives.data()[i++] = g.positives;
  });
}

void blocks(CalibrationSet& set, const Floats& lower, const Floats& upper, const Integers& weight,
            const Integers& positives, const Floats& value) {
  const auto all = set.blocks();
  require_length(all.size(),
                 {lower.size(), upper.size(), weight.size(), positives.size(), value.size()});
  for (std::size_t i = 0; i < all.size(); ++i) {
    lower.data()[i] = all[i].lower;
    upper.data()[i] = all[i].upper;
    weight.data()[i] = all[i].weight;
    positives.data()[i] = all[i].positives;
    value.data()[i] = all[i].value;
  }
}

void observations(const CalibrationSet& set, const Floats& scores, const Bytes& labels,
                  const Integers& weights, const Floats& times) {
  const auto all = set.observations();
  require_length(all.size(), {scores.size(), labels.size(), weights.size(), times.size()});
  for (std::size_t i = 0; i < all.size(); ++i) {
    scores.data()[i] = all[i].score;
    labels.data()[i] = static_cast<std::uint8_t>(all[i].label);
    weights.data()[i] = all[i].weight;
    times.data()[i] = all[i].time;
  }
}

void load_groups(CalibrationSet& set, const Column<const double>& scores,
                 const Column<const std::int64_t>& negatives,
                 const Column<const std::int64_t>& positives, std::int64_t size) {
  require_length(scores.size(), {negatives.size(), positives.size()});
  const auto group = [&](std::size_t i) {
    return Group{scores.data()[i], negatives.data()[i], positives.data()[i]};
  };
  set.load_groups(scores.size(), group, size);
}

void load_observations(CalibrationSet& set, const Column<const double>& scores,
                       const Column<const std::uint8_t>& labels,
                       const Column<const std::int64_t>& weights, const Column<const double>& times,
                       std::int64_t late) {
  require_length(scores.size(), {labels.size(), weights.size(), times.size()});
  std::vector<Observation> all(scores.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i] = {times.data()[i], scores.data()[i], weights.data()[i], labels.data()[i]};
  }
  set.load_observations(all, late);
}

}  // namespace
}  // namespace abers

NB_MODULE(_core, m) {
  using abers::CalibrationSet;
  nb::set_leak_warnings(false);  // a calibrator in a global that outlives the module is no fault
  m.attr("__doc__") = "The native core of abers; see abers.reference for the specification.";
  abers::bind_elementary(m);
  abers::bind_distribution_protection(m);
  abers::bind_exit_timer(m);
  abers::bind_id_index(m);
  abers::bind_pending_store(m);
  abers::bind_mean(m);
  abers::bind_models(m);
  abers::bind_monitoring(m);
  abers::bind_answers(m);
  abers::bind_predictive(m);
  abers::bind_teaching_order(m);
  abers::bind_settled_rows(m);
  abers::bind_texts(m);
  abers::bind_verdicts(m);
  abers::bind_tests(m);
  nb::class_<CalibrationSet>(m, "CalibrationSet")
      .def(
          "__init__",
          [](CalibrationSet* self, std::size_t window, double max_age, double half_life,
             const std::pair<double, double>& rates) {
            new (self) CalibrationSet(window, max_age, half_life, {rates.first, rates.second});
          },
          "window"_a = 0, "max_age"_a = 0.0, "half_life"_a = 0.0,
          "label_rates"_a = std::pair(1.0, 1.0))
      .def_prop_ro("label_rates",
                   [](const CalibrationSet& set) {
                     return std::pair(set.rates().zero(), set.rates().one());
                   })
      .def_prop_ro("window", &CalibrationSet::window)
      .def_prop_ro("half_life", &CalibrationSet::half_life)
      .def_prop_ro("lifetime", &CalibrationSet::lifetime)
      .def_prop_ro("limit", &CalibrationSet::limit)
      .def_prop_ro("size", &CalibrationSet::size)
      .def_prop_ro("total", &CalibrationSet::total)
      .def_prop_ro("late", &CalibrationSet::late)
      .def("predict", &CalibrationSet::predict, "score"_a, "weight"_a = abers::kOne,
           "time"_a = std::nan(""))
      .def("learn", &CalibrationSet::learn, "score"_a, "label"_a, "weight"_a = abers::kOne,
           "time"_a = std::nan(""))
      .def("remove", &CalibrationSet::remove, "score"_a, "label"_a, "weight"_a = abers::kOne)
      .def("run", &abers::run, "steps"_a, "scores"_a, "labels"_a, "weights"_a.none(),
           "times"_a.none(), "p0"_a, "p1"_a, "held"_a.none() = nb::none())
      .def("around", &CalibrationSet::around, "score"_a)
      .def("group_count", &CalibrationSet::group_count)
      .def("groups", &abers::groups, "scores"_a, "negatives"_a, "positives"_a)
      .def("block_count", [](CalibrationSet& set) { return set.blocks().size(); })
      .def("blocks", &abers::blocks, "lower"_a, "upper"_a, "weight"_a, "positives"_a, "value"_a)
      .def("observation_count", &CalibrationSet::observation_count)
      .def("observations", &abers::observations, "scores"_a, "labels"_a, "weights"_a, "times"_a)
      .def("load_groups", &abers::load_groups, "scores"_a, "negatives"_a, "positives"_a, "size"_a)
      .def("load_observations", &abers::load_observations, "scores"_a, "labels"_a, "weights"_a,
           "times"_a, "late"_a)
      .def("check", &abers::bindings::check<CalibrationSet>)
      .def("save", [](CalibrationSet& set) { return abers::to_python(abers::save_set(set)); })
      .def_static(
          "load", [](const nb::bytes& payload) { return abers::load_set(abers::view(payload)); },
          "payload"_a)
      .def("takes", &CalibrationSet::takes, "weight"_a, "time"_a = std::nan(""))
      .def("__sizeof__", &CalibrationSet::bytes);
  abers::bind_protection(m);
  abers::bind_plain_calls(m);
}
