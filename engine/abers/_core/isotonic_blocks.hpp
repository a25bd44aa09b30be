// The blocks of the isotonic mean of real labels on scores, by pooling adjacent violators.
//
// The contract is that of `abers/reference/isotonic.py`, the definition.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace abers {

// Writes where each block starts, and the sum of its labels; returns how many there are. Scores
// ascend; those that are equal are in one block. Both outputs have room for a block each label.
inline std::size_t isotonic_blocks(std::span<const double> scores, std::span<const double> labels,
                                   std::span<std::int64_t> starts, std::span<double> sums) {
  const std::size_t n = scores.size();
  std::size_t count = 0;
  // Invariant: the first `count` blocks are the regression of the labels so far; means ascend.
  for (std::size_t i = 0; i < n;) {
    std::size_t start = i;
    double sum = 0;
    do sum += labels[i++];
    while (i < n && scores[i] == scores[start]);
    while (count > 0) {
      const auto left = static_cast<std::size_t>(starts[count - 1]);
      // Means are compared without a division, so that whole numbers are exact.
      if (sums[count - 1] * static_cast<double>(i - start) <
          sum * static_cast<double>(start - left)) {
        break;
      }
      sum += sums[--count];
      start = left;
    }
    starts[count] = static_cast<std::int64_t>(start);
    sums[count++] = sum;
  }
  return count;
}

}  // namespace abers
