// The saved form of protected distributions: options and counts, losses, the methods, the last
// labels with their scores, and the lanes. Windows of residuals are made anew from the labels.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "distribution_protection.hpp"
#include "saved_bytes.hpp"
#include "saved_fields.hpp"

namespace abers {

class DistributionCodec {
 public:
  static std::string save(const DistributionProtection& one) {
    std::string bytes;
    FieldWriter write(bytes);
    options(one.options_, write);
    const Lanes& lanes = one.lanes();
    write(lanes.moment());
    write(one.pool_.labels());
    write(static_cast<std::uint64_t>(lanes.most()));
    write(one.pool_.totals());
    DistributionMethods::visit(one.methods_, write);
    save_list(bytes, one.methods_.of_line_.arrived());
    save_labels(bytes, larger(one.methods_));
    save_lanes(bytes, lanes);
    return bytes;
  }

  // The calibrator that `save` wrote; std::invalid_argument for other bytes.
  static std::unique_ptr<DistributionProtection> load(std::string_view bytes) {
    SavedReader reader(bytes);
    FieldReader read(reader);
    DistributionOptions given{};
    options(given, read);
    check(given);
    auto found = std::make_unique<DistributionProtection>(given);
    DistributionMethods& methods = found->methods_;
    const auto moment = reader.take<std::int64_t>(), labels = reader.take<std::int64_t>();
    const auto most = reader.take<std::uint64_t>();
    require_saved(0 <= labels && labels <= moment && moment <= kMaxCount, "counts");
    require_saved(most <= static_cast<std::uint64_t>(moment), "counts");
    std::vector<double> losses(found->experts() + 1);
    read(losses);
    const double furthest = static_cast<double>(labels) * given.width() * kRounded;
    for (const double one : losses) require_saved(0.0 <= one && one <= furthest, "losses");
    DistributionMethods::visit(methods, read);
    load_line(reader, methods);
    check(methods, furthest);
    load_labels(reader, methods);
    load_lanes(reader, *found, {moment, labels, most, losses});
    require_saved(reader.done() && save(*found) == bytes, "form");
    return found;
  }

 private:
  static constexpr double kRounded = 1.0 + 1e-9;
  static constexpr double kFurthest = 1e290, kNarrowest = 1e-290;  // as `require_range`
  static constexpr double kSteepest = 1e100;                       // far more than any fitted line
  static constexpr std::size_t kMostMembers = 1000, kMostLabels = 1 << 20;

  struct Counts {
    std::int64_t moment, labels;
    std::uint64_t most;
    std::span<const double> losses;
  };

  template <class Options, class F>
  static void options(Options& one, F& each) {
    each(one.low);
    each(one.high);
    each(one.members);
    each(one.pointwise);
    each(one.base_weight);
    each(one.window);
  }

  static void check(const DistributionOptions& one) {
    require_saved(std::max(-one.low, one.high) <= kFurthest && one.width() >= kNarrowest,
                  "support");
    require_saved(one.pointwise <= 1, "scores");
    require_saved(2 <= one.members && one.members <= kMostMembers, "members");
    require_saved(0.0 < one.base_weight && one.base_weight < 1.0, "base_weight");
    require_saved(1 <= one.window && one.window <= kMostLabels, "window");
  }

  // Of labels and scores, the larger window.
  static const PredictiveSet& larger(const DistributionMethods& one) {
    return one.all_->window() > one.recent_->window() ? *one.all_ : *one.recent_;
  }

  static bool within(std::span<const double> values, double most) {
    return std::ranges::all_of(values, [&](double x) { return std::abs(x) <= most; });
  }

  static void check(const DistributionMethods& one, double furthest) {
    const ResidualLine& line = one.line_;
    std::uint64_t counted = 0;
    for (const std::uint64_t count : one.pit_) {
      require_saved(count <= static_cast<std::uint64_t>(kMaxCount), "counts of PIT values");
      counted += count;
    }
    require_saved(0 <= line.labels() && line.labels() <= one.errors_.count, "counts");
    require_saved(one.errors_.count <= kMaxCount && 0 <= line.scores().count, "counts");
    require_saved(line.scores().count <= kMaxCount, "counts");
    require_saved(counted <= static_cast<std::uint64_t>(line.labels()), "counts of PIT values");
    require_saved(0.0 <= one.base_loss_ && one.base_loss_ <= furthest, "losses");
    for (const Moments* const each : {&one.errors_, &line.scores()}) {
      require_saved(std::abs(each->mean) <= kRounded, "residuals");
      require_saved(0.0 <= each->variance && each->variance <= kRounded, "residuals");
    }
    require_saved(line.sound(kSteepest, kRounded), "line");
    for (const auto& share : one.shares_) {
      for (const auto& row : share.table()) {
        for (const double w : row) require_saved(0.0 < w && w <= 1.0, "weights of methods");
      }
    }
  }

