// tensor.h: a sparse tensor, from a file in FROSTT's format (.tns) or generated with a power law,
// and its medium-grained distribution as in SPLATT: the ranks form a grid with an axis for each
// mode, each mode's indices are cut into as many chunks, and a rank has the entries of one box. The
// ranks that share a chunk (a layer) divide its rows. Source: Smith, Karypis, "A medium-grained
// algorithm for distributed sparse tensor factorization", IPDPS 2016.
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
#include <vector>

#include "trials.h"

namespace tensor {

inline std::size_t at(std::int64_t place) {
  return static_cast<std::size_t>(place);
}

constexpr int most_rows = 1 << 27;  // every rank counts the entries of each

// Entry e has index[e * order + mode] in each mode.
struct Tensor {
  std::vector<int> dimensions;
  std::vector<int> index;
  std::vector<double> value;

  int order() const { return static_cast<int>(dimensions.size()); }
  std::int64_t entries() const { return static_cast<std::int64_t>(value.size()); }
  const int* entry(std::int64_t e) const { return index.data() + e * order(); }
};

struct Problem {
  std::string file;
  std::vector<int> dimensions = {400, 300, 200};
  int entries = 200000;
  double skew = 2;  // of the generated indices: 1 draws all alike, more prefers the first ones

  std::string in_words() const {
    if (!file.empty()) return file;
    std::string text;
    for (const int extent : dimensions) text += (text.empty() ? "" : "x") + std::to_string(extent);
    return text + ", " + std::to_string(entries) + " entries drawn";
  }
};

// A number from 0 to 1 that depends on its arguments alone, so that all ranks know it.
inline double random_at(std::uint64_t stream, std::uint64_t number) {
  std::uint64_t z = (stream + 1) * 0x9e3779b97f4a7c15ull + number * 0xd1342543de82ef95ull;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

// Few rows have most of the entries, as in tensors of words, users or links.
inline Tensor generate(const Problem& problem) {
  Tensor made;
  made.dimensions = problem.dimensions;
  const auto order = static_cast<std::uint64_t>(made.order());
  for (std::uint64_t e = 0; e < static_cast<std::uint64_t>(problem.entries); ++e) {
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

// One line: the indices, which begin at 1, and the value. False: it is damaged.
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

// The sentence that says what is wrong; empty: nothing.
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

// Rank 0 reads; all get the sentence, or the whole tensor.
inline std::string read(const std::string& path, Tensor* tensor) {
  std::string sentence;
  if (trials::rank_in(MPI_COMM_WORLD) == 0) sentence = read_tns(path, tensor);
  std::vector<int> letters(sentence.begin(), sentence.end());
  broadcast(&letters);
  if (!letters.empty()) return std::string(letters.begin(), letters.end());
  broadcast(&tensor->dimensions), broadcast(&tensor->index);
  tensor->value.resize(tensor->index.size() / tensor->dimensions.size());
  MPI_Bcast(tensor->value.data(), static_cast<int>(tensor->value.size()), MPI_DOUBLE, 0,
            MPI_COMM_WORLD);
  return "";
}

// ---- Distribution -------------------------------------------------------------------------------

// One mode as this rank sees it. Local row r is row first + r of the factor for the rows that it
// owns; behind these come the rows of others that its entries need, in ascending order.
struct Mode {
  int chunk_first = 0, chunk_last = 0;  // of its layer
  int layer = 0, place = 0;             // which layer, and which rank of it this one is
  int first = 0, owned = 0;
  std::vector<int> foreign;
  std::vector<int> starts;  // of the rows of the layer's ranks; its last: chunk_last

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
  double square = 0;  // of the whole tensor's norm
};

// The prime factors of the number of ranks, largest first, each to the mode with most rows left.
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

// Where each of `parts` parts of the rows from `first` to before `last` begins, so that all have
// about as many entries, of which before[row] lie before a row, and, where there are enough, one
// row.
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

// Sorts the entries and adds those that name the same place.
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

// The sentence that says why it cannot be divided so; empty: `part` is this rank's. `blocks` may be
// empty.
inline std::string distribute(const Tensor& all, std::vector<int> blocks, Part* part) {
  const int ranks = trials::size_of(MPI_COMM_WORLD), rank = trials::rank_in(MPI_COMM_WORLD);
  const int order = all.order();
  if (blocks.empty()) blocks = choose_blocks(all.dimensions, ranks);
  if (static_cast<int>(blocks.size()) != order) {
    return "--blocks needs " + std::to_string(order) + " numbers, one for each mode of the tensor";
  }
  double product = 1;
  for (const int one : blocks) product *= one;
  if (product != ranks) {
    return "--blocks is for another number than " + std::to_string(ranks) + " ranks";
  }
  int rest = rank;
  part->blocks = blocks, part->modes.resize(at(order));
  for (int mode = order - 1; mode >= 0; --mode) {
    Mode& made = part->modes[at(mode)];
    const int parts = blocks[at(mode)], members = ranks / parts;
    if (all.dimensions[at(mode)] < parts) {
      return "mode " + std::to_string(mode + 1) + " of the tensor has " +
             std::to_string(all.dimensions[at(mode)]) + " rows, fewer than the " +
             std::to_string(parts) + " blocks along it";
    }
    if (all.dimensions[at(mode)] > most_rows) {
      return "mode " + std::to_string(mode + 1) + " of the tensor has " +
             std::to_string(all.dimensions[at(mode)]) + " rows, more than 2^27";
    }
    std::vector<std::int64_t> before(at(all.dimensions[at(mode)] + 1), 0);
    for (std::int64_t e = 0; e < all.entries(); ++e) ++before[at(all.entry(e)[mode] + 1)];
    std::partial_sum(before.begin(), before.end(), before.begin());
    const std::vector<int> chunks = divide(before, 0, all.dimensions[at(mode)], parts);
    made.layer = rest % parts, rest /= parts;
    made.chunk_first = chunks[at(made.layer)], made.chunk_last = chunks[at(made.layer + 1)];
    made.starts = divide(before, made.chunk_first, made.chunk_last, members);
    // The layer's ranks in ascending order; this one's place is the number of those before it.
    int after = 1;
    for (int other = order - 1; other > mode; --other) after *= blocks[at(other)];
    made.place = rank / (after * parts) * after + rank % after;
    made.first = made.starts[at(made.place)];
    made.owned = made.starts[at(made.place + 1)] - made.first;
  }
  Tensor& mine = part->tensor;
  mine.dimensions = all.dimensions;
  for (std::int64_t e = 0; e < all.entries(); ++e) {
    const int* index = all.entry(e);
    bool here = true;
    for (int mode = 0; mode < order; ++mode) {
      const Mode& one = part->modes[at(mode)];
      here &= index[mode] >= one.chunk_first && index[mode] < one.chunk_last;
    }
    if (!here) continue;
    mine.index.insert(mine.index.end(), index, index + order);
    mine.value.push_back(all.value[at(e)]);
  }
  merge(&mine);
  for (const double value : mine.value) part->square += value * value;
  MPI_Allreduce(MPI_IN_PLACE, &part->square, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  if (!(part->square > 0)) return "the tensor has no value but 0, or the squares of all are 0";
  if (!std::isfinite(part->square)) {
    return "the squares of the tensor's values have no sum: scale the values down";
  }
  for (int mode = 0; mode < order; ++mode) {
    Mode& one = part->modes[at(mode)];
    for (std::int64_t e = 0; e < mine.entries(); ++e) {
      const int row = mine.entry(e)[mode];
      if (row < one.first || row >= one.first + one.owned) one.foreign.push_back(row);
    }
    std::sort(one.foreign.begin(), one.foreign.end());
    one.foreign.erase(std::unique(one.foreign.begin(), one.foreign.end()), one.foreign.end());
    for (std::int64_t e = 0; e < mine.entries(); ++e) {
      int& row = mine.index[at(e * order + mode)];
      row = one.local(row);
    }
  }
  return "";
}

}  // namespace tensor
