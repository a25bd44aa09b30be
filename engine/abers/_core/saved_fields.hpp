// Fields of records, saved and loaded one after the other by the same list of them.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <type_traits>

#include "saved_bytes.hpp"

namespace abers {

class FieldWriter {
 public:
  explicit FieldWriter(std::string& bytes) : bytes_(bytes) {}

  template <class T>
  void operator()(const T& one) {
    if constexpr (std::is_arithmetic_v<T>) {
      append(bytes_, one);
    } else {
      for (const auto& each : one) (*this)(each);
    }
  }

 private:
  std::string& bytes_;
};

class FieldReader {
 public:
  explicit FieldReader(SavedReader& reader) : reader_(reader) {}

  template <class T>
  void operator()(T& one) {
    if constexpr (std::is_arithmetic_v<T>) {
      one = reader_.take<T>();
    } else {
      for (auto& each : one) (*this)(each);
    }
  }

 private:
  SavedReader& reader_;
};

}  // namespace abers
