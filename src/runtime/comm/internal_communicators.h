// Internal communicators carry Weft's messages, which therefore never match the application's. A
// communicator that needs whole collectives of the library gets an unshared one. All others get a
// tag range of a single shared communicator, because an MPI library may have only about 2,000
// communicators, which belong to the application.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "transport/rank_map.h"
#include "transport/tag_ranges.h"

namespace weft {

// An unshared communicator, or a tag range. Freeing an unshared one is collective, but its ranks
// finish with it at different times. It is freed when the same ranks make another one and find that
// all have finished.
struct InternalCommunicator {
  MPI_Comm comm{};
  bool is_own = false;  // unshared: no other communicator uses it for messages or collectives
  Tags tags{};
  std::int64_t number = 0;     // an unshared communicator's number, unique among those of its ranks
  std::vector<int> members{};  // ranks in MPI_COMM_WORLD, sorted, that free an unshared
                               // communicator together
  int tag_range = -1;  // tag range on the shared communicator; -1 for an unshared communicator
  std::shared_ptr<const RankMap> ranks{};  // for the shared communicator: maps ranks to its ranks;
                                           // nullptr if both are equal
};

// The limit for internal communicators that are not shared by several of the application's.
// Required ones and those of engine tcc are not counted.
inline constexpr int kMostOwn = 63;

// The requirements for an internal communicator.
struct Wish {
  int most_own = 0;   // the communicator should be unshared if fewer unshared ones than this exist
  bool ready = true;  // if false on some rank, no communicator is made
  // Set if an unshared internal communicator is required even if kMostOwn exist, as long as the
  // library can make one. Equal on all ranks.
  bool needed = false;
};

// Divides the library's tags into ranges. Must be called before any internal communicator is made.
// greatest_tag: the library's MPI_TAG_UB.
void begin_internal_communicators(int greatest_tag);
// make_common(): makes the communicator that tag ranges share; collective over MPI_COMM_WORLD.
// common(): returns it; the null handle if it was not made, or the library had no communicator
// left.
void make_common();
MPI_Comm common();

struct WhyNone {
  bool others_have_all = false;  // other communicators of the application use all unshared ones
                                 // that the limit allows
  int not_ready = -1;            // first rank with Wish::ready == false; -1 if none
};

// Makes an internal communicator for `user`. Collective over `user`. world_ranks: its ranks in
// MPI_COMM_WORLD; negative for those of another job. Returns nullopt on all ranks if no internal
// communicator can be made; *why_none, if given, then has the reason.
std::optional<InternalCommunicator> make_internal(MPI_Comm user,
                                                  const std::vector<int>& world_ranks,
                                                  const Wish& wish, WhyNone* why_none = nullptr);
// Gives up an internal communicator with which this rank has finished. at_once: all ranks call this
// function in the same MPI call. usable: all messages were received, so that another communicator
// may use the tag range.
void give_up(InternalCommunicator internal, bool at_once, bool usable);
// Returns whether this rank has fewer than `most` unshared internal communicators.
bool may_have_own(int most);

// Collective over `comm`, an internal communicator: returns an unshared one for the ranks with this
// color. members: the ranks with this color in MPI_COMM_WORLD.
std::optional<InternalCommunicator> split_own(MPI_Comm comm, const std::vector<int>& members,
                                              int color, int key);

// Collective over all ranks, in MPI_Finalize: frees all internal communicators if all ranks have
// finished with them.
void free_all_internal();

// Collective over `comm`. Returns a communicator of Weft with the same ranks; the null handle if
// the library has none left. It uses MPI_Comm_create, which unlike MPI_Comm_dup calls no attribute
// callbacks of the application and copies no info.
MPI_Comm communicator_like(MPI_Comm comm);

// Sets the error handler of an application's communicator to MPI_ERRORS_RETURN while it lives.
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
