// One layer of multi-head attention on two sentences of three and four rows, its weights, and a gradient.
#include <cstdio>
#include <utility>

#include "multihead/layer.h"

int main() {
  constexpr int kModel = 8;
  mh::DropoutStreams streams;
  mh::MultiHeadAttention layer("layer", {.d_model = kModel, .geometry = {.heads = 2}}, streams);
  mh::Random random(1);
  layer.initialise(random);

  const mh::Batch rows(
      std::vector<std::vector<int32_t>>{{0, 1, 2}, {3, 4, 5, 6}});  // lengths; the ids are not read
  mh::Tensor x(7, kModel), dy(7, kModel);
  for (int64_t i = 0; i < x.size(); ++i) x.data()[i] = static_cast<float>(random.normal());
  dy.fill(1);

  mh::Tape tape(mh::Tape::Mode::kRecord);
  mh::SiteValues seen;
  seen.keep("layer.weights.*");
  mh::Context context{.tape = tape, .sites = &seen};
  const mh::Var y = layer.self(context, tape.constant(x.view()), rows.view(), mh::Mask::none());
  const mh::ConstMatrixView weights = seen.kept("layer.weights.0").sequence(1);  // head 0, sentence 1
  for (int64_t i = 0; i < weights.rows; ++i) {
    for (int64_t j = 0; j < weights.cols; ++j) std::printf(" %.3f", static_cast<double>(weights(i, j)));
    std::printf("\n");
  }
  tape.seed(y, dy.view());  // the gradient of the sum of all outputs
  tape.backward();
  std::as_const(layer).visit(
      "layer", mh::ConstParameterVisitor([](const std::string& name, const mh::Parameter& p) {
        if (p.gradient.exists())
          std::printf("%-9s gradient [%lld, %lld]\n", name.c_str(), static_cast<long long>(p.value.rows()),
                      static_cast<long long>(p.value.cols()));
      }));
}
