// Gemma 3 270M, which `scripts/models BUILD gemma3` fetches, against what transformers in double precision and llama.cpp compute
// with the same numbers (tests/oracles/gemma3_text_goldens.py).
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "multihead/base/file.h"
#include "multihead/folders/model_folder.h"
#include "multihead/tasks/generate_text.h"
#include "tests/support/places.h"

namespace mh {
namespace {

namespace fs = std::filesystem;

/// llama.cpp has a table of GELU in half precision.
constexpr double kOfLlamaCpp = 0.005, kOfTransformers = 2e-4;

TEST(SlowGemma3Text, IsThatOfTransformersAndLlamaCpp) {
  const char* models = std::getenv("MULTIHEAD_MODELS");
  if (models == nullptr) GTEST_SKIP() << "set MULTIHEAD_MODELS to the folder that scripts/models made";
  const fs::path file = fs::path(models) / "gemma3.gguf";
  if (!fs::exists(file)) GTEST_SKIP() << "there is no " << file << "; scripts/models BUILD gemma3 fetches it";
  const ModelFolder folder = load_model_folder(file);
  const auto cases =
      nlohmann::json::parse(read_file(fs::path(goldens_folder()) / "generate" / "gemma3.json"));
  ASSERT_EQ(cases.size(), 4u);
  for (const auto& expected : cases) {
    SCOPED_TRACE(expected["prompt"].get<std::string>());
    const auto tokens = expected["tokens"].get<std::vector<int32_t>>();
    const auto logs = expected["log_probabilities"].get<std::vector<double>>();
    const auto llama_cpp = expected["llama_cpp_log_probabilities"].get<std::vector<double>>();
    const GeneratedText found =
        generate_text(folder, {expected["prompt"]},
                      {.generate = {.next_token = NextToken::kGreedy,
                                    .max_new_tokens = static_cast<int32_t>(tokens.size())}})
            .at(0);
    EXPECT_EQ(found.prompt, expected["prompt_ids"].get<std::vector<int32_t>>());
    EXPECT_EQ(found.text, expected["text"].get<std::string>());
    ASSERT_EQ(found.generated.tokens, tokens);
    ASSERT_EQ(found.generated.log_probabilities.size(), logs.size());
    for (size_t i = 0; i < logs.size(); ++i) {
      const double log = found.generated.log_probabilities[i];
      EXPECT_NEAR(log, logs[i], kOfTransformers) << i;
      EXPECT_NEAR(log, llama_cpp.at(i), kOfLlamaCpp) << i;
    }
  }
}

}  // namespace
}  // namespace mh
