// The saved form of a calibration set; abers/reference/set_codec.py has its layout.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "calibration_set.hpp"
#include "saved_bytes.hpp"

namespace abers {

inline constexpr std::string_view kSetMagic = "abersVA\x01";

namespace set_codec {

struct Header {
  std::uint64_t window;
  double max_age;
  double half_life;
  std::uint64_t size;
  std::uint64_t late;
  bool unit;  // whether weights are whole numbers, and not of 2^-30
  LabelRates rates;
};

// Bits of a byte: `unit`, and whether rates other than 1 follow.
inline constexpr std::uint8_t kUnit = 1, kHasRates = 2;

inline constexpr double kMostHalfLives = 0x1p50;  // from zero, which doubles resolve

template <class T, class Get>
void append_column(std::string& bytes, char letter, std::size_t count, const Get& get) {
  append(bytes, letter);
  append(bytes, static_cast<std::uint64_t>(count));
  const std::size_t size = bytes.size();
  bytes.resize(size + count * sizeof(T));
  char* const first = bytes.data() + size;
  for (std::size_t i = 0; i < count; ++i) put(first + i * sizeof(T), static_cast<T>(get(i)));
}

// In the narrowest type that holds all.
template <class Get>
void append_weights(std::string& bytes, std::size_t count, bool unit, const Get& get) {
  const auto shown = [&](std::size_t i) {
    return static_cast<std::uint64_t>(unit ? get(i) >> kOneBits : get(i));
  };
  std::uint64_t most = 0;
  for (std::size_t i = 0; i < count; ++i) most = std::max(most, shown(i));
  if (most <= std::numeric_limits<std::uint8_t>::max()) {
    append_column<std::uint8_t>(bytes, 'B', count, shown);
  } else if (most <= std::numeric_limits<std::uint16_t>::max()) {
    append_column<std::uint16_t>(bytes, 'H', count, shown);
  } else if (most <= std::numeric_limits<std::uint32_t>::max()) {
    append_column<std::uint32_t>(bytes, 'I', count, shown);
  } else {
    append_column<std::uint64_t>(bytes, 'Q', count, shown);
  }
}

inline void append_header(std::string& bytes, const CalibrationSet& set, bool unit) {
  append(bytes, static_cast<std::uint64_t>(set.window()));
  append(bytes, set.half_life() > 0 ? 0.0 : set.lifetime());
  append(bytes, set.half_life());
  append(bytes, static_cast<std::uint64_t>(set.size()));
  append(bytes, static_cast<std::uint64_t>(set.late()));
  const LabelRates& rates = set.rates();
  const bool has_rates = rates != LabelRates{};
  append(bytes, static_cast<std::uint8_t>((unit ? kUnit : 0) | (has_rates ? kHasRates : 0)));
  if (has_rates) {
    append(bytes, rates.zero());
    append(bytes, rates.one());
  }
}

inline LabelRates take_rates(SavedReader& reader) {
  const auto zero = reader.take<double>(), one = reader.take<double>();
  for (const double rate : {zero, one}) {
    require_saved(rate >= kLeastRate && rate <= 1.0, "label_rates");
  }
  return {zero, one};
}

// A column of the layout; its values are read one by one.
struct Column {
  char letter;
  std::size_t count;
  std::string_view bytes;

  double real(std::size_t i) const { return number<double>(bytes.data() + 8 * i) + 0.0; }

  std::uint64_t whole(std::size_t i) const {
    switch (letter) {
      case 'B':
        return number<std::uint8_t>(bytes.data() + i);
      case 'H':
        return number<std::uint16_t>(bytes.data() + 2 * i);
      case 'I':
        return number<std::uint32_t>(bytes.data() + 4 * i);
      default:
        return number<std::uint64_t>(bytes.data() + 8 * i);
    }
  }
};

inline std::size_t width_of(char letter) {
  switch (letter) {
    case 'B':
      return 1;
    case 'H':
      return 2;
    case 'I':
      return 4;
    case 'd':
    case 'Q':
      return 8;
    default:
      throw std::invalid_argument("columns");
  }
}

inline std::vector<Column> columns(SavedReader& reader) {
  std::vector<Column> found;
  while (!reader.done()) {
    const char letter = reader.take<char>();
    const std::size_t width = width_of(letter);
    const auto count = reader.take<std::uint64_t>();
    require_saved(count <= std::numeric_limits<std::uint64_t>::max() / width, "columns");
    found.push_back({letter, count, reader.take(count * width)});
  }
  return found;
}

// Weights in units of 2^-30, and their sum.
class Units {
 public:
  Units(std::int64_t limit, bool unit)
      : scale_(unit ? kOne : 1), most_(static_cast<std::uint64_t>(limit / scale_)), limit_(limit) {}

  std::int64_t take(const Column& column, std::size_t i) {
    const std::uint64_t value = column.whole(i);
    require_saved(value <= most_, "weights");
    const auto units = static_cast<std::int64_t>(value) * scale_;
    require_saved(units <= limit_ - total_, "weights");
    total_ += units;
    return units;
  }

  std::int64_t total() const { return total_; }

