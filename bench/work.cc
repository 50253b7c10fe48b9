// Implements Work: matrix-vector and matrix-matrix products with a reflection, a stencil, and a
// library of the user. The reflection H = I - 2vv'/v'v is used because Hx has a closed form and HH
// is the identity. The stencil adds 1 to the mean of four neighbours of a linear field, so that
// after t sweeps the field is t higher.
#include "work.h"

#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace bench {
namespace {

constexpr long kMemoryBoundBytes = 32L << 20;  // more than a core's share of the last-level cache
// Three matrices of order 96, which fit into a core's own cache.
constexpr long kComputeBoundBytes = 216L << 10;
constexpr double kTolerance = 1e-8;

std::vector<double> reflection(long order) {
  std::vector<double> entries(order * order);
  double norm = 0;
  for (long i = 0; i < order; ++i) norm += (i + 1.0) * (i + 1.0);
  for (long row = 0; row < order; ++row) {
    for (long column = 0; column < order; ++column) {
      entries[row * order + column] =
          (row == column ? 1.0 : 0.0) - 2.0 * (row + 1.0) * (column + 1.0) / norm;
    }
  }
  return entries;
}

// Gemv: matrix times vector, row by row. It is memory-bound with its usual working set.
class Gemv : public Work {
 public:
  explicit Gemv(long bytes)
      : order_(std::max(16L, static_cast<long>(std::sqrt(static_cast<double>(bytes) / 8)) & ~7L)),
        portion_(std::max(1L, 4096 / order_)),
        matrix_(reflection(order_)),
        image_(order_) {
    for (long i = 0; i < order_; ++i) vector_.push_back(1.0 + static_cast<double>(i % 7));
    double along = 0, norm = 0;
    for (long i = 0; i < order_; ++i) {
      along += (i + 1.0) * vector_[i];
      norm += (i + 1.0) * (i + 1.0);
    }
    factor_ = 2.0 * along / norm;
  }

  void run(long iterations) override {
    done_ = std::min(order_, iterations * portion_);
    for (long left = iterations * portion_; left > 0; --left) {
      image_[next_] = row_times_vector(&matrix_[next_ * order_]);
      next_ = next_ + 1 == order_ ? 0 : next_ + 1;
    }
  }

  bool correct() const override {
    for (long i = 0, row = next_; i < done_; ++i) {
      row = row ? row - 1 : order_ - 1;
      const double expected = vector_[row] - factor_ * (row + 1.0);
      if (!(std::fabs(image_[row] - expected) < kTolerance)) return false;
    }
    return true;
  }

 private:
  double row_times_vector(const double* row) const {
    double sums[8] = {};  // eight sums, so that the compiler can vectorise the additions
    for (long i = 0; i < order_; i += 8) {
      for (int tag_range = 0; tag_range < 8; ++tag_range)
        sums[tag_range] += row[i + tag_range] * vector_[i + tag_range];
    }
    double sum = 0;
    for (const double part : sums) sum += part;
    return sum;
  }

  long order_, portion_, next_ = 0, done_ = 0;
  double factor_ = 0;
  std::vector<double> matrix_, vector_, image_;
};

// Gemm: matrix times matrix, row by row of the product. It is compute-bound.
class Gemm : public Work {
 public:
  explicit Gemm(long bytes)
      : order_(std::max(16L, static_cast<long>(std::sqrt(static_cast<double>(bytes) / 24)) & ~7L)),
        matrix_(reflection(order_)),
        product_(order_ * order_) {}

  void run(long iterations) override {
    done_ = std::min(order_, iterations);
    for (; iterations > 0; --iterations) {
      multiply(&matrix_[next_ * order_], &product_[next_ * order_]);
      next_ = next_ + 1 == order_ ? 0 : next_ + 1;
    }
  }

  bool correct() const override {
    for (long i = 0, row = next_; i < done_; ++i) {
      row = row ? row - 1 : order_ - 1;
      for (long column = 0; column < order_; ++column) {
        const double expected = row == column ? 1.0 : 0.0;
        if (!(std::fabs(product_[row * order_ + column] - expected) < kTolerance)) return false;
      }
    }
    return true;
  }

 private:
  void multiply(const double* __restrict left, double* __restrict out) const {
    std::fill(out, out + order_, 0.0);
    for (long k = 0; k < order_; ++k) {
      const double factor = left[k];
      const double* right = &matrix_[k * order_];
      for (long column = 0; column < order_; ++column) out[column] += factor * right[column];
    }
  }

