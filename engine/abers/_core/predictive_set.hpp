// The set behind predictive distributions: a buffer in the order of scores, and the rule by which
// its observations are forgotten.
//
// The contract is that of `abers/reference/mean_set.py`, the definition. Nothing is hidden or
// moved for a query: it reads the buffer and passes over what is too old for it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <sstream>
#include <tuple>
#include <utility>
#include <vector>

#include "check.hpp"
#include "forgetting.hpp"
#include "predictive_buffer.hpp"
#include "predictive_search.hpp"

namespace abers {

// Both CDFs at a score, and the smallest and the largest label seen.
struct Prediction {
  double smallest;
  double largest;
  std::vector<CdfStep> steps;
};

class PredictiveSet {
 public:
  PredictiveSet(std::size_t window, double max_age, double half_life)
      : window_(window),
        half_life_(half_life),
        lifetime_(half_life > 0 ? kLifetime * half_life : max_age) {}

  PredictiveSet(const PredictiveSet&) = delete;
  PredictiveSet& operator=(const PredictiveSet&) = delete;

  std::size_t window() const { return window_; }
  double half_life() const { return half_life_; }
  double lifetime() const { return lifetime_; }
  std::int64_t limit() const { return half_life_ > 0 ? kLimitDecaying : kLimit; }
  std::int64_t size() const { return size_; }
  std::int64_t total() const { return total_; }
  std::int64_t late() const { return late_; }

  Prediction predict(double score, double time) {
    const std::vector<CdfStep>& steps = solve(score, time, nullptr, 0);
    return {smallest_, largest_, steps};
  }

  // Where the merged CDF reaches a level; infinity where never.
  double quantile(double score, double level, double time) {
    return reach(solve(score, time, &level, 1), level,
                 [](const CdfStep& step) { return step.merged(); });
  }

  // Where the merged, the upper and the lower CDF reach each level.
  void quantiles(double score, double time, const double* levels, std::size_t count, double* merged,
                 double* upper, double* lower) {
    const std::vector<CdfStep>& steps = solve(score, time, levels, count);
    for (std::size_t i = 0; i < count; ++i) {
      merged[i] = reach(steps, levels[i], [](const CdfStep& step) { return step.merged(); });
      upper[i] = reach(steps, levels[i], [](const CdfStep& step) { return step.upper; });
      lower[i] = reach(steps, levels[i], [](const CdfStep& step) { return step.lower; });
    }
  }

  // False, with nothing changed, if the total weight would pass the limit.
  bool learn(double score, double label, std::int64_t weight, double time) {
    if (lifetime_ > 0) return learn_aging({time, score, label, weight});
    const bool full = window_ > 0 && arrivals_.size() == window_;
    const std::int64_t leaving = full ? arrivals_.front().weight : 0;
    if (weight > kLimit - (total_ - leaving)) return false;
    if (full) {
      pool(arrivals_.front().score, arrivals_.front().label, -leaving);
      arrivals_.pop_front();
    } else {
      ++size_;
    }
    if (window_ > 0) arrivals_.push_back({std::nan(""), score, label, weight});
    total_ += weight - leaving;
    pool(score, label, weight);
    return checked();
  }

  // False, with nothing changed, if that weight is not there.
  bool remove(double score, double label, std::int64_t weight) {
    const BufferEntry* held = buffer_.find(score, label);
    if (!held || held->weight < weight || (size_ == 1) != (total_ == weight)) return false;
    --size_;
    total_ -= weight;
    pool(score, label, -weight);
    return checked();
  }

  struct Labelled {
    double time;
    double score;
    double label;
    std::int64_t weight;

    bool operator<(const Labelled& other) const {  // canonical order
      return std::tie(time, score, label, weight) <
             std::tie(other.time, other.score, other.label, other.weight);
    }
    bool operator>(const Labelled& other) const { return other < *this; }
  };

  std::size_t observation_count() const { return lifetime_ > 0 ? ages_.size() : arrivals_.size(); }

  // What is remembered one by one: by arrival, or in canonical order.
  std::vector<Labelled> observations() const {
    if (lifetime_ == 0) return {arrivals_.begin(), arrivals_.end()};
    std::vector<Labelled> all = ages_;
    std::sort(all.begin(), all.end());
    return all;
  }

  std::size_t pooled_count() const {
    std::size_t count = 0;
    if (lifetime_ == 0) {
      for (const BufferBlock& block : buffer_.blocks()) count += block.entries.size();
    }
    return count;
  }

  // Calls visit(entry) for every entry in order.
  template <class Visit>
  void for_each(const Visit& visit) const {
    for (const BufferBlock& block : buffer_.blocks()) {
      for (const BufferEntry& entry : block.entries) visit(entry);
    }
  }

  // Fills an empty set that keeps everything from its entries in order.
  void load_pooled(const std::vector<BufferEntry>& entries, std::int64_t size) {
    size_ = size;
    for (const BufferEntry& entry : entries) {
      total_ += entry.weight;
      bits_ |= entry.weight;
    }
    buffer_.build(entries);
  }

  // Fills an empty set that forgets; none of the observations drives out another.
  void load_observations(const std::vector<Labelled>& observations, std::int64_t late) {
    for (const Labelled& o : observations) learn(o.score, o.label, o.weight, o.time);
    late_ = late;
  }

