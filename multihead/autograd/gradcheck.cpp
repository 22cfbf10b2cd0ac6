#include "multihead/autograd/gradcheck.h"

#include <algorithm>
#include <cmath>

namespace mh {
namespace {

using DoubleTape = BasicTape<double>;

std::vector<BasicVar<double>> put_on(DoubleTape& tape, std::vector<BasicTensor<double>>& inputs) {
  std::vector<BasicVar<double>> vars;
  for (auto& input : inputs) vars.push_back(tape.constant(input.view(), DoubleTape::Gradient::kWants));
  return vars;
}

}  // namespace

double gradcheck(const DoubleFunction& f, std::vector<BasicTensor<double>> inputs, double step) {
  DoubleTape tape(DoubleTape::Mode::kRecord);
  const auto vars = put_on(tape, inputs);
  f(tape, vars);
  tape.backward();

  const auto value = [&] {
    DoubleTape evaluating;
    const auto moved = put_on(evaluating, inputs);
    return f(evaluating, moved).value()(0, 0);
  };
  double worst = 0;
  for (size_t n = 0; n < inputs.size(); ++n) {
    for (int64_t i = 0; i < inputs[n].rows(); ++i) {
      for (int64_t j = 0; j < inputs[n].cols(); ++j) {
        double& x = inputs[n](i, j);
        const double at = x;
        x = at + step;
        const double above = value();
        x = at - step;
        const double below = value();
        x = at;
        const double slope = (above - below) / (2 * step);
        const double gradient = vars[n].has_gradient() ? vars[n].gradient()(i, j) : 0;
        worst = std::max(worst, std::abs(gradient - slope) / std::max(1.0, std::abs(gradient)));
      }
    }
  }
  return worst;
}

}  // namespace mh
