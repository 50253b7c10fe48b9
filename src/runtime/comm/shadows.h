// Shadows: on what Weft's messages of one of the application's communicators travel, so that they
// never meet the application's. Either a communicator of Weft's own, which whole collectives of the
// library's need; or a lane of the one communicator that all others share.
// Why not one for each: an MPI library may have no more than about 2,000, and they are the
// application's.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "transport/lanes.h"
#include "transport/rank_map.h"

namespace weft {

// To free one of its own is collective, while its ranks are done with it at different times: it is
// freed when the same ranks make another one and find that all of them are.
struct Shadow {
  MPI_Comm comm{};
  bool is_own = false;  // no other communicator's messages or collectives are on it
  Tags tags{};
  std::int64_t number = 0;  // of an own one: different from those of all others of the same ranks
  std::vector<int> members{};  // who free it together, by their ranks in MPI_COMM_WORLD, in order
  int lane = -1;               // of the one that is shared
  std::shared_ptr<const RankMap> ranks{};  // on the one that is shared; nullptr: as they are
};

// At most so many of its own, but for what needs one, and as many threads of engine tcc.
inline constexpr int kMostOwn = 63;

// What is wanted of a shadow.
struct Wish {
  int most_own = 0;   // one of its own, where there are fewer than so many
  bool ready = true;  // false, on one rank: nothing
  // What nobody else can carry out: one of its own, too, where all of kMostOwn are taken, for as
  // long as the library has any to give. The same on all ranks.
  bool needed = false;
};

// Before any shadow is made.
void begin_shadows(int greatest_tag);
// The communicator that lanes share: of the ranks of MPI_COMM_WORLD, whose own it is. Collective
// over these. The null one where it was not made, or the library has none to give.
void make_common();
MPI_Comm common();

struct WhyNone {
  bool others_have_all = false;  // other communicators
  int not_ready = -1;            // the first rank that is not
};

// Collective over `user`, whose ranks these are in MPI_COMM_WORLD; negative: of another job. No
// value on all ranks where there is none to be had; why_none: nullptr, or told why.
std::optional<Shadow> make_shadow(MPI_Comm user, const std::vector<int>& world_ranks,
                                  const Wish& wish, WhyNone* why_none = nullptr);
// This rank is done with it. at_once: all ranks are, and give it up in the same call. usable: all
// that was sent has been received, so that others may use the lane.
void give_up(Shadow shadow, bool at_once, bool usable);
// Whether fewer than so many have their own on this rank.
bool may_have_own(int most);

// Collective over `comm`, one of Weft's own: a communicator of those with this color, as an own
// shadow of these members.
std::optional<Shadow> split_own(MPI_Comm comm, const std::vector<int>& members, int color, int key);

// Collective over all ranks, in MPI_Finalize: frees all shadows if all ranks are done with them.
void free_all_shadows();

// One of Weft's own, of the same ranks; the null one where the library has none to give. By
// MPI_Comm_create over the same group: unlike MPI_Comm_dup it calls none of the application's
// attribute callbacks and takes over no info. Collective over `comm`.
MPI_Comm communicator_like(MPI_Comm comm);

// While it lives, errors on a communicator of the application's return.
class ErrorsReturn {
 public:
  explicit ErrorsReturn(MPI_Comm comm);
  ~ErrorsReturn();
  ErrorsReturn(const ErrorsReturn&) = delete;
  ErrorsReturn& operator=(const ErrorsReturn&) = delete;
  bool do_return() const { return do_return_; }

 private:
  const MPI_Comm comm_;
  MPI_Errhandler before_{};
  bool do_return_ = false;
};

}  // namespace weft
