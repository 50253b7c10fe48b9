// An unstructured problem for pipecg: -div(k grad u) + u in a hollow ball, by linear finite
// elements on tetrahedra. The points are those of a grid, moved at random; rows have 4 to 19
// entries. Partitioners are meant for the graph of such a matrix. The matrix of an element is its
// volume times the products of the gradients of its shape functions.
#pragma once
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include "sparse.h"

namespace sparse {

class Tetrahedra {
 public:
  explicit Tetrahedra(const Problem& problem) : problem_(problem), n_(problem.grid) {
    const auto points = static_cast<std::size_t>(n_[0]) * static_cast<std::size_t>(n_[1]) *
                        static_cast<std::size_t>(n_[2]);
    rows_.resize(points);
    for (int z = 0; z + 1 < n_[2]; ++z) {
      for (int y = 0; y + 1 < n_[1]; ++y) {
        for (int x = 0; x + 1 < n_[0]; ++x) {
          if (inside({x, y, z})) cell({x, y, z});
        }
      }
    }
  }

  // Returns the entries of the matrix. Its rows are the points that belong to an element, in the
  // order of the grid.
  std::vector<Entry> entries(int* order) const {
    std::vector<int> number(rows_.size());
    *order = 0;
    for (std::size_t point = 0; point < rows_.size(); ++point) {
      number[point] = rows_[point].empty() ? -1 : (*order)++;
    }
    std::vector<Entry> all;
    for (std::size_t point = 0; point < rows_.size(); ++point) {
      for (const Term& term : rows_[point]) {
        all.push_back({number[point], number[static_cast<std::size_t>(term.column)], term.value});
      }
    }
    return all;
  }

 private:
  using Place = std::array<int, 3>;
  using Vector = std::array<double, 3>;
  struct Term {
    int column;
    double value;
  };

  int point(const Place& at) const { return (at[2] * n_[1] + at[1]) * n_[0] + at[0]; }

  // Returns whether the centre of a cell, in coordinates from -1 to 1, lies in the hollow ball.
  bool inside(const Place& cell) const {
    double square = 0;
    for (std::size_t axis = 0; axis < 3; ++axis) {
      const double middle = (2.0 * cell[axis] + 1) / (n_[axis] - 1) - 1;
      square += middle * middle;
    }
    return square <= 1 && square >= 0.4 * 0.4;
  }

  // Returns the position of a point in units of the grid's spacing. It is moved by at most 0.15
  // along each axis.
  Vector position(const Place& at) const {
    Vector found{};
    for (std::size_t axis = 0; axis < 3; ++axis) {
      const auto draw = 3 * static_cast<std::uint64_t>(point(at)) + axis;
      found[axis] = at[axis] + 0.3 * (random_of(draw) - 0.5);
    }
    return found;
  }

  // Divides a cell into five tetrahedra, and adds them. Neighbouring cells are divided in mirror
  // images, so that the diagonals of their common faces coincide. Corner c of a cell has the
  // offsets bit 0 of c along x, bit 1 along y and bit 2 along z.
  void cell(const Place& at) {
    static constexpr int kCuts[2][5][4] = {
        {{0, 3, 5, 6}, {1, 0, 3, 5}, {2, 0, 3, 6}, {4, 0, 5, 6}, {7, 3, 5, 6}},
        {{1, 2, 4, 7}, {0, 1, 2, 4}, {3, 1, 2, 7}, {5, 1, 4, 7}, {6, 2, 4, 7}}};
    const double conductivity =
        problem_.coefficients == "heterogeneous"
            ? std::pow(problem_.contrast, random_of(static_cast<std::uint64_t>(point(at))) - 0.5)
            : 1.0;
    for (const int(&corners)[4] : kCuts[(at[0] + at[1] + at[2]) % 2]) {
      Place places[4];
      for (int i = 0; i < 4; ++i) {
        const int c = corners[i];
        places[i] = {at[0] + (c & 1), at[1] + (c >> 1 & 1), at[2] + (c >> 2)};
      }
      element(places, conductivity);
    }
  }

  static Vector cross(const Vector& a, const Vector& b) {
    return {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
  }

  void element(const Place (&places)[4], double conductivity) {
    const Vector origin = position(places[0]);
    Vector edges[3];
    for (int i = 0; i < 3; ++i) {
      edges[i] = position(places[i + 1]);
      for (std::size_t axis = 0; axis < 3; ++axis) edges[i][axis] -= origin[axis];
    }
    Vector gradients[4] = {
        {}, cross(edges[1], edges[2]), cross(edges[2], edges[0]), cross(edges[0], edges[1])};
    double six_volumes = 0;
    for (std::size_t axis = 0; axis < 3; ++axis) six_volumes += edges[0][axis] * gradients[1][axis];
    for (int i = 1; i < 4; ++i) {
      for (std::size_t axis = 0; axis < 3; ++axis) {
        gradients[i][axis] /= six_volumes, gradients[0][axis] -= gradients[i][axis];
      }
    }
    const double volume = std::fabs(six_volumes) / 6;
    const double vertical = problem_.coefficients == "anisotropic" ? 1 / problem_.contrast : 1.0;
    const double radius = 0.5 * std::max({n_[0], n_[1], n_[2]});
    for (int i = 0; i < 4; ++i) {
      // The term u itself, with a lumped mass matrix.
      add(places[i], places[i], volume / 4 / (radius * radius));
      for (int j = i; j < 4; ++j) {
        const double value =
            volume * conductivity *
            (gradients[i][0] * gradients[j][0] + gradients[i][1] * gradients[j][1] +
             vertical * gradients[i][2] * gradients[j][2]);
        add(places[i], places[j], value);
        if (i != j) add(places[j], places[i], value);
      }
    }
  }

  void add(const Place& row, const Place& column, double value) {
    std::vector<Term>& terms = rows_[static_cast<std::size_t>(point(row))];
    const int wanted = point(column);
    for (Term& term : terms) {
      if (term.column == wanted) {
        term.value += value;
        return;
      }
    }
    terms.push_back({wanted, value});
  }

  const Problem& problem_;
  const int (&n_)[3];
  std::vector<std::vector<Term>> rows_;  // terms of each row, indexed by point of the grid
};

}  // namespace sparse
