// The entries of a sparse tensor as compressed sparse fibres, a tree for each mode, and the product
// of such a tree with the other modes' factors (MTTKRP). The product is as fast as possible, so
// that overlap is not shown against slow computation. Source: Smith, Ravindran, Sidiropoulos,
// Karypis, "SPLATT: efficient and parallel sparse tensor-matrix multiplication", IPDPS 2015.
#pragma once
#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

#include "rows_memory.h"
#include "tensor.h"

namespace fibres {

using tensor::at;

constexpr int ahead = 64;  // number of nodes whose rows are prefetched before they are needed

// The entries as a tree for one mode. Level 0 has the rows of that mode, level 1 those of the mode
// that was updated before, and so on. Node n of level l has the children start[l][n], …, start[l][n
// + 1] - 1. Owned rows come before rows of other ranks.
struct Tree {
  std::vector<int> modes;  // mode of each level
  // Row: the row of each node, with `ahead` more entries for prefetching.
  std::vector<std::vector<int>> row, start;
  std::vector<double> value;  // values of the nodes of the last level
  int foreign_row = 0;        // first node of level 0 whose row belongs to another rank
  // For each node of level 0, its first child whose row belongs to another rank.
  std::vector<int> foreign_fibre;

  int levels() const { return static_cast<int>(modes.size()); }
  int nodes(int level) const { return static_cast<int>(row[at(level)].size()) - ahead; }
};

inline Tree tree_of(const tensor::Part& part, int mode) {
  const tensor::Tensor& entries = part.tensor;
  const int order = entries.order();
  Tree made;
  for (int level = 0; level < order; ++level) made.modes.push_back((mode + order - level) % order);
  std::vector<std::int64_t> sorted(entries.value.size());
  std::iota(sorted.begin(), sorted.end(), 0);
  std::sort(sorted.begin(), sorted.end(), [&](std::int64_t a, std::int64_t b) {
    for (const int one : made.modes) {
      const int left = entries.entry(a)[one], right = entries.entry(b)[one];
      if (left != right) return left < right;
    }
    return false;
  });
  made.row.resize(at(order)), made.start.resize(at(order));
  const int* last = nullptr;
  for (const std::int64_t e : sorted) {
    const int* entry = entries.entry(e);
    bool fresh = last == nullptr;
    for (int level = 0; level < order; ++level) {
      const int one = made.modes[at(level)];
      fresh = fresh || level == order - 1 || last[one] != entry[one];
      if (!fresh) continue;
      if (level + 1 < order) {
        made.start[at(level)].push_back(static_cast<int>(made.row[at(level + 1)].size()));
      }
      made.row[at(level)].push_back(entry[one]);
    }
    made.value.push_back(entries.value[at(e)]);
    last = entry;
  }
  for (int level = 0; level + 1 < order; ++level) {
    made.start[at(level)].push_back(static_cast<int>(made.row[at(level + 1)].size()));
  }
  const auto foreign = [&](int level, int first, int last) {
    const auto begin = made.row[at(level)].begin();
    const int owned = part.modes[at(made.modes[at(level)])].owned;
    return static_cast<int>(std::lower_bound(begin + first, begin + last, owned) - begin);
  };
  const int rows = static_cast<int>(made.row[0].size());
  made.foreign_row = foreign(0, 0, rows);
  for (std::size_t node = 0; node < at(rows); ++node) {
    made.foreign_fibre.push_back(foreign(1, made.start[0][node], made.start[0][node + 1]));
  }
  for (std::vector<int>& row : made.row) row.insert(row.end(), ahead, 0);
  return made;
}

// ---- The product --------------------------------------------------------------------------------

// Says which fibres of a row are multiplied: those whose row, of the mode updated before, this rank
// owns, those whose row it does not own, or all.
enum class Which { owned, foreign, any };

constexpr int most_components = 256;

// The product for rows with `known` components, so that the compiler knows the number; if `known`
// is 0, they have as many as `length` says.
template <int known>
class Product {
 public:
  Product(const Tree& tree, const std::vector<rows::Matrix>& factors, int length)
      : tree_(tree), length_(length) {
    for (const int mode : tree.modes) factors_.push_back(factors[at(mode)].data());
  }

