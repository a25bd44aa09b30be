// The kinds of steps of a calibrator; see abers/arrays.py.
#pragma once

#include <cstdint>

namespace abers {

inline constexpr std::int64_t kNoClock = -(std::int64_t{1} << 61);  // of a model: not known yet

enum Step : std::uint8_t { kPredict = 0, kLearn = 1, kRemove = 2, kExpire = 3 };

}  // namespace abers
