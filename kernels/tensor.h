// tensor.h: a sparse tensor, from a file in FROSTT's format (.tns) or generated with a power law,
// and its medium-grained distribution as in SPLATT: the ranks form a grid with an axis for each
// mode, each mode's indices are cut into as many chunks, and a rank gets the entries of one box
// from those that read or drew them. The ranks that share a chunk (a layer) divide its rows.
// Source: Smith, Karypis, "A medium-grained algorithm for distributed sparse tensor factorization",
// IPDPS 2016.
#pragma once
#include <mpi.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <numeric>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "trials.h"

namespace tensor {

inline std::size_t at(std::int64_t place) {
  return static_cast<std::size_t>(place);
}

// Limit of the rows of a mode, since every rank counts the entries of each row.
constexpr int most_rows = 1 << 27;

// The entries of a tensor. Entry e has the index index[e * order + mode] in each mode.
struct Tensor {
  std::vector<int> dimensions;
  std::vector<int> index;
  std::vector<double> value;

  int order() const { return static_cast<int>(dimensions.size()); }
  std::int64_t entries() const { return static_cast<std::int64_t>(value.size()); }
  const int* entry(std::int64_t e) const { return index.data() + e * order(); }
};

struct Problem {
  std::string file;             // or the word for a tensor with the statistics of a real one
  std::vector<int> dimensions;  // empty: as usual
  int entries = 0;              // the same
  double skew = 2;  // of the generated indices: 1 draws all alike, more prefers the first ones

  bool is_skewed() const { return file == "skewed"; }
  std::string in_words() const {
    if (!file.empty() && !is_skewed()) return file;
    std::string text;
    for (const int extent : dimensions) text += (text.empty() ? "" : "x") + std::to_string(extent);
    return text + (is_skewed() ? ", skewed, " : ", ") + std::to_string(entries) + " entries drawn";
  }
};

// Returns a number from 0 to 1 that depends only on its arguments, so that all ranks know it.
inline double random_at(std::uint64_t stream, std::uint64_t number) {
  std::uint64_t z = (stream + 1) * 0x9e3779b97f4a7c15ull + number * 0xd1342543de82ef95ull;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

// The numbers from 0 to before `count` that are this rank's.
inline std::pair<std::int64_t, std::int64_t> share(std::int64_t count) {
  const int ranks = trials::size_of(MPI_COMM_WORLD), rank = trials::rank_in(MPI_COMM_WORLD);
  return {count * rank / ranks, count * (rank + 1) / ranks};
}

// This rank's share of the entries. The first rows have most of them, with a great skew.
inline Tensor generate(const Problem& problem) {
  Tensor made;
  made.dimensions = problem.dimensions;
  const auto order = static_cast<std::uint64_t>(made.order());
  const auto [first, last] = share(problem.entries);
  for (auto e = static_cast<std::uint64_t>(first); e < at(last); ++e) {
    for (std::uint64_t mode = 0; mode < order; ++mode) {
      const int extent = made.dimensions[mode];
      const double place = std::pow(random_at(mode, e), problem.skew) * extent;
      made.index.push_back(std::min(static_cast<int>(place), extent - 1));
    }
    made.value.push_back(0.5 + random_at(order, e));
  }
  return made;
}

// ---- Files --------------------------------------------------------------------------------------

// Reads one line: the indices, which begin at 1, and the value. Returns false if the line is
// damaged.
inline bool read_line(const std::string& line, Tensor* tensor) {
  const char* next = line.c_str();
  for (int mode = 0; mode < tensor->order(); ++mode) {
    char* end = nullptr;
    const long index = std::strtol(next, &end, 10);
    if (end == next || (*end != ' ' && *end != '\t') || index < 1 || index > 1 << 30) return false;
    int& extent = tensor->dimensions[at(mode)];
    extent = std::max(extent, static_cast<int>(index));
    tensor->index.push_back(static_cast<int>(index - 1));
    next = end;
  }
  char* end = nullptr;
  const double value = std::strtod(next, &end);
  if (end == next || !std::isfinite(value)) return false;
  tensor->value.push_back(value);
  return std::string(end).find_first_not_of(" \t\r") == std::string::npos;
}

// Reads a file. Returns "" or a sentence that says what is wrong.
inline std::string read_tns(const std::string& path, Tensor* tensor) {
  std::ifstream file(path);
  if (!file) return "cannot read " + path;
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    const std::size_t begin = line.find_first_not_of(" \t\r");
    if (begin == std::string::npos || line[begin] == '#') continue;
    if (tensor->dimensions.empty()) {
      std::istringstream words(line);
      int count = 0;
      for (std::string word; words >> word;) ++count;
      if (count < 4 || count > 9) return path + " is no tensor of 3 to 8 modes, by its first entry";
      tensor->dimensions.assign(at(count - 1), 0);
    }
    if (!read_line(line, tensor)) return path + " is damaged, in line " + std::to_string(number);
    if (tensor->entries() > 1 << 26) return path + " has more than 2^26 entries";
  }
  if (file.bad()) return "cannot read " + path;
  return tensor->value.empty() ? path + " has no entries" : "";
}

inline void broadcast(std::vector<int>* numbers) {
  int length = static_cast<int>(numbers->size());
  MPI_Bcast(&length, 1, MPI_INT, 0, MPI_COMM_WORLD);
  numbers->resize(at(length));
  MPI_Bcast(numbers->data(), length, MPI_INT, 0, MPI_COMM_WORLD);
}

// Rank 0 reads and has the entries; all get the sentence, or the dimensions.
inline std::string read(const std::string& path, Tensor* tensor) {
  std::string sentence;
  if (trials::rank_in(MPI_COMM_WORLD) == 0) sentence = read_tns(path, tensor);
  std::vector<int> letters(sentence.begin(), sentence.end());
  broadcast(&letters);
  if (!letters.empty()) return std::string(letters.begin(), letters.end());
  broadcast(&tensor->dimensions);
  return "";
}

// ---- Distribution -------------------------------------------------------------------------------

// A mode of the tensor as this rank sees it. Local row r is row first + r of the factor if r <
// owned. The rows of other ranks that this rank's entries need follow in ascending order.
struct Mode {
  int chunk_first = 0, chunk_last = 0;  // rows of the layer's chunk: chunk_first, …, chunk_last - 1
  int layer = 0, place = 0;             // number of this rank's layer, and of this rank within it
  int first = 0, owned = 0;
  std::vector<int> foreign;
  std::vector<int> starts;  // first row of each of the layer's ranks, and then chunk_last

