// residual_drift.h: how far the residual of a recurrence may have drifted from b - A x since it was
// last computed from x.
// Why from scalars: alpha, beta and gamma tell the lengths of all vectors, so that the estimate
// needs neither a pass over vectors nor a sum over ranks. Lengths are those of the system scaled to
// a diagonal of ones: x and p are measured in D, r in its inverse, D being the matrix's diagonal.
// Sources: van der Vorst, Ye, SIAM J. Sci. Comput. 22 (2000), for when to replace; Cools, Yetkin,
// Agullo, Giraud, Vanroose, SIAM J. Matrix Anal. Appl. 39 (2018), for how errors of one recurrence
// pass into the next; Hestenes, Stiefel (1952), for the lengths.
#pragma once
#include <cmath>
#include <limits>

namespace cg {

// Which vectors a method has by recurrences: r alone; A p too; or A p, A u and A q.
enum class Recurrences { residual, direction, all };

// The unit roundoff of what each is kept in.
struct Roundings {
  double matrix, vectors, solution;
};
template <class Number>
constexpr double unit_roundoff = std::numeric_limits<Number>::epsilon() / 2;

class ResidualDrift {
 public:
  // `norm`: at least that of the scaled matrix, all of whose entries are taken as positive.
  ResidualDrift(Recurrences recurrences, const Roundings& unit, double norm)
      : recurrences_(recurrences), unit_(unit), norm_(norm) {}

  // After x += alpha p, r -= alpha s, where p = u + beta p came before, and gamma was (r, u).
  void step(double alpha, double beta, double gamma) {
    const double before = last_alpha_ > 0 ? beta / last_alpha_ : 0;
    const double u = std::sqrt(gamma), s = std::sqrt(norm_ * gamma / alpha);
    const double w = std::sqrt(norm_ * gamma * (1 / alpha + before));  // (w, u) is what is below
    move(alpha, beta, gamma);
    pass_on(alpha, beta, {u, w, s});
    residual_ += alpha * direction_ + unit_.vectors * u + unit_.solution * norm_ * way();
    last_alpha_ = alpha;
  }
  // The residual was computed from x, and the other vectors from it and from p.
  void replaced() {
    residual_ = direction_ = product_ = second_ = 0;
    along_ = way_squared_ = 0;
  }

  // How long the way of x is since then.
  double way() const { return std::sqrt(std::fmax(way_squared_, 0)); }
  // A matrix of rounded entries maps the way to another place; rounded vectors add the rest.
  double estimate() const { return unit_.matrix * norm_ * way() + residual_; }
  // Convergence is as with exact residuals while they are nearer than this (van der Vorst, Ye).
  bool is_large(double gamma) const {
    return estimate() > std::sqrt(unit_.matrix) * std::sqrt(gamma);
  }

 private:
  struct Lengths {
    double u, w, s;
  };
  // Each u is orthogonal to the directions before it, hence to the way that they make.
  void move(double alpha, double beta, double gamma) {
    direction_squared_ = gamma + beta * beta * direction_squared_;
    along_ *= beta;
    way_squared_ += alpha * (2 * along_ + alpha * direction_squared_);
    along_ += alpha * direction_squared_;
  }
  // The errors of A p - s, A u - w and A q - z, in the order in which they pass into each other.
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
  double residual_ = 0, direction_ = 0, product_ = 0, second_ = 0;  // errors of r, s, w, z
  double direction_squared_ = 0, along_ = 0, way_squared_ = 0, last_alpha_ = 0;
};

}  // namespace cg
