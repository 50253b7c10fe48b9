// Legal programs that block in an MPI call while a collective is incomplete, which other ranks must
// complete before they end this call. A library must progress incomplete collectives inside every
// blocking call: if only MPI_Wait did so, these programs would hang. After a hang, the time limit
// ends the program and names the case.
#include <algorithm>
#include <functional>
#include <vector>

#include "calls.h"
#include "conformance.h"

namespace conformance {
namespace {

// What rank 0 does between start and wait, and what rank 1 does after its wait, so that rank 0 can
// continue.
struct Scene {
  const char* name;
  std::function<void(MPI_Comm)> blocks;
  std::function<void(MPI_Comm)> releases;
};

void send(int to, MPI_Comm comm) {
  const int word = 1;
  MPI_Send(&word, 1, MPI_INT, to, 3, comm);
}

void receive(int from, MPI_Comm comm) {
  int word = 0;
  MPI_Recv(&word, 1, MPI_INT, from, 3, comm, MPI_STATUS_IGNORE);
}

void barrier(MPI_Comm comm) {
  MPI_Barrier(comm);
}

void bcast(MPI_Comm comm) {
  int word = 1;
  MPI_Bcast(&word, 1, MPI_INT, 1, comm);
}

void allreduce(MPI_Comm comm) {
  int word = 1, sum = 0;
  MPI_Allreduce(&word, &sum, 1, MPI_INT, MPI_SUM, comm);
}

void duplicate(MPI_Comm comm) {
  MPI_Comm copy;
  MPI_Comm_dup(comm, &copy);
  MPI_Comm_free(&copy);
}

std::vector<Scene> scenes() {
  const auto sends = [](MPI_Comm comm) { send(0, comm); };
  return {
      {"Recv", [](MPI_Comm comm) { receive(1, comm); }, sends},
      {"Ssend",
       [](MPI_Comm comm) {
         const int word = 1;
         MPI_Ssend(&word, 1, MPI_INT, 1, 3, comm);
       },
       [](MPI_Comm comm) { receive(0, comm); }},
      {"Probe",
       [](MPI_Comm comm) {
         MPI_Probe(1, 3, comm, MPI_STATUS_IGNORE);
         receive(1, comm);
       },
       sends},
      {"Iprobe",
       [](MPI_Comm comm) {
         for (int there = 0; !there; rest()) MPI_Iprobe(1, 3, comm, &there, MPI_STATUS_IGNORE);
         receive(1, comm);
       },
       sends},
      {"Wait for a message",
       [](MPI_Comm comm) {
         int word = 0;
         MPI_Request request;
         MPI_Irecv(&word, 1, MPI_INT, 1, 3, comm, &request);
         MPI_Wait(&request, MPI_STATUS_IGNORE);
       },
       sends},
      {"Test for a message",
       [](MPI_Comm comm) {
         int word = 0;
         MPI_Request request;
         MPI_Irecv(&word, 1, MPI_INT, 1, 3, comm, &request);
         for (int done = 0; !done; rest()) MPI_Test(&request, &done, MPI_STATUS_IGNORE);
       },
       sends},
      {"Sendrecv",
       [](MPI_Comm comm) {
         int out = 1, in = 0;
         MPI_Sendrecv(&out, 1, MPI_INT, 1, 3, &in, 1, MPI_INT, 1, 3, comm, MPI_STATUS_IGNORE);
       },
       [](MPI_Comm comm) {
         receive(0, comm);
         send(0, comm);
       }},
      {"Barrier", barrier, barrier},
      {"Bcast", bcast, bcast},
      {"Allreduce", allreduce, allreduce},
      {"Comm_dup", duplicate, duplicate},
  };
}

void play(const Scene& scene, int count, Form form, const MPI_Comm worlds[2], MPI_Comm pair,
          Tally* tally) {
  tally->begin(std::string("blocks in ") + scene.name + " with " +
               call_name(Kind::allreduce, form, false) + " of " + std::to_string(count) +
               " outstanding");
  const int rank = rank_of(worlds[0]), size = size_of(worlds[0]);
  std::vector<int> in(count, rank), out(count, -1);
  Arguments arguments;
  arguments.send = in.data();
  arguments.receive = out.data();
  arguments.ints.receive_counts = {count};
  arguments.receive_types = {MPI_INT};
  arguments.op = MPI_SUM;
  arguments.comm = worlds[0];
  MPI_Request request;
  call(Kind::allreduce, form, false, arguments, &request);
  const int starts = form == Form::persistent ? 2 : 1;
  for (int i = 0; i < starts; ++i) {
    if (form == Form::persistent) MPI_Start(&request);
    if (rank == 0) scene.blocks(pair);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (rank == 1) scene.releases(pair);
    MPI_Barrier(worlds[1]);
  }
  if (form == Form::persistent) MPI_Request_free(&request);
  tally->end(out == std::vector<int>(count, size * (size - 1) / 2));
}

// Rank 1 starts only after a message that rank 0 sends after its start. The start must therefore
// not block, not even the first one on a new communicator.
void start_does_not_block(bool created, Tally* tally) {
  tally->begin(created ? "first start on a created communicator does not block"
                       : "first start on a duplicate does not block");
  const int rank = rank_of(MPI_COMM_WORLD), size = size_of(MPI_COMM_WORLD);
  MPI_Comm comm;
  if (created) {
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comm);
  } else {
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  }
  int in = rank, out = -1;
  MPI_Request request;
  if (rank == 1) receive(0, MPI_COMM_WORLD);
  MPI_Iallreduce(&in, &out, 1, MPI_INT, MPI_SUM, comm, &request);
  if (rank == 0) send(1, MPI_COMM_WORLD);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Comm_free(&comm);
  tally->end(out == size * (size - 1) / 2);
}

// Rank 0 sends its part to rank 2, which by recursive doubling receives it after that of rank 1.
// The message is so long that its send waits for the receiver. The type has holes, so that messages
// are used everywhere.
void blocks_before_a_receive(MPI_Comm comm, Tally* tally) {
  tally->begin("blocks in Recv with an exscan outstanding");
  struct Pair {
    double value;
    int at;
  };
  const int rank = rank_of(comm);
  std::vector<Pair> in(2000, {static_cast<double>(rank), rank}), out(in.size(), {-1, -1});
  MPI_Request request;
  MPI_Iexscan(in.data(), out.data(), static_cast<int>(in.size()), MPI_DOUBLE_INT, MPI_MAXLOC, comm,
              &request);
  if (rank == 2) receive(0, comm);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  if (rank == 0) send(2, comm);
  const bool right = std::all_of(out.begin(), out.end(), [&](const Pair& pair) {
    return pair.value == rank - 1 && pair.at == rank - 1;
  });
  tally->end(rank == 0 || right);
}

}  // namespace

void check_blocking(Tally* tally) {
  const int rank = rank_of(MPI_COMM_WORLD);
  if (size_of(MPI_COMM_WORLD) < 2) return;
  MPI_Comm worlds[2], pair;
  for (auto& comm : worlds) MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_split(MPI_COMM_WORLD, rank < 2 ? 0 : 1, rank, &pair);
  for (int count : {1, 50000}) {
    for (const auto& scene : scenes()) {
      play(scene, count, Form::nonblocking, worlds, pair, tally);
      if (kPersistent) play(scene, count, Form::persistent, worlds, pair, tally);
    }
  }
  start_does_not_block(false, tally);
  start_does_not_block(true, tally);
  if (size_of(MPI_COMM_WORLD) > 2) blocks_before_a_receive(worlds[0], tally);
  MPI_Comm_free(&pair);
  for (auto& comm : worlds) MPI_Comm_free(&comm);
}

}  // namespace conformance
