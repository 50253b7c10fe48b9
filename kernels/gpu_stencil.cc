// gpu_stencil: computes the mean of four neighbours on an N x N grid, whose rows are divided among
// the ranks' GPUs. The halo is exchanged in six ways. `default` synchronises device and host before
// each MPI call. `notify` starts the exchange and waits for it in the stream. `coop` does so within
// one cooperative kernel for all steps. `graphs` launches steps as a captured CUDA graph, in which
// the interior waits for no exchange. `acx` follows the pattern of MPI-ACX without Weft: the driver
// writes and waits for values in the stream, and a thread of the program makes the MPI calls.
// `nccl` exchanges by NCCL in such a graph, if each rank has a GPU. Project jh250041 found that
// graphs with notification are best.
// Usage: gpu_stencil [--order N] [--steps S] [--methods M,...] [--repetitions R] [--check]
// [--driver FILE] [--nccl FILE]
#include "gpu_stencil.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gpu_nccl.h"
#include "trials.h"

extern "C" {
extern const unsigned char weft_stencil_image[];
extern const bool weft_stencil_image_there;
}

namespace {

using namespace gpu;

constexpr unsigned kThreads = 256;

struct Settings {
  int order = 1024, steps = 100, repetitions = 5;
  std::string methods = "default,notify,coop,graphs,acx,nccl";
  std::string driver = "libcuda.so.1", nccl = "libnccl.so.2", json;
  bool check = false;
};

// Parses the command line. Returns false if it is wrong.
bool read(int argc, char** argv, Settings* settings) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--check") {
      settings->check = true;
      continue;
    }
    if (i + 1 == argc) return false;
    const char* const value = argv[++i];
    if (word == "--order") {
      settings->order = std::atoi(value);
    } else if (word == "--steps") {
      settings->steps = std::atoi(value);
    } else if (word == "--repetitions") {
      settings->repetitions = std::atoi(value);
    } else if (word == "--methods") {
      settings->methods = value;
    } else if (word == "--json") {
      settings->json = value;
    } else if (word == "--nccl") {
      settings->nccl = value;
    } else if (word == "--driver") {
      settings->driver = value;
    } else {
      return false;
    }
  }
  return settings->steps > 0 && settings->steps % 2 == 0 && settings->repetitions > 0;
}

class Grid {
 public:
  explicit Grid(const Settings& settings)
      : settings_(settings),
        columns_(settings.order),
        place_(weft_stencil_image),
        nccl_(settings.nccl, place_.is_alone()) {
    first_ = static_cast<int>(static_cast<long>(columns_) * rank / ranks);
    rows_ = static_cast<int>(static_cast<long>(columns_) * (rank + 1) / ranks) - first_;
    const int apart = 0;
    MPI_Cart_create(MPI_COMM_WORLD, 1, &ranks, &apart, 0, &line_);
    int blocks = 1;
    GPU_GOOD(cuOccupancyMaxActiveBlocksPerMultiprocessor, &blocks, all_, kThreads, 0);
    // All thread blocks of all ranks that share the device must run at the same time.
    const int places = place_.attribute(kProcessors) * blocks / place_.sharing();
    resident_blocks_ = static_cast<unsigned>(std::max(1, places));
    for (Address* one : {&a_, &b_}) good(cuMemAlloc_v2(one, bytes(rows_)), "cuMemAlloc");
    for (Address* one : {&halo_, &edge_}) good(cuMemAlloc_v2(one, bytes(2)), "cuMemAlloc");
    for (double** one : {&near_halo_, &near_edge_}) {
      void* memory = nullptr;
      good(cuMemHostAlloc(&memory, bytes(2), kMapped), "cuMemHostAlloc");
      *one = static_cast<double*>(memory);
    }
    // There are two exchanges: with buffers in device memory, and with buffers in host memory for
    // the cooperative kernel.
    weft_good(weft_neighbor_alltoall_init(pointer(edge_), columns_, MPI_DOUBLE, pointer(halo_),
                                          columns_, MPI_DOUBLE, line_, &exchange_));
    weft_good(weft_neighbor_alltoall_init(near_edge_, columns_, MPI_DOUBLE, near_halo_, columns_,
                                          MPI_DOUBLE, line_, &near_exchange_));
  }
  ~Grid() {
    good(cuStreamSynchronize(stream_), "cuStreamSynchronize");
    for (weft_gpu_request* one : {&exchange_, &near_exchange_}) weft_gpu_request_free(one);
    MPI_Comm_free(&line_);
  }
  Grid(const Grid&) = delete;
  Grid& operator=(const Grid&) = delete;

