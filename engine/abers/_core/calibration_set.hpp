// The calibration set: a diagram, and the rule by which its observations are forgotten.
//
// The contract is that of `abers/reference/calibration_set.py`, the definition; whatever is kept
// lazily here (the horizon, the scale of decaying weights, counts instead of weights) must never
// show in an answer.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "check.hpp"
#include "diagram.hpp"
#include "forgetting.hpp"
#include "groups.hpp"
#include "label_rates.hpp"
#include "step.hpp"
#include "table_cache.hpp"

namespace abers {

class CalibrationSet {
 public:
  CalibrationSet(std::size_t window, double max_age, double half_life, LabelRates rates = {})
      : window_(window),
        half_life_(half_life),
        lifetime_(half_life > 0 ? kLifetime * half_life : max_age),
        rates_(rates) {
    if (half_life_ > 0) diagram_.emplace<Diagram<Weighted>>();
  }

  CalibrationSet(const CalibrationSet&) = delete;
  CalibrationSet& operator=(const CalibrationSet&) = delete;

  // An empty set with the same options.
  std::unique_ptr<CalibrationSet> fresh() const {
    const double max_age = half_life_ > 0 ? 0.0 : lifetime_;
    return std::make_unique<CalibrationSet>(window_, max_age, half_life_, rates_);
  }

  std::size_t window() const { return window_; }
  double half_life() const { return half_life_; }
  double lifetime() const { return lifetime_; }
  std::int64_t limit() const { return half_life_ > 0 ? kLimitDecaying : kLimit; }
  const LabelRates& rates() const { return rates_; }
  std::int64_t size() const { return size_; }
  std::int64_t total() const { return total_; }
  std::int64_t late() const { return late_; }

  std::pair<double, double> predict(double score, std::int64_t weight, double time) {
    return search(score, look_with(weight, time));
  }

  // As `predict` for each score, with weight 1 and without a time.
  void predict_many(const double* scores, std::size_t count, double* p0, double* p1) {
    const QueryWeights weights = look_with(kOne, std::nan(""));
    const auto make = [&] { return table(weights); };
    if (const Table* table = tables_.find(count, weights, size_, make)) {
      return table->predict(scores, count, p0, p1);
    }
    for (std::size_t i = 0; i < count; ++i) std::tie(p0[i], p1[i]) = search(scores[i], weights);
  }

  // Whether the total weight stays within the limit if an observation is added.
  bool takes(std::int64_t weight, double time) const {
    if (weight <= limit() - total_) return true;
    if (lifetime_ > 0) {
      if (time < newest_ - lifetime_) return true;  // too late to be learned
      const double horizon = std::max(newest_, time) - lifetime_;
      return weight <= limit() - (total_ - ages_.weight_before(horizon));
    }
    const bool full = window_ > 0 && arrivals_.size() == window_;
    return full && weight <= kLimit - (total_ - arrivals_[0].weight);
  }

  // False, with nothing changed, if the total weight would pass the limit. The label counts as many
  // times as its rate says.
  bool learn(double score, int label, std::int64_t weight, double time) {
    return add_observation(score, label, rates_.weight(label, weight), time);
  }

  // As `learn`, with a weight that has the rate in it.
  bool add_observation(double score, int label, std::int64_t weight, double time) {
    if (!takes(weight, time)) return false;
    if (lifetime_ > 0) {
      learn_aging({time, score, weight, label});
      return true;
    }
    if (window_ > 0 && arrivals_.size() == window_) {
      const Observation oldest = arrivals_[0];
      add(oldest.score, oldest.label, -oldest.weight);
      total_ -= oldest.weight;
      arrivals_.replace(score, label, weight);
    } else {
      if (window_ > 0) arrivals_.push(score, label, weight, window_);
      ++size_;
    }
    total_ += weight;
    add(score, label, weight);
    return true;
  }

  // As `learn` for each observation, by building anew; false, with nothing changed, where that
  // does not pay, forgetting is to be done, or the total might pass the limit.
  bool learn_many(std::vector<Observation> observations) {
    if (window_ > 0 || lifetime_ > 0 || !pays(observations.size(), size_)) return false;
    std::int64_t total = total_;
    bool counts = size_ + static_cast<std::int64_t>(observations.size()) <= Counted::kLimit;
    for (Observation& o : observations) {
      o.weight = rates_.weight(o.label, o.weight);
      if (o.weight > kLimit - total) return false;
      total += o.weight;
      counts = counts && o.weight == kOne;
    }
    if (!counts) use_weights();
    std::vector<Group> groups;
    groups.reserve(static_cast<std::size_t>(size_) + observations.size());
    for_each_group([&](const Group& g) { groups.push_back(g); });
    for (const Observation& o : observations) groups.push_back(group_of(o, o.weight));
    build_unsorted(groups);
    size_ += static_cast<std::int64_t>(observations.size());
    total_ = total;
    return true;
  }

