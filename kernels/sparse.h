// The symmetric matrices of pipecg: 7-point problems on a grid, and files in Matrix Market's format
// (mesh.h has another kind); and one rank's part of a matrix. Columns that other ranks own are the
// halo. Rows without halo columns are interior: they can be multiplied while the halo is exchanged.
// Source of the format: https://math.nist.gov/MatrixMarket/formats.html
#pragma once
#include <mpi.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "trials.h"

namespace sparse {

struct Entry {
  int row, column;
  double value;
};

// Contiguous blocks of rows, whose sizes differ by at most one.
struct Blocks {
  int total, ranks;
  int first(int rank) const {
    return static_cast<int>(static_cast<std::int64_t>(total) * rank / ranks);
  }
  int owner(int row) const {
    int rank = static_cast<int>(static_cast<std::int64_t>(row) * ranks / total);
    while (row >= first(rank + 1)) ++rank;
    while (row < first(rank)) --rank;
    return rank;
  }
  // Returns the first row of each rank, and behind them the number of rows.
  std::vector<int> starts() const {
    std::vector<int> found;
    for (int rank = 0; rank <= ranks; ++rank) found.push_back(first(rank));
    return found;
  }
};

// ---- Where matrices come from -------------------------------------------------------------------

struct Problem {
  int grid[3] = {24, 24, 24};
  std::string coefficients = "poisson";
  // Ratio of the largest to the smallest coefficient, for anisotropic and heterogeneous problems.
  double contrast = 1e6;
  std::string file;  // name of a file with a matrix to read instead
  std::string mesh = "grid", numbering = "natural", partition = "blocks";

