// Python's way into pools of distributions; see abers/reference/distribution_pool.py.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "distribution_pool.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace abers {
namespace {

template <class T>
using Column = nb::ndarray<T, nb::numpy, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Read = Column<const double>;
using Floats = Column<double>;
using Given = nb::ndarray<const double, nb::numpy, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Table = nb::ndarray<double, nb::numpy, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

void require(bool condition) {
  if (!condition) throw nb::value_error("columns differ in length");
}

template <class T>
std::span<const T> view(const Column<const T>& column) {
  return {column.data(), column.size()};
}

template <class Forecasts>
void require_shape(const DistributionPool& pool, const Forecasts& forecasts) {
  require(forecasts.shape(0) == pool.experts() && forecasts.shape(1) == pool.members());
}

std::size_t predict(DistributionPool& pool, const Given& forecasts, std::int64_t number,
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

void learn(DistributionPool& pool, const Given& forecasts, double label, std::int64_t number) {
  require_shape(pool, forecasts);
  pool.learn(forecasts.data(), label, number);
}

void weights(const DistributionPool& pool, const Floats& out) {
  require(out.size() == pool.experts());
  pool.lanes().mean_weights(out.data());
}

void scores(const DistributionPool& pool, const Floats& out) {
  require(out.size() == pool.scores().size());
  std::copy(pool.scores().begin(), pool.scores().end(), out.data());
}

void require_columns(const DistributionPool& pool, std::size_t lanes, std::size_t moments,
                     std::size_t weights, std::size_t forecasts, std::size_t scores) {
  require(moments == lanes && weights == lanes * pool.experts() &&
          forecasts == lanes * pool.lanes().kept_size() && scores == pool.scores().size());
}

void save(const DistributionPool& pool, const Column<std::int64_t>& numbers,
          const Column<std::int64_t>& moments, const Floats& weights, const Floats& forecasts,
          const Floats& scores) {
  require(numbers.size() == pool.lanes().size());
  require_columns(pool, numbers.size(), moments.size(), weights.size(), forecasts.size(),
                  scores.size());
  pool.lanes().save(numbers.data(), moments.data(), weights.data(), forecasts.data());
  std::copy(pool.scores().begin(), pool.scores().end(), scores.data());
}

void load(DistributionPool& pool, std::int64_t moment, std::int64_t labels, std::size_t most,
          const Column<const std::int64_t>& numbers, const Column<const std::int64_t>& moments,
          const Read& weights, const Read& forecasts, const Read& scores) {
  require_columns(pool, numbers.size(), moments.size(), weights.size(), forecasts.size(),
                  scores.size());
  pool.load(moment, labels, most, view(numbers), view(moments), view(weights), view(forecasts),
            view(scores));
}

}  // namespace

void bind_distribution_pool(nb::module_& m) {
  nb::class_<DistributionPool>(m, "DistributionPool")
      .def(nb::init<std::size_t, std::size_t, double, double>(), "experts"_a, "members"_a,
           "first_weight"_a, "width"_a)
      .def_prop_ro("experts", &DistributionPool::experts)
      .def_prop_ro("members", &DistributionPool::members)
      .def_prop_ro("labels", &DistributionPool::labels)
      .def_prop_ro("lane_count", [](const DistributionPool& pool) { return pool.lanes().most(); })
      .def_prop_ro("lane_rows", [](const DistributionPool& pool) { return pool.lanes().size(); })
      .def_prop_ro("awaiting_count",
                   [](const DistributionPool& pool) { return pool.lanes().awaiting(); })
      .def_prop_ro("moment", [](const DistributionPool& pool) { return pool.lanes().moment(); })
      .def("predict", &abers::predict, "forecasts"_a, "number"_a, "points"_a, "cdf"_a)
      .def("kept", &abers::kept, "number"_a, "out"_a)
      .def("learn", &abers::learn, "forecasts"_a, "label"_a, "number"_a)
      .def("expire", &DistributionPool::expire, "number"_a)
      .def("weights", &abers::weights, "out"_a)
      .def("scores", &abers::scores, "out"_a)
      .def("save", &abers::save, "numbers"_a, "moments"_a, "weights"_a, "kept"_a, "scores"_a)
      .def("load", &abers::load, "moment"_a, "labels"_a, "most"_a, "numbers"_a, "moments"_a,
           "weights"_a, "kept"_a, "scores"_a);
}

}  // namespace abers
