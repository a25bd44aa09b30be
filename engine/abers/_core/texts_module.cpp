// Python's way of looking at the texts of a batch once.
//
// A text is a Python str and of no other type, and can be written down as UTF-8,
// which a surrogate cannot; its length is that of its UTF-8, in bytes. Nothing is decided here,
// only reported.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace nb = nanobind;
using namespace nb::literals;

namespace abers {
namespace {

using Numbers = nb::ndarray<std::uint32_t, nb::numpy, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Names = nb::typed<nb::list, nb::str>;
using Objects = nb::typed<nb::list, nb::any>;

// By functions of the stable ABI alone. Python keeps the UTF-8 of a str that is not ASCII with it.
bool is_text_of(PyObject* object, std::size_t most) {
  if (!PyUnicode_CheckExact(object)) return false;
  Py_ssize_t bytes = 0;
  if (!PyUnicode_AsUTF8AndSize(object, &bytes)) {  // a surrogate
    PyErr_Clear();
    return false;
  }
  return static_cast<std::size_t>(bytes) <= most;
}

bool are_names(const Objects& texts, std::size_t most) {
  PyObject* list = texts.ptr();
  for (Py_ssize_t i = 0; i < PyList_Size(list); ++i) {
    PyObject* text = PyList_GetItem(list, i);
    if (!is_text_of(text, most) || PyUnicode_GetLength(text) == 0) return false;
  }
  return true;
}

std::optional<Names> distinct(const Objects& texts, const Numbers& numbers, std::size_t most) {
  const std::size_t n = texts.size();
  if (numbers.size() != n) throw nb::value_error("columns differ in length");
  nb::dict known;  // number of each text
  Names names;
  PyObject* last = nullptr;  // a batch repeats few objects, mostly the one before
  std::uint32_t number = 0;
  for (std::size_t i = 0; i < n; ++i) {
    PyObject* text = PyList_GetItem(texts.ptr(), static_cast<Py_ssize_t>(i));
    if (text != last) {
      if (!is_text_of(text, most)) return std::nullopt;
      const nb::handle key(text);
      if (PyObject* found = PyDict_GetItemWithError(known.ptr(), text)) {
        number = nb::cast<std::uint32_t>(nb::handle(found));
      } else {
        if (PyErr_Occurred()) throw nb::python_error();
        number = static_cast<std::uint32_t>(nb::len(names));
        known[key] = number;
        names.append(key);
      }
      last = text;
    }
    numbers.data()[i] = number;
  }
  return names;
}

}  // namespace

void bind_texts(nb::module_& m) {
  m.def("are_names", &are_names, "texts"_a, "most"_a);
  m.def("distinct", &distinct, "texts"_a, "numbers"_a, "most"_a);
}

}  // namespace abers
