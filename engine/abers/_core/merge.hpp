// Calibration sets by themselves as one calibrator of a stream, which serves merged probabilities;
// see tests/oracles/ordered_calibrator.py.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "calibration_sets.hpp"
#include "model.hpp"
#include "ordered_set.hpp"
#include "ordered_set_codec.hpp"
#include "prefetch.hpp"
#include "step.hpp"

namespace abers {

// Observations have numbers, which ascend.
template <class Sets>
class Merge final : public Model {
 public:
  Merge(Sets sets, Teaching order) : learner_(std::move(sets), std::move(order)) {}

  std::size_t score_width() const override { return sets().score_width(); }
  std::size_t forecast_width() const override { return sets().forecast_width(); }
  std::size_t classes() const override { return sets().classes(); }

  std::int64_t size() const override { return sets().size(); }
  std::int64_t total() const override { return learner_.total(); }
  std::int64_t heaviest() const override { return sets().heaviest(); }
  std::int64_t last() const override { return last_number(learner_.order()); }

  bool step(const ModelStep& step, ModelForecast& out) override {
    const auto taught = [](const Lesson&) {};
    switch (step.kind) {
      case kPredict:
        learner_.advance(step.clock, taught);
        out.labels = size();
        sets().merge(step, out.values);
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
  void fetch_parts() const override { sets().fetch(); }

  std::unique_ptr<Model> fresh() const override {
    return std::make_unique<Merge>(sets().fresh(), abers::fresh(learner_.order()));
  }

  std::string_view magic() const override { return Sets::kMergeMagic; }

  void save(std::string& bytes) override {
    append_written(bytes, [&] { save_order(bytes, learner_); });
    append_sets(bytes, sets().sets());
  }

  void load(std::string_view payload) override {
    SavedReader reader(payload);
    const std::string_view order = reader.piece();
    Sets loaded_sets(take_sets(reader));
    require_saved(loaded_sets.score_width() == score_width(), "another number of scores");
    require_same_rule(*sets().sets().front(), *loaded_sets.sets().front());
    Learner loaded(std::move(loaded_sets), abers::fresh(learner_.order()));
    Lesson blank;
    blank.given = sets().blank();
    load_order(loaded, order, blank, [](const Nothing&) {});
    learner_ = std::move(loaded);
  }

 private:
  using Learner = OrderedSet<Sets, Nothing>;
  using Lesson = typename Learner::Lesson;

  const Sets& sets() const { return learner_.sets(); }

  Learner learner_;
};

}  // namespace abers