  // False, with nothing changed, if that weight is not there.
  bool remove(double score, int label, std::int64_t weight) {
    weight = rates_.weight(label, weight);
    if (held(score, label) < weight || (size_ == 1) != (total_ == weight)) return false;
    --size_;
    total_ -= weight;
    add(score, label, -weight);
    return true;
  }

  std::optional<Neighbours> around(double score) {
    look_from(newest_);
    return std::visit([&](const auto& d) { return d.around(score); }, diagram_);
  }

  std::vector<Block> blocks() {
    look_from(newest_);
    return std::visit([](const auto& d) { return d.blocks(); }, diagram_);
  }

  std::size_t group_count() {
    look_from(newest_);
    return std::visit([](const auto& d) { return d.group_count(); }, diagram_);
  }

  // Calls visit(group) for every group in score order.
  template <class Visit>
  void for_each_group(const Visit& visit) {
    look_from(newest_);
    std::visit([&](const auto& d) { d.for_each_group(visit); }, diagram_);
  }

  std::size_t observation_count() const { return lifetime_ > 0 ? ages_.size() : arrivals_.size(); }

  // What is remembered one by one: by arrival, or in canonical order.
  std::vector<Observation> observations() const {
    if (lifetime_ > 0) return ages_.sorted();
    std::vector<Observation> all;
    all.reserve(arrivals_.size());
    for (std::size_t i = 0; i < arrivals_.size(); ++i) all.push_back(arrivals_[i]);
    return all;
  }

  // Fills an empty set that keeps everything; group(i) gives the i-th of `count` in score order.
  template <class GetGroup>
  void load_groups(std::size_t count, const GetGroup& group, std::int64_t size) {
    size_ = size;
    total_ = 0;
    std::int64_t bits = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const Group g = group(i);
      total_ += g.negatives + g.positives;
      bits |= g.negatives | g.positives;
    }
    const bool counts = bits % kOne == 0 && total_ >> kOneBits == size && size <= Counted::kLimit;
    if (!counts) diagram_.emplace<Diagram<Weighted>>();
    tables_.change(count);
    std::visit([&](auto& d) { d.build(count, group); }, diagram_);
  }

  // Fills an empty set that forgets; none of the observations drives out another.
  void load_observations(std::vector<Observation> observations, std::int64_t late) {
    late_ = late;
    size_ = static_cast<std::int64_t>(observations.size());
    for (const Observation& o : observations) {
      total_ += o.weight;
      if (lifetime_ > 0) {
        ages_.push(o, o.time);
        newest_ = o.time;  // they come in the order of time
      } else {
        arrivals_.push(o.score, o.label, o.weight, window_);
      }
    }
    if (lifetime_ > 0 && size_ > 0) now_ = newest_;
    if (half_life_ > 0 && size_ > 0) exponent_ = scale_at(now_);
    rebuild(observations);
  }

  void check() const {
    std::visit([](const auto& d) { check_tree(d.tree()); }, diagram_);
    if (const Table* table = tables_.kept()) check_table(*table, tables_.weights());
  }

  std::size_t bytes() const {
    return sizeof(*this) + arrivals_.bytes() + ages_.bytes() + tables_.bytes() +
           std::visit([](const auto& d) { return d.bytes(); }, diagram_);
  }

 private:
  void learn_aging(const Observation& observation) {
    if (observation.time < newest_ - lifetime_) {
      ++late_;
      return;
    }
    newest_ = std::max(newest_, observation.time);
    const double horizon = newest_ - lifetime_;
    if (size_ == 0) {  // nothing is shown yet, so the view moves without work
      now_ = newest_;
      if (half_life_ > 0) exponent_ = scale_at(now_);
    } else if (newest_ > now_) {
      look_from(newest_);
    }
    ages_.drop_before(horizon, [&](const Observation& old) {
      --size_;
      total_ -= old.weight;
    });
    ++size_;
    total_ += observation.weight;
    if (ages_.push(observation, now_ - lifetime_)) add_aged(observation, 1);
  }

  // What the diagram says to a query of those weights, which `look_with` gave.
  std::pair<double, double> search(double score, const QueryWeights& weights) const {
    if (const auto* counted = std::get_if<Diagram<Counted>>(&diagram_)) {
      return counted->predict(score, 1, 1);
    }
    return std::get<Diagram<Weighted>>(diagram_).predict(score, weights.zero, weights.one);
  }

  // Whether a table says what the search says, at every score and between any two.
  void check_table(const Table& table, const QueryWeights& weights) const {
    const auto check_at = [&](double score) {
      std::pair<double, double> found;
      table.predict(&score, 1, &found.first, &found.second);
      if (found != search(score, weights)) throw CheckFailure("invariant broken: the kept table");
    };
    const auto check_around = [&](const Group& g) {
      check_at(g.score);
      check_at(std::nextafter(g.score, kInfinity));
    };
    check_at(std::numeric_limits<double>::lowest());
    std::visit([&](const auto& d) { d.for_each_group(check_around); }, diagram_);
  }

