// Makes, shares and frees internal communicators. They are made in calls that are collective
// anyway. A range of tags on the shared communicator can be given up by each rank alone. An
// unshared communicator is freed in one of two places: in such a collective call, if all ranks have
// finished with it, or in the application's MPI_Comm_free, if no collective can be active.
#include "runtime/comm/internal_communicators.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <mutex>
#include <utility>

#include "library/generated/library_calls.h"
#include "library/handles.h"

namespace weft {
namespace {

std::atomic<int> own_alive{0};

void free_now(MPI_Comm comm) {
  library_calls.Comm_free(&comm);
  own_alive.fetch_sub(1);
}

// The unshared internal communicators with certain members that this rank no longer uses, by
// number. They wait until all members have finished with them.
struct Spares {
  std::map<std::int64_t, MPI_Comm> by_number;
  std::int64_t next = 0;  // lowest number of the communicator that this rank proposes next to free
};

// Holds the unused communicators of all groups of ranks. It is never destroyed, since collectives
// may end while the process exits.
struct AllSpares {
  std::mutex mutex;  // guards the members below
  std::map<std::vector<int>, Spares> of;
};
AllSpares& spares() {
  static auto* instance = new AllSpares;
  return *instance;
}

void put_by(InternalCommunicator internal) {
  const std::lock_guard lock(spares().mutex);
  spares().of[std::move(internal.members)].by_number.emplace(internal.number, internal.comm);
}

struct Spare {
  MPI_Comm comm{};
  std::int64_t number = 0;  // number of the communicator; 0 if there is none
};

// Takes one unused communicator with these members, which this rank proposes to free, out of the
// table. Thus no other thread can propose it, too.
Spare take_spare(const std::vector<int>& members) {
  const std::lock_guard lock(spares().mutex);
  const auto found = spares().of.find(members);
  if (found == spares().of.end()) return {};
  auto& [by_number, next] = found->second;
  const auto one = by_number.lower_bound(next);
  if (one == by_number.end()) return {};
  const Spare taken{one->second, one->first};
  by_number.erase(one);
  return taken;
}

// Decides about the unused communicator `spare` that this rank has proposed to free: frees it if
// all members have proposed the same one. least, greatest: the smallest and largest number that a
// member has proposed. If they differ, the communicator is put back into the table, and all members
// propose the one with the largest number next time. If some member has proposed none, they begin
// with their smallest next time.
void settle_spare(const std::vector<int>& members, const Spare& spare, std::int64_t least,
                  std::int64_t greatest) {
  const bool agreed = least == greatest;
  if (agreed && spare.number != 0) free_now(spare.comm);
  const std::lock_guard lock(spares().mutex);
  const auto found = spares().of.find(members);
  if (found == spares().of.end()) return;
  auto& [by_number, next] = found->second;
  next = agreed || least == 0 ? 0 : greatest;
  if (!agreed && spare.number != 0) by_number.emplace(spare.number, spare.comm);
  if (by_number.empty()) spares().of.erase(found);
}

int spares_here() {
  const std::lock_guard lock(spares().mutex);
  std::size_t count = 0;
  for (const auto& [members, theirs] : spares().of) count += theirs.by_number.size();
  return static_cast<int>(count);
}

// Frees all unused internal communicators. All ranks free those to which they belong in the same
// order, since MPI_Comm_free is collective.
void free_spares() {
  const std::lock_guard lock(spares().mutex);
  for (const auto& [members, theirs] : spares().of)
    for (const auto& [number, comm] : theirs.by_number) free_now(comm);
  spares().of.clear();
}

std::int64_t new_number(int world_rank) {
  static std::atomic<std::int64_t> made{0};
  return (made.fetch_add(1) + 1) << 32 | world_rank;
}

// The shared internal communicator and its ranges of tags. It is never destroyed, since collectives
// may end while the process exits.
struct Common {
  explicit Common(const TagsOfAll& tags) : tags(tags), tag_ranges(tags.tag_ranges) {}

  MPI_Comm comm = handles.comm_null;
  const TagsOfAll tags;
  // True once MPI_COMM_WORLD uses this communicator, with tags outside of all ranges.
  bool is_the_worlds = false;
  std::mutex mutex;  // guards the members below
  TagRanges tag_ranges;
  // True while a thread of this process is agreeing with other ranks on a range of tags.
  bool one_is_chosen = false;
};
Common* the_common = nullptr;

// Lets only one thread at a time agree with other ranks on a range of tags, since two threads could
// choose the same range. Communicators that other threads make meanwhile get no range, on all of
// their ranks.
class Choosing {
 public:
  Choosing() {
    const std::lock_guard lock(the_common->mutex);
    may_ = !std::exchange(the_common->one_is_chosen, true);
  }
  ~Choosing() {
    if (!may_) return;
    const std::lock_guard lock(the_common->mutex);
    the_common->one_is_chosen = false;
  }
  Choosing(const Choosing&) = delete;
  Choosing& operator=(const Choosing&) = delete;
  bool may() const { return may_; }

