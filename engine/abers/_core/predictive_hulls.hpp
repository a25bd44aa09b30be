// The block around a query, from the upper hulls of the ends that its two stretches may have.
#pragma once

#include <cstddef>

#include "predictive_items.hpp"

namespace abers {

// An end of a stretch: its weight, and the weight of its hits.
template <class A>
struct HullVertex {
  typename A::Sum x;
  typename A::Sum y;
};

// Whether the slope falls at b.
template <class A>
bool turns_down(const HullVertex<A>& a, const HullVertex<A>& b, const HullVertex<A>& c) {
  using Product = typename A::Product;
  return static_cast<Product>(b.y - a.y) * (c.x - b.x) >
         static_cast<Product>(c.y - b.y) * (b.x - a.x);
}

// A probability is lowered from 1 until it is the slope of the block that is best for it; on the
// way the left stretch grows and the right one shrinks, an edge at a time, the steepest first.
template <class A>
class BlockSearch {
 public:
  using Sum = typename A::Sum;
  using Product = typename A::Product;
  using Vertex = HullVertex<A>;

  BlockSearch(const Vertex* left, std::size_t left_size, const Vertex* right,
              std::size_t right_size)
      : left_(left), right_(right), left_size_(left_size), c_(right_size - 1) {}

  // The slope for a query of that weight; a later call must not have more hits of its own.
  // Invariant of the loop: a and c are best for every slope from the answer's up to that of the
  // edge taken last.
  Slope<A> slope(Sum weight, Sum own_hits) {
    while (true) {
      const Product x = static_cast<Product>(left_[a_].x) + right_[c_].x + weight;
      const Product y =
          static_cast<Product>(left_[a_].y) + (right_[c_].x - right_[c_].y) + own_hits;
      Vertex growth{0, 0};
      Vertex shrinking{0, 0};
      bool grows = false;
      bool shrinks = false;
      if (a_ + 1 < left_size_) {
        growth = {left_[a_ + 1].x - left_[a_].x, left_[a_ + 1].y - left_[a_].y};
        grows = growth.y * x > y * growth.x;
      }
      if (c_ > 0) {
        shrinking.x = right_[c_].x - right_[c_ - 1].x;
        shrinking.y = shrinking.x - (right_[c_].y - right_[c_ - 1].y);
        shrinks = shrinking.y * x > y * shrinking.x;
      }
      if (!grows && !shrinks) return {y, x};
      if (grows && shrinks) {
        grows = static_cast<Product>(growth.y) * shrinking.x >=
                static_cast<Product>(shrinking.y) * growth.x;
      }
      if (grows) {
        ++a_;
      } else {
        --c_;
      }
    }
  }

 private:
  const Vertex* left_;
  const Vertex* right_;
  std::size_t left_size_;
  std::size_t a_ = 0;
  std::size_t c_;
};

}  // namespace abers