  void fill() {
    std::vector<double> halo;
    gpu::launch(fill_, blocks_for(rows_), kThreads, stream_, pointer(a_), first_, rows_, columns_);
    add_row(first_ - 1, &halo);
    add_row(first_ + rows_ < columns_ ? first_ + rows_ : -1, &halo);
    copy_to_device(halo_, halo.data(), bytes(2));
    std::copy(halo.begin(), halo.end(), near_halo_);
    synchronise(stream_);
  }

  // Returns what this method needs and lacks here; "" if it can run. All ranks get the same answer.
  std::string lacking(const std::string& method) const {
    if (method == "nccl" && !nccl_.is_there()) return "NCCL and a GPU for each of several ranks";
    const bool has_values = place_.attribute(kStreamValues) != 0;
    if (method == "acx" && total(!has_values) > 0) return "a device that has values in streams";
    return "";
  }

  // Carries out all steps, and returns their time in seconds.
  double run(const std::string& method) {
    void* exec = nullptr;
    if (method == "graphs") exec = two_steps([this] { exchange_by_weft(); });
    if (method == "nccl") exec = two_steps([this] { exchange_by_nccl(); });
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    if (method == "coop") {
      cooperative();
    } else if (method == "acx") {
      proxied();
    } else if (exec) {
      for (int i = 0; i < settings_.steps; i += 2)
        good(cuGraphLaunch(exec, stream_), "cuGraphLaunch");
    } else {
      for (int i = 0; i < settings_.steps; ++i) {
        method == "default" ? synchronised_step(i) : notifying_step(i);
      }
    }
    good(cuStreamSynchronize(stream_), "cuStreamSynchronize");
    const double took = MPI_Wtime() - begin;
    if (exec) good(cuGraphExecDestroy(exec), "cuGraphExecDestroy");
    return took;
  }

  // Returns how many values differ from those of the whole grid, which is computed here.
  long wrong() const {
    std::vector<double> grid, next, nothing(2 * static_cast<std::size_t>(columns_)), edge = nothing;
    for (int row = 0; row < columns_; ++row) add_row(row, &grid);
    next = grid;
    for (int i = 0; i < settings_.steps; ++i) {
      const Stencil all{grid.data(), next.data(), nothing.data(), edge.data(), columns_, columns_};
      stencil_share(all, 0, columns_, 0, 1);
      grid.swap(next);
    }
    std::vector<double> mine(static_cast<std::size_t>(rows_) * static_cast<std::size_t>(columns_));
    good(cuMemcpy(address_of(mine.data()), a_, bytes(rows_)),
         "cuMemcpy");  // the number of steps is even, so the result is in this array
    long count = 0;
    const double* const right = grid.data() + static_cast<long>(first_) * columns_;
    for (std::size_t i = 0; i < mine.size(); ++i) count += mine[i] != right[i];
    return count;
  }

  const std::string& device() const { return place_.name(); }