  void check() const {
    std::int64_t total = 0;
    const BufferEntry* before = nullptr;
    for_each([&](const BufferEntry& entry) {
      const bool ascends = !before || *before < entry || (lifetime_ > 0 && !(entry < *before));
      if (entry.weight <= 0 || !ascends) {
        std::ostringstream shown;
        shown << "invariant broken: weight or order of the entry at score " << entry.score
              << ", label " << entry.label << ", weight " << entry.weight;
        throw CheckFailure(shown.str());
      }
      before = &entry;
      total += entry.weight;
    });
    if (total != total_) throw CheckFailure("invariant broken: total weight");
    if ((size_ == 0) != (total_ == 0)) throw CheckFailure("invariant broken: size");
  }

  std::size_t bytes() const {
    return sizeof(*this) + buffer_.bytes() + arrivals_.size() * sizeof(Labelled) +
           ages_.capacity() * sizeof(Labelled);
  }

 private:
  template <class Cdf>
  static double reach(const std::vector<CdfStep>& steps, double level, const Cdf& cdf) {
    const auto at = std::partition_point(steps.begin(), steps.end(),
                                         [&](const CdfStep& step) { return cdf(step) < level; });
    return at == steps.end() ? std::numeric_limits<double>::infinity() : at->threshold;
  }

  bool learn_aging(const Labelled& observation) {
    if (observation.time < newest_ - lifetime_) {
      ++late_;
      return true;
    }
    const double newest = std::max(newest_, observation.time);
    const double horizon = newest - lifetime_;
    std::int64_t kept = total_;
    if (observation.weight > limit() - total_) {
      for (const Labelled& old : ages_) kept -= old.time < horizon ? old.weight : 0;
      if (observation.weight > limit() - kept) return false;
    }
    newest_ = newest;
    while (!ages_.empty() && ages_.front().time < horizon) {
      std::pop_heap(ages_.begin(), ages_.end(), std::greater<>());
      const Labelled& old = ages_.back();
      buffer_.erase({old.score, old.label, old.time, old.weight, 0});
      total_ -= old.weight;
      --size_;
      ages_.pop_back();
    }
    if (half_life_ > 0) rescale(scale_at(newest_, half_life_));
    ages_.push_back(observation);
    std::push_heap(ages_.begin(), ages_.end(), std::greater<>());
    BufferEntry entry{observation.score, observation.label, observation.time, observation.weight,
                      0};
    entry.seen = seen(entry);
    bits_ |= entry.weight;
    buffer_.insert(entry);
    ++size_;
    total_ += observation.weight;
    return checked();
  }

  bool checked() const {
#ifdef ABERS_CHECK
    check();
#endif
    return true;
  }

  std::int64_t seen(const BufferEntry& entry) const {
    return half_life_ > 0 ? decayed(entry.weight, entry.time, half_life_, exponent_) : entry.weight;
  }

  // Adds weight to the entry of a pair, or takes some away; one without weight is dropped.
  void pool(double score, double label, std::int64_t weight) {
    const BufferEntry* held = buffer_.find(score, label);
    bits_ |= weight;
    if (!held) {
      buffer_.insert({score, label, 0, weight, weight});
    } else if (held->weight + weight == 0) {
      buffer_.erase({score, label, 0, 0, 0});
    } else {
      buffer_.reweigh(*held, weight);
    }
  }

  // Whether all weights ever kept are whole, so that they can be counted.
  bool counts() const {
    return half_life_ == 0 && bits_ % kOne == 0 && total_ >> kOneBits <= Counted::kLimit;
  }

  const std::vector<CdfStep>& solve(double score, double time, const double* levels,
                                    std::size_t count) {
    const double now = time > newest_ ? time : newest_;
    std::int64_t weight = kOne;
    if (half_life_ > 0 && size_ > 0) {
      rescale(scale_at(now, half_life_));
      const double when = std::isnan(time) ? newest_ : time;
      weight = std::max<std::int64_t>(1, decayed(kOne, when, half_life_, exponent_));
    }
    return counts() ? solve<Counted>(score, now, 1, levels, count)
                    : solve<Weighted>(score, now, weight, levels, count);
  }

  // Moves all weights to the scale at which a query sees them.
  void rescale(std::int64_t exponent) {
    if (exponent == exponent_) return;
    exponent_ = exponent;
    buffer_.for_each([&](BufferEntry& entry) { entry.seen = seen(entry); });
  }

  // What it returns lasts until the next search of the thread.
  template <class A>
  const std::vector<CdfStep>& solve(double score, double now, std::int64_t weight,
                                    const double* levels, std::size_t count) {
    CdfSearch<A>& search = search_of_thread<A>();
    const double horizon = lifetime_ > 0 ? now - lifetime_ : 0;
    std::tie(smallest_, largest_) = buffer_.outline(horizon);
    if (smallest_ <= largest_) {
      return search.solve(buffer_, score, horizon, weight, levels, count);
    }
    std::swap(smallest_, largest_);
    return search.vacuous();
  }

  std::size_t window_;
  double half_life_;
  double lifetime_;
  std::int64_t size_ = 0;
  std::int64_t total_ = 0;  // of the weights as they were learned
  std::int64_t late_ = 0;
  std::int64_t bits_ = 0;      // of all weights ever kept
  std::int64_t exponent_ = 0;  // of the scale of decaying weights
  double newest_ = -std::numeric_limits<double>::infinity();
  double smallest_ = 0;
  double largest_ = 0;
  PredictiveBuffer buffer_;
  std::deque<Labelled> arrivals_;  // with a window, oldest first
  std::vector<Labelled> ages_;     // with a lifetime, a heap, the oldest in front
};

}  // namespace abers
