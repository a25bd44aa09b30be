// How many forecasts there are of each multiple of 1/4096; see `Tally` in tests/oracles/tally.py.
//
// Only what came has room, so that many small tallies stay small; at most 4,097
// groups ever come, so that moving them up for a new one costs nothing in the long run.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace abers {

class Tally {
 public:
  struct Group {
    std::int64_t number;
    std::int64_t count;
    std::int64_t positives;
  };

  void add(double forecast, bool label) {
    add({static_cast<std::int64_t>(std::nearbyint(forecast * kParts)), 1, label ? 1 : 0});
  }

  void add(const Group& group) {
    const auto below = [](const Group& one, std::int64_t number) { return one.number < number; };
    auto at = std::lower_bound(groups_.begin(), groups_.end(), group.number, below);
    if (at == groups_.end() || at->number != group.number) {
      groups_.insert(at, group);
    } else {
      at->count += group.count;
      at->positives += group.positives;
    }
  }

  const std::vector<Group>& groups() const { return groups_; }

 private:
  static constexpr double kParts = 4096.0;

  std::vector<Group> groups_;  // ascending
};

}  // namespace abers
