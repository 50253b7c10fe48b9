// Work: the computation that a measurement puts behind communication, in equal small portions.
// Why three kernels: a progress thread costs a memory-bound computation something else than a
// compute-bound one. Each result is known, so no work can be dropped, and is checked untimed.
#pragma once

#include <memory>
#include <string>

namespace bench {

class Work {
 public:
  virtual ~Work() = default;
  virtual void run(long iterations) = 0;
  virtual bool correct() const = 0;  // of the last run
};

struct WorkChoice {
  std::string kernel = "gemm";  // gemv, gemm, stencil
  long working_set_bytes = 0;   // 0: the kernel's usual one
  std::string library;          // a library with the functions of weft_compute.h, instead
};

// Null: `problem` says why not. A library's weft_compute_init is called with rank and ranks.
std::unique_ptr<Work> make_work(const WorkChoice& choice, int rank, int ranks,
                                std::string* problem);

}  // namespace bench
