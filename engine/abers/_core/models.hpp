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
#include <utility>
#include <vector>

#include "model.hpp"
#include "seal.hpp"
#include "step.hpp"

namespace abers {

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
  constexpr int128 full = int128{1} << 57;  // half of the least limit of a set
  const int128 more = static_cast<int128>(rows.size()) * model.heaviest();
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
