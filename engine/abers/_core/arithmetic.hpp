// Exact arithmetic of the cumulative sum diagram.
//
// Every coordinate is an integer, every comparison of slopes a cross product that
// cannot overflow, and a probability is rounded once, when it leaves.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

namespace abers {

__extension__ using int128 = __int128;
__extension__ using uint128 = unsigned __int128;

constexpr int kOneBits = 30;
constexpr std::int64_t kOne = std::int64_t{1} << kOneBits;  // the weight 1 in fixed point

// Unit weights: plain counts, below 2^31, so that products and their differences fit 64 bits.
struct Counted {
  using Stored = std::uint32_t;
  using Sum = std::int64_t;
  using Product = std::int64_t;
  static constexpr std::int64_t kLimit = (std::int64_t{1} << 31) - 2;
  static constexpr int kShift = kOneBits;  // from counts to fixed point
  static constexpr bool kShares = true;    // no slope is above 1
};

// Any weights: multiples of 2^-30, below 2^63 in all; products need 128 bits.
struct Weighted {
  using Stored = std::int64_t;
  using Sum = std::int64_t;
  using Product = int128;
  static constexpr int kShift = 0;
  static constexpr bool kShares = true;
};

// Observations of weight 1 with any labels of 0 or more, which are below 2^62 in all.
struct Summed {
  using Stored = std::int64_t;
  using Sum = std::int64_t;
  using Product = int128;
  static constexpr bool kShares = false;
};

// A point of the diagram, and the score of the group that it ends.
template <class A>
struct Point {
  typename A::Sum x;  // cumulative weight
  typename A::Sum y;  // cumulative weight of label 1, or sum of labels
  double score;
};

// A direction to the right; its slope is dy / dx.
template <class A>
struct Direction {
  typename A::Product dx;
  typename A::Product dy;
};

template <class A>
Direction<A> between(const Point<A>& from, const Point<A>& to) {
  using Product = typename A::Product;  // wide first: a query's own weight may reach beyond Sum
  return {static_cast<Product>(to.x) - from.x, static_cast<Product>(to.y) - from.y};
}

// Sign of slope(first) - slope(second).
template <class A>
typename A::Product compare(const Direction<A>& first, const Direction<A>& second) {
  return first.dy * second.dx - second.dy * first.dx;
}

// Slope of an edge of the hull, nearly.
template <class A>
double steepness(const Direction<A>& edge) {
  using Sum = typename A::Sum;
  return static_cast<double>(static_cast<Sum>(edge.dy)) /
         static_cast<double>(static_cast<Sum>(edge.dx));
}

// The double nearest to num / den, ties to even; 0 <= num < 2^64, 0 < den < 2^64.
inline double rounded_ratio(std::int64_t num, std::int64_t den) {
  return static_cast<double>(num) / static_cast<double>(den);  // both exact: counts are < 2^53
}

inline double rounded_ratio(int128 num, int128 den) {
  if (num == 0) return 0.0;
  const auto n = static_cast<std::uint64_t>(num);
  const auto d = static_cast<std::uint64_t>(den);
  // Scale so that the quotient has at least 55 bits (and not more than n has, or 56: its lead is
  // aligned with n's), mark an inexact one in its last bit, and let the conversion round it.
  const int shift = std::max(0, 55 + std::countl_zero(n) - std::countl_zero(d));
  const uint128 scaled = static_cast<uint128>(n) << shift;
  auto quotient = static_cast<std::uint64_t>(scaled / d);
  if (static_cast<uint128>(quotient) * d != scaled) quotient |= 1;
  return std::ldexp(static_cast<double>(quotient), -shift);
}

}  // namespace abers
