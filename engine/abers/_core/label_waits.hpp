// Labels that came before their observations, by the offsets of their records.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

namespace abers {

struct LabelWait {
  std::uint64_t hash;  // of the id
  std::int64_t part;   // of time, in which the label came
};

// Invariant: each label is in all three orders.
class LabelWaits {
 public:
  using ByOffset = std::map<std::int64_t, LabelWait>;

  const ByOffset& all() const { return all_; }
  std::size_t count() const { return all_.size(); }

  void add(std::int64_t offset, const LabelWait& wait) {
    all_.emplace(offset, wait);
    by_hash_.emplace(wait.hash, offset);
    by_part_.emplace(wait.part, offset);
  }

  // Removes a label, if it waits.
  void drop(std::int64_t offset) {
    const auto found = all_.find(offset);
    if (found == all_.end()) return;
    by_hash_.erase({found->second.hash, offset});
    by_part_.erase({found->second.part, offset});
    all_.erase(found);
  }

  // Removes the labels of an id that came in a part of time up to `last`, and calls emit(offset).
  template <class Emit>
  void match(std::uint64_t hash, std::int64_t last, const Emit& emit) {
    if (all_.empty()) return;
    auto at = by_hash_.lower_bound({hash, kFirst});
    while (at != by_hash_.end() && at->first == hash) {
      const std::int64_t offset = (at++)->second;
      if (all_.at(offset).part > last) continue;
      emit(offset);
      drop(offset);
    }
  }

  // Removes all labels that came in a part of time up to `last`, and calls emit(offset).
  template <class Emit>
  void expire(std::int64_t last, const Emit& emit) {
    while (!by_part_.empty() && by_part_.begin()->first <= last) {
      const std::int64_t offset = by_part_.begin()->second;
      emit(offset);
      drop(offset);
    }
  }

 private:
  static constexpr std::int64_t kFirst = INT64_MIN;  // before all offsets

  ByOffset all_;
  std::set<std::pair<std::uint64_t, std::int64_t>> by_hash_;
  std::set<std::pair<std::int64_t, std::int64_t>> by_part_;
};

}  // namespace abers
