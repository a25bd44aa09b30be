// The saved form of protected calibrators: a header, a byte string for each column of the mixture,
// the order of teaching with the labels that it holds back, and each set under a seal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "mixture_codec.hpp"
#include "ordered_set_codec.hpp"
#include "protection.hpp"
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
template <class Sets>
void Protection<Sets>::require_order() const {
  const Lanes& lanes = mixture_.lanes();
  const Teaching& order = learner_.order();
  require_saved(last_number(order) == lanes.moment() - 1, "counts of predictions");
  require_saved(std::visit([](const auto& one) { return one.waiting(); }, order) == lanes.awaited(),
                "rows that wait");
}

// All but the sets.
template <class Sets>
void Protection<Sets>::save_head(std::string& bytes) {
  const Lanes& lanes = mixture_.lanes();
  const MixtureCounts counts{lanes.moment(), mixture_.labels(), mixture_.taught(),
                             static_cast<std::int64_t>(lanes.most())};
  append_piece(bytes, protection_codec::save(
                          {static_cast<std::uint8_t>(scores_), raw_weight(), counts, positives_}));
  save_mixture(bytes, mixture_);
  append_written(bytes, [&] { save_order(bytes, learner_); });
}

// Room comes first: where bytes must move, they take memory twice.
template <class Sets>
void Protection<Sets>::save(std::string& bytes) {
  const std::size_t kept = mixture_.lanes().kept_size();
  const std::size_t lane = (mixture_.experts() + kept + 5) * sizeof(double);
  const std::size_t lesson = (score_width() + kept + 5) * sizeof(double), label = 24, rest = 8192;
  const auto labels = static_cast<std::size_t>(size());
  bytes.reserve(bytes.size() + mixture_.lanes().size() * lane + learner_.held().size() * lesson +
                labels * label + rest);
  save_head(bytes);
  append_sets(bytes, sets().sets());
}

// The calibrator that `save` wrote, of any options but for the order of teaching, which is given
// empty, or is that by default; std::invalid_argument for other bytes.
template <class Sets>
std::unique_ptr<Protection<Sets>> Protection<Sets>::loaded(std::string_view payload,
                                                           std::optional<Teaching> empty) {
  SavedReader reader(payload);
  const protection_codec::Header header = protection_codec::load(reader.piece());
  MixturePieces pieces;
  for (std::string_view& one : pieces) one = reader.piece();
  const std::string_view order = reader.piece();
  Sets sets(take_sets(reader));
  if (!empty) empty = TeachingOrder(0, sets.classes());
  auto found = std::make_unique<Protection>(std::move(sets), static_cast<Scores>(header.scores),
                                            header.raw_weight, std::move(*empty));
  Pool& mixture = found->mixture_;
  load_mixture(mixture, pieces, header.counts);
  typename Learner::Lesson blank;
  blank.given = found->sets().blank();
  blank.kept = mixture.methods().blank();
  load_order(found->learner_, order, blank, [&](const Kept& kept) {
    require_saved(mixture_codec::are_kept(mixture, kept.data()), "forecasts");
  });
  found->positives_ = header.positives;
  found->require_order();
  std::string head;
  head.reserve(payload.size());
  found->save_head(head);
  require_saved(payload.starts_with(head), "form");  // the sets check their own
  return found;
}

template <class Sets>
void Protection<Sets>::load(std::string_view payload) {
  std::unique_ptr<Protection> found = loaded(payload, abers::fresh(learner_.order()));
  require_saved(found->scores_ == scores_, "other scores");
  require_saved(found->raw_weight() == raw_weight(), "another raw_weight");
  require_saved(found->score_width() == score_width(), "another number of scores");
  require_same_rule(*sets().sets().front(), *found->sets().sets().front());
  *this = std::move(*found);
}

}  // namespace abers
