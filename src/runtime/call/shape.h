// Computes the Shape of a collective call from its arguments.
#pragma once

#include <optional>

#include "runtime/comm/communicators.h"
#include "schedule/schedule.h"
#include "transport/mpi/call.h"

namespace weft {

// Returns false for arguments that the library would refuse, which then reports them itself.
bool arguments_look_right(const Call& call, const Communicator& communicator);

// Returns, for buffers that overlap in a way that no collective allows but libraries may accept,
// the call as this rank alone would make it, for the library to judge. The arguments must look
// right.
std::optional<Call> doubtful_alone(const Call& call, const Communicator& communicator);

// Returns the number of counts that the call has for one direction on this rank; 0 if it has no
// array.
enum class Direction : std::uint8_t { send, recv };
std::size_t array_length(const Call& call, const Communicator& communicator, Direction direction);

// Return whether the collective reads, or writes, a buffer of this rank.
bool is_input(const Shape& shape, Buffer buffer);
bool is_output(const Shape& shape, Buffer buffer);

// Requires arguments that look right.
Shape shape_of(const Call& call, const Communicator& communicator);

}  // namespace weft
