// Bets on binary labels from sums on a fixed grid of log odds; see tests/oracles/grid_bets.py.
//
// All sums and products are taken in the order of this oracle, so bets are equal to the bit. Every
// part has two memories: of all labels, and one that forgets a five hundredth with each label.
//
// Invariants: 0 <= ones <= labels and 0 <= forecasts <= labels in each cell, since rounding is
// monotone; the labels of the first memory are whole numbers, and those of a cell the sum of those
// of its halves; no weight is below its share, and so none vanishes.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "experts.hpp"
#include "saved_bytes.hpp"

namespace abers {

inline constexpr double kSmallest = 0x1p-53, kLargest = 1.0 - 0x1p-53;  // so that no factor is 0

inline double inside(double p) { return std::min(std::max(p, kSmallest), kLargest); }

class GridBets {
 public:
  static constexpr std::size_t kMemories = 2;  // of all labels, and of recent ones
  // A number of each memory, on which both are computed at once.
  using Bets = double __attribute__((vector_size(kMemories * sizeof(double))));

  GridBets() { weights_.fill(both(1.0 / kForecasters)); }

  // Probabilities of the label 1, by memory.
  Bets bet(double forecast) const {
    const Place place(forecast);
    const Forecasts found = forecasts(place);
    Bets total = both(0.0), ones = both(0.0);
    for (std::size_t i = 0; i < kForecasters; ++i) {
      total += weights_[i];
      ones += weights_[i] * found[i];
    }
    const Bets mixed = ones / total;
    return Bets{inside(mixed[0]), inside(mixed[1])};
  }

  void learn(double forecast, bool label) {
    const Place place(forecast);
    const Forecasts found = forecasts(place);
    weigh(found, label);
    fit(place, found.back(), label);
    recentre(place);
    count(place, label);
  }

  // Empty before the first label; of the cells, those that have labels.
  std::string save() const {
    std::string bytes;
    if (whole().labels[0] == 0.0) return bytes;
    for (const double value : {unit_, centre_, spread_}) append(bytes, value);
    for (std::size_t k = 0; k < kMemories; ++k) {
      for (const Bets& weight : weights_) append(bytes, weight[k]);
      for (const Bets* one : {&level_, &slope_, &h00_, &h01_, &h11_}) append(bytes, (*one)[k]);
    }
    const std::uint32_t present = cells_with_labels();
    append(bytes, present);
    for (const Cell& cell : cells_) {
      if (cell.labels[0] == 0.0) continue;
      for (const Bets& sums : {cell.labels, cell.forecasts, cell.ones}) {
        for (std::size_t k = 0; k < kMemories; ++k) append(bytes, sums[k]);
      }
    }
    return bytes;
  }

  static GridBets load(std::string_view bytes) {
    GridBets loaded;
    if (bytes.empty()) return loaded;
    SavedReader reader(bytes);
    for (double* const value : {&loaded.unit_, &loaded.centre_, &loaded.spread_}) {
      *value = reader.take<double>();
    }
    for (std::size_t k = 0; k < kMemories; ++k) {
      for (Bets& weight : loaded.weights_) weight[k] = reader.take<double>();
      for (Bets* one : {&loaded.level_, &loaded.slope_, &loaded.h00_, &loaded.h01_, &loaded.h11_}) {
        (*one)[k] = reader.take<double>();
      }
    }
    const auto present = reader.take<std::uint32_t>();
    for (std::size_t at = 0; at < kCells; ++at) {
      if (!(descendants(at) & present)) continue;
      Cell& cell = loaded.cells_[at];
      for (Bets* sums : {&cell.labels, &cell.forecasts, &cell.ones}) {
        for (std::size_t k = 0; k < kMemories; ++k) (*sums)[k] = reader.take<double>();
      }
    }
    require_saved(reader.done() && present && loaded.is_sound(), "bets");
    require_saved(loaded.cells_with_labels() == present, "cells of bets");
    return loaded;
  }