  std::string in_words() const {
    std::string words = file.substr(file.find_last_of('/') + 1);
    if (file.empty()) {
      char text[80];
      std::snprintf(text, sizeof text, "%s %dx%dx%d", coefficients.c_str(), grid[0], grid[1],
                    grid[2]);
      words = (mesh == "grid" ? "" : mesh + " ") + text;
      if (coefficients != "poisson") {
        std::snprintf(text, sizeof text, " contrast %.0e", contrast);
        words += text;
      }
    }
    if (numbering != "natural") words += " numbered at random";
    return words + (partition == "blocks" ? "" : " " + partition);
  }
};

// Returns a number in [0, 1) that depends only on the cell, so that the matrix is the same on any
// number of ranks.
inline double random_of(std::uint64_t cell) {
  std::uint64_t z = (cell + 1) * 0x9e3779b97f4a7c15ull;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

// Returns the entries of rows first, …, last - 1 by finite volumes: the coefficient of a face is
// the harmonic mean of those of its two cells, and the solution is 0 outside the grid.
inline std::vector<Entry> seven_point(const Problem& problem, int first, int last) {
  const int nx = problem.grid[0], ny = problem.grid[1], nz = problem.grid[2];
  const bool heterogeneous = problem.coefficients == "heterogeneous";
  const auto conductivity = [&](int cell) {
    return heterogeneous
               ? std::pow(problem.contrast, random_of(static_cast<std::uint64_t>(cell)) - 0.5)
               : 1.0;
  };
  const double vertical = problem.coefficients == "anisotropic" ? 1 / problem.contrast : 1.0;
  std::vector<Entry> entries;
  for (int row = first; row < last; ++row) {
    const int at[3] = {row % nx, row / nx % ny, row / (nx * ny)};
    const int extent[3] = {nx, ny, nz}, stride[3] = {1, nx, nx * ny};
    const double here = conductivity(row);
    double diagonal = 0;
    for (int axis = 0; axis < 3; ++axis) {
      for (const int step : {-1, 1}) {
        const double weight = axis == 2 ? vertical : 1.0;
        const int beyond = at[axis] + step;
        if (beyond < 0 || beyond >= extent[axis]) {
          diagonal += 2 * weight * here;  // the boundary is half a cell away
          continue;
        }
        const int column = row + step * stride[axis];
        const double there = conductivity(column);
        const double face = weight * 2 * here * there / (here + there);
        diagonal += face;
        entries.push_back({row, column, -face});
      }
    }
    entries.push_back({row, row, diagonal});
  }
  return entries;
}

// Reads a matrix on one rank. Returns "" or a sentence that says why it cannot be solved.
inline std::string read_matrix_market(const std::string& path, int* order,
                                      std::vector<Entry>* entries) {
  std::ifstream file(path);
  if (!file) return "cannot read " + path;
  std::string line, banner, object, form, field, symmetry;
  std::getline(file, line);
  if (file.bad()) return "cannot read " + path;
  for (char& letter : line) {  // the format does not distinguish upper and lower case
    letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  }
  std::istringstream(line) >> banner >> object >> form >> field >> symmetry;
  if (banner != "%%matrixmarket" || object != "matrix" || form != "coordinate" ||
      (field != "real" && field != "integer") ||
      (symmetry != "symmetric" && symmetry != "general")) {
    return path + " does not begin with '%%MatrixMarket matrix coordinate real symmetric'";
  }
  while (std::getline(file, line) && (line.empty() || line[0] == '%')) {
  }
  long rows = 0, columns = 0, count = 0;
  if (!(std::istringstream(line) >> rows >> columns >> count) || rows < 1 || rows > 1 << 30 ||
      count < 0) {
    return path + " has no line with its numbers of rows, columns and entries";
  }
  if (count >= 1 << 30) return path + " has more entries than fit: at most 2^30 - 1 do";
  if (rows != columns) return path + " is not square";
  for (long i = 0; i < count; ++i) {
    long row = 0, column = 0;
    double value = 0;
    if (!(file >> row >> column >> value)) {
      return path + " ends, or is damaged, at entry " + std::to_string(i + 1) + " of " +
             std::to_string(count);
    }
    if (row < 1 || row > rows || column < 1 || column > rows || !std::isfinite(value)) {
      return path + " has an entry outside the matrix: number " + std::to_string(i + 1);
    }
    entries->push_back({static_cast<int>(row - 1), static_cast<int>(column - 1), value});
    if (symmetry == "symmetric" && row != column) {
      entries->push_back({static_cast<int>(column - 1), static_cast<int>(row - 1), value});
    }
  }
  if (file >> line) {
    return path + " has more entries than the " + std::to_string(count) + " that it names";
  }
  *order = static_cast<int>(rows);
  const auto before = [](const Entry& a, const Entry& b) {
    return std::pair(a.row, a.column) < std::pair(b.row, b.column);
  };
  std::sort(entries->begin(), entries->end(), before);
  const auto twice =
      std::adjacent_find(entries->begin(), entries->end(),
                         [&](const Entry& one, const Entry& next) { return !before(one, next); });
  if (twice != entries->end()) {
    return path + " has an entry twice in row " + std::to_string(twice->row + 1);
  }
  int positive = 0;
  for (const Entry& one : *entries) {
    const Entry mirrored{one.column, one.row, one.value};
    const auto found = std::lower_bound(entries->begin(), entries->end(), mirrored, before);
    if (found == entries->end() || before(mirrored, *found) || found->value != one.value) {
      return path + " is not symmetric in row " + std::to_string(one.row + 1);
    }
    positive += one.row == one.column && one.value > 0;
  }
  if (positive < rows) {
    return path + " is not positive definite: not all of its diagonal is greater than 0";
  }
  return "";
}

// Rank 0 reads the file, and all ranks get all entries. Returns on all ranks "" or a sentence that
// says what is wrong.
inline std::string entries_of_file(const std::string& path, int* order, std::vector<Entry>* all) {
  std::string sentence;
  if (trials::rank_in(MPI_COMM_WORLD) == 0) sentence = read_matrix_market(path, order, all);
  int sizes[3] = {static_cast<int>(sentence.size()), *order, static_cast<int>(all->size())};
  MPI_Bcast(sizes, 3, MPI_INT, 0, MPI_COMM_WORLD);
  sentence.resize(static_cast<std::size_t>(sizes[0]));
  MPI_Bcast(sentence.data(), sizes[0], MPI_CHAR, 0, MPI_COMM_WORLD);
  if (!sentence.empty()) return sentence;
  *order = sizes[1];
  all->resize(static_cast<std::size_t>(sizes[2]));
  MPI_Datatype entry;
  MPI_Type_contiguous(sizeof(Entry), MPI_BYTE, &entry);
  MPI_Type_commit(&entry);
  MPI_Bcast(all->data(), sizes[2], entry, 0, MPI_COMM_WORLD);
  MPI_Type_free(&entry);
  return "";
}

// ---- A rank's part of a matrix ------------------------------------------------------------------

struct Matrix {
  int order = 0, rows = 0, first = 0;
  // Compressed rows; columns from number `rows` on belong to the halo.
  std::vector<int> start, column;
  std::vector<double> value, inverse_diagonal;
  std::vector<float> value_single, inverse_diagonal_single;  // the values above in single precision
  // Rows without halo columns, and all other rows.
  std::vector<int> interior, boundary;
  double norm = 0;  // greatest sum of the magnitudes in a row, relative to its diagonal entry
  // Neighbouring ranks, and the counts and places of rows that are sent to and received from each.
  std::vector<int> peers, send_counts, send_places, receive_counts, receive_places;
  std::vector<int> outgoing;  // rows that other ranks need, ordered by rank
  // Numbers of the rows before partitioning; empty if they are first, first + 1, ….
  std::vector<int> original;
  int number(int row) const {
    return original.empty() ? first + row : original[static_cast<std::size_t>(row)];
  }
  int halo() const {
    return receive_counts.empty() ? 0 : receive_places.back() + receive_counts.back();
  }
};

// Finds which ranks need which rows of which others. It is called once.
inline void find_neighbours(Matrix* matrix, const std::vector<int>& starts,
                            const std::vector<int>& foreign, MPI_Comm comm) {
  std::vector<int> wanted(starts.size() - 1), asked(wanted.size());
  for (const int row : foreign) {
    const auto next = std::upper_bound(starts.begin(), starts.end(), row);
    ++wanted[static_cast<std::size_t>(next - starts.begin() - 1)];
  }
  MPI_Alltoall(wanted.data(), 1, MPI_INT, asked.data(), 1, MPI_INT, comm);
  std::vector<int> wanted_places(wanted.size()), asked_places(wanted.size());
  int sent = 0, received = 0;
  for (std::size_t peer = 0; peer < wanted.size(); ++peer) {
    wanted_places[peer] = received, asked_places[peer] = sent;
    if (wanted[peer] || asked[peer]) {
      matrix->peers.push_back(static_cast<int>(peer));
      matrix->send_counts.push_back(asked[peer]), matrix->send_places.push_back(sent);
      matrix->receive_counts.push_back(wanted[peer]), matrix->receive_places.push_back(received);
    }
    received += wanted[peer], sent += asked[peer];
  }
  matrix->outgoing.resize(static_cast<std::size_t>(sent));
  MPI_Alltoallv(foreign.data(), wanted.data(), wanted_places.data(), MPI_INT,
                matrix->outgoing.data(), asked.data(), asked_places.data(), MPI_INT, comm);
  for (int& row : matrix->outgoing) row -= matrix->first;
}

// Makes this rank's part of a matrix from its entries, in any order. Rank i of `comm` has rows
// starts[i], …, starts[i + 1] - 1. All ranks must call it together.
inline Matrix assemble(const std::vector<int>& starts, std::vector<Entry> entries, MPI_Comm comm) {
  const auto rank = static_cast<std::size_t>(trials::rank_in(comm));
  Matrix matrix;
  matrix.order = starts.back(), matrix.first = starts[rank];
  matrix.rows = starts[rank + 1] - matrix.first;
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::pair(a.row, a.column) < std::pair(b.row, b.column);
  });
  std::vector<int> foreign;
  const auto at_home = [&](int column) {
    return column >= matrix.first && column < matrix.first + matrix.rows;
  };
  for (const Entry& one : entries) {
    if (!at_home(one.column)) foreign.push_back(one.column);
  }
  std::sort(foreign.begin(), foreign.end());
  foreign.erase(std::unique(foreign.begin(), foreign.end()), foreign.end());
  auto next = entries.begin();
  matrix.start.push_back(0);
  for (int row = 0; row < matrix.rows; ++row) {
    bool inside = true;
    double diagonal = 0, sum = 0;
    for (; next != entries.end() && next->row == row + matrix.first; ++next) {
      const bool home = at_home(next->column);
      const auto place = std::lower_bound(foreign.begin(), foreign.end(), next->column);
      matrix.column.push_back(home ? next->column - matrix.first
                                   : matrix.rows + static_cast<int>(place - foreign.begin()));
      matrix.value.push_back(next->value);
      inside &= home, sum += std::fabs(next->value);
      if (next->column == next->row) diagonal += next->value;
    }
    matrix.start.push_back(static_cast<int>(matrix.column.size()));
    matrix.inverse_diagonal.push_back(1 / diagonal);
    (inside ? matrix.interior : matrix.boundary).push_back(row);
    matrix.norm = std::max(matrix.norm, sum / diagonal);
  }
  MPI_Allreduce(MPI_IN_PLACE, &matrix.norm, 1, MPI_DOUBLE, MPI_MAX, comm);
  matrix.value_single.assign(matrix.value.begin(), matrix.value.end());
  matrix.inverse_diagonal_single.assign(matrix.inverse_diagonal.begin(),
                                        matrix.inverse_diagonal.end());
  find_neighbours(&matrix, starts, foreign, comm);
  return matrix;
}

}  // namespace sparse
