// Tests of binary forecasts and verdicts on them, of one model: see `BinaryTests` in
// tests/oracles/binary_tests.py.
//
// A forecast is bet against when it is predicted, from the labels that had come by then. The
// factors of the bets are taken in the order of the observations, whenever labels come; so are the
// sums of verdicts and losses.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "answer_sums.hpp"
#include "grid_bets.hpp"
#include "group_sums.hpp"
#include "in_order.hpp"
#include "loss_difference.hpp"
#include "prefetch.hpp"
#include "sequential_tests.hpp"
#include "verdict_sequence.hpp"

namespace abers {

inline double won(double bet, double forecast, double label) {
  return label == 1.0 ? bet / forecast : (1.0 - bet) / (1.0 - forecast);
}

// The probability nearest to a bet of those with odds at most so many times off the forecast's.
inline double tolerated(double bet, double p, double tolerance) {
  const double lower = p / (p + (1.0 - p) * tolerance);
  const double upper = p * tolerance / (p * tolerance + (1.0 - p));
  return std::min(std::max(bet, lower), upper);
}

// Steps of observations, a row each: forecasts where one is predicted, labels where these come.
struct TestedSteps {
  const std::uint8_t* kinds;
  const std::int64_t* numbers;
  const std::int64_t* times;
  const double* values;
  std::size_t width;  // of the values: that of each view, and what a label brings with it
  std::int64_t most;  // predictions behind an observation at which it expires
};

// An incident that opened at a step.
struct OpenedIncident {
  std::size_t view, test;
  std::int64_t step;
  Incident incident;
  std::optional<Shift> shift;  // of an alarm
};

class BinaryTests {
 public:
  using Verdicts = VerdictSequence<GroupSums>;
  static constexpr std::size_t kTests = 4;  // of a view, and so many factors
  // What a waiting row has of each view, behind what its label brings with it.
  enum Place : std::size_t { kForecast, kOfAll, kOfRecent, kLabel, kPlaces };

  struct View {
    GridBets bets;
    ViewTests tests;
    std::vector<Verdicts> verdicts;  // on its forecasts; on those of each class
  };

  // Of several classes a label brings more: the probabilities of what came, raw and served; the
  // least and the largest ratio of served to raw probability; and with verdicts on classes, by view
  // the probabilities of each class, and at last the number of the class that came. Losses are
  // compared of the first and the last view.
  BinaryTests(std::vector<View> begun, std::optional<LossDifference> compared, bool several,
              double tolerance, std::int64_t least)
      : views(std::move(begun)),
        losses(compared),
        queue(more(views, several) + kPlaces * views.size(), least),
        answers(tolerance, views.front().verdicts.size()),
        classes_(views.front().verdicts.size() - 1),
        more_(more(views, several)),
        tolerance_(tolerance),
        answered_(answers.parts()) {}

  // Fetches what steps read into the cache, but for its own bytes.
  void fetch_parts() const {
    for (const View& one : views) {
      prefetch(one);
      one.tests.fetch();
      prefetch(one.verdicts.data(), sizeof(Verdicts));
    }
  }

  std::size_t width() const { return views.size() + more_; }

  // Does the steps from one row to another; returns the incidents that opened, by view and test.
  std::vector<OpenedIncident> run(const TestedSteps& steps, std::size_t begin, std::size_t end) {
    std::vector<OpenedIncident> opened;
    for (std::size_t i = begin; i < end; ++i) {
      const double* const value = steps.values + i * steps.width;
      if (Kind{steps.kinds[i]} == Kind::kPredicts && !queue.is_warm()) skip(value);
      queue.step(
          i, Kind{steps.kinds[i]}, steps.numbers[i], steps.times[i], steps.most,
          [&](std::span<double> row) { predict(value, row); },
          [&](std::span<double> row) { learn(value, row); },
          [&](const Released& row) { settle(row, opened); });
    }
    std::ranges::stable_sort(
        opened, {}, [](const OpenedIncident& one) { return std::pair(one.view, one.test); });
    return opened;
  }

  std::vector<View> views;
  std::optional<LossDifference> losses;
  InOrder queue;
  AnswerSums answers;

 private:
  static constexpr std::size_t kLosses = 4;  // numbers of losses that a label brings

  // How many numbers a label brings with it.
  static std::size_t more(const std::vector<View>& views, bool several) {
    if (views.empty()) throw std::invalid_argument("nothing is tested");
    for (const View& one : views) {
      if (one.tests.tests().size() != kTests || one.tests.columns() != 1 || one.verdicts.empty() ||
          one.verdicts.size() != views.front().verdicts.size()) {
        throw std::invalid_argument("views differ");
      }
    }
    const std::size_t classes = views.front().verdicts.size() - 1;
    if (!several && classes > 0) throw std::invalid_argument("two classes have no parts");
    if (!several) return 0;
    return kLosses + (classes > 0 ? classes * views.size() + 1 : 0);
  }

  void skip(const double* forecasts) {
    for (std::size_t view = 0; view < kViews; ++view) {
      answered_.parts.front().p[view] = forecasts[std::min(view, views.size() - 1)] + 0.0;
    }
    set_classes(forecasts + views.size(), false);
    answers.skip(answered_);
  }

