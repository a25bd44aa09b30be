// Python's way into protected distributions; see tests/oracles/distribution_protection.py.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/unique_ptr.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "distribution_codec.hpp"
#include "mixture_module.hpp"
#include "saved_module.hpp"

namespace abers {
namespace {

using namespace bindings;

std::size_t predict(DistributionProtection& one, const Read& score, std::int64_t number,
                    const Floats& points, const Floats& cdf) {
  const std::size_t most = DistributionMethods::kForecasts * one.options().members;
  require(score.size() == one.options().score_size());
  require(points.size() == most && cdf.size() == most);
  const auto steps = one.predict(score.data(), number);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    points.data()[i] = steps[i].at;
    cdf.data()[i] = steps[i].cdf;
  }
  return steps.size();
}

void learn(DistributionProtection& one, const Read& score, double label, std::int64_t number) {
  require(score.size() == one.options().score_size());
  one.learn(score.data(), label, number);
}

}  // namespace

void bind_distribution_protection(nb::module_& module) {
  auto type =
      nb::class_<DistributionProtection>(module, "DistributionProtection")
          .def(
              "__init__",
              [](DistributionProtection* self, double low, double high, std::size_t members,
                 bool pointwise, double base_weight, std::size_t window) {
                new (self) DistributionProtection(
                    DistributionOptions{low, high, members, pointwise, base_weight, window});
              },
              "low"_a, "high"_a, "members"_a, "pointwise"_a, "base_weight"_a, "window"_a)
          .def_prop_ro("low", [](const DistributionProtection& one) { return one.options().low; })
          .def_prop_ro("high", [](const DistributionProtection& one) { return one.options().high; })
          .def_prop_ro("members",
                       [](const DistributionProtection& one) { return one.options().members; })
          .def_prop_ro(
              "pointwise",
              [](const DistributionProtection& one) { return one.options().pointwise != 0; })
          .def_prop_ro("base_weight",
                       [](const DistributionProtection& one) { return one.options().base_weight; })
          .def_prop_ro("window",
                       [](const DistributionProtection& one) { return one.options().window; })
          .def_prop_ro("size", &DistributionProtection::size)
          .def("predict", &abers::predict, "score"_a, "number"_a, "points"_a, "cdf"_a)
          .def("learn", &abers::learn, "score"_a, "label"_a, "number"_a)
          .def("expire", &DistributionProtection::expire, "number"_a)
          .def("save",
               [](const DistributionProtection& one) {
                 return to_python(DistributionCodec::save(one));
               })
          .def_static(
              "load",
              [](const nb::bytes& payload) { return DistributionCodec::load(view(payload)); },
              "payload"_a);
  bind_lanes(type);
}

}  // namespace abers
