// Saved state as bytes: numbers in little-endian order, and byte strings behind their lengths.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace abers {

inline constexpr std::int64_t kMaxCount = std::int64_t{1} << 48;  // as in abers/serialization.py

// Names what is wrong with a saved state, unless a condition holds.
inline void require_saved(bool condition, const char* what) {
  if (!condition) throw std::invalid_argument(what);
}

template <class T>
void put(char* at, T value) {
  std::memcpy(at, &value, sizeof(T));
  if constexpr (std::endian::native == std::endian::big) std::reverse(at, at + sizeof(T));
}

template <class T>
void append(std::string& bytes, T value) {
  const std::size_t size = bytes.size();
  bytes.resize(size + sizeof(T));
  put(bytes.data() + size, value);
}

template <class T>
T number(const char* bytes) {
  char raw[sizeof(T)];
  std::memcpy(raw, bytes, sizeof(T));
  if constexpr (std::endian::native == std::endian::big) std::reverse(raw, raw + sizeof(T));
  T value;
  std::memcpy(&value, raw, sizeof(T));
  return value;
}

// Bytes that are read as numbers where they lie.
template <class T>
class SavedNumbers {
 public:
  SavedNumbers(std::string_view bytes, const char* what) : bytes_(bytes) {
    require_saved(bytes.size() % sizeof(T) == 0, what);
  }

  std::size_t size() const { return bytes_.size() / sizeof(T); }
  T operator[](std::size_t i) const { return number<T>(bytes_.data() + i * sizeof(T)); }

  std::vector<T> part(std::size_t first, std::size_t count) const {
    std::vector<T> found(count);
    for (std::size_t i = 0; i < count; ++i) found[i] = (*this)[first + i];
    return found;
  }

 private:
  std::string_view bytes_;
};

// Reads bytes from the first to the last.
class SavedReader {
 public:
  explicit SavedReader(std::string_view bytes) : left_(bytes) {}

  bool done() const { return left_.empty(); }
  std::size_t left() const { return left_.size(); }

  std::string_view take(std::uint64_t count) {
    require_saved(count <= left_.size(), "cut short");
    const std::string_view taken = left_.substr(0, count);
    left_.remove_prefix(count);
    return taken;
  }

  template <class T>
  T take() {
    return number<T>(take(sizeof(T)).data());
  }

  // A byte string behind its length.
  std::string_view piece() { return take(take<std::uint64_t>()); }

 private:
  std::string_view left_;
};

// Appends a byte string behind its length; `write` appends it, so that it is never apart.
template <class Write>
void append_written(std::string& bytes, const Write& write) {
  const std::size_t at = bytes.size();
  append(bytes, std::uint64_t{0});
  write();
  put(&bytes[at], static_cast<std::uint64_t>(bytes.size() - at - sizeof(std::uint64_t)));
}

inline void append_piece(std::string& bytes, std::string_view piece) {
  append(bytes, static_cast<std::uint64_t>(piece.size()));
  bytes.append(piece);
}

}  // namespace abers
