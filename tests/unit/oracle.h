// Computes what a collective must leave in the receive buffers, by plain loops over packed
// payloads; and defines the datatypes and operators of the tests.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "transport/sim/simulation.h"

namespace weft::test {

enum class Scalar { i32, f64 };
// affine: composes x -> a x + b, which does not commute. difference: is not even associative, so
// that the result shows in which order the ranks were combined.
enum class Op { sum, max, affine, difference };

struct TestType {
  std::string name;
  SimType type;
  std::vector<Scalar> scalars;  // the scalars of one element, as packed
  bool plain = false;
};

const std::vector<TestType>& test_types();  // int, double, struct with holes, vector

using Payload = std::vector<std::byte>;

SimOperator make_operator(Op op, std::vector<Scalar> scalars);
// Returns small numbers that differ with the seed. Floating-point sums of them are exact.
Payload make_payload(const TestType& type, std::int64_t count, unsigned seed);

using Inputs = std::vector<std::vector<Payload>>;  // the blocks that each rank gives: [rank][block]
using Output = std::optional<Payload>;

// Returns the blocks that each rank gets: [rank][block]; none where it gets nothing.
std::vector<std::vector<Output>> expected(const std::vector<Shape>& shapes, const Inputs& inputs,
                                          const SimOperator& op);

}  // namespace weft::test
