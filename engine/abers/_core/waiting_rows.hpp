// Rows by ascending number, each found by its number, in little more memory than those that live.
//
// A row that is done with stays as a dead slot until there are more slots than twice the live rows
// and some; so a row costs a constant time, and the last rows, mostly without gaps in their
// numbers, are found without a search.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <new>
#include <vector>

namespace abers {

// Makes room for more, at least twice as much as there was, so that the room is made rarely.
template <class T>
void make_room(std::vector<T>& values, std::size_t more) {
  const std::size_t size = values.size() + more;
  if (values.capacity() < size) values.reserve(std::max(size, 2 * values.capacity()));
}

constexpr std::size_t kSlack = 8;  // values for which room, or dead rows, may always stay

// Gives back room where a quarter of it would do for twice as many values. Without memory for the
// smaller, the larger stays.
template <class T>
void give_back(std::vector<T>& values, std::size_t count) noexcept {
  if (values.capacity() <= 4 * (kSlack + 2 * count)) return;
  try {
    std::vector<T> smaller;
    smaller.reserve(kSlack + 2 * count);
    smaller.assign(values.begin(), values.end());
    values.swap(smaller);
  } catch (const std::bad_alloc&) {
  }
}

// A `Row` has a `number` and says whether it is `alive()`.
template <class Row>
class WaitingRows {
 public:
  std::size_t size() const { return rows_.size(); }  // with the dead ones
  Row& operator[](std::size_t at) { return rows_[at]; }
  const Row& operator[](std::size_t at) const { return rows_[at]; }
  auto begin() const { return rows_.begin(); }
  auto end() const { return rows_.end(); }
  std::size_t bytes() const { return rows_.capacity() * sizeof(Row); }

  // The number is larger than all before.
  void push(const Row& row) {
    make_room(rows_, 1);
    rows_.push_back(row);
  }

  // The place of a live row; behind the last if it is missing.
  std::size_t find(std::int64_t number) const {
    if (rows_.empty() || number > rows_.back().number || number < rows_.front().number) {
      return size();
    }
    std::size_t at = size();
    const auto behind = static_cast<std::uint64_t>(rows_.back().number - number);
    if (behind < size()) at = size() - 1 - static_cast<std::size_t>(behind);
    if (at == size() || rows_[at].number != number) {
      const auto below = [](const Row& row, std::int64_t wanted) { return row.number < wanted; };
      const auto found = std::lower_bound(rows_.begin(), rows_.end(), number, below);
      at = static_cast<std::size_t>(found - rows_.begin());
    }
    return rows_[at].number == number && rows_[at].alive() ? at : size();
  }

  bool crowded(std::size_t alive) const { return size() > kSlack + 2 * alive; }

  // Drops the dead slots, and moves the given places with the rows that they are at.
  void drop_dead(std::size_t alive, std::initializer_list<std::size_t*> places = {}) {
    for (std::size_t* const place : places) {
      const auto end = rows_.begin() + static_cast<std::ptrdiff_t>(*place);
      *place = static_cast<std::size_t>(
          std::count_if(rows_.begin(), end, [](const Row& row) { return row.alive(); }));
    }
    std::erase_if(rows_, [](const Row& row) { return !row.alive(); });
    give_back(rows_, alive);
  }

 private:
  std::vector<Row> rows_;
};

}  // namespace abers
