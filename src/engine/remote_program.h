// RemoteProgram: carries out the program of another process's schedule. It accesses the node's
// shared memory by this process's own mapping, and the rank's private buffers through the kernel.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "engine/mailbox.h"
#include "shm/other_process.h"
#include "shm/reduction.h"

namespace weft {

class RemoteProgram {
 public:
  // Prepares the program in `work`. process: the process of the rank whose program it is. Returns
  // true on success; false if this process does not map the memory of the node buffers.
  bool begin(const Work& work, pid_t process);

  enum class State : std::uint8_t {
    blocked,  // the program waits for other ranks, or its rank wants it back
    over,
    unable,  // only the program's own rank can carry out the next instruction, of which nothing has
             // been done
    ended,   // the rank's process has ended
  };
  // Progresses as far as possible without blocking, or until `wanted` is nonzero. work: is updated.
  State progress(const std::atomic<std::uint32_t>& wanted, Work* work);
  // Releases the resources of this process that the program used.
  void end();

 private:
  // An address in a buffer: `here` in this process, or `there` in the process of the program's
  // rank.
  struct Place {
    std::byte* here = nullptr;  // nullptr if the address is in the rank's process
    std::uintptr_t there = 0;
  };
  Place place(Buffer buffer, std::int64_t offset) const;
  const Instruction* instruction(std::uint32_t index);
  State carry_out(const Instruction& one);
  State copy(const Place& from, const Place& to, std::int64_t bytes);
  State reduce(const Instruction& one);
  State put(const std::byte* from, const Place& to, std::int64_t bytes) const;
  // Returns the bytes in this process, copied to `room` if necessary; nullptr on failure, whose
  // reason is in `failed_`.
  const std::byte* get(const Place& from, std::vector<std::byte>& room, std::int64_t bytes);

  static constexpr std::uint32_t kFetched = 64;

  std::shared_ptr<Segment> segment_;
  std::optional<NodeBuffers> node_buffers_;
  NodeBufferUse turn_;
  bool is_own_ = false;  // the program's rank belongs to this process
  std::optional<OtherProcess> process_;
  std::array<std::uintptr_t, kBuffers> base_{};
  std::uintptr_t program_ = 0;
  std::uint32_t instructions_ = 0;
  std::uint32_t signals_before_ = 0;
  bool synchronizing_ = false;
  Kernel kernel_ = nullptr;
  std::int64_t element_bytes_ = 0;
  FloatingPoint computes_as_;
  std::array<Instruction, kFetched> fetched_;
  std::uint32_t fetched_from_ = 0, fetched_count_ = 0;
  std::vector<std::byte> first_, second_, result_;
  State failed_ = State::unable;  // reason of the last failure of get()
};

}  // namespace weft
