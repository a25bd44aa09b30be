// Both CDFs at a score, from the blocks near it.
//
// Thresholds are solved on the blocks that are likely to matter, as if there were
// no others; then the outlines of the others prove for which thresholds that was the answer. Where
// they do not, it is solved again on more blocks, in the end on all.
//
// Why that is exact. p is the greatest over the ends on the left of the least over those on the
// right, so the answer on some blocks is that of the ends they have. Let no end beyond a block have
// a greater y - slope * x than the best one before, at a threshold t and for every slope from the
// answer's on: then those beyond can be left out without a change. `reach` says from where on that
// holds for all thresholds between two cuts: the hits are at most those at the lower cut (on the
// right: at the higher), and the slope is at least `gentlest`. What holds on some blocks holds on
// more. Inside a group of equal scores there is no end, so that a group is read whole.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <tuple>
#include <utility>
#include <vector>

#include "predictive.hpp"
#include "predictive_around.hpp"

namespace abers {

template <class A>
class CdfSearch {
 public:
  // Solves for all steps, the first of them before all thresholds. With levels only the steps where
  // a CDF reaches one are sure to be there. Outlines are up to date, and something is seen.
  const std::vector<CdfStep>& solve(const PredictiveBuffer& buffer, double score, double horizon,
                                    std::int64_t weight, const double* levels, std::size_t count) {
    score_ = score;
    horizon_ = horizon;
    spans_ = buffer.cuts().size() - 1;
    around_.place(buffer, score, horizon);
    solver_.begin(weight, buffer.cuts(), levels, count);
    const auto [before, after] = extremes();
    steps_.assign(1, {-std::numeric_limits<double>::infinity(), before.lower, before.upper});
    if (count == 0) {
      sweep(before, after);
    } else if (solver_.wanted(before, after)) {
      solve_levels(buffer, weight, levels, count, before, after);
    }
    return steps_;
  }

  // The steps where nothing is seen: both CDFs are vacuous.
  const std::vector<CdfStep>& vacuous() {
    steps_.assign(1, {-std::numeric_limits<double>::infinity(), 0.0, 1.0});
    return steps_;
  }

 private:
  using Solver = CdfSolver<A>;
  using Span = typename Solver::Span;
  using Ends = typename Solver::Ends;

  // The answers at infinity.
  std::array<Ends, 2> extremes() const {
    std::int64_t own = 0;
    bool inside = true;
    const auto count = [&](const BufferEntry& e) {
      inside = e.score == score_;
      if (inside && e.time >= horizon_) own += e.seen;
      return inside;
    };
    const auto first = around_.home().begin() + static_cast<std::ptrdiff_t>(around_.home_before());
    for (auto e = first; e != around_.home().end() && count(*e);) ++e;
    for (std::size_t i = 1; inside && i <= around_.far()[kRight]; ++i) {
      const auto& entries = around_.template block<kRight>(i).entries;
      for (auto e = entries.begin(); e != entries.end() && count(*e);) ++e;
    }
    const auto [left, right] = around_.totals();
    return solver_.extremes(left >> A::kShift, own >> A::kShift, (right - own) >> A::kShift);
  }

  // Solves all thresholds in ascending order; where the answers are not proven, anew from there.
  void sweep(const Ends& before, const Ends& after) {
    estimates_.assign(spans_ + 1, 0.0);
    estimates_[0] = 1.0;
    needs_.resize(spans_);
    for (std::size_t k = 1; k < spans_; ++k) {
      estimates_[k] = around_.estimate(k, estimates_[k - 1]);
    }
    for (std::size_t k = 0; k < spans_; ++k) {
      needs_[k] = around_.likely(k, estimates_[k], estimates_[k + 1]);
    }
    Ends at = before;
    for (std::size_t first = 0; first < spans_;) {
      auto [last, near] = together(first);
      if (first > 0) {  // the answer at the first cut is that on these blocks too
        near = farther(near, {around_.template reach<kLeft>(first, at.p0),
                              around_.template reach<kRight>(first, at.p1.complement())});
      }
      solve_on(near, first, last, at, true, after);
      std::size_t done = 0;  // steps
      for (const Span& span : solver_.spans()) {
        const Near needed = needed_for(span);
        if (!within(needed, near)) {
          for (std::size_t k = span.first; k < span.last; ++k) needs_[k] = more(near, needed);
          break;
        }
        first = span.last;
        at = span.at_last;
        done = span.steps;
      }
      const auto& found = solver_.steps();
      steps_.insert(steps_.end(), found.begin(), found.begin() + static_cast<std::ptrdiff_t>(done));
    }
  }

