// What groups of forecasts show: on which side of the tolerance each is, and all together; see
// tests/oracles/findings.py.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "confidence_sequence.hpp"
#include "experts.hpp"

namespace abers {

struct ForecastGroup {
  double labels = 0.0, observed = 0.0, expected = 0.0, squares = 0.0, least = 0.0, most = 0.0;

  ForecastGroup operator+(const ForecastGroup& other) const {
    return {labels + other.labels,   observed + other.observed, expected + other.expected,
            squares + other.squares, least + other.least,       most + other.most};
  }
};

// In the order of `STATUSES` in abers/monitoring/forecast_groups.py.
enum class Status : std::uint8_t {
  kTrustworthy,
  kTooHigh,
  kTooLow,
  kOverConfident,
  kUnderConfident,
  kNotFound,
};
inline constexpr std::size_t kStatuses = 6;

// Indices of groups; the bins are the last.
inline constexpr std::size_t kAll = 0, kLower = 1, kUpper = 2, kFirstBin = 3;

struct Finding {
  static constexpr std::int64_t kWhole = 3;  // rank of a finding about all forecasts

  Status status = Status::kNotFound;
  std::size_t group = kAll;  // that shows it best
  bool inside = false;       // all main groups are inside the tolerance

  bool outside() const { return status != Status::kTrustworthy && status != Status::kNotFound; }
  bool is_shape() const {
    return status == Status::kOverConfident || status == Status::kUnderConfident;
  }
  // 3 of all forecasts, 2 of one half, 1 of one bin; 0 if not outside.
  std::int64_t rank() const {
    if (!outside()) return 0;
    if (is_shape() || group == kAll) return kWhole;
    return group < kFirstBin ? 2 : 1;
  }
  // A group can be outside in this way.
  bool is_possible() const { return is_shape() ? group == kLower || group == kUpper : outside(); }
  // On which side of the tolerance its group is, if it is outside.
  Status side() const { return is_shape() ? side_of(status, group) : status; }
  // A verdict with a status may stay next to it: it is the same, or a part of it.
  bool agrees(Status with) const {
    if (status == with) return true;
    if (!Finding{with, kUpper}.is_shape() || rank() == kWhole) return false;
    return group >= kFirstBin || status == side_of(with, group);
  }

 private:
  static Status side_of(Status shape, std::size_t half) {
    return (shape == Status::kOverConfident) == (half == kLower) ? Status::kTooLow
                                                                 : Status::kTooHigh;
  }
};

namespace findings {

// Of a level: 1/4 to each of three main groups and 1/40 to each of ten bins, half of it a side.
inline constexpr double kMainShare = 1.0 / 8.0, kBinShare = 1.0 / 80.0;

enum class Side : std::uint8_t { kHigh, kLow, kInside, kUndecided, kEmpty };

// Halves of forecasts with p ~ Beta(2, 5) have this sum of squares after 5,600 labels, when a
// tolerance of 1.25 is about to be established.
inline const ConfidenceSequence& sequence() {
  static const ConfidenceSequence one(500.0, 0.05 / 2.0 * kMainShare, 1.0);
  return one;
}

inline double threshold(double alpha, double share) {
  return -elementary::logarithm(alpha * share);
}

// On which side of the tolerance a group is known to be outside.
inline Side outside(const ForecastGroup& one, double threshold) {
  if (one.observed > one.most) {
    const bool low = sequence().reaches(one.observed - one.most, one.squares, threshold);
    return low ? Side::kLow : Side::kUndecided;
  }
  const bool high = sequence().reaches(one.least - one.observed, one.squares, threshold);
  return high ? Side::kHigh : Side::kUndecided;
}

inline Side side(const ForecastGroup& one, double threshold) {
  if (one.labels == 0.0) return Side::kEmpty;
  if (const Side found = outside(one, threshold); found != Side::kUndecided) return found;
  const double below = one.most - one.observed, above = one.observed - one.least;
  const bool inside = sequence().reaches(below, one.squares, threshold) &&
                      sequence().reaches(above, one.squares, threshold);
  return inside ? Side::kInside : Side::kUndecided;
}

using Sides = std::array<Side, kFirstBin>;

inline Sides main_sides(std::span<const ForecastGroup> groups, double threshold) {
  return {side(groups[kAll], threshold), side(groups[kLower], threshold),
          side(groups[kUpper], threshold)};
}

inline bool all_inside(const Sides& sides) {
  return std::ranges::all_of(sides,
                             [](Side one) { return one == Side::kInside || one == Side::kEmpty; });
}

// The status that the main groups decide, and the group that shows it.
inline Finding of_main(const Sides& sides) {
  const auto [whole, lower, upper] = sides;
  for (const Status shape : {Status::kOverConfident, Status::kUnderConfident}) {
    const bool over = shape == Status::kOverConfident;
    const Side below = over ? Side::kLow : Side::kHigh, above = over ? Side::kHigh : Side::kLow;
    if (upper == above && (lower == Side::kInside || lower == below)) return {shape, kUpper};
    if (lower == below && upper == Side::kInside) return {shape, kLower};
  }
  for (const Side one : {Side::kHigh, Side::kLow}) {
    const Status status = one == Side::kHigh ? Status::kTooHigh : Status::kTooLow;
    if (whole == one || (lower == one && upper == one)) return {status, kAll};
    if (lower == one || upper == one) return {status, lower == one ? kLower : kUpper};
  }
  return {};
}

}  // namespace findings

// What the groups show at the level of all of them together.
inline Finding find(std::span<const ForecastGroup> groups, double alpha) {
  const auto sides = findings::main_sides(groups, findings::threshold(alpha, findings::kMainShare));
  Finding found = findings::of_main(sides);
  found.inside = sides[kAll] == findings::Side::kInside && findings::all_inside(sides);
  if (found.status != Status::kNotFound) return found;
  const double bins = findings::threshold(alpha, findings::kBinShare);
  for (std::size_t k = kFirstBin; k < groups.size(); ++k) {
    const findings::Side side = findings::outside(groups[k], bins);
    if (side == findings::Side::kUndecided) continue;
    const bool high = side == findings::Side::kHigh;
    return {high ? Status::kTooHigh : Status::kTooLow, k, found.inside};
  }
  if (found.inside) found.status = Status::kTrustworthy;
  return found;
}

// Whether the main groups are inside their tolerance, and one of them is not empty.
inline bool are_inside(std::span<const ForecastGroup> groups, double alpha) {
  const auto sides = findings::main_sides(groups, findings::threshold(alpha, findings::kMainShare));
  return findings::all_inside(sides) &&
         std::ranges::find(sides, findings::Side::kInside) != sides.end();
}

// What the ones of a group with these squares may be from the sum of their true probabilities.
inline double margin(double squares, std::size_t group, double alpha) {
  const double share = group < kFirstBin ? findings::kMainShare : findings::kBinShare;
  return findings::sequence().boundary(squares, findings::threshold(alpha, share));
}

}  // namespace abers
