// What each part of small models adds to a difference of two logits, beside transformers' modules in double precision
// (tests/oracles/contribution_goldens.py).
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "multihead/folders/model_folder.h"
#include "multihead/heads/contributions/heads_contributions.h"
#include "multihead/heads/sites/inspected_texts.h"
#include "multihead/io/safetensors.h"
#include "tests/support/goldens.h"

namespace mh {
namespace {

class ContributionGoldens : public testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(Models, ContributionGoldens,
                         testing::Values("bert/masked", "gemma2/logits_capped", "gpt2/tied",
                                         "gpt_neox/parallel", "llama/tied_grouped", "marian/gelu_f16",
                                         "t5/plain"),
                         [](const auto& of) { return test_name_of(of.param); });

TEST_P(ContributionGoldens, AreTransformers) {
  const std::string name = GetParam();
  const SafetensorsFile file = SafetensorsFile::open(kGoldens / "contributions.safetensors");
  const auto integers = [&](const char* what) {
    std::vector<int32_t> found;
    for (const int64_t one : file.integers(name + what)) found.push_back(static_cast<int32_t>(one));
    return found;
  };
  const auto numbers = [&](const char* what) {
    std::vector<float> found(static_cast<size_t>(file.shape(name + what).at(0)));
    file.read_floats(name + what, found);
    return found;
  };
  const ModelFolder folder = load_model_folder(kGoldens / name);
  const std::vector<int32_t> answers = integers(".answers");
  AnswerText asked{.text = {.ids = integers(".ids")},
                   .predicting = answers.at(0),
                   .answer = PatchAnswer{.text = "answer", .token = answers.at(1)},
                   .wrong = PatchAnswer{.text = "wrong", .token = answers.at(2)}};
  if (translates(folder)) asked.target.ids = integers(".target");
  const ContributionReport found = heads_contributions(folder, asked);
  EXPECT_NEAR(found.score, static_cast<double>(numbers(".score").at(0)), 1e-5);
  EXPECT_LT(found.error(), 2e-6);
  const std::vector<float> parts = numbers(".parts");
  size_t i = 0;
  for (const Contribution& part : found.parts) {
    if (part.kind == ContributionKind::kBiases || part.kind == ContributionKind::kOutput) continue;
    ASSERT_LT(i, parts.size());
    EXPECT_NEAR(part.sum, static_cast<double>(parts[i]), 1e-5) << part.name;
    ++i;
  }
  EXPECT_EQ(i, parts.size());
}

}  // namespace
}  // namespace mh