  // Adds a row with what its label brought; a view that is missing is as the other.
  void answer(const Released& row) {
    AnswerRow::Part& first = answered_.parts.front();
    for (std::size_t view = 0; view < kViews; ++view) {
      const double* const part =
          row.values.data() + more_ + kPlaces * std::min(view, views.size() - 1);
      first.p[view] = part[kForecast];
      first.y[view] = part[kLabel];
    }
    if (more_ == 0) {
      answered_.set_losses();
    } else {
      answered_.came = {row.values[0], row.values[1]};
      answered_.least = row.values[2];
      answered_.most = row.values[3];
    }
    set_classes(row.values.data(), true);
    answers.add(answered_, row.number, row.time);
  }

  void set_classes(const double* more, bool labelled) {
    for (std::size_t k = 0; k < classes_; ++k) {
      AnswerRow::Part& part = answered_.parts[k + 1];
      for (std::size_t view = 0; view < kViews; ++view) {
        part.p[view] = more[kLosses + classes_ * std::min(view, views.size() - 1) + k];
        part.y[view] = labelled && more[more_ - 1] == static_cast<double>(k) ? 1.0 : 0.0;
      }
    }
  }

  void predict(const double* forecasts, std::span<double> row) {
    for (std::size_t view = 0; view < views.size(); ++view) {
      double* const part = row.data() + more_ + kPlaces * view;
      const GridBets::Bets bets = views[view].bets.bet(forecasts[view]);
      part[kForecast] = forecasts[view] + 0.0;  // -0.0 becomes 0.0, so that no factor is negative
      part[kOfAll] = bets[0];
      part[kOfRecent] = bets[1];
    }
  }

  void learn(const double* labels, std::span<double> row) {
    std::copy_n(labels + views.size(), more_, row.begin());
    for (std::size_t view = 0; view < views.size(); ++view) {
      double* const part = row.data() + more_ + kPlaces * view;
      part[kLabel] = labels[view];
      views[view].bets.learn(part[kForecast], labels[view] == 1.0);
    }
  }

  void settle(const Released& row, std::vector<OpenedIncident>& opened) {
    const auto part = [&](std::size_t view) { return row.values.data() + more_ + kPlaces * view; };
    for (std::size_t view = 0; view < views.size(); ++view) {
      const std::optional<Shift> alarm = test(view, part(view), row, opened);
      if (decide(view, part(view), row, alarm)) views[view].tests.arm();
    }
    if (losses) {
      const double *const first = part(0), *const last = part(views.size() - 1);
      losses->add(first[kForecast], last[kForecast], first[kLabel] == 1.0, row.time);
    }
    answer(row);
  }

  // Gives the factors of a row to the tests of a view; returns the size of an alarm that is raised.
  std::optional<Shift> test(std::size_t view, const double* part, const Released& row,
                            std::vector<OpenedIncident>& opened) {
    const double p = part[kForecast], y = part[kLabel];
    const double factors[kTests] = {
        won(part[kOfAll], p, y), won(part[kOfRecent], p, y),
        won(part[kOfAll], tolerated(part[kOfAll], p, tolerance_), y),
        won(part[kOfRecent], tolerated(part[kOfRecent], p, tolerance_), y)};
    ViewTests& tests = views[view].tests;
    tests.others(factors, row.time, [&](std::size_t test, const Incident& incident) {
      opened.push_back({view, test, row.step, incident, std::nullopt});
    });
    if (!tests.alarms(factors[kTests - 1], {&p, 1}, {&y, 1}, row.time)) return std::nullopt;
    const Shift shift = tests.reported(row.time);
    opened.push_back({view, kTests - 1, row.step, tests.alarm(), shift});
    return shift;
  }

  // Adds a row to the verdicts on a view; at an alarm another block begins behind it. Returns
  // whether the incidents of all verdicts are over: one that opens at a row where another is over
  // keeps that of the view open.
  bool decide(std::size_t view, const double* part, const Released& row,
              const std::optional<Shift>& alarm) {
    std::vector<Verdicts>& verdicts = views[view].verdicts;
    const double* const forecasts = row.values.data() + kLosses + classes_ * view;
    bool turned = verdicts[0].add(part[kForecast], part[kLabel], row.time, row.gap);
    for (std::size_t k = 0; k < classes_; ++k) {
      const bool came = row.values[more_ - 1] == static_cast<double>(k);
      turned |= verdicts[1 + k].add(forecasts[k], came ? 1.0 : 0.0, row.time, row.gap);
    }
    if (alarm) {
      for (Verdicts& one : verdicts) one.restart(row.time, alarm->since);
    }
    return turned && std::ranges::none_of(verdicts, &Verdicts::open);
  }

  std::size_t classes_;
  std::size_t more_;
  double tolerance_;
  AnswerRow answered_;  // the present row
};

// The first step with a forecast or a label that cannot be one; else their number.
inline std::size_t first_refused(const TestedSteps& steps, std::size_t count, std::size_t views) {
  for (std::size_t i = 0; i < count; ++i) {
    const bool predicts = Kind{steps.kinds[i]} == Kind::kPredicts;
    for (std::size_t view = 0; view < views; ++view) {
      const double value = steps.values[i * steps.width + view];
      if (!(predicts ? value >= 0.0 && value <= 1.0 : value == 0.0 || value == 1.0)) return i;
    }
  }
  return count;
}

}  // namespace abers
