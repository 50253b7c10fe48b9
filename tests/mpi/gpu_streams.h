// Common part of the files gpu_streams*: the arguments of a collective, device memory, and expected
// results.
#pragma once
#include <mpi.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "gpu_standin.h"
#include "weft_gpu.h"

namespace streams {

using namespace gpu::driver;

inline int failures = 0, cases = 0, rank = 0, ranks = 1;
inline bool is_quick = false;               // whether buffers of more than 2 MB are left out
inline const char* expected_way = nullptr;  // for persistent collectives that a kernel carries out
inline MPI_Comm world, ring;
inline Stream stream;

// Seconds for which a rank that is told of another rank's failure waits before it ends the job, so
// that the other rank can print its message.
inline unsigned patience_s = 0;

inline void good(int code, const char* what) {
  if (code == 0) return;
  const std::string why = weft_gpu_error();
  std::printf("rank %d: %s: %s\n", rank, what, why.c_str());
  std::fflush(stdout);
  if (why.find("CUDA_ERROR") == std::string::npos) sleep(patience_s);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

inline void expect(bool is_right, const std::string& what) {
  ++cases;
  if (is_right) return;
  ++failures;
  std::printf("rank %d: wrong: %s\n", rank, what.c_str());
}

inline std::uintptr_t address_of(const void* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer);
}

enum Where { kProcessor, kDevice, kManaged };

// Ints in device memory, in host memory, or in both.
class Buffer {
 public:
  Buffer(const std::vector<int>& content, Where where) : host_(content) {
    if (where == kProcessor) return;
    constexpr unsigned kGlobal = 1;
    good(where == kDevice ? cuMemAlloc_v2(&device_, bytes())
                          : cuMemAllocManaged(&device_, bytes(), kGlobal),
         "cuMemAlloc");
    // The driver returns when it has taken the data. A stream that does not wait for the default
    // stream may still run before the copy.
    good(cuMemcpy(device_, address_of(host_.data()), bytes()), "cuMemcpy");
    good(cuStreamSynchronize(nullptr), "cuStreamSynchronize");
  }
  ~Buffer() {
    if (device_) cuMemFree_v2(device_);
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  int* data() { return device_ ? reinterpret_cast<int*>(device_) : host_.data(); }
  std::vector<int> content() {
    if (device_) good(cuMemcpy(address_of(host_.data()), device_, bytes()), "cuMemcpy");
    return host_;
  }

 private:
  std::size_t bytes() const { return host_.size() * sizeof(int); }

  std::vector<int> host_;
  std::uintptr_t device_ = 0;
};

// Waits for the collective in the stream, then for the stream.
inline void finish(weft_gpu_request* request) {
  good(weft_wait_enqueue(*request, stream), "wait");
  good(weft_gpu_request_free(request), "free");
  good(cuStreamSynchronize(stream), "synchronize");
}

// Counts and displacements of a collective, for `n` ints in a block.
constexpr int kMost = 16;
template <class Count, class Place>
struct NumbersOf {
  Count n;
  Count counts[kMost], uneven[kMost];
  Place at[kMost], bytes_at[kMost];
  MPI_Aint far_at[kMost];
  MPI_Datatype ints[kMost];
};
using Numbers = NumbersOf<int, int>;
using LargeNumbers = NumbersOf<MPI_Count, MPI_Aint>;  // for the functions whose names end in _c

// Blocks lie in reverse order. Between two of them there is one int that must stay unchanged.
Numbers numbers(int n, int blocks);
std::vector<int> filled(int n, int seed, int blocks);

// found: what weft_gpu_path_of has returned.
inline void expect_way(const std::string& found, const std::string& way) {
  ++cases;
  if (found.rfind(way, 0) == 0) return;
  ++failures;
  std::printf("rank %d: it travels %s; expected: %s\n", rank, found.c_str(), way.c_str());
}

inline void expect_refusal(int code, const char* sentence) {
  ++cases;
  if (code != MPI_SUCCESS && std::string(weft_gpu_error()).find(sentence) != std::string::npos)
    return;
  ++failures;
  std::printf("rank %d: not refused: %s; said is: %s\n", rank, sentence, weft_gpu_error());
}

inline void launch(const char* kernel) {
  void* found = nullptr;
  good(cuModuleGetFunction(&found, nullptr, kernel), kernel);
  good(cuLaunchKernel(found, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr), kernel);
}
void pause(int milliseconds);
// Delays what follows in the stream.
void delay_stream();

// Defined in gpu_streams_chunks.cc.
void blocks_are_reduced_in_place();
void pinned_memory_is_bounded();
void long_ones_of_types_with_holes();

// Defined in gpu_streams_short_floats.cc.
void short_floats(bool in_one_kernel);

// Defined in gpu_streams_one_kernel.cc.
void one_rank_has_no_event();
void one_rank_has_memory_of_another_device();
void one_rank_has_no_memory();
void one_rank_cannot_measure();
void many_in_one_kernel();
void waited_for_in_other_orders();
void a_huge_type();
void prepared_beside_a_late_stream();
void enqueued_beside_a_capture();
void one_rank_is_refused();
void one_rank_is_lost();

// Defined in gpu_streams_failures.cc.
void one_rank_fails_at_each_step();
void types_are_freed_at_once();
void failures_are_told();
void refusals();

}  // namespace streams
