// Verdicts on a stream, block after block; see `VerdictSequence` in
// tests/oracles/verdict_sequence.py.
//
// All of it is one record of fixed size. Invariants: labels < next; there is a limit if and only if
// there is a rank, and then a verdict is kept; a verdict is kept only while an incident is open.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "confidence_sequence.hpp"
#include "findings.hpp"
#include "group_sums.hpp"
#include "saved_bytes.hpp"

namespace abers {

// The level of one block, of `blocks` that all partitions had, among those of all combinations.
inline double verdict_level(double alpha, std::int64_t blocks, std::int64_t partitions) {
  const auto k = static_cast<double>(blocks), m = static_cast<double>(partitions);
  const double level = alpha / (k * (k + 1.0));
  if (partitions == 1) return level;
  // The number of combinations, a binomial coefficient, is beyond floats for many partitions.
  constexpr double most = 500.0;  // as a logarithm: levels stay above zero
  using elementary::log_gamma;
  const double combinations = log_gamma(k + m - 1.0) - log_gamma(k) - log_gamma(m);
  return level * elementary::exponential(-std::min(combinations, most));
}

// What a verdict says, in numbers.
struct VerdictRecord {
  Finding finding;
  double cut;  // forecast at which the halves meet
  std::int64_t since, start, until, confirmed;
  std::int64_t labels;
  double came;  // share of the observations that got a label
  std::int64_t counted, observed;
  double expected, margin, tolerance;
  double established;  // the smallest tolerance of the grid that holds; 0 if none does

  void save(std::string& bytes) const {
    append(bytes, static_cast<std::int64_t>(finding.status));
    append(bytes, static_cast<std::int64_t>(finding.group));
    for (const std::int64_t one : {since, start, until, confirmed, labels, counted, observed}) {
      append(bytes, one);
    }
    for (const double one : {cut, came, expected, margin, tolerance, established}) {
      append(bytes, one);
    }
  }

  static VerdictRecord load(SavedReader& reader, std::size_t groups) {
    VerdictRecord one{};
    const auto status = reader.take<std::int64_t>(), group = reader.take<std::int64_t>();
    require_saved(status >= 0 && status < static_cast<std::int64_t>(kStatuses), "status");
    require_saved(group >= 0 && group < static_cast<std::int64_t>(groups), "group");
    one.finding = {static_cast<Status>(status), static_cast<std::size_t>(group)};
    for (std::int64_t* const value : {&one.since, &one.start, &one.until, &one.confirmed,
                                      &one.labels, &one.counted, &one.observed}) {
      *value = reader.take<std::int64_t>();
    }
    for (double* const value :
         {&one.cut, &one.came, &one.expected, &one.margin, &one.tolerance, &one.established}) {
      *value = reader.take<double>();
    }
    const auto is_number = [](double value, double least) {
      return value >= least && std::isfinite(value);
    };
    require_saved(one.finding.is_possible(), "status");
    require_saved(one.labels >= 0 && one.labels <= kMaxCount, "labels");
    require_saved(one.counted >= 0 && one.counted <= one.labels, "labels of a range");
    require_saved(one.observed >= 0 && one.observed <= one.counted, "labels of a range");
    require_saved(is_number(one.cut, 0.0) && one.cut <= 1.0, "cut of a verdict");
    for (const double value : {one.came, one.expected, one.margin}) {
      require_saved(is_number(value, 0.0), "numbers of a verdict");
    }
    require_saved(is_number(one.tolerance, 1.0), "tolerance");
    require_saved(one.established == 0.0 || is_number(one.established, 1.0), "tolerance");
    return one;
  }
};

template <class Sums>
class VerdictSequence {
 public:
  VerdictSequence(double alpha, const Sums& empty) : alpha_(alpha), sums_(empty) {}

  // Adds a row of the sums, a label that came; `skipped` observations directly before it got none.
  // Returns whether an incident opened or was over.
  bool add(double forecast, double label, std::int64_t time, std::int64_t skipped) {
    if (labels_ == 0) {
      start_ = time;
      if (blocks_ == 1) until_ = time;
    }
    sums_.add(forecast, label);
    ++labels_;
    until_ = std::max(until_, time);
    skipped_ += skipped;
    if (labels_ != next_) return false;
    const bool before = open_;
    next_ = next_of(labels_);
    decide(finding());
    return open_ != before;
  }

  // Starts another block, behind the observation of this event time: an alarm opened for a fault
  // that began at a time.
  void restart(std::int64_t time, std::int64_t began) {
    open_ = true;
    began_ = began;
    if (labels_ > 0) end_block(std::max(time, until_));
  }

  // What is shown now.
  VerdictRecord verdict() const {
    const Finding found = finding();
    return held_ && !renews(found) ? *held_ : present(found);
  }

