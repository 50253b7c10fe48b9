// Makes the same neighbourhood calls again and again, blocking and non-blocking ones, on a graph
// with repeated edges. In some calls some ranks give other amounts than before. Each result is
// compared with the MPI library's own, on a communicator that Weft leaves to the library.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EDGES = 4, MOST = 40, KINDS = 5 };

typedef struct {
  int sends[EDGES], gets[EDGES], places[EDGES];
  MPI_Aint at[EDGES];
  MPI_Datatype types[EDGES];
  int in[EDGES * MOST], out[EDGES * MOST];
} Data;

static int rank, ranks;
static const int steps[EDGES] = {1, 2, 1, 0};  // to the rank so much above; the last to itself

static int peer(int step) {
  return (rank + step + 2 * ranks) % ranks;
}

// Returns how many elements a rank gives along its edge. An allgatherv gives all the same.
static int amount(int kind, int number, int from, int edge) {
  const int is_other = number % 5 == 3 && from % 2 == 1;
  if (kind == 1) return 3 + from + (is_other ? number % 7 : 0);
  return is_other ? (number + edge) % MOST : (7 * from + 5 * edge) % MOST;
}

static void fill(Data* data, int kind, int number) {
  for (int edge = 0; edge < EDGES; ++edge) {
    data->sends[edge] = amount(kind, number, rank, edge);
    data->gets[edge] = amount(kind, number, peer(-steps[edge]), edge);
    data->places[edge] = edge * MOST;
    data->at[edge] = (MPI_Aint)sizeof(int) * edge * MOST;
    data->types[edge] = MPI_INT;
  }
  for (int i = 0; i < EDGES * MOST; ++i) data->in[i] = (number * 131 + rank) * 1000 + i;
  memset(data->out, 7, sizeof data->out);
}

#define SOME data->in, data->sends, data->places, MPI_INT
#define INTO data->out, data->gets, data->places, MPI_INT
#define TYPED(side, counts) data->side, data->counts, data->at, data->types
#define BY_FORM(name, ...)                            \
  if (request)                                        \
    MPI_Ineighbor_##name(__VA_ARGS__, comm, request); \
  else                                                \
    MPI_Neighbor_##name(__VA_ARGS__, comm)

// request: nullptr for the blocking call.
static void call(Data* data, int kind, int number, MPI_Comm comm, MPI_Request* request) {
  const int same = 1 + number / 60 % 3;
  switch (kind) {
    case 0:
      BY_FORM(allgather, data->in, same, MPI_INT, data->out, same, MPI_INT);
      break;
    case 1:
      BY_FORM(allgatherv, data->in, data->sends[0], MPI_INT, INTO);
      break;
    case 2:
      BY_FORM(alltoall, data->in, same, MPI_INT, data->out, same, MPI_INT);
      break;
    case 3:
      BY_FORM(alltoallv, SOME, INTO);
      break;
    default:
      BY_FORM(alltoallw, TYPED(in, sends), TYPED(out, gets));
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int calls = argc > 1 ? atoi(argv[1]) : 200;
  int sources[EDGES], destinations[EDGES], wrong = 0, all_wrong = 0;
  for (int edge = 0; edge < EDGES; ++edge) {
    sources[edge] = peer(-steps[edge]);
    destinations[edge] = peer(steps[edge]);
  }
  MPI_Comm graph, library;
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, EDGES, sources, MPI_UNWEIGHTED, EDGES,
                                 destinations, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph);
  MPI_Info hints;
  MPI_Info_create(&hints);
  MPI_Info_set(hints, "weft_engine", "native");
  MPI_Comm_dup_with_info(graph, hints, &library);
  MPI_Info_free(&hints);
  static Data data, wanted;
  for (int kind = 0; kind < KINDS; ++kind)
    for (int form = 0; form < 2; ++form)
      for (int number = 0; number < calls; ++number) {
        MPI_Request request;
        fill(&data, kind, number);
        fill(&wanted, kind, number);
        call(&data, kind, number, graph, form ? &request : NULL);
        if (form) MPI_Wait(&request, MPI_STATUS_IGNORE);
        call(&wanted, kind, number, library, NULL);
        if (memcmp(data.out, wanted.out, sizeof data.out) != 0 && wrong++ < 3)
          printf("rank %d: kind %d, form %d, call %d: wrong\n", rank, kind, form, number);
      }
  MPI_Allreduce(&wrong, &all_wrong, 1, MPI_INT, MPI_SUM, library);
  if (rank == 0) printf("%d wrong\n", all_wrong);
  MPI_Comm_free(&library);
  MPI_Comm_free(&graph);
  MPI_Finalize();
  return all_wrong != 0;
}