 private:
  static Address address_of(const void* memory) { return reinterpret_cast<Address>(memory); }
  static double* pointer(Address address) { return reinterpret_cast<double*>(address); }
  std::size_t bytes(int rows) const {
    return static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns_) * sizeof(double);
  }
  void add_row(int row, std::vector<double>* to) const {
    for (int column = 0; column < columns_; ++column) to->push_back(stencil_initial(row, column));
  }

  Stencil stencil(int step) const {
    const bool even = step % 2 == 0;
    return {pointer(even ? a_ : b_),
            pointer(even ? b_ : a_),
            pointer(halo_),
            pointer(edge_),
            columns_,
            rows_};
  }
  unsigned blocks_for(int rows) const {
    const long blocks = (static_cast<long>(rows) * columns_ + kThreads - 1) / kThreads;
    const long most = std::max<long>(1, resident_blocks_ - kBeside);
    return static_cast<unsigned>(std::clamp<long>(blocks, 1, most));
  }
  void launch(void* kernel, Stencil s, int rows) {
    gpu::launch(kernel, blocks_for(rows), kThreads, stream_, s);
  }

  void synchronised_step(int step) {
    launch(edges_, stencil(step), 2);
    launch(between_, stencil(step), rows_ - 2);
    good(cuStreamSynchronize(stream_), "cuStreamSynchronize");
    good(cuMemcpy(address_of(near_edge_), edge_, bytes(2)), "cuMemcpy");
    MPI_Neighbor_alltoall(near_edge_, columns_, MPI_DOUBLE, near_halo_, columns_, MPI_DOUBLE,
                          line_);
    good(cuMemcpy(halo_, address_of(near_halo_), bytes(2)), "cuMemcpy");
  }

  void notifying_step(int step) {
    launch(edges_, stencil(step), 2);
    weft_good(weft_start_enqueue(exchange_, stream_));
    launch(between_, stencil(step), rows_ - 2);
    weft_good(weft_wait_enqueue(exchange_, stream_));
  }

  // Runs in the program's thread (method acx): waits for the number that the stream writes, makes
  // the MPI calls, and writes the number back.
  void carry_out(std::uint64_t first, MPI_Request* messages) {
    for (std::uint64_t number = first; number < first + settings_.steps; ++number) {
      while (weft_device_load(ready_.host) < number) std::this_thread::yield();
      MPI_Startall(kMessages, messages);
      MPI_Waitall(kMessages, messages, MPI_STATUSES_IGNORE);
      weft_device_store(done_.host, number);
    }
  }

  void proxied() {
    int above = MPI_PROC_NULL, below = MPI_PROC_NULL;
    MPI_Cart_shift(line_, 0, 1, &above, &below);
    MPI_Request messages[kMessages];
    double *const edge = near_edge_, *const halo = near_halo_;
    MPI_Send_init(edge, columns_, MPI_DOUBLE, above, 1, line_, &messages[0]);
    MPI_Send_init(edge + columns_, columns_, MPI_DOUBLE, below, 0, line_, &messages[1]);
    MPI_Recv_init(halo, columns_, MPI_DOUBLE, above, 0, line_, &messages[2]);
    MPI_Recv_init(halo + columns_, columns_, MPI_DOUBLE, below, 1, line_, &messages[3]);
    const std::uint64_t first = started_ + 1;
    std::thread proxy([&] { carry_out(first, messages); });
    for (int step = 0; step < settings_.steps; ++step) {
      const Stencil now = stencil(step);
      launch(edges_, now, 2);
      GPU_GOOD(cuMemcpyAsync, address_of(near_edge_), edge_, bytes(2), stream_);
      GPU_GOOD(cuStreamWriteValue64_v2, stream_, address_of(ready_.device), ++started_, 0);
      launch(between_, now, rows_ - 2);
      GPU_GOOD(cuStreamWaitValue64_v2, stream_, address_of(done_.device), started_, 0);
      GPU_GOOD(cuMemcpyAsync, halo_, address_of(near_halo_), bytes(2), stream_);
    }
    proxy.join();
    for (MPI_Request& one : messages) MPI_Request_free(&one);
  }

  // Captures two steps as a graph. The interior of a step needs the edges of the step before, but
  // no halo. So it has a branch of its own, and only the next edges wait for the exchange.
  template <class Exchange>
  void* two_steps(const Exchange& exchange) {
    void *graph = nullptr, *exec = nullptr;
    good(cuStreamBeginCapture_v2(stream_, kThreadLocalCapture), "cuStreamBeginCapture");
    join(stream_, beside_, edges_done_);
    for (int step = 0; step < 2; ++step) {
      gpu::launch(between_, blocks_for(rows_ - 2), kThreads, beside_, stencil(step));
      launch(edges_, stencil(step), 2);
      join(stream_, beside_, edges_done_);
      exchange();
      join(beside_, stream_, between_done_);
    }
    good(cuStreamEndCapture(stream_, &graph), "cuStreamEndCapture");
    good(cuGraphInstantiateWithFlags(&exec, graph, 0), "cuGraphInstantiate");
    good(cuGraphDestroy(graph), "cuGraphDestroy");
    return exec;
  }

  void exchange_by_weft() {
    weft_good(weft_start_enqueue(exchange_, stream_));
    weft_good(weft_wait_enqueue(exchange_, stream_));
  }
  void exchange_by_nccl() {
    nccl_.exchange(pointer(edge_), pointer(halo_), static_cast<std::size_t>(columns_), stream_);
  }

  void cooperative() {
    Stencil s = stencil(0);
    Address halo = 0, edge = 0;
    good(cuMemHostGetDevicePointer_v2(&halo, near_halo_, 0), "cuMemHostGetDevicePointer");
    good(cuMemHostGetDevicePointer_v2(&edge, near_edge_, 0), "cuMemHostGetDevicePointer");
    s.halo = pointer(halo), s.edge = pointer(edge);
    weft_gpu_flags flags;
    weft_good(weft_gpu_flags_of(near_exchange_, &flags));
    int steps = settings_.steps;
    void* parameters[] = {&s, &steps, &flags};
    good(cuLaunchCooperativeKernel(all_, resident_blocks_, 1, 1, kThreads, 1, 1, 0, stream_,
                                   parameters),
         "cuLaunchCooperativeKernel");
  }

  static constexpr int kMessages = 4;
  // Thread blocks that are kept free for kernels that announce starts and wait for ends.
  static constexpr long kBeside = 2;

  const Settings& settings_;
  const int columns_;
  int first_ = 0, rows_ = 0;
  MPI_Comm line_ = MPI_COMM_NULL;
  const Device place_;
  const Nccl nccl_;
  const Stream stream_ = new_stream(), beside_ = new_stream();
  void *const edges_done_ = new_event(), *const between_done_ = new_event();
  void* const fill_ = place_.kernel("stencil_fill");
  void* const edges_ = place_.kernel("stencil_first_and_last");
  void* const between_ = place_.kernel("stencil_between");
  void* const all_ = place_.kernel("stencil_cooperative");
  unsigned resident_blocks_ = 1;
  Address a_ = 0, b_ = 0, halo_ = 0, edge_ = 0;
  double *near_halo_ = nullptr, *near_edge_ = nullptr;
  weft_gpu_request exchange_ = nullptr, near_exchange_ = nullptr;
  // Numbers of started and completed exchanges (method acx).
  const Mapped<std::uint64_t> ready_{1}, done_{1};
  std::uint64_t started_ = 0;
};

