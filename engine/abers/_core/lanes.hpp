// Lanes of weights for observations that await labels; see tests/oracles/lanes.py.
//
// Invariants: the rows of `awaited_` and `kept_` are the observations that hold lanes, in any
// order; `row_of_` has the row of each lane, or kIdle; `idle_` is a heap of the idle lanes, the
// smallest first, and perhaps of lanes that were dropped since it was empty of others, with room
// for all that are busy. What needs memory comes first, so an operation that throws changes
// nothing.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <new>
#include <optional>
#include <stdexcept>
#include <unordered_map>
#include <utility>
#include <vector>

#include "experts.hpp"
#include "prefetch.hpp"

namespace abers {

// Numbers come from outside: the hash mixes their bits, so that no pattern of them collides.
struct MixedBits {
  std::size_t operator()(std::int64_t number) const noexcept {
    auto bits = static_cast<std::uint64_t>(number) + 0x9e3779b97f4a7c15u;
    bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9u;
    bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebu;
    return static_cast<std::size_t>(bits ^ (bits >> 31));
  }
};

class Lanes {
 public:
  using Lane = std::uint32_t;

  // `kept` is how many doubles an awaiting observation keeps.
  Lanes(std::vector<double> prior, std::size_t kept) : prior_(std::move(prior)), kept_size_(kept) {}

  std::size_t experts() const { return prior_.size(); }
  const std::vector<double>& prior() const { return prior_; }
  std::size_t kept_size() const { return kept_size_; }
  std::size_t size() const { return row_of_.size(); }  // without those that were dropped
  std::size_t most() const { return most_; }           // that ever awaited labels at once
  std::size_t awaiting() const { return awaited_.size(); }
  std::int64_t moment() const { return moment_; }

  // The lane of an awaiting observation.
  std::optional<Lane> find(std::int64_t number) const {
    const auto at = lane_of_.find(number);
    return at == lane_of_.end() ? std::nullopt : std::optional(at->second);
  }

  bool busy(Lane lane) const { return row_of_[lane] != kIdle; }
  std::int64_t number(Lane lane) const { return awaited_[row_of_[lane]].number; }  // of a busy one

  // Predictions before that of a busy lane.
  std::int64_t moment(Lane lane) const { return awaited_[row_of_[lane]].moment; }

  // Predictions before those that hold lanes, ascending.
  std::vector<std::int64_t> awaited() const {
    std::vector<std::int64_t> found;
    for (const Awaited& one : awaited_) found.push_back(one.moment);
    std::sort(found.begin(), found.end());
    return found;
  }

  // The numbers of those that hold lanes.
  std::vector<std::int64_t> numbers() const {
    std::vector<std::int64_t> found;
    for (const Awaited& one : awaited_) found.push_back(one.number);
    return found;
  }

  // The largest number of those that hold lanes; -1 if none does.
  std::int64_t last() const {
    std::int64_t found = -1;
    for (const Awaited& one : awaited_) found = std::max(found, one.number);
    return found;
  }

  // The lane that the next observation occupies: the smallest idle one, or a new one.
  Lane next() const {
    const auto fresh = static_cast<Lane>(size());
    return idle_.empty() ? fresh : std::min(fresh, idle_.front());
  }

  const double* weights(Lane lane) const {
    return lane < size() ? weights_.data() + lane * experts() : prior_.data();
  }

  // What the observation of a busy lane keeps.
  const double* kept(Lane lane) const { return kept_.data() + row_of_[lane] * kept_size(); }

