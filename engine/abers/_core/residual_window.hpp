// The last residuals, in the order of their values and in that of their arrival.
#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <span>
#include <vector>

namespace abers {

class ResidualWindow {
 public:
  explicit ResidualWindow(std::size_t most) : most_(most) {}

  std::size_t most() const { return most_; }
  std::span<const double> ascending() const { return ascending_; }
  const std::deque<double>& arrived() const { return arrived_; }

  void add(double residual) {
    if (arrived_.size() == most_) {
      ascending_.erase(std::ranges::lower_bound(ascending_, arrived_.front()));
      arrived_.pop_front();
    }
    arrived_.push_back(residual);
    ascending_.insert(std::ranges::upper_bound(ascending_, residual), residual);
  }

 private:
  std::size_t most_;
  std::vector<double> ascending_;
  std::deque<double> arrived_;  // oldest first
};

}  // namespace abers
