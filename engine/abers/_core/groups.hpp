// Groups of observations with one score, from which a diagram is built.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "diagram.hpp"

namespace abers {

// Radix sort: several times faster than comparing where a million observations are restored. Of few
// groups, as of each of many models, its counts take longer than comparing. Ties keep their order.
inline void sort_by_score(std::vector<Group>& groups) {
  constexpr std::size_t few = 512;
  if (groups.size() < few) {
    std::stable_sort(groups.begin(), groups.end(),
                     [](const Group& a, const Group& b) { return a.score < b.score; });
    return;
  }
  constexpr int digit = 11;
  constexpr std::uint64_t mask = (1u << digit) - 1;
  constexpr std::uint64_t sign = std::uint64_t{1} << 63;
  struct Key {
    std::uint64_t key;  // ascends with the score
    std::uint64_t at;
  };
  std::vector<Key> keys(groups.size());
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const auto bits = std::bit_cast<std::uint64_t>(groups[i].score);
    keys[i] = {bits & sign ? ~bits : bits | sign, i};
  }
  std::vector<Key> sorted(groups.size());
  for (int shift = 0; shift < 64; shift += digit) {
    std::array<std::size_t, mask + 1> starts{};
    for (const Key& k : keys) ++starts[(k.key >> shift) & mask];
    std::exclusive_scan(starts.begin(), starts.end(), starts.begin(), std::size_t{0});
    for (const Key& k : keys) sorted[starts[(k.key >> shift) & mask]++] = k;
    keys.swap(sorted);
  }
  std::vector<Group> ordered(groups.size());
  for (std::size_t i = 0; i < groups.size(); ++i) ordered[i] = groups[keys[i].at];
  groups.swap(ordered);
}

inline void pool_ties(std::vector<Group>& groups) {
  std::size_t last = 0;
  for (std::size_t i = 1; i < groups.size(); ++i) {
    if (groups[i].score == groups[last].score) {
      groups[last].negatives += groups[i].negatives;
      groups[last].positives += groups[i].positives;
    } else {
      groups[++last] = groups[i];
    }
  }
  if (!groups.empty()) groups.resize(last + 1);
}

}  // namespace abers
