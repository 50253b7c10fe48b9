// gemv_alltoall: one or several Ialltoalls that overlap with a matrix-vector product, whose rows
// are divided among ranks and threads; one thread fewer computes if a core is left to the engine's
// thread. It is the program with which threaded collective communication (TCC) was compared with
// progress functions and threads. The MPI library is called once per row, once per 512 columns, or
// never. Source: Okuma, Nanri, "Performance Study of Non-blocking Collective Communication
// Implementations Toward Adaptive Selection".
#include <mpi.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "trials.h"

namespace {

struct Settings {
  int order = 2000, bytes = 1000000, in_flight = 1, threads = 1;
};

constexpr int columns_between_calls = 512;

// Says when the progress function is called: never, once per row, or within rows.
enum class Calls { never, per_row, per_columns };

struct Case {
  const char* name;
  bool overlapped;
  Calls calls;
};

// The cases for engines without a thread. Engines with a thread have only the case "overlapped".
const Case cases[] = {{"started, waited for", false, Calls::never},
                      {"overlapped, no calls", true, Calls::never},
                      {"overlapped, call per row", true, Calls::per_row},
                      {"overlapped, inner calls", true, Calls::per_columns}};
const Case blocking = {"blocking", false, Calls::never};
const Case overlapped = {"overlapped", true, Calls::never};
// The case in which all engines use Weft's linear algorithm; TCC otherwise uses the MPI library's
// collective.
const Case one_algorithm = {"linear", true, Calls::never};

bool has_a_thread(const std::string& engine) {
  return engine != "native" && engine != "function";
}

bool carries_both(const std::string& engine) {
  return engine == "thread" || engine == "tcc";
}

trials::Variant by_one_algorithm(const std::string& engine) {
  trials::Variant made{one_algorithm.name, engine};
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "weft_engine", engine.c_str());
  MPI_Info_set(info, "weft_algorithm", "alltoall=linear");
  MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &made.comm);
  MPI_Info_free(&info);
  return made;
}

class Program {
 public:
  explicit Program(const Settings& settings)
      : settings_(settings),
        ranks_(trials::size_of(MPI_COMM_WORLD)),
        rank_(trials::rank_in(MPI_COMM_WORLD)) {
    const auto first = [&](int rank) {
      return static_cast<int>(static_cast<std::int64_t>(settings.order) * rank / ranks_);
    };
    first_ = first(rank_), rows_ = first(rank_ + 1) - first_;
    matrix_.reserve(static_cast<std::size_t>(rows_) * static_cast<std::size_t>(settings.order));
    for (int row = 0; row < rows_; ++row) {
      for (int column = 0; column < settings.order; ++column) matrix_.push_back(entry(row, column));
    }
    for (int column = 0; column < settings.order; ++column) vector_.push_back(element(column));
    result_.resize(static_cast<std::size_t>(rows_));
    block_ = std::max(1, settings.bytes / ranks_);
    const auto length = static_cast<std::size_t>(block_) * static_cast<std::size_t>(ranks_);
    sent_.assign(static_cast<std::size_t>(settings.in_flight), std::vector<char>(length));
    received_ = sent_;
    for (std::size_t k = 0; k < sent_.size(); ++k) {
      for (int peer = 0; peer < ranks_; ++peer) {
        std::fill_n(sent_[k].begin() + peer * block_, block_, mark(rank_, peer, k));
      }
    }
  }

  void prepare() {
    std::fill(result_.begin(), result_.end(), 0.0);
    for (std::vector<char>& one : received_) std::fill(one.begin(), one.end(), 0);
  }

  void step(const Case& which, trials::Variant* variant) {
    const int threads =
        std::max(1, settings_.threads - (has_a_thread(variant->engine) && which.overlapped));
    if (which.name == blocking.name) {
      const double begin = MPI_Wtime();
      for (std::size_t k = 0; k < sent_.size(); ++k) {
        MPI_Alltoall(sent_[k].data(), block_, MPI_CHAR, received_[k].data(), block_, MPI_CHAR,
                     variant->comm);
      }
      variant->communicating_s += MPI_Wtime() - begin;
      multiply(Calls::never, threads);
      return;
    }
    requests_.resize(sent_.size());
    for (std::size_t k = 0; k < sent_.size(); ++k) {
      MPI_Ialltoall(sent_[k].data(), block_, MPI_CHAR, received_[k].data(), block_, MPI_CHAR,
                    variant->comm, &requests_[k]);
    }
    if (!which.overlapped) wait();
    multiply(which.calls, threads);
    wait();
  }

  // Returns whether the right data were received.
  bool right() const {
    for (std::size_t k = 0; k < received_.size(); ++k) {
      for (int peer = 0; peer < ranks_; ++peer) {
        const char* from = received_[k].data() + peer * block_;
        if (std::count(from, from + block_, mark(peer, rank_, k)) != block_) return false;
      }
    }
    return true;
  }
  const std::vector<double>& result() const { return result_; }
  // Returns whether the result equals the product, computed by its definition.
  bool result_is_the_product() const {
    for (int row = 0; row < rows_; ++row) {
      double sum = 0;
      for (int column = 0; column < settings_.order; ++column) {
        sum += entry(row, column) * element(column);
      }
      if (!(std::fabs(result_[static_cast<std::size_t>(row)] - sum) <= 1e-10 * sum)) return false;
    }
    return true;
  }

