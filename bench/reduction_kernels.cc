// Measures the sum of doubles by the reduction kernel of each instruction set, besides memcpy and a
// plain loop that is compiled with this file's flags. It counts the bytes read and written: 24 per
// element, 16 for memcpy. Results should be compared within one run, interleaved:
//   build/bench/weft_reduction_kernels --benchmark_enable_random_interleaving=true
//     --benchmark_repetitions=9 --benchmark_report_aggregates_only=true
#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string>

#include "base/buffer_pool.h"
#include "shm/reduction.h"

namespace weft {
namespace {

void plain_loop(const void* lower, const void* higher, void* out, std::int64_t count) {
  const auto* a = static_cast<const double*>(lower);
  const auto* b = static_cast<const double*>(higher);
  auto* result = static_cast<double*>(out);
  for (std::int64_t i = 0; i < count; ++i) result[i] = a[i] + b[i];
}

void copy(const void*, const void* higher, void* out, std::int64_t count) {
  std::memcpy(out, higher, static_cast<std::size_t>(count) * sizeof(double));
}

void measure(benchmark::State& state, Kernel kernel, std::int64_t bytes_per_element) {
  const std::int64_t count = state.range(0) / static_cast<std::int64_t>(sizeof(double));
  BufferPool pool;
  std::array<double*, 3> vectors;
  for (double*& vector : vectors) {
    vector = reinterpret_cast<double*>(pool.take(state.range(0)));
    std::fill_n(vector, count, 1.0);
  }
  for (auto _ : state) {
    kernel(vectors[0], vectors[1], vectors[2], nullptr, count);
    benchmark::ClobberMemory();
  }
  for (double* vector : vectors)
    pool.give_back(reinterpret_cast<std::byte*>(vector), state.range(0));
  state.SetBytesProcessed(state.iterations() * count * bytes_per_element);
}

void add(const std::string& name, Kernel kernel, std::int64_t bytes_per_element = 24) {
  if (!kernel) return;
  auto* entry = benchmark::RegisterBenchmark(name.c_str(), measure, kernel, bytes_per_element);
  for (const std::int64_t bytes : {4 << 10, 64 << 10, 1 << 20, 8 << 20}) entry->Arg(bytes);
}

}  // namespace
}  // namespace weft

int main(int argc, char** argv) {
  using weft::Element, weft::InstructionSet, weft::Operator;
  const auto sum = [](InstructionSet set) {
    return weft::find_kernel(Element::float64, Operator::sum, set);
  };
  weft::add("memcpy", weft::copy, 16);
  weft::add("plain_loop", weft::plain_loop);
  weft::add("sum/baseline", sum(InstructionSet::baseline));
  weft::add("sum/avx2", sum(InstructionSet::avx2));
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
}
