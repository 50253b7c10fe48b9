// Estimates how far the residual of a recurrence may have drifted from b - A x since it was last
// computed from x. The estimate uses only the scalars alpha, beta and gamma, which give the lengths
// of all vectors, so it needs neither a pass over vectors nor a sum over ranks. Lengths are those
// of the system scaled to a unit diagonal: x and p are measured in the norm of D, the matrix's
// diagonal, and r in that of its inverse. Sources: van der Vorst, Ye, SIAM J. Sci. Comput. 22
// (2000), for when to replace; Cools, Yetkin, Agullo, Giraud, Vanroose, SIAM J. Matrix Anal. Appl.
// 39 (2018), for how errors of one recurrence pass into the next; Hestenes, Stiefel (1952), for the
// lengths.
#pragma once
#include <cmath>
#include <limits>

namespace cg {

// Says which vectors a method computes by recurrences: only r; also A p; also A p, A u and A q.
enum class Recurrences { residual, direction, all };

// The unit roundoffs of the types of matrix, vectors and solution.
struct Roundings {
  double matrix, vectors, solution;
};
template <class Number>
constexpr double unit_roundoff = std::numeric_limits<Number>::epsilon() / 2;

class ResidualDrift {
 public:
  // norm: a bound for the norm of the scaled matrix, with all of its entries taken as positive.
  ResidualDrift(Recurrences recurrences, const Roundings& unit, double norm)
      : recurrences_(recurrences), unit_(unit), norm_(norm) {}

  // Records the step x += alpha p, r -= alpha s. Before it, p = u + beta p was computed, and gamma
  // was (r, u).
  void step(double alpha, double beta, double gamma) {
    const double before = last_alpha_ > 0 ? beta / last_alpha_ : 0;
    const double u = std::sqrt(gamma), s = std::sqrt(norm_ * gamma / alpha);
    // (w, u) is the expression under the root.
    const double w = std::sqrt(norm_ * gamma * (1 / alpha + before));
    move(alpha, beta, gamma);
    pass_on(alpha, beta, {u, w, s});
    residual_ += alpha * direction_ + unit_.vectors * u + unit_.solution * norm_ * way();
    last_alpha_ = alpha;
  }
  // Records that the residual was computed from x, and the other vectors from it and from p.
  void replaced() {
    residual_ = direction_ = product_ = second_ = 0;
    along_ = way_squared_ = 0;
  }

  // Returns the length of the change of x since the last replacement.
  double way() const { return std::sqrt(std::fmax(way_squared_, 0)); }
  // Returns the estimated drift. A matrix with rounded entries causes one part of it, and rounded
  // vectors cause the rest.
  double estimate() const { return unit_.matrix * norm_ * way() + residual_; }
  // Returns whether the drift is so large that convergence suffers (van der Vorst, Ye).
  bool is_large(double gamma) const {
    return estimate() > std::sqrt(unit_.matrix) * std::sqrt(gamma);
  }

 private:
  struct Lengths {
    double u, w, s;
  };
  // Updates the lengths of p and of the change of x. Each u is orthogonal to earlier directions,
  // and so to the change of x.
  void move(double alpha, double beta, double gamma) {
    direction_squared_ = gamma + beta * beta * direction_squared_;
    along_ *= beta;
    way_squared_ += alpha * (2 * along_ + alpha * direction_squared_);
    along_ += alpha * direction_squared_;
  }
  // Updates the errors of A p - s, A u - w and A q - z, in the order in which each passes into the
  // next.
  void pass_on(double alpha, double beta, const Lengths& of) {
    const double p = std::sqrt(direction_squared_), unit = unit_.vectors;
    if (recurrences_ == Recurrences::residual) {
      direction_ = unit * norm_ * p;
    } else if (recurrences_ == Recurrences::direction) {
      direction_ = beta * direction_ + unit * (norm_ * of.u + of.s);
    } else {
      second_ = beta * second_ + unit * norm_ * (2 * of.w + of.s);
      direction_ = product_ + beta * direction_ + unit * (norm_ * p + of.s);
      product_ += alpha * second_ + 2 * unit * norm_ * of.u;
    }
  }

  Recurrences recurrences_;
  Roundings unit_;
  double norm_;
  // Estimated errors of r, s, w and z.
  double residual_ = 0, direction_ = 0, product_ = 0, second_ = 0;
  double direction_squared_ = 0, along_ = 0, way_squared_ = 0, last_alpha_ = 0;
};

}  // namespace cg
