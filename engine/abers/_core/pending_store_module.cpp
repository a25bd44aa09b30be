// Python's way into the pending store.
//
// A name is taken out of a Python text without a copy, and its hash is Python's,
// which is keyed at random for each process: nobody outside can make names collide. Nothing that
// is seen depends on a hash.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>

#include "columns_module.hpp"
#include "pending_store.hpp"

namespace abers {
namespace {

using bindings::Column;
using bindings::require;
using Texts = nb::typed<nb::list, nb::str>;
// Row, id, model, time and value of each.
using Unknowns =
    nb::typed<nb::list,
              nb::typed<nb::tuple, std::int64_t, nb::str, std::uint32_t, std::int64_t, double>>;
using Table = nb::ndarray<std::int64_t, nb::numpy, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

constexpr std::size_t kAhead = 8;  // events

enum StepColumn : std::size_t { kRow, kSlot, kKey, kTime, kLabelTime, kClock, kStepColumns };

Name name_of(PyObject* id, std::uint32_t model) {
  Py_ssize_t length = 0;
  const char* text = PyUnicode_AsUTF8AndSize(id, &length);
  const Py_hash_t hash = text ? PyObject_Hash(id) : -1;
  if (!text || hash == -1) throw nb::python_error();
  const std::uint64_t mixed =
      (static_cast<std::uint64_t>(hash) ^ model) * 0x9E3779B97F4A7C15u;  // Fibonacci hashing
  return {model, static_cast<std::uint32_t>(mixed >> 32), {text, static_cast<std::size_t>(length)}};
}

// Bytes of features stand in a column of doubles.
double sized(double bytes) {
  if (!(bytes >= 0 && bytes <= kForever)) throw nb::value_error("bytes of features out of range");
  return bytes;
}

// Takes events: how many steps they bring about, the ids of those that assume a label, the unknown
// labels, and how many observations were dropped.
nb::typed<nb::tuple, std::size_t, Texts, Unknowns, std::size_t> take(
    PendingStore& pending, const Texts& ids, const Column<const std::uint8_t>& kinds,
    const Column<const std::uint32_t>& models, const Column<const std::uint32_t>& keys,
    const Column<const std::int64_t>& times, const Column<const double>& values) {
  const std::size_t n = ids.size();
  require(kinds.size() == n && models.size() == n && keys.size() == n && times.size() == n &&
          values.size() == n);
  std::vector<Event> events(n);  // all of them before any is taken: an id may be no text
  for (std::size_t i = 0; i < n; ++i) {
    if (kinds.data()[i] > static_cast<std::uint8_t>(EventKind::kEnds))
      throw nb::value_error("no such kind of event");
    const auto kind = static_cast<EventKind>(kinds.data()[i]);
    const double value = values.data()[i];
    events[i] = {name_of(nb::handle(ids[i]).ptr(), models.data()[i]), kind, keys.data()[i],
                 times.data()[i], kind == EventKind::kObserves ? sized(value) : value};
  }
  pending.steps.clear();
  pending.unknowns.clear();
  pending.dropped.clear();
  pending.assumed_ids.clear();
  pending.late_delays.clear();
  for (std::size_t i = 0; i < n; ++i) {
    if (i + kAhead < n) pending.fetch(events[i + kAhead].name);
    pending.take(static_cast<std::int64_t>(i), events[i]);
  }
  Texts assumed;
  for (const std::string& id : pending.assumed_ids) assumed.append(nb::str(id.data(), id.size()));
  Unknowns unknowns;
  for (const Unknown& label : pending.unknowns) {
    unknowns.append(nb::make_tuple(label.row, nb::str(label.id.data(), label.id.size()),
                                   label.model, label.time, label.value));
  }
  return nb::make_tuple(pending.steps.size(), assumed, unknowns, pending.dropped.size());
}

// Writes out the steps of the last batch.
void steps(const PendingStore& pending, const Table& columns, const Column<std::uint8_t>& kinds,
           const Column<double>& values) {
  const std::size_t n = pending.steps.size();
  require(kinds.size() == n && values.size() == n && columns.shape(0) == kStepColumns &&
          columns.shape(1) == n);
  std::int64_t* out = columns.data();
  for (std::size_t i = 0; i < n; ++i) {
    const Settled& step = pending.steps[i];
    kinds.data()[i] = static_cast<std::uint8_t>(step.kind);
    values.data()[i] = step.value;
    out[kRow * n + i] = step.row;
    out[kSlot * n + i] = step.slot;
    out[kKey * n + i] = step.key;
    out[kTime * n + i] = step.time;
    out[kLabelTime * n + i] = step.label_time;
    out[kClock * n + i] = step.clock;
  }
}

// Writes out the observations that the last batch dropped.
void dropped(const PendingStore& pending, const Column<std::int64_t>& rows,
             const Column<std::int64_t>& slots, const Column<std::int64_t>& keys,
             const Column<std::int64_t>& last) {
  const std::size_t n = pending.dropped.size();
  require(rows.size() == n && slots.size() == n && keys.size() == n && last.size() == n);
  for (std::size_t i = 0; i < n; ++i) {
    rows.data()[i] = pending.dropped[i].row;
    slots.data()[i] = pending.dropped[i].slot;
    keys.data()[i] = pending.dropped[i].key;
    last.data()[i] = pending.dropped[i].last;
  }
}

// How long after its observation each late label of the last batch is.
nb::typed<nb::list, std::int64_t> late_delays(const PendingStore& pending) {
  nb::typed<nb::list, std::int64_t> found;
  for (const std::int64_t delay : pending.late_delays) found.append(delay);
  return found;
}

// The results of labels that were no steps since the last call; the first begins to note them.
nb::bytes unsettled(PendingStore& pending) {
  const nb::bytes found(pending.unsettled.data(), pending.unsettled.size());
  pending.notes_unsettled = true;
  pending.unsettled.clear();
  return found;
}

PendingStore::Store which(std::size_t number) {
  if (number >= PendingStore::kStores) throw nb::index_error("no such store");
  return static_cast<PendingStore::Store>(number);
}

// Writes out as many entries of a store as the columns hold, oldest first, from behind a slot, or
// from the first with 0; their ids, and the slot of the last.
nb::typed<nb::tuple, Texts, std::uint32_t> entries(
    const PendingStore& pending, std::size_t number, std::uint32_t behind,
    const Column<std::int64_t>& slots, const Column<std::uint32_t>& models,
    const Column<std::uint32_t>& keys, const Column<std::int64_t>& times,
    const Column<std::int64_t>& stored, const Column<double>& values) {
  const EntryList& store = pending.store(which(number));
  const std::size_t n = slots.size();
  require(models.size() == n && keys.size() == n && times.size() == n && stored.size() == n &&
          values.size() == n);
  if (behind >= store.capacity()) throw nb::index_error("no such slot");
  Texts ids;
  std::uint32_t slot = behind;
  for (std::size_t i = 0; i < n; ++i) {
    slot = store.after(slot);
    if (!slot) throw nb::index_error("there are fewer entries");
    const Entry& entry = store[slot];
    ids.append(nb::str(entry.text.get(), entry.length));
    slots.data()[i] = slot;
    models.data()[i] = entry.model;
    keys.data()[i] = entry.key;
    times.data()[i] = entry.time;
    stored.data()[i] = entry.stored;
    values.data()[i] = entry.value;
  }
  return nb::make_tuple(ids, slot);
}

// Adds what `entries` gave to a store that was empty; the slots are 1, 2, …
void load(PendingStore& pending, std::size_t number, const Texts& ids,
          const Column<const std::uint32_t>& models, const Column<const std::uint32_t>& keys,
          const Column<const std::int64_t>& times, const Column<const std::int64_t>& stored,
          const Column<const double>& values) {
  const std::size_t n = ids.size();
  require(models.size() == n && keys.size() == n && times.size() == n && stored.size() == n &&
          values.size() == n);
  EntryList& store = pending.store(which(number));
  for (std::size_t i = 0; i < n; ++i) {
    const Name name = name_of(nb::handle(ids[i]).ptr(), models.data()[i]);
    if (store.find(name)) throw nb::value_error("an id is there twice");
    const double value = values.data()[i];
    store.add(name, keys.data()[i], times.data()[i], stored.data()[i],
              number == PendingStore::kPending && value != kAssumed ? sized(value) : value);
    pending.assumed_waiting += number == PendingStore::kPending && value == kAssumed;
  }
}

// Id and time of the event, and its number in the model.
using Proposal = nb::typed<nb::tuple, nb::str, std::int64_t, std::int64_t>;
using Proposals = nb::typed<nb::list, Proposal>;
// Time, whether it is known, events so far, step and number of the last agreement, candidates.
using Clocks = nb::typed<nb::list, nb::typed<nb::tuple, std::int64_t, bool, std::int64_t,
                                             std::int64_t, std::int64_t, Proposals>>;

// Lists the clocks, by number of the model.
Clocks clocks(const PendingStore& pending) {
  Clocks found;
  for (const Clock& clock : pending.clocks) {
    Proposals candidates;
    for (const Candidate& one : clock.candidates) {
      candidates.append(
          nb::make_tuple(nb::str(one.id.data(), one.id.size()), one.time, one.number));
    }
    found.append(nb::make_tuple(clock.time, clock.known, clock.events, clock.step, clock.agreed,
                                candidates));
  }
  return found;
}

// Has these clocks instead.
void set_clocks(PendingStore& pending, const Clocks& given) {
  std::vector<Clock> made;
  for (const nb::handle row : given) {
    const auto one = nb::cast<nb::tuple>(row);
    Clock clock;
    clock.time = nb::cast<std::int64_t>(one[0]);
    clock.known = nb::cast<bool>(one[1]);
    clock.events = nb::cast<std::int64_t>(one[2]);
    clock.step = nb::cast<std::int64_t>(one[3]);
    clock.agreed = nb::cast<std::int64_t>(one[4]);
    const auto model = static_cast<std::uint32_t>(made.size());
    for (const nb::handle candidate : nb::cast<nb::list>(one[5])) {
      const auto parts = nb::cast<nb::tuple>(candidate);
      const Name name = name_of(nb::object(parts[0]).ptr(), model);
      clock.candidates.push_back({std::string(name.id), name.hash, nb::cast<std::int64_t>(parts[1]),
                                  nb::cast<std::int64_t>(parts[2])});
    }
    made.push_back(std::move(clock));
  }
  pending.clocks = std::move(made);
}

// The latest clock of all models, if there is one.
std::optional<std::int64_t> latest(const PendingStore& pending) {
  std::int64_t latest = kNoClock;
  for (const Clock& clock : pending.clocks) latest = std::max(latest, clock.time);
  return latest == kNoClock ? std::nullopt : std::optional(latest);
}

}  // namespace

void bind_pending_store(nb::module_& m) {
  nb::class_<PendingStore>(m, "PendingStore")
      .def(nb::init<std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::size_t,
                    std::size_t, std::size_t, std::size_t, std::optional<double>>(),
           "lateness"_a, "wait"_a, "memory"_a, "jump"_a, "max_pending"_a, "max_early"_a,
           "max_finished"_a, "max_bytes"_a, "assumed"_a = nb::none())
      .def_prop_ro("clock", &latest)
      .def("clocks", &clocks)
      .def("set_clocks", &set_clocks, "clocks"_a)
      .def("restart", &PendingStore::restart, "model"_a)
      .def_rw("counts", &PendingStore::counts)
      .def("take", &abers::take, "ids"_a, "kinds"_a, "models"_a, "keys"_a, "times"_a, "values"_a)
      .def("steps", &abers::steps, "columns"_a, "kinds"_a, "values"_a)
      .def("dropped", &abers::dropped, "rows"_a, "slots"_a, "keys"_a, "last"_a)
      .def("late_delays", &abers::late_delays)
      .def("unsettled", &abers::unsettled)
      .def_rw("notes_unsettled", &PendingStore::notes_unsettled)
      .def("recycle", &PendingStore::recycle)
      .def("capacity",
           [](const PendingStore& pending) {
             return pending.store(PendingStore::kPending).capacity();
           })
      .def(
          "count",
          [](const PendingStore& pending, std::size_t store) {
            return pending.store(which(store)).count();
          },
          "store"_a)
      .def(
          "count_of",
          [](const PendingStore& pending, std::size_t store, std::uint32_t model) {
            return pending.store(which(store)).count_of(model);
          },
          "store"_a, "model"_a)
      .def("undecided", &PendingStore::undecided)
      .def("entries", &abers::entries, "store"_a, "behind"_a, "slots"_a, "models"_a, "keys"_a,
           "times"_a, "stored"_a, "values"_a)
      .def("load", &abers::load, "store"_a, "ids"_a, "models"_a, "keys"_a, "times"_a, "stored"_a,
           "values"_a)
      .def("__sizeof__", [](const PendingStore& pending) {
        return sizeof(pending) + pending.store(PendingStore::kPending).bytes() +
               pending.store(PendingStore::kEarly).bytes() +
               pending.store(PendingStore::kFinished).bytes();
      });
}

}  // namespace abers
