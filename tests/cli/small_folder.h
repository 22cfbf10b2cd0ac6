// A small model with random weights and its tokenizer in a folder, for tests that run the tool on it.
#pragma once

#include <gmock/gmock.h>

#include <sstream>
#include <string>
#include <vector>

#include "multihead/folders/model_folder.h"
#include "multihead/folders/save_folder.h"
#include "multihead/models/encoder_decoder.h"
#include "multihead/models/translator_shape.h"
#include "multihead/text/train_tokenizer.h"
#include "tests/cli/run_tool.h"

namespace mh {

inline std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

inline const std::vector<std::string> kText{
    "the small dog sees a cat", "a cat runs", "dogs see the cats and run", "the dog", "small cats",
    "a small dog runs and sees"};

class SmallFolder : public testing::Test {
 protected:
  static Tokenizer make_tokenizer() {
    return train_bpe(kText, {.vocabulary_size = 60, .least_pair_count = 1});
  }

  SmallFolder() : tokenizer(make_tokenizer()), model(make_shape(tokenizer).config()) {
    model.initialise(23);
    // Sentences of useful lengths: sharp distributions, and an end that is not too rare.
    model.visit([](const std::string& name, Parameter& parameter) {
      const MatrixView view = parameter.value.view();
      if (name == "logits_bias") {
        view(0, kEndId) = 2;
      } else if (name.find("norm") == std::string::npos) {
        for (int64_t i = 0; i < view.rows; ++i) {
          for (int64_t j = 0; j < view.cols; ++j) view(i, j) *= 1.7f;
        }
      }
      parameter.changed();
    });
    folder = scratch / "model";
    save_model_folder(folder, model, {.tokenizer = &tokenizer});
  }

  static TranslatorShape make_shape(const Tokenizer& tokenizer) {
    TranslatorShape shape;
    shape.vocabulary_size = tokenizer.size();
    shape.d_model = 24;
    shape.encoder_layers = 2;
    shape.decoder_layers = 2;
    shape.encoder_heads = shape.decoder_heads = 3;
    shape.encoder_ff = shape.decoder_ff = 37;
    shape.max_positions = 19;
    shape.pad_id = shape.decoder_start_id = kPadId;
    shape.eos_id = kEndId;
    return shape;
  }

  std::vector<std::vector<int32_t>> sources(const std::vector<std::string>& lines) const {
    std::vector<std::vector<int32_t>> ids;
    for (const auto& line : lines) ids.push_back(tokenizer.encode_ids(line));
    return ids;
  }

  ScratchFolder scratch;
  Tokenizer tokenizer;
  EncoderDecoder model;
  std::string folder;
};

/// Bad input: this exit status, nothing on standard output, and one line that says `part`.
inline void expect_error(const ToolResult& result, int status, const std::string& part) {
  EXPECT_EQ(result.status, status) << result.err;
  EXPECT_THAT(result.err, testing::StartsWith("multihead: "));
  EXPECT_THAT(result.err, testing::HasSubstr(part));
  EXPECT_THAT(lines_of(result.err), testing::SizeIs(1)) << result.err;
  EXPECT_EQ(result.out, "");
}

}  // namespace mh
