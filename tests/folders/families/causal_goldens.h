// What the tests of every family of causal decoders ask of a golden folder: the numbers of its oracle, read at
// once or in parts, and heads that can be seen and muted.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <vector>

#include "multihead/batch/batch.h"
#include "multihead/folders/model_folder.h"
#include "multihead/heads/sites/site_values.h"
#include "multihead/models/vocabulary_head.h"
#include "multihead/nn/stack_cache.h"
#include "tests/folders/families/golden_model.h"

namespace mh::test {

inline void expect_states_and_logits(const LanguageModel& model, const GoldenModel& golden) {
  const Batch batch(golden.sequences);
  Tape tape;
  Context context{.tape = tape};
  const Var states = model.states(context, {}, batch.view());
  golden.expect_near(states.value(), "states");
  Tensor logits(states.rows(), model.facts().vocabulary);
  model.vocabulary().logits(states.value(), logits.view());
  golden.expect_near(logits.view(), "logits");
}

/// Reads sequences 2 and 3 against the cache: a prompt each, of unequal lengths, then a token at a time.
inline void expect_same_in_parts(const LanguageModel& model, const GoldenModel& golden,
                                 const std::vector<int32_t>& prompts, double tolerance) {
  const std::vector<float> expected = golden.file.floats("states");
  const size_t width = expected.size() / Batch(golden.sequences).ids.size();
  const auto rows_before = [&](size_t sequence) {
    size_t rows = 0;
    for (size_t i = 0; i < sequence; ++i) rows += golden.sequences[i].size();
    return rows;
  };
  const auto length = [&](size_t s) { return static_cast<int32_t>(golden.sequences[2 + s].size()); };
  for (const int32_t prompt : prompts) {
    StackCache cache;
    Tape tape;
    Context context{.tape = tape};
    model.start(context, {}, cache);
    std::vector<int32_t> read(2, 0);
    for (int step = 0; read[0] < length(0) && read[1] < length(1); ++step) {
      std::vector<int32_t> ids;
      Ragged rows;
      for (size_t s = 0; s < 2; ++s) {
        const auto& tokens = golden.sequences[2 + s];
        const int32_t count = step == 0 ? prompt - static_cast<int32_t>(prompt > 1 ? s : 0) : 1;
        ids.insert(ids.end(), tokens.begin() + read[s], tokens.begin() + read[s] + count);
        rows.add(count);
      }
      tape.clear();
      const MatrixView states = model.extend(context, ids, {.rows = &rows}, cache).value();
      for (size_t s = 0; s < 2; ++s) {
        const size_t first = rows_before(2 + s) + static_cast<size_t>(read[s]);
        for (int32_t i = 0; i < rows.length(static_cast<int32_t>(s)); ++i) {
          const float* found = states.row(rows.begin(static_cast<int32_t>(s)) + i);
          const float* wanted = expected.data() + (first + static_cast<size_t>(i)) * width;
          for (size_t c = 0; c < width; ++c)
            ASSERT_NEAR(found[c], wanted[c], tolerance) << prompt << " " << read[s];
        }
        read[s] += rows.length(static_cast<int32_t>(s));
      }
    }
  }
}

inline void expect_heads_seen_and_muted(const LanguageModel& model, const GoldenModel& golden) {
  EXPECT_EQ(model.attentions().at(1).name, "decoder.1.self_attention");
  const Batch batch(golden.sequences);
  const auto states = [&](Sites* sites) {
    Tape tape;
    Context context{.tape = tape, .sites = sites};
    const MatrixView found = model.states(context, {}, batch.view()).value();
    return std::vector<float>(found.data, found.data + found.size());
  };
  SiteValues mute;
  mute.mute("decoder.1.self_attention.0");
  model.check(mute);
  EXPECT_NE(states(&mute), states(nullptr));
  SiteValues none;
  none.mute("decoder.9.self_attention.0");
  EXPECT_THROW(model.check(none), UsageError);
}

}  // namespace mh::test