  int rows() const { return owned + static_cast<int>(foreign.size()); }
  int global(int local) const { return local < owned ? first + local : foreign[at(local - owned)]; }
  int local(int global) const {
    if (global >= first && global < first + owned) return global - first;
    const auto found = std::lower_bound(foreign.begin(), foreign.end(), global);
    return owned + static_cast<int>(found - foreign.begin());
  }
};

// This rank's entries, sorted, with local rows as indices, and its modes.
struct Part {
  std::vector<int> blocks;
  std::vector<Mode> modes;
  Tensor tensor;
  double square = 0;  // square of the whole tensor's norm
};

// Returns the number of blocks of ranks along each mode: the prime factors of the number of ranks,
// the largest first, are each given to the mode with the most rows per block.
inline std::vector<int> choose_blocks(const std::vector<int>& dimensions, int ranks) {
  std::vector<int> blocks(dimensions.size(), 1), primes;
  for (int prime = 2; ranks > 1;
       ranks % prime ? ++prime : (primes.push_back(prime), ranks /= prime))
    ;
  std::reverse(primes.begin(), primes.end());
  for (const int prime : primes) {
    std::size_t best = 0;
    for (std::size_t mode = 1; mode < blocks.size(); ++mode) {
      if (dimensions[mode] / blocks[mode] > dimensions[best] / blocks[best]) best = mode;
    }
    blocks[best] *= prime;
  }
  return blocks;
}

// Returns where each of `parts` parts of rows first, …, last - 1 begins, and then `last`. The parts
// have about equally many entries, and at least one row each if there are enough. before[row]:
// number of entries before a row.
inline std::vector<int> divide(const std::vector<std::int64_t>& before, int first, int last,
                               int parts) {
  std::vector<int> begins = {first};
  const std::int64_t entries = before[at(last)] - before[at(first)];
  for (int part = 1; part < parts; ++part) {
    const std::int64_t wanted = before[at(first)] + entries * part / parts;
    const auto found = std::lower_bound(before.begin() + first, before.begin() + last, wanted);
    const int row = static_cast<int>(found - before.begin());
    const int most = std::max(begins.back(), last - (parts - part));
    begins.push_back(std::min(std::max(row, begins.back() + 1), most));
  }
  begins.push_back(last);
  return begins;
}

// Sorts the entries, and adds up those with equal indices.
inline void merge(Tensor* tensor) {
  const int order = tensor->order();
  std::vector<std::int64_t> sorted(tensor->value.size());
  std::iota(sorted.begin(), sorted.end(), 0);
  const Tensor all = std::move(*tensor);
  std::stable_sort(sorted.begin(), sorted.end(), [&](std::int64_t a, std::int64_t b) {
    return std::lexicographical_compare(all.entry(a), all.entry(a) + order, all.entry(b),
                                        all.entry(b) + order);
  });
  *tensor = {all.dimensions, {}, {}};
  for (const std::int64_t e : sorted) {
    const bool begun = !tensor->value.empty();
    if (begun && std::equal(tensor->index.end() - order, tensor->index.end(), all.entry(e))) {
      tensor->value.back() += all.value[at(e)];
      continue;
    }
    tensor->index.insert(tensor->index.end(), all.entry(e), all.entry(e) + order);
    tensor->value.push_back(all.value[at(e)]);
  }
}

// How many entries lie before each row of a mode, on all ranks together.
inline std::vector<std::int64_t> entries_before(const Tensor& begun, int mode) {
  std::vector<std::int64_t> before(at(begun.dimensions[at(mode)] + 1), 0);
  for (std::int64_t e = 0; e < begun.entries(); ++e) ++before[at(begun.entry(e)[mode] + 1)];
  MPI_Allreduce(MPI_IN_PLACE, before.data(), static_cast<int>(before.size()), MPI_INT64_T, MPI_SUM,
                MPI_COMM_WORLD);
  std::partial_sum(before.begin(), before.end(), before.begin());
  return before;
}

// The rank of the grid in whose box an entry lies; chunks: of each mode.
inline int rank_of(const int* entry, const std::vector<std::vector<int>>& chunks) {
  int rank = 0;
  for (const std::vector<int>& begins : chunks) {
    const auto next = std::upper_bound(begins.begin() + 1, begins.end() - 1, *entry++);
    const int parts = static_cast<int>(begins.size()) - 1;
    rank = rank * parts + static_cast<int>(next - begins.begin()) - 1;
  }
  return rank;
}

// Sends all entries to the ranks in whose boxes they lie, where they are in the order in which all
// ranks had them. Only the sender knows how many go where, so these numbers travel first.
inline Tensor send_to_boxes(const Tensor& begun, const std::vector<std::vector<int>>& chunks) {
  const std::size_t ranks = at(trials::size_of(MPI_COMM_WORLD));
  std::vector<std::vector<std::int64_t>> leaving(ranks);
  for (std::int64_t e = 0; e < begun.entries(); ++e) {
    leaving[at(rank_of(begun.entry(e), chunks))].push_back(e);
  }
  Tensor packed, moved;
  packed.dimensions = moved.dimensions = begun.dimensions;
  std::vector<int> sent, received(ranks), from(ranks), to(ranks);
  for (const std::vector<std::int64_t>& list : leaving) {
    sent.push_back(static_cast<int>(list.size()));
    for (const std::int64_t e : list) {
      packed.index.insert(packed.index.end(), begun.entry(e), begun.entry(e) + begun.order());
      packed.value.push_back(begun.value[at(e)]);
    }
  }
  MPI_Alltoall(sent.data(), 1, MPI_INT, received.data(), 1, MPI_INT, MPI_COMM_WORLD);
  std::exclusive_scan(sent.begin(), sent.end(), from.begin(), 0);
  std::exclusive_scan(received.begin(), received.end(), to.begin(), 0);
  moved.value.resize(at(to.back() + received.back()));
  moved.index.resize(moved.value.size() * at(begun.order()));
  MPI_Datatype place;
  MPI_Type_contiguous(begun.order(), MPI_INT, &place);
  MPI_Type_commit(&place);
  MPI_Alltoallv(packed.index.data(), sent.data(), from.data(), place, moved.index.data(),
                received.data(), to.data(), place, MPI_COMM_WORLD);
  MPI_Type_free(&place);
  MPI_Alltoallv(packed.value.data(), sent.data(), from.data(), MPI_DOUBLE, moved.value.data(),
                received.data(), to.data(), MPI_DOUBLE, MPI_COMM_WORLD);
  return moved;
}

// The sentence that says why the ranks cannot form this grid; empty: they can.
inline std::string no_grid(const std::vector<int>& dimensions, const std::vector<int>& blocks) {
  const int ranks = trials::size_of(MPI_COMM_WORLD);
  if (blocks.size() != dimensions.size()) {
    return "--blocks needs " + std::to_string(dimensions.size()) +
           " numbers, one for each mode of the tensor";
  }
  double product = 1;
  for (const int one : blocks) product *= one;
  if (product != ranks) {
    return "--blocks is for another number than " + std::to_string(ranks) + " ranks";
  }
  for (std::size_t mode = blocks.size(); mode-- > 0;) {
    const std::string rows = "mode " + std::to_string(mode + 1) + " of the tensor has " +
                             std::to_string(dimensions[mode]) + " rows, ";
    if (dimensions[mode] < blocks[mode]) {
      return rows + "fewer than the " + std::to_string(blocks[mode]) + " blocks along it";
    }
    if (dimensions[mode] > most_rows) return rows + "more than 2^27";
  }
  return "";
}

// Cuts all modes, and gives this rank its chunk and its rows of each; returns all chunks.
inline std::vector<std::vector<int>> cut(const Tensor& begun, Part* part) {
  const int ranks = trials::size_of(MPI_COMM_WORLD), rank = trials::rank_in(MPI_COMM_WORLD);
  std::vector<std::vector<int>> chunks(part->blocks.size());
  int after = 1;  // ranks whose coordinates differ in the later modes alone
  for (int mode = begun.order() - 1; mode >= 0; --mode) {
    Mode& made = part->modes[at(mode)];
    const int parts = part->blocks[at(mode)], members = ranks / parts;
    const std::vector<std::int64_t> before = entries_before(begun, mode);
    chunks[at(mode)] = divide(before, 0, begun.dimensions[at(mode)], parts);
    made.layer = rank / after % parts;
    made.chunk_first = chunks[at(mode)][at(made.layer)];
    made.chunk_last = chunks[at(mode)][at(made.layer + 1)];
    made.starts = divide(before, made.chunk_first, made.chunk_last, members);
    // The layer's ranks in ascending order; this one's place is the number of those before it.
    made.place = rank / (after * parts) * after + rank % after;
    made.first = made.starts[at(made.place)];
    made.owned = made.starts[at(made.place + 1)] - made.first;
    after *= parts;
  }
  return chunks;
}

// Finds the rows of others that this rank's entries need, and renames all rows.
inline void rename_rows(Part* part) {
  Tensor& mine = part->tensor;
  for (int mode = 0; mode < mine.order(); ++mode) {
    Mode& one = part->modes[at(mode)];
    for (std::int64_t e = 0; e < mine.entries(); ++e) {
      const int row = mine.entry(e)[mode];
      if (row < one.first || row >= one.first + one.owned) one.foreign.push_back(row);
    }
    std::sort(one.foreign.begin(), one.foreign.end());
    one.foreign.erase(std::unique(one.foreign.begin(), one.foreign.end()), one.foreign.end());
    for (std::int64_t e = 0; e < mine.entries(); ++e) {
      int& row = mine.index[at(e * mine.order() + mode)];
      row = one.local(row);
    }
  }
}

// Returns the sentence that says why the tensor cannot be divided so; empty: `part` is this rank's.
// Each rank has begun with entries of its own. `blocks` may be empty.
inline std::string distribute(const Tensor& begun, std::vector<int> blocks, Part* part) {
  if (blocks.empty()) blocks = choose_blocks(begun.dimensions, trials::size_of(MPI_COMM_WORLD));
  if (const std::string why = no_grid(begun.dimensions, blocks); !why.empty()) return why;
  part->blocks = blocks, part->modes.resize(blocks.size());
  part->tensor = send_to_boxes(begun, cut(begun, part));
  merge(&part->tensor);
  for (const double value : part->tensor.value) part->square += value * value;
  MPI_Allreduce(MPI_IN_PLACE, &part->square, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  if (!(part->square > 0)) return "the tensor has no value but 0, or the squares of all are 0";
  if (!std::isfinite(part->square)) {
    return "the squares of the tensor's values have no sum: scale the values down";
  }
  rename_rows(part);
  return "";
}

}  // namespace tensor