 private:
  static constexpr std::size_t kForecasters = 5;  // itself, three widths of cells, a line
  static constexpr std::size_t kWidths = 3;
  static constexpr std::size_t kFine = 32, kCoarse = kFine / 2;
  static constexpr std::size_t kCells = 1 + kCoarse + kFine;  // from the widest on
  static constexpr double kEdge = 8.0;     // log odds, beyond which cells are the outermost
  static constexpr double kDoubt = 10.0;   // labels that speak for a cell to be as the wider one
  static constexpr double kRidge = 10.0;   // that the line is the forecast itself, as curvature
  static constexpr double kFade = 0.0025;  // of the level of recent labels, by curvature
  static constexpr double kMostSpread = 1000.0;  // weight of the centre
  static constexpr double kGrowth = 500.0 / 499.0, kDecay = 499.0 / 500.0;
  static constexpr double kMostUnit = 1e100;
  static constexpr std::array<double, kMemories> kShares{1e-5, 3e-4};  // of each label, for all

  struct Cell {
    Bets labels{}, forecasts{}, ones{};
  };
  using Forecasts = std::array<Bets, kForecasters>;

  // Where a forecast belongs: its log odds, and the cells from the widest to the finest.
  struct Place {
    explicit Place(double forecast) : p(inside(forecast)), x(elementary::logit(p)) {
      const double scaled = std::floor((x + kEdge) * (static_cast<double>(kFine) / (2.0 * kEdge)));
      const auto fine =
          static_cast<std::size_t>(std::clamp(scaled, 0.0, static_cast<double>(kFine - 1)));
      cells = {0, 1 + fine / 2, 1 + kCoarse + fine};
    }
    double p, x;
    std::array<std::size_t, kWidths> cells;
  };

  static constexpr Bets both(double value) { return Bets{value, value}; }

  const Cell& whole() const { return cells_[0]; }

  Forecasts forecasts(const Place& place) const {
    const double p = place.p;
    const Bets doubt{kDoubt, kDoubt * unit_};
    Bets ones = both(1.0), zeros = both(1.0);  // times as many as forecast
    Forecasts found;
    found[0] = both(p);
    for (std::size_t width = 0; width < kWidths; ++width) {
      const Cell& cell = cells_[place.cells[width]];
      ones = (cell.ones + doubt * ones) / (cell.forecasts + doubt);
      zeros = (cell.labels - cell.ones + doubt * zeros) / (cell.labels - cell.forecasts + doubt);
      const Bets scaled = p * ones;
      found[1 + width] = scaled / (scaled + (1.0 - p) * zeros);
    }
    const Bets moved = place.x + level_ + slope_ * (place.x - centre_);
    found.back() = Bets{elementary::logistic(moved[0]), elementary::logistic(moved[1])};
    return found;
  }

  void weigh(const Forecasts& found, bool label) {
    Bets total = both(0.0);
    for (std::size_t i = 0; i < kForecasters; ++i) {
      weights_[i] *= label ? found[i] : 1.0 - found[i];
      total += weights_[i];
    }
    const Bets shares{kShares[0], kShares[1]};
    const Bets kept = (1.0 - shares) / total, share = shares / kForecasters;
    for (Bets& weight : weights_) weight = kept * weight + share;
  }

  // A Newton step of the line that makes these forecasts.
  void fit(const Place& place, const Bets& line, bool label) {
    const double u = place.x - centre_;
    const Bets left{1.0, kDecay}, fade{0.0, kFade};
    const Bets v = line * (1.0 - line);
    h00_ = left * h00_ + v;
    h01_ = left * h01_ + v * u;
    h11_ = left * h11_ + v * u * u;
    const Bets a = h00_ + kRidge, b = h01_, c = h11_ + kRidge;
    const Bets step = ((label ? 1.0 : 0.0) - line) / (a * c - b * b);
    level_ += (c - b * u) * step;
    slope_ += (a * u - b) * step;
    level_ *= 1.0 - fade / a;
  }

