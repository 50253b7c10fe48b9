// Makes internal communicators, which carry Weft's messages so that these never match the
// application's. A communicator that needs whole collectives of the MPI library gets an internal
// communicator of its own (unshared). All others share a single internal communicator and get a
// range of tags on it. The reason is that an MPI library may have only about 2,000 communicators,
// which the application may need.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "transport/rank_map.h"
#include "transport/tag_ranges.h"

namespace weft {

// An unshared internal communicator, or a range of tags on the shared one. Freeing an unshared one
// is collective, but ranks finish with it at different times. Therefore it is freed when the same
// ranks make another internal communicator, and find that all of them have finished with the old
// one.
struct InternalCommunicator {
  MPI_Comm comm{};
  bool is_own = false;  // true if no other communicator of the application uses it
  Tags tags{};
  // The number of an unshared communicator, unique among the communicators of the same ranks.
  std::int64_t number = 0;
  // The members of an unshared communicator, as sorted ranks in MPI_COMM_WORLD.
  std::vector<int> members{};
  int tag_range = -1;  // range of tags on the shared internal communicator; -1 if unshared
  // Maps ranks to ranks of the shared internal communicator; nullptr if they are equal.
  std::shared_ptr<const RankMap> ranks{};
};

// The largest number of unshared internal communicators. Those that are required, such as for
// engine tcc, may exceed it.
inline constexpr int kMostOwn = 63;

// Describes the internal communicator that is needed.
struct Wish {
  int most_own = 0;  // the communicator is unshared if fewer unshared ones than this exist
  // whether this rank can take part; if any rank cannot, no communicator is made
  bool ready = true;
  // True if an unshared internal communicator is required even beyond kMostOwn, as long as the MPI
  // library can make one. It must be equal on all ranks.
  bool needed = false;
};

// Divides the tags of the shared internal communicator into ranges, one for each communicator that
// uses it. It must be called before any internal communicator is made. greatest_tag: the MPI
// library's MPI_TAG_UB.
void begin_internal_communicators(int greatest_tag);
// make_common() makes the internal communicator that many communicators share; collective over
// MPI_COMM_WORLD. common() returns it, or the null handle if it could not be made.
void make_common();
MPI_Comm common();

struct WhyNone {
  // True if no unshared internal communicator is left within the limit, because other communicators
  // of the application use them.
  bool others_have_all = false;
  int not_ready = -1;  // the lowest rank with Wish::ready == false; -1 if none
};

// Makes an internal communicator for `user`; collective over `user`. world_ranks: the ranks of
// `user` in MPI_COMM_WORLD; negative for processes of other jobs. If that is impossible, returns
// nullopt on all ranks, and stores the reason in *why_none unless why_none is nullptr.
std::optional<InternalCommunicator> make_internal(MPI_Comm user,
                                                  const std::vector<int>& world_ranks,
                                                  const Wish& wish, WhyNone* why_none = nullptr);
// Gives up an internal communicator that this rank no longer uses. at_once: whether all ranks call
// this function in the same MPI call, so that it can be freed now. usable: whether all messages
// were received, so that another communicator may get the same tags.
void give_up(InternalCommunicator internal, bool at_once, bool usable);
// Returns whether this rank has fewer than `most` unshared internal communicators.
bool may_have_own(int most);

// Splits `comm`, an internal communicator, by `color` and `key` as MPI_Comm_split does; collective
// over `comm`. Returns the unshared communicator of the ranks with this color; nullopt if none can
// be made. members: these ranks in MPI_COMM_WORLD.
std::optional<InternalCommunicator> split_own(MPI_Comm comm, const std::vector<int>& members,
                                              int color, int key);

// Frees all internal communicators, if all ranks have finished with them. It is collective over all
// ranks, in MPI_Finalize.
void free_all_internal();

// Returns a new communicator with the same ranks as `comm`; the null handle if the MPI library has
// none left. It is collective over `comm`. It uses MPI_Comm_create because MPI_Comm_dup would call
// the application's attribute callbacks and copy info.
MPI_Comm communicator_like(MPI_Comm comm);

// While this object lives, the communicator has error handler MPI_ERRORS_RETURN instead of the
// application's handler.
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
