// The static rules. All sizes are payload bytes of one rank's call.
#include "select/selector.h"

#include <algorithm>

namespace weft {
namespace {

// Total payload of the call as all ranks see it alike.
std::int64_t message_bytes(const Shape& shape) {
  const bool per_block = shape.kind == Kind::allgather || shape.kind == Kind::alltoall;
  return shape.recv.bytes() * (per_block ? shape.size : 1);
}

bool power_of_two(int value) {
  return (value & (value - 1)) == 0;
}

const char* allreduce_name(const Shape& shape) {
  const bool small = message_bytes(shape) <= 64 * 1024;
  if (small || shape.size == 2 || !shape.commutative || shape.recv.count < shape.size)
    return "recursive-doubling";
  return power_of_two(shape.size) ? "rabenseifner" : "ring";
}

const char* bcast_name(const Shape& shape) {
  const bool small = message_bytes(shape) <= 64 * 1024;
  return small || shape.size <= 3 ? "binomial" : "scatter-allgather";
}

const char* allgather_name(const Shape& shape) {
  if (message_bytes(shape) > 64 * 1024) return "ring";
  return power_of_two(shape.size) ? "recursive-doubling" : "bruck";
}

const char* alltoall_name(const Shape& shape) {
  if (shape.size >= 8 && shape.recv.bytes() <= 256) return "bruck";
  return shape.size <= 32 ? "linear" : "pairwise";
}

const char* default_name(const Shape& shape) {
  switch (shape.kind) {
    case Kind::barrier:
      return "dissemination";
    case Kind::bcast:
      return bcast_name(shape);
    case Kind::reduce:
      return "binomial";
    case Kind::allreduce:
      return allreduce_name(shape);
    case Kind::allgather:
      return allgather_name(shape);
    case Kind::alltoall:
      return alltoall_name(shape);
    case Kind::scan:
      return "chain";
    default:
      return "";
  }
}

}  // namespace

Result<bool> check_algorithms(const Config& config) {
  for (int i = 0; i < kKinds; ++i) {
    const auto kind = static_cast<Kind>(i);
    const std::string& asked = config.algorithm[static_cast<std::size_t>(i)];
    if (asked.empty() || find_algorithm(kind, asked)) continue;
    std::string choices;
    for (const Algorithm& algorithm : algorithms())
      if (algorithm.kind == kind)
        choices += (choices.empty() ? "" : ", ") + std::string(algorithm.name);
    return Error{"unknown algorithm '" + asked + "' for " + kind_name(kind) + "; choose one of " +
                 choices};
  }
  return true;
}

Engine static_rule(Library library, const Shape& shape) {
  constexpr std::int64_t kShort = 2 * 1024, kWorthAThread = 128 * 1024;
  const std::int64_t bytes = message_bytes(shape);
  if (bytes <= kShort && library == Library::mpich) return Engine::function;
  if (bytes < kWorthAThread) return Engine::native;
  // A single exchange, which goes on alone once it has been posted, but not in Open MPI.
  const bool one_exchange = shape.kind == Kind::alltoall && shape.size == 2;
  if (library != Library::openmpi && one_exchange) return Engine::native;
  return Engine::thread;
}

const Algorithm& default_algorithm(const Shape& shape) {
  return *find_algorithm(shape.kind, default_name(shape));
}

Choice choose(const Config& config, Library library, Engine asked, const Shape& shape,
              const std::string* hint) {
  const Engine engine = asked == Engine::automatic ? static_rule(library, shape) : asked;
  if (engine != Engine::function && engine != Engine::thread) return {engine, nullptr};
  const std::string& name = hint ? *hint : config.algorithm[static_cast<std::size_t>(shape.kind)];
  const Algorithm* algorithm = name.empty() ? nullptr : find_algorithm(shape.kind, name);
  if (!algorithm || !applies(*algorithm, shape)) algorithm = &default_algorithm(shape);
  return {engine, algorithm};
}

}  // namespace weft
