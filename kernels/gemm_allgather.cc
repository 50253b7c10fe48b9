// gemm_allgather: an Iallgather that overlaps with products of small matrices. The number of
// products is the same whatever the number of ranks, so a core that is given to progress threads
// computes none of them. It is the program with which jh250041 studied several progress threads on
// one core. Normal is the blocking form on all cores; Prog1, Prog2 and Prog4 have fewer ranks, and
// each remaining core has the threads of one, two or four ranks (weft run --placement pack:K).
// Source: Nanri et al., JHPCN jh250041, Topic 1, figures 1 to 4.
#include <mpi.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "trials.h"

namespace {

struct Settings {
  int bytes = 16, order = 16;
  int products = 0;  // products of all ranks together; 0 for as many as --ratio asks for
  double ratio = 1;  // time of the computation divided by that of the blocking communication
};

struct Case {
  const char* name;
  bool overlapped, calls;  // calls: whether the program itself tests the collective's request
};
const Case blocking = {"blocking", false, false};
const Case by_hand = {"overlapped by hand", true, true};
const Case overlapped = {"overlapped", true, false};

bool has_a_thread(const std::string& engine) {
  return engine != "native" && engine != "function";
}

// ---- The product --------------------------------------------------------------------------------

// Computes C += A B for square matrices, four rows (a panel) at a time. Values are whole numbers,
// so that any order of the additions gives the same bits.
class Product {
 public:
  explicit Product(int order)
      : order_((order + width - 1) / width * width),
        a_(area()),
        b_(area()),
        c_(area()),
        expected_(area()),
        times_(static_cast<std::size_t>(panels())) {
    for (int i = 0; i < order; ++i) {
      for (int k = 0; k < order; ++k) {
        a_[at(i, k)] = 1 + (i + 3 * k) % 7;
        b_[in_columns(i, k)] = 1 + (5 * i + k) % 9;
      }
    }
    for (int i = 0; i < order_; ++i) {
      for (int j = 0; j < order_; ++j) {
        for (int k = 0; k < order_; ++k) {
          expected_[at(i, j)] += a_[at(i, k)] * b_[in_columns(k, j)];
        }
      }
    }
  }
  int panels() const { return order_ / width; }

  void clear() {
    std::fill(c_.begin(), c_.end(), 0.0);
    std::fill(times_.begin(), times_.end(), 0);
  }
  void add_panel(int panel) {
    ++times_[static_cast<std::size_t>(panel)];
    const double* rows = a_.data() + at(panel * width, 0);
    for (int first = 0; first < order_; first += width) {
      const double* columns = b_.data() + in_columns(0, first);
      double sum[width][width] = {};
      for (int k = 0; k < order_; ++k) {
        for (int i = 0; i < width; ++i) {
          for (int j = 0; j < width; ++j)
            sum[i][j] += rows[i * order_ + k] * columns[k * width + j];
        }
      }
      double* out = c_.data() + at(panel * width, first);
      for (int i = 0; i < width; ++i) {
        for (int j = 0; j < width; ++j) out[i * order_ + j] += sum[i][j];
      }
    }
  }
  // Returns whether each panel is as many times the product, computed by its definition, as it was
  // added.
  bool right() const {
    for (int i = 0; i < order_; ++i) {
      for (int j = 0; j < order_; ++j) {
        const double times = times_[static_cast<std::size_t>(i / width)];
        if (c_[at(i, j)] != times * expected_[at(i, j)]) return false;
      }
    }
    return true;
  }
  // Returns how many panels were added since the last clear().
  std::int64_t added() const {
    return std::accumulate(times_.begin(), times_.end(), std::int64_t{0});
  }

 private:
  static constexpr int width = 4;
  std::size_t area() const { return static_cast<std::size_t>(order_) * order_; }
  std::size_t at(int row, int column) const {
    return static_cast<std::size_t>(row) * order_ + column;
  }
  // Returns the index of an element of B. Four columns lie interleaved, so that a panel reads B
  // from beginning to end.
  std::size_t in_columns(int row, int column) const {
    return static_cast<std::size_t>(column / width) * width * order_ + row * width + column % width;
  }

  int order_;
  std::vector<double> a_, b_, c_, expected_;
  std::vector<int> times_;
};

// ---- The program --------------------------------------------------------------------------------

class Program {
 public:
  explicit Program(const Settings& settings)
      : bytes_(settings.bytes),
        ranks_(trials::size_of(MPI_COMM_WORLD)),
        rank_(trials::rank_in(MPI_COMM_WORLD)),
        product_(settings.order),
        sent_(static_cast<std::size_t>(bytes_), mark(rank_)),
        received_(static_cast<std::size_t>(bytes_) * ranks_) {
    share(settings.products);
  }

  // Sets which panels of this many products this rank computes.
  void share(int products) {
    const std::int64_t all = std::int64_t{products} * product_.panels();
    first_ = all * rank_ / ranks_, last_ = all * (rank_ + 1) / ranks_;
  }
  void prepare() {
    product_.clear();
    std::fill(received_.begin(), received_.end(), 0);
  }
  bool right() const {
    for (int peer = 0; peer < ranks_; ++peer) {
      const auto from = received_.begin() + std::int64_t{peer} * bytes_;
      if (std::count(from, from + bytes_, mark(peer)) != bytes_) return false;
    }
    return product_.added() == last_ - first_ && product_.right();
  }