  long order_, next_ = 0, done_ = 0;
  std::vector<double> matrix_, product_;
};

// Stencil: Jacobi sweeps of a five-point stencil, over the inner rows in turn. It is memory-bound.
class Stencil : public Work {
 public:
  explicit Stencil(long bytes)
      : order_(std::max(16L, static_cast<long>(std::sqrt(static_cast<double>(bytes) / 16)))),
        from_(order_ * order_),
        to_(order_ * order_) {
    for (long row = 0; row < order_; ++row) {
      for (long column = 0; column < order_; ++column) at(from_, row, column) = linear(row, column);
    }
    set_border();
  }

  void run(long iterations) override {
    done_ = std::min(order_ - 2, iterations);
    for (; iterations > 0; --iterations) {
      if (row_ == order_ - 1) next_sweep();
      sweep_row(&from_[row_ * order_], &to_[row_ * order_]);
      ++row_;
    }
  }

  bool correct() const override {
    const long first = std::max(1L, row_ - done_);
    for (long row = first; row < row_; ++row) {
      for (long column = 1; column < order_ - 1; ++column) {
        if (to_[row * order_ + column] != linear(row, column) + sweep_) return false;
      }
    }
    return true;
  }

 private:
  static double linear(long row, long column) { return static_cast<double>(row + 2 * column); }
  double& at(std::vector<double>& field, long row, long column) const {
    return field[row * order_ + column];
  }

  void set_border() {
    for (long i = 0; i < order_; ++i) {
      for (const long edge : {0L, order_ - 1}) {
        at(to_, edge, i) = linear(edge, i) + sweep_;
        at(to_, i, edge) = linear(i, edge) + sweep_;
      }
    }
  }

  void next_sweep() {
    from_.swap(to_);
    row_ = 1;
    sweep_ += 1;
    set_border();
  }

  void sweep_row(const double* __restrict middle, double* __restrict out) const {
    const double *above = middle - order_, *below = middle + order_;
    for (long column = 1; column < order_ - 1; ++column) {
      out[column] =
          0.25 * (above[column] + below[column] + middle[column - 1] + middle[column + 1]) + 1.0;
    }
  }

  long order_, row_ = 1, done_ = 0;
  double sweep_ = 1;
  std::vector<double> from_, to_;
};

class Library : public Work {
 public:
  bool open(const std::string& path, int rank, int ranks, std::string* problem) {
    void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
      *problem = dlerror();
      return false;
    }
    const auto init = reinterpret_cast<int (*)(int, int)>(dlsym(handle, "weft_compute_init"));
    run_ = reinterpret_cast<void (*)(long)>(dlsym(handle, "weft_compute_run"));
    check_ = reinterpret_cast<int (*)()>(dlsym(handle, "weft_compute_check"));
    if (!init || !run_ || !check_) {
      *problem = path + " must define weft_compute_init, _run and _check (see weft_compute.h)";
      return false;
    }
    const int status = init(rank, ranks);
    if (status != 0) *problem = path + ": weft_compute_init gave up: " + std::to_string(status);
    return status == 0;
  }
  void run(long iterations) override { run_(iterations); }
  bool correct() const override { return check_() == 0; }

 private:
  void (*run_)(long) = nullptr;
  int (*check_)() = nullptr;
};

}  // namespace

std::unique_ptr<Work> make_work(const WorkChoice& choice, int rank, int ranks,
                                std::string* problem) {
  if (!choice.library.empty()) {
    auto library = std::make_unique<Library>();
    if (!library->open(choice.library, rank, ranks, problem)) return nullptr;
    return library;
  }
  const auto bytes = [&](long usual) {
    return choice.working_set_bytes ? choice.working_set_bytes : usual;
  };
  if (choice.kernel == "gemv") return std::make_unique<Gemv>(bytes(kMemoryBoundBytes));
  if (choice.kernel == "gemm") return std::make_unique<Gemm>(bytes(kComputeBoundBytes));
  if (choice.kernel == "stencil") return std::make_unique<Stencil>(bytes(kMemoryBoundBytes));
  *problem = "unknown kernel '" + choice.kernel + "'; choose one of gemv, gemm, stencil";
  return nullptr;
}

}  // namespace bench
