// Lays out the blocks of a collective on this process, and computes its expected result.
#include "collective.h"

#include <algorithm>
#include <numeric>

namespace conformance {
namespace {

constexpr int kInt = 0, kVector = 4;  // indices into TypeCases
// Blocks of alltoallw begin at multiples of this number of bytes. The distance leaves room for
// negative lower bounds.
constexpr std::ptrdiff_t kGrid = 32;

enum Choice { kUnits, kSendType, kReceiveType, kPairType, kGap, kReversed, kRootGroup };

int number(unsigned salt, int process, int tag_range, long at, int values) {
  return static_cast<int>(mixed_number(salt, process, tag_range, static_cast<unsigned>(at)) %
                          values);
}

// Returns how often the list contains the process at `place` before this place.
int occurrence(const std::vector<int>& list, std::size_t place) {
  return static_cast<int>(std::count(list.begin(), list.begin() + place, list[place]));
}

}  // namespace

unsigned mixed_number(unsigned a, unsigned b, unsigned c, unsigned d) {
  unsigned h = 0x9E3779B9u;
  for (unsigned word : {a, b, c, d}) {
    h = (h ^ word) * 0x85EBCA6Bu;
    h ^= h >> 15;
    h *= 0xC2B2AE35u;
    h ^= h >> 13;
  }
  return h;
}

Collective::Collective(const Spec& spec, const Place& place, const TypeCases& types)
    : spec_(spec), place_(place), types_(types.all()) {
  if (spec_.mixed) spec_.type = kInt;
  const bool elsewhere = place_.two_groups && place_.in_first_group() == choice(kRootGroup) % 2;
  const auto& roots = elsewhere ? place_.others : place_.members;
  root_ = roots[spec_.root % roots.size()];
  spec_.in_place = spec_.in_place && has_in_place(spec_.kind) && !place_.two_groups;
  lay_out();
  if (spec_.in_place) put_in_place();
  set_arguments();
}

const Operator& Collective::operation() const {
  const auto& all = types_[spec_.type].operators;
  return all[spec_.op % all.size()];
}

unsigned Collective::choice(int what, int a, int b, int c) const {
  return mixed_number(spec_.layout, what, a * 64 + b, c);
}

// Returns the size of a block in units, so that a block of a type with one number and one of a type
// with two can hold the same data.
int Collective::units(int from, int to, int tag_range) const {
  if (!is_vector(spec_.kind)) return spec_.count;
  if (spec_.in_place && to < from) std::swap(from, to);
  const unsigned drawn = choice(kUnits, from, to, tag_range);
  return drawn % 4 == 0 ? 0 : static_cast<int>(drawn / 4 % (2u * spec_.count + 1));
}

Collective::Block Collective::block(int units, int type, std::vector<int> from,
                                    int tag_range) const {
  Block result;
  result.type = type;
  result.count = spec_.mixed && type == kInt ? 2 * units : units;
  result.from = std::move(from);
  result.tag_range = tag_range;
  return result;
}

int Collective::side_type(int side, int process) const {
  if (!spec_.mixed) return spec_.type;
  return choice(side, process) % 2 ? kInt : kVector;
}

int Collective::pair_type(int from, int to, int tag_range, int side) const {
  if (!has_each_type(spec_.kind)) return side_type(side, place_.me());
  if (spec_.mixed || spec_.types.empty()) return side_type(side, 64 * from + to);
  if (spec_.in_place && to < from) std::swap(from, to);
  return spec_.types[choice(kPairType, from, to, tag_range) % spec_.types.size()];
}

bool Collective::in_group_of_root() const {
  return std::count(place_.members.begin(), place_.members.end(), root_) > 0;
}

void Collective::lay_out() {
  if (spec_.kind == Kind::barrier) return;
  if (is_reduction(spec_.kind)) return lay_out_reduction();
  if (is_neighbor(spec_.kind)) return lay_out_neighbors();
  if (has_root(spec_.kind)) return lay_out_rooted();
  lay_out_all();
}

// Lays out bcast, gather(v) and scatter(v). On an intercommunicator, the other processes of the
// root's group take no part. They pass the leaves' counts all the same, since some MPI libraries
// read them.
void Collective::lay_out_rooted() {
  const int me = place_.me();
  const bool root = me == root_, leaf = !place_.two_groups || !in_group_of_root();
  const bool gathers = spec_.kind == Kind::gather || spec_.kind == Kind::gatherv;
  const int sends = side_type(kSendType, me), receives = side_type(kReceiveType, me);
  const std::vector<int> root_if_any = root || leaf ? std::vector<int>{root_} : std::vector<int>{};
  if (spec_.kind == Kind::bcast) {
    if (root) inputs_ = {block(spec_.count, receives, {me})};
    receive_ = {block(spec_.count, receives, root_if_any)};
    return;
  }
  for (int peer : root ? place_.peers() : std::vector<int>{}) {
    if (gathers) receive_.push_back(block(units(peer), receives, {peer}));
    if (!gathers) send_.push_back(block(units(peer), sends, {me}, peer));
  }
  if (root && place_.two_groups) return;
  if (gathers) send_ = {block(units(me), sends, {me})};
  if (!gathers) receive_ = {block(units(me), receives, root_if_any, me)};
}

// Lays out allgather(v) and alltoall(v, w).
void Collective::lay_out_all() {
  const int me = place_.me();
  const bool gathers = spec_.kind == Kind::allgather || spec_.kind == Kind::allgatherv;
  if (gathers) send_ = {block(units(me), side_type(kSendType, me), {me})};
  for (int peer : place_.peers()) {
    if (gathers) {
      receive_.push_back(block(units(peer), side_type(kReceiveType, me), {peer}));
      continue;
    }
    send_.push_back(block(units(me, peer), pair_type(me, peer, 0, kSendType), {me}, peer));
    receive_.push_back(block(units(peer, me), pair_type(peer, me, 0, kReceiveType), {peer}, me));
  }
}

// If there are several edges between the same two processes, the first outgoing edge matches the
// first incoming edge, and so on.
void Collective::lay_out_neighbors() {
  const int me = place_.me();
  const bool gathers =
      spec_.kind == Kind::neighbor_allgather || spec_.kind == Kind::neighbor_allgatherv;
  const auto tag_range = [](int to, int nth) { return to * 64 + nth + 1; };
  if (gathers) send_ = {block(units(me), side_type(kSendType, me), {me})};
  for (std::size_t i = 0; !gathers && i < place_.destinations.size(); ++i) {
    const int to = place_.destinations[i], nth = occurrence(place_.destinations, i);
    if (to == MPI_PROC_NULL) {
      send_.push_back(block(spec_.count, side_type(kSendType, me), {me}));
      continue;
    }
    send_.push_back(
        block(units(me, to, nth), pair_type(me, to, nth, kSendType), {me}, tag_range(to, nth)));
  }
  for (std::size_t i = 0; i < place_.sources.size(); ++i) {
    const int from = place_.sources[i], nth = occurrence(place_.sources, i);
    if (from == MPI_PROC_NULL) {
      receive_.push_back(block(spec_.count, side_type(kReceiveType, me), {}));
    } else if (gathers) {
      receive_.push_back(block(units(from), side_type(kReceiveType, me), {from}));
    } else {
      receive_.push_back(block(units(from, me, nth), pair_type(from, me, nth, kReceiveType), {from},
                               tag_range(me, nth)));
    }
  }
}

void Collective::lay_out_reduction() {
  const Kind kind = spec_.kind;
  const int me = place_.me();
  const int others = place_.two_groups ? static_cast<int>(place_.others.size()) : 1;
  std::vector<int> from = place_.peers();
  if (kind == Kind::scan) from.resize(place_.rank + 1);
  if (kind == Kind::exscan) from.resize(place_.rank);
  if (kind == Kind::reduce && me != root_) from.clear();

  const bool scatters = kind == Kind::reduce_scatter || kind == Kind::reduce_scatter_block;
  for (int i = 0; i < place_.size(); ++i) {
    // On an intercommunicator, the counts of both groups must have the same sum.
    const bool differ = kind == Kind::reduce_scatter && !place_.two_groups;
    counts_.push_back(differ ? units(i) : spec_.count * others);
  }
  const int all = std::accumulate(counts_.begin(), counts_.end(), 0);
  const int taken = scatters ? all : spec_.count;
  send_ = {block(taken, spec_.type, {me})};
  Block result = block(scatters ? counts_[place_.rank] : spec_.count, spec_.type, from);
  if (scatters) {
    result.first = std::accumulate(counts_.begin(), counts_.begin() + place_.rank, 0L) *
                   static_cast<long>(types_[spec_.type].components.size());
  }
  receive_ = {result};
}

// For MPI_IN_PLACE: moves what this process sends to the place in its receive buffer where the
// standard expects it.
void Collective::put_in_place() {
  const Kind kind = spec_.kind;
  in_place_ = !has_root(kind) || place_.me() == root_;
  if (!in_place_) return;
  if (kind == Kind::scatter || kind == Kind::scatterv) {
    receive_.clear();  // the root's block stays where it is
    return;
  }
  arrange(&receive_);
  if (is_reduction(kind)) {
    inputs_ = send_;
    open_from_ = end_of(receive_[0]);
    open_to_ = end_of(send_[0]);
    send_.clear();
    return;
  }
  const bool gathers = kind != Kind::alltoall && kind != Kind::alltoallv && kind != Kind::alltoallw;
  if (gathers) {
    const Block& own = receive_[place_.rank];
    inputs_ = {own};
  } else {
    inputs_ = receive_;
    for (int i = 0; i < place_.size(); ++i) {
      inputs_[i].from = {place_.me()};
      inputs_[i].tag_range = place_.members[i];
    }
  }
  send_.clear();
}

// Returns the end of the last number in the block. With a shifted lower bound it is not the end of
// the extent.
std::ptrdiff_t Collective::end_of(const Block& b) const {
  return b.at + b.count * type(b).extent +
         std::min<std::ptrdiff_t>(type(b).components[0].offset, 0);
}

// Sets the displacement of each block. Returns how many bytes all blocks need.
std::ptrdiff_t Collective::arrange(Blocks* blocks) const {
  std::ptrdiff_t end = 0;
  const bool gaps = blocks == &send_ ? has_send_places(spec_.kind) : has_receive_places(spec_.kind);
  const bool reversed = gaps && choice(kReversed) % 2;
  for (std::size_t i = 0; i < blocks->size(); ++i) {
    Block& b = (*blocks)[reversed ? blocks->size() - 1 - i : i];
    const std::ptrdiff_t extent = type(b).extent;
    const std::ptrdiff_t gap = gaps ? choice(kGap, static_cast<int>(i)) % 3 : 0;
    if (has_each_type(spec_.kind)) {
      b.at = (end + kGrid - 1) / kGrid * kGrid + (1 + gap) * kGrid;
    } else {
      b.at = end + gap * extent;
    }
    end = b.at + b.count * extent;
  }
  return end;
}

void Collective::set_arguments() {
  const Kind kind = spec_.kind;
  if (kind == Kind::exscan && place_.rank == 0 && !in_place_) open_to_ = end_of(receive_[0]);
  sent_ = kept_ = Buffer(arrange(&send_));
  received_ = wanted_ = Buffer(std::max(arrange(&receive_), open_to_));

  Arguments& a = arguments_;
  a.send = sent_.data();
  a.receive = received_.data();
  a.comm = place_.comm;
  a.root = root_argument();
  if (is_reduction(kind)) a.op = operation().op;
  for (const auto& [blocks, list] :
       {std::pair{&send_, &a.send_types}, {&receive_, &a.receive_types}}) {
    for (const auto& b : *blocks) list->push_back(type(b).type);
    if (list->empty()) list->push_back(types_[spec_.type].type);
  }
  set_arrays(&a.ints);
  set_arrays(&a.larges);
  if (!in_place_) return;
  const bool scatters = kind == Kind::scatter || kind == Kind::scatterv;
  (scatters ? a.receive : a.send) = MPI_IN_PLACE;
}

template <class Count, class Displacement>
void Collective::set_arrays(Arrays<Count, Displacement>* arrays) const {
  const auto set = [this](const Blocks& blocks, auto* counts, auto* places) {
    for (const auto& b : blocks) {
      counts->push_back(static_cast<Count>(b.count));
      const std::ptrdiff_t unit = has_each_type(spec_.kind) ? 1 : type(b).extent;
      places->push_back(static_cast<Displacement>(b.at / unit));
    }
    // Open MPI requires the same arguments on both sides of a neighbourhood collective, even if
    // there are no neighbours.
    const bool alike = is_neighbor(spec_.kind) && !is_vector(spec_.kind);
    if (counts->empty()) counts->push_back(alike ? block(spec_.count, spec_.type, {}).count : 0);
    if (places->empty()) places->push_back(0);
  };
  set(send_, &arrays->send_counts, &arrays->send_places);
  if (spec_.kind == Kind::reduce_scatter) {
    arrays->receive_counts.assign(counts_.begin(), counts_.end());
  } else {
    set(receive_, &arrays->receive_counts, &arrays->receive_places);
  }
}

int Collective::root_argument() const {
  const auto in = [this](const std::vector<int>& list) {
    return static_cast<int>(std::find(list.begin(), list.end(), root_) - list.begin());
  };
  const int own = in(place_.members);
  if (!place_.two_groups) return own;
  if (own == place_.size()) return in(place_.others);
  return place_.rank == own ? MPI_ROOT : MPI_PROC_NULL;
}

void Collective::write(Buffer* buffer, const Block& b, unsigned salt) const {
  if (b.from.empty()) return;
  const TypeCase& t = type(b);
  long at = b.first;
  for (int i = 0; i < b.count; ++i) {
    for (const auto& component : t.components) {
      int value = number(salt, b.from[0], b.tag_range, at, t.values());
      for (std::size_t k = 1; k < b.from.size(); ++k) {
        value = operation().combine(value, number(salt, b.from[k], b.tag_range, at, t.values()));
      }
      buffer->store(b.at + i * t.extent, component, value);
      ++at;
    }
  }
}

void Collective::fill(unsigned salt) {
  for (Buffer* buffer : {&sent_, &received_}) buffer->clear();
  for (const auto& b : send_) write(&sent_, b, salt);
  for (const auto& b : inputs_) write(&received_, b, salt);
  kept_ = sent_;
  wanted_ = received_;
  for (const auto& b : receive_) write(&wanted_, b, salt);
}

void Collective::forgive() {
  wanted_.copy(received_, open_from_, open_to_);
}

std::string Collective::mistake() {
  forgive();
  if (!(sent_ == kept_)) {
    return "the send buffer was changed at byte " + std::to_string(sent_.difference(kept_));
  }
  if (received_ == wanted_) return "";
  return "the receive buffer is wrong at byte " + std::to_string(received_.difference(wanted_));
}

bool Collective::same_result(Collective& other) {
  Buffer mine = received_;
  mine.copy(other.received_, open_from_, open_to_);
  return mine == other.received_;
}

}  // namespace conformance
