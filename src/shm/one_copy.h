// OneCopy: lets the kernel copy from other processes' memory on the node (process_vm_readv): one
// copy instead of two through shared memory. Nothing is mapped, so any buffer can be used from its
// first call on. No process writes into another one's memory: a program that tracks its pages by
// SIGSEGV would not notice. The kernel permits the access by its rules for debuggers (ptrace(2)):
// the users must be equal, Yama may restrict it further, and containers may forbid it. So each
// process tries it when another first shows it a buffer. Weft does not ask for more permissions.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "schedule/schedule.h"
#include "shm/other_process.h"
#include "shm/process_memory.h"

namespace weft {

class OneCopy {
 public:
  // Name: describes a process to others: its process ID, and the address of a word that others read
  // to find out whether the kernel permits access.
  struct Name {
    std::int64_t process = 0;  // process ID; 0 if the process has not described itself
    std::uint64_t address = 0;
    std::uint64_t token = 0;  // value of the word at `address`
  };

  // Prepares this process, whose rank in MPI_COMM_WORLD is `rank`. Returns nullptr if it does not
  // permit others to read its memory (PR_SET_DUMPABLE).
  static std::unique_ptr<OneCopy> create(int rank);
  OneCopy(const OneCopy&) = delete;
  OneCopy& operator=(const OneCopy&) = delete;

  Name name() const;
  // Registers another process without trying to read its memory. All processes must be registered
  // before the first copy.
  void expect(int rank, const Name& name);
  // Registers another process, and tries at once to read its memory. Returns whether the kernel
  // permits it.
  bool add(int rank, const Name& name) {
    expect(rank, name);
    return reaches(rank);
  }

  // Returns true if the kernel lets this process read the memory of `rank`; false if it does not,
  // or if the process ID belongs to another process here (each container has its own IDs). It tries
  // once and then remembers the answer. This function and all below are thread-safe.
  bool reaches(int rank);
  // Returns a description of a buffer of this process, for other processes. origin: the address
  // from which others count offsets. ranks: the readers, as sorted ranks in MPI_COMM_WORLD. If some
  // of them may not have tried to read this process yet, the description tells them to try.
  // ShownBuffer::memory is below the numbers of memory that is attached.
  ShownBuffer shown(const std::byte* begin, std::int64_t bytes, const std::byte* origin,
                    std::span<const int> ranks = {}) const {
    return shown_by_pages(kOfRank_0 - 2 * rank_ - (all_reach_it(ranks) ? 0 : 1), begin, bytes,
                          origin);
  }
  static bool has_shown(const ShownBuffer& shown) { return shown.memory <= kOfRank_0; }
  static int owner_of(const ShownBuffer& shown) {
    return static_cast<int>((kOfRank_0 - shown.memory) / 2);
  }
  // Returns whether some reader of the buffer may not have tried to read its process yet. All ranks
  // get the same answer.
  static bool is_to_be_asked(const ShownBuffer& shown) {
    return (kOfRank_0 - shown.memory) % 2 != 0;
  }
  // Records that these ranks (sorted) can read this process's memory.
  void all_reach(std::span<const int> ranks);
  bool is_own(const ShownBuffer& shown) const { return owner_of(shown) == rank_; }

  // Copies from the memory of a registered process. If the kernel refuses although it permits
  // access to the process, there is no memory at that address. This process then ends with a
  // message, as it would by a load.
  void read(int rank, const std::byte* there, std::byte* here, std::int64_t bytes);
  // copied_bytes() returns how many bytes were copied since begin_count().
  void begin_count() { copied_bytes_.store(0, std::memory_order_relaxed); }
  std::int64_t copied_bytes() const { return copied_bytes_.load(std::memory_order_relaxed); }

 private:
  static constexpr std::int64_t kOfRank_0 = INT64_MIN / 2;

  enum class Answer : std::uint8_t { none, yes, no };
  struct Peer {
    explicit Peer(const Name& name) : name(name), process(static_cast<pid_t>(name.process)) {}

    const Name name;
    const OtherProcess process;
    std::atomic<Answer> answer{Answer::none};
  };

  explicit OneCopy(int rank);
  bool all_reach_it(std::span<const int> ranks) const;

  const int rank_;
  const std::uint64_t token_;
  // Other processes, by rank in MPI_COMM_WORLD; unchanged once all are registered.
  std::map<int, Peer> peers_;
  mutable std::mutex mutex_;     // guards reached_by_
  std::vector<int> reached_by_;  // ranks in MPI_COMM_WORLD that can read this process, sorted
  std::atomic<std::int64_t> copied_bytes_{0};
};

// Returns whether this process permits other processes of its user to read its memory.
bool may_be_read();

}  // namespace weft
