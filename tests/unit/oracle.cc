// Plain definitions of the collectives, as in the MPI standard.
#include "oracle.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace weft::test {
namespace {

template <class Half, class Whole>
Whole compose(Whole in, Whole inout, Whole modulus) {
  constexpr int bits = sizeof(Half) * 8;
  const auto high = [](Whole w) { return static_cast<std::uint64_t>(w >> bits); };
  const auto low = [](Whole w) { return static_cast<std::uint64_t>(static_cast<Half>(w)); };
  const std::uint64_t a = high(in) * high(inout) % modulus;
  const std::uint64_t b = (high(in) * low(inout) + low(in)) % modulus;
  return static_cast<Whole>((a << bits) | b);
}

template <class Number, class Half, class Whole>
void combine(Op op, const std::byte* in, std::byte* inout) {
  Whole modulus = sizeof(Half) == 2 ? 65521u : 4294967291u;
  Number a, b;
  std::memcpy(&a, in, sizeof a);
  std::memcpy(&b, inout, sizeof b);
  if (op == Op::sum) b = a + b;
  if (op == Op::max) b = std::max(a, b);
  if (op == Op::affine) {
    Whole x, y;
    std::memcpy(&x, in, sizeof x);
    std::memcpy(&y, inout, sizeof y);
    y = compose<Half, Whole>(x, y, modulus);
    std::memcpy(&b, &y, sizeof b);
  }
  std::memcpy(inout, &b, sizeof b);
}

std::vector<Payload> scanned(const std::vector<Payload>& inputs, const SimOperator& op) {
  std::vector<Payload> prefixes{inputs[0]};
  for (std::size_t rank = 1; rank < inputs.size(); ++rank) {
    Payload next = inputs[rank];
    op(prefixes.back().data(), next.data(), static_cast<std::int64_t>(next.size()));
    prefixes.push_back(std::move(next));
  }
  return prefixes;
}

Payload concatenated(const std::vector<Payload>& inputs) {
  Payload all;
  for (const Payload& input : inputs) all.insert(all.end(), input.begin(), input.end());
  return all;
}

Payload exchanged(const std::vector<Payload>& inputs, std::size_t rank) {
  Payload out;
  for (const Payload& input : inputs) {
    const auto block = static_cast<std::ptrdiff_t>(input.size() / inputs.size());
    const auto begin = input.begin() + block * static_cast<std::ptrdiff_t>(rank);
    out.insert(out.end(), begin, begin + block);
  }
  return out;
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
  return [op, scalars](const std::byte* in, std::byte* inout, std::int64_t bytes) {
    for (std::int64_t at = 0; at < bytes;) {
      for (Scalar scalar : scalars) {
        if (scalar == Scalar::i32)
          combine<std::uint32_t, std::uint16_t, std::uint32_t>(op, in + at, inout + at);
        else
          combine<double, std::uint32_t, std::uint64_t>(op, in + at, inout + at);
        at += scalar == Scalar::i32 ? 4 : 8;
      }
    }
  };
}

Payload make_payload(const TestType& type, std::int64_t count, unsigned seed) {
  Payload payload;
  std::uint32_t state = seed * 2654435761u + 1;
  const auto append = [&](auto number) {
    const auto* bytes = reinterpret_cast<const std::byte*>(&number);
    payload.insert(payload.end(), bytes, bytes + sizeof number);
  };
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

std::vector<Payload> expected(const Shape& shape, const std::vector<Payload>& inputs,
                              const SimOperator& op) {
  const auto size = inputs.size();
  const auto root = static_cast<std::size_t>(shape.root);
  std::vector<Payload> result(size);
  switch (shape.kind) {
    case Kind::barrier:
      break;
    case Kind::bcast:
      result.assign(size, inputs[root]);
      break;
    case Kind::reduce:
      result[root] = scanned(inputs, op).back();
      break;
    case Kind::allreduce:
      result.assign(size, scanned(inputs, op).back());
      break;
    case Kind::allgather:
      result.assign(size, concatenated(inputs));
      break;
    case Kind::alltoall:
      for (std::size_t rank = 0; rank < size; ++rank) result[rank] = exchanged(inputs, rank);
      break;
    case Kind::scan:
      result = scanned(inputs, op);
      break;
  }
  return result;
}

}  // namespace weft::test