  // Moves the centre towards a forecast; the lines stay where they are.
  void recentre(const Place& place) {
    const double v = place.p * (1.0 - place.p), before = centre_;
    spread_ += v;
    centre_ += (place.x - centre_) * v / std::min(spread_, kMostSpread);
    level_ += slope_ * (centre_ - before);
  }

  void count(const Place& place, bool label) {
    unit_ *= kGrowth;
    const Bets one{1.0, unit_};
    for (const std::size_t at : place.cells) {
      Cell& cell = cells_[at];
      cell.labels += one;
      cell.forecasts += one * place.p;
      cell.ones += label ? one : both(0.0);
    }
    if (unit_ > kMostUnit) {
      for (Cell& cell : cells_) {
        for (Bets* sums : {&cell.labels, &cell.forecasts, &cell.ones}) (*sums)[1] /= unit_;
      }
      unit_ = 1.0;
    }
  }

  // Saved state

  // Bits of the finest cells in one of any width.
  static std::uint32_t descendants(std::size_t at) {
    if (at == 0) return ~std::uint32_t{0};
    if (at <= kCoarse) return std::uint32_t{3} << (2 * (at - 1));
    return std::uint32_t{1} << (at - 1 - kCoarse);
  }

  std::uint32_t cells_with_labels() const {
    std::uint32_t found = 0;
    for (std::size_t i = 0; i < kFine; ++i) {
      found |= std::uint32_t{cells_[1 + kCoarse + i].labels[0] > 0.0} << i;
    }
    return found;
  }

  static bool is_within(double value, double least, double most) {
    return value >= least && value <= most;  // NaN is not
  }

  bool is_sound() const {
    const double most = static_cast<double>(kMaxCount), far = 40.0;  // log odds of any forecast
    bool sound = is_within(unit_, 1.0, kMostUnit) && is_within(centre_, -far, far) &&
                 spread_ > 0.0 && spread_ <= most;
    for (std::size_t k = 0; k < kMemories; ++k) {
      for (const Bets& weight : weights_) {
        sound = sound && is_within(weight[k], kShares[k] / kForecasters, 1.0);
      }
      const double curvature = h00_[k] * h11_[k] * (1.0 + 1e-9) + 1e-9;
      sound = sound && std::isfinite(level_[k]) && std::isfinite(slope_[k]) &&
              is_within(h00_[k], 0.0, most) && is_within(h11_[k], 0.0, most * far * far) &&
              h01_[k] * h01_[k] <= curvature;
      const double largest = k == 0 ? most : kMostUnit * 1e3;
      for (const Cell& cell : cells_) {
        sound = sound && is_within(cell.labels[k], 0.0, largest) &&
                is_within(cell.forecasts[k], 0.0, cell.labels[k]) &&
                is_within(cell.ones[k], 0.0, cell.labels[k]);
      }
    }
    return sound && is_nested(&Cell::labels) && is_nested(&Cell::ones);
  }

  // Whether the counts of all labels are whole, and each is the sum of those of its halves.
  bool is_nested(Bets Cell::* sums) const {
    const auto of = [&](std::size_t at) { return (cells_[at].*sums)[0]; };
    bool nested = true;
    double total = 0.0;
    for (std::size_t i = 0; i < kCoarse; ++i) {
      const double left = of(1 + kCoarse + 2 * i), right = of(2 + kCoarse + 2 * i);
      nested = nested && left == std::floor(left) && right == std::floor(right) &&
               of(1 + i) == left + right;
      total += of(1 + i);
    }
    return nested && of(0) == total;
  }

  std::array<Cell, kCells> cells_{};
  std::array<Bets, kForecasters> weights_;
  Bets level_{}, slope_{};      // of the line, which these move from the forecast
  Bets h00_{}, h01_{}, h11_{};  // its curvature
  double unit_ = 1.0;           // of a recent label
  double centre_ = 0.0;         // mean of log odds by p (1 - p), and the sum of these
  double spread_ = 0.0;
};

}  // namespace abers
