// Python's way into protected mixtures of vectors; see tests/oracles/class_aggregation.py.
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "class_aggregation.hpp"
#include "mixture_module.hpp"

namespace abers {
namespace {

using namespace bindings;

void run(ClassAggregation& mixture, const Kinds& kinds, const Numbers& numbers,
         const Numbers& labels, const Given<3>& given, const Table& out) {
  const std::size_t n = kinds.size(), classes = mixture.classes();
  const std::size_t width = mixture.given() * classes;
  require(numbers.size() == n && labels.size() == n);
  require(given.shape(0) == n && given.shape(1) == mixture.given() && given.shape(2) == classes);
  require(out.shape(0) == n && out.shape(1) == classes);
  bindings::run(
      mixture, kinds, numbers,
      [&](std::size_t row) {
        mixture.predict(given.data() + row * width, numbers.data()[row],
                        out.data() + row * classes);
      },
      [&](std::size_t row) {
        const auto label = static_cast<std::size_t>(labels.data()[row]);
        require(label < classes);
        mixture.learn(given.data() + row * width, label, numbers.data()[row]);
      });
}

// Takes over a mixture of fewer classes, as if no observation awaited its label.
void take_over(ClassAggregation& wider, ClassAggregation& old) {
  const Lanes& lanes = old.lanes();
  const std::size_t rows = lanes.size();
  std::vector<std::int64_t> numbers(rows), moments(rows);
  std::vector<double> weights(rows * lanes.experts()), kept(rows * lanes.kept_size());
  lanes.save(numbers.data(), moments.data(), weights.data(), kept.data());
  numbers.assign(rows, -1);
  kept.assign(rows * wider.lanes().kept_size(), 0.0);
  Lanes loaded = wider.lanes();
  loaded.load(lanes.moment(), lanes.most(), numbers, moments, weights, kept);
  std::vector<double> own;
  old.visit_parameters([&](double one) { own.push_back(one); });
  const double* next = own.data();
  wider.visit_parameters([&](double& one) { one = *next++; });
  for (std::size_t k = 0; k < old.products().size(); ++k) {
    wider.products()[k].exponent = old.products()[k].exponent;
  }
  wider.load(old.labels(), old.taught(), std::move(loaded));
}

}  // namespace

void bind_class_aggregation(nb::module_& module) {
  auto type = nb::class_<ClassAggregation>(module, "ClassAggregation")
                  .def(nb::init<std::size_t, std::size_t, double>(), "classes"_a, "shrunk"_a,
                       "raw_weight"_a = 0.25)
                  .def_prop_ro("classes", &ClassAggregation::classes)
                  .def("take_over", &take_over, "other"_a)
                  .def("run", &abers::run, "kinds"_a, "numbers"_a, "labels"_a, "given"_a, "out"_a);
  bind_mixture(type);
}

}  // namespace abers
