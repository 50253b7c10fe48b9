// Transfers: the application's own large messages and the like, which stay the MPI library's. Most
// libraries bring a long message forward only inside MPI calls; while the application computes, the
// progress thread asks for the status of one request after the other (MPI_Request_get_status, which
// leaves it as it is), and thereby gives the library its time. Never of one that a call of the
// application's may just be completing.
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
#include "engine/progress.h"
#include "interpose/epoch.h"

namespace weft::interpose {

// What all calls ask first.
inline std::atomic<std::int64_t> least_transfer_bytes{kNoTransfers};
inline std::atomic<int> known_transfers{0};   // requests among Transfers
inline std::atomic<int> active_transfers{0};  // of these, started and not known to have ended

// What is known of types, by this thread; it holds for an epoch. In one array, which costs a
// message the least.
struct KnownTypes {
  struct Known {
    MPI_Datatype type;
    int least_count;  // so many are large; the most that an int holds: perhaps more are
  };
  // Handles of predefined types are numbers that count, but for Open MPI, where they are addresses
  // of objects of 512 bytes.
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

// Before the call, whose type only the library can judge. False: it is not worth the thread's time.
inline bool may_be_large(std::int64_t count, MPI_Datatype type) {
  const KnownTypes::Known& known = known_types.at(type);
  return known.type != type || count >= known.least_count || known_types.epoch != epoch();
}
// After a successful call.
bool is_large(std::int64_t count, MPI_Datatype type);

struct TransferCounts {
  std::int64_t started = 0;  // left to the thread
  std::int64_t ended = 0;    // of these, found to have ended by the thread
};

class Transfers {
 public:
  explicit Transfers(Progress& progress) : progress_(progress) {}

  bool knows(MPI_Request request);
  void started(MPI_Request request);
  // A persistent one, which MPI_Start starts.
  void initialised(MPI_Request request);
  void started_again(int count, const MPI_Request* requests);
  // The application is about to cancel it, and completes it later; or to free it.
  void cancelled(MPI_Request request);
  void freed(MPI_Request request);

  // A caller may complete it: nobody else looks at it until give_back(). False: it is none, or has
  // ended.
  bool take(MPI_Request request);
  void give_back(MPI_Request request, bool completed);

  // By the thread: one look at those left to it. True if one has ended.
  bool look();

  TransferCounts counts() const { return {started_.load(), ended_.load()}; }

 private:
  enum class State : std::uint8_t { idle, left, in_hand };
  struct Transfer {
    bool persistent = false;
    State state = State::idle;
    std::size_t place = 0;  // in left_
  };
  using Lock = std::unique_lock<std::mutex>;

  void leave(MPI_Request request, Transfer& transfer);
  void take_back(Transfer& transfer);
  void turn_idle(MPI_Request request, Transfer& transfer);
  Transfer* find(MPI_Request request);
  Transfer* find_unlooked_at(Lock& lock, MPI_Request request);

  Progress& progress_;
  std::mutex mutex_;  // guards the rest
  std::unordered_map<MPI_Request, Transfer> transfers_;
  std::vector<MPI_Request> left_;  // to the thread
  std::size_t next_ = 0;           // of them, the next to be looked at
  bool looks_ = false;             // the thread does, at looked_at_
  MPI_Request looked_at_{};
  std::atomic<std::int64_t> started_{0};
  std::atomic<std::int64_t> ended_{0};
};

// A large one has been started, or made by MPI_Send_init and the like.
void transfer_started(MPI_Request request);
void transfer_initialised(MPI_Request request);

// Lives while a completion call of the application's has requests in hand.
class TransfersInHand {
 public:
  TransfersInHand(int count, const MPI_Request* requests) {
    if (active_transfers.load(std::memory_order_relaxed) > 0) [[unlikely]]
      take(count, requests);
  }
  // After the call, which returned `code`: all have been completed, or none; or those at so many
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
  void take(int count, const MPI_Request* requests);
  void give_back(bool all, int count, const int* indices);

  std::unique_ptr<std::vector<Taken>> taken_;
};

}  // namespace weft::interpose
