// Runs steps on a core with buckets of 8 groups, which checks every invariant after each change.
//
// Reads from standard input: the window (8 bytes), and then a Row for each step. Writes the two
// probabilities of each prediction. A broken invariant ends it with the number of the step.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>

#include "calibration_set.hpp"

#ifndef ABERS_CHECK
#error "without ABERS_CHECK buckets are large, and nothing is checked"
#endif

namespace {

#pragma pack(push, 1)
struct Row {
  std::uint8_t step;  // 0 predicts, 1 learns, 2 removes
  std::uint8_t label;
  double score;
  std::int64_t weight;
};
#pragma pack(pop)

template <class T>
bool read(T& value) {
  return std::fread(&value, sizeof value, 1, stdin) == 1;
}

// False if the step is refused.
bool take(abers::CalibrationSet& set, const Row& row) {
  const double never = std::nan("");
  switch (row.step) {
    case abers::kPredict: {
      const auto [p0, p1] = set.predict(row.score, row.weight, never);
      const double both[] = {p0, p1};
      return std::fwrite(both, sizeof both, 1, stdout) == 1;
    }
    case abers::kLearn:
      return set.learn(row.score, row.label, row.weight, never);
    default:
      return set.remove(row.score, row.label, row.weight);
  }
}

}  // namespace

int main() {
  std::uint64_t window = 0;
  if (!read(window)) return 2;
  abers::CalibrationSet set(window, 0.0, 0.0);
  Row row;
  for (std::size_t number = 0; read(row); ++number) {
    try {
      if (!take(set, row)) {
        std::fprintf(stderr, "step %zu is refused\n", number);
        return 1;
      }
    } catch (const abers::CheckFailure& failure) {
      std::fprintf(stderr, "step %zu: %s\n", number, failure.what());
      return 1;
    }
  }
  return 0;
}