  // Up to which cut thresholds are solved together with those behind one, and on which blocks: as
  // long as that takes few blocks more than one by one.
  std::pair<std::size_t, Near> together(std::size_t first) const {
    const auto blocks = [](const Near& n) { return n[kLeft] + n[kRight] + 1; };
    Near near = needs_[first];
    std::size_t single = blocks(near);
    std::size_t last = first + 1;
    for (; last < spans_; ++last) {
      const Near both = farther(near, needs_[last]);
      single += blocks(needs_[last]);
      if (2 * blocks(both) * (last + 1 - first) > 3 * single) break;
      near = both;
    }
    return {last, near};
  }

  // Solves where the CDFs reach levels, all together or each for itself.
  void solve_levels(const PredictiveBuffer& buffer, std::int64_t weight, const double* levels,
                    std::size_t count, const Ends& before, const Ends& after) {
    estimates_.assign(spans_ + 1, std::numeric_limits<double>::quiet_NaN());
    estimates_.front() = 1.0;
    estimates_.back() = 0.0;
    const Part all = likely_part(levels, count);
    if (!is_faster_apart(all, count)) return reach_levels(all, before, after);
    for (std::size_t i = 0; i < count; ++i) {
      solver_.begin(weight, buffer.cuts(), levels + i, 1);
      if (solver_.wanted(before, after)) reach_levels(likely_part(levels + i, 1), before, after);
    }
    std::sort(steps_.begin(), steps_.end(),
              [](const CdfStep& a, const CdfStep& b) { return a.threshold < b.threshold; });
  }

  struct Part {  // of the thresholds, between two cuts, and the blocks to read for them
    std::size_t first, last;
    Near near;
  };

  // Where the CDFs are likely to reach levels.
  Part likely_part(const double* levels, std::size_t count) {
    const auto [least, most] = std::minmax_element(levels, levels + count);
    Part part{estimated_place(1.0 - *least), estimated_place(1.0 - *most) + 1, {}};
    for (std::size_t k = part.first; k < part.last; ++k) part.near = farther(part.near, likely(k));
    return part;
  }

  // Whether few levels are solved faster each for itself: that reads the blocks for each of them,
  // but keeps few labels open. Found by measuring.
  bool is_faster_apart(const Part& all, std::size_t count) const {
    constexpr std::size_t kMostApart = 8;
    constexpr std::size_t kReadForPair = 256;  // entries for each pair of levels
    if (count == 1 || count > kMostApart || has_repeated_scores()) return false;
    return kReadForPair * count * count <= read_for<kLeft>(all) + read_for<kRight>(all);
  }

  // Whether most scores near the query are there more than once.
  bool has_repeated_scores() const {
    const auto& home = around_.home();
    std::size_t repeated = 0;
    for (std::size_t i = 1; i < home.size(); ++i) repeated += home[i - 1].score == home[i].score;
    return 2 * repeated > home.size();
  }

  // How many entries of a side are read for a part.
  template <Side side>
  std::size_t read_for(const Part& part) const {
    std::size_t entries = 0;
    for (std::size_t i = 1; i <= std::min(part.near[side], around_.far()[side]); ++i) {
      const BufferBlock& next = around_.template block<side>(i);
      const auto [some, sure] = hits<side>(next.outline, part.first, part.last);
      if (some > 0 && sure < next.outline.weight) entries += next.entries.size();
    }
    return entries;
  }

  // Weight of a block's labels that are hits at some threshold between two cuts, and at all.
  template <Side side>
  static std::pair<std::int64_t, std::int64_t> hits(const Outline& all, std::size_t first,
                                                    std::size_t last) {
    return {Around<A>::template hits<side>(all, side == kLeft ? first : last),
            Around<A>::template hits<side>(all, side == kLeft ? last : first)};
  }