  // Number -1 occupies a lane that `find` does not know.
  Lane occupy(std::int64_t number, const double* forecasts) {
    const Lane lane = next();
    if (lane == size()) {
      ready(weights_, experts());
      ready(row_of_, 1);
      idle_.clear();  // of lanes that were dropped
      ready(idle_, size() + 1);
    }
    ready(awaited_, 1);
    ready(kept_, kept_size());
    if (number >= 0) lane_of_.emplace(number, lane);
    if (lane == size()) {
      weights_.insert(weights_.end(), prior_.begin(), prior_.end());
      row_of_.push_back(kIdle);
      most_ = std::max(most_, size());
    } else {
      std::pop_heap(idle_.begin(), idle_.end(), std::greater<>());
      idle_.pop_back();
    }
    row_of_[lane] = static_cast<std::uint32_t>(awaited_.size());
    awaited_.push_back({number, moment_++, lane});
    kept_.insert(kept_.end(), forecasts, forecasts + kept_size());
    return lane;
  }

  // Fetches what the next lane has, and some of what observations keep, into the cache.
  void fetch() const {
    constexpr std::size_t most = 1024;  // bytes; more stays in the cache no longer than this step
    const auto some = [&](const auto& values) {
      prefetch(values.data(), std::min(values.size() * sizeof(values[0]), most));
    };
    some(weights_);
    some(kept_);
    some(row_of_);
    some(awaited_);
    some(idle_);
    some(prior_);
  }

  // Multiplies the weights of a lane, and scales them by a power of two.
  void multiply(Lane lane, const double* likelihoods) {
    double* const held = weights_.data() + lane * experts();
    for (std::size_t k = 0; k < experts(); ++k) held[k] *= likelihoods[k];
    scale(held, experts());
  }

  void release(Lane lane) {
    const std::uint32_t row = std::exchange(row_of_[lane], kIdle);
    lane_of_.erase(awaited_[row].number);
    if (row + 1 < awaited_.size()) {
      awaited_[row] = awaited_.back();
      row_of_[awaited_[row].lane] = row;
      const auto size = static_cast<std::ptrdiff_t>(kept_size());
      std::copy(kept_.end() - size, kept_.end(), kept_.begin() + row * size);
    }
    awaited_.pop_back();
    kept_.resize(kept_.size() - kept_size());
    idle_.push_back(lane);
    std::push_heap(idle_.begin(), idle_.end(), std::greater<>());
    drop();
    shrink();
  }

  // From now on observations keep so many doubles; none may hold a lane.
  void keep(std::size_t size) {
    if (awaiting() > 0) throw std::invalid_argument("observations await labels");
    kept_size_ = size;
  }

  // Mean weight of each expert over the lanes; before the first, the prior.
  void mean_weights(double* out) const {
    std::fill(out, out + experts(), 0.0);
    const std::size_t count = std::max<std::size_t>(most_, 1);
    const auto add = [&](const double* held, std::size_t times) {
      double total = 0.0;
      for (std::size_t k = 0; k < experts(); ++k) total += held[k];
      for (std::size_t k = 0; k < experts(); ++k) {
        out[k] += static_cast<double>(times) * (held[k] / total);
      }
    };
    for (Lane lane = 0; lane < size(); ++lane) add(weights(lane), 1);
    add(prior_.data(), count - size());
    for (std::size_t k = 0; k < experts(); ++k) out[k] /= static_cast<double>(count);
  }

  // Writes what awaits a label by lane, -1 for an idle one, and all weights.
  void save(std::int64_t* numbers, std::int64_t* moments, double* weights,
            double* forecasts) const {
    std::fill(numbers, numbers + size(), std::int64_t{-1});
    std::fill(moments, moments + size(), std::int64_t{0});
    std::fill(forecasts, forecasts + size() * kept_size(), 0.0);
    for (const Awaited& one : awaited_) {
      numbers[one.lane] = one.number;
      moments[one.lane] = one.moment;
      std::copy_n(kept(one.lane), kept_size(), forecasts + one.lane * kept_size());
    }
    std::copy(weights_.begin(), weights_.end(), weights);
  }

