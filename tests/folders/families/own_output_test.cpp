// An output layer in the file, beside tie_word_embeddings: with other numbers than the table of embeddings it counts, as
// transformers 5 has it, and is never lost.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <tuple>
#include <utility>

#include "multihead/batch/batch.h"
#include "multihead/folders/save_folder.h"
#include "multihead/models/causal_model.h"
#include "multihead/models/vocabulary_head.h"
#include "tests/folders/families/damaged_golden.h"
#include "tests/folders/families/golden_model.h"
#include "tests/support/edit_weights.h"

namespace mh {
namespace {

using testing::HasSubstr;

struct TiedGolden {
  const char *family, *name, *embedding;
};

/// Replaces or adds the tensor `to`: tensor `from` plus `more` of the row and column of each number.
std::vector<float> add_changed_copy(const std::filesystem::path& folder, const std::string& from,
                                    const std::string& to,
                                    const std::function<float(size_t row, size_t column)>& more) {
  std::vector<float> numbers;
  test::edit_weights(folder / "model.safetensors", [&](std::vector<test::EditedTensor>& tensors) {
    const auto found =
        std::find_if(tensors.begin(), tensors.end(), [&](const auto& one) { return one.name == from; });
    ASSERT_NE(found, tensors.end()) << from;
    test::EditedTensor copy = *found;
    copy.name = to;
    const auto width = static_cast<size_t>(copy.shape.back());
    for (size_t i = 0; i < copy.data.size(); ++i) copy.data[i] += more(i / width, i % width);
    numbers = copy.data;
    std::erase_if(tensors, [&](const auto& one) { return one.name == to; });
    tensors.push_back(std::move(copy));
  });
  return numbers;
}

class OwnOutput : public testing::TestWithParam<TiedGolden> {
 protected:
  test::GoldenModel golden{GetParam().family, GetParam().name};
  test::DamagedGolden copy{GetParam().family, GetParam().name};

  std::vector<float> add_output(float more) const {
    return add_changed_copy(
        copy.folder, GetParam().embedding, "lm_head.weight",
        [&](size_t row, size_t column) { return more * static_cast<float>(row + 2 * column); });
  }
  /// Expects states times `output`, in double precision.
  void expect_logits(const LanguageModel& model, const std::vector<float>& output) const {
    const std::vector<float> states = golden.file.floats("states");
    const int64_t vocabulary = model.facts().vocabulary, width = model.facts().d_model;
    const Batch batch(golden.sequences);
    Tape tape;
    Context context{.tape = tape};
    Tensor logits(std::ssize(batch.ids), vocabulary);
    model.vocabulary().logits(model.states(context, {}, batch.view()).value(), logits.view());
    double most = 0, difference = 0;
    for (int64_t row = 0; row < logits.rows(); ++row) {
      for (int64_t word = 0; word < vocabulary; ++word) {
        double wanted = 0;
        for (int64_t i = 0; i < width; ++i)
          wanted += static_cast<double>(states[static_cast<size_t>(row * width + i)]) *
                    static_cast<double>(output[static_cast<size_t>(word * width + i)]);
        most = std::max(most, std::abs(wanted));
        difference = std::max(difference, std::abs(wanted - static_cast<double>(logits(row, word))));
      }
    }
    EXPECT_LT(difference, 1e-5 * most);
  }
};

TEST_P(OwnOutput, WinsOverTheConfigurationAndIsSaved) {
  const std::vector<float> output = add_output(0.01f);
  const ModelFolder folder = load_model_folder(copy.folder);
  expect_logits(folder.language_model(), output);
  save_model_folder(copy.scratch / "again", folder);
  expect_logits(load_model_folder(copy.scratch / "again").language_model(), output);
  EXPECT_THAT(read_file(copy.scratch / "again" / "config.json"), HasSubstr("\"tie_word_embeddings\": false"));
}

TEST_P(OwnOutput, OfTheEmbeddingsNumbersStaysTied) {
  const std::vector<float> output = add_output(0);
  const ModelFolder folder = load_model_folder(copy.folder);
  EXPECT_TRUE(dynamic_cast<const CausalModel&>(*folder.model).config().tied);
  expect_logits(folder.language_model(), output);
}

INSTANTIATE_TEST_SUITE_P(Tied, OwnOutput,
                         testing::Values(TiedGolden{"gpt2", "tied", "transformer.wte.weight"},
                                         TiedGolden{"llama", "tied_grouped", "model.embed_tokens.weight"},
                                         TiedGolden{"qwen2", "tied", "model.embed_tokens.weight"}),
                         [](const auto& of) { return of.param.family; });

TEST(OwnOutputOfMaskedWords, IsRefusedWhereItIsNotTheEmbedding) {
  for (const auto& [family, name, output, same] :
       {std::tuple{"bert", "masked", "cls.predictions.decoder.weight",
                   "bert.embeddings.word_embeddings.weight"},
        {"bert", "masked", "cls.predictions.decoder.bias", "cls.predictions.bias"},
        {"roberta", "masked", "lm_head.decoder.weight", "roberta.embeddings.word_embeddings.weight"},
        {"distilbert", "masked", "vocab_projector.weight", "distilbert.embeddings.word_embeddings.weight"},
        {"modernbert", "masked", "decoder.weight", "model.embeddings.tok_embeddings.weight"}}) {
    const test::DamagedGolden copy(family, name);
    const auto put = [&, from = same, to = output](float more) {
      add_changed_copy(copy.folder, from, to, [&](size_t, size_t) { return more; });
    };
    put(0);
    EXPECT_NO_THROW(load_model_folder(copy.folder)) << family;
    put(0.25f);
    copy.expect_error(std::string(output) + " is not " + same + "; expected a head for masked words");
  }
}

}  // namespace
}  // namespace mh
