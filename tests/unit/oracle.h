// What a collective must leave in the receive buffers, computed the plain way from packed
// payloads; and the datatypes and operators that the tests use.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "transport/sim/simulation.h"

namespace weft::test {

enum class Scalar { i32, f64 };
// affine: composition of x -> a x + b, does not commute; difference: not even associative, so that
// it tells in which order the ranks were combined.
enum class Op { sum, max, affine, difference };

struct TestType {
  std::string name;
  SimType type;
  std::vector<Scalar> scalars;  // of one element, as packed
  bool plain = false;
};

const std::vector<TestType>& test_types();  // int, double, struct with holes, vector

using Payload = std::vector<std::byte>;

SimOperator make_operator(Op op, std::vector<Scalar> scalars);
// Small numbers, different for each seed, so that floating-point sums are exact.
Payload make_payload(const TestType& type, std::int64_t count, unsigned seed);

using Inputs = std::vector<std::vector<Payload>>;  // of each rank, each block that it gives
using Output = std::optional<Payload>;             // of a block; none: it is left alone

// Of each rank, the blocks that it gets: none where it gets nothing.
std::vector<std::vector<Output>> expected(const std::vector<Shape>& shapes, const Inputs& inputs,
                                          const SimOperator& op);

}  // namespace weft::test
