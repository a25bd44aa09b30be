// Seals with a checksum around saved state; see abers/serialization.py.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "blake2b.hpp"
#include "saved_bytes.hpp"

namespace abers {

inline constexpr std::size_t kDigestBytes = 16;

// Appends a payload under a seal; `write` appends it.
template <class Write>
void append_sealed(std::string& bytes, std::string_view magic, const Write& write) {
  const std::size_t at = bytes.size();
  bytes.append(magic);
  write();
  Blake2b hash(kDigestBytes);
  hash.update(std::string_view(bytes).substr(at));
  bytes.append(hash.digest());
}

inline std::string_view unsealed(std::string_view magic, std::string_view blob) {
  require_saved(blob.starts_with(magic), "kind or format");
  blob.remove_prefix(magic.size());
  require_saved(blob.size() >= kDigestBytes, "cut short");
  const std::string_view payload = blob.substr(0, blob.size() - kDigestBytes);
  Blake2b hash(kDigestBytes);
  hash.update(magic);
  hash.update(payload);
  require_saved(blob.substr(payload.size()) == hash.digest(), "checksum");
  return payload;
}

}  // namespace abers
