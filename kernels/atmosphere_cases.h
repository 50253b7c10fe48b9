// The initial state of each test case at one point of the sphere. Sources: Williamson, Drake, Hack,
// Jakob, Swarztrauber, J. Comput. Phys. 102 (1992), cases 2 and 5; Galewsky, Scott, Polvani, Tellus
// A 56 (2004), for the jet.
#pragma once
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace cases {

inline constexpr double radius = 6.37122e6, turning = 7.292e-5, gravity = 9.80616, day = 86400;

// Names of the cases. In "jet" a zonal jet is in balance; in "galewsky" a hill of water makes it
// unstable.
inline const std::vector<std::string> names = {"2", "5", "jet", "galewsky"};

struct Point {
  // Mountain height and depth of the water are multiplied by gravity.
  double coriolis, mountain, spin, depth;
};

// A zonal jet in the northern middle latitudes, and the depth of water that balances it.
class Jet {
 public:
  Jet() : sums_(intervals + 1) {
    const double width = (north - south) / intervals;
    double mean = 0;
    for (int i = 0; i < intervals; ++i) {
      const double from = south + i * width;
      sums_[place(i + 1)] = sums_[place(i)] + simpson(from, width);
      mean +=
          width / 6 *
          (falls(from) * std::cos(from) + 4 * falls(from + width / 2) * std::cos(from + width / 2) +
           falls(from + width) * std::cos(from + width));
    }
    mean_ = (mean + sums_.back() * (1 - std::sin(north))) / 2;
  }

  static double wind(double latitude) {
    if (latitude <= south || latitude >= north) return 0;
    return fastest * std::exp(1 / ((latitude - south) * (latitude - north)) +
                              4 / ((north - south) * (north - south)));
  }
  static double spin(double latitude) {
    const double speed = wind(latitude);
    if (speed == 0) return 0;
    const double product = (latitude - south) * (latitude - north);
    const double slope = -speed * (2 * latitude - south - north) / (product * product);
    return (speed * std::tan(latitude) - slope) / radius;
  }
  // Returns the depth of the water, multiplied by gravity. Its mean over the sphere is 10 km.
  double depth(double latitude) const { return gravity * 10000 + mean_ - falls(latitude); }

 private:
  static constexpr int intervals = 4096;
  static constexpr double fastest = 80, south = M_PI / 7, north = M_PI / 2 - south;
  static std::size_t place(int i) { return static_cast<std::size_t>(i); }

  // Returns how fast the depth, multiplied by gravity, decreases with the latitude.
  static double slope(double latitude) {
    const double speed = wind(latitude);
    const double coriolis = 2 * turning * std::sin(latitude);
    return radius * speed * (coriolis + std::tan(latitude) / radius * speed);
  }
  static double simpson(double from, double width) {
    return width / 6 * (slope(from) + 4 * slope(from + width / 2) + slope(from + width));
  }
  // Returns by how much the depth, multiplied by gravity, is less than south of the jet.
  double falls(double latitude) const {
    if (latitude <= south) return 0;
    if (latitude >= north) return sums_.back();
    const double width = (north - south) / intervals;
    const int before = std::min(intervals - 1, static_cast<int>((latitude - south) / width));
    const double from = south + before * width;
    return sums_[place(before)] + simpson(from, latitude - from);
  }

  std::vector<double> sums_;
  double mean_ = 0;
};

class Case {
 public:
  explicit Case(std::string name) : name_(std::move(name)) {}

  // Returns the initial state at a point. east: the longitude, from 0 on. sine: the sine of the
  // latitude.
  Point begins(double east, double sine) const {
    return name_ == "2" || name_ == "5" ? of_williamson(east, sine) : of_galewsky(east, sine);
  }

 private:
  Point of_williamson(double east, double sine) const {
    const bool mountain = name_ == "5";
    const double tilt = mountain ? 0 : M_PI / 4,
                 speed = mountain ? 20 : 2 * M_PI * radius / (12 * day);
    const double mean = mountain ? gravity * 5960 : 2.94e4;
    const double cosine = std::sqrt(1 - sine * sine);
    const double pole = -std::cos(east) * cosine * std::sin(tilt) + sine * std::cos(tilt);
    const double away = std::hypot(east - 1.5 * M_PI, std::asin(sine) - M_PI / 6);
    const double height = mountain ? gravity * 2000 * std::max(0.0, 1 - away * 9 / M_PI) : 0;
    const double depth =
        mean - (radius * turning * speed + speed * speed / 2) * pole * pole - height;
    return {2 * turning * pole, height, 2 * speed / radius * pole, depth};
  }
  Point of_galewsky(double east, double sine) const {
    const double latitude = std::asin(sine);
    Point made = {2 * turning * sine, 0, Jet::spin(latitude), jet_.depth(latitude)};
    if (name_ == "galewsky") {
      const double away = east > M_PI ? east - 2 * M_PI : east;
      const double across = 3 * away, along = 15 * (M_PI / 4 - latitude);
      made.depth += gravity * 120 * std::cos(latitude) * std::exp(-across * across - along * along);
    }
    return made;
  }

  const std::string name_;
  const Jet jet_;
};

}  // namespace cases
