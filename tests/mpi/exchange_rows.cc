// Compares weft_exchange_rows_init with rows that are copied one by one: irregular partners,
// scattered and consecutive rows, several lists for one partner, exchanges of a rank with itself,
// empty lists, repeated starts. Usage: exchange_rows [COMMUNICATORS], the number of communicators
// that the program makes in addition. The exit status is 0 if all is right, 1 if a row is wrong,
// and 77 if Weft is not loaded.
#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>
#include <vector>

#include "weft.h"

namespace {

constexpr int kRows = 60, kLength = 5, kExchanges = 20, kStarts = 3;

// A list of rows that one rank sends to another. Both ranks draw the same lists.
struct Edge {
  int from, to;
  std::vector<int> sent, received;
};

std::vector<Edge> draw_edges(int ranks, unsigned seed) {
  std::mt19937 random(seed);
  const auto below = [&](int limit) { return static_cast<int>(random() % unsigned(limit)); };
  std::vector<Edge> edges;
  std::vector<int> next_free(static_cast<std::size_t>(ranks), 0);
  const int count = below(4 * ranks);
  for (int i = 0; i < count; ++i) {
    Edge edge{below(ranks), below(ranks), {}, {}};
    const int rows = below(6);
    const int start = below(kRows - rows);
    const bool consecutive = below(2) == 0;
    int& free = next_free[static_cast<std::size_t>(edge.to)];
    for (int k = 0; k < rows && free < kRows; ++k) {
      edge.sent.push_back(consecutive ? start + k : below(kRows));
      edge.received.push_back(consecutive ? free++ : kRows - 1 - free++);
    }
    edges.push_back(edge);
  }
  return edges;
}

double value(int rank, int row, int column, int start) {
  return rank * 1e6 + row * 1e3 + column * 10 + start;
}

using Matrix = std::vector<double>;

// Returns the rows that this rank must have at the end.
Matrix expected(const std::vector<Edge>& edges, int rank, int start) {
  Matrix matrix(kRows * kLength, -1);
  for (const Edge& edge : edges)
    for (std::size_t k = 0; k < edge.sent.size() && edge.to == rank; ++k)
      for (int c = 0; c < kLength; ++c)
        matrix[static_cast<std::size_t>(edge.received[k] * kLength + c)] =
            value(edge.from, edge.sent[k], c, start);
  return matrix;
}

bool received_twice(const std::vector<Edge>& edges) {
  std::map<std::pair<int, int>, int> times;
  for (const Edge& edge : edges)
    for (const int row : edge.received)
      if (++times[{edge.to, row}] > 1) return true;
  return false;
}

int check(const std::vector<Edge>& edges, int rank, MPI_Datatype row, MPI_Comm comm) {
  std::vector<weft_rows> sent, received;
  for (const Edge& edge : edges) {
    const auto count = static_cast<int>(edge.sent.size());
    if (edge.from == rank) sent.push_back({edge.to, count, edge.sent.data()});
    if (edge.to == rank) received.push_back({edge.from, count, edge.received.data()});
  }
  Matrix from(kRows * kLength), to(kRows * kLength);
  MPI_Request request;
  weft_exchange_rows_init(from.data(), static_cast<int>(sent.size()), sent.data(), to.data(),
                          static_cast<int>(received.size()), received.data(), row, comm, &request);
  sent.assign(sent.size(), {-1, -1, nullptr});  // the lists may be changed after the initialisation
  int wrong = 0;
  for (int start = 0; start < kStarts; ++start) {
    for (int i = 0; i < kRows * kLength; ++i)
      from[static_cast<std::size_t>(i)] = value(rank, i / kLength, i % kLength, start);
    to.assign(to.size(), -1);
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    wrong += to != expected(edges, rank, start);
  }
  MPI_Request_free(&request);
  return wrong;
}

int check_refusals(MPI_Datatype row) {
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  int ranks = 1, number = 0;
  MPI_Comm_size(comm, &ranks);
  double matrix[kLength];
  MPI_Request request;
  const weft_rows no_such_rank = {ranks, 1, &number}, negative = {0, -1, &number};
  int wrong = 0, kind = MPI_SUCCESS;
  const auto refused = [&](const weft_rows& list, int expected) {
    const int code =
        weft_exchange_rows_init(matrix, 1, &list, matrix, 0, nullptr, row, comm, &request);
    MPI_Error_class(code, &kind);
    wrong += kind != expected;
  };
  refused(no_such_rank, MPI_ERR_RANK);
  refused(negative, MPI_ERR_COUNT);
  MPI_Comm_free(&comm);
  return wrong;
}

// Requests that exist at the same time never share a tag. In the end no tag is left for another
// request.
int check_tags_run_out(MPI_Datatype row, MPI_Comm comm) {
  constexpr int kMany = 1 << 14;
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  double matrix[kLength];
  int made = 0, code = MPI_SUCCESS, kind = MPI_SUCCESS;
  for (; made < kMany; ++made) {
    MPI_Request request;
    code = weft_exchange_rows_init(matrix, 0, nullptr, matrix, 0, nullptr, row, comm, &request);
    if (code != MPI_SUCCESS) break;
    MPI_Request_free(&request);
  }
  MPI_Error_class(code, &kind);
  int ends[2] = {made, -made};
  MPI_Allreduce(MPI_IN_PLACE, ends, 2, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  return kind != MPI_ERR_OTHER || ends[0] != -ends[1];
}

}  // namespace

// With OTHERS it also makes so many communicators and uses the last of them. It uses the first one
// until Weft has no tag left there.
int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  if (!weft_version) {
    MPI_Finalize();
    return 77;
  }
  int rank = 0, ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Datatype row;
  MPI_Type_contiguous(kLength, MPI_DOUBLE, &row);
  MPI_Type_commit(&row);
  std::vector<MPI_Comm> others(argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 0);
  for (MPI_Comm& other : others) MPI_Comm_dup(MPI_COMM_WORLD, &other);
  const MPI_Comm comm = others.empty() ? MPI_COMM_WORLD : others.back();
  int wrong = 0, checked = 0;
  for (unsigned seed = 1; checked < kExchanges; ++seed) {
    const auto edges = draw_edges(ranks, seed);
    if (received_twice(edges)) continue;
    ++checked;
    wrong += check(edges, rank, row, comm);
  }
  if (!others.empty()) wrong += check_tags_run_out(row, others.front());
  for (MPI_Comm& other : others) MPI_Comm_free(&other);
  wrong += check_refusals(row);
  MPI_Type_free(&row);
  int all = 0;
  MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) std::printf("exchange_rows: %d exchanges, %d wrong\n", checked, all);
  MPI_Finalize();
  return all != 0;
}