 private:
  std::int64_t scale_;
  std::uint64_t most_;
  std::int64_t limit_;
  std::int64_t total_ = 0;
};

// Whether the set forgets.
inline bool check(const Header& header) {
  const int rules = (header.window != 0) + (header.max_age != 0) + (header.half_life != 0);
  const bool ages = std::isfinite(header.max_age) && header.max_age >= 0 &&
                    std::isfinite(header.half_life) && header.half_life >= 0;
  const bool aging = header.max_age > 0 || header.half_life > 0;
  const bool counts =
      header.window >> 63 == 0 && header.size <= kMaxCount && header.late <= kMaxCount;
  const bool late = header.late == 0 || (aging && header.size > 0);
  require_saved(rules <= 1 && ages && counts && late, "header");
  return rules > 0;
}

inline void fill_groups(CalibrationSet& set, const Header& header, const std::vector<Column>& all) {
  Units weights(set.limit(), header.unit);
  std::vector<Group> groups(all[0].count);
  double last = -std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < groups.size(); ++i) {
    Group& group = groups[i];
    group = {all[0].real(i), weights.take(all[1], i), weights.take(all[2], i)};
    require_saved(std::isfinite(group.score) && group.score > last, "scores");
    require_saved((group.negatives | group.positives) != 0, "weights");
    last = group.score;
  }
  const auto size = static_cast<std::int64_t>(header.size);
  require_saved(size <= weights.total() && (size != 0) == (weights.total() != 0), "weights");
  set.load_groups(groups.size(), [&](std::size_t i) { return groups[i]; }, size);
}

// Whether a set resolves the time of an observation.
inline bool sound_time(const CalibrationSet& set, double time) {
  if (set.lifetime() == 0) return true;
  if (set.half_life() > 0) return std::abs(time) / set.half_life() <= kMostHalfLives;
  return std::isfinite(time);
}

inline void fill_observations(CalibrationSet& set, const Header& header,
                              const std::vector<Column>& all) {
  const bool aging = set.lifetime() > 0;
  Units weights(set.limit(), header.unit);
  std::vector<Observation> found(all[0].count);
  for (std::size_t i = 0; i < found.size(); ++i) {
    const std::uint64_t label = all[1].whole(i);
    found[i] = {aging ? all[3].real(i) : std::nan(""), all[0].real(i), weights.take(all[2], i),
                static_cast<std::int32_t>(label)};
    require_saved(std::isfinite(found[i].score) && label <= 1, "scores or labels");
    require_saved(found[i].weight > 0, "weights");
    require_saved(sound_time(set, found[i].time), "times");
  }
  if (!aging) {
    require_saved(found.size() <= set.window(), "window");
  } else if (!found.empty()) {
    require_saved(found.front().time >= found.back().time - set.lifetime(), "times");
  }
  set.load_observations(std::move(found), static_cast<std::int64_t>(header.late));
}

}  // namespace set_codec

inline std::string save_set(CalibrationSet& set) {
  using namespace set_codec;
  std::string bytes;
  bool unit = true;
  if (set.window() > 0 || set.lifetime() > 0) {
    const std::vector<Observation> all = set.observations();
    for (const Observation& o : all) unit = unit && o.weight % kOne == 0;
    append_header(bytes, set, unit);
    append_column<double>(bytes, 'd', all.size(), [&](std::size_t i) { return all[i].score; });
    append_column<std::uint8_t>(bytes, 'B', all.size(),
                                [&](std::size_t i) { return all[i].label; });
    append_weights(bytes, all.size(), unit, [&](std::size_t i) { return all[i].weight; });
    if (set.lifetime() > 0) {
      append_column<double>(bytes, 'd', all.size(), [&](std::size_t i) { return all[i].time; });
    }
  } else {
    std::vector<Group> all;
    set.for_each_group([&](const Group& g) { all.push_back(g); });
    for (const Group& g : all) unit = unit && (g.negatives | g.positives) % kOne == 0;
    append_header(bytes, set, unit);
    append_column<double>(bytes, 'd', all.size(), [&](std::size_t i) { return all[i].score; });
    append_weights(bytes, all.size(), unit, [&](std::size_t i) { return all[i].negatives; });
    append_weights(bytes, all.size(), unit, [&](std::size_t i) { return all[i].positives; });
  }
  return bytes;
}

// The set that `save_set` wrote; std::invalid_argument for bytes that it cannot have written.
inline std::unique_ptr<CalibrationSet> load_set(std::string_view payload) {
  using namespace set_codec;
  SavedReader reader(payload);
  Header header;
  header.window = reader.take<std::uint64_t>();
  header.max_age = reader.take<double>() + 0.0;  // -0.0 becomes 0.0
  header.half_life = reader.take<double>() + 0.0;
  header.size = reader.take<std::uint64_t>();
  header.late = reader.take<std::uint64_t>();
  const auto flags = reader.take<std::uint8_t>();
  require_saved(flags <= (kUnit | kHasRates), "header");
  header.unit = (flags & kUnit) != 0;
  if ((flags & kHasRates) != 0) header.rates = take_rates(reader);
  const bool forgets = check(header);
  const std::vector<Column> all = columns(reader);
  std::string shape;
  for (const Column& one : all) shape += one.letter == 'd' ? 'd' : 'u';
  const bool aging = forgets && header.window == 0;
  require_saved(shape == (aging ? "duud" : "duu"), "columns");
  for (const Column& one : all) require_saved(one.count == all[0].count, "columns");
  auto set = std::make_unique<CalibrationSet>(header.window, header.max_age, header.half_life,
                                              header.rates);
  (forgets ? fill_observations : fill_groups)(*set, header, all);
  // Only the canonical form is taken: otherwise equal sets would have different bytes.
  require_saved(save_set(*set) == payload, "form");
  return set;
}

inline void require_same_rule(const CalibrationSet& one, const CalibrationSet& other) {
  require_saved(one.window() == other.window(), "another window");
  require_saved(one.half_life() == other.half_life(), "another half_life");
  require_saved(one.lifetime() == other.lifetime(), "another max_age");
  require_saved(one.rates() == other.rates(), "other label_rates");
}

}  // namespace abers
