// Log losses of raw and served probabilities, and what bounds the loss that was saved; see `Losses`
// in tests/oracles/answer_sums.py, and abers/monitoring/answers/period.py for the proof.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "answer_groups.hpp"
#include "experts.hpp"
#include "saved_fields.hpp"

namespace abers {

// A probability that is served, divided by the raw one.
inline double served_to_raw(double served, double raw) {
  if (raw > 0.0) return served / raw;
  return served > 0.0 ? std::numeric_limits<double>::infinity() : 1.0;
}

// What one label adds: losses; and what it saved, no more than `kRange` above the least, and no
// less than `kRange` below the most, that it could have saved.
struct LossTerms {
  static constexpr double kRange = 6.0;  // nats

  struct End {
    double saved = 0.0, square = 0.0;
    bool open = false;  // there is no least, or no most
  };

  ByView<double> losses{};
  ByView<bool> infinite{};
  End low, high;

  // `came` are the probabilities of what came; `least` and `most` the ratios of served to raw
  // probability, of all that could come.
  static LossTerms of(const ByView<double>& came, double least, double most) {
    LossTerms terms;
    for (std::size_t view = 0; view < kViews; ++view) {
      terms.infinite[view] = !(came[view] > 0.0);
      if (!terms.infinite[view]) terms.losses[view] = -elementary::logarithm(came[view]);
    }
    const double ratio = served_to_raw(came[1], came[0]);
    const double low = logarithm(least), high = logarithm(most);
    double saved = ratio == least ? low : high;
    if (ratio != least && ratio != most) saved = logarithm(ratio);
    terms.low.open = !(low > -std::numeric_limits<double>::infinity());
    if (!terms.low.open) terms.low = within(std::min(saved, low + kRange), low, low + kRange);
    terms.high.open = !(high < std::numeric_limits<double>::infinity());
    if (!terms.high.open) terms.high = within(std::max(saved, high - kRange), high - kRange, high);
    return terms;
  }

 private:
  // Squares are those of the distance from a guess: 0, or the end of the range next to it.
  static End within(double saved, double least, double most) {
    const double distance = saved - std::clamp(0.0, least, most);
    return {saved, distance * distance, false};
  }

  static double logarithm(double ratio) {
    if (!(ratio > 0.0)) return -std::numeric_limits<double>::infinity();
    return ratio < std::numeric_limits<double>::infinity() ? elementary::logarithm(ratio) : ratio;
  }
};

struct LossSums {
  struct End {
    double saved = 0.0, squares = 0.0;
    std::int64_t open = 0;  // labels without this end

    void add(const LossTerms::End& one) {
      saved += one.saved;
      squares += one.square;
      open += one.open;
    }
  };

  ByView<double> losses{};  // sums of those that are finite
  ByView<std::int64_t> infinite{};
  End low, high;

  void add(const LossTerms& row) {
    for (std::size_t view = 0; view < kViews; ++view) {
      losses[view] += row.losses[view];
      infinite[view] += row.infinite[view];
    }
    low.add(row.low);
    high.add(row.high);
  }

  template <class Self, class F>
  static void fields(Self& one, F&& each) {
    each(one.losses);
    each(one.infinite);
    for (auto* const end : {&one.low, &one.high}) {
      each(end->saved);
      each(end->squares);
      each(end->open);
    }
  }

  void check(std::int64_t labels) const {
    constexpr double largest = 1500.0;  // above the logarithm of any ratio, and any loss
    const double most = static_cast<double>(labels) * largest;
    for (std::size_t view = 0; view < kViews; ++view) {
      require_saved(std::fabs(losses[view]) <= most, "losses");
      require_saved(infinite[view] >= 0 && infinite[view] <= labels, "infinite losses");
    }
    for (const End& one : {low, high}) {
      require_saved(std::fabs(one.saved) <= most, "saved losses");
      require_saved(one.squares >= 0.0 && one.squares <= most * largest, "saved losses");
      require_saved(one.open >= 0 && one.open <= labels, "saved losses");
    }
  }
};

}  // namespace abers
