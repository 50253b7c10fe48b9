// Computes the Shape of a collective call from its arguments.
#pragma once

#include <optional>

#include "runtime/comm/communicators.h"
#include "schedule/schedule.h"
#include "transport/mpi/call.h"

namespace weft {

// Returns whether the arguments are valid as far as Weft can tell. If they are not, the call is
// passed to the library, which reports the error.
bool arguments_look_right(const Call& call, const Communicator& communicator);

// Returns a call for library_accepts() if buffers overlap in a way that MPI forbids but libraries
// may accept; otherwise nullopt. The returned call has only this rank's part. Requires
// arguments_look_right().
std::optional<Call> doubtful_alone(const Call& call, const Communicator& communicator);

// The side of a call: the data that a rank sends, or those that it receives.
enum class Direction : std::uint8_t { send, recv };
// Returns the number of counts in the call's array for this direction on this rank; 0 if it has no
// array.
std::size_t array_length(const Call& call, const Communicator& communicator, Direction direction);

// Return whether the collective reads, or writes, this buffer on this rank.
bool is_input(const Shape& shape, Buffer buffer);
bool is_output(const Shape& shape, Buffer buffer);

// Returns the shape of the call. Requires arguments_look_right().
Shape shape_of(const Call& call, const Communicator& communicator);

}  // namespace weft
