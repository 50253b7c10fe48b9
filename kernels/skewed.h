// skewed.h: a generated tensor with the statistics of a real one, NELL-2 of FROSTT (nouns, verbs,
// nouns): most of its slices have few entries and some have very many, these lie anywhere among
// them, and the entries of a slice come in fibres. Why: which rows ranks exchange, and so how long
// each of their messages is, depends on these statistics, and the tensor's file has 1.5 GB.
// Source of the figures: Torun, Taweel, Unat, "A sparse tensor generator with efficient feature
// extraction", arXiv:2405.04944 (generate_real_tensor_siblings.sh of their GenTensor).
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "tensor.h"

namespace skewed {

using tensor::at;
using tensor::random_at;

const std::vector<int> dimensions = {12092, 9184, 28818};
constexpr double density = 2.40224e-5;        // share of the places that have an entry
constexpr double fibre_density = 3.03788e-3;  // share of the last mode's fibres that have one
// Standard deviations divided by means: of fibres in a slice, and of entries in a fibre.
constexpr double fibres_vary = 3.33216, entries_vary = 0.891844;

constexpr std::uint64_t rows_stream = 3000, lengths_stream = 3100, last_stream = 3200;
constexpr std::uint64_t values_stream = 3300, weights_stream = 3400;
constexpr std::uint64_t most_in_fibre = 1 << 20;
constexpr double most_entries = 1 << 26;
constexpr double two_pi = 6.283185307179586;

// A number of the normal distribution that depends on its arguments alone (Box and Muller).
inline double normal_at(std::uint64_t stream, std::uint64_t number) {
  const double radius = std::sqrt(-2 * std::log(1 - random_at(stream, 2 * number)));
  return radius * std::cos(two_pi * random_at(stream, 2 * number + 1));
}

// Standard deviation divided by mean, of exp(spread * x) for these x.
inline double variation(const std::vector<double>& normals, double spread) {
  double sum = 0, squares = 0;
  for (const double x : normals) {
    const double weight = std::exp(spread * x);
    sum += weight, squares += weight * weight;
  }
  return std::sqrt(std::max(0.0, squares * static_cast<double>(normals.size()) / (sum * sum) - 1));
}

// The sums of the weights of a mode's rows before each row. A weight is exp(s * x) of a normal x;
// s is such that the weights of these rows vary as the real tensor's slices, or as much as so few
// rows can.
inline std::vector<double> weights_before(int mode, int rows) {
  std::vector<double> normals;
  for (int row = 0; row < rows; ++row) {
    normals.push_back(normal_at(weights_stream + at(mode), at(row)));
  }
  double low = 0, high = 8;
  for (int step = 0; step < 30; ++step) {
    const double middle = (low + high) / 2;
    (variation(normals, middle) < fibres_vary ? low : high) = middle;
  }
  std::vector<double> before = {0};
  for (const double x : normals) before.push_back(before.back() + std::exp(low * x));
  return before;
}

// The row that a number from 0 to 1 falls to.
inline int row_of(const std::vector<double>& before, double number) {
  const auto next = std::upper_bound(before.begin() + 1, before.end() - 1, number * before.back());
  return static_cast<int>(next - before.begin()) - 1;
}

// The number of entries of a fibre, of the log-normal distribution.
inline std::uint64_t length_of(std::uint64_t fibre, double mean) {
  const double square = std::log(1 + entries_vary * entries_vary);
  const double length =
      mean * std::exp(std::sqrt(square) * normal_at(lengths_stream, fibre) - square / 2);
  return static_cast<std::uint64_t>(
      std::clamp(std::round(length), 1.0, static_cast<double>(most_in_fibre - 1)));
}

inline double entries_of_fibre(const std::vector<int>& extents) {
  return std::max(1.0, density / fibre_density * extents.back());
}

// As many entries as the real tensor's density gives.
inline int entries_of(const std::vector<int>& extents) {
  double places = density;
  for (const int extent : extents) places *= extent;
  return static_cast<int>(std::clamp(places, 1.0, most_entries));
}

// This rank's share of the fibres. All fibres together are the same on any number of ranks.
inline tensor::Tensor generate(const std::vector<int>& extents, int entries) {
  tensor::Tensor made;
  made.dimensions = extents;
  const int last = made.order() - 1;
  std::vector<std::vector<double>> before;
  for (int mode = 0; mode <= last; ++mode) {
    before.push_back(weights_before(mode, extents[at(mode)]));
  }
  const double mean = entries_of_fibre(extents);
  const auto [first, end] = tensor::share(std::max<std::int64_t>(1, std::llround(entries / mean)));
  for (auto fibre = static_cast<std::uint64_t>(first); fibre < at(end); ++fibre) {
    std::vector<int> place;
    for (int mode = 0; mode < last; ++mode) {
      place.push_back(row_of(before[at(mode)], random_at(rows_stream + at(mode), fibre)));
    }
    for (std::uint64_t e = 0; e < length_of(fibre, mean); ++e) {
      const std::uint64_t number = fibre * most_in_fibre + e;
      made.index.insert(made.index.end(), place.begin(), place.end());
      made.index.push_back(row_of(before[at(last)], random_at(last_stream, number)));
      made.value.push_back(0.5 + random_at(values_stream, number));
    }
  }
  return made;
}

}  // namespace skewed