  // Computes the product for the rows of nodes first, …, last - 1. With Which::foreign it adds to
  // what the rows have; otherwise they begin at 0.
  void multiply(int first, int last, Which which, double* product) const {
    for (int node = first; node < last; ++node) {
      double* out = product + place_of(tree_.row[0][at(node)]);
      const int middle = tree_.foreign_fibre[at(node)];
      const int begin = which == Which::foreign ? middle : tree_.start[0][at(node)];
      const int end = which == Which::owned ? middle : tree_.start[0][at(node + 1)];
      if (which != Which::foreign) std::fill_n(out, length(), 0.0);
      add_below(1, begin, end, out);
    }
  }

 private:
  using Sums = std::array<double, known ? known : most_components>;

  int length() const { return known ? known : length_; }
  std::ptrdiff_t place_of(int row) const { return std::ptrdiff_t{row} * length(); }

  const double* row_of(int level, int node) const {
    return factors_[at(level)] + place_of(tree_.row[at(level)][at(node)]);
  }
  void ask_for(const double* row) const {
    for (int r = 0; r < length(); r += 8) __builtin_prefetch(row + r);
  }

  // Adds, for nodes first, …, last - 1 of a level, the sum over their children times their own row.
  void add_below(int level, int first, int last, double* out) const {
    if (level + 2 == tree_.levels()) return add_fibres(first, last, out);
    for (int node = first; node < last; ++node) {
      ask_for(row_of(level, node + ahead));
      Sums sum;
      std::fill_n(sum.begin(), length(), 0.0);
      add_below(level + 1, tree_.start[at(level)][at(node)], tree_.start[at(level)][at(node + 1)],
                sum.data());
      const double* factor = row_of(level, node);
      for (int r = 0; r < length(); ++r) out[r] += sum[at(r)] * factor[r];
    }
  }
  // Does what add_below() does, for the last two levels.
  void add_fibres(int first, int last, double* out) const {
    const int level = tree_.levels() - 2;
    const double *upper = factors_[at(level)], *lower = factors_[at(level + 1)];
    const int *fibre = tree_.row[at(level)].data(), *leaf = tree_.row[at(level + 1)].data();
    const int* start = tree_.start[at(level)].data();
    const double* value = tree_.value.data();
    Sums total;
    std::copy_n(out, length(), total.begin());
    for (int node = first; node < last; ++node) {
      ask_for(upper + place_of(fibre[node + ahead]));
      Sums sum;
      std::fill_n(sum.begin(), length(), 0.0);
      for (int entry = start[node]; entry < start[node + 1]; ++entry) {
        ask_for(lower + place_of(leaf[entry + ahead]));
        const double* factor = lower + place_of(leaf[entry]);
        for (int r = 0; r < length(); ++r) sum[at(r)] += value[entry] * factor[r];
      }
      const double* factor = upper + place_of(fibre[node]);
      for (int r = 0; r < length(); ++r) total[at(r)] += sum[at(r)] * factor[r];
    }
    std::copy_n(total.begin(), length(), out);
  }

  const Tree& tree_;
  const int length_;
  std::vector<const double*> factors_;  // factor of each level's mode
};

// Computes the product with the factors for the rows of nodes first, …, last - 1.
inline void multiply(const Tree& tree, const std::vector<rows::Matrix>& factors, int length,
                     int first, int last, Which which, double* product) {
  const auto with = [&](const auto& one) { one.multiply(first, last, which, product); };
  if (length == 8) return with(Product<8>(tree, factors, length));
  if (length == 16) return with(Product<16>(tree, factors, length));
  if (length == 32) return with(Product<32>(tree, factors, length));
  with(Product<0>(tree, factors, length));
}

// Returns how many bytes the product moves: each entry's value, the numbers of the nodes, and a row
// of a factor for each node. A factor that fits into `cache` bytes is read only once.
inline double bytes_of(const Tree& tree, const std::vector<rows::Matrix>& factors, int length,
                       double cache) {
  double bytes = 8.0 * static_cast<double>(tree.value.size());
  for (int level = 0; level < tree.levels(); ++level) {
    const rows::Matrix& factor = factors[at(tree.modes[at(level)])];
    double moved = tree.nodes(level);
    if (8.0 * static_cast<double>(factor.size()) <= cache) {
      const std::vector<int>& row = tree.row[at(level)];
      std::vector<bool> there(factor.size() / at(length));
      for (int node = 0; node < tree.nodes(level); ++node) there[at(row[at(node)])] = true;
      moved = static_cast<double>(std::count(there.begin(), there.end(), true));
    }
    bytes += tree.nodes(level) * (level + 1 < tree.levels() ? 4 + 4 : 4) + moved * 8 * length;
  }
  return bytes;
}

}  // namespace fibres
