// latency: measures the time of one collective call after the other, in each form, without
// computation. Jobs with and without Weft, or with two of Weft's settings, can take turns. Each
// sample is the slowest rank's mean over many calls. For each size the forms are sampled in turn,
// so that a change of the machine's state affects all of them.
// Two forms are not MPI calls, and say what the machine can do. "copy": all ranks copy as many
// bytes at the same time, each from one of its own buffers to another, by memcpy() or by a loop,
// whichever is faster. "line": two ranks each write a cache line and wait until they see the
// other's, whatever the size. "init" is one MPI_*_init, without freeing the request and without
// calls before it to warm up; with one sample it is the first of the job. The program prints "form
// bytes least median", with times in microseconds per call, one line for each form and size.
#include <mpi.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <memory_resource>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "operation.h"
#include "options.h"

namespace {

enum class Form : std::uint8_t { blocking, nonblocking, persistent, init, copy, line };
constexpr const char* kFormNames[] = {"blocking", "nonblocking", "persistent",
                                      "init",     "copy",        "line"};

const char* form_name(Form form) {
  return kFormNames[static_cast<std::size_t>(form)];
}

std::optional<Form> find_form(const std::string& name) {
  const auto* found = std::find(std::begin(kFormNames), std::end(kFormNames), name);
  if (found == std::end(kFormNames)) return std::nullopt;
  return static_cast<Form>(found - kFormNames);
}

struct Settings {
  bench::Collective collective = bench::Collective::allreduce;
  std::vector<long> bytes = {8};
  std::vector<Form> forms = {Form::blocking};
  bool shared_buffers = false;
  int samples = 9;
  double sample_ms = 10;
};

const char kUsage[] =
    "latency [--collective C] [--bytes N,N,...]\n"
    "        [--forms blocking,nonblocking,persistent,init,copy,line]\n"
    "        [--buffers private|shared (MPI_Alloc_mem)] [--samples 9] [--sample-ms 10]\n";

// Memory from MPI_Alloc_mem, which ranks share under Weft.
class MpiMemory final : public std::pmr::memory_resource {
  void* do_allocate(std::size_t bytes, std::size_t) override {
    void* memory = nullptr;
    if (MPI_Alloc_mem(static_cast<MPI_Aint>(bytes), MPI_INFO_NULL, &memory) != MPI_SUCCESS)
      throw std::bad_alloc();
    return memory;
  }
  void do_deallocate(void* memory, std::size_t, std::size_t) override { MPI_Free_mem(memory); }
  bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }
};

std::pmr::memory_resource* buffers(bool shared) {
  static MpiMemory mpi_memory;
  return shared ? &mpi_memory : std::pmr::get_default_resource();
}

bool set(Settings* settings, const std::string& name, const std::string& value) {
  if (name == "--collective") {
    const auto found = bench::find_collective(value);
    if (found) settings->collective = *found;
    return found.has_value();
  }
  if (name == "--bytes") {
    settings->bytes.clear();
    for (const auto& word : bench::list(value)) {
      const auto bytes = bench::size_in_bytes(word);
      if (!bytes || *bytes < 8) return false;
      settings->bytes.push_back(*bytes);
    }
    return !settings->bytes.empty();
  }
  if (name == "--forms") {
    settings->forms.clear();
    for (const auto& word : bench::list(value)) {
      const auto form = find_form(word);
      if (!form) return false;
      settings->forms.push_back(*form);
    }
    return !settings->forms.empty();
  }
  if (name == "--buffers") {
    settings->shared_buffers = value == "shared";
    return value == "shared" || value == "private";
  }
  const auto amount = bench::number(value, 1, 1e4);
  if (name == "--samples" && amount) settings->samples = static_cast<int>(*amount);
  if (name == "--sample-ms" && amount) settings->sample_ms = *amount;
  return amount && (name == "--samples" || name == "--sample-ms");
}

// Line: rank 0 and rank 1 each write to a cache line in shared memory, and wait until the other has
// written.
class Line {
 public:
  explicit Line(int rank) {
    const int taken = rank < 2 ? 1 : 0;
    MPI_Win_allocate_shared(taken * kBytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &own_, &window_);
    if (taken == 0) return;
    MPI_Aint bytes = 0;
    int unit = 0;
    MPI_Win_shared_query(window_, 1 - rank, &bytes, &unit, &other_);
    std::memset(own_, 0, kBytes);
  }
  ~Line() { MPI_Win_free(&window_); }
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;

  void exchange() {
    if (!other_) return;
    ++number_;
    std::atomic_ref(*own_).store(number_, std::memory_order_release);
    for (int looks = 1; std::atomic_ref(*other_).load(std::memory_order_acquire) < number_; ++looks)
      if (looks % kLooksBeforeYield == 0) sched_yield();
  }

 private:
  static constexpr int kBytes = 128;  // two cache lines, since processors fetch lines in pairs
  static constexpr int kLooksBeforeYield = 1000;

  MPI_Win window_ = MPI_WIN_NULL;
  std::uint64_t* own_ = nullptr;
  std::uint64_t* other_ = nullptr;
  std::uint64_t number_ = 0;
};

