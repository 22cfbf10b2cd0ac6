// Heads of your own description: six heads of queries that share two of keys and values. What they cost beside the
// paper's, and one layer of them.
#include <cstdio>
#include <utility>

#include "multihead/geometry.h"
#include "multihead/layer.h"

int main() {
  constexpr int kModel = 24, kTokens = 11;
  const mh::HeadGeometry paper{.heads = 6};
  const mh::HeadGeometry own{.heads = 6, .d_key = 5, .key_heads = 2, .biases = mh::Biases::kNone};
  for (const auto& [name, heads] : {std::pair{"the paper's", paper}, {"our own", own}}) {
    const mh::LedgerPart cost = mh::ledger(heads, kModel, kTokens, kTokens).total();
    std::printf("%-12s %6lld parameters %8lld multiply-adds\n", name, static_cast<long long>(cost.parameters),
                static_cast<long long>(cost.multiply_adds));
  }

  mh::DropoutStreams streams;
  mh::MultiHeadAttention layer("layer", {.d_model = kModel, .geometry = own}, streams);
  mh::Random random(1);
  layer.initialise(random);
  std::as_const(layer).visit(
      "layer", mh::ConstParameterVisitor([](const std::string& name, const mh::Parameter& parameter) {
        std::printf("  %-12s [%lld, %lld]\n", name.c_str(), static_cast<long long>(parameter.value.rows()),
                    static_cast<long long>(parameter.value.cols()));
      }));
}
