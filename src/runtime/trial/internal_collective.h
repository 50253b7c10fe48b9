// InternalCollective lets the ranks of a communicator exchange data, and try out schedules, while a
// persistent collective is initialised. It uses Weft's own collectives. In the MPI library, the
// first collective of each kind takes tens of microseconds on a single node, and milliseconds if
// ranks share a core.
#pragma once

#include <array>
#include <optional>
#include <type_traits>
#include <vector>

#include "runtime/comm/communicators.h"
#include "transport/mpi/call.h"

namespace weft {

class Runtime;

// All functions of this class are collective over the communicator, and wait for its ranks.
class InternalCollective {
 public:
  // id: the MPI function that initialises the persistent collective.
  InternalCollective(Runtime& runtime, CallId id, Communicator& communicator)
      : runtime_(runtime), id_(id), communicator_(communicator) {}

  CallId id() const { return id_; }
  Communicator& communicator() { return communicator_; }

  // Carries out the schedule with the buffers, datatypes, operator and root of the call. kernel:
  // the reduction function. Returns false if ranks have called different functions. Also returns
  // false if the schedule uses other ranks' buffers in place, and one of them is not accessible.
  bool carry_out(const Schedule& schedule, const Call& call, Kernel kernel);

  // The numbers that a rank passes to greatest() or sum(); unused ones are 0.
  using Words = std::array<std::int64_t, 7>;
  // Returns the maximum of each word over all ranks; nullopt if ranks have called different
  // functions. With many ranks it takes less time than exchange().
  std::optional<Words> greatest(const Words& own) { return reduced(own, Operator::max); }
  // Returns the sum of each word over all ranks, even if ranks have called different functions.
  std::optional<Words> sum(const Words& own) { return reduced(own, Operator::sum); }

  // Returns the values of all ranks, by rank; nullopt if ranks have called different functions.
  template <class Said>
  std::optional<std::vector<Said>> exchange(const Said& own) {
    static_assert(std::is_trivially_copyable_v<Said> && sizeof own <= kSlotPayloadBytes);
    std::vector<Said> all(static_cast<std::size_t>(communicator_.size));
    if (!exchange(&own, all.data(), sizeof own)) return std::nullopt;
    return all;
  }

 private:
  bool try_to_carry_out(const Schedule& schedule, const Call& call, Kernel kernel);
  bool carry_out_in_shared_memory(const Schedule& schedule, const Call& call, Kernel kernel);
  bool carry_out_directly(const Schedule& schedule, const Call& call, Kernel kernel);
  bool carry_out_by_messages(const Schedule& schedule, const Call& call, Kernel kernel);
  bool exchange(const void* own, void* all, std::int64_t bytes);
  std::optional<Words> reduced(const Words& own, Operator by);
  // Carries out a collective of this kind between all ranks. data: count and layout of its
  // elements. kernel: the reduction function. Returns false if it fails.
  bool carry_out(Kind kind, const Layout& data, Call call, Kernel kernel);

  Runtime& runtime_;
  const CallId id_;
  Communicator& communicator_;
};

}  // namespace weft
