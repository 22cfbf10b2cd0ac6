// Gradients of a difference of two logits at three sites of each family of decoders, as torch computes them in double
// precision. tests/oracles/site_goldens.py makes them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "multihead/autograd/tape.h"
#include "multihead/batch/batch.h"
#include "multihead/folders/model_folder.h"
#include "multihead/heads/sites/site_values.h"
#include "multihead/io/safetensors.h"
#include "multihead/tensor/tensor.h"
#include "tests/support/places.h"

namespace mh {
namespace {

const SafetensorsFile& decoder_gradients() {
  static const SafetensorsFile file = SafetensorsFile::open(std::filesystem::path(goldens_folder()) /
                                                            "sites" / "decoder_gradients.safetensors");
  return file;
}

class DecoderGradients : public testing::TestWithParam<const char*> {
 protected:
  std::vector<int32_t> list(const char* what) const {
    const std::vector<int64_t> numbers = decoder_gradients().integers(name + "." + what);
    return {numbers.begin(), numbers.end()};
  }

  const std::string name = GetParam();
  const ModelFolder folder = load_model_folder(std::filesystem::path(goldens_folder()) / name);
};

TEST_P(DecoderGradients, OfALogitDifferenceAreThoseOfTorch) {
  const std::vector<int32_t> ids = list("ids"), tokens = list("tokens");
  const Batch text(std::vector<std::vector<int32_t>>{ids});
  SiteValues watched;
  watched.watch("*");
  Tape tape(Tape::Mode::kRecordValues);
  Context context{.tape = tape, .sites = &watched};
  const Var states = folder.model->read(context, text.view(), Sequences());
  const Var logits = folder.language_model().logits(context, states, text.view());
  Tensor direction(logits.rows(), logits.cols());
  const int64_t last = static_cast<int64_t>(ids.size()) - 1;
  direction(last, tokens.at(0)) = 1, direction(last, tokens.at(1)) = -1;
  tape.seed(logits, direction.view());
  tape.backward();

  const std::string prefix = name + ".gradient.";
  int sites = 0;
  for (const std::string& key : decoder_gradients().names()) {
    if (!key.starts_with(prefix)) continue;
    const std::string site = key.substr(prefix.size());
    const ConstMatrixView found = watched.gradient(site);
    const std::vector<float> expected = decoder_gradients().floats(key);
    ASSERT_EQ(found.rows * found.cols, static_cast<int64_t>(expected.size())) << site;
    const float largest = std::abs(*std::max_element(
        expected.begin(), expected.end(), [](float a, float b) { return std::abs(a) < std::abs(b); }));
    ASSERT_GT(largest, 0) << site;
    for (int64_t i = 0; i < found.rows; ++i) {
      for (int64_t j = 0; j < found.cols; ++j) {
        const float wanted = expected[static_cast<size_t>(i * found.cols + j)];
        ASSERT_NEAR(found(i, j), wanted, 2e-5 * largest) << site << " row " << i << " column " << j;
      }
    }
    ++sites;
  }
  EXPECT_EQ(sites, 3);
}

INSTANTIATE_TEST_SUITE_P(Models, DecoderGradients,
                         testing::Values("gemma2/capped", "gemma2/scores_capped_bf16", "gemma3_text/plain",
                                         "gpt_neo/windows", "gpt_neox/parallel", "gpt_neox/sequential_bf16",
                                         "olmo2/plain", "olmo2/grouped_yarn_bf16", "opt/before",
                                         "opt/after_bf16", "phi/plain", "phi/grouped_bf16", "phi3/grouped",
                                         "phi3/longrope_bf16", "smollm3/some_turn", "smollm3/windows_bf16"),
                         [](const auto& tested) {
                           std::string name = tested.param;
                           std::replace(name.begin(), name.end(), '/', '_');
                           return name;
                         });

}  // namespace
}  // namespace mh
