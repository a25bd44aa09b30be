// Calibration sets and their mixture as one calibrator; see tests/oracles/protection.py.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "aggregation.hpp"
#include "calibration_set.hpp"
#include "step.hpp"

namespace abers {

inline constexpr double kShrink = 30.0;  // observations that the raw probability counts as
inline constexpr double kNarrowest = 1e-9;
inline constexpr double kLeastMerged = 0x1p-53;

// The merge of an interval, drawn to the raw probability where the interval is wide.
inline double shrunk(double p0, double p1, double raw) {
  const double evidence = 1.0 / std::max(p1 - p0, kNarrowest) - 1.0;
  const double merged = std::min(std::max(p1 / (1.0 - p0 + p1), kLeastMerged), 1.0 - kLeastMerged);
  return (evidence * merged + kShrink * raw) / (evidence + kShrink);
}

struct ProtectedStep {
  std::uint8_t kind;
  double score;
  double raw;
  bool label;
  std::int64_t weight;
  double time;  // NaN for none
  std::int64_t number;
};

struct ProtectedForecast {
  double p0 = std::nan("");
  double p1 = std::nan("");
  double p = std::nan("");
};

class Protection {
 public:
  // The first set has event times, and its intervals are returned; to the others the time of an
  // observation is the number of predictions before it.
  Protection(Aggregation& mixture, std::vector<CalibrationSet*> sets, std::int64_t positives)
      : positives_(positives), mixture_(mixture), sets_(std::move(sets)), given_(mixture.given()) {
    if (sets_.size() + 1 != mixture.given()) throw std::invalid_argument("other experts");
  }

  std::int64_t positives() const { return positives_; }
  std::int64_t held() const { return sets_.front()->size(); }

  // False, with nothing changed, if a set would become too heavy.
  bool step(const ProtectedStep& step, ProtectedForecast& out) {
    if (step.kind == kExpire) {
      mixture_.expire(step.number);
      return true;
    }
    if (step.kind == kRemove) throw std::invalid_argument("nothing is removed");
    const Lanes& lanes = mixture_.lanes();
    const std::optional<Lanes::Lane> lane = lanes.find(step.number);
    const auto moment = static_cast<double>(lane ? lanes.moment(*lane) : lanes.moment());
    if (step.kind == kPredict) {
      forecast(step, moment, out);
      out.p = mixture_.predict(given_.data(), step.number);
      return true;
    }
    for (std::size_t k = 0; k < sets_.size(); ++k) {
      if (!sets_[k]->takes(step.weight, time(k, step, moment))) return false;
    }
    ProtectedForecast unseen;
    if (!lane) forecast(step, moment, unseen);
    for (std::size_t k = 0; k < sets_.size(); ++k) {
      sets_[k]->learn(step.score, step.label, step.weight, time(k, step, moment));
    }
    mixture_.learn(given_.data(), step.label, step.number);
    positives_ += step.label;
    return true;
  }

 private:
  static double time(std::size_t k, const ProtectedStep& step, double moment) {
    return k == 0 ? step.time : moment;
  }

  void forecast(const ProtectedStep& step, double moment, ProtectedForecast& out) {
    given_[0] = step.raw;
    for (std::size_t k = 0; k < sets_.size(); ++k) {
      const auto [p0, p1] = sets_[k]->predict(step.score, step.weight, time(k, step, moment));
      given_[k + 1] = shrunk(p0, p1, step.raw);
      if (k == 0) {
        out.p0 = p0;
        out.p1 = p1;
      }
    }
  }

  std::int64_t positives_;
  Aggregation& mixture_;
  std::vector<CalibrationSet*> sets_;
  std::vector<double> given_;
};

}  // namespace abers
