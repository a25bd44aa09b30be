// Python's way into protected mixtures of vectors; see tests/oracles/class_aggregation.py.
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

}  // namespace

void bind_class_aggregation(nb::module_& module) {
  auto type = nb::class_<ClassAggregation>(module, "ClassAggregation")
                  .def(nb::init<std::size_t, std::size_t, double>(), "classes"_a, "shrunk"_a,
                       "raw_weight"_a = 0.25)
                  .def_prop_ro("classes", &ClassAggregation::classes)
                  .def("run", &abers::run, "kinds"_a, "numbers"_a, "labels"_a, "given"_a, "out"_a);
  bind_mixture(type);
}

}  // namespace abers
