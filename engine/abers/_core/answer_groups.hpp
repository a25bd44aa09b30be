// Groups of one view that are fixed before their rows: two halves, and tenths; see `Groups` in
// tests/oracles/answer_sums.py.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "experts.hpp"
#include "findings.hpp"
#include "group_sums.hpp"
#include "saved_fields.hpp"

namespace abers {

inline constexpr std::size_t kViews = 2;  // raw and served
template <class T>
using ByView = std::array<T, kViews>;

// What one label adds to the sums of its groups.
struct GroupTerms {
  double p, y, square, lower, upper;
  std::size_t tenth;

  static GroupTerms of(double p, double y, double tolerance) {
    const double q = 1.0 - p;
    return {p,
            y,
            (y - p) * (y - p),
            p / (p + q * tolerance),
            p * tolerance / (p * tolerance + q),
            bin_of(p)};
  }
};

// What fixes the groups of the next period.
struct GroupHistory {
  static constexpr double kFarthest = 15.01;    // log odds, of a saved cut
  static constexpr double kMostUnits = 0x1p46;  // of so many labels as there can be

  double weight = 0.0, cut = 0.0;     // as of `GroupSums`
  std::array<double, kBins> units{};  // of each tenth

  void add(double p, std::size_t tenth) {
    constexpr double least = 0x1.4875c38cc6b4ap-22;  // log odds of -15
    const double w = p * (1.0 - p), x = elementary::logit(std::clamp(p, least, 1.0 - least));
    weight += w;
    if (w > 0.0) cut += (x - cut) * (w / weight);
    units[tenth] += w;
  }

  template <class Self, class F>
  static void fields(Self& one, F&& each) {
    each(one.weight);
    each(one.cut);
    each(one.units);
  }

  void check() const {
    require_saved(weight >= 0.0 && weight <= kMostUnits && std::fabs(cut) <= kFarthest, "cut");
    for (const double value : units) {
      require_saved(value >= 0.0 && value <= kMostUnits, "units");
    }
  }
};

struct AnswerGroups {
  static constexpr double kFewest = 25.0;  // units of a group of tenths before a window

  double cut = 0.0;                          // from this probability on a row is in the upper half
  std::array<std::uint8_t, kBins> merged{};  // the group of each tenth
  std::array<ForecastGroup, 2> halves{};
  std::array<ForecastGroup, kBins> tenths{};  // by group

  // The cut has two decimals, or as many more as it needs not to be 0 or 1. Tenths of a window are
  // merged from the lowest on until there are enough units, and the rest with the last group; those
  // of a whole stream stay.
  static AnswerGroups after(const GroupHistory& before, bool merges) {
    AnswerGroups groups;
    if (before.weight > 0.0) groups.cut = rounded(elementary::logistic(before.cut));
    double left = 0.0, mine = 0.0;
    for (const double one : before.units) left += one;
    std::uint8_t group = 0;
    // Invariant: `mine` are the units of the present group so far, `left` those of later tenths.
    for (std::size_t k = 0; k < kBins; ++k) {
      groups.merged[k] = group;
      mine += before.units[k];
      left -= before.units[k];
      if (!merges || (mine >= kFewest && left >= kFewest)) {
        ++group;
        mine = 0.0;
      }
    }
    return groups;
  }

  void add(const GroupTerms& row) {
    for (ForecastGroup* const one : {&halves[row.p >= cut], &tenths[merged[row.tenth]]}) {
      one->labels += 1.0;
      one->observed += row.y;
      one->expected += row.p;
      one->squares += row.square;
      one->least += row.lower;
      one->most += row.upper;
    }
  }

  std::size_t size() const { return static_cast<std::size_t>(merged.back()) + 1; }

  template <class Self, class F>
  static void fields(Self& one, F&& each) {
    each(one.cut);
    each(one.merged);
    const auto group = [&](auto& sums) {
      each(sums.labels);
      each(sums.observed);
      each(sums.expected);
      each(sums.squares);
      each(sums.least);
      each(sums.most);
    };
    for (auto& half : one.halves) group(half);
    for (auto& tenth : one.tenths) group(tenth);
  }

  void check(double labels) const {
    require_saved(cut >= 0.0 && cut <= 1.0, "cut");
    require_saved(merged.front() == 0, "tenths");
    for (std::size_t k = 1; k < kBins; ++k) {
      const int step = merged[k] - merged[k - 1];
      require_saved(step == 0 || step == 1, "tenths");
    }
    double in_halves = 0.0, in_tenths = 0.0;
    for (const ForecastGroup& one : halves) in_halves += checked(one);
    for (const ForecastGroup& one : tenths) in_tenths += checked(one);
    require_saved(in_halves == labels && in_tenths == labels, "labels of groups");
    for (std::size_t k = size(); k < kBins; ++k) {
      require_saved(tenths[k].labels == 0.0, "tenths");
    }
  }

 private:
  static double rounded(double p) {
    constexpr double finest = 1e7;
    double found = p;
    for (double scale = 100.0; scale <= finest; scale *= 10.0) {
      found = std::floor(scale * p + 0.5) / scale;
      if (found > 0.0 && found < 1.0) break;
    }
    return found;
  }

  static double checked(const ForecastGroup& one) {
    require_saved(is_count(one.labels) && is_count(one.observed), "labels of groups");
    require_saved(one.observed <= one.labels, "labels of groups");
    for (const double value : {one.expected, one.squares, one.least, one.most}) {
      require_saved(value >= 0.0 && value <= one.labels * kRoundedSum, "sums of groups");
    }
    return one.labels;
  }
};

}  // namespace abers
