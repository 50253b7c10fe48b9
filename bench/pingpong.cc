// pingpong: measures what messages between two ranks cost, for the simulator's description of a
// machine: the time one way, the processor time on each side, the length from which a send waits
// for its receive, and how much of a message is transferred while neither side progresses it. Rank
// 0 prints one JSON object. It is an ordinary MPI program, since messages must be sent as the MPI
// library sends them. All figures are medians.
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "options.h"

namespace {

struct Settings {
  std::vector<long> bytes = {8,      1024,   4096,   16384,   65536,   131072,
                             196608, 262144, 524288, 1048576, 2097152, 4194304};
  long core_bytes = 196608;
  int repetitions = 9;
  // Pause before each measurement, so that the token bucket of a rate limiter is full again.
  long pause_us = 15000;
};

constexpr int kTag = 1, kNeverSent = 2, kMessages = 64;
// Factor for the number of repetitions where a small difference of two long times is measured.
constexpr int kCoreTimes = 10;
constexpr double kChunk_us = 50;
constexpr char kUsage[] =
    "pingpong [--bytes 8,1MiB,...] [--core-bytes 192KiB] [--repetitions 9] [--pause-us 15000]\n";

bool set_sizes(std::vector<long>* sizes, const std::string& value) {
  sizes->clear();
  for (const auto& word : bench::list(value)) {
    const auto bytes = bench::size_in_bytes(word);
    if (!bytes || *bytes < 1 || *bytes > 1 << 30) return false;
    sizes->push_back(*bytes);
  }
  return !sizes->empty();
}

bool set(Settings* settings, const std::string& name, const std::string& value) {
  if (name == "--bytes") return set_sizes(&settings->bytes, value);
  if (name == "--core-bytes") {
    std::vector<long> one;
    if (!set_sizes(&one, value) || one.size() != 1) return false;
    settings->core_bytes = one.front();
    return true;
  }
  const auto number = bench::number(value, name == "--pause-us" ? 0 : 1, 1e6);
  if (!number) return false;
  if (name == "--repetitions") settings->repetitions = static_cast<int>(*number);
  if (name == "--pause-us") settings->pause_us = static_cast<long>(*number);
  return name == "--repetitions" || name == "--pause-us";
}

void pause_us(double us) {
  std::this_thread::sleep_for(std::chrono::microseconds(static_cast<long>(us)));
}

double now_us() {
  return MPI_Wtime() * 1e6;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

class PingPong {
 public:
  PingPong(const Settings& settings, int rank) : settings_(settings), rank_(rank) {
    const long most = std::max(settings.core_bytes,
                               *std::max_element(settings.bytes.begin(), settings.bytes.end()));
    buffer_.resize(static_cast<std::size_t>(most), 1);
    arrived_.resize(buffer_.size());
  }

  double one_way_us(long bytes) {
    return median_of([&] {
      const double begin = now_us();
      if (rank_ == 0) send(bytes);
      receive(bytes);
      if (rank_ == 1) send(bytes);
      return (now_us() - begin) / 2;
    });
  }

  // Returns the time of two messages at the same time, one in each direction.
  double exchange_us(long bytes) {
    return median_of([&] {
      const double begin = now_us();
      MPI_Request request = MPI_REQUEST_NULL;
      MPI_Irecv(arrived_.data(), static_cast<int>(bytes), MPI_BYTE, 1 - rank_, kTag, MPI_COMM_WORLD,
                &request);
      send(bytes);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      return now_us() - begin;
    });
  }

  // Measures short messages: the time between two of many (gap_us), the time of the call that sends
  // one, and that of the call that receives one which has already arrived.
  void short_messages(double* gap_us, double* send_us, double* receive_us) {
    std::vector<double> gaps, sends, receives;
    const double way_us = one_way_us(8);
    for (int i = 0; i < settings_.repetitions; ++i) {
      rest();
      const double begin = now_us();
      std::vector<MPI_Request> requests(kMessages);
      if (rank_ == 0) {
        for (auto& request : requests)
          MPI_Isend(buffer_.data(), 8, MPI_BYTE, 1, kTag, MPI_COMM_WORLD, &request);
        sends.push_back((now_us() - begin) / kMessages);
        MPI_Waitall(kMessages, requests.data(), MPI_STATUSES_IGNORE);
        receive(8);
        gaps.push_back(std::max(0.0, (now_us() - begin - 2 * way_us) / (kMessages - 1)));
      } else {
        for (int k = 0; k < kMessages; ++k) receive(8);
        send(8);
      }
    }
    for (int i = 0; i < settings_.repetitions; ++i) {
      rest();
      if (rank_ == 0)
        for (int k = 0; k < kMessages; ++k) send(8);
      if (rank_ != 1) continue;
      pause_us(2000 + kMessages * way_us);
      const double begin = now_us();
      for (int k = 0; k < kMessages; ++k) receive(8);
      receives.push_back((now_us() - begin) / kMessages);
    }
    *gap_us = shared(rank_ == 0 ? median(gaps) : 0, 0);
    *send_us = shared(rank_ == 0 ? median(sends) : 0, 0);
    *receive_us = shared(rank_ == 1 ? median(receives) : 0, 1);
  }

  // Returns the time of a test of a request that finds nothing.
  double poll_us() {
    MPI_Request request = never();
    const double found = median_of([&] {
      constexpr int kLooks = 1000;
      const double begin = now_us();
      for (int i = 0; i < kLooks; ++i) look(&request);
      return (now_us() - begin) / kLooks;
    });
    forget(&request);
    return found;
  }

  // Returns whether a send of this length completes before its receive is posted.
  bool is_eager(long bytes) {
    const double late_us = 5000 + 4 * one_way_us(bytes);
    int eager = 0;
    for (int i = 0; i < 3; ++i) {
      rest();
      if (rank_ == 1) pause_us(late_us);
      const double begin = now_us();
      if (rank_ == 0) {
        send(bytes);
        eager += now_us() - begin < late_us / 2;
      } else {
        receive(bytes);
      }
    }
    return shared(eager, 0) >= 2;
  }

  // Returns the processor time that a message takes from a computation which tests its request now
  // and then: on the sender and on the receiver.
  std::pair<double, double> core_us(long bytes) {
    const double span_us = 1.3 * one_way_us(bytes) + 2000;
    const long chunks = static_cast<long>(span_us / kChunk_us) + 1;
    std::vector<double> taken;
    for (int i = 0; i < kCoreTimes * settings_.repetitions; ++i) {
      const double without_us = compute_us(chunks, 0);
      taken.push_back(compute_us(chunks, bytes) - without_us);
    }
    const double own = median(taken);
    return {shared(own, 0), shared(own, 1)};
  }

  // Returns how long a message still takes after neither side has progressed it for twice its usual
  // time. begins: whether both sides progress it first until it has begun to move.
  double left_us(long bytes, bool begins) {
    const double way_us = one_way_us(bytes);
    const double begun_us = begins ? 0.05 * way_us + 500 : 0;
    return median_of([&] {
      MPI_Request request = begin_transfer(bytes);
      int over = 0;
      for (const double begin = now_us(); begins && now_us() - begin < begun_us && !over;)
        MPI_Test(&request, &over, MPI_STATUS_IGNORE);
      pause_us(2 * way_us);
      const double begin = now_us();
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      return now_us() - begin;
    });
  }

  // Finds how many rounds of work() take kChunk_us, for core_us().
  void find_work() {
    constexpr long kTry = 1000000;
    std::vector<double> times;
    for (int i = 0; i < 9; ++i) {
      const double begin = now_us();
      work(kTry);
      times.push_back(now_us() - begin);
    }
    work_ = std::max(1L, static_cast<long>(kTry * kChunk_us / median(times)));
  }

 private:
  void send(long bytes) {
    MPI_Send(buffer_.data(), static_cast<int>(bytes), MPI_BYTE, 1 - rank_, kTag, MPI_COMM_WORLD);
  }
  void receive(long bytes) {
    MPI_Recv(buffer_.data(), static_cast<int>(bytes), MPI_BYTE, 1 - rank_, kTag, MPI_COMM_WORLD,
             MPI_STATUS_IGNORE);
  }
  void rest() {
    if (settings_.pause_us) pause_us(static_cast<double>(settings_.pause_us));
    MPI_Barrier(MPI_COMM_WORLD);
  }
  // Returns the median over all repetitions of the slower rank's time. Ranks 0 and 1 get the same
  // value.
  double median_of(const std::function<double()>& sample) {
    std::vector<double> found;
    for (int i = 0; i <= settings_.repetitions; ++i) {
      rest();
      const double own = sample();
      double most = 0;
      MPI_Allreduce(&own, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
      if (i > 0) found.push_back(most);
    }
    return median(found);
  }
  static double shared(double value, int root) {
    MPI_Bcast(&value, 1, MPI_DOUBLE, root, MPI_COMM_WORLD);
    return value;
  }

  MPI_Request never() {
    MPI_Request request;
    MPI_Irecv(&unused_, 1, MPI_BYTE, 1 - rank_, kNeverSent, MPI_COMM_WORLD, &request);
    return request;
  }
  static void forget(MPI_Request* request) {
    MPI_Cancel(request);
    MPI_Wait(request, MPI_STATUS_IGNORE);
  }
  static bool look(MPI_Request* request) {
    int over = 0;
    MPI_Test(request, &over, MPI_STATUS_IGNORE);
    return over != 0;
  }
  MPI_Request begin_transfer(long bytes) {
    MPI_Request request;
    const int count = static_cast<int>(bytes);
    if (rank_ == 0)
      MPI_Isend(buffer_.data(), count, MPI_BYTE, 1, kTag, MPI_COMM_WORLD, &request);
    else
      MPI_Irecv(buffer_.data(), count, MPI_BYTE, 0, kTag, MPI_COMM_WORLD, &request);
    return request;
  }
  static void work(long rounds) {
    for (long i = 0; i < rounds; ++i) asm volatile("" : "+r"(i));
  }
  // Returns the time of a computation that tests the request of a message now and then. With bytes
  // 0 there is no message, and it tests a request that never completes.
  double compute_us(long chunks, long bytes) {
    MPI_Request idle = never(), moving = MPI_REQUEST_NULL;
    rest();
    const double begin = now_us();
    bool over = bytes == 0;
    if (!over) moving = begin_transfer(bytes);
    for (long i = 0; i < chunks; ++i) {
      work(work_);
      if (over)
        look(&idle);
      else
        over = look(&moving);
    }
    const double took_us = now_us() - begin;
    if (!over) MPI_Wait(&moving, MPI_STATUS_IGNORE);
    forget(&idle);
    return took_us;
  }

  const Settings& settings_;
  const int rank_;
  std::vector<char> buffer_, arrived_;
  char unused_ = 0;
  long work_ = 1;
};

void print_pairs(const char* name, const std::vector<std::vector<double>>& rows) {
  std::printf(",\n \"%s\": [", name);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::printf("%s[", i ? ", " : "");
    for (std::size_t k = 0; k < rows[i].size(); ++k) std::printf(k ? ", %.3f" : "%.0f", rows[i][k]);
    std::printf("]");
  }
  std::printf("]");
}

void measure(const Settings& settings, int rank) {
  PingPong pair(settings, rank);
  pair.find_work();
  std::vector<std::vector<double>> ways, exchanges;
  for (const long bytes : settings.bytes)
    ways.push_back({static_cast<double>(bytes), pair.one_way_us(bytes)});
  for (const long bytes : settings.bytes)
    exchanges.push_back({static_cast<double>(bytes), pair.exchange_us(bytes)});
  double gap_us = 0, send_us = 0, receive_us = 0;
  pair.short_messages(&gap_us, &send_us, &receive_us);
  const double poll_us = pair.poll_us();
  // Sizes are doubled until a send waits for its receive; then the limit is found to 1 part in 16.
  long eager = 0, waits = 0;
  for (long bytes = 1024; bytes <= settings.bytes.back() && !waits; bytes *= 2)
    (pair.is_eager(bytes) ? eager : waits) = bytes;
  while (waits && eager && (waits - eager) * 16 > eager) {
    const long between = (eager + waits) / 2;
    (pair.is_eager(between) ? eager : waits) = between;
  }
  const auto [sender, receiver] = pair.core_us(settings.core_bytes);
  const long longest = settings.bytes.back();
  const double left_us = pair.left_us(longest, true);
  const double unlooked_us = pair.left_us(longest, false);
  if (rank != 0) return;
  std::printf("{\"gap_us\": %.3f, \"send_us\": %.3f, \"receive_us\": %.3f, \"poll_us\": %.4f,\n",
              gap_us, send_us, receive_us, poll_us);
  std::printf(" \"eager_bytes\": %ld, \"left_us\": %.3f, \"unlooked_us\": %.3f,\n", eager, left_us,
              unlooked_us);
  std::printf(" \"core_bytes\": %ld, \"sender_core_us\": %.3f, \"receiver_core_us\": %.3f",
              settings.core_bytes, sender, receiver);
  print_pairs("one_way", ways);
  print_pairs("exchange", exchanges);
  std::printf("}\n");
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  Settings settings;
  for (int i = 1; i < argc; i += 2) {
    if (i + 1 < argc && set(&settings, argv[i], argv[i + 1])) continue;
    if (rank == 0) std::fprintf(stderr, "pingpong: cannot use '%s'\n%s", argv[i], kUsage);
    MPI_Finalize();
    return 2;
  }
  if (ranks == 2) measure(settings, rank);
  if (ranks != 2 && rank == 0)
    std::fprintf(stderr, "pingpong: needs 2 ranks, not %d; start it with mpiexec -n 2\n", ranks);
  MPI_Finalize();
  return ranks == 2 ? 0 : 2;
}
