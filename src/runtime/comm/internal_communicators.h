// Internal communicators carry Weft's messages, which thus never match the application's. One of
// its own is made where whole collectives of the library's need it. All others are tag ranges of a
// single shared communicator, since an MPI library may have no more than about 2,000 communicators,
// and these are the application's.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "transport/rank_map.h"
#include "transport/tag_ranges.h"

namespace weft {

// Freeing one that is not shared is collective, while its ranks finish with it at different times:
// it is freed when the same ranks make another one and find that all have finished.
struct InternalCommunicator {
  MPI_Comm comm{};
  bool is_own = false;  // no other communicator's messages or collectives are on it
  Tags tags{};
  std::int64_t number = 0;  // of an own one: different from those of all others of the same ranks
  std::vector<int> members{};  // who free it together, by their ranks in MPI_COMM_WORLD, in order
  int tag_range = -1;          // of the one that is shared
  std::shared_ptr<const RankMap> ranks{};  // on the one that is shared; nullptr: as they are
};

// The most communicators that are not shared, except those that are needed, and of threads of
// engine tcc.
inline constexpr int kMostOwn = 63;

// The requirements for an internal communicator.
struct Wish {
  int most_own = 0;   // one of its own, where there are fewer than so many
  bool ready = true;  // false, on one rank: nothing
  // Set if one that is not shared is needed even if all kMostOwn are taken, as long as the library
  // has any. Equal on all ranks.
  bool needed = false;
};

// Must be called before any internal communicator is made.
void begin_internal_communicators(int greatest_tag);
// Makes the communicator that tag ranges share, of the ranks of MPI_COMM_WORLD; collective over
// these. common() is the null communicator if it was not made, or the library has none to give.
void make_common();
MPI_Comm common();

struct WhyNone {
  bool others_have_all = false;  // other communicators
  int not_ready = -1;            // the first rank that is not
};

// Collective over `user`, whose ranks these are in MPI_COMM_WORLD; negative for those of another
// job. Returns nothing on all ranks if there is none; why_none, unless nullptr, then says why.
std::optional<InternalCommunicator> make_internal(MPI_Comm user,
                                                  const std::vector<int>& world_ranks,
                                                  const Wish& wish, WhyNone* why_none = nullptr);
// Is called when this rank has finished with it. at_once: all ranks give it up in the same call.
// usable: all messages were received, so that others may use the tag range.
void give_up(InternalCommunicator internal, bool at_once, bool usable);
// Returns whether fewer than `most` are not shared on this rank.
bool may_have_own(int most);

// Collective over `comm`, an internal communicator: returns one of the ranks with this color that
// is not shared, with these members.
std::optional<InternalCommunicator> split_own(MPI_Comm comm, const std::vector<int>& members,
                                              int color, int key);

// Collective over all ranks, in MPI_Finalize: frees all internal communicators if all ranks have
// finished with them.
void free_all_internal();

// Collective over `comm`. Returns a communicator of Weft's with the same ranks; the null
// communicator if the library has none to give. It uses MPI_Comm_create, which unlike MPI_Comm_dup
// calls none of the application's attribute callbacks and copies no info.
MPI_Comm communicator_like(MPI_Comm comm);

// Makes errors on a communicator of the application's return while it lives.
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
