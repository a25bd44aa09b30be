// The table of a calibration set that is asked for many predictions between two labels.
//
// A table costs about as much as searching for an eighth as many queries as there are observations.
// It is made for a batch of so many, and for the second batch since the last change where as much
// has been learned or searched for since the last table: so tables never cost more than the work
// that went before them, however labels and batches alternate.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "label_rates.hpp"
#include "table.hpp"

namespace abers {

constexpr std::size_t kMany = 64;  // steps at once, from which and from which share of the
constexpr std::size_t kShare = 8;  // observations the whole diagram is worth it

// Whether so many steps are cheaper by going through a whole diagram.
inline bool pays(std::size_t steps, std::int64_t held) {
  return steps >= kMany && steps >= static_cast<std::size_t>(held) / kShare;
}

class TableCache {
 public:
  // The diagram was changed by that many observations.
  void change(std::size_t observations) {
    table_.reset();
    is_asked_ = false;
    work_ += observations;
  }

  // The table for a batch of queries of those weights; none where a search for each is cheaper.
  template <class Make>
  const Table* find(std::size_t queries, const QueryWeights& weights, std::int64_t held,
                    const Make& make) {
    if (table_ && weights_ == weights) return kept();
    work_ += queries;
    if (queries < kMany) return nullptr;
    const bool is_asked_again = std::exchange(is_asked_, true);
    if (!pays(queries, held) && !(is_asked_again && pays(work_, held))) return nullptr;
    table_.emplace(make());
    weights_ = weights;
    work_ = 0;
    return kept();
  }

  const Table* kept() const { return table_ ? &*table_ : nullptr; }
  const QueryWeights& weights() const { return weights_; }
  std::size_t bytes() const { return table_ ? table_->bytes() : 0; }

 private:
  std::optional<Table> table_;
  QueryWeights weights_;   // of the table's queries
  bool is_asked_ = false;  // for a batch since the last change
  std::size_t work_ = 0;   // observations and queries since the last table
};

}  // namespace abers
