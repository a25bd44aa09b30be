// SipHash-1-3 of a text, as Aumasson & Bernstein (2012) define it: 64 bits that are the same on
// every platform, and without the key nobody can make texts collide.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "saved_bytes.hpp"

namespace abers {

struct SipKey {
  std::uint64_t first;
  std::uint64_t second;
};

class SipHash {
 public:
  explicit SipHash(const SipKey& key)
      : a_(key.first ^ 0x736f6d6570736575u),
        b_(key.second ^ 0x646f72616e646f6du),
        c_(key.first ^ 0x6c7967656e657261u),
        d_(key.second ^ 0x7465646279746573u) {}

  std::uint64_t of(std::string_view text) {
    const std::uint64_t length = text.size();
    for (; text.size() >= kWord; text.remove_prefix(kWord))
      compress(number<std::uint64_t>(text.data()));
    std::uint64_t last = length << 56;
    for (std::size_t i = 0; i < text.size(); ++i)
      last |= std::uint64_t{static_cast<unsigned char>(text[i])} << (8 * i);
    compress(last);
    c_ ^= 0xff;
    for (int i = 0; i < 3; ++i) round();
    return a_ ^ b_ ^ c_ ^ d_;
  }

 private:
  static constexpr std::size_t kWord = sizeof(std::uint64_t);

  void compress(std::uint64_t word) {
    d_ ^= word;
    round();
    a_ ^= word;
  }

  void round() {
    a_ += b_;
    b_ = std::rotl(b_, 13) ^ a_;
    a_ = std::rotl(a_, 32);
    c_ += d_;
    d_ = std::rotl(d_, 16) ^ c_;
    a_ += d_;
    d_ = std::rotl(d_, 21) ^ a_;
    c_ += b_;
    b_ = std::rotl(b_, 17) ^ c_;
    c_ = std::rotl(c_, 32);
  }

  std::uint64_t a_, b_, c_, d_;
};

}  // namespace abers
