// Transfers: the application's own large messages and the like, which stay the MPI library's. Most
// libraries progress a long message only inside MPI calls; while the application computes, the
// progress thread gives the library time by calls of its own (keep_library_going). It touches none
// of the application's requests: in some libraries even MPI_Request_get_status reports a request's
// error, which is the application's. So a transfer counts from its start to the call that completes
// it.
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

// These are read first by all calls.
inline std::atomic<std::int64_t> least_transfer_bytes{kNoTransfers};
inline std::atomic<int> known_transfers{0};   // requests among Transfers
inline std::atomic<int> active_transfers{0};  // of these, started and not known to have ended

// This thread's knowledge of types, valid for an epoch. It is a single array, which costs a message
// the least.
struct KnownTypes {
  struct Known {
    MPI_Datatype type;
    int least_count;  // so many are large; the most that an int holds: perhaps more are
  };
  // Handles of predefined types are consecutive numbers, except in Open MPI, where they are
  // addresses of objects of 512 bytes.
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

// Is called before the call, whose type only the library can judge. Returns false if the message is
// not worth the thread's time.
inline bool may_be_large(std::int64_t count, MPI_Datatype type) {
  const KnownTypes::Known& known = known_types.at(type);
  return known.type != type || count >= known.least_count || known_types.epoch != epoch();
}
// Is called after a successful call.
bool is_large(std::int64_t count, MPI_Datatype type);

class Transfers {
 public:
  // Returns the object of this process.
  static Transfers& own();

  bool knows(MPI_Request request);
  void started(MPI_Request request);
  // Records a persistent transfer, which MPI_Start starts.
  void initialised(MPI_Request request);
  void started_again(int count, const MPI_Request* requests);
  // The application has cancelled it, and completes it later; or frees it.
  void cancelled(MPI_Request request);
  void freed(MPI_Request request);

  // Keeps a transfer from the thread until give_back(), since a caller may complete it. Returns
  // false if it is none, or not started.
  bool take(MPI_Request request);
  void give_back(MPI_Request request, bool completed);

  std::int64_t count() const { return count_.load(); }  // of those started so far

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

// Are called when a large one has been started, or made by MPI_Send_init and the like.
void transfer_started(MPI_Request request);
void transfer_initialised(MPI_Request request);

// Is called for an access to a file. Open MPI searches its list of these without a lock in any of
// its calls (5.0.11), so that a thread which gives it time would sometimes end the program.
#ifdef WEFT_FAMILY_OPENMPI
inline void access_to_file_started(MPI_Request) {}
#else
inline void access_to_file_started(MPI_Request request) {
  transfer_started(request);
}
#endif

// Lives while a completion call of the application handles requests.
class TakenTransfers {
 public:
  TakenTransfers(int count, const MPI_Request* requests) {
    if (active_transfers.load(std::memory_order_relaxed) > 0) [[unlikely]]
      take(count, requests);
  }
  // Is called after the call, which returned `code`: all were completed, or none, or those at these
  // indices. After an error nobody knows which, and Weft forgets them all.
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
  // After a call that was left nobody knows either which were completed.
  struct AllTaken {
    std::vector<Taken> all;
    void give_back(bool completed, int count, const int* indices);
    ~AllTaken() { give_back(true, 0, nullptr); }
  };
  void take(int count, const MPI_Request* requests);
  void give_back(bool all, int count, const int* indices);

  Lasting<AllTaken> taken_;
};

}  // namespace weft
