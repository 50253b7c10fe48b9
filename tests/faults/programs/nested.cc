// Row 31 of tests/faults/README.md: what an attribute's delete callback or an operator frees while
// the MPI library is inside another call. Libraries such as PETSc keep communicators, memory and
// requests as attributes of the application's communicators, and free them there.
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "faults.h"

namespace faults {
namespace {

constexpr int kInts = 1 << 16;  // so long that the memory comes from Weft's heap

// What an attribute's owner keeps in it.
struct Kept {
  MPI_Comm comm = MPI_COMM_NULL;
  int* memory = nullptr;
  MPI_Win window = MPI_WIN_NULL;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Op op = MPI_OP_NULL;
  MPI_Request request = MPI_REQUEST_NULL;
  Sum* sum = nullptr;
};

void add_up(void* in, void* inout, int* count, MPI_Datatype*) {
  for (int i = 0; i < *count; ++i) static_cast<int*>(inout)[i] += static_cast<int*>(in)[i];
}

void make(Kept* kept) {
  MPI_Comm_dup(MPI_COMM_WORLD, &kept->comm);
  MPI_Alloc_mem(kInts * sizeof(int), MPI_INFO_NULL, &kept->memory);
  int* part = nullptr;
  MPI_Win_allocate_shared(kInts * sizeof(int), sizeof(int), MPI_INFO_NULL, kept->comm, &part,
                          &kept->window);
  MPI_Type_contiguous(1, MPI_INT, &kept->type);
  MPI_Type_commit(&kept->type);
  MPI_Op_create(add_up, 1, &kept->op);
  kept->sum = new Sum(10, kept->comm);
  kept->sum->initialise(&kept->request);
}

// Uses each object in a collective, so that Weft remembers it if it remembers such objects.
void use(const Kept& kept) {
  std::vector<int> out(kInts);
  for (int i = 0; i < kInts; ++i) kept.memory[i] = i;
  MPI_Allreduce(kept.memory, out.data(), kInts, MPI_INT, MPI_SUM, kept.comm);
  expect(out[3] == 3 * size_of(kept.comm), "sum of memory that the library allocated");
  MPI_Allreduce(kept.memory, out.data(), 10, kept.type, kept.op, kept.comm);
  expect(out[3] == 3 * size_of(kept.comm), "sum by an operator of the program's");
  MPI_Request request;
  MPI_Iallreduce(kept.memory, out.data(), kInts, MPI_INT, MPI_MAX, kept.comm, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  expect(out[3] == 3, "maximum of memory that the library allocated");
}

void discard(Kept* kept) {
  MPI_Request_free(&kept->request);
  expect(kept->request == MPI_REQUEST_NULL, "a request that was freed");
  delete kept->sum;
  MPI_Win_free(&kept->window);
  MPI_Free_mem(kept->memory);
  MPI_Type_free(&kept->type);
  MPI_Op_free(&kept->op);
  MPI_Comm_free(&kept->comm);
}

int discard_attribute(void* value) {
  auto* kept = static_cast<Kept*>(value);
  if (kept->sum) {  // the request is completed here, since nobody else can do so
    kept->sum->reset();
    MPI_Start(&kept->request);
    MPI_Wait(&kept->request, MPI_STATUS_IGNORE);
    expect(kept->sum->right(), "a persistent allreduce from inside the library");
  }
  discard(kept);
  return MPI_SUCCESS;
}

// Makes new communicators of other ranks, which reuse the handles that were freed. Weft must not
// take them for the freed ones. Most of them have this rank only.
void use_handles_again() {
  std::array<MPI_Comm, 8> comms;
  const int rank = rank_of(MPI_COMM_WORLD), last = size_of(MPI_COMM_WORLD) - 1;
  for (MPI_Comm& comm : comms) {
    MPI_Comm_split(MPI_COMM_WORLD, rank == last, 0, &comm);
    int one = 1, sum = 0;
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
    expect(sum == size_of(comm), "sum on a communicator with a handle that was another's");
    MPI_Request request;
    sum = 0;
    MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    expect(sum == size_of(comm), "the same, non-blocking");
  }
  for (MPI_Comm& comm : comms) MPI_Comm_free(&comm);
}

void use_types_again() {
  MPI_Datatype pair;
  MPI_Op op;
  MPI_Type_contiguous(2, MPI_INT, &pair);
  MPI_Type_commit(&pair);
  MPI_Op_create(
      [](void* in, void* inout, int* count, MPI_Datatype*) {
        for (int i = 0; i < 2 * *count; ++i)
          static_cast<int*>(inout)[i] += static_cast<int*>(in)[i];
      },
      1, &op);
  std::vector<int> in(20, 1), out(20);
  MPI_Allreduce(in.data(), out.data(), 10, pair, op, MPI_COMM_WORLD);
  expect(out[19] == size_of(MPI_COMM_WORLD), "sum of a type with a handle that was another's");
  MPI_Type_free(&pair);
  MPI_Op_free(&op);
}

// The attribute's owner is a communicator that is made and freed.
void by_communicator(Kept* kept) {
  const auto callback = [](MPI_Comm, int, void* value, void*) { return discard_attribute(value); };
  int key = MPI_KEYVAL_INVALID;
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, callback, &key, nullptr);
  OwnWorld owner;
  MPI_Comm_set_attr(owner, key, kept);
  MPI_Comm_free(owner.address());
  MPI_Comm_free_keyval(&key);
}
void by_window(Kept* kept) {
  const auto callback = [](MPI_Win, int, void* value, void*) { return discard_attribute(value); };
  int key = MPI_KEYVAL_INVALID;
  MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, callback, &key, nullptr);
  int memory = 0;
  MPI_Win owner;
  MPI_Win_create(&memory, sizeof memory, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &owner);
  MPI_Win_set_attr(owner, key, kept);
  MPI_Win_free(&owner);
  MPI_Win_free_keyval(&key);
}
void by_type(Kept* kept) {
  const auto callback = [](MPI_Datatype, int, void* value, void*) {
    return discard_attribute(value);
  };
  int key = MPI_KEYVAL_INVALID;
  MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, callback, &key, nullptr);
  MPI_Datatype owner;
  MPI_Type_contiguous(2, MPI_INT, &owner);
  MPI_Type_set_attr(owner, key, kept);
  MPI_Type_free(&owner);
  MPI_Type_free_keyval(&key);
}