  Table table(const QueryWeights& weights) const {
    if (const auto* counted = std::get_if<Diagram<Counted>>(&diagram_)) return counted->table(1, 1);
    return std::get<Diagram<Weighted>>(diagram_).table(weights.zero, weights.one);
  }

  // Brings the diagram to what a query of that weight at that time sees; its weights there.
  QueryWeights look_with(std::int64_t weight, double time) {
    QueryWeights weights = rates_.of_query(weight);
    if (lifetime_ > 0 && size_ > 0) {
      const double now = time > newest_ ? time : newest_;
      look_from(now);
      if (half_life_ > 0) {
        for (std::int64_t* const one : {&weights.zero, &weights.one}) {
          *one = std::max<std::int64_t>(1, decayed(*one, std::isnan(time) ? newest_ : time));
        }
      }
    }
    if (weights != QueryWeights{}) use_weights();
    return weights;
  }

  // Brings the diagram to what a query at `now` sees. Later queries usually look from later times,
  // so that each observation is hidden once; learning at earlier ones does not move it back.
  void look_from(double now) {
    if (lifetime_ == 0 || size_ == 0 || now == now_) return;
    now_ = now;
    const std::int64_t exponent = half_life_ > 0 ? scale_at(now) : 0;
    const bool rescaled = exponent != exponent_;
    const auto moved = [&](int sign) {
      return [&, sign](const Observation& o) {
        if (!rescaled) add_aged(o, sign);
      };
    };
    ages_.move_horizon(now - lifetime_, moved(-1), moved(1));
    if (rescaled) {
      exponent_ = exponent;
      rebuild(ages_.shown());
    }
  }

  std::int64_t scale_at(double now) const { return abers::scale_at(now, half_life_); }

  std::int64_t decayed(std::int64_t weight, double time) const {
    return abers::decayed(weight, time, half_life_, exponent_);
  }

  std::int64_t weight_now(const Observation& o) const {
    return half_life_ > 0 ? decayed(o.weight, o.time) : o.weight;
  }

  void add_aged(const Observation& o, int sign) {
    const std::int64_t weight = weight_now(o);
    if (weight > 0) add(o.score, o.label, sign * weight);
  }

  void add(double score, int label, std::int64_t weight) {
    tables_.change(1);
    if ((weight != kOne && weight != -kOne) || size_ > Counted::kLimit) use_weights();
    if (auto* counted = std::get_if<Diagram<Counted>>(&diagram_)) {
      counted->add(score, label, weight >> kOneBits);
    } else {
      std::get<Diagram<Weighted>>(diagram_).add(score, label, weight);
    }
#ifdef ABERS_CHECK
    check();
#endif
  }

  std::int64_t held(double score, int label) const {
    if (const auto* counted = std::get_if<Diagram<Counted>>(&diagram_)) {
      return counted->held(score, label) << kOneBits;
    }
    return std::get<Diagram<Weighted>>(diagram_).held(score, label);
  }

  // Goes over from counts to fixed point, for good.
  void use_weights() {
    if (std::holds_alternative<Diagram<Weighted>>(diagram_)) return;
    std::vector<Group> groups;
    groups.reserve(std::get<Diagram<Counted>>(diagram_).group_count());
    std::get<Diagram<Counted>>(diagram_).for_each_group(
        [&](const Group& g) { groups.push_back(g); });
    diagram_.emplace<Diagram<Weighted>>();
    build(groups);
  }

  void build(const std::vector<Group>& groups) {
    tables_.change(groups.size());
    const auto group = [&](std::size_t i) { return groups[i]; };
    std::visit([&](auto& d) { d.build(groups.size(), group); }, diagram_);
  }

  // Builds the diagram from observations.
  void rebuild(const std::vector<Observation>& observations) {
    std::vector<Group> groups;
    groups.reserve(observations.size());
    bool counts = half_life_ == 0;
    for (const Observation& o : observations) {
      const std::int64_t weight = weight_now(o);
      counts = counts && weight == kOne;
      if (weight > 0) groups.push_back(group_of(o, weight));
    }
    if (!counts) use_weights();
    build_unsorted(groups);
  }

  static Group group_of(const Observation& o, std::int64_t weight) {
    return {o.score, o.label ? 0 : weight, o.label ? weight : 0};
  }

  void build_unsorted(std::vector<Group>& groups) {
    sort_by_score(groups);
    pool_ties(groups);
    build(groups);
  }

  std::size_t window_;
  double half_life_;
  double lifetime_;
  LabelRates rates_;
  std::int64_t size_ = 0;
  std::int64_t total_ = 0;  // of the weights as they were added
  std::int64_t late_ = 0;
  double newest_ = -std::numeric_limits<double>::infinity();
  double now_ = -std::numeric_limits<double>::infinity();  // what the diagram shows
  std::int64_t exponent_ = 0;                              // of its scale
  std::variant<Diagram<Counted>, Diagram<Weighted>> diagram_;
  TableCache tables_;
  Arrivals arrivals_;
  Ages<Observation> ages_;
};

}  // namespace abers
