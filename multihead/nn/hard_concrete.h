// The hard concrete distribution (Louizos, Welling and Kingma 2018, "Learning sparse neural networks through L0 regularization"): a
// number from 0 to 1 that is exactly 0 or 1 with some probability, and has a slope in its parameter log alpha all the same:
//
//   s = sigmoid((log u - log(1 - u) + log alpha) / beta),  u uniform in (0, 1)
//   z = min(1, max(0, s (zeta - gamma) + gamma))
//   P(z != 0) = sigmoid(log alpha - beta log(-gamma / zeta))
//
// Without noise z is min(1, max(0, sigmoid(log alpha) (zeta - gamma) + gamma)).
#pragma once

#include <algorithm>
#include <cmath>

namespace mh::hard_concrete {

/// The constants of that paper. (The code of Voita et al. 2019 has beta 0.33.)
inline constexpr double kBeta = 2.0 / 3, kGamma = -0.1, kZeta = 1.1;

inline double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}

/// A number and its derivative by log alpha.
struct Value {
  double value = 0, slope = 0;
};

/// s, stretched and cut; ds: its derivative.
inline Value stretched(double s, double ds) {
  const double wide = s * (kZeta - kGamma) + kGamma;
  const bool inside = wide > 0 && wide < 1;
  return {.value = std::clamp(wide, 0.0, 1.0), .slope = inside ? ds * (kZeta - kGamma) : 0};
}

/// z with the noise u, 0 < u < 1.
inline Value sampled(double log_alpha, double u) {
  const double s = sigmoid((std::log(u) - std::log1p(-u) + log_alpha) / kBeta);
  return stretched(s, s * (1 - s) / kBeta);
}

/// z without noise.
inline Value expected(double log_alpha) {
  const double s = sigmoid(log_alpha);
  return stretched(s, s * (1 - s));
}

/// P(z != 0).
inline Value open(double log_alpha) {
  const double p = sigmoid(log_alpha - kBeta * std::log(-kGamma / kZeta));
  return {.value = p, .slope = p * (1 - p)};
}

}  // namespace mh::hard_concrete
