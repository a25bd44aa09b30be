// What the calibrator is measured against in C++: a batch refit, and bare ordered containers.
//
// Every container offers insert, erase and query, and is driven by one loop, so
// that all of them see the same stream in the same way. Used through `ctypes` by `rivals.py`.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

namespace {

using Pair = std::pair<double, double>;

// Sorted arrays, and two fits from nothing for every query: pool adjacent violators (Ayer et al.
// 1955) in one pass with a stack of blocks.
class BatchPava {
 public:
  // A label 1 goes before its ties and a label 0 behind them: a falling run is pooled anyway, so
  // ties are pooled without any further care.
  void insert(double score, std::uint8_t label) {
    const std::size_t at = place(score, label);
    scores_.insert(scores_.begin() + static_cast<std::ptrdiff_t>(at), score);
    labels_.insert(labels_.begin() + static_cast<std::ptrdiff_t>(at), label);
  }

  void erase(double score, std::uint8_t label) {
    // The labels of a tie are 1, …, 1, 0, …, 0.
    const std::size_t at = label ? place(score, 1) : place(score, 0) - 1;
    scores_.erase(scores_.begin() + static_cast<std::ptrdiff_t>(at));
    labels_.erase(labels_.begin() + static_cast<std::ptrdiff_t>(at));
  }

  Pair query(double score) { return {fit(score, 0), fit(score, 1)}; }

  // Fills an empty one, since one insertion after the other would take minutes.
  void fill(const double* scores, const std::uint8_t* labels, std::size_t n) {
    std::vector<std::size_t> order(n);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return std::make_pair(scores[a], -labels[a]) < std::make_pair(scores[b], -labels[b]);
    });
    for (const std::size_t i : order) {
      scores_.push_back(scores[i]);
      labels_.push_back(labels[i]);
    }
  }

 private:
  struct Block {
    std::int64_t positives;
    std::int64_t weight;
  };

  std::size_t place(double score, std::uint8_t label) const {
    const auto at = label ? std::lower_bound(scores_.begin(), scores_.end(), score)
                          : std::upper_bound(scores_.begin(), scores_.end(), score);
    return static_cast<std::size_t>(at - scores_.begin());
  }

  // The fitted value of an additional observation.
  double fit(double score, std::uint8_t label) {
    const std::size_t at = place(score, label);
    blocks_.resize(labels_.size() + 1);
    std::size_t count = 0;
    for (std::size_t i = 0; i < at; ++i) push(count, labels_[i]);
    push(count, label);
    for (std::size_t i = at; i < labels_.size(); ++i) push(count, labels_[i]);
    std::int64_t before = 0;
    std::size_t k = 0;
    while (before + blocks_[k].weight <= static_cast<std::int64_t>(at))
      before += blocks_[k++].weight;
    return static_cast<double>(blocks_[k].positives) / static_cast<double>(blocks_[k].weight);
  }

  void push(std::size_t& count, std::uint8_t label) {
    Block last{label, 1};
    while (count > 0 && blocks_[count - 1].positives * last.weight >=
                            last.positives * blocks_[count - 1].weight) {
      --count;
      last.positives += blocks_[count].positives;
      last.weight += blocks_[count].weight;
    }
    blocks_[count++] = last;
  }

  std::vector<double> scores_;
  std::vector<std::uint8_t> labels_;
  std::vector<Block> blocks_;
};

// The standard library's balanced tree.
class Multiset {
 public:
  void insert(double score, std::uint8_t) { scores_.insert(score); }
  void erase(double score, std::uint8_t) { scores_.erase(scores_.find(score)); }
  Pair query(double score) const {
    const auto at = scores_.lower_bound(score);
    return {at == scores_.end() ? score : *at, 0.0};
  }

 private:
  std::multiset<double> scores_;
};

// Sorted buckets under one sorted array of their largest scores: about the fastest ordered
// container of a million doubles.
class Buckets {
 public:
  void insert(double score, std::uint8_t) {
    if (buckets_.empty()) {
      buckets_.push_back(std::make_unique<Bucket>());
      last_.push_back(score);
    }
    const std::size_t b = std::min(place(score), buckets_.size() - 1);
    Bucket& bucket = *buckets_[b];
    double* const at = std::lower_bound(bucket.begin(), bucket.end(), score);
    std::copy_backward(at, bucket.end(), bucket.end() + 1);
    *at = score;
    ++bucket.size;
    last_[b] = bucket.scores[bucket.size - 1];
    if (bucket.size == kCapacity) split(b);
  }