 private:
  bool may_;
};

int first_of_free_tag_ranges() {
  const std::lock_guard lock(the_common->mutex);
  return the_common->tag_ranges.first_of_free();
}

// The words that ranks exchange when they make an internal communicator. The result of each word is
// its maximum over all ranks.
enum Word : std::uint8_t {
  // 0 if this rank is ready; otherwise the number of ranks from this one to the last. The maximum
  // thus tells the lowest rank that is not ready.
  kNotReady,
  kNumber,
  kSpare,
  // The bitwise complement of kSpare. All ranks have the same kSpare exactly if the maxima of
  // kSpare and kSpareToo are complements of each other.
  kSpareToo,
  // 1 if at least Wish::most_own unshared internal communicators exist on this rank; otherwise 0.
  kManyOwn,
  // 1 if at least kMostOwn unshared internal communicators exist on this rank; otherwise 0.
  kMostHere,
  kBusy,
  kFirstTagRange,
  kWords,
};
using Words = std::array<std::int64_t, kWords>;

// Exchanges the words of enum Word between the ranks; collective. Also frees one unshared internal
// communicator of the same ranks, if all have finished with it. Returns the maxima; nullopt if the
// exchange has failed.
std::optional<Words> agree(MPI_Comm comm, const std::vector<int>& members, const Wish& wish,
                           bool busy) {
  int rank = 0, world_rank = 0;
  const auto ranks = static_cast<int>(members.size());
  library_calls.Comm_rank(comm, &rank);
  library_calls.Comm_rank(handles.comm_world, &world_rank);
  const Spare spare = take_spare(members);
  const int own = own_alive.load();
  Words words{};
  words[kNotReady] = wish.ready ? 0 : ranks - rank;
  words[kNumber] = rank == 0 ? new_number(world_rank) : 0;
  words[kSpare] = spare.number;
  words[kSpareToo] = ~spare.number;
  words[kManyOwn] = own >= wish.most_own ? 1 : 0;
  words[kMostHere] = own >= kMostOwn ? 1 : 0;
  words[kBusy] = busy ? 1 : 0;
  words[kFirstTagRange] = first_of_free_tag_ranges();
  Words greatest{};
  const int code = library_calls.Allreduce(words.data(), greatest.data(), kWords, handles.int64,
                                           handles.max, comm);
  if (code != MPI_SUCCESS) {
    if (spare.number != 0) put_by({.comm = spare.comm, .number = spare.number, .members = members});
    return std::nullopt;
  }
  settle_spare(members, spare, ~greatest[kSpareToo], greatest[kSpare]);
  return greatest;
}

// Returns the lowest range of tags that is unused on all ranks; -1 if there is none. It is
// collective, and needed only after some rank has used every range once.
int free_on_all(MPI_Comm comm) {
  std::vector<std::int64_t> own;
  {
    const std::lock_guard lock(the_common->mutex);
    own = the_common->tag_ranges.free_bits();
  }
  auto all = own;
  const int code = library_calls.Allreduce(own.data(), all.data(), static_cast<int>(own.size()),
                                           handles.int64, handles.band, comm);
  return code == MPI_SUCCESS ? TagRanges::lowest_of(all) : -1;
}

std::optional<InternalCommunicator> take_tag_range(MPI_Comm user,
                                                   const std::vector<int>& world_ranks,
                                                   const Words& agreed) {
  if (the_common->comm == handles.comm_null || agreed[kBusy] != 0 ||
      the_common->tags.tag_ranges < 1)
    return std::nullopt;
  // Processes of other jobs do not belong to Weft's shared internal communicator, so a communicator
  // with such processes cannot get a range of tags on it.
  if (std::any_of(world_ranks.begin(), world_ranks.end(), [](int rank) { return rank < 0; }))
    return std::nullopt;
  auto tag_range = static_cast<int>(agreed[kFirstTagRange]);
  if (tag_range >= the_common->tags.tag_ranges) tag_range = free_on_all(user);
  if (tag_range < 0) return std::nullopt;
  const std::lock_guard lock(the_common->mutex);
  the_common->tag_ranges.take(tag_range);
  auto ranks = shared_map(world_ranks);
  if (ranks->is_identity()) ranks = nullptr;
  return InternalCommunicator{.comm = the_common->comm,
                              .tags = the_common->tags.of(tag_range),
                              .tag_range = tag_range,
                              .ranks = std::move(ranks)};
}

std::optional<InternalCommunicator> own_internal(MPI_Comm made, const std::vector<int>& members,
                                                 const Words& agreed) {
  if (made == handles.comm_null) return std::nullopt;
  library_calls.Comm_set_errhandler(made, handles.errors_return);
  own_alive.fetch_add(1);
  return InternalCommunicator{.comm = made,
                              .is_own = true,
                              .tags = the_common->tags.alone(),
                              .number = agreed[kNumber],
                              .members = members};
}

}  // namespace

ErrorsReturn::ErrorsReturn(MPI_Comm comm) : comm_(comm) {
  do_return_ = library_calls.Comm_get_errhandler(comm, &before_) == MPI_SUCCESS;
  if (do_return_) library_calls.Comm_set_errhandler(comm, handles.errors_return);
}

ErrorsReturn::~ErrorsReturn() {
  if (!do_return_) return;
  library_calls.Comm_set_errhandler(comm_, before_);
  library_calls.Errhandler_free(&before_);
}

MPI_Comm communicator_like(MPI_Comm comm) {
  MPI_Group group;
  MPI_Comm made = handles.comm_null;
  if (library_calls.Comm_group(comm, &group) != MPI_SUCCESS) return handles.comm_null;
  const int code = library_calls.Comm_create(comm, group, &made);
  library_calls.Group_free(&group);
  return code == MPI_SUCCESS ? made : handles.comm_null;
}

void begin_internal_communicators(int greatest_tag) {
  the_common = new Common(TagsOfAll(greatest_tag));
}

void make_common() {
  const ErrorsReturn errors(handles.comm_world);
  if (!errors.do_return()) return;
  the_common->comm = communicator_like(handles.comm_world);
  if (common() != handles.comm_null)
    library_calls.Comm_set_errhandler(common(), handles.errors_return);
}

MPI_Comm common() {
  return the_common->comm;
}

bool may_have_own(int most) {
  return own_alive.load() < most;
}

// While the communicator is made, the MPI library returns errors to Weft instead of calling the
// application's error handler. The application already has its own communicator, and can continue
// without the internal one.
std::optional<InternalCommunicator> make_internal(MPI_Comm user,
                                                  const std::vector<int>& world_ranks,
                                                  const Wish& wish, WhyNone* why_none) {
  const ErrorsReturn errors(user);
  if (!errors.do_return()) return std::nullopt;
  std::vector<int> members = world_ranks;
  std::sort(members.begin(), members.end());
  const Choosing choosing;
  const auto agreed = agree(user, members, wish, !choosing.may());
  if (!agreed) return std::nullopt;
  if (const auto from_first = (*agreed)[kNotReady]; from_first != 0) {
    if (why_none)
      why_none->not_ready = static_cast<int>(members.size()) - static_cast<int>(from_first);
    return std::nullopt;
  }
  if (user == handles.comm_world && !std::exchange(the_common->is_the_worlds, true) &&
      common() != handles.comm_null)
    return InternalCommunicator{.comm = common(), .is_own = true, .tags = the_common->tags.alone()};
  if ((*agreed)[kManyOwn] == 0)
    if (auto own = own_internal(communicator_like(user), members, *agreed)) return own;
  if (auto shared = take_tag_range(user, world_ranks, *agreed)) return shared;
  if ((*agreed)[kMostHere] != 0 && !wish.needed) {
    if (why_none) why_none->others_have_all = true;
    return std::nullopt;
  }
  return own_internal(communicator_like(user), members, *agreed);
}

void give_up(InternalCommunicator internal, bool at_once, bool usable) {
  if (internal.tag_range >= 0) {
    const std::lock_guard lock(the_common->mutex);
    if (usable) the_common->tag_ranges.give_back(internal.tag_range);
  } else if (internal.number == 0) {
    return;  // the shared internal communicator, which MPI_COMM_WORLD uses, is kept
  } else if (at_once) {
    free_now(internal.comm);
  } else {
    put_by(std::move(internal));
  }
}

std::optional<InternalCommunicator> split_own(MPI_Comm comm, const std::vector<int>& members,
                                              int color, int key) {
  const auto agreed = agree(comm, members, {.most_own = kMostOwn}, false);
  MPI_Comm made = handles.comm_null;
  if (!agreed || (*agreed)[kManyOwn] != 0 ||
      library_calls.Comm_split(comm, color, key, &made) != MPI_SUCCESS)
    return std::nullopt;
  return own_internal(made, members, *agreed);
}

// If any rank still has a request on an internal communicator, no rank frees any internal
// communicator. Otherwise a rank might wait in MPI_Comm_free for another rank that does not free
// the same one.
void free_all_internal() {
  if (common() == handles.comm_null) return;
  std::int64_t in_use = own_alive.load() - spares_here();
  {
    const std::lock_guard lock(the_common->mutex);
    in_use += the_common->tag_ranges.in_use();
  }
  std::int64_t most_in_use = 0;
  const int code =
      library_calls.Allreduce(&in_use, &most_in_use, 1, handles.int64, handles.max, common());
  if (code != MPI_SUCCESS || most_in_use != 0) return;
  free_spares();
  library_calls.Comm_free(&the_common->comm);
}

}  // namespace weft
