// Hugging Face transformers opens what multihead saved. Needs a Python with torch and transformers, so it
// runs only when MULTIHEAD_PYTHON names one (`make oracles`).
#include <gtest/gtest.h>

#include <cstdlib>

#include "multihead/folders/save_folder.h"
#include "multihead/io/safetensors.h"
#include "multihead/models/encoder_decoder.h"
#include "multihead/models/translator_shape.h"
#include "tests/folders/folder_case.h"
#include "tests/support/places.h"
#include "tests/support/small_model.h"

namespace mh {
namespace {

using namespace test;

constexpr int kSearched = 13;

struct OracleKind {
  const char* name;
  Activation activation;
  bool share, scale;
};

class SlowMarianOracle : public testing::TestWithParam<OracleKind> {};

void add_lists(const std::string& name, const std::vector<std::vector<int32_t>>& lists,
               std::vector<std::pair<std::string, std::vector<int64_t>>>& out) {
  std::vector<int64_t> ids, lengths;
  for (const auto& list : lists) {
    ids.insert(ids.end(), list.begin(), list.end());
    lengths.push_back(static_cast<int64_t>(list.size()));
  }
  out.emplace_back(name, ids);
  out.emplace_back(name + "_lengths", lengths);
}

TEST_P(SlowMarianOracle, TransformersOpensWhatWasSaved) {
  const char* python = std::getenv("MULTIHEAD_PYTHON");
  if (python == nullptr) GTEST_SKIP() << "set MULTIHEAD_PYTHON to a Python with torch and transformers";
  const ScratchFolder scratch;
  const Tokenizer tokenizer = small_tokenizer(53), target_tokenizer = small_tokenizer(47);
  TranslatorShape shape = folder_shape(tokenizer.size());
  shape.activation = GetParam().activation;
  shape.share_embeddings = GetParam().share;
  shape.scale_embedding = GetParam().scale;
  if (!shape.share_embeddings) shape.target_vocabulary_size = target_tokenizer.size();
  EncoderDecoder model(shape.config());
  model.initialise(29);
  sharpen(model, 1.7f);
  add_to_logit(model, kEndId, 1.0f);
  save_model_folder(
      scratch / "model", model,
      {.tokenizer = &tokenizer, .target_tokenizer = shape.share_embeddings ? nullptr : &target_tokenizer});

  const auto sources = random_sources(5, {6, 1, 11, 3}, tokenizer.size());
  auto targets = random_sources(6, {4, 9, 2, 7}, shape.target_vocabulary());
  for (auto& target : targets) target.insert(target.begin(), kPadId);
  const Batch source(sources), target(targets);
  const std::vector<float> logits = logits_of(model, source, target);
  std::vector<std::pair<std::string, std::vector<int64_t>>> ids;
  add_lists("source", sources, ids);
  add_lists("target_in", targets, ids);
  add_lists("greedy", greedy(model, source, kSearched, {kPadId}), ids);
  std::vector<NamedTensor> tensors{{.name = "logits",
                                    .shape = {target.ragged.rows(), shape.target_vocabulary()},
                                    .data = std::span(logits)}};
  for (const auto& [name, list] : ids) {
    tensors.push_back({.name = name, .shape = {static_cast<int64_t>(list.size())}, .data = std::span(list)});
  }
  write_file_atomically(scratch / "expected.safetensors", write_safetensors(tensors));

  auto texts = nlohmann::json::array();
  for (const std::string text :
       {"the small dog runs", "eine Katze läuft", "  spaces   between ", "unknown: 漢字", ""}) {
    const auto encoded = tokenizer.encode_ids(text);
    texts.push_back({{"text", text}, {"ids", encoded}, {"decoded", tokenizer.decode(encoded)}});
  }
  write_file_atomically(scratch / "texts.json", texts.dump());

  const std::string command = std::string(python) + " " + source_folder() +
                              "/tests/oracles/marian_check.py " + (scratch / "model").string() + " " +
                              (scratch / "expected.safetensors").string() + " " +
                              (scratch / "texts.json").string();
  EXPECT_EQ(std::system(command.c_str()), 0);
}

INSTANTIATE_TEST_SUITE_P(Kinds, SlowMarianOracle,
                         testing::Values(OracleKind{"swish", Activation::kSwish, true, true},
                                         OracleKind{"relu_unscaled", Activation::kRelu, true, false},
                                         OracleKind{"gelu_separate", Activation::kGelu, false, true}),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace mh
