// What the tree over the buckets is made of: nodes with bridges, forks, and the buckets in chunks.
//
// What a search reads at every level is small and apart from the rest, so that it
// stays in the cache however many observations there are.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "leaf.hpp"

namespace abers {

using Ref = std::uint32_t;  // a node, or with the highest bit set a leaf
constexpr Ref kLeafBit = Ref{1} << 31;
constexpr std::size_t kDepth = 80;       // log(2^31) / log(4/3), the deepest a balanced tree gets
constexpr double kMargin = 1.0 + 1e-14;  // more than the rounding of slopes
inline bool is_leaf(Ref ref) { return (ref & kLeafBit) != 0; }

template <class A>
struct Vertex {  // a point in stored width, relative to the start of a child
  typename A::Stored x;
  typename A::Stored y;
};

// Bounds on the slopes of the hull edges to the left and to the right of a vertex. Single
// precision, rounded outwards, so that a node of counts fills exactly one line of the cache.
struct Beside {
  float before;  // no edge to the left is steeper
  float after;   // none to the right is flatter

  static constexpr double kOut = 1.0 + 2e-7;  // more than the rounding to single precision
  void set_before(double slope) { before = static_cast<float>(slope * kOut); }
  void set_after(double slope) { after = static_cast<float>(slope / kOut); }

  // Whether a slope is safely between the two, so that the vertex is the extreme one in its
  // direction. Rounding can only make the answer no, which costs a search.
  bool spans(double slope) const { return before * kMargin < slope && slope * kMargin < after; }
};

template <class A>
struct alignas(64) Node {
  Vertex<A> left_total;
  Vertex<A> u;  // left end of the bridge
  Vertex<A> v;  // right end of the bridge
  double u_score;
  double v_score;
  Beside at_u;  // in the hull of the left child
  Beside at_v;  // in the hull of the right child
  std::uint32_t leaves;
};

// What it takes to find a score, apart from the node, so that all of it stays in the cache.
struct Fork {
  double first_right;
  Ref left;
  Ref right;
  Ref towards(double score) const { return score >= first_right ? right : left; }
};

// Buckets in chunks, so that none ever moves and growth never copies them all.
template <class A>
class Leaves {
 public:
  Leaf<A>& operator[](std::size_t i) { return (*chunks_[i / kChunk])[i % kChunk]; }
  const Leaf<A>& operator[](std::size_t i) const { return (*chunks_[i / kChunk])[i % kChunk]; }
  std::size_t size() const { return size_; }
  Leaf<A>& add() {
    if (size_ % kChunk == 0) chunks_.push_back(std::make_unique<Chunk>());
    return (*this)[size_++];
  }
  void clear() {
    chunks_.clear();
    size_ = 0;
  }

 private:
  static constexpr std::size_t kChunk = 8;
  using Chunk = std::array<Leaf<A>, kChunk>;
  std::vector<std::unique_ptr<Chunk>> chunks_;
  std::size_t size_ = 0;
};

}  // namespace abers
