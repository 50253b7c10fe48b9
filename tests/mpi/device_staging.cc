// Long collectives on device memory, which move in pieces through pinned memory, and what may go
// wrong with them. This is an ordinary MPI program that does not know Weft:
// `device_staging DRIVER CASE`, where DRIVER is the stand-in of tests/device for CUDA's driver.
// Results must be what the MPI library computes from the same data in ordinary memory while Weft is
// switched off by MPI_Pcontrol. The program reads device memory by the stand-in's own function, so
// that all copies in streams are Weft's.
#include <mpi.h>

#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "gpu_standin.h"

namespace {

using namespace gpu::driver;

int (*reset_device)(int device) = nullptr;
void (*hold_copies)(bool yes) = nullptr;

int failures = 0, cases = 0, rank = 0, ranks = 1;

constexpr int kSharesManagedMemory = 89;  // an attribute of a device, as in cuda.h
constexpr int kIllegalAddress = 700;
// A block of several pieces whose end is that of no piece.
constexpr int kLong = 700'001, kShort = 1000;

void check(bool is_right, const std::string& what) {
  ++cases;
  if (is_right) return;
  ++failures;
  std::printf("rank %d: wrong: %s\n", rank, what.c_str());
}

int class_of(int code) {
  int found = code;
  MPI_Error_class(code, &found);
  return found;
}

void use_device(int number) {
  void* context = nullptr;
  if (cuDevicePrimaryCtxRetain(&context, number) || cuCtxSetCurrent(context))
    MPI_Abort(MPI_COMM_WORLD, 1);
}

// Where the ints of a buffer lie.
enum class In { host, device, managed };

class Ints {
 public:
  Ints(const std::vector<int>& content, In in) : host_(content), in_(in) {
    if (in == In::host) return;
    const std::size_t bytes = content.size() * sizeof(int);
    const int code =
        in == In::device ? cuMemAlloc_v2(&address_, bytes) : cuMemAllocManaged(&address_, bytes, 1);
    if (code != 0) MPI_Abort(MPI_COMM_WORLD, 1);
    std::memcpy(standin::data(data()), host_.data(), bytes);
  }
  ~Ints() {
    if (address_ != 0) cuMemFree_v2(address_);
  }
  Ints(const Ints&) = delete;
  Ints& operator=(const Ints&) = delete;

  int* data() { return in_ == In::host ? host_.data() : reinterpret_cast<int*>(address_); }
  std::vector<int> content() {
    if (in_ != In::host)
      std::memcpy(host_.data(), standin::data(data()), host_.size() * sizeof(int));
    return host_;
  }

