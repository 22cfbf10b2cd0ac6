// T5 in GGUF, written as llama.cpp's converter does it (tests/oracles/gguf_t5_goldens.py): the model and the texts are those of the
// folder that the file was made of.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "multihead/base/file.h"
#include "multihead/folders/gguf_config.h"
#include "multihead/folders/model_folder.h"
#include "multihead/folders/save_folder.h"
#include "multihead/generate/translate.h"
#include "multihead/io/gguf_writer.h"
#include "multihead/models/encoder_decoder.h"
#include "multihead/text/tokenizer.h"
#include "tests/folders/families/translator_golden.h"
#include "tests/support/places.h"
#include "tests/support/scratch_folder.h"

namespace mh {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

fs::path file_of(const std::string& family, const std::string& name) {
  return fs::path(goldens_folder()) / "gguf_t5" / (family + "_" + name + ".gguf");
}

struct T5File {
  const char *family, *name;
};

class GgufT5 : public testing::TestWithParam<T5File> {
 protected:
  const test::TranslatorGolden golden{GetParam().family, GetParam().name};
  const fs::path path = file_of(GetParam().family, GetParam().name);
};

TEST_P(GgufT5, ComputesWhatTheFolderDoes) {
  const ModelFolder folder = load_model_folder(path), theirs = load_model_folder(golden.folder);
  EXPECT_EQ(folder.remark(), "");
  EXPECT_EQ(folder.generation_remark, "");
  EXPECT_EQ(folder.model_type, GetParam().family);
  EXPECT_EQ(folder.model->parameter_count(), theirs.model->parameter_count());
  test::expect_log_probabilities_of(folder.translator(), golden);
  const TranslateOptions options{.search = {.beam_size = 3, .max_length = 9}};
  const auto found = translate(folder.translator(), golden.sources, options);
  const auto expected = translate(theirs.translator(), golden.sources, options);
  for (size_t s = 0; s < found.size(); ++s) EXPECT_EQ(found[s][0].tokens, expected[s][0].tokens) << s;
}

TEST_P(GgufT5, TheConvertedFolderIsTheSameModel) {
  const test::ScratchFolder scratch;
  save_model_folder(scratch / "folder", load_model_folder(path));
  const ModelFolder folder = load_model_folder(scratch / "folder");
  EXPECT_EQ(folder.remark(), "");
  EXPECT_EQ(folder.model_type, GetParam().family);
  test::expect_log_probabilities_of(folder.translator(), golden);
}

INSTANTIATE_TEST_SUITE_P(Files, GgufT5,
                         testing::Values(T5File{"t5", "plain"}, T5File{"t5", "flan_bf16"},
                                         T5File{"t5", "text"}, T5File{"umt5", "plain"}),
                         [](const auto& file) {
                           return std::string(file.param.family) + "_" + file.param.name;
                         });

TEST(GgufT5Tokenizer, TokensAreThoseOfTokenizerJson) {
  const fs::path folder = fs::path(goldens_folder()) / "t5" / "text";
  const Tokenizer found = load_tokenizer(file_of("t5", "text")), theirs = load_tokenizer(folder);
  std::vector<std::string> texts = {"",
                                    "  two   spaces ",
                                    "\ttab\nline",
                                    "Naïve 漢字 ½ ² ٣ x",
                                    "a",
                                    "<extra_id_0> b<extra_id_1>c",
                                    "<pad></s><unk>",
                                    "▁▁a ▁"};
  for (const json& one : json::parse(read_file(folder.string() + ".texts.json")))
    texts.push_back(one["text"]);
  for (const std::string& text : texts) {
    const auto ids = theirs.encode(text).ids;
    EXPECT_EQ(found.encode(text).ids, ids) << text;
    // A sentinel is no special token of a GGUF file, and so it is shown.
    if (text.find("<extra_id") == std::string::npos) {
      EXPECT_EQ(found.decode(ids), theirs.decode(ids)) << text;
    }
  }
}

/// A file with the same metadata and tensors, and the embeddings once more as the output layer.
void write_with_output_layer(const fs::path& from, const fs::path& to) {
  const GgufFile file = GgufFile::open(from);
  std::vector<GgufOutputValue> values;
  for (const std::string_view key : file.keys())
    values.push_back({std::string(key), std::string(file.stored(key))});
  std::vector<GgufOutputTensor> tensors;
  const auto add = [&](std::string_view name, const GgufTensor& tensor) {
    const auto copy = [bytes = tensor.bytes](int64_t begin, int64_t end, std::span<std::byte> out) {
      const size_t row = out.size() / static_cast<size_t>(end - begin);
      std::ranges::copy(bytes.subspan(static_cast<size_t>(begin) * row, out.size()), out.begin());
    };
    tensors.push_back({.name = std::string(name), .shape = tensor.shape, .type = tensor.type, .rows = copy});
  };
  for (const GgufTensor& tensor : file.tensors()) add(tensor.name, tensor);
  add("output.weight", *file.tensor("token_embd.weight"));
  write_gguf(to, values, tensors);
}

TEST(GgufT5Output, ALayerThatRepeatsTheEmbeddingsIsTied) {
  const test::ScratchFolder scratch;
  write_with_output_layer(file_of("t5", "plain"), scratch / "twice.gguf");
  const test::TranslatorGolden golden("t5", "plain");
  const ModelFolder folder = load_model_folder(scratch / "twice.gguf");
  EXPECT_EQ(folder.remark(), "");
  EXPECT_EQ(json::parse(gguf_config_json(GgufFile::open(scratch / "twice.gguf")))["tie_word_embeddings"],
            true);
  test::expect_log_probabilities_of(folder.translator(), golden);
}

TEST(GgufT5Config, HasTheFieldsOfItsClass) {
  const auto fields_of = [](const char* family, const char* name) {
    return json::parse(gguf_config_json(GgufFile::open(file_of(family, name))));
  };
  const json plain = fields_of("t5", "plain"), gated = fields_of("t5", "flan_bf16");
  EXPECT_EQ(plain["architectures"], json({"T5ForConditionalGeneration"}));
  EXPECT_EQ(plain["d_kv"], 5);
  EXPECT_EQ(plain["num_layers"], 2);
  EXPECT_EQ(plain["num_decoder_layers"], 3);
  EXPECT_EQ(plain["feed_forward_proj"], "relu");
  EXPECT_EQ(plain["tie_word_embeddings"], true);
  EXPECT_EQ(gated["feed_forward_proj"], "gated-gelu");
  EXPECT_EQ(gated["tie_word_embeddings"], false);
  EXPECT_EQ(gated["n_positions"], 53);
  EXPECT_EQ(fields_of("umt5", "plain")["model_type"], "umt5");
}

}  // namespace
}  // namespace mh
