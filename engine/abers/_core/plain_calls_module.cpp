// Methods of `VennAbers` and `UnboundedIVAR` that answer plain calls here, and pass all others on
// to Python.
//
// A call is plain if it has no option, its score is a finite float, its label is an int of 0 or 1
// or a bool, or a finite float if any is a label, and nobody has the calibrator's lock. Everything
// else, so every error, is left to the Python method, which alone checks and words it.
//
// The lock is not taken: a plain call keeps the interpreter lock until it has its answer, so none
// of those who take the calibrator's can come between.
#include <nanobind/nanobind.h>

#if PY_VERSION_HEX < 0x030c0000
#include <structmember.h>
#define Py_T_PYSSIZET T_PYSSIZET
#define Py_READONLY READONLY
#endif

#include <cmath>
#include <cstddef>
#include <initializer_list>
#include <limits>
#include <new>

#include "calibration_set.hpp"
#include "mean_set.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace abers {
namespace {

struct PlainCalls {
  PyObject_HEAD vectorcallfunc call;
  PyObject* general;  // the method for calls that are not plain
  PyObject* answer;   // the class of a prediction, a tuple of the numbers of a set's
  PyObject* dict;     // what functools.update_wrapper sets
};

PyTypeObject* method_type;
PyTypeObject* calibration_set_type;
PyTypeObject* mean_set_type;
PyObject* bound_type;  // of Python's bound methods
PyObject* held_name;
PyObject* locked_name;

// The set of a calibrator if its lock is free; else none. No Python runs after the look at
// the lock, for which it would be given up.
nb::object free_set(PyObject* calibrator) {
  nb::object held = nb::steal(PyObject_GetAttr(calibrator, held_name));
  const nb::object locked = nb::steal(held ? PyObject_GetAttr(calibrator, locked_name) : nullptr);
  if (locked) {
    const nb::object is_locked = nb::steal(PyObject_CallNoArgs(locked.ptr()));
    if (is_locked.is(Py_False)) return held;
  }
  PyErr_Clear();
  return {};
}

bool is_finite(PyObject* object) {
  return PyFloat_CheckExact(object) &&
         std::abs(PyFloat_AsDouble(object)) <= std::numeric_limits<double>::max();
}

double number_of(PyObject* object) { return PyFloat_AsDouble(object) + 0.0; }  // without -0.0

// -1 for what is no plain label.
int label_of(PyObject* object) {
  if (!PyLong_CheckExact(object) && !PyBool_Check(object)) return -1;
  int beyond = 0;
  const long label = PyLong_AsLongAndOverflow(object, &beyond);
  return label == 0 || label == 1 ? static_cast<int>(label) : -1;
}

nb::object prediction(PyObject* kind, std::initializer_list<double> numbers) {
  auto* type = reinterpret_cast<PyTypeObject*>(kind);
  const auto allocate = reinterpret_cast<allocfunc>(PyType_GetSlot(type, Py_tp_alloc));
  nb::object made = nb::steal(allocate(type, static_cast<Py_ssize_t>(numbers.size())));
  if (!made) throw nb::python_error();
  Py_ssize_t at = 0;
  for (const double each : numbers) {
    PyObject* number = PyFloat_FromDouble(each);
    if (!number || PyTuple_SetItem(made.ptr(), at++, number) != 0) throw nb::python_error();
  }
  return made;
}

// The answer to a plain call of `predict_one`; none for another.
nb::object predicted(PyObject* answer, PyObject* const* arguments, Py_ssize_t count) {
  if (count != 2 || !is_finite(arguments[1])) return {};
  const nb::object held = free_set(arguments[0]);
  if (!held) return {};
  const double score = number_of(arguments[1]);
  if (Py_TYPE(held.ptr()) == calibration_set_type) {
    const auto [p0, p1] = nb::inst_ptr<CalibrationSet>(held)->predict(score, kOne, std::nan(""));
    return prediction(answer, {p0, p1});
  }
  if (Py_TYPE(held.ptr()) == mean_set_type) {
    const MeanFit fit = nb::inst_ptr<MeanSet>(held)->predict(score, std::nan(""));
    return prediction(answer, {fit.low, fit.high, fit.lowest, fit.highest});
  }
  return {};
}

// The answer to a plain call of `learn_one` that is not refused; none for another.
nb::object learned(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  if (count != 3 || !is_finite(arguments[1])) return {};
  const int label = label_of(arguments[2]);
  if (label < 0 && !is_finite(arguments[2])) return {};
  const nb::object held = free_set(arguments[0]);
  if (!held) return {};
  const double score = number_of(arguments[1]);
  bool learns = false;
  if (Py_TYPE(held.ptr()) == calibration_set_type) {
    auto* set = nb::inst_ptr<CalibrationSet>(held);
    learns = label >= 0 && set->lifetime() == 0 && set->learn(score, label, kOne, std::nan(""));
  } else if (Py_TYPE(held.ptr()) == mean_set_type) {
    auto* set = nb::inst_ptr<MeanSet>(held);
    const double real = label < 0 ? number_of(arguments[2]) : label;
    learns = set->lifetime() == 0 && set->learn(score, real, std::nan(""));
  }
  return learns ? nb::none() : nb::object();
}

template <nb::object (*plain)(PyObject*, PyObject* const*, Py_ssize_t)>
PyObject* call(PyObject* self, PyObject* const* arguments, std::size_t count,
               PyObject* keywords) noexcept {
  const auto* method = reinterpret_cast<const PlainCalls*>(self);
  if (!keywords) {
    try {
      nb::object found = plain(method->answer, arguments, PyVectorcall_NARGS(count));
      if (found) return found.release().ptr();
    } catch (nb::python_error& error) {
      error.restore();
      return nullptr;
    } catch (const std::bad_alloc&) {
      return PyErr_NoMemory();
    }
  }
  return PyObject_Vectorcall(method->general, arguments, count, keywords);
}

// The parts of the type, which no class of nanobind can be: a descriptor with a vectorcall.

PyObject* bound(PyObject* self, PyObject* calibrator, PyObject*) {
  if (!calibrator || calibrator == Py_None) return nb::borrow(self).release().ptr();
  return PyObject_CallFunctionObjArgs(bound_type, self, calibrator, nullptr);
}

int visit_parts(PyObject* self, visitproc visit, void* arg) {
  const auto* method = reinterpret_cast<const PlainCalls*>(self);
  Py_VISIT(method->general);
  Py_VISIT(method->answer);
  Py_VISIT(method->dict);
  Py_VISIT(Py_TYPE(self));
  return 0;
}

int drop_parts(PyObject* self) {
  auto* method = reinterpret_cast<PlainCalls*>(self);
  Py_CLEAR(method->general);
  Py_CLEAR(method->answer);
  Py_CLEAR(method->dict);
  return 0;
}

void destroy(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  drop_parts(self);
  PyObject_GC_Del(self);
  Py_DECREF(type);
}

PyTypeObject* make_type() {
  static PyMemberDef members[] = {
      {"__vectorcalloffset__", Py_T_PYSSIZET, offsetof(PlainCalls, call), Py_READONLY, nullptr},
      {"__dictoffset__", Py_T_PYSSIZET, offsetof(PlainCalls, dict), Py_READONLY, nullptr},
      {}};
  static PyGetSetDef properties[] = {
      {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr}, {}};
  static PyType_Slot slots[] = {{Py_tp_members, members},
                                {Py_tp_getset, properties},
                                {Py_tp_descr_get, reinterpret_cast<void*>(bound)},
                                {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
                                {Py_tp_traverse, reinterpret_cast<void*>(visit_parts)},
                                {Py_tp_clear, reinterpret_cast<void*>(drop_parts)},
                                {Py_tp_dealloc, reinterpret_cast<void*>(destroy)},
                                {}};
  constexpr unsigned flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
                             Py_TPFLAGS_METHOD_DESCRIPTOR | Py_TPFLAGS_DISALLOW_INSTANTIATION;
  static PyType_Spec spec{"abers._core.PlainCalls", sizeof(PlainCalls), 0, flags, slots};
  return reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
}

nb::object made(vectorcallfunc call, const nb::object& general, const nb::object& answer) {
  nb::object method = nb::steal(PyType_GenericAlloc(method_type, 0));
  if (!method) throw nb::python_error();
  auto* parts = reinterpret_cast<PlainCalls*>(method.ptr());
  parts->call = call;
  parts->general = nb::borrow(general).release().ptr();
  parts->answer = nb::borrow(answer).release().ptr();
  return method;
}

}  // namespace

void bind_plain_calls(nb::module_& m) {
  method_type = make_type();
  calibration_set_type = reinterpret_cast<PyTypeObject*>(nb::type<CalibrationSet>().ptr());
  mean_set_type = reinterpret_cast<PyTypeObject*>(nb::type<MeanSet>().ptr());
  bound_type = nb::object(nb::module_::import_("types").attr("MethodType")).release().ptr();
  held_name = PyUnicode_InternFromString("_held");
  locked_name = PyUnicode_InternFromString("_locked");
  if (!method_type || !held_name || !locked_name) throw nb::python_error();
  m.def(
      "plain_predict",
      [](const nb::object& general, const nb::type_object& answer) {
        return made(call<predicted>, general, answer);
      },
      "general"_a, "answer"_a);
  m.def(
      "plain_learn",
      [](const nb::object& general) { return made(call<learned>, general, nb::none()); },
      "general"_a);
}

}  // namespace abers
