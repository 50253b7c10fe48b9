// Computes the Shape of a collective call: its arguments in the form that schedules use.
#pragma once

#include <optional>

#include "runtime/comm/communicators.h"
#include "schedule/schedule.h"
#include "transport/mpi/call.h"

namespace weft {

// Returns whether the arguments are valid, as far as Weft can tell. If not, the call must go to the
// MPI library, which reports the error.
bool arguments_look_right(const Call& call, const Communicator& communicator);

// Checks for buffers that overlap in a way that MPI forbids, but that MPI libraries may accept. If
// there are such buffers, returns a call with only this rank's part, for library_accepts();
// otherwise nullopt. arguments_look_right() must have returned true.
std::optional<Call> doubtful_alone(const Call& call, const Communicator& communicator);

// Says which data of a call are meant: those that this rank sends, or those that it receives.
enum class Direction : std::uint8_t { send, recv };
// Returns the length of the call's array of counts for this direction on this rank; 0 if the call
// has no such array.
std::size_t array_length(const Call& call, const Communicator& communicator, Direction direction);

// is_input() returns whether the collective reads this buffer on this rank; is_output() returns
// whether it writes the buffer.
bool is_input(const Shape& shape, Buffer buffer);
bool is_output(const Shape& shape, Buffer buffer);

// Returns the shape of the call. arguments_look_right() must have returned true.
Shape shape_of(const Call& call, const Communicator& communicator);

}  // namespace weft
