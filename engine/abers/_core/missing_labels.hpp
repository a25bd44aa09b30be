// Whether more labels than usual are missing; see tests/oracles/teaching_order.py.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "experts.hpp"
#include "saved_bytes.hpp"

namespace abers {

// Notes on rows, one each, that say whether its label was missing when it should have come.
//
// The notes are evidence, in nats, that more are missing than usual: so many more as would matter
// for the rarer class, since a stall of that hides behind few missing labels. A stall begins where
// the evidence is enough, and ends where nothing is left of it. The usual share is that of the
// notes outside stalls; in a stall a note counts a quarter, so what lasts becomes usual.
class MissingLabels {
 public:
  static constexpr double kEnough = 6.0;      // nats at which a stall begins; there are never more
  static constexpr double kRise = 0.15;       // of the share of the rarer class: missing labels
  static constexpr double kTimes = 1.5;       // what is usual, and these are more than usual
  static constexpr double kLeast = 0.2;       // of a rise: what is usual at least
  static constexpr double kMost = 0.9;        // what is usual at most
  static constexpr double kMostMore = 0.98;   // and what is more than usual
  static constexpr double kNotes = 100.0;     // of the usual share, before the first stall
  static constexpr double kMemory = 4096.0;   // notes that the usual share remembers
  static constexpr double kStallNote = 0.25;  // weight of a note in a stall for it

  bool stalled() const { return stalled_; }

  // `rarer` is the share of the rarest class. The usual share is learned once labels of two classes
  // came, and counts as none until it is known how many labels never come.
  void note(bool missing, bool several_came, bool known, double rarer) {
    const double rise = kRise * rarer;
    const double usual = std::clamp(known ? usual_ : 0.0, kLeast * rise, kMost);
    const double more = std::min(kTimes * usual + rise, kMostMore);
    const double ratio = missing ? more / usual : (1.0 - more) / (1.0 - usual);
    evidence_ = std::clamp(evidence_ + elementary::logarithm(ratio), 0.0, kEnough);
    if (several_came) {
      const double weight = stalled_ ? kStallNote : 1.0;
      notes_ = std::min(notes_ + weight, kMemory);
      usual_ += weight / notes_ * ((missing ? 1.0 : 0.0) - usual_);
    }
    if (stalled_) {
      stalled_ = evidence_ > 0.0;
    } else {
      stalled_ = evidence_ == kEnough && (!known || notes_ >= kNotes);
    }
  }

  void save(std::string& bytes) const {
    for (const double one : {evidence_, usual_, notes_}) append(bytes, one);
    append(bytes, static_cast<std::uint8_t>(stalled_));
  }

  static MissingLabels load(SavedReader& saved) {
    MissingLabels loaded;
    for (double* const one : {&loaded.evidence_, &loaded.usual_, &loaded.notes_}) {
      *one = saved.take<double>();
    }
    const auto stalled = saved.take<std::uint8_t>();
    const double evidence = loaded.evidence_;
    require_saved(0.0 <= evidence && evidence <= kEnough, "evidence of missing labels");
    require_saved(0.0 <= loaded.usual_ && loaded.usual_ <= 1.0, "share of missing labels");
    require_saved(0.0 <= loaded.notes_ && loaded.notes_ <= kMemory, "notes on missing labels");
    require_saved(stalled <= (evidence > 0.0), "whether labels are missing");
    loaded.stalled_ = stalled != 0;
    return loaded;
  }

 private:
  double evidence_ = 0.0;  // that more are missing than usual, in nats
  double usual_ = 0.0;     // share of missing labels
  double notes_ = 0.0;     // by weight, behind the usual share
  bool stalled_ = false;
};

}  // namespace abers