  void step(const Case& which, trials::Variant* variant) {
    if (!which.overlapped) {
      const double begin = MPI_Wtime();
      gather(variant->comm);
      variant->communicating_s += MPI_Wtime() - begin;
      multiply(nullptr);
      return;
    }
    MPI_Request request;
    MPI_Iallgather(sent_.data(), bytes_, MPI_CHAR, received_.data(), bytes_, MPI_CHAR,
                   variant->comm, &request);
    multiply(which.calls ? &request : nullptr);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }

  // Returns how many products take `ratio` times as long as the blocking collective, by rank 0's
  // clock.
  double products_for(double ratio, int pause_us, MPI_Comm comm) {
    const double gather_s = shortest_s(bytes_ < 4096 ? 51 : 9, pause_us, [&] { gather(comm); });
    int products = ranks_;
    double multiply_s = 0;
    for (;; products *= 2) {
      share(products);
      multiply_s = shortest_s(5, 0, [&] { multiply(nullptr); });
      if (multiply_s > 2e-3 || products > 1 << 26) break;
    }
    return std::max(1.0, std::round(products * ratio * gather_s / multiply_s));
  }

 private:
  static char mark(int rank) { return static_cast<char>(1 + rank * 7 % 100); }

  void gather(MPI_Comm comm) {
    MPI_Allgather(sent_.data(), bytes_, MPI_CHAR, received_.data(), bytes_, MPI_CHAR, comm);
  }
  // Computes this rank's panels. If `request` is given, it is tested after each panel.
  void multiply(MPI_Request* request) {
    int done = 0;
    for (std::int64_t panel = first_; panel < last_; ++panel) {
      product_.add_panel(static_cast<int>(panel % product_.panels()));
      if (request && !done) MPI_Test(request, &done, MPI_STATUS_IGNORE);
    }
  }
  // Returns the shortest of several times of the slowest rank, since other programs disturb it
  // least. All ranks get the same value.
  double shortest_s(int repetitions, int pause_us, const std::function<void()>& work) {
    double shortest = 1e9;
    for (int i = 0; i < repetitions; ++i) {
      if (pause_us) std::this_thread::sleep_for(std::chrono::microseconds(pause_us));
      MPI_Barrier(MPI_COMM_WORLD);
      const double begin = MPI_Wtime();
      work();
      double time = MPI_Wtime() - begin;
      MPI_Allreduce(MPI_IN_PLACE, &time, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
      shortest = std::min(shortest, time);
    }
    return shortest;
  }

  int bytes_, ranks_, rank_;
  Product product_;
  std::vector<char> sent_, received_;
  std::int64_t first_ = 0, last_ = 0;  // this rank's panels
};

int run(int argc, char** argv) {
  Settings settings;
  trials::Settings trial;
  trials::Options options;
  options.number("bytes", &settings.bytes);
  options.number("order", &settings.order, 1, 4096);
  options.number("products", &settings.products);
  options.real("ratio", &settings.ratio);
  trial.offer(&options);
  std::string wrong = options.read(argc, argv);
  if (wrong.empty() && 1.0 * settings.bytes * trials::size_of(MPI_COMM_WORLD) > 1 << 30) {
    wrong = "--bytes of all ranks together are more than 2^30: choose fewer";
  }
  if (wrong.empty()) wrong = trial.cannot_write();
  if (!wrong.empty()) return trials::refuse("gemm_allgather", wrong);

  std::vector<trials::Variant> all = {trials::variant("blocking", "", "native")};
  std::vector<Case> cases = {blocking};
  for (const std::string& engine : trial.engines) {
    cases.push_back(has_a_thread(engine) ? overlapped : by_hand);
    all.push_back(trials::variant(cases.back().name, engine));
  }
  Program program(settings);
  trial.amount = settings.products;
  if (!trial.amount) {
    const double wanted = program.products_for(settings.ratio, trial.pause_us, all[0].comm);
    if (wanted > 1 << 30) {
      return trials::refuse("gemm_allgather",
                            "--ratio asks for more than 2^30 products: choose a smaller one");
    }
    trial.amount = static_cast<int>(wanted);
    program.share(trial.amount);
  }
  const int failures = trials::measure(
      trial, &all, [&](trials::Variant&) { program.prepare(); },
      [&](trials::Variant& one) {
        program.step(cases[static_cast<std::size_t>(&one - all.data())], &one);
      },
      [&](trials::Variant&) { return program.right(); });
  char text[120];
  std::snprintf(text, sizeof text, "%d bytes, %d products of order %d", settings.bytes,
                trial.amount, settings.order);
  const int status = trials::report(trial, "gemm_allgather", text, all, failures);
  trials::release(&all);
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int status = run(argc, argv);
  MPI_Finalize();
  return status;
}