 private:
  // entry() returns an element of the matrix, in a row of this rank; element() returns one of the
  // vector.
  double entry(int row, int column) const {
    return 1.0 / static_cast<double>(
                     1 + (static_cast<std::int64_t>(first_ + row) * settings_.order + column) % 97);
  }
  static double element(int column) { return 1 + column % 13; }
  static char mark(int from, int to, std::size_t k) {
    return static_cast<char>(1 + (from * 31 + to * 7 + static_cast<int>(k)) % 100);
  }
  void wait() {
    MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE);
  }
  // Calls the progress function, which is MPI_Testall here.
  void call() {
    int done = 0;
    MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &done, MPI_STATUSES_IGNORE);
  }

  // Computes the product, with the rows divided among `threads` threads. Only the first one may
  // call MPI.
  void multiply(Calls calls, int threads) {
#pragma omp parallel for num_threads(threads) schedule(static, 1)
    for (int t = 0; t < threads; ++t) {
      const int first = static_cast<int>(static_cast<std::int64_t>(rows_) * t / threads);
      const int last = static_cast<int>(static_cast<std::int64_t>(rows_) * (t + 1) / threads);
      for (int row = first; row < last; ++row) multiply_row(row, t == 0 ? calls : Calls::never);
    }
  }
  void multiply_row(int row, Calls calls) {
    const double* a = matrix_.data() + static_cast<std::size_t>(row) * vector_.size();
    double sum = 0;
    for (int first = 0; first < settings_.order; first += columns_between_calls) {
      const int last = std::min(settings_.order, first + columns_between_calls);
      double four[4] = {0, 0, 0, 0};
      for (int column = first; column < last; ++column) {
        four[column & 3] += a[column] * vector_[static_cast<std::size_t>(column)];
      }
      sum += (four[0] + four[1]) + (four[2] + four[3]);
      if (calls == Calls::per_columns) call();
    }
    result_[static_cast<std::size_t>(row)] = sum;
    if (calls == Calls::per_row) call();
  }

  Settings settings_;
  int ranks_, rank_, first_ = 0, rows_ = 0, block_ = 0;
  std::vector<double> matrix_, vector_, result_;
  std::vector<std::vector<char>> sent_, received_;
  std::vector<MPI_Request> requests_;
};

int run(int argc, char** argv) {
  Settings settings;
  trials::Settings trial;
  trials::Options options;
  options.number("order", &settings.order, 1, 1 << 17);
  options.number("bytes", &settings.bytes);
  options.number("in-flight", &settings.in_flight, 1, 64);
  options.number("threads", &settings.threads, 1, 1024);
  trial.offer(&options);
  trial.offer_form(&options);
  std::string wrong = options.read(argc, argv);
#ifndef _OPENMP
  if (wrong.empty() && settings.threads > 1) {
    wrong = "this build has no threads: its compiler lacks OpenMP; leave out --threads";
  }
#endif
  if (wrong.empty() && settings.order < trials::size_of(MPI_COMM_WORLD)) {
    wrong = "a matrix of order " + std::to_string(settings.order) +
            " has fewer rows than there are ranks: choose a larger --order";
  }
  if (wrong.empty()) {
    const double matrix = 8.0 * settings.order * settings.order / trials::size_of(MPI_COMM_WORLD);
    wrong = trials::more_than_memory(matrix + 2.0 * settings.in_flight * settings.bytes,
                                     "choose fewer --bytes, or a smaller --order");
  }
  if (wrong.empty()) wrong = trial.cannot_write();
  if (!wrong.empty()) return trials::refuse("gemv_alltoall", wrong);

  std::vector<trials::Variant> all;
  std::vector<Case> which;
  if (trial.has_blocking()) {
    all.push_back(trials::variant("blocking", "", trial.hint_of_blocking()));
    which.push_back(blocking);
  }
  for (const std::string& engine : trial.engines) {
    if (!trial.has_overlapped()) break;
    for (const Case& one : cases) {
      if (has_a_thread(engine)) break;
      which.push_back(one), all.push_back(trials::variant(one.name, engine));
    }
    if (!has_a_thread(engine)) continue;
    which.push_back(overlapped), all.push_back(trials::variant(overlapped.name, engine));
    if (!carries_both(engine)) continue;
    which.push_back(one_algorithm), all.push_back(by_one_algorithm(engine));
  }
  Program program(settings);
  program.step(blocking, &all[0]);
  const std::vector<double> first = program.result();
  const bool first_is_right = program.result_is_the_product();
  const int failures = trials::measure(
      trial, &all, [&](trials::Variant&) { program.prepare(); },
      [&](trials::Variant& one) {
        program.step(which[static_cast<std::size_t>(&one - all.data())], &one);
      },
      [&](trials::Variant& one) {
        const bool same = program.result() == first;
        trials::compare_bits(&one, same);
        return first_is_right && same && program.right();
      });
  char text[120];
  std::snprintf(text, sizeof text, "order %d, %d bytes, %d in flight, %d threads", settings.order,
                settings.bytes, settings.in_flight, settings.threads);
  const int status = trials::report(trial, "gemv_alltoall", text, all, failures);
  trials::release(&all);
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  int level = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
  const int status = run(argc, argv);
  MPI_Finalize();
  return status;
}