  // Its status, and the ratio of observed to expected outcomes: NaN if none is expected.
  std::pair<Status, double> brief() const {
    const auto ratio = [](double observed, double expected) {
      return expected > 0.0 ? observed / expected : std::numeric_limits<double>::quiet_NaN();
    };
    const Finding found = finding();
    if (held_ && !renews(found)) {
      return {held_->finding.status, ratio(static_cast<double>(held_->observed), held_->expected)};
    }
    const ForecastGroup one = sums_.groups()[found.group];
    return {found.status, ratio(one.observed, one.expected)};
  }

  const std::optional<VerdictRecord>& held() const { return held_; }
  const Sums& sums() const { return sums_; }
  double level() const { return verdict_level(alpha_, blocks_, partitions_); }
  std::int64_t partitions() const { return partitions_; }
  std::int64_t blocks() const { return blocks_; }
  bool open() const { return open_; }
  std::int64_t began() const { return began_; }
  std::int64_t labels() const { return labels_; }
  std::int64_t skipped() const { return skipped_; }
  std::int64_t next() const { return next_; }
  std::int64_t start() const { return start_; }
  std::int64_t until() const { return until_; }

  // Combines the verdicts of partitions, at least one, that have the same options.
  static VerdictSequence total(std::span<const VerdictSequence* const> many) {
    VerdictSequence whole = *many.front();
    bool begun = whole.labels_ > 0;
    if (whole.held_) whole.held_ = whole.verdict();
    for (const VerdictSequence* const one : many.subspan(1)) {
      whole.partitions_ += one->partitions_;
      whole.blocks_ += one->blocks_ - 1;
      if (one->open_)
        whole.began_ = whole.open_ ? std::min(whole.began_, one->began_) : one->began_;
      whole.open_ = whole.open_ || one->open_;
      if (one->held_) {
        const VerdictRecord shown = one->verdict();
        if (!whole.held_ || shown.until > whole.held_->until) whole.held_ = shown;
      }
      whole.sums_.add(one->sums_);
      whole.labels_ += one->labels_;
      whole.skipped_ += one->skipped_;
      const bool counts = one->labels_ > 0;
      if (counts == begun) {  // of partitions with labels, or of all if none has some
        whole.start_ = std::min(whole.start_, one->start_);
        whole.until_ = std::max(whole.until_, one->until_);
      } else if (counts) {
        whole.start_ = one->start_;
        whole.until_ = one->until_;
      }
      begun = begun || counts;
    }
    whole.next_ = next_of(whole.labels_);
    whole.limit_ = whole.rank_ = 0;
    return whole;
  }

  std::string save() const {
    std::string bytes;
    append(bytes, static_cast<std::uint8_t>(open_));
    append(bytes, static_cast<std::uint8_t>(held_.has_value()));
    for (const std::int64_t one :
         {partitions_, blocks_, labels_, skipped_, next_, limit_, rank_, start_, until_, began_}) {
      append(bytes, one);
    }
    if (held_) held_->save(bytes);
    append(bytes, sums_.tolerances().front());
    sums_.save(bytes);
    return bytes;
  }

  // Takes over what `save` wrote; std::invalid_argument, with nothing changed, for all else. A
  // block that was counted with another tolerance ends, and another begins.
  void load(std::string_view bytes) {
    SavedReader reader(bytes);
    VerdictSequence one = *this;
    const auto is_open = reader.take<std::uint8_t>(), holds = reader.take<std::uint8_t>();
    for (std::int64_t* const value :
         {&one.partitions_, &one.blocks_, &one.labels_, &one.skipped_, &one.next_, &one.limit_,
          &one.rank_, &one.start_, &one.until_, &one.began_}) {
      *value = reader.take<std::int64_t>();
    }
    require_saved(is_open <= 1 && holds <= is_open, "incidents");
    require_saved(is_open == 1 || one.began_ == 0, "incidents");
    one.open_ = is_open == 1;
    one.held_.reset();
    if (holds == 1) one.held_ = VerdictRecord::load(reader, Sums::kGroups);
    const auto tolerance = reader.take<double>();
    one.sums_.load(reader);
    require_saved(reader.done(), "too long");
    require_saved(one.partitions_ >= 1 && one.partitions_ <= kMaxCount, "partitions");
    require_saved(one.blocks_ >= 1 && one.blocks_ <= kMaxCount, "blocks");
    require_saved(one.labels_ == one.sums_.labels(), "labels of a block");
    require_saved(one.skipped_ >= 0 && one.skipped_ <= kMaxCount, "observations without a label");
    require_saved(one.labels_ < one.next_ && one.next_ <= next_of(one.labels_), "next evaluation");
    require_saved(one.rank_ >= 0 && one.rank_ < Finding::kWhole, "rank");
    require_saved((one.limit_ == 0) == (one.rank_ == 0), "limit of a block");
    require_saved(
        one.limit_ == 0 || (one.labels_ < one.limit_ && one.limit_ <= kMaxCount && one.held_),
        "limit of a block");
    require_saved(tolerance >= 1.0 && std::isfinite(tolerance), "tolerance");
    if (tolerance != sums_.tolerances().front()) one.end_block(one.until_);
    *this = one;
  }