  static void save_list(std::string& bytes, const std::deque<double>& values) {
    FieldWriter write(bytes);
    write(static_cast<std::uint64_t>(values.size()));
    write(values);
  }

  static std::uint64_t read_count(SavedReader& reader, std::int64_t labels, std::size_t most) {
    const auto count = reader.take<std::uint64_t>();
    require_saved(count == std::min(static_cast<std::uint64_t>(labels), std::uint64_t{most}),
                  "count of labels");
    return count;
  }

  static void load_line(SavedReader& reader, DistributionMethods& into) {
    const std::int64_t labels = into.line_.labels();
    require_saved(0 <= labels, "counts");
    for (auto left = read_count(reader, labels, into.of_line_.most()); left > 0; --left) {
      const auto residual = reader.take<double>();
      require_saved(std::abs(residual) <= into.options_.width(), "residuals of the line");
      into.of_line_.add(residual);
    }
  }

  static void save_labels(std::string& bytes, const PredictiveSet& set) {
    const auto all = set.observations();
    append(bytes, static_cast<std::uint64_t>(all.size()));
    for (const auto& one : all) {
      append(bytes, one.score);
      append(bytes, one.label);
    }
  }

  static void load_labels(SavedReader& reader, DistributionMethods& into) {
    const std::size_t most = larger(into).window();
    for (auto left = read_count(reader, into.errors_.count, most); left > 0; --left) {
      const auto score = reader.take<double>(), label = reader.take<double>();
      require_saved(std::isfinite(score), "scores");
      require_saved(into.options_.low <= label && label <= into.options_.high, "labels");
      into.hold(score, label);
    }
  }

  static void save_lanes(std::string& bytes, const Lanes& lanes) {
    const std::size_t n = lanes.size();
    std::vector<std::int64_t> numbers(n), moments(n);
    std::vector<double> weights(n * lanes.experts()), kept(n * lanes.kept_size());
    lanes.save(numbers.data(), moments.data(), weights.data(), kept.data());
    FieldWriter write(bytes);
    write(static_cast<std::uint64_t>(n));
    write(numbers);
    write(moments);
    write(weights);
    write(kept);
  }

  static void load_lanes(SavedReader& reader, DistributionProtection& into, const Counts& counts) {
    Lanes lanes = into.lanes();
    FieldReader read(reader);
    const auto n = reader.take<std::uint64_t>();
    require_saved(n <= counts.most && n <= room(reader, lanes), "lanes");
    std::vector<std::int64_t> numbers(n), moments(n);
    std::vector<double> weights(n * lanes.experts()), kept(n * lanes.kept_size());
    read(numbers);
    read(moments);
    read(weights);
    read(kept);
    std::unordered_set<std::int64_t> busy;
    for (std::size_t row = 0; row < n; ++row) {
      const std::int64_t number = numbers[row];
      require_saved(number >= -1 && (number < 0 || busy.insert(number).second), "numbers");
      require_saved(0 <= moments[row] && moments[row] < counts.moment, "moments");
      if (number >= 0) check_kept(into.options_, kept.data() + row * lanes.kept_size());
    }
    for (const double w : weights) require_saved(0.0 < w && w <= 1.0, "weights");
    lanes.load(counts.moment, counts.most, numbers, moments, weights, kept);
    into.pool_.load(counts.labels, counts.losses, std::move(lanes));
  }

  // As many as there are bytes for.
  static std::uint64_t room(const SavedReader& reader, const Lanes& lanes) {
    return reader.left() / (sizeof(double) * (2 + lanes.experts() + lanes.kept_size()));
  }

  static void check_kept(const DistributionOptions& of, const double* kept) {
    using Methods = DistributionMethods;
    for (std::size_t k = 0; k < Methods::kForecasts; ++k, kept += of.members) {
      const std::span forecast(kept, of.members);
      require_saved(std::ranges::is_sorted(forecast), "forecasts");
      require_saved(of.low <= forecast.front() && forecast.back() <= of.high, "forecasts");
      require_saved(within(forecast, kFurthest), "forecasts");
    }
    for (std::size_t j = 0; j < Methods::kShares * Methods::kForecasts; ++j) {
      require_saved(0.0 <= kept[j] && kept[j] <= 1.0, "weights of methods");
    }
    kept += Methods::kShares * Methods::kForecasts;
    require_saved(within({kept, ResidualLine::kSize}, kSteepest), "features");
    kept += ResidualLine::kSize;
    require_saved(0.0 <= kept[0] && kept[0] <= kRounded, "features");
    require_saved(of.low <= kept[1] && kept[1] <= of.high, "forecasts");
  }
};

}  // namespace abers
