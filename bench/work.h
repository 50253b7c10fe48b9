// Work: computation that runs beside communication, in small portions of equal length. There are
// several kernels, since a progress thread costs a memory-bound computation something else than a
// compute-bound one. Each result is known and checked outside the measured time, so the compiler
// can drop no work.
#pragma once

#include <memory>
#include <string>

namespace bench {

class Work {
 public:
  virtual ~Work() = default;
  virtual void run(long iterations) = 0;
  virtual bool correct() const = 0;  // whether the result of the last run is right
};

struct WorkChoice {
  std::string kernel = "gemm";  // gemv, gemm or stencil
  long working_set_bytes = 0;   // bytes of the working set; 0 for the kernel's usual one
  // Name of a library with the functions of weft_compute.h, to be used instead of a kernel.
  std::string library;
};

// Makes the work. Returns nullptr if that is impossible, and says why in *problem. rank and ranks
// are passed to the library's weft_compute_init.
std::unique_ptr<Work> make_work(const WorkChoice& choice, int rank, int ranks,
                                std::string* problem);

}  // namespace bench
