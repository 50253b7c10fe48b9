// OneCopy: the memory of the node's processes, from which the kernel copies (process_vm_readv): one
// copy where two go by way of memory that ranks share. Nothing is mapped, so that any buffer will
// do from its first call on. Nobody writes into another's memory: a program that tracks its pages
// by SIGSEGV would not hear of it. Whether the kernel lets a process do that is its rule for
// debuggers (ptrace(2)): users must be the same, Yama may want more, and containers may forbid it.
// So it is tried out, by each process when another first shows it a buffer. Nothing is done to be
// let in.
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
  // For the others: what they read to try it out.
  struct Name {
    std::int64_t process = 0;  // 0: none
    std::uint64_t address = 0;
    std::uint64_t token = 0;  // what is there
  };

  // rank: of this process in MPI_COMM_WORLD. nullptr where its memory is not to be read by others
  // (PR_SET_DUMPABLE).
  static std::unique_ptr<OneCopy> create(int rank);
  OneCopy(const OneCopy&) = delete;
  OneCopy& operator=(const OneCopy&) = delete;

  Name name() const;
  // Another process, which is not asked yet. Before anything is copied.
  void expect(int rank, const Name& name);
  // The same, and asks it at once.
  bool add(int rank, const Name& name) {
    expect(rank, name);
    return reaches(rank);
  }

  // The rest is thread-safe.
  // Another process; false: the kernel does not let this one read its memory, or the number leads
  // to another one (each container counts its own). It is asked once.
  bool reaches(int rank);
  // How a buffer of this process is shown, as others' of theirs: by numbers of their own, below
  // those of processes that are attached. `origin` is what others count from. ranks: to whom, by
  // rank in MPI_COMM_WORLD and in order; those who may not have asked this process yet do so then.
  ShownBuffer shown(const std::byte* begin, std::int64_t bytes, const std::byte* origin,
                    std::span<const int> ranks = {}) const {
    return shown_by_pages(kOfRank_0 - 2 * rank_ - (all_reach_it(ranks) ? 0 : 1), begin, bytes,
                          origin);
  }
  static bool has_shown(const ShownBuffer& shown) { return shown.memory <= kOfRank_0; }
  static int owner_of(const ShownBuffer& shown) {
    return static_cast<int>((kOfRank_0 - shown.memory) / 2);
  }
  // Some rank may not have asked yet: the same for all to whom it is shown.
  static bool is_to_be_asked(const ShownBuffer& shown) {
    return (kOfRank_0 - shown.memory) % 2 != 0;
  }
  // These ranks (in order) have asked, and reach this process.
  void all_reach(std::span<const int> ranks);
  bool is_own(const ShownBuffer& shown) const { return owner_of(shown) == rank_; }

  // From another process that was added. What the kernel refuses there now is memory that is not
  // there: that ends this process, as a load would, with a sentence.
  void read(int rank, const std::byte* there, std::byte* here, std::int64_t bytes);
  // So far, since the last trial.
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
  std::map<int, Peer> peers_;    // by rank in MPI_COMM_WORLD; final once all are expected
  mutable std::mutex mutex_;     // guards reached_by_
  std::vector<int> reached_by_;  // in order
  std::atomic<std::int64_t> copied_bytes_{0};
};

// Whether other processes of this user may read this one's memory, by its own will.
bool may_be_read();

}  // namespace weft
