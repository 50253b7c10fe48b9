// Measures a machine. Times are the best of many short samples, since other work on the machine
// only makes them longer. Rates are medians, which is what a program experiences.
#include "calibrate.h"

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "shm/reduction.h"
#include "topo/topology.h"

namespace weft::sim {
namespace {

constexpr int kSamples = 25;
// Bytes copied by one core; more than its own caches hold.
constexpr std::size_t kCopied_bytes = 8 << 20;

void bind_to(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

std::vector<double> sorted_samples(const std::function<double()>& sample) {
  std::vector<double> found;
  for (int i = 0; i < kSamples; ++i) found.push_back(sample());
  std::sort(found.begin(), found.end());
  return found;
}

double median(const std::function<double()>& sample) {
  return sorted_samples(sample)[kSamples / 2];
}

double microseconds(const std::function<void()>& work) {
  const auto begin = now_ns();
  work();
  return static_cast<double>(now_ns() - begin) / 1e3;
}

struct Buffers {
  std::vector<double> from = std::vector<double>(kCopied_bytes / sizeof(double), 1.0);
  std::vector<double> to = std::vector<double>(kCopied_bytes / sizeof(double), 2.0);
};

double copy_rate(Buffers& buffers) {
  constexpr auto bytes = static_cast<double>(kCopied_bytes);
  return bytes / microseconds([&] {
           std::memcpy(buffers.to.data(), buffers.from.data(), kCopied_bytes);
           asm volatile("" ::: "memory");
         });
}

// Reduces by the library's kernel, as ranks add received data; `also` gets the sums, too.
void reduce(const double* from, double* to, std::size_t count, double* also) {
  static const Kernel sum = find_kernel(Element::float64, Operator::sum);
  sum(from, to, to, also, static_cast<std::int64_t>(count));
}

double reduce_rate(Buffers& buffers) {
  constexpr auto bytes = static_cast<double>(kCopied_bytes);
  return bytes / microseconds([&] {
           reduce(buffers.from.data(), buffers.to.data(), buffers.to.size(), nullptr);
         });
}

// Returns the rate of a reduction that stores its result both in shared memory and in the core's
// own, part by part.
double reduce_copy_rate(Buffers& buffers) {
  constexpr auto bytes = static_cast<double>(kCopied_bytes);
  constexpr std::size_t kPart = (64 << 10) / sizeof(double);
  std::vector<double> part(kPart, 3.0);
  return bytes / microseconds([&] {
           for (std::size_t begin = 0; begin < buffers.to.size(); begin += kPart)
             reduce(&buffers.from[begin], part.data(), kPart, &buffers.to[begin]);
         });
}

// Returns the sum of the rates of all cores that copy at the same time.
double shared_copy_rate(const std::vector<int>& cpus) {
  std::atomic<int> ready{0};
  std::vector<double> rates(cpus.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < cpus.size(); ++i)
    threads.emplace_back([&, i] {
      bind_to(cpus[i]);
      Buffers buffers;
      ready.fetch_add(1);
      while (ready.load() < static_cast<int>(cpus.size())) sched_yield();
      rates[i] = median([&] { return copy_rate(buffers); });
    });
  for (auto& thread : threads) thread.join();
  double sum = 0;
  for (const double rate : rates) sum += rate;
  return sum;
}

void copy(const double* from, double* to, std::size_t count) {
  std::memcpy(to, from, count * sizeof(double));
  asm volatile("" ::: "memory");
}

void add(const double* from, double* to, std::size_t count) {
  reduce(from, to, count, nullptr);
}

// Returns the rate of copying data that another core has just written, as ranks do in shared
// memory.
double handed_over_rate(const std::vector<int>& cpus, std::size_t bytes,
                        void (*work)(const double*, double*, std::size_t)) {
  const std::size_t count = bytes / sizeof(double);
  std::vector<double> from(count, 1.0), to(count, 2.0);
  std::atomic<int> turn{0};
  std::thread other([&] {
    bind_to(cpus[1]);
    const std::vector<double> source(count, 3.0);
    for (int i = 0; i < kSamples; ++i) {
      while (turn.load() != 2 * i) sched_yield();
      copy(source.data(), from.data(), count);
      turn.store(2 * i + 1);
    }
  });
  std::vector<double> rates;
  std::thread([&] {
    bind_to(cpus[0]);
    for (int i = 0; i < kSamples; ++i) {
      while (turn.load() != 2 * i + 1) sched_yield();
      rates.push_back(static_cast<double>(bytes) /
                      microseconds([&] { work(from.data(), to.data(), count); }));
      turn.store(2 * i + 2);
    }
  }).join();
  other.join();
  std::sort(rates.begin(), rates.end());
  return rates[kSamples / 2];
}

// Finds the length up to which a reduction of data just written by another core differs from that
// of the core's own long data. It may be faster or slower, since some caches transfer modified
// lines slowly.
void measure_caches(Machine& machine, const std::vector<int>& cpus) {
  constexpr std::size_t kShort_bytes = 64 << 10, kMost_bytes = 4 << 20;
  machine.cache_copy = handed_over_rate(cpus, kShort_bytes, copy);
  machine.cache_reduce = handed_over_rate(cpus, kShort_bytes, add);
  machine.cache_bytes = 0;
  for (std::size_t bytes = kShort_bytes; bytes <= kMost_bytes; bytes *= 2) {
    const double rate = handed_over_rate(cpus, bytes, add);
    if (std::abs(rate - machine.cache_reduce) > std::abs(rate - machine.core_reduce)) break;
    machine.cache_bytes = static_cast<std::int64_t>(bytes);
  }
}

// Returns the time that a word takes from one thread to another. On a single CPU, the threads yield
// it to each other.
double way_us(int cpu_of_one, int cpu_of_other) {
  const bool yields = cpu_of_one == cpu_of_other;
  constexpr int kWays = 100;
  alignas(64) std::atomic<int> turn{0};
  const auto play = [&](int cpu, int own) {
    bind_to(cpu);
    for (int i = 0; i < kWays; ++i) {
      while (turn.load(std::memory_order_acquire) != 2 * i + own)
        if (yields) sched_yield();
      turn.store(2 * i + own + 1, std::memory_order_release);
    }
  };
  double us = 0;
  std::thread other([&] { play(cpu_of_other, 1); });
  std::thread one([&] { us = microseconds([&] { play(cpu_of_one, 0); }); });
  one.join();
  other.join();
  return us / (2 * kWays);
}

// Returns how long a computing thread keeps its core from a yielding one. Yields that return at
// once do not count, since no other thread had the core meanwhile.
double slice_us(int cpu) {
  constexpr double kAtOnce_us = 50;
  constexpr std::int64_t kSpan_ns = 1000000000;
  std::atomic<bool> over{false};
  std::thread computes([&] {
    bind_to(cpu);
    while (!over.load(std::memory_order_relaxed)) asm volatile("");
  });
  std::vector<double> found;
  std::thread([&] {
    bind_to(cpu);
    for (const auto begin = now_ns(); now_ns() - begin < kSpan_ns;) {
      const double us = microseconds([] { sched_yield(); });
      if (us > kAtOnce_us) found.push_back(us);
    }
    over.store(true);
  }).join();
  computes.join();
  if (found.empty()) return 0;
  std::sort(found.begin(), found.end());
  return found[found.size() / 2];
}

// Returns the time from notify to the woken thread's next instruction, as the lower quartile of the
// samples.
double wake_us(int cpu_of_sleeper, int cpu_of_waker) {
  constexpr int kTimes = 200;
  std::atomic<int> called{0};
  std::atomic<std::int64_t> woken_ns{0};
  std::thread sleeper([&] {
    bind_to(cpu_of_sleeper);
    for (int i = 0; i < kTimes; ++i) {
      called.wait(i);
      woken_ns.store(now_ns());
    }
  });
  std::vector<double> found;
  bind_to(cpu_of_waker);
  for (int i = 0; i < kTimes; ++i) {
    usleep(50);
    woken_ns.store(0);
    const auto before = now_ns();
    called.store(i + 1);
    called.notify_one();
    while (woken_ns.load() == 0) sched_yield();
    found.push_back(static_cast<double>(woken_ns.load() - before) / 1e3);
  }
  sleeper.join();
  std::sort(found.begin(), found.end());
  return found[found.size() / 4];
}

}  // namespace

Result<bool> calibrate(Machine& machine) {
  const auto topology = read_topology();
  std::vector<int> cpus = topology ? topology->cores() : allowed_cpus();
  if (cpus.empty()) return Error{"the CPUs that may be used cannot be read"};
  machine.cores = static_cast<int>(cpus.size());
  std::vector<int> first_domain{cpus.front()};
  machine.numa_nodes = 1;
  for (std::size_t i = 1; topology && i < cpus.size(); ++i) {
    if (topology->numa(cpus[i]) != topology->numa(cpus[i - 1])) ++machine.numa_nodes;
    if (machine.numa_nodes == 1) first_domain.push_back(cpus[i]);
  }
  std::thread([&] {
    bind_to(cpus[0]);
    Buffers buffers;
    machine.core_copy = median([&] { return copy_rate(buffers); });
    machine.core_reduce = median([&] { return reduce_rate(buffers); });
    machine.core_reduce_copy = median([&] { return reduce_copy_rate(buffers); });
  }).join();
  machine.numa_copy = std::max(machine.core_copy, shared_copy_rate(first_domain));
  if (const double us = slice_us(cpus[0]); us > 0) machine.slice_us = us;
  machine.switch_us = sorted_samples([&] { return way_us(cpus[0], cpus[0]); }).front();
  if (cpus.size() > 1) {
    measure_caches(machine, cpus);
    machine.cache_us = sorted_samples([&] { return way_us(cpus[0], cpus[1]); }).front();
    std::thread([&] { machine.wake_us = wake_us(cpus[1], cpus[0]); }).join();
  }
  return true;
}

}  // namespace weft::sim
