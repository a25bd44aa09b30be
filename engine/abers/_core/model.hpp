// A calibrator of the core as streams run many of them at once; see models.hpp.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "arithmetic.hpp"
#include "step.hpp"

namespace abers {

struct ModelStep {
  std::uint8_t kind;
  const double* scores;    // as many as the model has of an observation
  std::int64_t label = 0;  // number of a class
  std::int64_t weight = kOne;
  double time = std::nan("");  // NaN for none
  std::int64_t number = -1;    // -1 for none
  std::int64_t moment = 0;     // event time of the observation; with the clock that labels wait for
  std::int64_t clock = kNoClock;
};

inline constexpr double kLeastMerged = 0x1p-53;

// So that no log loss is infinite.
inline double inside(double merge) {
  return std::min(std::max(merge, kLeastMerged), 1.0 - kLeastMerged);
}

// The probability that is minimax for log loss in an interval.
inline double merged(double p0, double p1) { return inside(p1 / (1.0 - p0 + p1)); }

// Written where something is predicted.
struct ModelForecast {
  double* values;           // as many as the model has of a prediction
  std::int64_t labels = 0;  // that the intervals rest on
};

class Model {
 public:
  Model() = default;
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;
  virtual ~Model() = default;

  virtual std::size_t score_width() const = 0;
  virtual std::size_t forecast_width() const = 0;
  virtual std::size_t classes() const = 0;

  // False, with nothing changed, if a set would become too heavy or does not hold what is removed.
  virtual bool step(const ModelStep& step, ModelForecast& out) = 0;

  virtual std::int64_t size() const = 0;   // observations
  virtual std::int64_t total() const = 0;  // weight of these; of several sets that of the heaviest

  // The most that a label of weight 1 adds to it.
  virtual std::int64_t heaviest() const { return kOne; }

  // The largest number that it knows of an observation; -1 if it knows none.
  virtual std::int64_t last() const = 0;

  // Fetches its own bytes into the cache; then, once these are there, what they point to.
  virtual void fetch() const = 0;
  virtual void fetch_parts() const = 0;

  // An empty model with the same options.
  virtual std::unique_ptr<Model> fresh() const = 0;

  // The first bytes of the saved form.
  virtual std::string_view magic() const = 0;

  // Appends the state in its canonical form.
  virtual void save(std::string& bytes) = 0;

  // Takes over what `save` wrote; std::invalid_argument, with nothing changed, for all else, also
  // the state of a model with other options.
  virtual void load(std::string_view payload) = 0;

 protected:
  Model(Model&&) = default;
  Model& operator=(Model&&) = default;
};

}  // namespace abers