void freed_by_delete_callback() {
  for (const auto free_owner : {by_communicator, by_window, by_type, by_communicator}) {
    Kept kept;
    make(&kept);
    use(kept);
    free_owner(&kept);
    use_handles_again();
    use_types_again();
  }
}

// The attribute's owner is MPI_COMM_SELF, whose attributes MPI_Finalize deletes first.
void freed_in_finalize() {
  static Kept kept;
  make(&kept);
  use(kept);
  int key = MPI_KEYVAL_INVALID;
  const auto callback = [](MPI_Comm, int, void* value, void*) {
    discard(static_cast<Kept*>(value));
    return MPI_SUCCESS;
  };
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, callback, &key, nullptr);
  MPI_Comm_set_attr(MPI_COMM_SELF, key, &kept);
  MPI_Comm_free_keyval(&key);
}

Kept* of_operator = nullptr;

// Does only local operations, since an operator may not communicate.
void add_up_and_discard(void* in, void* inout, int* count, MPI_Datatype* type) {
  add_up(in, inout, count, type);
  if (Kept* kept = of_operator) {
    of_operator = nullptr;
    MPI_Free_mem(kept->memory);
    MPI_Type_free(&kept->type);
    MPI_Op_free(&kept->op);
    kept->memory = nullptr;
  }
}

void freed_by_operator() {
  MPI_Op op;
  MPI_Op_create(add_up_and_discard, 1, &op);
  for (const bool blocking : {true, false, true, false}) {
    Kept kept;
    make(&kept);
    use(kept);
    of_operator = &kept;
    std::vector<int> in(kInts, 1), out(kInts);
    MPI_Request request = MPI_REQUEST_NULL;
    if (blocking)
      MPI_Allreduce(in.data(), out.data(), kInts, MPI_INT, op, MPI_COMM_WORLD);
    else
      MPI_Iallreduce(in.data(), out.data(), kInts, MPI_INT, op, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    expect(out[0] == size_of(MPI_COMM_WORLD), "sum by an operator that frees");
    const bool called = !of_operator;  // in an algorithm another rank may call the operator
    of_operator = nullptr;
    if (!called) {
      MPI_Free_mem(kept.memory);
      MPI_Type_free(&kept.type);
      MPI_Op_free(&kept.op);
    }
    use_types_again();
    MPI_Request_free(&kept.request);
    delete kept.sum;
    MPI_Win_free(&kept.window);
    MPI_Comm_free(&kept.comm);
  }
  MPI_Op_free(&op);
}

}  // namespace

const std::vector<Case>& nested_cases() {
  static const std::vector<Case> cases = {
      {"freed-by-delete-callback", freed_by_delete_callback},
      {"freed-by-operator", freed_by_operator},
      {"freed-in-finalize", freed_in_finalize},
  };
  return cases;
}

}  // namespace faults