 private:
  std::vector<int> host_;
  const In in_;
  Address address_ = 0;
};

std::vector<int> filled(std::size_t count, int seed) {
  std::vector<int> content(count);
  for (std::size_t i = 0; i < count; ++i)
    content[i] = static_cast<int>(i % 100'003) * 7 + seed * 1000 + rank * 31;
  return content;
}

struct Form {
  const char* name;
  std::function<void(int count, int* from, int* to)> run;
};

void wait(MPI_Request* request) {
  MPI_Wait(request, MPI_STATUS_IGNORE);
}

// Starts a persistent collective twice, so that its copies are used again.
void run_twice(MPI_Request* request) {
  for (int i = 0; i < 2; ++i) {
    MPI_Start(request);
    wait(request);
  }
  MPI_Request_free(request);
}

#define FORMS(Name, name, ...)                                                              \
  {#Name, [](int count, [[maybe_unused]] int* from, int* to) { MPI_##Name(__VA_ARGS__); }}, \
      {"I" #name,                                                                           \
       [](int count, [[maybe_unused]] int* from, int* to) {                                 \
         MPI_Request request;                                                               \
         MPI_I##name(__VA_ARGS__, &request);                                                \
         wait(&request);                                                                    \
       }},                                                                                  \
  {                                                                                         \
#Name "_init", [](int count, [[maybe_unused]] int* from, int* to) {               \
      MPI_Request request;                                                            \
      MPI_##Name##_init(__VA_ARGS__, MPI_INFO_NULL, &request);                        \
      run_twice(&request);                                                            \
    }         \
  }

// Each collective three times: blocking, non-blocking and persistent.
const std::vector<Form>& forms() {
  static const MPI_Comm world = MPI_COMM_WORLD;
  static const std::vector<Form> all = {
      FORMS(Allreduce, allreduce, from, to, count * ranks, MPI_INT, MPI_SUM, world),
      FORMS(Reduce, reduce, from, to, count * ranks, MPI_INT, MPI_MAX, ranks - 1, world),
      FORMS(Bcast, bcast, to, count * ranks, MPI_INT, 1, world),
      FORMS(Allgather, allgather, from, count, MPI_INT, to, count, MPI_INT, world),
      FORMS(Allgather, allgather, MPI_IN_PLACE, 0, MPI_INT, to, count, MPI_INT, world),
      FORMS(Alltoall, alltoall, from, count, MPI_INT, to, count, MPI_INT, world),
      FORMS(Reduce_scatter_block, reduce_scatter_block, from, to, count, MPI_INT, MPI_SUM, world),
  };
  return all;
}

std::vector<int> expected(const Form& blocking, int count, std::size_t ints) {
  std::vector<int> from = filled(ints, 1), to = filled(ints, 2);
  MPI_Pcontrol(0);
  blocking.run(count, from.data(), to.data());
  MPI_Pcontrol(1);
  return to;
}

// runs: whether a form of this name runs.
void run_all(
    int count, In from_in, In to_in,
    const std::function<bool(const std::string&)>& runs = [](const std::string&) { return true; }) {
  const std::size_t ints = static_cast<std::size_t>(count) * static_cast<std::size_t>(ranks);
  std::vector<int> right;
  for (std::size_t i = 0; i < forms().size(); ++i) {
    const Form& form = forms()[i];
    if (!runs(form.name)) continue;
    if (i % 3 == 0 || right.empty()) right = expected(forms()[i - i % 3], count, ints);
    Ints from(filled(ints, 1), from_in), to(filled(ints, 2), to_in);
    form.run(count, from.data(), to.data());
    check(to.content() == right, std::string(form.name) + ", " + std::to_string(count) + " ints");
  }
}

// On all ranks, then on some. There is pinned memory for a few buffers, however many calls there
// are.
void check_equal() {
  constexpr std::size_t kMostBuffers = 8;
  run_all(kLong, In::device, In::device);
  run_all(kShort, In::device, In::device);
  const In here = rank % 2 == 0 ? In::device : In::host;
  const In there = rank % 2 == 0 ? In::host : In::device;
  run_all(kLong, here, there);
  const std::size_t bytes = static_cast<std::size_t>(kLong) * static_cast<std::size_t>(ranks) * 4;
  check(standin::pinned() > bytes && standin::pinned() < kMostBuffers * bytes,
        std::to_string(standin::pinned()) + " bytes are pinned");
}

// The user leaves all calls to the MPI library. Its own persistent calls would need memory that it
// can access.
void check_left() {
  const auto is_not_persistent = [](const std::string& name) { return !name.ends_with("_init"); };
  for (const int count : {kShort, kLong}) run_all(count, In::device, In::device, is_not_persistent);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  Ints ints(filled(kShort, 1), In::device);
  MPI_Request request;
  const int code =
      MPI_Bcast_init(ints.data(), kShort, MPI_INT, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  check(class_of(code) == MPI_ERR_BUFFER, "a persistent call is left to the library");
}

// The MPI library is one that accepts the device's memory.
void check_accepted() {
  const auto is_accepted = [](const std::string& name) {
    return name == "Allgather" || name == "Iallgather";
  };
  for (const int count : {kShort, kLong}) run_all(count, In::device, In::device, is_accepted);
}

// On communicators of one rank, which Weft leaves to the library.
void check_alone() {
  Ints from(filled(kLong, 1), In::device), to(filled(kLong, 2), In::device);
  MPI_Request request;
  MPI_Allreduce(from.data(), to.data(), kShort, MPI_INT, MPI_SUM, MPI_COMM_SELF);
  MPI_Iallreduce(from.data() + kShort, to.data() + kShort, kLong - kShort, MPI_INT, MPI_SUM,
                 MPI_COMM_SELF, &request);
  wait(&request);
  check(to.content() == filled(kLong, 1), "a sum over one rank");
}

void check_managed() {
  run_all(kLong, In::managed, In::managed);
  standin::set_attribute(kSharesManagedMemory, 0);
  run_all(kLong, In::managed, In::managed);
  run_all(kShort, In::managed, In::device);
}

// The two buffers lie in the memory of different devices, and a third device is current.
void check_devices() {
  const std::size_t ints = static_cast<std::size_t>(kLong) * static_cast<std::size_t>(ranks);
  for (const Form& form : {forms()[0], forms()[1], forms()[2]}) {
    const std::vector<int> right = expected(forms()[0], kLong, ints);
    use_device(0);
    Ints from(filled(ints, 1), In::device);
    use_device(1);
    Ints to(filled(ints, 2), In::device);
    use_device(2);
    form.run(kLong, from.data(), to.data());
    check(to.content() == right, std::string(form.name) + " between devices");
  }
}

// Returns the class of the error with which an allreduce ends on this rank. fail: prepares the
// failure.
int failing(const std::function<void()>& fail, int form) {
  const std::size_t ints = static_cast<std::size_t>(kLong);
  Ints from(filled(ints, 1), In::device), to(filled(ints, 2), In::device);
  MPI_Request request;
  int code = MPI_SUCCESS;
  if (form == 2)
    MPI_Allreduce_init(from.data(), to.data(), kLong, MPI_INT, MPI_SUM, MPI_COMM_WORLD,
                       MPI_INFO_NULL, &request);
  if (rank == 1) fail();
  if (form == 0)
    return class_of(MPI_Allreduce(from.data(), to.data(), kLong, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
  if (form == 1)
    MPI_Iallreduce(from.data(), to.data(), kLong, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
  else
    MPI_Start(&request);
  code = MPI_Wait(&request, MPI_STATUS_IGNORE);
  if (form == 2) MPI_Request_free(&request);
  return class_of(code);
}

// A copy is refused on one rank, which gets an error; the others go on, and so do later calls.
void check_refused() {
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  for (const char* call : {"cuMemcpyAsync", "cuEventCreate", "cuEventQuery"})
    for (int form = 0; form < 3; ++form)
      for (int nth = 1; nth < 4; ++nth) {
        const int found = failing([&] { standin::fail(call, nth, kIllegalAddress); }, form);
        const int planted = standin::planted();
        standin::forget_errors();
        const bool is_right =
            rank != 1 ? found == MPI_SUCCESS : (found == MPI_ERR_OTHER) == (planted == 0);
        check(is_right, std::string(call) + " fails: class " + std::to_string(found));
      }
  run_all(kLong, In::device, In::device);
}

// The device is reset on one rank while a persistent collective waits for its next start.
void check_reset() {
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  run_all(kShort, In::device, In::device);
  const int found = failing([] { reset_device(0); }, 2);
  check(found == (rank == 1 ? MPI_ERR_OTHER : MPI_SUCCESS),
        "a reset: class " + std::to_string(found));
  use_device(0);
  run_all(kLong, In::device, In::device);
}

// A non-blocking start does not wait for the copies that it begins.
void check_held() {
  const std::size_t ints = static_cast<std::size_t>(kLong) * static_cast<std::size_t>(ranks);
  const std::vector<int> right = expected(forms()[0], kLong, ints);
  Ints from(filled(ints, 1), In::device), to(filled(ints, 2), In::device);
  MPI_Request request;
  int is_complete = 0;
  hold_copies(true);
  MPI_Iallreduce(from.data(), to.data(), kLong * ranks, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
  MPI_Test(&request, &is_complete, MPI_STATUS_IGNORE);
  check(is_complete == 0, "a collective is complete without its data");
  hold_copies(false);
  wait(&request);
  check(to.content() == right, "a collective whose copies are late");
}

const std::map<std::string, void (*)()> kCases = {
    {"equal", check_equal},     {"managed", check_managed}, {"devices", check_devices},
    {"refused", check_refused}, {"reset", check_reset},     {"held", check_held},
    {"left", check_left},       {"alone", check_alone},     {"accepted", check_accepted},
};

bool load(const char* path) {
  void* const library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
  return standin::load_driver(path) && standin::data &&
         find(library, "cuDevicePrimaryCtxReset_v2", reset_device) &&
         find(library, "standin_hold_copies", hold_copies);
}

}  // namespace

int main(int argc, char** argv) {
  const auto found = argc == 3 ? kCases.find(argv[2]) : kCases.end();
  if (found == kCases.end() || !load(argv[1])) {
    std::fprintf(stderr, "usage: device_staging DRIVER CASE\n");
    return 2;
  }
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  use_device(0);
  found->second();
  int all = 0;
  MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0 && all == 0) std::printf("%d cases equal\n", cases);
  MPI_Finalize();
  if (standin::pinned() != 0) {
    std::printf("rank %d: %zu bytes are still pinned\n", rank, standin::pinned());
    return 1;
  }
  return all > 0;
}
