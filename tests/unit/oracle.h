// What a collective must leave in the receive buffers, computed the plain way from packed
// payloads; and the datatypes and operators that the tests use.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "transport/sim/simulation.h"

namespace weft::test {

enum class Scalar { i32, f64 };
enum class Op { sum, max, affine };  // affine: composition of x -> a x + b, does not commute

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

// The receive payload of each rank. Where a rank's receive buffer is not significant: empty.
std::vector<Payload> expected(const Shape& shape, const std::vector<Payload>& inputs,
                              const SimOperator& op);

}  // namespace weft::test