  void erase(double score, std::uint8_t) {
    const std::size_t b = place(score);
    Bucket& bucket = *buckets_[b];
    double* const at = std::lower_bound(bucket.begin(), bucket.end(), score);
    std::copy(at + 1, bucket.end(), at);
    if (--bucket.size > 0) {
      last_[b] = bucket.scores[bucket.size - 1];
    } else {
      buckets_.erase(buckets_.begin() + static_cast<std::ptrdiff_t>(b));
      last_.erase(last_.begin() + static_cast<std::ptrdiff_t>(b));
    }
  }

  Pair query(double score) const {
    const std::size_t b = place(score);
    if (b == buckets_.size()) return {score, 0.0};
    return {*std::lower_bound(buckets_[b]->begin(), buckets_[b]->end(), score), 0.0};
  }

 private:
  static constexpr std::size_t kCapacity = 256;  // no size from 64 to 1024 is clearly faster

  struct Bucket {
    double scores[kCapacity];
    std::size_t size = 0;
    double* begin() { return scores; }
    double* end() { return scores + size; }
  };

  std::size_t place(double score) const {
    return static_cast<std::size_t>(std::lower_bound(last_.begin(), last_.end(), score) -
                                    last_.begin());
  }

  void split(std::size_t b) {
    Bucket& lower = *buckets_[b];
    auto upper = std::make_unique<Bucket>();
    constexpr std::size_t half = kCapacity / 2;
    std::copy(lower.begin() + half, lower.end(), upper->begin());
    upper->size = kCapacity - half;
    lower.size = half;
    last_.insert(last_.begin() + static_cast<std::ptrdiff_t>(b), lower.scores[half - 1]);
    buckets_.insert(buckets_.begin() + static_cast<std::ptrdiff_t>(b) + 1, std::move(upper));
  }

  std::vector<std::unique_ptr<Bucket>> buckets_;
  std::vector<double> last_;
};

struct Rival {
  virtual ~Rival() = default;
  virtual void fill(const double* scores, const std::uint8_t* labels, std::size_t n) = 0;
  virtual void run(const std::uint8_t* steps, const double* scores, const std::uint8_t* labels,
                   std::size_t n, double* p0, double* p1) = 0;
};

// With a window, learning drives the oldest observation out.
template <class Container>
class Driven : public Rival {
 public:
  explicit Driven(std::size_t window) : window_(window) {}

  void fill(const double* scores, const std::uint8_t* labels, std::size_t n) override {
    if constexpr (requires { held_.fill(scores, labels, n); }) {
      held_.fill(scores, labels, n);
    } else {
      for (std::size_t i = 0; i < n; ++i) held_.insert(scores[i], labels[i]);
    }
    for (std::size_t i = 0; window_ > 0 && i < n; ++i) arrived_.push_back({scores[i], labels[i]});
  }

  void run(const std::uint8_t* steps, const double* scores, const std::uint8_t* labels,
           std::size_t n, double* p0, double* p1) override {
    for (std::size_t i = 0; i < n; ++i) {
      if (steps[i] == 0) {
        std::tie(p0[i], p1[i]) = held_.query(scores[i]);
      } else if (steps[i] == 1) {
        if (window_ > 0) forget_oldest({scores[i], labels[i]});
        held_.insert(scores[i], labels[i]);
      } else {
        held_.erase(scores[i], labels[i]);
      }
    }
  }

 private:
  void forget_oldest(std::pair<double, std::uint8_t> newest) {
    if (arrived_.size() < window_) {
      arrived_.push_back(newest);
      return;
    }
    held_.erase(arrived_[oldest_].first, arrived_[oldest_].second);
    arrived_[oldest_] = newest;
    oldest_ = (oldest_ + 1) % window_;
  }

  Container held_;
  std::size_t window_;
  std::vector<std::pair<double, std::uint8_t>> arrived_;
  std::size_t oldest_ = 0;
};

}  // namespace

extern "C" {

Rival* rival_new(int kind, std::size_t window) {
  if (kind == 0) return new Driven<BatchPava>(window);
  if (kind == 1) return new Driven<Multiset>(window);
  return new Driven<Buckets>(window);
}

void rival_fill(Rival* rival, const double* scores, const std::uint8_t* labels, std::size_t n) {
  rival->fill(scores, labels, n);
}

void rival_run(Rival* rival, const std::uint8_t* steps, const double* scores,
               const std::uint8_t* labels, std::size_t n, double* p0, double* p1) {
  rival->run(steps, scores, labels, n, p0, p1);
}

void rival_free(Rival* rival) { delete rival; }
}