 private:
  static constexpr std::int64_t kGrowth = 100;  // evaluated when grown by one part in so many,
  static constexpr std::int64_t kFewest = 10;   // but by so many labels, so that young models
                                                // cost little
  static constexpr std::int64_t kPatience = 8;  // a block with only a half or a bin outside grows
                                                // by this factor
  // Four times as many labels show a gap of half the size: if the gap were still there, they would
  // have shown it.
  static constexpr std::int64_t kOutgrown = 4;

  // The number of labels at which a block is evaluated next.
  static std::int64_t next_of(std::int64_t labels) {
    return labels + std::max(kFewest, (labels + kGrowth - 1) / kGrowth);
  }

  Finding finding() const {
    const double alpha = level();
    const double main = findings::threshold(alpha, findings::kMainShare);
    const double bins = findings::threshold(alpha, findings::kBinShare);
    if (sums_.is_undecided(main, bins)) return {};
    return find(sums_.groups(), alpha);
  }

  // Decides on the present block by what its groups show.
  void decide(const Finding& found) {
    const bool ends = (limit_ > 0 && limit_ <= labels_) || found.rank() == Finding::kWhole;
    if (found.outside()) hold(found, ends);
    if (ends) {
      end_block(until_);
    } else if (found.inside && !found.outside()) {
      held_.reset();
      open_ = false;
      began_ = 0;
      limit_ = rank_ = 0;
    } else if (held_ && !found.outside() && is_outgrown()) {
      held_.reset();
      limit_ = rank_ = 0;
    }
  }

  // Holds what the present block shows, unless the kept verdict says more.
  void hold(const Finding& found, bool ends) {
    const bool agrees = held_ && found.agrees(held_->finding.status);
    if (renews(found) && (ends || found.rank() > rank_ || !agrees)) {
      held_ = present(found);
    } else if (agrees) {
      held_->confirmed = until_;
    }
    if (!open_) began_ = start_;
    open_ = true;
    rank_ = std::max(rank_, found.rank());
    if (limit_ == 0) limit_ = kPatience * labels_;
  }

  // Whether the present block is outside, and the kept verdict says no more.
  bool renews(const Finding& found) const {
    if (!found.outside() || found.rank() < rank_) return false;
    return !held_ || found.rank() >= held_->finding.rank() || !found.agrees(held_->finding.status);
  }

  // Whether the labels of the present block would show the kept verdict, and do not lean to it.
  bool is_outgrown() const {
    const std::int64_t fewest = kOutgrown * held_->counted;
    if (labels_ < fewest) return false;  // as most often; a group has no more labels than its block
    const ForecastGroup one = sums_.groups()[held_->finding.group];
    const bool high = held_->finding.side() == Status::kTooHigh;
    const bool leans = high ? one.observed < one.least : one.observed > one.most;
    return one.labels >= static_cast<double>(fewest) && !leans;
  }

  // The verdict on the present block; it goes on with one of the same status.
  VerdictRecord present(const Finding& found) const {
    const ForecastGroup one = sums_.groups()[found.group];
    const double alpha = level();
    const auto n = static_cast<double>(labels_), all = static_cast<double>(labels_ + skipped_);
    const bool goes_on = held_ && held_->finding.status == found.status;
    return {found,
            sums_.cut(),
            goes_on ? held_->since : start_,
            start_,
            until_,
            until_,
            labels_,
            labels_ > 0 ? n / all : std::numeric_limits<double>::quiet_NaN(),
            static_cast<std::int64_t>(one.labels),
            static_cast<std::int64_t>(one.observed),
            one.expected,
            margin(one.squares, found.group, alpha),
            sums_.tolerances().front(),
            established(alpha)};
  }

  // The smallest tolerance of the grid within which all main groups are; or 0.
  double established(double alpha) const {
    for (std::size_t k = 1; k < kTolerances; ++k) {
      if (are_inside(sums_.main_groups(k), alpha)) return sums_.tolerances()[k];
    }
    return 0.0;
  }

  void end_block(std::int64_t time) {
    ++blocks_;
    sums_.clear();
    labels_ = skipped_ = limit_ = rank_ = 0;
    next_ = kFewest;
    start_ = until_ = time;
  }

  double alpha_;
  Sums sums_;  // of the present block, as all that follows
  std::int64_t labels_ = 0, skipped_ = 0;
  std::int64_t next_ = kFewest;
  std::int64_t limit_ = 0;  // labels at which it ends; 0 for none
  std::int64_t rank_ = 0;   // of what it showed
  std::int64_t start_ = 0, until_ = 0;
  std::int64_t partitions_ = 1, blocks_ = 1;
  bool open_ = false;
  std::int64_t began_ = 0;  // event time since when, while an incident is open
  std::optional<VerdictRecord> held_;
};

}  // namespace abers
