// Python's way into pools of distributions; see tests/oracles/distribution_pool.py.
#include <algorithm>

#include "distribution_pool.hpp"
#include "mixture_module.hpp"

namespace abers {
namespace {

using namespace bindings;

template <class Forecasts>
void require_shape(const DistributionPool& pool, const Forecasts& forecasts) {
  require(forecasts.shape(0) == pool.experts() && forecasts.shape(1) == pool.members());
}

std::size_t predict(DistributionPool& pool, const Given<2>& forecasts, std::int64_t number,
                    const Floats& points, const Floats& cdf) {
  const std::size_t size = pool.lanes().kept_size();
  require_shape(pool, forecasts);
  require(points.size() == size && cdf.size() == size);
  const auto steps = pool.predict(forecasts.data(), number);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    points.data()[i] = steps[i].at;
    cdf.data()[i] = steps[i].cdf;
  }
  return steps.size();
}

bool kept(const DistributionPool& pool, std::int64_t number, const Table& out) {
  require_shape(pool, out);
  const double* const found = pool.kept(number);
  if (found) std::copy_n(found, pool.lanes().kept_size(), out.data());
  return found != nullptr;
}

void learn(DistributionPool& pool, const Given<2>& forecasts, double label, std::int64_t number) {
  require_shape(pool, forecasts);
  pool.learn(forecasts.data(), label, number);
}

void require_columns(const DistributionPool& pool, std::size_t lanes, std::size_t moments,
                     std::size_t weights, std::size_t forecasts, std::size_t scores) {
  require(moments == lanes && weights == lanes * pool.experts() &&
          forecasts == lanes * pool.lanes().kept_size() && scores == pool.totals().size());
}

void save(const DistributionPool& pool, const Integers& numbers, const Integers& moments,
          const Floats& weights, const Floats& forecasts, const Floats& scores) {
  require(numbers.size() == pool.lanes().size());
  require_columns(pool, numbers.size(), moments.size(), weights.size(), forecasts.size(),
                  scores.size());
  pool.lanes().save(numbers.data(), moments.data(), weights.data(), forecasts.data());
  pool.losses(scores.data());
}

void load(DistributionPool& pool, std::int64_t moment, std::int64_t labels, std::size_t most,
          const Numbers& numbers, const Numbers& moments, const Read& weights,
          const Read& forecasts, const Read& scores) {
  require_columns(pool, numbers.size(), moments.size(), weights.size(), forecasts.size(),
                  scores.size());
  pool.load(moment, labels, most, view(numbers), view(moments), view(weights), view(forecasts),
            view(scores));
}

}  // namespace

void bind_distribution_pool(nb::module_& module) {
  auto type =
      nb::class_<DistributionPool>(module, "DistributionPool")
          .def(nb::init<std::size_t, std::size_t, double, double>(), "experts"_a, "members"_a,
               "first_weight"_a, "width"_a)
          .def_prop_ro("members", &DistributionPool::members)
          .def("predict", &abers::predict, "forecasts"_a, "number"_a, "points"_a, "cdf"_a)
          .def("kept", &abers::kept, "number"_a, "out"_a)
          .def("learn", &abers::learn, "forecasts"_a, "label"_a, "number"_a)
          .def("expire", &DistributionPool::expire, "number"_a)
          .def("save", &abers::save, "numbers"_a, "moments"_a, "weights"_a, "kept"_a, "scores"_a)
          .def("load", &abers::load, "moment"_a, "labels"_a, "most"_a, "numbers"_a, "moments"_a,
               "weights"_a, "kept"_a, "scores"_a);
  bind_lanes(type);
}

}  // namespace abers
