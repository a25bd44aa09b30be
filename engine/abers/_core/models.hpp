// Many models at once: their steps from row offsets, and their saved forms.
//
// A group is the rows of one model in a batch. Models do not depend on each other, so groups run
// one after the other, each row by row.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "calibration_set.hpp"
#include "calibration_sets.hpp"
#include "model.hpp"
#include "ordered_set_codec.hpp"
#include "prefetch.hpp"
#include "seal.hpp"
#include "set_codec.hpp"
#include "step.hpp"
#include "teaching_order.hpp"

namespace abers {

// A calibration set by itself, which gives intervals. Observations have numbers, which ascend.
class VennAbersModel final : public Model {
 public:
  explicit VennAbersModel(std::shared_ptr<CalibrationSet> set, Teaching order = TeachingOrder())
      : learner_(OneSet(std::move(set)), std::move(order)) {}

  std::size_t score_width() const override { return OneSet::score_width(); }
  std::size_t forecast_width() const override { return OneSet::forecast_width(); }
  std::size_t classes() const override { return OneSet::classes(); }

  std::int64_t size() const override { return set().size(); }
  std::int64_t total() const override { return learner_.total(); }
  std::int64_t last() const override { return last_number(learner_.order()); }

  bool step(const ModelStep& step, ModelForecast& out) override {
    const auto taught = [](const Learner::Lesson&) {};
    switch (step.kind) {
      case kPredict:
        learner_.advance(step.clock, taught);
        out.labels = size();
        forecast(step, out.values);
        if (step.number >= 0) learner_.predict(step.number, step.moment, taught);
        return true;
      case kLearn:
        if (!learner_.takes(step)) return false;
        if (learner_.waits(step.number)) {
          learner_.label(step.number, learner_.lesson(step, {}), taught);
        } else {
          learner_.learn(step);
        }
        learner_.advance(step.clock, taught);  // labels of one moment in the order of observations
        return true;
      case kExpire:
        learner_.advance(step.clock, taught);
        learner_.expire(step.number, taught);
        return true;
      default:
        throw std::invalid_argument("nothing is removed");
    }
  }

  void fetch() const override { prefetch(*this); }
  void fetch_parts() const override { learner_.sets().fetch(); }

  std::unique_ptr<Model> fresh() const override {
    return std::make_unique<VennAbersModel>(set().fresh(), abers::fresh(learner_.order()));
  }

  std::string_view magic() const override { return "abersVO\x01"; }

  void save(std::string& bytes) override {
    append_written(bytes, [&] { save_order(bytes, learner_); });
    append_written(
        bytes, [&] { append_sealed(bytes, kSetMagic, [&] { bytes.append(save_set(set())); }); });
  }

  void load(std::string_view payload) override {
    SavedReader reader(payload);
    const std::string_view order = reader.piece();
    std::shared_ptr<CalibrationSet> set = load_set(unsealed(kSetMagic, reader.piece()));
    require_saved(reader.done(), "form");
    require_same_rule(this->set(), *set);
    Learner loaded(OneSet(std::move(set)), abers::fresh(learner_.order()));
    load_order(loaded, order, {}, [](const Nothing&) {});
    learner_ = std::move(loaded);
  }

 private:
  using Learner = OrderedSet<OneSet, Nothing>;

  CalibrationSet& set() const { return learner_.sets().set(); }

  void forecast(const ModelStep& step, double* out) const {
    const auto [p0, p1] = set().predict(score(step.scores[0]), step.weight, step.time);
    out[0] = p0;
    out[1] = p1;
    out[2] = merged(p0, p1);
  }

  Learner learner_;
};

// Columns of a batch, a row a step.
struct ModelColumns {
  const std::uint8_t* kinds;
  const double* scores;         // a row of the model's width each
  const double* labels;         // numbers of classes
  const double* times;          // none if calibrators do not forget by time
  const std::int64_t* numbers;  // none if predictions change nothing
  const std::int64_t* moments;  // none if labels are not taught by age
  const std::int64_t* clocks;   // likewise
  double* forecasts;            // likewise; NaN where nothing is predicted
  std::int64_t* sizes;  // labels that each prediction rests on; of other steps those after it

  ModelStep step(std::size_t row, std::size_t width) const {
    return {kinds[row],
            scores + row * width,
            static_cast<std::int64_t>(labels[row]),
            kOne,
            times ? times[row] : std::nan(""),
            numbers ? numbers[row] : -1,
            moments ? moments[row] : 0,
            clocks ? clocks[row] : kNoClock};
  }

  ModelForecast forecast(std::size_t row, std::size_t width) const {
    double* const values = forecasts + row * width;
    std::fill_n(values, width, std::nan(""));
    return {values};
  }
};

// The step that was refused: its model, and its place among the rows of that.
using Refused = std::pair<std::size_t, std::size_t>;

// Runs the rows of one model; where one is refused the model is as it was before them.
inline std::optional<std::size_t> run_group(Model& model, std::span<const std::int64_t> rows,
                                            const ModelColumns& columns) {
  constexpr std::int64_t full = std::int64_t{1} << 57;  // half of the least limit of a set
  const auto more = static_cast<std::int64_t>(rows.size()) * kOne;
  std::optional<std::string> saved;
  if (model.total() > full - more) model.save(saved.emplace());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto row = static_cast<std::size_t>(rows[i]);
    ModelForecast found = columns.forecast(row, model.forecast_width());
    if (!model.step(columns.step(row, model.score_width()), found)) {
      if (saved) model.load(*saved);
      return i;
    }
    columns.sizes[row] = columns.kinds[row] == kPredict ? found.labels : model.size();
  }
  return std::nullopt;
}

// Runs each model on its rows, order[offsets[g]] to order[offsets[g + 1] - 1]; models after a
// refused step do not run.
inline std::optional<Refused> run_models(const std::vector<Model*>& models,
                                         std::span<const std::int64_t> order,
                                         std::span<const std::int64_t> offsets,
                                         const ModelColumns& columns) {
  for (std::size_t g = 0; g < models.size(); ++g) {
    if (g + 2 < models.size()) models[g + 2]->fetch();
    if (g + 1 < models.size()) models[g + 1]->fetch_parts();
    const auto first = static_cast<std::size_t>(offsets[g]);
    const auto rows = order.subspan(first, static_cast<std::size_t>(offsets[g + 1]) - first);
    if (const auto refused = run_group(*models[g], rows, columns)) return Refused{g, *refused};
  }
  return std::nullopt;
}

inline std::string save_model(Model& model) {
  std::string bytes;
  append_sealed(bytes, model.magic(), [&] { model.save(bytes); });
  return bytes;
}

inline void load_model(Model& model, std::string_view blob) {
  model.load(unsealed(model.magic(), blob));
}

}  // namespace abers
