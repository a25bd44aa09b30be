// The delays of the labels of one class; see tests/oracles/teaching_order.py.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>

#include "experts.hpp"
#include "saved_bytes.hpp"

namespace abers {

// Half octaves of 1 + delay.
namespace delay_bins {

inline constexpr std::size_t kCount = 64;

constexpr std::uint64_t root(std::uint64_t square) {
  std::uint64_t found = 0;  // found^2 <= square < (found + 2 bit)^2, for the bit before
  for (std::uint64_t bit = std::uint64_t{1} << 31; bit > 0; bit /= 2) {
    if ((found + bit) * (found + bit) <= square) found += bit;
  }
  return found;
}

// The largest 1 + delay of each: the last integer below 2^((bin + 1) / 2).
constexpr std::array<std::uint64_t, kCount> ends() {
  std::array<std::uint64_t, kCount> found{};
  for (std::size_t i = 0; i < kCount; ++i) {
    found[i] =
        i % 2 == 0 ? root(std::uint64_t{1} << (i + 1)) : (std::uint64_t{1} << (i + 1) / 2) - 1;
  }
  return found;
}
inline constexpr std::array<std::uint64_t, kCount> kEnds = ends();

}  // namespace delay_bins

// The delays of one class.
class ClassDelays {
 public:
  static constexpr std::size_t kBins = delay_bins::kCount;
  static constexpr std::uint32_t kOneLabel = 1 << 16;  // in the counts, which are halved
  static constexpr std::int64_t kHalved = 1024;        // labels after which they are
  static constexpr std::int64_t kRenewed = 16;         // labels after which the quantile is
  static constexpr std::uint64_t kMostCounted = 2 * kHalved * std::uint64_t{kOneLabel};

  static constexpr std::int64_t kLongest = std::int64_t{1} << 32;  // no quantile is longer

  std::int64_t labels() const { return labels_; }

  void add(std::int64_t delay) {
    ++labels_;
    const double size = elementary::logarithm(static_cast<double>(delay + 1));
    sum_ += size;
    squares_ += size * size;
    counts_[bin(delay)] += kOneLabel;
    if (labels_ % kHalved == 0) {
      for (std::uint32_t& count : counts_) count /= 2;
    }
    if (labels_ % kRenewed == 1) renew();
  }

  // The 99 % quantile when it was renewed last, rounded up.
  std::int64_t quantile() const { return longest(quantile_); }

  // Mean and variance of the logarithm of 1 + delay.
  double mean() const { return sum_ / static_cast<double>(labels_); }
  double variance() const {
    return std::max(squares_ / static_cast<double>(labels_) - mean() * mean(), 0.0);
  }

  void save(std::string& bytes) const {
    append(bytes, labels_);
    append(bytes, sum_);
    append(bytes, squares_);
    append(bytes, static_cast<std::uint8_t>(quantile_));
    std::size_t used = kBins;
    while (used > 0 && counts_[used - 1] == 0) --used;
    append(bytes, static_cast<std::uint8_t>(used));
    for (std::size_t i = 0; i < used; ++i) append(bytes, counts_[i]);
  }

  static ClassDelays load(SavedReader& saved) {
    ClassDelays loaded;
    loaded.labels_ = saved.take<std::int64_t>();
    loaded.sum_ = saved.take<double>();
    loaded.squares_ = saved.take<double>();
    loaded.quantile_ = saved.take<std::uint8_t>();
    const std::size_t used = saved.take<std::uint8_t>();
    require_saved(0 <= loaded.labels_ && loaded.labels_ <= kMaxCount, "labels of a class");
    require_saved(loaded.quantile_ < kBins && used <= kBins, "bins of delays");
    std::uint64_t total = 0;
    for (std::size_t i = 0; i < used; ++i) total += loaded.counts_[i] = saved.take<std::uint32_t>();
    require_saved(used == 0 || loaded.counts_[used - 1] > 0, "bins of delays");
    require_saved(total <= kMostCounted, "counts of delays");
    for (const double one : {loaded.sum_, loaded.squares_}) {
      require_saved(std::isfinite(one) && one >= 0.0, "sums of delays");
    }
    if (loaded.labels_ == 0) {
      const bool nothing = loaded.sum_ + loaded.squares_ == 0.0;
      require_saved(nothing && used + loaded.quantile_ == 0, "delays of no label");
    } else {
      require_saved(total > 0, "counts of delays");
    }
    return loaded;
  }

 private:
  static std::size_t bin(std::int64_t delay) {
    const auto size = static_cast<std::uint64_t>(delay) + 1;
    const auto doublings = static_cast<std::size_t>(std::bit_width(size) - 1);
    const auto even = std::min<std::size_t>(2 * doublings, kBins - 2);
    return size > delay_bins::kEnds[even] ? even + 1 : even;
  }

  static std::int64_t longest(std::size_t bin) {
    return static_cast<std::int64_t>(delay_bins::kEnds[bin]) - 1;
  }

  void renew() {
    std::uint64_t total = 0, below = 0;
    for (const std::uint32_t count : counts_) total += count;
    quantile_ = 0;
    // `below` is the count up to and with the bin.
    while (100 * (below += counts_[quantile_]) < 99 * total) ++quantile_;
  }

  std::int64_t labels_ = 0;
  double sum_ = 0.0, squares_ = 0.0;
  std::array<std::uint32_t, kBins> counts_{};
  std::size_t quantile_ = 0;  // its bin
};

}  // namespace abers
