// Python's way into protected mixtures; see tests/oracles/aggregation.py.
#include "aggregation.hpp"
#include "mixture_module.hpp"

namespace abers {
namespace {

using namespace bindings;

void logistics(const Read& scores, const Floats& out) {
  require(scores.size() == out.size());
  for (std::size_t i = 0; i < scores.size(); ++i) {
    out.data()[i] = elementary::logistic(scores.data()[i]);
  }
}

// Of each column.
void geometric_means(const Given<2>& rows, const Floats& out) {
  const std::size_t count = rows.shape(0), n = rows.shape(1);
  require(out.size() == n);
  const nb::gil_scoped_release released;
  for (std::size_t i = 0; i < n; ++i) {
    out.data()[i] = elementary::geometric_mean(rows.data() + i, count, n);
  }
}

void run(Aggregation& mixture, const Kinds& kinds, const Numbers& numbers, const Kinds& labels,
         const Given<2>& given, const Floats& out) {
  const std::size_t n = kinds.size(), width = mixture.given();
  require(numbers.size() == n && labels.size() == n && out.size() == n);
  require(given.shape(0) == n && given.shape(1) == width);
  bindings::run(
      mixture, kinds, numbers,
      [&](std::size_t row) {
        out.data()[row] = mixture.predict(given.data() + row * width, numbers.data()[row]);
      },
      [&](std::size_t row) {
        mixture.learn(given.data() + row * width, labels.data()[row] != 0, numbers.data()[row]);
      });
}

}  // namespace

void bind_aggregation(nb::module_& module) {
  module.def("logistics", &logistics, "scores"_a, "out"_a);
  module.def("geometric_means", &geometric_means, "rows"_a, "out"_a);
  auto type = nb::class_<Aggregation>(module, "Aggregation")
                  .def(nb::init<std::size_t, double>(), "shrunk"_a, "raw_weight"_a = 0.25)
                  .def("run", &abers::run, "kinds"_a, "numbers"_a, "labels"_a, "given"_a, "out"_a);
  bind_mixture(type);
}

}  // namespace abers
