// Transfers tracks the application's own large messages and file accesses, which the MPI library
// carries out. Most MPI libraries progress a long message only inside MPI calls. While the
// application computes, Weft's progress thread therefore makes MPI calls in which the library can
// progress it (keep_library_going()). The thread does not touch the application's requests: in some
// libraries even MPI_Request_get_status would report a request's error, which the application must
// get. So a message is tracked from its start until the call that completes it.
#pragma once

#include <mpi.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "base/config.h"
#include "base/left_calls.h"
#include "engine/progress.h"
#include "runtime/job/epoch.h"

namespace weft {

// The size in bytes from which a message counts as large. All message calls read this variable
// first.
inline std::atomic<std::int64_t> least_transfer_bytes{kNoTransfers};
inline std::atomic<int> known_transfers{0};  // number of requests in Transfers
// The number of requests in Transfers that are started and not known to be complete.
inline std::atomic<int> active_transfers{0};

// Caches the sizes of datatypes for this thread, as long as the epoch lasts. A single array is the
// fastest form for a message call.
struct KnownTypes {
  struct Known {
    MPI_Datatype type;
    int least_count;  // number of elements from which a message may be large
  };
  // Returns the entry of the cache for a datatype. Predefined datatypes have consecutive numbers as
  // handles; in Open MPI they have addresses of objects of 512 bytes.
  Known& at(MPI_Datatype type) {
#ifdef WEFT_FAMILY_OPENMPI
    constexpr int kSame = 9;
#else
    constexpr int kSame = 0;
#endif
    return all[((std::uintptr_t)type >> kSame) % all.size()];
  }
  std::uint64_t epoch;
  std::array<Known, 16> all;
};
extern constinit thread_local KnownTypes known_types __attribute__((tls_model("initial-exec")));

// Returns false if the message is certainly not large. It returns true if it is large, or if its
// size is unknown. It is called before the MPI library's call, when the datatype may still be
// invalid.
inline bool may_be_large(std::int64_t count, MPI_Datatype type) {
  const KnownTypes::Known& known = known_types.at(type);
  return known.type != type || count >= known.least_count || known_types.epoch != epoch();
}
// Returns whether the message is large. It must be called after a successful call of the MPI
// library, so that the datatype is known to be valid.
bool is_large(std::int64_t count, MPI_Datatype type);

class Transfers {
 public:
  // Returns the only object of this process.
  static Transfers& own();

  bool knows(MPI_Request request);
  void started(MPI_Request request);
  // Records a persistent message, which MPI_Start will start.
  void initialised(MPI_Request request);
  void started_again(int count, const MPI_Request* requests);
  // Stop the tracking of a message, because the application has cancelled it (and will complete it
  // later), or frees its request.
  void cancelled(MPI_Request request);
  void freed(MPI_Request request);

  // Stops the progress thread from progressing a message until give_back(), because the application
  // is in a call that may complete it. Returns false if the request is not an active message of
  // this table.
  bool take(MPI_Request request);
  void give_back(MPI_Request request, bool completed);

  std::int64_t count() const { return count_.load(); }  // messages started so far

 private:
  enum class State : std::uint8_t { idle, left, taken };
  struct Transfer {
    bool persistent = false;
    State state = State::idle;
  };

  void turn(Transfer& transfer, State state, std::uint32_t started = 0);
  void end(MPI_Request request, bool for_good);

  std::mutex mutex_;  // guards transfers_
  std::unordered_map<MPI_Request, Transfer> transfers_;
  std::atomic<std::int64_t> count_{0};
};

// Record a large message that has been started, or that MPI_Send_init or a similar call has made.
void transfer_started(MPI_Request request);
void transfer_initialised(MPI_Request request);

// Records a large file access that has been started. Under Open MPI (5.0.11) it does nothing: every
// call of that library searches its list of file accesses without a lock, so that a second thread
// inside MPI would sometimes crash the program.
#ifdef WEFT_FAMILY_OPENMPI
inline void access_to_file_started(MPI_Request) {}
#else
inline void access_to_file_started(MPI_Request request) {
  transfer_started(request);
}
#endif

// Stops the progress thread from progressing the messages among the requests of a completion call,
// for the duration of that call.
class TakenTransfers {
 public:
  TakenTransfers(int count, const MPI_Request* requests) {
    if (active_transfers.load(std::memory_order_relaxed) > 0) [[unlikely]]
      take(count, requests);
  }
  // Record which of the messages the completion call has completed. They must be called after that
  // call, which has returned `code`, and return `code`. all_completed() is for calls that complete
  // all requests or none. completed() is for calls that complete the requests at `indices`. After
  // an error it is unknown which requests are complete, and all of them are no longer tracked.
  int all_completed(int code, bool completed = true) {
    if (taken_) [[unlikely]]
      give_back(completed || code != MPI_SUCCESS, 0, nullptr);
    return code;
  }
  int completed(int code, int count, const int* indices) {
    if (taken_) [[unlikely]]
      give_back(code != MPI_SUCCESS, count, indices);
    return code;
  }

 private:
  struct Taken {
    MPI_Request request;
    int index;
  };
  // The tracked messages among the call's requests. If the call never returns (longjmp()), it is
  // unknown which are complete, and the destructor stops tracking all of them.
  struct AllTaken {
    std::vector<Taken> all;
    void give_back(bool completed, int count, const int* indices);
    ~AllTaken() { give_back(true, 0, nullptr); }
  };
  void take(int count, const MPI_Request* requests);
  void give_back(bool all, int count, const int* indices);

  LongjmpSafe<AllTaken> taken_;
};

}  // namespace weft
