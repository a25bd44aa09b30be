// What is remembered one by one in order to be forgotten: by arrival, or by age.
//
// This is the canonical state of a calibrator that forgets; the diagram is made
// from it and can always be made again.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <set>
#include <tuple>
#include <vector>

#include "arithmetic.hpp"

namespace abers {

constexpr int kLifetime = 30;  // half-lives after which an observation is dropped
constexpr int kRescale = 4;    // half-lives between two changes of the common scale
constexpr std::int64_t kLimit = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kLimitDecaying = std::int64_t{1} << 58;  // room for 2^kRescale

// The common scale of decaying weights at a time: the largest multiple of kRescale not above it.
inline std::int64_t scale_at(double now, double half_life) {
  const auto whole = static_cast<std::int64_t>(std::floor(now / half_life));
  const std::int64_t part = whole % kRescale;
  return whole - (part < 0 ? part + kRescale : part);
}

// Weight on a common scale: rounded once within a half-life, shifted by whole ones.
inline std::int64_t decayed(std::int64_t weight, double time, double half_life,
                            std::int64_t exponent) {
  const double lives = time / half_life;
  const double whole = std::floor(lives);
  const auto mantissa = static_cast<std::int64_t>(
      std::nearbyint(static_cast<double>(weight) * std::exp2(lives - whole)));
  const std::int64_t shift = static_cast<std::int64_t>(whole) - exponent;
  if (shift >= 0) return mantissa << shift;
  return shift > -64 ? mantissa >> -shift : 0;
}

struct Observation {
  double time;
  double score;
  std::int64_t weight;  // fixed point
  std::int32_t label;

  bool operator<(const Observation& other) const {  // canonical order
    return std::tie(time, score, label, weight) <
           std::tie(other.time, other.score, other.label, other.weight);
  }
};

template <class T>
bool is_newer(const T& a, const T& b) {
  return a.time > b.time;
}

// The last observations in order of arrival, in a ring. Weights take memory once one is not 1.
class Arrivals {
 public:
  std::size_t size() const { return scores_.size(); }

  // The i-th oldest.
  Observation operator[](std::size_t i) const {
    const std::size_t at = (oldest_ + i) % size();
    return {std::nan(""), scores_[at], weights_.empty() ? kOne : weights_[at], labels_[at]};
  }

  void push(double score, int label, std::int64_t weight, std::size_t window) {
    grow(window);
    keep_weight(weight);
    scores_.push_back(score);
    labels_.push_back(static_cast<std::uint8_t>(label));
    if (!weights_.empty()) weights_.back() = weight;
  }

  // Puts the newest in the place of the oldest.
  void replace(double score, int label, std::int64_t weight) {
    if (weight != kOne && weights_.empty()) weights_.assign(size(), kOne);
    scores_[oldest_] = score;
    labels_[oldest_] = static_cast<std::uint8_t>(label);
    if (!weights_.empty()) weights_[oldest_] = weight;
    oldest_ = oldest_ + 1 == size() ? 0 : oldest_ + 1;
  }

  std::size_t bytes() const {
    return scores_.capacity() * sizeof(double) + labels_.capacity() +
           weights_.capacity() * sizeof(std::int64_t);
  }

 private:
  void grow(std::size_t window) {  // doubles, but never beyond the window
    if (size() < scores_.capacity()) return;
    const std::size_t room = std::min(window, std::max<std::size_t>(8, 2 * size()));
    scores_.reserve(room);
    labels_.reserve(room);
  }

  void keep_weight(std::int64_t weight) {
    if (!weights_.empty()) {
      weights_.push_back(kOne);
    } else if (weight != kOne) {
      weights_.assign(size() + 1, kOne);
    }
  }

  std::vector<double> scores_;
  std::vector<std::uint8_t> labels_;
  std::vector<std::int64_t> weights_;
  std::size_t oldest_ = 0;
};

// Observations by age. Those before the horizon of the latest query are hidden: out of the
// diagram, but back in it when a query is for an earlier time.
template <class T>
class Ages {
 public:
  std::size_t size() const { return shown_.size() + hidden_.size(); }
  const std::vector<T>& shown() const { return shown_; }
  const std::multiset<T>& hidden() const { return hidden_; }

  // Adds an observation; false if it lies before the horizon and stays hidden.
  bool push(const T& observation, double horizon) {
    if (observation.time >= horizon) {
      shown_.push_back(observation);
      std::push_heap(shown_.begin(), shown_.end(), is_newer<T>);
      return true;
    }
    hidden_.insert(observation);
    return false;
  }

  // Moves the horizon; hide(o) and show(o) are called for what crosses it.
  template <class Hide, class Show>
  void move_horizon(double horizon, const Hide& hide, const Show& show) {
    while (!shown_.empty() && shown_.front().time < horizon) {
      std::pop_heap(shown_.begin(), shown_.end(), is_newer<T>);
      hide(shown_.back());
      hidden_.insert(shown_.back());
      shown_.pop_back();
    }
    while (!hidden_.empty() && hidden_.rbegin()->time >= horizon) {
      show(*hidden_.rbegin());
      shown_.push_back(*hidden_.rbegin());
      std::push_heap(shown_.begin(), shown_.end(), is_newer<T>);
      hidden_.erase(std::prev(hidden_.end()));
    }
  }

  // Drops what is hidden and older than `horizon` for good; drop(o) is called for each.
  template <class Drop>
  void drop_before(double horizon, const Drop& drop) {
    while (!hidden_.empty() && hidden_.begin()->time < horizon) {
      drop(*hidden_.begin());
      hidden_.erase(hidden_.begin());
    }
  }

  // Weight of all that is older than `horizon`.
  std::int64_t weight_before(double horizon) const {
    std::int64_t sum = 0;
    const auto add = [&](const T& o) { sum += o.time < horizon ? o.weight : 0; };
    std::for_each(shown_.begin(), shown_.end(), add);
    std::for_each(hidden_.begin(), hidden_.end(), add);
    return sum;
  }

  std::vector<T> sorted() const {
    std::vector<T> all(hidden_.begin(), hidden_.end());
    all.insert(all.end(), shown_.begin(), shown_.end());
    std::sort(all.begin(), all.end());
    return all;
  }

  std::size_t bytes() const {
    return shown_.capacity() * sizeof(T) + hidden_.size() * (sizeof(T) + kNode);
  }

 private:
  static constexpr std::size_t kNode = 4 * sizeof(void*);  // of a set, besides what it holds

  std::vector<T> shown_;  // a heap, the oldest in front
  std::multiset<T> hidden_;
};

}  // namespace abers
