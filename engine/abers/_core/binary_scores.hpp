// Scores of forecasts of a binary label, and the windows in which they are counted; see
// tests/oracles/tally.py.
//
// Sums are taken in the order of the rows, one term after the other.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>

#include "experts.hpp"
#include "group_sums.hpp"
#include "prefetch.hpp"
#include "saved_bytes.hpp"
#include "tally.hpp"

namespace abers {

// Of one view.
struct BinaryScores {
  static constexpr std::size_t kSums = 2 + kBins;        // log losses, squares; forecasts of bins
  static constexpr std::size_t kCounts = 1 + 2 * kBins;  // infinite losses; labels and ones of bins

  std::array<double, kSums> sums{};
  std::array<std::int64_t, kCounts> counts{};
  double widths = 0.0;  // of the intervals that the forecasts had
  Tally tally;

  void add(double p, bool label) {
    const double of_label = label ? p : 1.0 - p, y = label ? 1.0 : 0.0;
    if (of_label > 0.0) {
      sums[0] -= elementary::logarithm(of_label);
    } else {
      ++counts[0];
    }
    sums[1] += (y - p) * (y - p);
    const std::size_t bin = bin_of(p);
    sums[2 + bin] += p;
    ++counts[1 + bin];
    counts[1 + kBins + bin] += label;
    tally.add(p, label);
  }

  std::string save() const {
    std::string bytes;
    for (const double one : sums) append(bytes, one);
    for (const std::int64_t one : counts) append(bytes, one);
    append(bytes, widths);
    append_piece(bytes, tally.save());
    return bytes;
  }

  // std::invalid_argument unless labels with forecasts can have these sums.
  void require_sound() const {
    constexpr double largest_loss = 745.2;  // nats, above that of the smallest probability
    constexpr double rounded = 1.0 + 1e-9;  // sums of many numbers up to 1 may be a little more
    std::int64_t labels = 0;
    for (std::size_t k = 0; k < kBins; ++k) {
      const std::int64_t count = counts[1 + k], positives = counts[1 + kBins + k];
      const double most = static_cast<double>(count) * rounded;
      require_saved(0 <= count && count <= kMaxCount, "counts of bins");
      require_saved(0 <= positives && positives <= count, "labels of bins");
      require_saved(0.0 <= sums[2 + k] && sums[2 + k] <= most, "forecasts of bins");
      labels += count;
    }
    const auto n = static_cast<double>(labels);
    require_saved(0 <= counts[0] && counts[0] <= labels, "infinite losses");
    require_saved(0.0 <= sums[0] && sums[0] <= n * largest_loss, "log losses");
    require_saved(0.0 <= sums[1] && sums[1] <= n * rounded, "squares");
  }

  // Only what `save` wrote.
  static BinaryScores load(std::string_view bytes) {
    BinaryScores scores;
    SavedReader reader(bytes);
    for (double& one : scores.sums) one = reader.take<double>();
    for (std::int64_t& one : scores.counts) one = reader.take<std::int64_t>();
    scores.widths = reader.take<double>();
    scores.tally = Tally::load(reader.piece());
    require_saved(reader.done(), "form");
    return scores;
  }
};

// How often protected probabilities left their intervals.
struct OutsideCount {
  std::int64_t labels = 0, outside = 0;

  void add(bool is_outside) {
    ++labels;
    outside += is_outside;
  }
};

// Counts the labels of a stream in windows of one size, and the times of those in the present one.
struct WindowCounter {
  static constexpr std::int64_t kNoFirst = std::numeric_limits<std::int64_t>::max();
  static constexpr std::int64_t kNoLast = std::numeric_limits<std::int64_t>::min();

  std::int64_t size = 1, most = 1;  // labels of a window, and number of windows
  std::int64_t count = 0;
  std::int64_t first = kNoFirst, last = kNoLast;

  // Returns whether the label completes a window; windows become larger where all are full.
  bool add(std::int64_t time) {
    while (count >= size * most) size *= 2;
    first = std::min(first, time);
    last = std::max(last, time);
    return ++count % size == 0;
  }

  // Begins another window.
  void begin() {
    first = kNoFirst;
    last = kNoLast;
  }
};

// Settled rows of a batch; none of what is null there.
struct SettledColumns {
  const double* labels;
  const double* calibrated;
  const double* raw;
  const double* widths;
  const std::uint8_t* outside;
  const std::int64_t* times;
};

// What watches one model; null where its rows have no such column.
struct Watched {
  BinaryScores* calibrated;
  BinaryScores* raw;
  OutsideCount* outside;
  WindowCounter* window;

  // Fetches what rows change into the cache.
  void fetch() const {
    for (const BinaryScores* const one : {calibrated, raw}) {
      if (one) prefetch(*one);
    }
    if (outside) prefetch(*outside);
    prefetch(*window);
  }

  // Adds rows; `closes()` at the end of each window.
  template <class Closes>
  void add(std::span<const std::int64_t> rows, const SettledColumns& columns,
           const Closes& closes) const {
    for (const std::int64_t one : rows) {
      const auto row = static_cast<std::size_t>(one);
      const bool label = columns.labels[row] == 1.0;
      calibrated->add(columns.calibrated[row], label);
      calibrated->widths += columns.widths[row];
      if (raw) raw->add(columns.raw[row], label);
      if (outside) outside->add(columns.outside[row] != 0);
      if (window->add(columns.times[row])) {
        closes();
        window->begin();
      }
    }
  }
};

}  // namespace abers