  // Solves where the CDFs reach the levels of the solver, first where they are likely to.
  void reach_levels(const Part& part, const Ends& before, const Ends& after) {
    auto [first, last, near] = part;
    for (bool proven = false; !proven;) {
      solve_on(near, first, last, before, false, after);
      proven = true;
      for (const Span& span : solver_.spans()) {
        const Near needed = needed_for(span);
        if (within(needed, near)) continue;
        near = more(near, needed);
        proven = false;
      }
      if (solver_.wanted(before, solver_.at_first()) || solver_.wanted(solver_.at_last(), after)) {
        first = 0;
        last = spans_;
        proven = false;
      }
    }
    steps_.insert(steps_.end(), solver_.steps().begin(), solver_.steps().end());
  }

  // The probability at a cut, nearly, sought from a guess; once a query.
  double estimated(std::size_t k, double guess) {
    if (std::isnan(estimates_[k])) estimates_[k] = around_.estimate(k, guess);
    return estimates_[k];
  }

  // The last cut, but for that at infinity, where the probability is likely to be at least that.
  std::size_t estimated_place(double p) {
    std::size_t low = 0;
    for (std::size_t high = spans_; high - low > 1;) {
      const std::size_t middle = low + (high - low) / 2;
      (estimated(middle, p) >= p ? low : high) = middle;
    }
    return low;
  }

  Near likely(std::size_t k) {
    const double here = estimated(k, 0.5);
    const double there = estimated(k + 1, here);
    return around_.likely(k, here, there);
  }

  // Solves what lies between two cuts on so many blocks.
  void solve_on(const Near& near, std::size_t first, std::size_t last, const Ends& at_first,
                bool known, const Ends& at_last) {
    solver_.open(first, last, score_);
    gather<kLeft>(near, first, last);
    gather<kRight>(near, first, last);
    solver_.solve(at_first, known, at_last);
  }

  // Reads the query's own block and those near it, and more where a group of equal scores goes on.
  // A block where all labels are hits, or none is, is passed over: no end inside is better than
  // both around it.
  template <Side side>
  void gather(const Near& near, std::size_t first, std::size_t last) {
    Items<A>& items = solver_.side(side);
    const auto& home = around_.home();
    const auto middle = home.begin() + static_cast<std::ptrdiff_t>(around_.home_before());
    if constexpr (side == kLeft) {
      items.template read<side>(std::make_reverse_iterator(middle), home.rend(), horizon_);
    } else {
      items.template read<side>(middle, home.end(), horizon_);
    }
    std::size_t i = 0;
    while (i < around_.far()[side] && (i < near[side] || !around_.template ends_at<side>(i))) {
      const bool begins = around_.template ends_at<side>(i);
      const BufferBlock& next = around_.template block<side>(++i);
      const Outline& all = next.outline;
      const auto [some, sure] = hits<side>(all, first, last);
      if ((some == 0 || sure == all.weight) && begins && around_.template ends_at<side>(i)) {
        items.pass(Around<A>::template nearest<side>(next),
                   Around<A>::template farthest<side>(next), all.weight >> A::kShift,
                   sure >> A::kShift);
      } else if constexpr (side == kLeft) {
        items.template read<side>(next.entries.rbegin(), next.entries.rend(), horizon_);
      } else {
        items.template read<side>(next.entries.begin(), next.entries.end(), horizon_);
      }
    }
    items.close();
  }

  // The blocks that are enough for certain.
  Near needed_for(const Span& span) const {
    const auto& [low, high] = std::tie(span.at_first, span.at_last);
    return {
        around_.template reach<kLeft>(span.first, Solver::template gentlest<kLeft>(low, high)),
        around_.template reach<kRight>(span.last, Solver::template gentlest<kRight>(low, high))};
  }

  static bool within(const Near& needed, const Near& near) {
    return needed[kLeft] <= near[kLeft] && needed[kRight] <= near[kRight];
  }

  // Which blocks to try next: half as many more at least, where they were too few.
  static Near more(Near near, const Near& needed) {
    for (const Side side : {kLeft, kRight}) {
      if (needed[side] > near[side]) near[side] = std::max(needed[side], near[side] * 3 / 2);
    }
    return near;
  }

  double score_ = 0;
  double horizon_ = 0;
  std::size_t spans_ = 0;  // between the cuts
  Around<A> around_;
  std::vector<double> estimates_;  // of the probabilities at the cuts
  std::vector<Near> needs_;        // blocks likely to matter for a span
  std::vector<CdfStep> steps_;
  Solver solver_;
};

// A search needs room for a query alone, so all sets share those of a thread.
template <class A>
CdfSearch<A>& search_of_thread() {
  static thread_local CdfSearch<A> search;
  return search;
}

}  // namespace abers
