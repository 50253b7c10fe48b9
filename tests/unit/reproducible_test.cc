// Reproducible reductions give the same result to the last bit, by messages and in memory. An
// operator that is not associative shows the order of the ranks.
#include <gtest/gtest.h>

#include "select/selector.h"
#include "simulated_call.h"

namespace weft::test {
namespace {

Config reproducible() {
  Config config;
  config.reproducible = true;
  return config;
}

const Algorithm& chosen(const Call& call, Kind kind, bool on_one_node) {
  Shape shape;
  shape.kind = kind;
  shape.size = call.size;
  shape.on_one_node = on_one_node;
  shape.send = shape.recv = call.type->type.layout(call.count);
  return algorithm_for(reproducible(), shape, false, nullptr);
}

void check_order(Kind kind, int size, std::int64_t count, bool on_one_node) {
  Call call{.size = size,
            .root = size - 1,
            .count = count,
            .op = Op::difference,
            .type = &test_types()[1]};
  call.algorithm = &chosen(call, kind, on_one_node);
  EXPECT_EQ(needs_node(call.algorithm->needs), on_one_node);
  for (const bool in_place : {false, true}) {
    call.in_place = in_place;
    EXPECT_EQ(check(call).failure, "") << call.text();
  }
}

TEST(Reproducible, TheOrderOfRanksWhereverTheyAre) {
  for (const Kind kind : {Kind::reduce, Kind::allreduce, Kind::reduce_scatter,
                          Kind::reduce_scatter_block, Kind::scan, Kind::exscan})
    for (const int size : {2, 3, 4, 5, 8, 9})
      for (const std::int64_t count : {1, 40, 9'001})
        for (const bool on_one_node : {false, true}) check_order(kind, size, count, on_one_node);
}

// Algorithms with another order must fail the check, or the test above would prove nothing.
TEST(Reproducible, OtherOrdersAreTold) {
  for (const char* name : {"recursive-doubling", "node-tree"}) {
    const Call call{.algorithm = find_algorithm(Kind::allreduce, name),
                    .size = 4,
                    .count = 9,
                    .op = Op::difference,
                    .type = &test_types()[1]};
    EXPECT_NE(check(call).failure, "") << name;
  }
}

// One count is long enough for the chain over the nodes, the other is not.
TEST(Reproducible, TheOrderOfRanksHoweverManyAreOnANode) {
  for (const Kind kind : {Kind::reduce, Kind::allreduce})
    for (const Placing placing : {Placing::pairs, Placing::threes, Placing::growing})
      for (const std::int64_t count : {40, 110'001}) {
        Call call{.algorithm = find_algorithm(kind, "hierarchical-in-order"),
                  .size = 7,
                  .count = count,
                  .op = Op::difference,
                  .type = &test_types()[1],
                  .placing = placing};
        Shape shape = shape_of(call, 0);
        shape.commutative = true;  // sums of floating-point numbers are declared commutative, too
        call.algorithm = &algorithm_for(reproducible(), shape, false, nullptr);
        EXPECT_STREQ(call.algorithm->name, count == 40 ? "in-order" : "hierarchical-in-order");
        for (call.root = 0; call.root < (has_root(kind) ? call.size : 1); call.root += 3)
          for (const bool in_place : {false, true}) {
            call.in_place = in_place;
            EXPECT_EQ(check(call).failure, "") << call.text();
          }
      }
}

TEST(Reproducible, FlatWhereANodesRanksAreNotConsecutive) {
  Call call{.algorithm = find_algorithm(Kind::allreduce, "hierarchical"),
            .size = 6,
            .count = 110'001,
            .type = &test_types()[1],
            .placing = Placing::cyclic_2};
  const Shape shape = shape_of(call, 0);
  ASSERT_NE(shape.nodes, nullptr);
  EXPECT_STREQ(algorithm_for(reproducible(), shape, false, nullptr).name, "in-order");
}

TEST(Reproducible, IsNeverLeftToTheLibraryOrToAHint) {
  const std::string hinted = "ring";
  for (const std::int64_t count : {8, 1 << 20}) {
    Shape shape;
    shape.kind = Kind::allreduce;
    shape.size = 4;
    shape.send.count = shape.recv.count = count;
    for (const Engine engine : {Engine::automatic, Engine::function, Engine::thread, Engine::tcc}) {
      const Choice choice = choose(reproducible(), Library::openmpi, engine, shape, false, &hinted);
      ASSERT_NE(choice.algorithm, nullptr) << engine_name(engine);
      EXPECT_STREQ(choice.algorithm->name, "in-order");
    }
    shape.kind = Kind::bcast;
    EXPECT_STRNE(choose(reproducible(), Library::mpich, Engine::function, shape).algorithm->name,
                 "in-order");
  }
}

}  // namespace
}  // namespace weft::test
