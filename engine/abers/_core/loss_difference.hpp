// What calibration saved: sums of differences of log losses; see `LossDifference` in
// tests/oracles/tally.py.
#pragma once

#include <algorithm>
#include <cstdint>

#include "experts.hpp"

namespace abers {

struct LossDifference {
  static constexpr double kLargest = 3.0;  // nats that a label counts at most

  double total = 0.0, squares = 0.0;
  std::int64_t clipped = 0;  // labels with a larger difference
  std::int64_t count = 0;
  std::int64_t start = 0, until = 0;  // first and latest event time

  // Adds the loss of one forecast minus that of another.
  void add(double first, double second, bool label, std::int64_t time) {
    const auto probability = [label](double p) { return std::max(label ? p : 1.0 - p, kClip); };
    const double difference = elementary::logarithm(probability(second) / probability(first));
    const double within = std::clamp(difference, -kLargest, kLargest);
    total += within;
    squares += within * within;
    clipped += difference != within;
    if (count == 0) start = until = time;
    until = std::max(until, time);
    ++count;
  }
};

}  // namespace abers