class Latency {
 public:
  Latency(const Settings& settings, Form form, long bytes, int rank, int ranks)
      : settings_(settings),
        form_(form),
        operation_(settings.collective, bytes, rank, ranks, buffers(settings.shared_buffers)) {
    operation_.prepare(1);
    if (form_ == Form::copy)
      to_ = from_ = std::vector<double>(static_cast<std::size_t>(bytes / 8), 1);
    if (form_ == Form::line && ranks > 1) line_.emplace(rank);
    if (form_ == Form::persistent) operation_.initialise(MPI_COMM_WORLD, &request_);
  }
  ~Latency() { free_request(); }

  void warm_up() {
    if (form_ == Form::init) return;
    double first_us = std::max(sample(8), 0.01);
    if (form_ == Form::copy) {
      by_loop_ = true;
      const double by_loop_us = sample(8);
      // Equal on all ranks, since sample() returns the slowest rank's time.
      by_loop_ = by_loop_us < first_us;
      first_us = std::min(first_us, by_loop_us);
    }
    calls_ = static_cast<int>(std::clamp(settings_.sample_ms * 1e3 / first_us, 4.0, 1e6));
    sample(calls_ / 4 + 1);
  }
  void add_sample() { times_us_.push_back(sample(calls_)); }

  Form form() const { return form_; }
  // least_us() and median_us() return times per call.
  double least_us() const { return *std::min_element(times_us_.begin(), times_us_.end()); }
  double median_us() const {
    std::vector<double> sorted = times_us_;
    std::sort(sorted.begin(), sorted.end());
    return sorted[sorted.size() / 2];
  }
  bool correct() const {
    const bool gives_result =
        form_ == Form::blocking || form_ == Form::nonblocking || form_ == Form::persistent;
    return !gives_result || operation_.correct();
  }

 private:
  void call() {
    if (form_ == Form::copy) return copy();
    if (form_ == Form::line) return line_ ? line_->exchange() : void();
    if (form_ == Form::blocking) return operation_.blocking(MPI_COMM_WORLD);
    if (form_ == Form::init) return operation_.initialise(MPI_COMM_WORLD, &request_);
    if (form_ == Form::persistent)
      MPI_Start(&request_);
    else
      operation_.start(MPI_COMM_WORLD, &request_);
    MPI_Wait(&request_, MPI_STATUS_IGNORE);
  }
  void copy() {
    if (by_loop_)
      // Other than a memcpy(), so that the compiler keeps the loop.
      for (std::size_t i = 0; i < to_.size(); ++i) to_[i] = from_[i] + 1;
    else
      std::memcpy(to_.data(), from_.data(), to_.size() * sizeof to_[0]);
    asm volatile("" : : "r"(to_.data()) : "memory");  // keeps the compiler from dropping the copy
  }
  void free_request() {
    if (request_ != MPI_REQUEST_NULL) MPI_Request_free(&request_);
  }
  double sample(int calls) {
    if (form_ == Form::init) free_request();
    PMPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    for (int i = 0; i < calls; ++i) call();
    const double own_us = (MPI_Wtime() - begin) * 1e6 / calls;
    double slowest_us = 0;
    PMPI_Allreduce(&own_us, &slowest_us, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return slowest_us;
  }

  const Settings& settings_;
  const Form form_;
  bench::Operation operation_;
  std::vector<double> from_, to_;
  bool by_loop_ = false;
  std::optional<Line> line_;
  MPI_Request request_ = MPI_REQUEST_NULL;
  int calls_ = 1;  // number of calls per sample
  std::vector<double> times_us_;
};

// Measures all forms for one size, and prints their times. Returns the number of forms whose
// results were wrong.
int measure(const Settings& settings, long bytes, int rank, int ranks) {
  std::vector<std::unique_ptr<Latency>> forms;
  for (const Form form : settings.forms) {
    forms.push_back(std::make_unique<Latency>(settings, form, bytes, rank, ranks));
    forms.back()->warm_up();
  }
  for (int i = 0; i < settings.samples; ++i)
    for (auto& form : forms) form->add_sample();
  int wrong = 0;
  for (const auto& form : forms) {
    wrong += !form->correct();
    if (rank == 0)
      std::printf("%s %ld %.4f %.4f\n", form_name(form->form()), bytes, form->least_us(),
                  form->median_us());
  }
  return wrong;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  Settings settings;
  for (int i = 1; i < argc; i += 2) {
    if (i + 1 < argc && set(&settings, argv[i], argv[i + 1])) continue;
    if (rank == 0) std::fprintf(stderr, "latency: cannot use '%s'\n%s", argv[i], kUsage);
    MPI_Finalize();
    return 2;
  }
  int wrong = 0;
  for (const long bytes : settings.bytes) wrong += measure(settings, bytes, rank, ranks);
  int wrong_anywhere = 0;
  PMPI_Allreduce(&wrong, &wrong_anywhere, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0 && wrong_anywhere) std::fprintf(stderr, "latency: wrong results\n");
  MPI_Finalize();
  return wrong_anywhere ? 1 : 0;
}
