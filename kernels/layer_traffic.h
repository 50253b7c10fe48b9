// layer_traffic.h: which rows of a factor the ranks of a layer exchange, and what is known of this
// pattern: how the entries are spread over the tensor, and how many rows travel between whom.
// Why apart: this is SPLATT's pattern, which MPI has no collective for. A rank finds out by its own
// entries which rows of others it needs, and tells their owners; nobody else knows these numbers.
#pragma once
#include <mpi.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <vector>

#include "fibres.h"
#include "row_exchange.h"
#include "tensor.h"
#include "trials.h"

namespace traffic {

using tensor::at;

// Between the ranks of a mode's layer. Partial rows travel to their owner, where they wait in `in`
// by rank; the finished rows travel from the owner to the same ranks.
struct Traffic {
  MPI_Comm layer = MPI_COMM_NULL;
  rows::Lists to_owners, to_users;
  int waiting = 0;  // rows of `in`
};

inline Traffic of(const tensor::Mode& mode) {
  Traffic made;
  MPI_Comm_split(MPI_COMM_WORLD, mode.layer, mode.place, &made.layer);
  const auto members = at(trials::size_of(made.layer));
  for (rows::Lists* lists : {&made.to_owners, &made.to_users}) {
    lists->sent.resize(members), lists->received.resize(members);
  }
  std::vector<int> asked(members), wanted(members), from(members), places(members);
  std::size_t owner = 0;
  for (std::size_t i = 0; i < mode.foreign.size(); ++i) {
    while (mode.foreign[i] >= mode.starts[owner + 1]) ++owner;
    const int row = mode.owned + static_cast<int>(i);
    made.to_owners.sent[owner].push_back(row), made.to_users.received[owner].push_back(row);
    ++asked[owner];
  }
  MPI_Alltoall(asked.data(), 1, MPI_INT, wanted.data(), 1, MPI_INT, made.layer);
  std::exclusive_scan(asked.begin(), asked.end(), places.begin(), 0);
  std::exclusive_scan(wanted.begin(), wanted.end(), from.begin(), 0);
  made.waiting = std::accumulate(wanted.begin(), wanted.end(), 0);
  std::vector<int> numbers(at(made.waiting));
  MPI_Alltoallv(mode.foreign.data(), asked.data(), places.data(), MPI_INT, numbers.data(),
                wanted.data(), from.data(), MPI_INT, made.layer);
  for (std::size_t user = 0; user < members; ++user) {
    for (int i = from[user]; i < from[user] + wanted[user]; ++i) {
      made.to_users.sent[user].push_back(numbers[at(i)] - mode.first);
      made.to_owners.received[user].push_back(i);
    }
  }
  return made;
}

// ---- What is known of the pattern ---------------------------------------------------------------

// Standard deviation divided by mean.
inline double variation(const std::vector<int>& counts) {
  double sum = 0, squares = 0;
  for (const double count : counts) sum += count, squares += count * count;
  return std::sqrt(std::max(0.0, squares * static_cast<double>(counts.size()) / (sum * sum) - 1));
}

// How unevenly the entries are spread; on one rank, which has all. A fibre is a line along the last
// mode.
inline void show_entries(const tensor::Part& part) {
  const int last = part.tensor.order() - 1;
  const fibres::Tree tree = fibres::tree_of(part, last - 1);
  const int above = last - 1;  // the level of the fibres
  std::vector<int> lengths, in_slice(at(part.modes[0].owned), 0);
  for (std::size_t fibre = 0; fibre < at(tree.nodes(above)); ++fibre) {
    lengths.push_back(tree.start[at(above)][fibre + 1] - tree.start[at(above)][fibre]);
    ++in_slice[at(tree.row[at(above)][fibre])];
  }
  std::printf(
      "%lld entries in %zu fibres; variation of fibres in a slice of mode 1: %.2f, of "
      "entries in a fibre: %.2f\n",
      static_cast<long long>(part.tensor.entries()), lengths.size(), variation(in_slice),
      variation(lengths));
}

// How many rows each rank needs of others, and of how many.
inline int show(const tensor::Part& part) {
  const int ranks = trials::size_of(MPI_COMM_WORLD);
  const bool speaks = trials::rank_in(MPI_COMM_WORLD) == 0;
  if (ranks == 1) show_entries(part);
  for (std::size_t mode = 0; mode < part.modes.size(); ++mode) {
    Traffic one = of(part.modes[mode]);
    int mine[3] = {static_cast<int>(part.tensor.entries()),
                   static_cast<int>(part.modes[mode].foreign.size()), 0};
    for (const std::vector<int>& list : one.to_owners.sent) mine[2] += !list.empty();
    std::vector<int> all(at(3 * ranks));
    MPI_Gather(mine, 3, MPI_INT, all.data(), 3, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Comm_free(&one.layer);
    for (int rank = 0; speaks && rank < ranks; ++rank) {
      const int* told = &all[at(3 * rank)];
      std::printf("mode %zu, rank %d: %d entries; %d rows of %d other ranks\n", mode + 1, rank,
                  told[0], told[1], told[2]);
    }
  }
  return 0;
}

}  // namespace traffic
