// Python's way into protected mixtures of vectors; see abers/reference/class_aggregation.py.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "class_aggregation.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace abers {
namespace {

template <class T>
using Column = nb::ndarray<T, nb::numpy, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Kinds = Column<const std::uint8_t>;
using Numbers = Column<const std::int64_t>;
using Given = nb::ndarray<const double, nb::numpy, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using Table = nb::ndarray<double, nb::numpy, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Flags = Column<std::uint8_t>;
using Floats = Column<double>;
using Read = Column<const double>;
using Integers = Column<std::int64_t>;

void require(bool condition) {
  if (!condition) throw nb::value_error("columns differ in length");
}

template <class T>
std::span<const T> view(const Column<const T>& column) {
  return {column.data(), column.size()};
}

void moments(const ClassAggregation& mixture, const Kinds& kinds, const Numbers& numbers,
             const Floats& out, const Flags& known) {
  const std::size_t n = kinds.size();
  require(numbers.size() == n && out.size() == n && known.size() == n);
  mixture.lanes().moments(view(kinds), view(numbers), out.data(), known.data());
}

void run(ClassAggregation& mixture, const Kinds& kinds, const Numbers& numbers,
         const Numbers& labels, const Given& given, const Table& out) {
  const std::size_t n = kinds.size(), classes = mixture.classes();
  require(numbers.size() == n && labels.size() == n);
  require(given.shape(0) == n && given.shape(1) == mixture.given() && given.shape(2) == classes);
  require(out.shape(0) == n && out.shape(1) == classes);
  const nb::gil_scoped_release released;
  for (std::size_t row = 0; row < n; ++row) {
    const double* const vectors = given.data() + row * mixture.given() * classes;
    const std::int64_t number = numbers.data()[row];
    const auto label = static_cast<std::size_t>(labels.data()[row]);
    switch (kinds.data()[row]) {
      case kPredict:
        mixture.predict(vectors, number, out.data() + row * classes);
        break;
      case kLearn:
        require(label < classes);
        mixture.learn(vectors, label, number);
        break;
      case kExpire:
        mixture.expire(number);
        break;
      default:
        throw nb::value_error("nothing is removed");
    }
  }
}

void losses(const ClassAggregation& mixture, const Floats& out) {
  require(out.size() == mixture.experts() + 1);
  mixture.losses(out.data());
}

void weights(const ClassAggregation& mixture, const Floats& out) {
  require(out.size() == mixture.experts());
  mixture.lanes().mean_weights(out.data());
}

// The state, as the columns of `Aggregation`.

std::size_t parameters(ClassAggregation& mixture) {
  std::size_t count = 0;
  mixture.visit_parameters([&](double) { ++count; });
  return count;
}

void save(ClassAggregation& mixture, const Floats& own, const Integers& exponents,
          const Integers& numbers, const Integers& moments, const Floats& weights,
          const Floats& forecasts) {
  const Lanes& lanes = mixture.lanes();
  const std::size_t count = lanes.size();
  require(own.size() == parameters(mixture) && exponents.size() == mixture.products().size());
  require(numbers.size() == count && moments.size() == count);
  require(weights.size() == count * lanes.experts());
  require(forecasts.size() == count * lanes.kept_size());
  double* next = own.data();
  mixture.visit_parameters([&](double one) { *next++ = one; });
  std::int64_t* exponent = exponents.data();
  for (const Product& product : mixture.products()) *exponent++ = product.exponent;
  lanes.save(numbers.data(), moments.data(), weights.data(), forecasts.data());
}

void load(ClassAggregation& mixture, std::int64_t moment, std::int64_t labels, std::int64_t taught,
          std::size_t most, const Read& own, const Numbers& exponents, const Numbers& numbers,
          const Numbers& moments, const Read& weights, const Read& forecasts) {
  Lanes lanes = mixture.lanes();
  require(own.size() == parameters(mixture) && exponents.size() == mixture.products().size());
  require(moments.size() == numbers.size());
  require(weights.size() == numbers.size() * lanes.experts());
  require(forecasts.size() == numbers.size() * lanes.kept_size());
  lanes.load(moment, most, view(numbers), view(moments), view(weights), view(forecasts));
  const double* next = own.data();
  mixture.visit_parameters([&](double& one) { one = *next++; });
  const std::int64_t* exponent = exponents.data();
  for (Product& product : mixture.products()) product.exponent = *exponent++;
  mixture.load(labels, taught, std::move(lanes));
}

}  // namespace

void bind_class_aggregation(nb::module_& module) {
  using Mixture = ClassAggregation;
  nb::class_<Mixture>(module, "ClassAggregation")
      .def(nb::init<std::size_t, std::size_t, double>(), "classes"_a, "shrunk"_a,
           "raw_weight"_a = 0.25)
      .def_prop_ro("classes", &Mixture::classes)
      .def_prop_ro("experts", &Mixture::experts)
      .def_prop_ro("lane_count", [](const Mixture& one) { return one.lanes().most(); })
      .def_prop_ro("lane_rows", [](const Mixture& one) { return one.lanes().size(); })
      .def_prop_ro("awaiting_count", [](const Mixture& one) { return one.lanes().awaiting(); })
      .def_prop_ro("moment", [](const Mixture& one) { return one.lanes().moment(); })
      .def_prop_ro("labels", &Mixture::labels)
      .def_prop_ro("taught", &Mixture::taught)
      .def_prop_ro("parameter_count", &parameters)
      .def("moments", &moments, "kinds"_a, "numbers"_a, "out"_a, "known"_a)
      .def("run", &run, "kinds"_a, "numbers"_a, "labels"_a, "given"_a, "out"_a)
      .def("losses", &losses, "out"_a)
      .def("weights", &weights, "out"_a)
      .def("save", &save, "own"_a, "exponents"_a, "numbers"_a, "moments"_a, "weights"_a,
           "forecasts"_a)
      .def("load", &load, "moment"_a, "labels"_a, "taught"_a, "most"_a, "own"_a, "exponents"_a,
           "numbers"_a, "moments"_a, "weights"_a, "forecasts"_a)
      .def("__sizeof__", [](const Mixture& one) { return sizeof(one) + one.lanes().bytes(); });
}

}  // namespace abers
