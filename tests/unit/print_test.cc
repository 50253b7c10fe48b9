// Compares printed schedules with files in tests/data, each of which is the output of weft-schedule
// with the arguments that the test names. After a change, print them again and review.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "coll/algorithm.h"

namespace weft {
namespace {

std::string golden(const std::string& name) {
  std::string path = WEFT_TEST_DATA "/";
  path += name;
  std::ifstream file(path);
  EXPECT_TRUE(file.good()) << name;
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string print_all(Kind kind, const char* name, int size, std::int64_t bytes, int root = 0) {
  std::string text;
  for (int rank = 0; rank < size; ++rank) {
    Shape shape;
    shape.kind = kind;
    shape.rank = rank;
    shape.size = size;
    shape.root = root;
    shape.send.count = shape.recv.count = bytes;
    text += (rank > 0 ? "\n" : "") + print(build(*find_algorithm(kind, name), shape));
  }
  return text;
}

TEST(Print, EqualsTheGoldenFiles) {
  EXPECT_EQ(print_all(Kind::allreduce, "ring", 5, 1 << 20), golden("allreduce-ring-5.txt"));
  EXPECT_EQ(print_all(Kind::allreduce, "recursive-doubling", 3, 4096),
            golden("allreduce-recursive-doubling-3.txt"));
  EXPECT_EQ(print_all(Kind::bcast, "scatter-allgather", 4, 1 << 20, 1),
            golden("bcast-scatter-allgather-4-root-1.txt"));
  EXPECT_EQ(print_all(Kind::alltoall, "bruck", 3, 100), golden("alltoall-bruck-3.txt"));
  EXPECT_EQ(print_all(Kind::gather, "binomial", 5, 1024, 2),
            golden("gather-binomial-5-root-2.txt"));
  EXPECT_EQ(print_all(Kind::barrier, "dissemination", 3, 0), golden("barrier-dissemination-3.txt"));
}

TEST(Print, NamesWhatIsDoneByTheLibraryAndWhatIsNot) {
  Shape shape;
  shape.kind = Kind::bcast;
  EXPECT_NE(print(build_library(shape, StepKind::library_blocking)).find("blocking"),
            std::string::npos);
  EXPECT_NE(print(build(*find_algorithm(Kind::bcast, "binomial"), shape)).find("nothing to do"),
            std::string::npos);
}

}  // namespace
}  // namespace weft
