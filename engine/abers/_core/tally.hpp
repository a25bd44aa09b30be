// Forecasts with labels in the cells of a fixed grid; see `Tally` in tests/oracles/tally.py.
//
// All sums are integers, so that neither the order of the forecasts nor their batches make a
// difference. Only cells that have a forecast take memory.
//
// Invariants: bit k of `has_` says whether cell k has a forecast; `cells_` has those that do, in
// ascending order.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "arithmetic.hpp"
#include "experts.hpp"
#include "saved_bytes.hpp"

namespace abers {

class Tally {
 public:
  static constexpr std::int64_t kHalf = 64;  // eighths of log odds on each side of 0
  static constexpr std::size_t kParts = 20;  // of [0, 1]; at their ends cells end too
  static constexpr std::size_t kEdges = 2 * kHalf + 1 + kParts - 2;  // 1/2 is an edge of both
  static constexpr std::size_t kCells = kEdges + 1;

  struct Cell {
    uint128 forecasts;  // their sum, in units of 2^-64
    std::int64_t count;
    std::int64_t positives;

    // The mean forecast, correctly rounded.
    double mean() const {
      const auto high = static_cast<std::uint64_t>(forecasts >> 64);
      const auto low = static_cast<std::uint64_t>(forecasts);
      const int shift = high ? std::countl_zero(high) : 64 + std::countl_zero(low | 1);
      const uint128 scaled = forecasts << shift, of = static_cast<uint128>(count);
      uint128 quotient = scaled / of;
      if (quotient * of != scaled) quotient |= 1;
      return std::ldexp(static_cast<double>(quotient), -kUnitBits - shift);
    }
  };

  static std::size_t cell_of(double forecast) {
    const auto& all = edges();
    return static_cast<std::size_t>(std::upper_bound(all.begin(), all.end(), forecast) -
                                    all.begin());
  }

  void add(double forecast, bool label) {
    add(cell_of(forecast), {units(forecast), 1, label ? 1 : 0});
  }

  void add(const Tally& other) {
    for (std::size_t k = 0, at = 0; k < kCells; ++k) {
      if (other.has(k)) add(k, other.cells_[at++]);
    }
  }

  const std::vector<Cell>& cells() const { return cells_; }
  std::size_t bytes() const { return cells_.capacity() * sizeof(Cell); }

  std::string save() const {
    std::string bytes;
    for (std::size_t k = 0, at = 0; k < kCells; ++k) {
      if (!has(k)) continue;
      const Cell& cell = cells_[at++];
      append(bytes, static_cast<std::uint8_t>(k));
      append_short(bytes, static_cast<std::uint64_t>(cell.count));
      append_short(bytes, static_cast<std::uint64_t>(cell.positives));
      append_short(bytes, cell.forecasts);
    }
    return bytes;
  }

  // What `save` wrote; std::invalid_argument for all other bytes.
  static Tally load(std::string_view bytes) {
    Tally found;
    SavedReader reader(bytes);
    std::int64_t total = 0;
    while (!reader.done()) {
      const auto k = reader.take<std::uint8_t>();
      const uint128 count = take_short(reader), positives = take_short(reader);
      const uint128 forecasts = take_short(reader);
      require_saved(k < kCells && !found.has(k), "cells");
      require_saved(1 <= count && count <= kMaxCount && positives <= count, "counts");
      const auto n = static_cast<std::int64_t>(count);
      total += n;
      require_saved(total <= kMaxCount, "counts");
      require_saved(is_sum(forecasts, count, k), "forecasts");
      found.add(k, {forecasts, n, static_cast<std::int64_t>(positives)});
    }
    require_saved(found.save() == bytes, "form");
    return found;
  }

 private:
  static constexpr int kUnitBits = 64;  // forecasts from 2^-12 on are multiples of 2^-64
  static constexpr std::size_t kWords = (kCells + 63) / 64;

  // Cells are closed on the left.
  static const std::array<double, kEdges>& edges() {
    static const std::array<double, kEdges> made = [] {
      std::array<double, kEdges> found;
      std::size_t at = 0;
      for (std::int64_t k = -kHalf; k <= kHalf; ++k) {
        found[at++] = elementary::logistic(static_cast<double>(k) / 8.0);
      }
      for (std::size_t k = 1; k < kParts; ++k) {
        if (2 * k != kParts) found[at++] = static_cast<double>(k) / kParts;
      }
      std::sort(found.begin(), found.end());
      return found;
    }();
    return made;
  }

  static uint128 units(double forecast) {
    return static_cast<uint128>(std::nearbyint(std::ldexp(forecast, kUnitBits)));
  }

  // Whether the forecasts of cell k can have this sum.
  static bool is_sum(uint128 sum, uint128 count, std::size_t k) {
    const uint128 least = k == 0 ? 0 : units(edges()[k - 1]);
    const uint128 most = k == kEdges ? units(1.0) : units(std::nextafter(edges()[k], 0.0));
    return least * count <= sum && sum <= most * count;
  }

  bool has(std::size_t k) const { return has_[k / 64] >> (k % 64) & 1; }

  void add(std::size_t k, const Cell& more) {
    const std::uint64_t bit = std::uint64_t{1} << (k % 64);
    auto at = std::popcount(has_[k / 64] & (bit - 1));
    for (std::size_t word = 0; word < k / 64; ++word) at += std::popcount(has_[word]);
    if (has(k)) {
      Cell& cell = cells_[static_cast<std::size_t>(at)];
      cell.forecasts += more.forecasts;
      cell.count += more.count;
      cell.positives += more.positives;
      return;
    }
    // By a quarter: many models have few cells each.
    if (cells_.size() == cells_.capacity()) cells_.reserve(cells_.size() + cells_.size() / 4 + 1);
    cells_.insert(cells_.begin() + at, more);
    has_[k / 64] |= bit;
  }

  // Seven bits a byte, the lowest first; the last byte is below 128.
  static void append_short(std::string& bytes, uint128 value) {
    for (; value >= 128; value >>= 7) {
      append(bytes, static_cast<std::uint8_t>(static_cast<std::uint8_t>(value) | 128));
    }
    append(bytes, static_cast<std::uint8_t>(value));
  }

  static uint128 take_short(SavedReader& reader) {
    uint128 value = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = reader.take<std::uint8_t>();
      require_saved(shift < 126, "cells");
      value |= static_cast<uint128>(byte & 127) << shift;
      if (byte < 128) return value;
    }
  }

  std::array<std::uint64_t, kWords> has_{};
  std::vector<Cell> cells_;
};

}  // namespace abers
