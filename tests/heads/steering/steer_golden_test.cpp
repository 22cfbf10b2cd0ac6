// Generation while a vector is added to what a layer gives, as transformers' generate() answers with a forward hook in float64.
// tests/oracles/steer_goldens.py makes it.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "multihead/folders/model_folder.h"
#include "multihead/generate/generate.h"
#include "multihead/generate/translate.h"
#include "multihead/heads/sites/inspected_texts.h"
#include "multihead/heads/sites/site_values.h"
#include "multihead/io/safetensors.h"
#include "multihead/models/encoder_decoder.h"
#include "tests/support/places.h"

namespace mh {
namespace {

/// What came, and log p of each.
struct SteeredTokens {
  std::vector<int64_t> tokens = {};
  std::vector<float> log_probabilities = {};
};

SteeredTokens steered_answer(const ModelFolder& folder, const std::vector<int32_t>& prompt, int32_t length,
                             Sites* sites) {
  const std::vector<std::vector<int32_t>> prompts{prompt};
  if (translates(folder)) {
    const Hypothesis best = translate(
        folder.translator(), prompts,
        {.search = {.beam_size = 1, .max_length = length, .max_length_factor = 9}, .sites = sites})[0][0];
    return {{best.tokens.begin(), best.tokens.end()}, best.log_probabilities};
  }
  const Generated text =
      generate(folder.language_model(), prompts,
               {.next_token = NextToken::kGreedy, .max_new_tokens = length, .sites = sites})[0];
  return {{text.tokens.begin(), text.tokens.end()}, text.log_probabilities};
}

TEST(SteerGoldens, AreWhatComesWithAForwardHook) {
  const std::filesystem::path goldens(goldens_folder());
  const SafetensorsFile file = SafetensorsFile::open(goldens / "steering.safetensors");
  const auto cases = nlohmann::json::parse(file.metadata().at("cases"));
  EXPECT_EQ(cases.size(), 5u);
  for (const auto& one : cases) {
    const auto name = one.at("name").get<std::string>();
    SCOPED_TRACE(name);
    const ModelFolder folder = load_model_folder(goldens / one.at("folder").get<std::string>());
    std::vector<int32_t> prompt;
    for (const int64_t id : file.integers(name + ".prompt")) prompt.push_back(static_cast<int32_t>(id));
    const std::vector<float> vector = file.floats(name + ".vector"),
                             expected = file.floats(name + ".log_probabilities");
    Tensor numbers(1, std::ssize(vector));
    std::copy(vector.begin(), vector.end(), numbers.data());
    SiteValues values;
    values.add({.site = one.at("site").get<std::string>(),
                .numbers = std::move(numbers),
                .strength = one.at("strength").get<float>()});
    constexpr int32_t kLength = 11;
    const SteeredTokens found = steered_answer(folder, prompt, kLength, &values);
    EXPECT_EQ(found.tokens, file.integers(name + ".tokens"));
    ASSERT_EQ(found.log_probabilities.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i)
      EXPECT_NEAR(found.log_probabilities[i], expected[i], 2e-4) << i;
    EXPECT_EQ(steered_answer(folder, prompt, kLength, nullptr).tokens, file.integers(name + ".plain_tokens"));
  }
}

}  // namespace
}  // namespace mh
