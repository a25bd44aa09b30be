// Python's way into the set behind predictive distributions.
//
// The rules are those of module.cpp; a result with a length that is not known beforehand is a new
// array.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include <memory>

#include "columns_module.hpp"
#include "isotonic_blocks.hpp"
#include "predictive_set.hpp"
#include "steps_module.hpp"

namespace abers {
namespace {

using bindings::Column;
using bindings::require;
using bindings::Rows;
using Quantiles = nb::ndarray<double, nb::numpy, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using Answer = nb::typed<nb::tuple, double, double, Rows>;
using Labelled = PredictiveSet::Labelled;

// The smallest and the largest label, and a row each of thresholds, lower and upper CDF.
Answer answer(const Prediction& prediction) {
  const std::size_t n = prediction.steps.size();
  auto table = std::make_unique<double[]>(3 * n);
  for (std::size_t i = 0; i < n; ++i) {
    table[i] = prediction.steps[i].threshold;
    table[n + i] = prediction.steps[i].lower;
    table[2 * n + i] = prediction.steps[i].upper;
  }
  double* data = table.get();
  const nb::capsule owner(table.release(),
                          [](void* p) noexcept { delete[] static_cast<double*>(p); });
  return nb::make_tuple(prediction.smallest, prediction.largest, Rows(data, {3, n}, owner));
}

nb::typed<nb::list, Answer> predict_many(PredictiveSet& set, const Column<const double>& scores,
                                         const std::optional<Column<const double>>& times) {
  require(!times || times->size() == scores.size());
  std::vector<Prediction> all(scores.size());
  {
    const nb::gil_scoped_release unlocked;
    for (std::size_t i = 0; i < all.size(); ++i) {
      all[i] = set.predict(scores.data()[i], times ? times->data()[i] : std::nan(""));
    }
  }
  nb::typed<nb::list, Answer> answers;
  for (const Prediction& prediction : all) answers.append(answer(prediction));
  return answers;
}

// Steps done until one was refused; all of them if none was.
std::size_t run(PredictiveSet& set, const bindings::Steps& steps,
                const Column<const double>& scores, const Column<const double>& labels,
                const std::optional<Column<const std::int64_t>>& weights,
                const std::optional<Column<const double>>& times,
                const Column<const double>& levels, const Quantiles& quantiles,
                const std::optional<Column<std::int64_t>>& held) {
  const std::size_t n = steps.size();
  const std::size_t k = levels.size();
  require(scores.size() == n && labels.size() == n && (!weights || weights->size() == n) &&
          (!times || times->size() == n) && (!held || held->size() == n) &&
          quantiles.shape(0) == 3 && quantiles.shape(1) == n && quantiles.shape(2) == k);
  const std::int64_t* weight = weights ? weights->data() : nullptr;
  const double* time = times ? times->data() : nullptr;
  std::int64_t* sizes = held ? held->data() : nullptr;
  double* out = quantiles.data();
  const nb::gil_scoped_release unlocked;
  const auto predict = [&](std::size_t i, std::int64_t, double t) {
    if (k == 0) return;
    set.quantiles(scores.data()[i], t, levels.data(), k, out + i * k, out + (n + i) * k,
                  out + (2 * n + i) * k);
  };
  return bindings::run_each(set, steps, scores.data(), labels.data(), weight, time, sizes, predict);
}

void observations(const PredictiveSet& set, const Column<double>& scores,
                  const Column<double>& labels, const Column<std::int64_t>& weights,
                  const Column<double>& times) {
  const std::vector<Labelled> all = set.observations();
  require(scores.size() == all.size() && labels.size() == all.size() &&
          weights.size() == all.size() && times.size() == all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    scores.data()[i] = all[i].score;
    labels.data()[i] = all[i].label;
    weights.data()[i] = all[i].weight;
    times.data()[i] = all[i].time;
  }
}

void pooled(const PredictiveSet& set, const Column<double>& scores, const Column<double>& labels,
            const Column<std::int64_t>& weights) {
  const std::size_t n = set.pooled_count();
  require(scores.size() == n && labels.size() == n && weights.size() == n);
  std::size_t i = 0;
  set.for_each([&](const BufferEntry& entry) {
    scores.data()[i] = entry.score;
    labels.data()[i] = entry.label;
    weights.data()[i++] = entry.weight;
  });
}

void load_observations(PredictiveSet& set, const Column<const double>& scores,
                       const Column<const double>& labels,
                       const Column<const std::int64_t>& weights, const Column<const double>& times,
                       std::int64_t late) {
  const std::size_t n = scores.size();
  require(labels.size() == n && weights.size() == n && times.size() == n);
  std::vector<Labelled> all(n);
  for (std::size_t i = 0; i < n; ++i) {
    all[i] = {times.data()[i], scores.data()[i], labels.data()[i], weights.data()[i]};
  }
  set.load_observations(all, late);
}

void load_pooled(PredictiveSet& set, const Column<const double>& scores,
                 const Column<const double>& labels, const Column<const std::int64_t>& weights,
                 std::int64_t size) {
  const std::size_t n = scores.size();
  require(labels.size() == n && weights.size() == n);
  std::vector<BufferEntry> all(n);
  for (std::size_t i = 0; i < n; ++i) {
    const std::int64_t weight = weights.data()[i];
    all[i] = {scores.data()[i], labels.data()[i], 0, weight, weight};
  }
  set.load_pooled(all, size);
}

std::size_t blocks(const Column<const double>& scores, const Column<const double>& labels,
                   const Column<std::int64_t>& starts, const Column<double>& sums) {
  const std::size_t n = scores.size();
  require(labels.size() == n && starts.size() == n && sums.size() == n);
  return isotonic_blocks(bindings::view(scores), bindings::view(labels), {starts.data(), n},
                         {sums.data(), n});
}

}  // namespace

void bind_predictive(nb::module_& m) {
  nb::class_<PredictiveSet>(m, "PredictiveSet")
      .def(nb::init<std::size_t, double, double>(), "window"_a = 0, "max_age"_a = 0.0,
           "half_life"_a = 0.0)
      .def_prop_ro("window", &PredictiveSet::window)
      .def_prop_ro("half_life", &PredictiveSet::half_life)
      .def_prop_ro("lifetime", &PredictiveSet::lifetime)
      .def_prop_ro("limit", &PredictiveSet::limit)
      .def_prop_ro("size", &PredictiveSet::size)
      .def_prop_ro("total", &PredictiveSet::total)
      .def_prop_ro("late", &PredictiveSet::late)
      .def(
          "predict",
          [](PredictiveSet& set, double score, double time) {
            return answer(set.predict(score, time));
          },
          "score"_a, "time"_a = std::nan(""))
      .def("quantile", &PredictiveSet::quantile, "score"_a, "level"_a, "time"_a = std::nan(""))
      .def("predict_many", &abers::predict_many, "scores"_a, "times"_a.none())
      .def("learn", &PredictiveSet::learn, "score"_a, "label"_a, "weight"_a = kOne,
           "time"_a = std::nan(""))
      .def("remove", &PredictiveSet::remove, "score"_a, "label"_a, "weight"_a = kOne)
      .def("run", &abers::run, "steps"_a, "scores"_a, "labels"_a, "weights"_a.none(),
           "times"_a.none(), "levels"_a, "quantiles"_a, "held"_a.none() = nb::none())
      .def("observation_count", &PredictiveSet::observation_count)
      .def("observations", &abers::observations, "scores"_a, "labels"_a, "weights"_a, "times"_a)
      .def("pooled_count", &PredictiveSet::pooled_count)
      .def("pooled", &abers::pooled, "scores"_a, "labels"_a, "weights"_a)
      .def("load_pooled", &abers::load_pooled, "scores"_a, "labels"_a, "weights"_a, "size"_a)
      .def("load_observations", &abers::load_observations, "scores"_a, "labels"_a, "weights"_a,
           "times"_a, "late"_a)
      .def("check", &bindings::check<PredictiveSet>)
      .def("__sizeof__", &PredictiveSet::bytes);
  m.def("isotonic_blocks", &abers::blocks, "scores"_a, "labels"_a, "starts"_a, "sums"_a);
}

}  // namespace abers