  std::size_t bytes() const {
    return (prior_.capacity() + weights_.capacity() + kept_.capacity()) * sizeof(double) +
           (row_of_.capacity() + idle_.capacity()) * sizeof(Lane) +
           awaited_.capacity() * sizeof(Awaited) + lane_of_.bucket_count() * sizeof(void*) +
           lane_of_.size() * kEntry;
  }

  // Takes over what `save` wrote, and `most`. What is saved with idle lanes means nothing.
  template <class Integers, class Doubles>
  void load(std::int64_t moment, std::size_t most, const Integers& numbers, const Integers& moments,
            const Doubles& weights, const Doubles& forecasts) {
    Lanes loaded(prior_, kept_size_);
    loaded.weights_.resize(weights.size());
    for (std::size_t i = 0; i < weights.size(); ++i) loaded.weights_[i] = weights[i];
    loaded.idle_.reserve(numbers.size());
    for (Lane lane = 0; lane < numbers.size(); ++lane) {
      loaded.row_of_.push_back(kIdle);
      if (numbers[lane] < 0) {
        loaded.idle_.push_back(lane);  // ascending, so a heap
        continue;
      }
      loaded.row_of_[lane] = static_cast<std::uint32_t>(loaded.awaited_.size());
      loaded.awaited_.push_back({numbers[lane], moments[lane], lane});
      for (std::size_t i = 0; i < kept_size(); ++i) {
        loaded.kept_.push_back(forecasts[lane * kept_size() + i]);
      }
      loaded.lane_of_.emplace(numbers[lane], lane);
    }
    loaded.moment_ = moment;
    loaded.most_ = most;
    loaded.drop();
    *this = std::move(loaded);
  }

 private:
  struct Awaited {
    std::int64_t number;
    std::int64_t moment;  // predictions before it
    Lane lane;
  };
  static constexpr std::uint32_t kIdle = std::numeric_limits<std::uint32_t>::max();

  // Drops the last lanes if they are idle and know nothing: no label came there.
  void drop() {
    while (size() > 0 && row_of_.back() == kIdle &&
           std::equal(prior_.begin(), prior_.end(), weights(static_cast<Lane>(size() - 1)))) {
      row_of_.pop_back();
      weights_.resize(weights_.size() - experts());
    }
  }

  // Gives back memory where a quarter of it would do. Without memory for the smaller, the larger
  // stays.
  void shrink() noexcept {
    try {
      if (kSlack + 4 * size() < idle_.capacity()) {
        std::erase_if(idle_, [&](Lane lane) { return lane >= size(); });
        std::make_heap(idle_.begin(), idle_.end(), std::greater<>());
        fit(idle_, size());
        fit(row_of_, size());
        fit(weights_, weights_.size());
      }
      if (kSlack + 4 * awaiting() < awaited_.capacity()) {
        fit(awaited_, 2 * awaiting());
        fit(kept_, 2 * kept_.size());
        lane_of_.rehash(0);
      }
    } catch (const std::bad_alloc&) {
    }
  }

  template <class T>
  static void fit(std::vector<T>& values, std::size_t room) {
    std::vector<T> smaller;
    smaller.reserve(room);
    smaller.assign(values.begin(), values.end());
    values.swap(smaller);
  }

  // Makes room for more, twice as much as there was, so that the room is made rarely.
  template <class T>
  static void ready(std::vector<T>& values, std::size_t more) {
    const std::size_t size = values.size() + more;
    if (values.capacity() < size) values.reserve(std::max(size, 2 * values.capacity()));
  }

  static constexpr std::size_t kSlack = 64;
  static constexpr std::size_t kEntry = 32;  // bytes of a node of the map

  std::vector<double> prior_;
  std::size_t kept_size_;
  std::vector<double> weights_, kept_;
  std::vector<std::uint32_t> row_of_;
  std::vector<Awaited> awaited_;
  std::vector<Lane> idle_;
  std::unordered_map<std::int64_t, Lane, MixedBits> lane_of_;
  std::int64_t moment_ = 0;
  std::size_t most_ = 0;
};

}  // namespace abers
