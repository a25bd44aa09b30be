// The saved form of protected calibrators: a header, a byte string for each column of the mixture,
// the order of teaching with the labels that it holds back, and the set under a seal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "mixture_codec.hpp"
#include "ordered_set_codec.hpp"
#include "protection.hpp"
#include "seal.hpp"
#include "set_codec.hpp"

namespace abers {

namespace protection_codec {

struct Header {
  std::uint8_t scores;
  double raw_weight;
  MixtureCounts counts;
  std::int64_t positives;
};

inline std::string save(const Header& header) {
  std::string bytes;
  append(bytes, header.scores);
  append(bytes, header.raw_weight);
  append(bytes, header.counts.moment);
  append(bytes, header.counts.labels);
  append(bytes, header.counts.most);
  append(bytes, header.counts.taught);
  append(bytes, header.positives);
  return bytes;
}

inline Header load(std::string_view bytes) {
  SavedReader reader(bytes);
  Header header;
  header.scores = reader.take<std::uint8_t>();
  header.raw_weight = reader.take<double>();
  header.counts.moment = reader.take<std::int64_t>();
  header.counts.labels = reader.take<std::int64_t>();
  header.counts.most = reader.take<std::int64_t>();
  header.counts.taught = reader.take<std::int64_t>();
  header.positives = reader.take<std::int64_t>();
  const MixtureCounts& counts = header.counts;
  require_saved(reader.done(), "header");
  require_saved(header.scores <= static_cast<std::uint8_t>(Scores::kAny), "scores");
  require_saved(header.raw_weight > 0.0 && header.raw_weight < 1.0, "raw_weight");
  require_saved(0 <= header.positives && header.positives <= counts.taught, "counts");
  require_saved(0 <= counts.labels && counts.labels <= counts.moment, "counts");
  require_saved(0 <= counts.most && counts.most <= counts.moment, "counts");
  require_saved(counts.taught <= kMaxCount && counts.moment <= kMaxCount, "counts");
  return header;
}

}  // namespace protection_codec

// Checks that what holds a lane is what the order of teaching waits for.
inline void Protection::require_order() const {
  const Lanes& lanes = mixture_.lanes();
  const Teaching& order = learner_.order();
  require_saved(last_number(order) == lanes.moment() - 1, "counts of predictions");
  require_saved(std::visit([](const auto& one) { return one.waiting(); }, order) == lanes.awaited(),
                "rows that wait");
}

// All but the set.
inline void Protection::save_head(std::string& bytes) {
  const Lanes& lanes = mixture_.lanes();
  const MixtureCounts counts{lanes.moment(), mixture_.labels(), mixture_.taught(),
                             static_cast<std::int64_t>(lanes.most())};
  append_piece(bytes, protection_codec::save(
                          {static_cast<std::uint8_t>(scores_), raw_weight(), counts, positives_}));
  save_mixture(bytes, mixture_);
  append_written(bytes, [&] { save_order(bytes, learner_); });
}

// Room comes first: where bytes must move, they take memory twice.
inline void Protection::save(std::string& bytes) {
  constexpr std::size_t lane = (Methods::kCount + Methods::kKept + 5) * sizeof(double);
  constexpr std::size_t lesson = (Methods::kKept + 5) * sizeof(double), label = 24, rest = 8192;
  const auto labels = static_cast<std::size_t>(size());
  bytes.reserve(bytes.size() + mixture_.lanes().size() * lane + learner_.held().size() * lesson +
                labels * label + rest);
  save_head(bytes);
  append_written(bytes,
                 [&] { append_sealed(bytes, kSetMagic, [&] { bytes.append(save_set(set())); }); });
}

// The calibrator that `save` wrote, of any options but for the order of teaching, which is given
// empty; std::invalid_argument for other bytes.
inline std::unique_ptr<Protection> Protection::loaded(std::string_view payload, Teaching empty) {
  SavedReader reader(payload);
  const protection_codec::Header header = protection_codec::load(reader.piece());
  MixturePieces pieces;
  for (std::string_view& one : pieces) one = reader.piece();
  const std::string_view order = reader.piece();
  std::shared_ptr<CalibrationSet> set = load_set(unsealed(kSetMagic, reader.piece()));
  require_saved(reader.done(), "form");
  auto found = std::make_unique<Protection>(std::move(set), static_cast<Scores>(header.scores),
                                            header.raw_weight, std::move(empty));
  load_mixture(found->mixture_, pieces, header.counts);
  load_order(found->learner_, order, [&](const Protection::Kept& kept) {
    require_saved(mixture_codec::are_forecasts(found->mixture_, kept.data()), "forecasts");
  });
  found->positives_ = header.positives;
  found->require_order();
  std::string head;
  head.reserve(payload.size());
  found->save_head(head);
  require_saved(payload.starts_with(head), "form");  // the set checks its own
  return found;
}

inline void Protection::load(std::string_view payload) {
  std::unique_ptr<Protection> found = loaded(payload, abers::fresh(learner_.order()));
  require_saved(found->scores_ == scores_, "other scores");
  require_saved(found->raw_weight() == raw_weight(), "another raw_weight");
  require_same_rule(set(), found->set());
  *this = std::move(*found);
}

}  // namespace abers
