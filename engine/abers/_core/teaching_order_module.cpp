// Python's way into the order in which labels teach; see tests/oracles/teaching_order.py.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <utility>
#include <vector>

#include "saved_module.hpp"
#include "teaching_by_age.hpp"
#include "teaching_order.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace abers {
namespace {

using Most = std::optional<std::size_t>;  // labels that wait

// What a call appends to an empty list.
template <class Call>
Taught due(const Call& call) {
  Taught taught;
  call(taught);
  return taught;
}

template <class Order>
std::optional<Taught> label(Order& order, std::int64_t number, std::size_t label) {
  bool known = false;
  Taught found = due([&](Taught& all) { known = order.label(number, label, all); });
  return known ? std::optional(std::move(found)) : std::nullopt;
}

template <class Order>
void bind_face(nb::class_<Order>& type) {
  type.def("label", &label<Order>, "number"_a, "label"_a)
      .def(
          "expire",
          [](Order& order, std::int64_t number) {
            return due([&](Taught& all) { order.expire(number, all); });
          },
          "number"_a)
      .def("waits", &Order::waits, "number"_a)
      .def_prop_ro("held", &Order::held)
      .def("__sizeof__", &Order::bytes);
  bind_saved(type);
}

}  // namespace

void bind_teaching_order(nb::module_& module) {
  auto order = nb::class_<TeachingOrder>(module, "TeachingOrder");
  order
      .def(
          "__init__",
          [](TeachingOrder* self, std::int64_t wait, std::size_t classes, Most most) {
            new (self) TeachingOrder(wait, classes, most.value_or(kAnyNumber));
          },
          "wait"_a = 0, "classes"_a = 2, "most"_a = nb::none())
      .def(
          "predict",
          [](TeachingOrder& one, std::int64_t number) {
            return due([&](Taught& all) { one.predict(number, all); });
          },
          "number"_a)
      .def_prop_ro("cap", &TeachingOrder::cap)
      .def_prop_ro("stalled", &TeachingOrder::stalled)
      .def_prop_ro("by_arrival", &TeachingOrder::by_arrival);
  bind_face(order);
  auto age = nb::class_<TeachingByAge>(module, "TeachingByAge");
  age.def(
         "__init__",
         [](TeachingByAge* self, std::int64_t age, Most most) {
           new (self) TeachingByAge(age, most.value_or(kAnyNumber));
         },
         "age"_a, "most"_a = nb::none())
      .def(
          "predict",
          [](TeachingByAge& one, std::int64_t number, std::int64_t time) {
            return due([&](Taught& all) { one.predict(number, all, time); });
          },
          "number"_a, "time"_a)
      .def(
          "advance",
          [](TeachingByAge& one, std::int64_t clock) {
            return due([&](Taught& all) { one.advance(clock, all); });
          },
          "clock"_a);
  bind_face(age);
}

}  // namespace abers
