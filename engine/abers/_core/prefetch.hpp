// Fetches into the cache what the next models need while the present one runs: of many models few
// are in the cache, and waiting for memory would take longer than all the rest.
#pragma once

#include <cstddef>

namespace abers {

inline void prefetch(const void* begin, std::size_t bytes) {
  constexpr std::size_t line = 64;
  const auto* const at = static_cast<const char*>(begin);
  for (std::size_t i = 0; i < bytes; i += line) __builtin_prefetch(at + i);
}

template <class T>
void prefetch(const T& one) {
  prefetch(&one, sizeof(T));
}

}  // namespace abers
