// Types, operators and communicators that are freed while a collective needs them, attributes of
// duplicated communicators, unusual communicators, and errors. A library between application and
// MPI holds handles that the application considers its own.
#include <vector>

#include "conformance.h"

namespace conformance {
namespace {

constexpr int kCount = 20000;

void add(void* in, void* inout, int* length, MPI_Datatype*) {
  const auto* left = static_cast<const int*>(in);
  auto* right = static_cast<int*>(inout);
  for (int i = 0; i < 2 * *length; ++i) right[i] += left[i];
}

bool all_equal(const std::vector<int>& values, int wanted) {
  for (int value : values) {
    if (value != wanted) return false;
  }
  return true;
}

int rank_sum(MPI_Comm comm) {
  const int size = size_of(comm);
  return size * (size - 1) / 2;
}

void frees_type_and_operator(Tally* tally) {
  tally->begin("type and operator freed right after the start");
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  const int rank = rank_of(comm);
  std::vector<int> in(2 * kCount, rank), out(2 * kCount, -1), box(2 * kCount, rank ? -1 : 7);
  MPI_Request requests[2];
  for (int i = 0; i < 2; ++i) {
    MPI_Datatype type;
    MPI_Op op;
    MPI_Type_contiguous(2, MPI_INT, &type);
    MPI_Type_commit(&type);
    MPI_Op_create(add, 1, &op);
    if (i == 0) MPI_Iallreduce(in.data(), out.data(), kCount, type, op, comm, &requests[0]);
    if (i == 1) MPI_Ibcast(box.data(), kCount, type, 0, comm, &requests[1]);
    MPI_Op_free(&op);
    MPI_Type_free(&type);
  }
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  tally->end(all_equal(out, rank_sum(comm)) && all_equal(box, 7));
  MPI_Comm_free(&comm);
}

void frees_communicator(Tally* tally) {
  tally->begin("communicators freed with collectives pending");
  const int rank = rank_of(MPI_COMM_WORLD);
  bool good = true;
  for (int round = 0; round < 3; ++round) {
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    std::vector<int> in(kCount, rank), out(kCount, -1);
    MPI_Request requests[2];
    MPI_Iallreduce(in.data(), out.data(), kCount, MPI_INT, MPI_SUM, comm, &requests[0]);
    MPI_Ibarrier(comm, &requests[1]);
    MPI_Comm_free(&comm);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    good = good && comm == MPI_COMM_NULL && all_equal(out, rank_sum(MPI_COMM_WORLD));
  }
  tally->end(good);
}

// Counts through an attribute's extra state what happens to the attribute.
struct Events {
  int copies = 0, deletions = 0;
};

int count_copy(MPI_Comm, int, void* extra, void* in, void* out, int* flag) {
  ++static_cast<Events*>(extra)->copies;
  *static_cast<void**>(out) = in;
  *flag = 1;
  return MPI_SUCCESS;
}

int count_deletion(MPI_Comm, int, void*, void* extra) {
  ++static_cast<Events*>(extra)->deletions;
  return MPI_SUCCESS;
}

void check_events(const char* name, MPI_Comm first, int keyval, Events* events, Tally* tally) {
  tally->begin(std::string("attributes through ") + name);
  *events = {};
  MPI_Comm copy;
  if (std::string(name) == "Comm_dup") MPI_Comm_dup(first, &copy);
  if (std::string(name) == "Comm_dup_with_info")
    MPI_Comm_dup_with_info(first, MPI_INFO_NULL, &copy);
  if (std::string(name) == "Comm_idup") {
    MPI_Request request;
    MPI_Comm_idup(first, &copy, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  if (std::string(name) == "Comm_split") MPI_Comm_split(first, 0, 0, &copy);
  const int wanted = std::string(name) == "Comm_split" ? 0 : 1;
  int in = 1, out = 0, found = 0;
  void* value = nullptr;
  MPI_Request request;
  MPI_Iallreduce(&in, &out, 1, MPI_INT, MPI_SUM, copy, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Comm_get_attr(copy, keyval, &value, &found);
  MPI_Comm_free(&copy);
  tally->end(found == wanted && events->copies == wanted && events->deletions == wanted &&
                 out == size_of(first),
             "a callback ran too often or not at all");
}

void keeps_attributes(Tally* tally) {
  Events events;
  int keyval;
  MPI_Comm first;
  MPI_Comm_dup(MPI_COMM_WORLD, &first);
  MPI_Comm_create_keyval(count_copy, count_deletion, &keyval, &events);
  MPI_Comm_set_attr(first, keyval, &events);
  for (const char* name : {"Comm_dup", "Comm_dup_with_info", "Comm_idup", "Comm_split"}) {
    check_events(name, first, keyval, &events, tally);
  }
  MPI_Comm_free(&first);
  MPI_Comm_free_keyval(&keyval);
}

bool reduces(MPI_Comm comm) {
  int in = 1, out = 0;
  MPI_Request request;
  MPI_Iallreduce(&in, &out, 1, MPI_INT, MPI_SUM, comm, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  return out == size_of(comm);
}

void unusual_communicators(Tally* tally) {
  const int rank = rank_of(MPI_COMM_WORLD);
  tally->begin("MPI_COMM_SELF and MPI_COMM_WORLD themselves");
  tally->end(reduces(MPI_COMM_SELF) && reduces(MPI_COMM_WORLD));

  tally->begin("communicators from split, by parity, overlapping in time");
  MPI_Comm half;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
  tally->end(reduces(half));

  tally->begin("communicator from create_group, made by its members only");
  bool good = true;
  if (rank % 2 == 0) {
    MPI_Group world, even;
    int range[1][3] = {{0, size_of(MPI_COMM_WORLD) - 1, 2}};
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_range_incl(world, 1, range, &even);
    MPI_Comm made;
    MPI_Comm_create_group(MPI_COMM_WORLD, even, 9, &made);
    good = reduces(made) && reduces(made);
    MPI_Comm_free(&made);
    MPI_Group_free(&even);
    MPI_Group_free(&world);
  }
  tally->end(good);
  MPI_Comm_free(&half);
}

// On an intercommunicator, each group gets the sum of the other group.
void intercommunicator(Tally* tally) {
  const int rank = rank_of(MPI_COMM_WORLD), size = size_of(MPI_COMM_WORLD);
  if (size < 2) return;
  tally->begin("allreduce on an intercommunicator");
  MPI_Comm mine, both;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &mine);
  MPI_Intercomm_create(mine, 0, MPI_COMM_WORLD, 1 - rank % 2, 4, &both);
  int in = 1 + rank % 2, out = 0, remote = 0;
  MPI_Comm_remote_size(both, &remote);
  MPI_Request request;
  MPI_Iallreduce(&in, &out, 1, MPI_INT, MPI_SUM, both, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Comm_free(&both);
  MPI_Comm_free(&mine);
  tally->end(out == remote * (2 - rank % 2));
}

int handler_calls = 0;
int handler_code = MPI_SUCCESS;

void count_error(MPI_Comm*, int* code, ...) {
  ++handler_calls;
  handler_code = *code;
}

int class_of(int code) {
  int result = 0;
  MPI_Error_class(code, &result);
  return result;
}

struct Mistake {
  const char* name;
  int count;
  MPI_Datatype type;
  MPI_Op op;
  int root;
};

int reduce_blocking(const Mistake& wrong, MPI_Comm comm) {
  int in = 1, out = 0;
  return MPI_Reduce(&in, &out, wrong.count, wrong.type, wrong.op, wrong.root, comm);
}

int reduce_started(const Mistake& wrong, MPI_Comm comm) {
  int in = 1, out = 0;
  MPI_Request request = MPI_REQUEST_NULL;
  return MPI_Ireduce(&in, &out, wrong.count, wrong.type, wrong.op, wrong.root, comm, &request);
}

// The standard forbids this. If an MPI library permits it, there is nothing to check.
void request_free(Tally* tally) {
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Errhandler world, self;
  MPI_Comm_get_errhandler(MPI_COMM_WORLD, &world);
  MPI_Comm_get_errhandler(MPI_COMM_SELF, &self);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  MPI_Request request;
  MPI_Ibarrier(comm, &request);
  const int code = MPI_Request_free(&request);
  if (code == MPI_SUCCESS) {
    tally->skip("Request_free of a collective", "allowed here");
  } else {
    tally->begin("Request_free of a collective is refused");
    const bool kept = request != MPI_REQUEST_NULL;
    if (kept) MPI_Wait(&request, MPI_STATUS_IGNORE);
    tally->end(class_of(code) == MPI_ERR_REQUEST && kept);
  }
  MPI_Barrier(comm);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, world);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, self);
  MPI_Errhandler_free(&world);
  MPI_Errhandler_free(&self);
  MPI_Comm_free(&comm);
}

}  // namespace

void check_lifetime(const Options& options, Tally* tally) {
  frees_type_and_operator(tally);
  if (!options.left_out("comm-free")) frees_communicator(tally);
  keeps_attributes(tally);
  unusual_communicators(tally);
  intercommunicator(tally);
  request_free(tally);
}

void check_mistakes(Tally* tally) {
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  const int size = size_of(comm);
  MPI_Errhandler handler;
  MPI_Comm_create_errhandler(count_error, &handler);
  const Mistake mistakes[] = {
      {"negative count", -1, MPI_INT, MPI_SUM, 0},   {"no operator", 1, MPI_INT, MPI_OP_NULL, 0},
      {"no type", 1, MPI_DATATYPE_NULL, MPI_SUM, 0}, {"root too high", 1, MPI_INT, MPI_SUM, size},
      {"negative root", 1, MPI_INT, MPI_SUM, -7},
  };
  for (const auto& mistake : mistakes) {
    tally->begin(std::string("mistake: ") + mistake.name);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    const int wanted = class_of(reduce_blocking(mistake, comm));
    const int got = class_of(reduce_started(mistake, comm));
    MPI_Comm_set_errhandler(comm, handler);
    handler_calls = 0;
    reduce_started(mistake, comm);
    tally->end(got != MPI_SUCCESS && got == wanted && handler_calls == 1 &&
                   class_of(handler_code) == wanted,
               "another error class than the blocking call's, or handler not called once");
  }
  MPI_Errhandler_free(&handler);
  tally->begin("communicator usable after mistakes");
  tally->end(reduces(comm));
  MPI_Comm_free(&comm);
}

}  // namespace conformance
