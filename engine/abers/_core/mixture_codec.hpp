// The saved form of a mixture of probabilities in lanes, a byte string a column: parameters,
// exponents of the losses; by lane number, moment, weights and forecasts.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "method_mixture.hpp"
#include "saved_bytes.hpp"

namespace abers {

inline constexpr std::size_t kMixturePieces = 6;
using MixturePieces = std::array<std::string_view, kMixturePieces>;

// Counts that are saved apart.
struct MixtureCounts {
  std::int64_t moment;  // predictions
  std::int64_t labels;  // of observations that had a lane
  std::int64_t taught;  // all labels
  std::int64_t most;    // lanes there ever were
};

namespace mixture_codec {

inline constexpr double kSteepest = 1e100;                        // far more than anything fitted
inline constexpr std::int64_t kMostLoss = std::int64_t{1} << 60;  // in powers of two

struct Columns {
  SavedNumbers<double> own;
  SavedNumbers<std::int64_t> exponents, numbers, moments;
  SavedNumbers<double> weights, forecasts;

  explicit Columns(const MixturePieces& pieces)
      : own(pieces[0], "columns"),
        exponents(pieces[1], "columns"),
        numbers(pieces[2], "columns"),
        moments(pieces[3], "columns"),
        weights(pieces[4], "columns"),
        forecasts(pieces[5], "columns") {}
};

template <class M>
std::size_t parameters(M& mixture) {
  std::size_t count = 0;
  mixture.visit_parameters([&](double) { ++count; });
  return count;
}

inline bool are_shares(const double* first, std::size_t count, double least) {
  return std::all_of(first, first + count, [=](double w) { return w >= least && w <= 1.0; });
}

inline bool are_within(const double* first, std::size_t count, double most) {
  return std::all_of(first, first + count, [=](double x) { return std::abs(x) <= most; });
}

// Weights come first, averages before products, and these last.
template <class M>
void require_parameters(const MethodMixture<M>& mixture, const std::vector<double>& own) {
  const std::size_t products = mixture.experts() + 1, rest = own.size() - products;
  const std::size_t averages = mixture.methods().averages();
  require_saved(are_shares(own.data(), M::kWeights, kFloor), "weights of methods");
  require_saved(are_shares(&own[rest], products, Product::kLeast), "losses");
  require_saved(are_within(own.data(), rest, kSteepest), "methods");
  require_saved(are_within(&own[rest - averages], averages, M::kFurthest), "averages");
}

// Whether an awaiting observation may keep these.
template <class M>
bool are_kept(const MethodMixture<M>& mixture, const double* kept) {
  return are_within(kept, mixture.lanes().kept_size(), M::kFurthest) &&
         mixture.methods().are_forecasts(kept);
}

template <class M>
void check(M& mixture, const Columns& columns, const MixtureCounts& counts) {
  const Lanes& lanes = mixture.lanes();
  const std::size_t rows = columns.numbers.size(), kept = lanes.kept_size();
  require_saved(columns.own.size() == parameters(mixture) &&
                    columns.exponents.size() == mixture.products().size() &&
                    columns.moments.size() == rows &&
                    columns.weights.size() == rows * lanes.experts() &&
                    columns.forecasts.size() == rows * kept &&
                    rows <= static_cast<std::uint64_t>(counts.most),
                "columns");
  std::unordered_set<std::int64_t> busy;
  for (std::size_t row = 0; row < rows; ++row) {
    const std::int64_t number = columns.numbers[row], moment = columns.moments[row];
    const std::vector<double> forecasts = columns.forecasts.part(row * kept, kept);
    require_saved(number >= -1 && (number < 0 || busy.insert(number).second), "numbers");
    require_saved(moment >= 0 && moment < std::max<std::int64_t>(counts.moment, 1), "moments");
    if (number >= 0) {
      require_saved(are_kept(mixture, forecasts.data()), "forecasts");
    } else {
      require_saved(moment == 0, "moments");
      require_saved(std::ranges::all_of(forecasts, [](double x) { return x == 0.0; }), "forecasts");
    }
  }
  for (std::size_t i = 0; i < columns.exponents.size(); ++i) {
    require_saved(columns.exponents[i] <= 0 && columns.exponents[i] >= -kMostLoss, "losses");
  }
  for (std::size_t i = 0; i < columns.weights.size(); ++i) {
    require_saved(columns.weights[i] > 0.0 && columns.weights[i] <= 1.0, "weights");
  }
  require_parameters(mixture, columns.own.part(0, columns.own.size()));
}

}  // namespace mixture_codec

// Appends the pieces, each behind its length.
template <class M>
void save_mixture(std::string& bytes, M& mixture) {
  const Lanes& lanes = mixture.lanes();
  const std::size_t count = lanes.size();
  const auto piece = [&](const auto& write) { append_written(bytes, write); };
  const auto of_each = [&](const auto& write) {
    piece([&] {
      for (Lanes::Lane lane = 0; lane < count; ++lane) write(lane);
    });
  };
  const auto row = [&](const double* first, std::size_t size) {
    for (std::size_t i = 0; i < size; ++i) append(bytes, first ? first[i] : 0.0);
  };
  piece([&] { mixture.visit_parameters([&](double one) { append(bytes, one); }); });
  piece([&] {
    for (const Product& product : mixture.products()) append(bytes, product.exponent);
  });
  of_each([&](Lanes::Lane lane) {
    append(bytes, lanes.busy(lane) ? lanes.number(lane) : std::int64_t{-1});
  });
  of_each([&](Lanes::Lane lane) {
    append(bytes, lanes.busy(lane) ? lanes.moment(lane) : std::int64_t{0});
  });
  of_each([&](Lanes::Lane lane) { row(lanes.weights(lane), lanes.experts()); });
  of_each([&](Lanes::Lane lane) {
    row(lanes.busy(lane) ? lanes.kept(lane) : nullptr, lanes.kept_size());
  });
}

// Takes over what `save_mixture` wrote; std::invalid_argument, with nothing changed, for all else.
template <class M>
void load_mixture(M& mixture, const MixturePieces& pieces, const MixtureCounts& counts) {
  const mixture_codec::Columns columns(pieces);
  mixture_codec::check(mixture, columns, counts);
  Lanes lanes = mixture.lanes();
  lanes.load(counts.moment, static_cast<std::size_t>(counts.most), columns.numbers, columns.moments,
             columns.weights, columns.forecasts);
  std::size_t next = 0;
  mixture.visit_parameters([&](double& one) { one = columns.own[next++]; });
  std::size_t exponent = 0;
  for (Product& product : mixture.products()) product.exponent = columns.exponents[exponent++];
  mixture.load(counts.labels, counts.taught, std::move(lanes));
}

}  // namespace abers
