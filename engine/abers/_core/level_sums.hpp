// Sums over labels that should be counted as often as a level says; see `LevelSums` in
// tests/oracles/level_sums.py.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "findings.hpp"
#include "group_sums.hpp"
#include "saved_bytes.hpp"

namespace abers {

class LevelSums {
 public:
  static constexpr std::size_t kSize = 4;  // labels, most, ties, squares
  static constexpr std::size_t kGroups = kFirstBin;
  using Groups = std::array<ForecastGroup, kGroups>;

  LevelSums(double level, const Tolerances& tolerances) : level_(level), tolerances_(tolerances) {}

  // A label that is counted so far at least, and at most.
  void add(double least, double most) {
    const double below = least - level_, above = most - level_;
    sums_[0] += 1.0;
    sums_[1] += most;
    sums_[2] += most - least;
    sums_[3] += std::max(below * below, above * above);
  }

  std::span<const double> sums() const { return sums_; }
  const Tolerances& tolerances() const { return tolerances_; }
  std::int64_t labels() const { return static_cast<std::int64_t>(sums_[0]); }
  double cut() const { return level_; }

  // The sums of all labels, of an empty lower half, and of the upper half.
  Groups groups() const { return main_groups(0); }

  Groups main_groups(std::size_t tolerance) const {
    const auto [n, most, ties, squares] = sums_;
    const double p = level_, t = tolerances_[tolerance];
    const double lower = p / (p + (1.0 - p) * t), upper = p * t / (p * t + 1.0 - p);
    const ForecastGroup one{n, most, n * p, squares, n * lower, n * upper + ties};
    return {one, ForecastGroup{}, one};
  }

  // Whether all labels can neither be outside the tolerance nor inside it; there are no bins.
  bool is_undecided(double main, double /*bins*/) const {
    const ForecastGroup one = main_groups(0)[kAll];
    const double below = one.most - one.observed, above = one.observed - one.least;
    const double nearest = std::min(below, above);  // negative if they are outside
    return nearest * nearest < 2.0 * one.squares * main;
  }

  void clear() { sums_.fill(0.0); }

  void add(const LevelSums& other) {
    require_saved(other.level_ == level_ && other.tolerances_ == tolerances_, "levels differ");
    for (std::size_t i = 0; i < kSize; ++i) sums_[i] += other.sums_[i];
  }

  // std::invalid_argument, with nothing changed, unless these can be sums of labels.
  void load(std::span<const double> sums) {
    require_saved(sums.size() == kSize && is_count(sums[0]), "labels of a level");
    for (const double one : sums) {
      require_saved(one >= 0.0 && one <= sums[0] * kRoundedSum, "sums of a level");
    }
    std::ranges::copy(sums, sums_.begin());
  }

  void save(std::string& bytes) const {
    append(bytes, level_);
    for (const double one : sums_) append(bytes, one);
  }

  void load(SavedReader& reader) {
    require_saved(reader.take<double>() == level_, "level");
    std::array<double, kSize> sums;
    for (double& one : sums) one = reader.take<double>();
    load(sums);
  }

 private:
  double level_;
  Tolerances tolerances_;
  std::array<double, kSize> sums_{};
};

}  // namespace abers
