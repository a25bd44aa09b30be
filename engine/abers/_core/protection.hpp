// A calibration set and a mixture of methods as one calibrator; see tests/oracles/protection.py.
#pragma once

#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "calibration_set.hpp"
#include "method_mixture.hpp"
#include "model.hpp"
#include "ordered_set.hpp"
#include "prefetch.hpp"
#include "step.hpp"
#include "teaching_order.hpp"

namespace abers {

// What scores say by themselves; in the order of `Kind` in abers/calibration/raw_probability.py.
enum class Scores : std::uint8_t { kProbability, kLogit, kAny };

// Observations are numbered in the order of their predictions for the order of teaching; a number
// of the caller names one only while it waits.
class Protection final : public Model {
 public:
  using Kept = Methods::Kept;

  Protection(std::shared_ptr<CalibrationSet> set, Scores scores, double raw_weight,
             Teaching order = TeachingOrder())
      : scores_(scores), mixture_(raw_weight), learner_(std::move(set), std::move(order)) {}

  Scores scores() const { return scores_; }
  double raw_weight() const { return mixture_.lanes().prior().front(); }
  MethodMixture& mixture() { return mixture_; }
  CalibrationSet& set() const { return learner_.set(); }
  const std::shared_ptr<CalibrationSet>& shared_set() const { return learner_.shared_set(); }

  std::int64_t size() const override { return set().size(); }
  std::int64_t total() const override { return learner_.total(); }
  std::int64_t last() const override { return mixture_.lanes().last(); }

  bool step(const ModelStep& step, ModelForecast& out) override {
    switch (step.kind) {
      case kPredict:
        advance(step.clock);
        predict(step, out);
        return true;
      case kLearn:
        if (!learn(step)) return false;
        advance(step.clock);  // labels of one moment are taught in the order of observations
        return true;
      case kExpire:
        advance(step.clock);
        expire(step.number);
        return true;
      default:
        throw std::invalid_argument("nothing is removed");
    }
  }

  void fetch() const override { prefetch(*this); }

  void fetch_parts() const override {
    prefetch(set());
    mixture_.fetch();
  }

  std::unique_ptr<Model> fresh() const override {
    return std::make_unique<Protection>(set().fresh(), scores_, raw_weight(),
                                        abers::fresh(learner_.order()));
  }

  std::string_view magic() const override { return "abersPV\x01"; }
  void save(std::string& bytes) override;                              // in protection_codec.hpp
  void load(std::string_view payload) override;                        // likewise
  static std::unique_ptr<Protection> loaded(std::string_view payload,  // likewise
                                            Teaching empty = TeachingOrder());

 private:
  void save_head(std::string& bytes);  // likewise
  void require_order() const;          // likewise

  double raw(double score) const {
    if (scores_ == Scores::kProbability) return clipped(score);
    if (scores_ == Scores::kLogit) return clipped(elementary::logistic(score));
    const auto positives = static_cast<double>(positives_);  // the share, one of each label added
    return clipped((positives + 1.0) / (static_cast<double>(mixture_.taught()) + 2.0));
  }

  Kept forecast(const ModelStep& step, ModelForecast& out) const {
    out.labels = size();
    std::tie(out.p0, out.p1) = set().predict(step.score, step.weight, step.time);
    return mixture_.methods().forecast(raw(step.score), out.p0, out.p1);
  }

  void predict(const ModelStep& step, ModelForecast& out) {
    const Kept kept = forecast(step, out);
    if (const auto lane = mixture_.lanes().find(step.number)) {
      out.p = mixture_.served(*lane);
      return;
    }
    out.p = mixture_.served(kept);
    if (step.number >= 0) issue(kept, step);
  }

  Lanes::Lane issue(const Kept& kept, const ModelStep& step) {
    const std::int64_t number = mixture_.lanes().moment();
    const Lanes::Lane lane = mixture_.issue(kept, step.number);
    learner_.predict(number, step.moment, [this](const auto& lesson) { teach(lesson); });
    distrust();
    return lane;
  }

  void advance(std::int64_t clock) {
    learner_.advance(clock, [this](const auto& lesson) { teach(lesson); });
  }

  bool learn(const ModelStep& step) {
    if (!learner_.takes(step.weight, step.time)) return false;
    std::optional<Lanes::Lane> lane = mixture_.lanes().find(step.number);
    if (!lane && step.number >= 0) {  // the methods know nothing of it
      set().learn(step.score, step.label, step.weight, step.time);
      count(step.label);
      return true;
    }
    ModelForecast unseen;
    if (!lane) lane = issue(forecast(step, unseen), step);
    const std::int64_t moment = mixture_.lanes().moment(*lane);
    const Kept kept = mixture_.arrive(*lane, step.label);
    learner_.label(moment, {step.score, step.label, step.weight, step.time, kept},
                   [this](const auto& lesson) { teach(lesson); });
    distrust();
    return true;
  }

  void expire(std::int64_t number) {
    const auto lane = mixture_.lanes().find(number);
    if (!lane) return;
    const std::int64_t moment = mixture_.lanes().moment(*lane);
    mixture_.expire(number);
    learner_.expire(moment, [this](const auto& lesson) { teach(lesson); });
  }

  void distrust() {
    if (learner_.one_sided()) mixture_.distrust();
  }

  void teach(const Lesson<Kept>& lesson) {
    mixture_.teach(lesson.kept, lesson.label);
    count(lesson.label);
  }

  void count(bool label) {
    mixture_.count();
    positives_ += label;
  }

  Scores scores_;
  std::int64_t positives_ = 0;  // of the labels that the set learned
  MethodMixture mixture_;
  OrderedSet<Kept> learner_;
};

}  // namespace abers
