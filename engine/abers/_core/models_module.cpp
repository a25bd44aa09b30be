// Python's way to many models at once; see models.hpp.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "columns_module.hpp"
#include "merge.hpp"
#include "models.hpp"
#include "saved_module.hpp"

namespace abers {
namespace {

using bindings::Integers;
using bindings::Read;
using bindings::ReadBytes;
using bindings::ReadIntegers;
using bindings::ReadRows;
using bindings::Rows;
using bindings::view;

// Every row that `order` names is one of `rows`, and the offsets part it.
void require_groups(std::size_t models, std::size_t rows, const ReadIntegers& order,
                    const ReadIntegers& offsets) {
  const auto none = static_cast<std::int64_t>(rows);
  const auto some = static_cast<std::int64_t>(order.size());
  bool sound =
      offsets.size() == models + 1 && offsets.data()[0] == 0 && offsets.data()[models] == some;
  for (std::size_t g = 0; g < models && sound; ++g) {
    sound = offsets.data()[g] <= offsets.data()[g + 1];
  }
  for (const std::int64_t row : view(order)) sound = sound && row >= 0 && row < none;
  if (!sound) throw nb::value_error("offsets do not part the rows");
}

// Every label is the number of a class.
void require_labels(const Model& model, const ReadBytes& kinds, const Read& labels) {
  const auto classes = static_cast<double>(model.classes());
  for (std::size_t row = 0; row < kinds.size(); ++row) {
    const double label = labels.data()[row];
    const bool sound = kinds.data()[row] != kLearn || (label >= 0.0 && label < classes);
    if (!sound) throw nb::value_error("a label is no number of a class");
  }
}

std::optional<Refused> run(const std::vector<Model*>& models, const ReadIntegers& order,
                           const ReadIntegers& offsets, const ReadBytes& kinds,
                           const ReadRows& scores, const Read& labels,
                           const std::optional<Read>& times,
                           const std::optional<ReadIntegers>& numbers,
                           const std::optional<ReadIntegers>& moments,
                           const std::optional<ReadIntegers>& clocks, const Rows& out,
                           const Integers& sizes) {
  const std::size_t n = kinds.size();
  for (const std::size_t length :
       {scores.shape(0), labels.size(), times ? times->size() : n, numbers ? numbers->size() : n,
        moments ? moments->size() : n, clocks ? clocks->size() : n, out.shape(0), sizes.size()}) {
    if (length != n) throw nb::value_error("columns differ in length");
  }
  for (const Model* const model : models) {
    if (scores.shape(1) != model->score_width() || out.shape(1) != model->forecast_width()) {
      throw nb::value_error("columns differ in width");
    }
  }
  if (!models.empty()) require_labels(*models.front(), kinds, labels);
  require_groups(models.size(), n, order, offsets);
  const ModelColumns columns{kinds.data(),
                             scores.data(),
                             labels.data(),
                             times ? times->data() : nullptr,
                             numbers ? numbers->data() : nullptr,
                             moments ? moments->data() : nullptr,
                             clocks ? clocks->data() : nullptr,
                             out.data(),
                             sizes.data()};
  const nb::gil_scoped_release unlocked;
  return run_models(models, view(order), view(offsets), columns);
}

// One step of one model: the forecast and the labels that it rests on; None if it is refused.
using Stepped = std::pair<std::vector<double>, std::int64_t>;
std::optional<Stepped> step(Model& model, std::uint8_t kind, const std::vector<double>& scores,
                            double label, double time, std::int64_t number, std::int64_t moment,
                            std::int64_t clock) {
  const auto classes = static_cast<double>(model.classes());
  if (scores.size() != model.score_width()) throw nb::value_error("scores differ in number");
  if (!(label >= 0.0 && label < classes)) throw nb::value_error("a label is no number of a class");
  Stepped found{std::vector<double>(model.forecast_width()), 0};
  ModelForecast out{found.first.data()};
  const auto named = static_cast<std::int64_t>(label);
  if (!model.step({kind, scores.data(), named, kOne, time, number, moment, clock}, out)) {
    return std::nullopt;
  }
  found.second = out.labels;
  return found;
}

using Blob = nb::ndarray<const std::uint8_t, nb::numpy, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Blobs = nb::typed<nb::list, Blob>;

// An array that keeps bytes where they are.
Blob array_of(std::string bytes) {
  auto held = std::make_unique<std::string>(std::move(bytes));
  const auto* const data = reinterpret_cast<const std::uint8_t*>(held->data());
  const std::size_t size = held->size();
  const nb::capsule owner(held.release(), [](void* one) noexcept {
    std::unique_ptr<std::string>(static_cast<std::string*>(one)).reset();
  });
  return Blob(data, {size}, owner);
}

// Models from one on, sealed: as many as take some bytes together, at least one.
Blobs save(const nb::typed<nb::list, Model>& models, std::size_t first, std::size_t most) {
  Blobs found;
  std::size_t total = 0;
  for (std::size_t i = first; i < models.size() && (i == first || total < most); ++i) {
    std::string blob = save_model(*nb::cast<Model*>(models[i]));
    total += blob.size();
    found.append(array_of(std::move(blob)));
  }
  return found;
}

// A model with the options of `empty` for each blob.
nb::typed<nb::list, Model> load(const Model& empty, const Blobs& blobs) {
  nb::typed<nb::list, Model> found;
  for (std::size_t i = 0; i < blobs.size(); ++i) {
    std::unique_ptr<Model> model = empty.fresh();
    const auto blob = nb::cast<Blob>(blobs[i]);
    try {
      load_model(*model, {reinterpret_cast<const char*>(blob.data()), blob.size()});
    } catch (const std::invalid_argument& wrong) {
      throw nb::value_error(("calibrator " + std::to_string(i) + ": " + wrong.what()).c_str());
    }
    found.append(nb::cast(std::move(model)));
  }
  return found;
}

// Binds what makes a merged calibrator from its sets.
template <class Sets, class Held>
void bind_merge(nb::module_& module, const char* name) {
  using M = Merge<Sets>;
  nb::class_<M, Model>(module, name)
      .def(
          "__init__",
          [](M* self, Held held, std::int64_t wait, std::int64_t age, std::int64_t room) {
            Sets sets(std::move(held));
            Teaching order = teaching({wait, age, room}, sets.classes(), sets.blank(), Nothing{});
            new (self) M(std::move(sets), std::move(order));
          },
          "held"_a, "wait"_a = std::int64_t{0}, "age"_a = std::int64_t{-1},
          "room"_a = std::int64_t{-1});
}

}  // namespace

void bind_models(nb::module_& module) {
  nb::class_<Model>(module, "Model")
      .def_prop_ro("size", &Model::size)
      .def_prop_ro("total", &Model::total)
      .def_prop_ro("last", &Model::last)
      .def_prop_ro("forecast_width", &Model::forecast_width)
      .def("fresh", &Model::fresh)
      .def("step", &step, "kind"_a, "scores"_a, "label"_a, "time"_a, "number"_a, "moment"_a,
           "clock"_a)
      .def("save", [](Model& model) {
        std::string bytes;
        model.save(bytes);
        return to_python(bytes);
      });
  bind_merge<OneSet, SharedSet>(module, "Merge");
  bind_merge<FoldSets, SharedSets>(module, "FoldMerge");
  bind_merge<ClassSets, SharedSets>(module, "ClassMerge");
  module.def("run_models", &run, "models"_a, "order"_a, "offsets"_a, "kinds"_a, "scores"_a,
             "labels"_a, "times"_a.none(), "numbers"_a.none(), "moments"_a.none(),
             "clocks"_a.none(), "out"_a, "sizes"_a);
  module.def("save_models", &save, "models"_a, "first"_a, "most"_a);
  module.def("load_models", &load, "empty"_a, "blobs"_a);
}

}  // namespace abers
