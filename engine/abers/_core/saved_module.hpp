// What the bindings of saved state share.
#pragma once

#include <nanobind/nanobind.h>

#include <string_view>

namespace abers {

using BytesList = nanobind::typed<nanobind::list, nanobind::bytes>;

inline std::string_view view(const nanobind::bytes& bytes) {
  return {static_cast<const char*>(bytes.data()), bytes.size()};
}

inline nanobind::bytes to_python(std::string_view bytes) {
  return nanobind::bytes(bytes.data(), bytes.size());
}

// Binds `save` and `load` of what keeps its options.
template <class T, class... Bases>
void bind_saved(nanobind::class_<T, Bases...>& type) {
  type.def("save", [](const T& one) { return to_python(one.save()); })
      .def(
          "load", [](T& one, const nanobind::bytes& saved) { one.load(view(saved)); },
          nanobind::arg("saved"));
}

}  // namespace abers
