// Saves and loads an index of ids.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "id_index.hpp"
#include "saved_bytes.hpp"
#include "seal.hpp"

namespace abers {

class IdIndexCodec {
 public:
  static std::string save(IdIndex& index) {
    std::string bytes;
    append_sealed(bytes, kMagic, [&] {
      append_all(bytes, index.unit_, index.hash_of(""), index.forgotten_, index.last_offset_);
      save_clock(bytes, index.clock_);
      save_clock(bytes, index.label_clock_);
      append_all(bytes, std::uint64_t{index.first_ids_.size()});
      for (const FirstId& one : index.first_ids_) append_all(bytes, one.hash, one.model);
      append_all(bytes, std::uint64_t{index.generations_.size()});
      for (const IdGeneration& one : index.generations_) append_all(bytes, one.part, one.count);
      append_written(bytes, [&] { save_ids(bytes, index); });
      append_all(bytes, std::uint64_t{index.waits_.count()});
      for (const auto& [offset, wait] : index.waits_.all())
        append_all(bytes, offset, wait.hash, wait.part);
    });
    return bytes;
  }

  // An index of the same options. A std::invalid_argument says what is wrong with the bytes.
  static IdIndex load(const IdOptions& options, std::string_view saved) {
    IdIndex index(options);
    SavedReader reader(unsealed(kMagic, saved));
    require_saved(reader.take<std::int64_t>() == index.unit_, "another span");
    require_saved(reader.take<std::uint64_t>() == index.hash_of(""), "another key");
    index.forgotten_ = reader.take<std::int64_t>();
    index.last_offset_ = reader.take<std::int64_t>();
    load_clock(reader, index.clock_);
    load_clock(reader, index.label_clock_);
    require_saved(index.forgotten_ == IdIndex::kNever ||
                      (index.clock_.known && index.forgotten_ <= index.part_of(index.clock_)),
                  "forgotten part");
    load_first_ids(reader, index);
    load_generations(reader, index);
    load_ids(reader.piece(), index);
    load_waits(reader, index);
    require_saved(reader.done(), "too long");
    return index;
  }

 private:
  static constexpr std::string_view kMagic{"abersII\x01", 8};
  static constexpr std::int64_t kLatest = std::int64_t{1} << 53;

  template <class... T>
  static void append_all(std::string& bytes, T... values) {
    (append(bytes, values), ...);
  }

  static void save_clock(std::string& bytes, const Clock& clock) {
    append_all(bytes, clock.time, std::uint8_t{clock.known}, clock.events, clock.step, clock.agreed,
               std::uint64_t{clock.candidates.size()});
    for (const Candidate& one : clock.candidates) {
      bytes.append(one.id);
      append_all(bytes, one.time, one.number);
    }
  }

  static void load_clock(SavedReader& reader, Clock& clock) {
    clock.time = reader.take<std::int64_t>();
    const auto known = reader.take<std::uint8_t>();
    clock.events = reader.take<std::int64_t>();
    clock.step = reader.take<std::int64_t>();
    clock.agreed = reader.take<std::int64_t>();
    const auto candidates = reader.take<std::uint64_t>();
    require_saved(known <= 1 && (clock.time == kNoClock ? clock.events == 0 : is_time(clock.time)),
                  "clock");
    require_saved(clock.events >= 0 && clock.events <= kLatest && clock.step >= 0 &&
                      clock.step <= 6 * kLatest && clock.agreed >= 0 &&
                      clock.agreed <= clock.events,
                  "events of a clock");
    require_saved(candidates < kQuorum, "candidates of a clock");
    clock.known = known;
    for (std::uint64_t i = 0; i < candidates; ++i) {
      const std::string id(reader.take(sizeof(std::uint64_t)));
      const auto hash = static_cast<std::uint32_t>(number<std::uint64_t>(id.data()));
      const auto time = reader.take<std::int64_t>();
      require_saved(is_time(time), "time of a candidate");
      clock.candidates.push_back({id, hash, time, reader.take<std::int64_t>()});
    }
  }

  static bool is_time(std::int64_t time) { return -kLatest <= time && time <= kLatest; }

  static void require_model(std::uint32_t model) {
    require_saved(model <= kAmbiguous, "number of a model");
  }

  static void load_first_ids(SavedReader& reader, IdIndex& index) {
    const auto count = reader.take<std::uint64_t>();
    require_saved(count < kQuorum, "first ids");
    for (std::uint64_t i = 0; i < count; ++i) {
      const auto hash = reader.take<std::uint64_t>();
      index.first_ids_.push_back({hash, reader.take<std::uint32_t>()});
      require_model(index.first_ids_.back().model);
    }
  }

  static void load_generations(SavedReader& reader, IdIndex& index) {
    const auto count = reader.take<std::uint64_t>();
    require_saved(count <= kMostGenerations && (index.clock_.known || !count), "generations");
    std::int64_t least = index.forgotten_;
    for (std::uint64_t i = 0; i < count; ++i) {
      const auto part = reader.take<std::int64_t>();
      const auto ids = reader.take<std::uint64_t>();
      require_saved(least <= part && part <= index.part_of(index.clock_), "part of a generation");
      require_saved(ids <= static_cast<std::uint64_t>(kMaxCount), "ids of a generation");
      least = part;
      index.generations_.push_back({part, ids});
      index.total_ += ids;
    }
  }

  // Ascending, each with its age in generations.
  static void save_ids(std::string& bytes, IdIndex& index) {
    const Window window = index.window();
    index.table_.each(window, [&](std::uint64_t hash, IdCell cell) {
      append_all(bytes, hash, cell.model(), static_cast<std::uint8_t>(window.age(cell)));
    });
  }

  static void load_ids(std::string_view piece, IdIndex& index) {
    SavedReader reader(piece);
    const Window window = index.window();
    std::vector<Known> ids;
    while (!reader.done()) {
      const auto hash = reader.take<std::uint64_t>();
      const auto model = reader.take<std::uint32_t>();
      const auto age = reader.take<std::uint8_t>();
      require_saved(ids.empty() || ids.back().hash < hash, "order of ids");
      require_model(model);
      require_saved(age < window.count, "age of an id");
      ids.push_back({hash, IdCell::of(model, window.newest - age)});
    }
    require_saved(ids.size() <= index.total_, "number of ids");
    index.table_.fill(ids, window);
  }

  static void load_waits(SavedReader& reader, IdIndex& index) {
    const auto count = reader.take<std::uint64_t>();
    std::int64_t before = -1;
    for (std::uint64_t i = 0; i < count; ++i) {
      const auto offset = reader.take<std::int64_t>();
      const auto hash = reader.take<std::uint64_t>();
      const auto part = reader.take<std::int64_t>();
      require_saved(before < offset && offset <= index.last_offset_, "offset of a label");
      require_saved(is_time(part), "time of a label");
      index.waits_.add(offset, {hash, part});
      before = offset;
    }
  }
};

}  // namespace abers
