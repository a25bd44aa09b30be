// BLAKE2b without a key, as RFC 7693 defines it: the checksum of a seal, see
// abers/serialization.py.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "saved_bytes.hpp"

namespace abers {

class Blake2b {
 public:
  explicit Blake2b(std::size_t digest_bytes) : digest_bytes_(digest_bytes) {
    state_[0] ^= 0x01010000u ^ digest_bytes;
  }

  void update(std::string_view bytes) {
    while (!bytes.empty()) {
      if (filled_ == kBlock) compress(false);  // only the last block is marked, so a full one waits
      const std::size_t some = std::min(kBlock - filled_, bytes.size());
      std::copy_n(bytes.begin(), some, block_.begin() + static_cast<std::ptrdiff_t>(filled_));
      filled_ += some;
      bytes.remove_prefix(some);
    }
  }

  std::string digest() {
    std::fill(block_.begin() + static_cast<std::ptrdiff_t>(filled_), block_.end(), '\0');
    compress(true);
    std::string found;
    for (const std::uint64_t word : state_) append(found, word);
    found.resize(digest_bytes_);
    return found;
  }

 private:
  static constexpr std::size_t kBlock = 128;
  using Words = std::array<std::uint64_t, 16>;
  static constexpr std::array<std::uint64_t, 8> kStart{
      0x6a09e667f3bcc908u, 0xbb67ae8584caa73bu, 0x3c6ef372fe94f82bu, 0xa54ff53a5f1d36f1u,
      0x510e527fade682d1u, 0x9b05688c2b3e6c1fu, 0x1f83d9abfb41bd6bu, 0x5be0cd19137e2179u};
  static constexpr std::array<std::array<std::uint8_t, 16>, 10> kOrder{{
      {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
      {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
      {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4},
      {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
      {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13},
      {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
      {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11},
      {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
      {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5},
      {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0},
  }};

  static void mix(Words& v, std::size_t a, std::size_t b, std::size_t c, std::size_t d,
                  std::uint64_t x, std::uint64_t y) {
    v[a] += v[b] + x;
    v[d] = std::rotr(v[d] ^ v[a], 32);
    v[c] += v[d];
    v[b] = std::rotr(v[b] ^ v[c], 24);
    v[a] += v[b] + y;
    v[d] = std::rotr(v[d] ^ v[a], 16);
    v[c] += v[d];
    v[b] = std::rotr(v[b] ^ v[c], 63);
  }

  void compress(bool last) {
    count_ += filled_;
    Words m, v;
    for (std::size_t i = 0; i < m.size(); ++i) m[i] = number<std::uint64_t>(block_.data() + 8 * i);
    std::copy(state_.begin(), state_.end(), v.begin());
    std::copy(kStart.begin(), kStart.end(), v.begin() + 8);
    v[12] ^= count_;  // 64 bits are enough
    if (last) v[14] = ~v[14];
    for (std::size_t round = 0; round < 12; ++round) {
      const auto& s = kOrder[round % kOrder.size()];
      mix(v, 0, 4, 8, 12, m[s[0]], m[s[1]]);
      mix(v, 1, 5, 9, 13, m[s[2]], m[s[3]]);
      mix(v, 2, 6, 10, 14, m[s[4]], m[s[5]]);
      mix(v, 3, 7, 11, 15, m[s[6]], m[s[7]]);
      mix(v, 0, 5, 10, 15, m[s[8]], m[s[9]]);
      mix(v, 1, 6, 11, 12, m[s[10]], m[s[11]]);
      mix(v, 2, 7, 8, 13, m[s[12]], m[s[13]]);
      mix(v, 3, 4, 9, 14, m[s[14]], m[s[15]]);
    }
    for (std::size_t i = 0; i < state_.size(); ++i) state_[i] ^= v[i] ^ v[i + 8];
    filled_ = 0;
  }

  std::size_t digest_bytes_;
  std::array<std::uint64_t, 8> state_ = kStart;
  std::array<char, kBlock> block_;
  std::size_t filled_ = 0;
  std::uint64_t count_ = 0;  // of bytes compressed
};

}  // namespace abers
