// Plain definitions of the collectives as in the MPI standard.
#include "oracle.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <utility>

namespace weft::test {
namespace {

std::int64_t scalar_bytes(Scalar scalar) {
  return scalar == Scalar::i32 ? 4 : 8;
}

template <class Half, class Whole>
Whole compose(Whole in, Whole inout, Whole modulus) {
  constexpr int bits = sizeof(Half) * 8;
  const auto high = [](Whole w) { return static_cast<std::uint64_t>(w >> bits); };
  const auto low = [](Whole w) { return static_cast<std::uint64_t>(static_cast<Half>(w)); };
  const std::uint64_t a = high(in) * high(inout) % modulus;
  const std::uint64_t b = (high(in) * low(inout) + low(in)) % modulus;
  return static_cast<Whole>((a << bits) | b);
}

template <Op op, class Number, class Half, class Whole>
void combine(const std::byte* in, std::byte* inout) {
  constexpr Whole modulus = sizeof(Half) == 2 ? 65521u : 4294967291u;
  Number a, b;
  std::memcpy(&a, in, sizeof a);
  std::memcpy(&b, inout, sizeof b);
  if constexpr (op == Op::sum) b = a + b;
  if constexpr (op == Op::max) b = std::max(a, b);
  if constexpr (op == Op::difference) b = a - b;
  if constexpr (op == Op::affine) {
    Whole x, y;
    std::memcpy(&x, in, sizeof x);
    std::memcpy(&y, inout, sizeof y);
    y = compose<Half, Whole>(x, y, modulus);
    std::memcpy(&b, &y, sizeof b);
  }
  std::memcpy(inout, &b, sizeof b);
}

template <Op op>
SimOperator operator_of(std::vector<Scalar> scalars) {
  return [scalars = std::move(scalars)](const std::byte* in, std::byte* inout, std::int64_t bytes) {
    for (std::int64_t at = 0; at < bytes;) {
      for (Scalar scalar : scalars) {
        if (scalar == Scalar::i32)
          combine<op, std::uint32_t, std::uint16_t, std::uint32_t>(in + at, inout + at);
        else
          combine<op, double, std::uint32_t, std::uint64_t>(in + at, inout + at);
        at += scalar_bytes(scalar);
      }
    }
  };
}

// Returns for each rank the inputs of ranks 0 up to this one, combined in this order.
std::vector<Payload> scanned(const Inputs& inputs, const SimOperator& op) {
  std::vector<Payload> prefixes{inputs[0][0]};
  for (std::size_t rank = 1; rank < inputs.size(); ++rank) {
    Payload next = inputs[rank][0];
    op(prefixes.back().data(), next.data(), static_cast<std::int64_t>(next.size()));
    prefixes.push_back(std::move(next));
  }
  return prefixes;
}

// Returns one block of all ranks' inputs, combined as x0 op (x1 op (… op xp-1)).
Payload reduced(const Inputs& inputs, const SimOperator& op, std::size_t block = 0) {
  Payload sum = inputs.back()[block];
  for (std::size_t rank = inputs.size() - 1; rank-- > 0;)
    op(inputs[rank][block].data(), sum.data(), static_cast<std::int64_t>(sum.size()));
  return sum;
}

// Returns each rank's block `index`, or the only block of ranks that give one.
std::vector<Output> column(const Inputs& inputs, std::size_t index) {
  std::vector<Output> result;
  for (const auto& blocks : inputs)
    result.emplace_back(blocks.size() == 1 ? blocks[0] : blocks[index]);
  return result;
}

// Returns the blocks from the rank's neighbours, each neighbour's in the order in which it gives
// them.
std::vector<Output> from_neighbors(const std::vector<Shape>& shapes, const Inputs& inputs,
                                   std::size_t rank) {
  std::vector<Output> result;
  std::map<int, int> seen;
  const bool one_for_all = shapes[rank].kind == Kind::neighbor_allgather ||
                           shapes[rank].kind == Kind::neighbor_allgatherv;
  for (int source : shapes[rank].sources) {
    result.emplace_back();
    if (source < 0) continue;
    int to_skip = seen[source]++;
    const auto& destinations = shapes[static_cast<std::size_t>(source)].destinations;
    for (std::size_t i = 0; i < destinations.size(); ++i)
      if (destinations[i] == static_cast<int>(rank) && to_skip-- == 0)
        result.back() = inputs[static_cast<std::size_t>(source)][one_for_all ? 0 : i];
  }
  return result;
}

}  // namespace

const std::vector<TestType>& test_types() {
  static const std::vector<TestType> types = {
      {"int", {{{0, 4}}, 4}, {Scalar::i32}, true},
      {"double", {{{0, 8}}, 8}, {Scalar::f64}, true},
      {"struct", {{{-4, 4}, {8, 8}}, 24}, {Scalar::i32, Scalar::f64}, false},
      {"vector", {{{0, 4}, {8, 4}}, 12}, {Scalar::i32, Scalar::i32}, false},
  };
  return types;
}

SimOperator make_operator(Op op, std::vector<Scalar> scalars) {
  switch (op) {
    case Op::sum:
      return operator_of<Op::sum>(std::move(scalars));
    case Op::max:
      return operator_of<Op::max>(std::move(scalars));
    case Op::affine:
      return operator_of<Op::affine>(std::move(scalars));
    case Op::difference:
      break;
  }
  return operator_of<Op::difference>(std::move(scalars));
}

Payload make_payload(const TestType& type, std::int64_t count, unsigned seed) {
  std::int64_t bytes = 0;
  for (Scalar scalar : type.scalars) bytes += scalar_bytes(scalar);
  Payload payload(static_cast<std::size_t>(bytes * count));
  std::byte* to = payload.data();
  const auto append = [&to](auto number) {
    std::memcpy(to, &number, sizeof number);
    to += sizeof number;
  };
  std::uint32_t state = seed * 2654435761u + 1;
  for (std::int64_t i = 0; i < count; ++i) {
    for (Scalar scalar : type.scalars) {
      state = state * 1664525u + 1013904223u;
      if (scalar == Scalar::i32)
        append(state >> 4);
      else
        append(static_cast<double>(state >> 12));
    }
  }
  return payload;
}

std::vector<std::vector<Output>> expected(const std::vector<Shape>& shapes, const Inputs& inputs,
                                          const SimOperator& op) {
  const auto size = inputs.size();
  const auto root = static_cast<std::size_t>(shapes[0].root);
  std::vector<std::vector<Output>> result(size);
  for (std::size_t rank = 0; rank < size; ++rank) {
    auto& out = result[rank];
    switch (shapes[rank].kind) {
      case Kind::barrier:
        break;
      case Kind::bcast:
        out = {inputs[root][0]};
        break;
      case Kind::gather:
      case Kind::gatherv:
        if (rank == root) out = column(inputs, 0);
        break;
      case Kind::scatter:
      case Kind::scatterv:
        if (!shapes[rank].in_place) out = {inputs[root][rank]};
        break;
      case Kind::allgather:
      case Kind::allgatherv:
      case Kind::alltoall:
      case Kind::alltoallv:
      case Kind::alltoallw:
        out = column(inputs, rank);
        break;
      case Kind::reduce:
        if (rank == root) out = {reduced(inputs, op)};
        break;
      case Kind::allreduce:
        out = {reduced(inputs, op)};
        break;
      case Kind::reduce_scatter:
      case Kind::reduce_scatter_block:
        out = {reduced(inputs, op, rank)};
        break;
      case Kind::scan:
        out = {scanned(inputs, op)[rank]};
        break;
      case Kind::exscan:
        if (rank > 0) out = {scanned(inputs, op)[rank - 1]};
        break;
      case Kind::neighbor_allgather:
      case Kind::neighbor_allgatherv:
      case Kind::neighbor_alltoall:
      case Kind::neighbor_alltoallv:
      case Kind::neighbor_alltoallw:
        out = from_neighbors(shapes, inputs, rank);
        break;
    }
  }
  return result;
}

}  // namespace weft::test
