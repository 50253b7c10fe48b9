// Collective: one collective operation on this process: its blocks, buffers and arguments, and what
// it must leave behind, computed here from what each process holds.
// Why: a result that depends on no MPI library judges all of them.
#pragma once

#include <mpi.h>

#include <string>
#include <vector>

#include "calls.h"
#include "place.h"
#include "typecase.h"

namespace conformance {

// The same on all ranks. `layout` chooses what may differ from block to block: counts, gaps and
// types.
struct Spec {
  Kind kind = Kind::barrier;
  int count = 0;  // elements of a block; v kinds: the mean
  int type = 0;
  bool mixed = false;  // pairs of ints sent as vectors, received as ints, and so on
  int op = 0;          // of the type's operators
  int root = 0;
  bool in_place = false;
  unsigned layout = 0;
  std::vector<int> types = {};  // what the w kinds choose from; empty: `type`
};

// A number in [0, 2³²) that depends on all arguments.
unsigned mixed_number(unsigned a, unsigned b = 0, unsigned c = 0, unsigned d = 0);

class Collective {
 public:
  Collective(const Spec& spec, const Place& place, const TypeCases& types);
  // The arguments point into the buffers.
  Collective(const Collective&) = delete;
  Collective& operator=(const Collective&) = delete;

  // Gives the buffers what they hold before the call; other salts, other numbers.
  void fill(unsigned salt);
  int call(Form form, bool large, MPI_Request* request) {
    return conformance::call(spec_.kind, form, large, arguments_, request);
  }
  // Empty: what the call left behind is right.
  std::string mistake();
  // The same bytes in the receive buffers, but for what the standard leaves open.
  bool same_result(Collective& other);

  Arguments& arguments() { return arguments_; }
  const Operator& operation() const;

 private:
  struct Block {
    int type = 0, count = 0;
    std::ptrdiff_t at = 0;
    std::vector<int> from;  // whose numbers, combined in this order; empty: nothing arrives
    int tag_range = 0;      // which of the sender's rows of numbers
    long first = 0;         // where in the row
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
      inputs_;  // what stands in the receive buffer before the call: in place, or at a bcast root
  std::vector<int> counts_;                     // of reduce_scatter
  int root_ = 0;                                // world rank
  bool in_place_ = false;                       // this process says MPI_IN_PLACE
  std::ptrdiff_t open_from_ = 0, open_to_ = 0;  // what the standard leaves undefined afterwards
  Buffer sent_, received_, kept_, wanted_;
  Arguments arguments_;
};

}  // namespace conformance
