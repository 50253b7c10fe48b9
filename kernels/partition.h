// Decides which rows of pipecg's matrix each rank gets: contiguous blocks, or parts by METIS, which
// cuts few edges of the matrix's graph. The cost of a partition (its halo) is counted here for
// both. Source: Karypis, Kumar, SIAM J. Sci. Comput. 20 (1998); METIS 5.1's manual.
#pragma once
#include <mpi.h>
#ifdef WITH_METIS
#include <dlfcn.h>
#include <metis.h>
#endif

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "mesh.h"
#include "sparse.h"

namespace sparse {

// METIS, which is loaded at run time, so that the program also starts without it: the library that
// the variable METIS_LIBRARY names, or else the system's. WITH_METIS: defined if METIS's header was
// there when the program was built.
#ifdef WITH_METIS
struct Metis {
  Metis() {
    const char* const named = std::getenv("METIS_LIBRARY");
    void* library = nullptr;
    for (const char* name : {named, "libmetis.so.5", "libmetis.so"}) {
      if (name && !library) library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    }
    if (!library) return;
    find(library, "METIS_SetDefaultOptions", &options);
    find(library, "METIS_PartGraphRecursive", &recursive);
    find(library, "METIS_PartGraphKway", &k_way);
  }
  bool there() const { return options && recursive && k_way; }
  decltype(&METIS_SetDefaultOptions) options = nullptr;
  decltype(&METIS_PartGraphRecursive) recursive = nullptr;
  decltype(&METIS_PartGraphKway) k_way = nullptr;

