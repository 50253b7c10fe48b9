// Transfers: the application's own large messages and accesses, which the MPI library carries out.
// Most libraries progress a long message only inside MPI calls. While the application computes, the
// progress thread lets the library progress them by calls of its own (keep_library_going()). The
// thread does not touch the application's requests, because in some libraries even
// MPI_Request_get_status reports a request's error, which belongs to the application. Therefore a
// transfer counts from its start to the call that completes it.
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

// The least size of a large transfer in bytes, and how many are known. All message calls read these
// variables first.
inline std::atomic<std::int64_t> least_transfer_bytes{kNoTransfers};
inline std::atomic<int> known_transfers{0};   // number of requests recorded in Transfers
inline std::atomic<int> active_transfers{0};  // number of recorded requests that are started and
                                              // not known to have ended

// This thread's cache of datatypes, valid for an epoch. It is a single array, which costs a message
// least.
struct KnownTypes {
  struct Known {
    MPI_Datatype type;
    int least_count;  // count from which a message may be large; INT_MAX if unknown beyond that
  };
  // Returns the cache entry for a type. Handles of predefined types are consecutive numbers, except
  // in Open MPI, where they are addresses of objects of 512 bytes.
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

// Returns true if the message is large or its size is not known yet, false if it is certainly not
// large. Is called before the library's call, when the type may still be invalid.
inline bool may_be_large(std::int64_t count, MPI_Datatype type) {
  const KnownTypes::Known& known = known_types.at(type);
  return known.type != type || count >= known.least_count || known_types.epoch != epoch();
}
// Returns whether the message is large. Is called after a successful library call, when the type is
// known to be valid.
bool is_large(std::int64_t count, MPI_Datatype type);

class Transfers {
 public:
  // Returns the object of this process.
  static Transfers& own();

  bool knows(MPI_Request request);
  void started(MPI_Request request);
  // Records a persistent transfer, which MPI_Start will start.
  void initialised(MPI_Request request);
  void started_again(int count, const MPI_Request* requests);
  // Note that a transfer no longer counts, because the application has cancelled it, and completes
  // it later; or because it frees the request.
  void cancelled(MPI_Request request);
  void freed(MPI_Request request);

  // Keeps the progress thread from a transfer until give_back(), because a caller may complete it.
  // Returns true for a started transfer, false for any other request.
  bool take(MPI_Request request);
  void give_back(MPI_Request request, bool completed);

  std::int64_t count() const { return count_.load(); }  // number of transfers started so far

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

// Record a large transfer that has been started, or made by MPI_Send_init and similar calls.
void transfer_started(MPI_Request request);
void transfer_initialised(MPI_Request request);

// Records a large access to a file that has been started. Under Open MPI (5.0.11) it does nothing:
// in every call that library searches its list of file accesses without a lock, so that a
// progressing thread would sometimes crash the program.
#ifdef WEFT_FAMILY_OPENMPI
inline void access_to_file_started(MPI_Request) {}
#else
inline void access_to_file_started(MPI_Request request) {
  transfer_started(request);
}
#endif

// Keeps the progress thread from the transfers among the requests of a completion call, from before
// the call until after it.
class TakenTransfers {
 public:
  TakenTransfers(int count, const MPI_Request* requests) {
    if (active_transfers.load(std::memory_order_relaxed) > 0) [[unlikely]]
      take(count, requests);
  }
  // These functions are called after the completion call, which returned `code`: all_completed() if
  // all or none of the requests were completed, completed() if those at `indices` were. After an
  // error nobody knows which were completed, and Weft forgets them all.
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
  // The transfers among the call's requests. If the call never returns, nobody knows which were
  // completed, and Weft forgets them all.
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
