// Collective: one collective operation on this process: its blocks, buffers and arguments, and the
// expected contents of its buffers afterwards. They are computed here from the data of each
// process, so that they do not depend on any MPI library.
#pragma once

#include <mpi.h>

#include <string>
#include <vector>

#include "calls.h"
#include "place.h"
#include "typecase.h"

namespace conformance {

// Describes a collective, in the same way on all ranks. `layout` selects what may differ between
// blocks: counts, gaps and types.
struct Spec {
  Kind kind = Kind::barrier;
  int count = 0;  // elements in a block; for kinds with counts for each block, their mean
  int type = 0;
  // Whether types differ between sender and receiver, such as a vector and ints.
  bool mixed = false;
  int op = 0;  // index into the type's operators
  int root = 0;
  bool in_place = false;
  unsigned layout = 0;
  std::vector<int> types = {};  // indices of types from which alltoallw chooses; empty: `type`
};

// Returns a pseudo-random number in [0, 2³²) that depends on all arguments.
unsigned mixed_number(unsigned a, unsigned b = 0, unsigned c = 0, unsigned d = 0);

class Collective {
 public:
  Collective(const Spec& spec, const Place& place, const TypeCases& types);
  // Cannot be copied, since the arguments point into the buffers.
  Collective(const Collective&) = delete;
  Collective& operator=(const Collective&) = delete;

  // Fills the buffers with what they hold before the call. Each salt gives other numbers.
  void fill(unsigned salt);
  int call(Form form, bool large, MPI_Request* request) {
    return conformance::call(spec_.kind, form, large, arguments_, request);
  }
  // Returns what is wrong with the buffers after the call; "" if they are right.
  std::string mistake();
  // Returns whether both have the same bytes in their receive buffers, except where the standard
  // leaves the contents undefined.
  bool same_result(Collective& other);

  Arguments& arguments() { return arguments_; }
  const Operator& operation() const;

 private:
  struct Block {
    int type = 0, count = 0;
    std::ptrdiff_t at = 0;
    // Processes whose numbers are combined in this order; empty: nothing arrives.
    std::vector<int> from;
    int tag_range = 0;  // which of the sender's rows of numbers is used
    long first = 0;     // index of the first number in the row
  };
  using Blocks = std::vector<Block>;

  const TypeCase& type(const Block& block) const { return types_[block.type]; }
  unsigned choice(int what, int a = 0, int b = 0, int c = 0) const;
  int units(int from, int to = 0, int tag_range = 0) const;
  Block block(int units, int type, std::vector<int> from, int tag_range = 0) const;
  int side_type(int side, int process) const;
  int pair_type(int from, int to, int tag_range, int side) const;

  bool in_group_of_root() const;
  void lay_out();
  void lay_out_rooted();
  void lay_out_all();
  void lay_out_neighbors();
  void lay_out_reduction();
  void put_in_place();
  std::ptrdiff_t arrange(Blocks* blocks) const;
  std::ptrdiff_t end_of(const Block& block) const;
  void set_arguments();
  template <class Count, class Displacement>
  void set_arrays(Arrays<Count, Displacement>* arrays) const;
  int root_argument() const;

  void write(Buffer* buffer, const Block& block, unsigned salt) const;
  void forgive();

  Spec spec_;
  const Place& place_;
  const std::vector<TypeCase>& types_;
  Blocks send_, receive_;
  Blocks
      // Contents of the receive buffer before the call, with MPI_IN_PLACE or at a bcast's root.
      inputs_;
  std::vector<int> counts_;                     // counts of a reduce_scatter
  int root_ = 0;                                // rank in MPI_COMM_WORLD
  bool in_place_ = false;                       // whether this process passes MPI_IN_PLACE
  std::ptrdiff_t open_from_ = 0, open_to_ = 0;  // range whose contents are undefined after the call
  Buffer sent_, received_, kept_, wanted_;
  Arguments arguments_;
};

}  // namespace conformance
