// Python's way into protected calibrators; see tests/oracles/protection.py.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "mixture_module.hpp"
#include "protection_codec.hpp"
#include "saved_module.hpp"

namespace abers {
namespace {

using bindings::Column;
using bindings::Given;
using bindings::ReadBytes;
using bindings::ReadIntegers;
using bindings::Rows;
using Times = std::optional<bindings::Read>;
using Numbers = std::optional<ReadIntegers>;
using Row = std::vector<double>;

template <class T, class U>
T at(const std::optional<Column<const T>>& column, std::size_t row, U absent) {
  return column ? column->data()[row] : absent;
}

void require_length(std::size_t wanted, std::initializer_list<std::size_t> lengths) {
  for (const std::size_t length : lengths) {
    if (length != wanted) throw nb::value_error("columns differ in length");
  }
}

void require_label(const Model& model, std::int64_t label) {
  if (label < 0 || static_cast<std::size_t>(label) >= model.classes()) {
    throw nb::value_error("a label is no number of a class");
  }
}

// Steps done until one was refused; all of them if none was. Rows of `out` are of NaN where nothing
// is predicted.
std::size_t run(Model& model, const ReadBytes& kinds, const Given<2>& scores,
                const ReadIntegers& labels, const Numbers& weights, const Times& times,
                const Numbers& numbers, const Rows& out,
                const std::optional<Column<std::int64_t>>& held) {
  const std::size_t n = kinds.size();
  require_length(
      n, {scores.shape(0), labels.size(), weights ? weights->size() : n, times ? times->size() : n,
          numbers ? numbers->size() : n, out.shape(0), held ? held->size() : n});
  if (scores.shape(1) != model.score_width() || out.shape(1) != model.forecast_width()) {
    throw nb::value_error("columns differ in width");
  }
  for (std::size_t i = 0; i < n; ++i) {
    if (kinds.data()[i] == kLearn) require_label(model, labels.data()[i]);
  }
  const nb::gil_scoped_release unlocked;
  for (std::size_t i = 0; i < n; ++i) {
    const ModelStep step{kinds.data()[i],
                         scores.data() + i * model.score_width(),
                         labels.data()[i],
                         at(weights, i, kOne),
                         at(times, i, std::nan("")),
                         at(numbers, i, std::int64_t{-1})};
    ModelForecast found{out.data() + i * model.forecast_width()};
    std::fill_n(found.values, model.forecast_width(), std::nan(""));
    if (!model.step(step, found)) return i;
    if (held) held->data()[i] = step.kind == kPredict ? found.labels : model.size();
  }
  return n;
}

// Single steps

using Interval = std::tuple<double, double, double>;

Row predict(Model& model, const Row& scores, std::int64_t weight, double time,
            std::int64_t number) {
  require_length(model.score_width(), {scores.size()});
  Row found(model.forecast_width());
  ModelForecast out{found.data()};
  model.step({kPredict, scores.data(), 0, weight, time, number}, out);
  return found;
}

Interval predict_score(Model& model, double score, std::int64_t weight, double time,
                       std::int64_t number) {
  double found[3];
  ModelForecast out{found};
  model.step({kPredict, &score, 0, weight, time, number}, out);
  return {found[0], found[1], found[2]};
}

bool learn(Model& model, const Row& scores, std::int64_t label, std::int64_t weight, double time,
           std::int64_t number) {
  require_length(model.score_width(), {scores.size()});
  require_label(model, label);
  ModelForecast none{nullptr};
  return model.step({kLearn, scores.data(), label, weight, time, number}, none);
}

bool learn_score(Model& model, double score, bool label, std::int64_t weight, double time,
                 std::int64_t number) {
  ModelForecast none{nullptr};
  return model.step({kLearn, &score, label ? 1 : 0, weight, time, number}, none);
}

void expire(Model& model, std::int64_t number) {
  ModelForecast none{nullptr};
  model.step({.kind = kExpire, .scores = nullptr, .number = number}, none);
}

// Binds what protected calibrators have in common, and what makes one from its sets.
template <class Sets, class Held>
nb::class_<Protection<Sets>, Model> bind(nb::module_& module, const char* name) {
  using P = Protection<Sets>;
  nb::class_<P, Model> type(module, name);
  type.def(
          "__init__",
          [](P* self, Held held, unsigned scores, double raw_weight, std::int64_t wait,
             std::int64_t age, std::int64_t room) {
            Sets sets(std::move(held));
            Teaching order =
                teaching({wait, age, room}, sets.classes(), sets.blank(), sets.methods().blank());
            new (self)
                P(std::move(sets), static_cast<Scores>(scores), raw_weight, std::move(order));
          },
          "held"_a, "scores"_a = 0, "raw_weight"_a = 0.25, "wait"_a = std::int64_t{0},
          "age"_a = std::int64_t{-1}, "room"_a = std::int64_t{-1})
      .def_prop_ro("mixture", &P::mixture, nb::rv_policy::reference_internal)
      .def_prop_ro("scores", [](const P& one) { return static_cast<int>(one.scores()); })
      .def_prop_ro("raw_weight", &P::raw_weight)
      .def_prop_ro("learned", &P::learned)
      .def("expire", &expire, "number"_a)
      .def("run", &run, "kinds"_a, "scores"_a, "labels"_a, "weights"_a.none(), "times"_a.none(),
           "numbers"_a.none(), "out"_a, "held"_a.none())
      .def_static(
          "load", [](const nb::bytes& payload) { return P::loaded(view(payload)); }, "payload"_a);
  return type;
}

template <class Type>
void bind_rows(Type& type) {
  type.def("predict", &predict, "scores"_a, "weight"_a, "time"_a, "number"_a)
      .def("learn", &learn, "scores"_a, "label"_a, "weight"_a, "time"_a, "number"_a);
}

}  // namespace

void bind_protection(nb::module_& module) {
  auto two = nb::class_<MethodMixture<Methods>>(module, "MethodMixture");
  bindings::bind_parameters(two);
  auto several = nb::class_<MethodMixture<ClassMethods>>(module, "ClassMixture");
  bindings::bind_parameters(several);

  bind<OneSet, SharedSet>(module, "Protection")
      .def_prop_ro("held", [](const Protection<OneSet>& one) { return one.sets().sets().front(); })
      .def("predict", &predict_score, "score"_a, "weight"_a, "time"_a, "number"_a)
      .def("learn", &learn_score, "score"_a, "label"_a, "weight"_a, "time"_a, "number"_a);
  auto folds = bind<FoldSets, SharedSets>(module, "FoldProtection");
  bind_rows(folds);
  folds.def_prop_ro("held", [](const Protection<FoldSets>& one) { return one.sets().sets(); });
  auto classes = bind<ClassSets, SharedSets>(module, "ClassProtection");
  bind_rows(classes);
  classes.def_prop_ro("held", [](const Protection<ClassSets>& one) { return one.sets().sets(); })
      .def("expire_all", &Protection<ClassSets>::expire_all)
      .def("grow", &Protection<ClassSets>::grow, "held"_a);
}

}  // namespace abers
