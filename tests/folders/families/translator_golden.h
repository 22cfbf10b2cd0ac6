// Reads what an oracle computed with a small translator's folder: sentences of both sides, and numbers row by row.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "multihead/batch/batch.h"
#include "multihead/io/safetensors.h"
#include "multihead/kernels/vocabulary.h"
#include "multihead/models/encoder_decoder.h"
#include "tests/folders/families/golden_model.h"
#include "tests/support/places.h"

namespace mh::test {

struct TranslatorGolden {
  TranslatorGolden(const std::string& family, const std::string& name)
      : folder(std::filesystem::path(goldens_folder()) / family / name),
        file(SafetensorsFile::open(folder.parent_path() / (name + ".golden.safetensors"))),
        sources(lists("source")),
        source(sources),
        target_in(lists("target_in")),
        target_out(lists("target_out")) {}

  std::vector<std::vector<int32_t>> lists(const std::string& name) const {
    return golden_lists(file, name, name + "_lengths");
  }

  std::filesystem::path folder;
  SafetensorsFile file;
  std::vector<std::vector<int32_t>> sources;
  Batch source, target_in, target_out;
};

/// log_probabilities() are those of the golden's logits.
inline void expect_log_probabilities_of(const EncoderDecoder& model, const TranslatorGolden& golden) {
  Tape tape;
  Context context{.tape = tape};
  VocabularyScratch scratch;
  const auto found = model.log_probabilities(context, golden.source.view(), golden.target_in.view(),
                                             golden.target_out.ids, scratch);
  const auto logits = golden.file.floats("logits");
  const auto vocabulary = static_cast<size_t>(model.config().target_vocabulary());
  ASSERT_EQ(found.size() * vocabulary, logits.size());
  for (size_t i = 0; i < found.size(); ++i) {
    double sum = 0;
    for (size_t v = 0; v < vocabulary; ++v) sum += std::exp(static_cast<double>(logits[i * vocabulary + v]));
    const double expected =
        logits[i * vocabulary + static_cast<size_t>(golden.target_out.ids[i])] - std::log(sum);
    EXPECT_NEAR(found[i], expected, 1e-4) << i;
  }
}

}  // namespace mh::test
