// Sums over consecutive labels, in a bounded number of points; see `trail` in
// tests/oracles/answer_sums.py.
//
// Invariant: each point but the last has `size` labels, and the last as many at most.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "saved_fields.hpp"

namespace abers {

template <class Point>
class LabelTrail {
 public:
  static constexpr std::size_t kMost = 64;
  static constexpr std::int64_t kFirst = 40;  // labels of a point at first

  explicit LabelTrail(const Point& empty) : empty_(empty) {}

  // The point of the next label. Of too many every two neighbours become one.
  Point& next() {
    if (points_.empty() || points_.back().labels == size_) {
      if (points_.size() == kMost) halve();
      points_.push_back(empty_);
    }
    return points_.back();
  }

  const std::vector<Point>& points() const { return points_; }

  void save(std::string& bytes) const {
    FieldWriter write(bytes);
    write(size_);
    write(static_cast<std::uint64_t>(points_.size()));
    for (const Point& one : points_) Point::fields(one, write);
  }

  void load(SavedReader& reader, std::int64_t labels) {
    FieldReader read(reader);
    std::uint64_t count = 0;
    read(size_);
    read(count);
    require_saved(size_ >= kFirst && size_ <= kMaxCount && size_ % kFirst == 0, "points");
    const std::int64_t last = labels % size_ ? labels % size_ : size_;
    require_saved(count <= kMost &&
                      labels / size_ + (labels % size_ != 0) == static_cast<std::int64_t>(count),
                  "points");
    points_.assign(count, empty_);
    for (std::size_t i = 0; i < count; ++i) {
      Point::fields(points_[i], read);
      points_[i].check();
      require_saved(points_[i].labels == (i + 1 < count ? size_ : last), "points");
    }
  }

 private:
  void halve() {
    for (std::size_t k = 0; k < kMost / 2; ++k) {
      Point joined = points_[2 * k];
      joined.join(points_[2 * k + 1]);
      points_[k] = joined;
    }
    points_.resize(kMost / 2, empty_);
    size_ *= 2;
  }

  Point empty_;
  std::int64_t size_ = kFirst;
  std::vector<Point> points_;
};

// What is saved of sums with a trail: their fields, which `write_fields` writes, then its points.
template <class F, class Point>
std::string saved_sums(F write_fields, const LabelTrail<Point>& trail) {
  std::string bytes;
  FieldWriter write(bytes);
  write_fields(write);
  trail.save(bytes);
  return bytes;
}

// Which predictions a period or a point has, by their numbers, and when they were made.
struct Stretch {
  std::int64_t first = 0, last = 0;   // numbers of predictions
  std::int64_t start = 0, until = 0;  // first and latest event time
  std::int64_t labels = 0;

  void extend(std::int64_t number, std::int64_t time) {
    if (labels == 0) {
      first = number;
      start = until = time;
    }
    last = number;
    until = until < time ? time : until;
    ++labels;
  }

  void extend(const Stretch& later) {
    last = later.last;
    until = until < later.until ? later.until : until;
    labels += later.labels;
  }

  template <class Self, class F>
  static void fields(Self& one, F&& each) {
    each(one.first);
    each(one.last);
    each(one.start);
    each(one.until);
    each(one.labels);
  }

  void check() const {
    require_saved(labels >= 0 && labels <= kMaxCount, "labels of a period");
    require_saved(first >= 0 && last <= kMaxCount, "rows of a period");
    require_saved(labels == 0 ? first == 0 && last == 0 : last - first >= labels - 1,
                  "rows of a period");
    require_saved(start <= until, "times of a period");
  }
};

}  // namespace abers
