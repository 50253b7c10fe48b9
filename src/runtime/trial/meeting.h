// Meeting: what the ranks of a communicator do together while a persistent collective is
// initialised: they tell each other things, and try out schedules, by Weft's own collectives. Why
// not by the library's: on one node the first of each kind costs tens of microseconds, and where
// ranks share a core each may cost milliseconds.
#pragma once

#include <array>
#include <optional>
#include <type_traits>
#include <vector>

#include "runtime/comm/communicators.h"
#include "transport/mpi/call.h"

namespace weft {

class Runtime;

// Collective over the communicator, for whose ranks each call waits.
class Meeting {
 public:
  // id: of the initialisation.
  Meeting(Runtime& runtime, CallId id, Communicator& communicator)
      : runtime_(runtime), id_(id), communicator_(communicator) {}

  CallId id() const { return id_; }
  Communicator& communicator() { return communicator_; }

  // The call's buffers, datatypes, operator and root. kernel: of reductions. False: ranks take part
  // in different calls, or a direct schedule finds a buffer that the kernel cannot copy either.
  bool carry_out(const Schedule& schedule, const Call& call, Kernel kernel);

  // Of each word the greatest that a rank says; none: ranks take part in different calls. Cheaper
  // than exchange() where there are many ranks.
  using Words = std::array<std::int64_t, 7>;
  std::optional<Words> greatest(const Words& own);

  // What each rank says, by rank; none: ranks take part in different calls.
  template <class Said>
  std::optional<std::vector<Said>> exchange(const Said& own) {
    static_assert(std::is_trivially_copyable_v<Said> && sizeof own <= kLinePayloadBytes);
    std::vector<Said> all(static_cast<std::size_t>(communicator_.size));
    if (!exchange(&own, all.data(), sizeof own)) return std::nullopt;
    return all;
  }

 private:
  bool try_to_carry_out(const Schedule& schedule, const Call& call, Kernel kernel);
  bool carry_out_alone(const Schedule& schedule, const Call& call, Kernel kernel);
  bool carry_out_directly(const Schedule& schedule, const Call& call, Kernel kernel);
  bool carry_out_by_messages(const Schedule& schedule, const Call& call, Kernel kernel);
  bool exchange(const void* own, void* all, std::int64_t bytes);
  // Between all ranks, of `count` elements or bytes. kernel: of a reduction.
  bool carry_out(Kind kind, const Layout& data, Call call, Kernel kernel);

  Runtime& runtime_;
  const CallId id_;
  Communicator& communicator_;
};

}  // namespace weft
