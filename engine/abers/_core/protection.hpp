// Calibration sets and a mixture of methods as one calibrator; see tests/oracles/protection.py.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "calibration_sets.hpp"
#include "method_mixture.hpp"
#include "model.hpp"
#include "ordered_set.hpp"
#include "prefetch.hpp"
#include "step.hpp"
#include "teaching_order.hpp"

namespace abers {

// Observations are numbered in the order of their predictions for the order of teaching; a number
// of the caller names one only while it waits.
template <class Sets>
class Protection final : public Model {
 public:
  using Pool = MethodMixture<typename Sets::Methods>;
  using Kept = typename Pool::Kept;
  using Learner = OrderedSet<Sets, Kept>;

  Protection(Sets sets, Scores scores, double raw_weight, Teaching order)
      : scores_(scores),
        mixture_(raw_weight, sets.methods()),
        learner_(std::move(sets), std::move(order)),
        unseen_(learner_.sets().forecast_width()) {}

  Scores scores() const { return scores_; }
  double raw_weight() const { return mixture_.lanes().prior().front(); }
  Pool& mixture() { return mixture_; }
  const Sets& sets() const { return learner_.sets(); }

  std::size_t score_width() const override { return sets().score_width(); }
  std::size_t forecast_width() const override { return sets().forecast_width(); }
  std::size_t classes() const override { return sets().classes(); }

  // Labels that came.
  std::int64_t learned() const {
    return mixture_.taught() + static_cast<std::int64_t>(learner_.held().size());
  }

  std::int64_t size() const override { return sets().size(); }
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
    sets().fetch();
    mixture_.fetch();
  }

  std::unique_ptr<Model> fresh() const override {
    return std::make_unique<Protection>(sets().fresh(), scores_, raw_weight(),
                                        abers::fresh(learner_.order()));
  }

  // No observation waits for its label any more.
  void expire_all() {
    for (const std::int64_t number : mixture_.lanes().numbers()) expire(number);
  }

  // There is one class more; no observation may wait for its label.
  void grow(SharedSet set) {
    if (!learner_.held().empty()) throw std::invalid_argument("labels wait to be taught");
    mixture_.grow();
    learner_.grow(std::move(set));
    unseen_.resize(forecast_width());
  }

  std::string_view magic() const override { return Sets::kMagic; }
  void save(std::string& bytes) override;                              // in protection_codec.hpp
  void load(std::string_view payload) override;                        // likewise
  static std::unique_ptr<Protection> loaded(std::string_view payload,  // likewise
                                            std::optional<Teaching> empty = std::nullopt);

 private:
  void save_head(std::string& bytes);  // likewise
  void require_order() const;          // likewise

  // The running share of label 1, one of each label added.
  double share() const {
    const auto positives = static_cast<double>(positives_);
    return (positives + 1.0) / (static_cast<double>(mixture_.taught()) + 2.0);
  }

  Kept forecast(const ModelStep& step, double* out) const {
    return sets().forecast(mixture_.methods(), scores_, share(), step, out);
  }

  void predict(const ModelStep& step, ModelForecast& out) {
    out.labels = size();
    const Kept kept = forecast(step, out.values);
    double* const served = Sets::served(out.values);
    if (const auto lane = mixture_.lanes().find(step.number)) {
      mixture_.serve(*lane, served);
      return;
    }
    mixture_.serve(kept, served);
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
    if (!learner_.takes(step)) return false;
    std::optional<Lanes::Lane> lane = mixture_.lanes().find(step.number);
    if (!lane && step.number >= 0) {  // the methods know nothing of it
      learner_.learn(step);
      count(step.label);
      return true;
    }
    if (!lane) lane = issue(forecast(step, unseen_.data()), step);
    const std::int64_t moment = mixture_.lanes().moment(*lane);
    Kept kept = mixture_.arrive(*lane, static_cast<std::size_t>(step.label));
    learner_.label(moment, learner_.lesson(step, std::move(kept)),
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

  void teach(const typename Learner::Lesson& lesson) {
    mixture_.teach(lesson.kept, lesson.label);
    count(lesson.label);
  }

  void count(std::int64_t label) {
    mixture_.count();
    positives_ += label == 1;
  }

  Scores scores_;
  std::int64_t positives_ = 0;  // those of label 1 that the sets learned
  Pool mixture_;
  Learner learner_;
  std::vector<double> unseen_;  // a forecast that nobody reads
};

}  // namespace abers
