// Python's way into the index of ids.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "columns_module.hpp"
#include "id_index.hpp"
#include "id_index_codec.hpp"
#include "saved_module.hpp"

namespace abers {
namespace {

using bindings::Column;
using bindings::Integers;
using bindings::ReadBytes;
using bindings::ReadIntegers;
using bindings::require;
using Texts = nb::typed<nb::list, nb::str>;
// Row, offset and result of each.
using Released =
    nb::typed<nb::list, nb::typed<nb::tuple, std::int64_t, std::int64_t, std::int64_t>>;

constexpr std::size_t kAhead = 8;  // events
constexpr std::int64_t kLatestTime = std::int64_t{1} << 53;

struct BoundIndex {
  IdOptions options;
  IdIndex index;
};

std::uint64_t hash_of(const IdIndex& index, PyObject* id) {
  Py_ssize_t length = 0;
  const char* text = PyUnicode_AsUTF8AndSize(id, &length);
  if (!text) throw nb::python_error();
  return index.hash_of({text, static_cast<std::size_t>(length)});
}

// Before anything is taken.
void require_usable(const IdIndex& index, const ReadBytes& labels,
                    const Column<const std::uint32_t>& models, const ReadIntegers& times,
                    const ReadIntegers& offsets) {
  std::int64_t last = index.last_offset();
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (times.data()[i] < -kLatestTime || times.data()[i] > kLatestTime)
      throw nb::value_error("a time is out of range");
    if (!labels.data()[i]) {
      if (models.data()[i] >= kAmbiguous) throw nb::value_error("too many models");
      continue;
    }
    if (offsets.data()[i] <= last) throw nb::value_error("the offsets of labels must ascend");
    last = offsets.data()[i];
  }
}

Released take(BoundIndex& bound, const Texts& ids, const ReadBytes& labels,
              const Column<const std::uint32_t>& models, const ReadIntegers& times,
              const ReadIntegers& offsets, const Integers& results) {
  IdIndex& index = bound.index;
  const std::size_t n = ids.size();
  require(labels.size() == n && models.size() == n && times.size() == n && offsets.size() == n &&
          results.size() == n);
  require_usable(index, labels, models, times, offsets);
  std::vector<std::uint64_t> hashes(n);  // all of them first: an id may be no text
  for (std::size_t i = 0; i < n; ++i) hashes[i] = hash_of(index, nb::handle(ids[i]).ptr());
  index.released.clear();
  for (std::size_t i = 0; i < n; ++i) {
    if (i + kAhead < n) index.fetch(hashes[i + kAhead]);
    if (labels.data()[i]) {
      results.data()[i] = index.label(hashes[i], times.data()[i], offsets.data()[i]);
    } else {
      index.observe(static_cast<std::int64_t>(i), hashes[i], models.data()[i], times.data()[i]);
      results.data()[i] = models.data()[i];
    }
  }
  Released found;
  for (const ReleasedLabel& one : index.released)
    found.append(nb::make_tuple(one.row, one.offset, one.result));
  return found;
}

// The numbers of the models that ids have, ascending.
nb::typed<nb::list, std::uint32_t> models(BoundIndex& bound) {
  std::vector<bool> has;
  bound.index.each_model([&](std::uint32_t model) {
    if (model == kAmbiguous) return;
    if (model >= has.size()) has.resize(model + 1);
    has[model] = true;
  });
  nb::typed<nb::list, std::uint32_t> found;
  for (std::size_t model = 0; model < has.size(); ++model) {
    if (has[model]) found.append(model);
  }
  return found;
}

// The offsets of the labels that wait, ascending.
nb::typed<nb::list, std::int64_t> waits(const BoundIndex& bound) {
  nb::typed<nb::list, std::int64_t> found;
  for (const auto& [offset, wait] : bound.index.waits()) found.append(offset);
  return found;
}

SipKey sip_key(const nb::bytes& key) {
  if (key.size() != sizeof(SipKey)) throw nb::value_error("a key has 16 bytes");
  const char* bytes = view(key).data();
  return {number<std::uint64_t>(bytes), number<std::uint64_t>(bytes + sizeof(std::uint64_t))};
}

}  // namespace

void bind_id_index(nb::module_& m) {
  nb::class_<BoundIndex>(m, "IdIndex")
      .def(
          "__init__",
          [](BoundIndex* self, const nb::bytes& key, std::int64_t span, std::int64_t jump,
             std::size_t max_ids) {
            if (span < 0 || span > kLatestTime || jump < 0 || max_ids == 0)
              throw nb::value_error("an option is out of range");
            const IdOptions options{sip_key(key), span, jump, max_ids};
            new (self) BoundIndex{options, IdIndex(options)};
          },
          "key"_a, "span"_a, "jump"_a, "max_ids"_a)
      .def("take", &take, "ids"_a, "labels"_a, "models"_a, "times"_a, "offsets"_a, "results"_a)
      .def(
          "drop", [](BoundIndex& bound, std::int64_t offset) { bound.index.drop(offset); },
          "offset"_a)
      .def("models", &abers::models)
      .def_prop_ro("ids", [](const BoundIndex& bound) { return bound.index.ids(); })
      .def("waits", &abers::waits)
      .def_prop_ro("evicted", [](const BoundIndex& bound) { return bound.index.evicted; })
      .def("save", [](BoundIndex& bound) { return to_python(IdIndexCodec::save(bound.index)); })
      .def(
          "load",
          [](BoundIndex& bound, const nb::bytes& saved) {
            bound.index = IdIndexCodec::load(bound.options, view(saved));
          },
          "saved"_a)
      .def("__sizeof__",
           [](const BoundIndex& bound) { return sizeof(bound) + bound.index.bytes(); });
}

}  // namespace abers