 private:
  template <class Function>
  static void find(void* library, const char* name, Function* place) {
    *place = reinterpret_cast<Function>(dlsym(library, name));
  }
};
inline const Metis& metis() {
  static const Metis found;
  return found;
}
inline bool has_metis() {
  return metis().there();
}
#else
inline bool has_metis() {
  return false;
}
#endif

// Returns whether all ranks have METIS. All ranks must call it together.
inline bool all_have_metis() {
  int there = has_metis();
  MPI_Allreduce(MPI_IN_PLACE, &there, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  return there != 0;
}

using Parts = std::vector<int>;  // rank of each row

inline Parts in_blocks(int order, int ranks) {
  const Blocks blocks{order, ranks};
  Parts parts(static_cast<std::size_t>(order));
  for (int row = 0; row < order; ++row) parts[static_cast<std::size_t>(row)] = blocks.owner(row);
  return parts;
}

// Divides the rows by METIS. entries: must be sorted. Rank 0 divides, so that all ranks get the
// same parts. Returns an empty list if METIS fails.
inline Parts by_metis([[maybe_unused]] const std::vector<Entry>& entries, int order,
                      [[maybe_unused]] int ranks) {
  Parts parts(static_cast<std::size_t>(order));
  int failed = 0;
#ifdef WITH_METIS
  if (trials::rank_in(MPI_COMM_WORLD) == 0 && ranks > 1) {
    std::vector<idx_t> start(static_cast<std::size_t>(order) + 1), neighbours, found(parts.size());
    for (const Entry& one : entries) {
      if (one.row == one.column) continue;
      ++start[static_cast<std::size_t>(one.row) + 1];
      neighbours.push_back(one.column);
    }
    std::partial_sum(start.begin(), start.end(), start.begin());
    idx_t rows = order, constraints = 1, count = ranks, cut = 0, options[METIS_NOPTIONS];
    metis().options(options);
    options[METIS_OPTION_SEED] = 1;
    const auto divide = ranks <= 8 ? metis().recursive : metis().k_way;
    failed = divide(&rows, &constraints, start.data(), neighbours.data(), nullptr, nullptr, nullptr,
                    &count, nullptr, nullptr, options, &cut, found.data()) != METIS_OK;
    parts.assign(found.begin(), found.end());
  }
#endif
  MPI_Bcast(&failed, 1, MPI_INT, 0, MPI_COMM_WORLD);
  if (failed) return {};
  MPI_Bcast(parts.data(), order, MPI_INT, 0, MPI_COMM_WORLD);
  return parts;
}

// ---- What a partition costs ---------------------------------------------------------------------

struct Cost {
  // Edges: pairs of rows with an entry; cut: those whose rows belong to two ranks.
  long edges = 0, cut = 0;
  // Halo: rows sent in each exchange; most: the most rows that one rank gets.
  long halo = 0, most = 0;
  int fewest_rows = 0, most_rows = 0;
};

inline Cost cost_of(const std::vector<Entry>& entries, const Parts& parts, int ranks) {
  const auto owner = [&](int row) { return parts[static_cast<std::size_t>(row)]; };
  Cost cost;
  std::vector<std::pair<int, int>> wanted;  // pairs of a rank and a row that it needs
  for (const Entry& one : entries) {
    const bool between = owner(one.row) != owner(one.column);
    if (one.row < one.column) ++cost.edges, cost.cut += between;
    if (between) wanted.push_back({owner(one.row), one.column});
  }
  std::sort(wanted.begin(), wanted.end());
  wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
  std::vector<long> halo(static_cast<std::size_t>(ranks));
  std::vector<int> rows(halo.size());
  for (const auto& [rank, row] : wanted) ++halo[static_cast<std::size_t>(rank)];
  for (const int rank : parts) ++rows[static_cast<std::size_t>(rank)];
  cost.halo = static_cast<long>(wanted.size());
  cost.most = *std::max_element(halo.begin(), halo.end());
  const auto [fewest, most] = std::minmax_element(rows.begin(), rows.end());
  cost.fewest_rows = *fewest, cost.most_rows = *most;
  return cost;
}

inline void tell(const char* name, const Cost& cost) {
  if (trials::rank_in(MPI_COMM_WORLD) != 0) return;
  std::printf(
      "partition %s: cut %ld of %ld edges, halo %ld rows (a rank's: %ld at most), %d to %d"
      " rows on a rank\n",
      name, cost.cut, cost.edges, cost.halo, cost.most, cost.fewest_rows, cost.most_rows);
}

// ---- From a problem to this rank's rows ---------------------------------------------------------

inline void sort(std::vector<Entry>* entries) {
  std::sort(entries->begin(), entries->end(), [](const Entry& a, const Entry& b) {
    return std::pair(a.row, a.column) < std::pair(b.row, b.column);
  });
}

inline void renumber(std::vector<Entry>* entries, const std::vector<int>& number) {
  for (Entry& one : *entries) {
    one.row = number[static_cast<std::size_t>(one.row)];
    one.column = number[static_cast<std::size_t>(one.column)];
  }
  sort(entries);
}

// Returns the number of each row if rows are sorted by before(). *sorted gets the rows in that
// order.
template <class Before>
std::vector<int> numbers_by(int order, const Before& before, std::vector<int>* sorted) {
  sorted->resize(static_cast<std::size_t>(order));
  std::iota(sorted->begin(), sorted->end(), 0);
  std::stable_sort(sorted->begin(), sorted->end(), before);
  std::vector<int> number(sorted->size());
  for (std::size_t i = 0; i < number.size(); ++i) {
    number[static_cast<std::size_t>((*sorted)[i])] = static_cast<int>(i);
  }
  return number;
}

// Makes all entries of the matrix on every rank. Returns "" or a sentence that says why that is
// impossible.
inline std::string whole_matrix(const Problem& problem, int* order, std::vector<Entry>* entries) {
  const int* n = problem.grid;
  if (!problem.file.empty()) {
    const std::string sentence = entries_of_file(problem.file, order, entries);
    if (!sentence.empty()) return sentence;
  } else {
    if (1.0 * n[0] * n[1] * n[2] > 1 << 21) {
      return "--grid has more than 2^21 points, which every rank would keep: choose a smaller one";
    }
    *order = n[0] * n[1] * n[2];
    if (problem.mesh == "tetrahedra" && *std::min_element(n, n + 3) < 4) {
      return "--mesh tetrahedra needs a --grid of at least 4 points along each axis";
    }
    *entries = problem.mesh == "tetrahedra" ? Tetrahedra(problem).entries(order)
                                            : seven_point(problem, 0, *order);
  }
  if (problem.numbering == "random") {
    const auto drawn = [](int row) {
      return random_of(static_cast<std::uint64_t>(row) + (1u << 30));
    };
    std::vector<int> sorted;
    renumber(entries, numbers_by(
                          *order, [&](int a, int b) { return drawn(a) < drawn(b); }, &sorted));
  } else {
    sort(entries);
  }
  return "";
}

inline std::string too_few(int order, int ranks) {
  return "a matrix of order " + std::to_string(order) + " does not divide among " +
         std::to_string(ranks) + " ranks: choose fewer ranks";
}

// Makes this rank's part of the matrix in *made. For a mesh, random numbering or METIS, *alone also
// gets the whole matrix, unpartitioned. Returns "" or a sentence that says why there is no such
// matrix.
inline std::string matrix_of(const Problem& problem, Matrix* made, Matrix* alone) {
  const int ranks = trials::size_of(MPI_COMM_WORLD), rank = trials::rank_in(MPI_COMM_WORLD);
  const bool wanted = problem.partition == "metis";
  if (wanted && !all_have_metis()) {
    return "--partition metis needs METIS, which not every rank has: install it (Debian:"
           " libmetis-dev) and build Weft again, or name its library by METIS_LIBRARY, or choose"
           " --partition blocks";
  }
  std::vector<Entry> entries;
  int order = 0;
  if (problem.file.empty() && problem.mesh == "grid" && !wanted && problem.numbering == "natural") {
    const double rows = 1.0 * problem.grid[0] * problem.grid[1] * problem.grid[2];
    if (rows > 1 << 28) return "--grid has more than 2^28 points: choose a smaller one";
    order = static_cast<int>(rows);
    if (order < ranks) return too_few(order, ranks);
    // Bytes per row: seven entries as they are made, and as they are kept, and the vectors.
    const double bytes = 7 * (sizeof(Entry) + 16) + 15 * sizeof(double);
    const std::string lacks =
        trials::more_than_memory(rows / ranks * bytes, "choose a smaller --grid");
    if (!lacks.empty()) return lacks;
    const Blocks blocks{order, ranks};
    entries = seven_point(problem, blocks.first(rank), blocks.first(rank + 1));
    *made = assemble(blocks.starts(), std::move(entries), MPI_COMM_WORLD);
    return "";
  }
  const std::string sentence = whole_matrix(problem, &order, &entries);
  if (!sentence.empty()) return sentence;
  if (order < ranks) return too_few(order, ranks);
  const Parts blocks = in_blocks(order, ranks);
  const Parts chosen = wanted ? by_metis(entries, order, ranks) : blocks;
  if (chosen.empty()) {
    return "METIS cannot divide the matrix among " + std::to_string(ranks) +
           " ranks: choose fewer ranks, or --partition blocks";
  }
  if (ranks > 1) {
    tell("blocks", cost_of(entries, blocks, ranks));
    if (wanted) tell("metis", cost_of(entries, chosen, ranks));
  }
  if (ranks > 1 && (wanted || problem.file.empty())) {
    *alone = assemble({0, order}, entries, MPI_COMM_SELF);
  }
  std::vector<int> starts(static_cast<std::size_t>(ranks) + 1), sorted;
  for (const int owner : chosen) ++starts[static_cast<std::size_t>(owner) + 1];
  if (std::count(starts.begin() + 1, starts.end(), 0) > 0) return too_few(order, ranks);
  std::partial_sum(starts.begin(), starts.end(), starts.begin());
  const auto before = [&](int a, int b) {
    return chosen[static_cast<std::size_t>(a)] < chosen[static_cast<std::size_t>(b)];
  };
  renumber(&entries, numbers_by(order, before, &sorted));
  const int first = starts[static_cast<std::size_t>(rank)];
  const int last = starts[static_cast<std::size_t>(rank) + 1];
  std::erase_if(entries, [&](const Entry& one) { return one.row < first || one.row >= last; });
  *made = assemble(starts, std::move(entries), MPI_COMM_WORLD);
  made->original.assign(sorted.begin() + first, sorted.begin() + last);
  return "";
}

}  // namespace sparse
