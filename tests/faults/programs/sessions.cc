// Row 40 of tests/faults/README.md: MPI sessions before, beside and after the world model, and
// communicators that are made from them. MPI libraries may refuse to compare their groups with
// those of MPI_COMM_WORLD.
#include <string>
#include <vector>

#include "faults.h"

namespace faults {
namespace {

// MPI_SESSION_NULL is also defined in libraries that call themselves MPI 3.1.
#if defined(MPI_SESSION_NULL)

// A session. The first one of a process decides the thread level for all.
struct Session {
  explicit Session(const std::string& name) : name(name) {
    MPI_Info level;
    MPI_Info_create(&level);
    MPI_Info_set(level, "thread_level", "MPI_THREAD_MULTIPLE");
    MPI_Session_init(level, MPI_ERRORS_ARE_FATAL, &session);
    MPI_Info_free(&level);
    MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
    make(&comm, "whole");
  }
  void make(MPI_Comm* made, const std::string& what) const {
    MPI_Comm_create_from_group(group, (name + "." + what).c_str(), MPI_INFO_NULL,
                               MPI_ERRORS_ARE_FATAL, made);
  }
  void end() {
    MPI_Comm_free(&comm);
    MPI_Group_free(&group);
    MPI_Session_finalize(&session);
  }

  const std::string name;
  MPI_Session session = MPI_SESSION_NULL;
  MPI_Group group = MPI_GROUP_NULL;
  MPI_Comm comm = MPI_COMM_NULL;
};

void add_up(MPI_Comm comm) {
  const int size = size_of(comm);
  Sum started(10, comm), replayed(10, comm);
  MPI_Request requests[2];
  started.start(&requests[0]);
  replayed.initialise(&requests[1]);
  MPI_Start(&requests[1]);
  MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
  MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
  MPI_Request_free(&requests[1]);
  int own = 1, all = 0;
  MPI_Allreduce(&own, &all, 1, MPI_INT, MPI_SUM, comm);
  expect(all == size, "a blocking sum on a session's communicator");
  expect(started.right_of(size), "a sum on a session's communicator");
  expect(replayed.right_of(size), "a persistent sum on a session's communicator");
}

void add_up_and_free(MPI_Comm comm) {
  if (comm == MPI_COMM_NULL) return;
  add_up(comm);
  MPI_Comm_free(&comm);
}

int split(MPI_Comm comm, int, void*, void* made, void*, int* flag) {
  *flag = 0;
  return MPI_Comm_split(comm, 0, 0, static_cast<MPI_Comm*>(made));
}

// A communicator that is made inside a callback of the library still belongs to the session.
void split_in_callback(MPI_Comm comm) {
  int key;
  MPI_Comm made, of_made, inside;
  MPI_Comm_create_keyval(split, MPI_COMM_NULL_DELETE_FN, &key, nullptr);
  MPI_Comm_set_attr(comm, key, &inside);
  MPI_Comm_dup(comm, &made);
  MPI_Comm_dup(inside, &of_made);
  for (const MPI_Comm one : {of_made, inside, made}) add_up_and_free(one);
  MPI_Comm_delete_attr(comm, key);
  MPI_Comm_free_keyval(&key);
}

void use_topologies(MPI_Comm comm) {
  const int size = size_of(comm), rank = rank_of(comm), periodic = 1;
  const int next = (rank + 1) % size, before = (rank + size - 1) % size;
  MPI_Comm ring, line, graph;
  MPI_Cart_create(comm, 1, &size, &periodic, 0, &ring);
  MPI_Cart_sub(ring, &periodic, &line);
  MPI_Dist_graph_create_adjacent(comm, 1, &before, MPI_UNWEIGHTED, 1, &next, MPI_UNWEIGHTED,
                                 MPI_INFO_NULL, 0, &graph);
  int got = -1;
  MPI_Request request;
  MPI_Ineighbor_allgather(&rank, 1, MPI_INT, &got, 1, MPI_INT, graph, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  expect(got == before, "a neighbour's word on a session's communicator");
  for (const MPI_Comm one : {ring, line, graph}) add_up_and_free(one);
}

void use_two_groups(MPI_Comm comm) {
  const int rank = rank_of(comm);
  MPI_Comm half, between, merged;
  MPI_Comm_split(comm, rank == 0 ? 0 : 1, rank, &half);
  MPI_Intercomm_create(half, 0, comm, rank == 0 ? 1 : 0, 0, &between);
  MPI_Intercomm_merge(between, rank != 0, &merged);
  add_up_and_free(merged);
  MPI_Comm_free(&between);
  add_up_and_free(half);
}

void use_windows(MPI_Comm comm) {
  MPI_Comm node;
  MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  const int rank = rank_of(node), size = size_of(node);
  int* memory = nullptr;
  MPI_Win window;
  MPI_Win_allocate_shared(sizeof(int), sizeof(int), MPI_INFO_NULL, node, &memory, &window);
  MPI_Win_fence(0, window);
  *memory = -1;
  MPI_Win_fence(0, window);
  MPI_Put(&rank, 1, MPI_INT, (rank + 1) % size, 0, 1, MPI_INT, window);
  MPI_Win_fence(0, window);
  expect(*memory == (rank + size - 1) % size, "a window on a session's communicator");
  MPI_Win_free(&window);
  add_up_and_free(node);
}

// Uses everything that can be made from a session's communicator.
void use(MPI_Comm comm) {
  add_up(comm);
  MPI_Comm made;
  MPI_Request request;
  MPI_Comm_dup(comm, &made);
  add_up_and_free(made);
  MPI_Comm_dup_with_info(comm, MPI_INFO_NULL, &made);
  add_up_and_free(made);
  MPI_Comm_idup(comm, &made, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  add_up_and_free(made);
  MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &made);
  add_up_and_free(made);
  MPI_Group group;
  MPI_Comm_group(comm, &group);
  MPI_Comm_create(comm, group, &made);
  add_up_and_free(made);
  MPI_Comm_create_group(comm, group, 7, &made);
  add_up_and_free(made);
  MPI_Group_free(&group);
  split_in_callback(comm);
  use_topologies(comm);
  use_two_groups(comm);
  use_windows(comm);
}

void use_world() {
  const OwnWorld own;
  add_up(own);
  add_up(MPI_COMM_WORLD);
}

// Several sessions exist at once. One exists before MPI_Init and after MPI_Finalize.
void sessions_beside_world() {
  Session early("early");
  add_up(early.comm);
  MPI_Init(nullptr, nullptr);
  use_world();
  use(early.comm);
  {
    Session late("late");
    use(late.comm);
    use_world();
    MPI_Comm made;
    late.make(&made, "again");
    add_up_and_free(made);
    early.make(&made, "again");
    use(made);
    MPI_Comm_free(&made);
    late.end();
  }
  use_world();  // handles of freed communicators are used again
  use(early.comm);
  MPI_Finalize();
  add_up(early.comm);
  Session last("last");
  add_up(last.comm);
  last.end();
  early.end();
}

#else

void sessions_beside_world() {}

#endif

}  // namespace

const std::vector<Case>& session_cases() {
  static const std::vector<Case> cases = {{"sessions-beside-world", sessions_beside_world, true}};
  return cases;
}

}  // namespace faults