using trials::Words;

Words words_of(const std::string& list) {
  return trials::split(list, ',');
}

// Returns the slowest rank's time for a step in microseconds.
double time_of(Grid* grid, const std::string& method, const Settings& settings) {
  grid->fill();
  return slowest(grid->run(method)) / settings.steps * 1e6;
}

// Writes the times to the JSON file. `default` is named "blocking" there, as in other programs.
bool write(const Settings& settings, const std::vector<std::string>& methods,
           const std::vector<std::vector<double>>& times) {
  std::vector<trials::Variant> all;
  for (std::size_t i = 0; i < methods.size(); ++i) {
    const std::string name = methods[i] == "default" ? "blocking" : methods[i];
    all.push_back({.name = name, .engine = "", .samples_us = times[i], .shares = {0}});
  }
  const std::string order = std::to_string(settings.order);
  return trials::write_json(settings.json, "gpu_stencil", order + " x " + order, all);
}

// Returns the methods that can run here, and prints what the others need.
Words those_that_run(const Grid& grid, const Settings& settings) {
  Words found;
  for (const std::string& method : words_of(settings.methods)) {
    const std::string lacking = grid.lacking(method);
    if (lacking.empty()) found.push_back(method);
    if (rank == 0 && !lacking.empty()) {
      std::printf("%-8s left out: it needs %s\n", method.c_str(), lacking.c_str());
    }
  }
  return found;
}

int measure(const Settings& settings) {
  Grid grid(settings);
  if (rank == 0) {
    std::printf("%s, %d ranks, %d x %d, %d steps; microseconds for a step: median [all]\n",
                grid.device().c_str(), ranks, settings.order, settings.order, settings.steps);
  }
  const Words methods = those_that_run(grid, settings);
  if (methods.empty()) return kNoDevice;
  std::vector<std::vector<double>> times(methods.size());
  long wrong = 0;
  for (int repetition = 0; repetition <= settings.repetitions; ++repetition) {
    for (std::size_t i = 0; i < methods.size(); ++i) {
      const double time = time_of(&grid, methods[i], settings);
      if (repetition > 0) {
        times[i].push_back(time);
      } else if (settings.check) {  // the first repetition is a warm-up
        const long all = total(grid.wrong());
        if (rank == 0 && all > 0) std::printf("%s: %ld wrong values\n", methods[i].c_str(), all);
        wrong += all;
      }
    }
  }
  for (std::size_t i = 0; rank == 0 && i < methods.size(); ++i) {
    std::sort(times[i].begin(), times[i].end());
    std::printf("%-8s %9.2f [%.2f - %.2f]\n", methods[i].c_str(), times[i][times[i].size() / 2],
                times[i].front(), times[i].back());
  }
  if (rank == 0 && settings.check) std::printf("%ld wrong values\n", wrong);
  if (rank == 0 && !settings.json.empty() && !write(settings, methods, times)) {
    stop("cannot write " + settings.json);
  }
  return wrong > 0;
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  if (!read(argc, argv, &settings)) {
    std::fprintf(
        stderr,
        "usage: gpu_stencil [--order N] [--steps S (even)] [--repetitions R]"
        " [--methods default,notify,coop,graphs,acx,nccl] [--check] [--json FILE] [--driver FILE]"
        " [--nccl FILE]\n");
    return 2;
  }
  const Words known{"default", "notify", "coop", "graphs", "acx", "nccl"};
  for (const std::string& method : words_of(settings.methods)) {
    if (std::find(known.begin(), known.end(), method) == known.end()) {
      std::fprintf(stderr, "gpu_stencil: there is no method %s\n", method.c_str());
      return 2;
    }
  }
  begin(&argc, &argv, "gpu_stencil");
  std::string refused = load_driver(settings.driver, weft_stencil_image_there);
  int status = refused.empty() ? 0 : kNoDevice;
  if (settings.order < 2 * ranks) refused = "each rank needs two rows", status = 2;
  if (!refused.empty() && rank == 0) std::fprintf(stderr, "gpu_stencil: %s\n", refused.c_str());
  if (refused.empty()) status = measure(settings);
  MPI_Finalize();
  return status;
}
