// From the arguments of a collective call to its Shape.
#pragma once

#include <optional>

#include "runtime/comm/communicators.h"
#include "schedule/schedule.h"
#include "transport/mpi/call.h"

namespace weft {

// False: something that the library would refuse; it is left to say so in its own way.
bool arguments_look_right(const Call& call, const Communicator& communicator);

// Where the buffers overlap in a way that no collective allows, but that libraries may take: the
// call as this rank alone would make it, for them to judge. Of arguments that look right.
std::optional<Call> doubtful_alone(const Call& call, const Communicator& communicator);

// How many counts the call has for one direction on this rank; 0 where it has no array.
enum class Direction : std::uint8_t { send, recv };
std::size_t array_length(const Call& call, const Communicator& communicator, Direction direction);

// Whether the collective reads what lies in a buffer of this rank's, and whether it writes there.
bool is_input(const Shape& shape, Buffer buffer);
bool is_output(const Shape& shape, Buffer buffer);

// Of arguments that look right.
Shape shape_of(const Call& call, const Communicator& communicator);

}  // namespace weft
