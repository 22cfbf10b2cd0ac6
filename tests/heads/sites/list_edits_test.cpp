// Analyses of a corpus with an edit of one text: the text is the line of the corpus, blank lines counted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/heads/corpus/corpus_reader.h"
#include "multihead/heads/corpus/observe_heads.h"
#include "multihead/heads/importance/head_ablation.h"
#include "multihead/heads/sites/inspected_texts.h"
#include "multihead/heads/sites/observe_text.h"
#include "multihead/heads/sites/site_values.h"
#include "tests/heads/importance/scored_families.h"

namespace mh {
namespace {

/// The mean of all weights that a sentence's queries have, by its line.
class MeansOfLines final : public CorpusObserver {
 public:
  void begin(const CorpusBlock& block) override { lines_ = block.lines; }
  bool wants_weights(const Model::Attention&) const override { return true; }
  void weights(const BatchWeights& batch) override {
    for (int s = 0; s < batch.sequences(); ++s) {
      const int32_t begin = batch.query_offsets[static_cast<size_t>(s)],
                    end = batch.query_offsets[static_cast<size_t>(s) + 1];
      double sum = 0;
      for (int64_t row = begin; row < end; ++row) {
        for (int64_t c = 0; c < batch.outputs.cols; ++c) sum += static_cast<double>(batch.outputs(row, c));
      }
      found[lines_[static_cast<size_t>(batch.sentences[static_cast<size_t>(s)])]] += sum;
    }
  }
  std::map<int64_t, double> found;

 private:
  std::vector<int64_t> lines_;
};

std::map<int64_t, double> sums_of_lines(const ScoredFamily& family, SiteValues* values, int64_t tokens,
                                        bool targets) {
  TextCorpus corpus(lines_of_importance(targets));
  MeansOfLines means;
  CorpusObserver* const observers[] = {&means};
  observe_heads(family.model.folder(), corpus, observers,
                {.observe = {.max_batch_tokens = tokens, .sites = values}});
  return means.found;
}

SiteReplacement put_in_text(const ScoredFamily& family, int32_t number) {
  const Model& model = *family.model.folder().model;
  const std::string stack = is_causal(family.model.folder()) ? "decoder" : "encoder";
  SiteReplacement one{
      .site = stack + ".0.input", .sequence = number, .numbers = Tensor(1, model.facts().d_model)};
  for (int64_t c = 0; c < one.numbers.cols(); ++c) one.numbers(0, c) = 0.7f * static_cast<float>(c % 5);
  return one;
}

// Line 4 of the corpus has no text.
TEST(EditsOfACorpus, MeetTheLineOfThatNumber) {
  for (const ScoredFamily& family : scored_families()) {
    for (const bool targets : {false, true}) {
      if (targets && family.name != "translator") continue;
      const auto whole = sums_of_lines(family, nullptr, 1000, targets);
      for (const int64_t tokens : {1, 19, 1000}) {
        SiteValues values;
        values.replace(put_in_text(family, 4));
        const auto found = sums_of_lines(family, &values, tokens, targets);
        ASSERT_EQ(found.size(), 5u);
        for (const auto& [line, sum] : found)
          EXPECT_EQ(std::abs(sum - whole.at(line)) > 1e-3, line == 5) << family.name << " " << line;
      }
    }
  }
}

TEST(EditsOfACorpus, ReachTheScoresOfThatLineInEveryBatch) {
  for (const ScoredFamily& family : scored_families()) {
    const std::vector<HeadName> heads = {family.model.folder().model->heads_named(HeadPattern("*"))[0]};
    const auto scores = [&](Sites* sites, int64_t tokens) {
      return ablate_heads(family.model, family.texts, heads, {.max_batch_tokens = tokens, .sites = sites});
    };
    const HeadAblation whole = scores(nullptr, 1000);
    for (const int64_t tokens : {1, 19, 1000}) {
      SiteValues values;
      values.replace(put_in_text(family, 4));
      const HeadAblation found = scores(&values, tokens);
      for (size_t i = 0; i < whole.scores.size(); ++i) {
        // Of vectors every text is compared with itself.
        if (family.texts.kind != ScoreKind::kVectors) {
          EXPECT_EQ(std::abs(found.scores[i] - whole.scores[i]) > 1e-4, i == 3) << family.name << " " << i;
        } else if (i != 3) {
          EXPECT_NEAR(found.losses(static_cast<int64_t>(i), 0), whole.losses(static_cast<int64_t>(i), 0),
                      1e-5);
        }
      }
      EXPECT_TRUE(values.unread().empty());
    }
  }
}

TEST(EditsOfACorpus, OfTextsThatAreObservedOneByOne) {
  const ScoredFamily family = std::move(scored_families()[2]);
  const auto seen = [&](Sites* sites, std::optional<int64_t> number) {
    const Observation one = observe_text(family.model.folder(), "two dogs run", {},
                                         {.keep = {"encoder.states"}, .sites = sites, .number = number});
    return copied(one.value("encoder.states").view());
  };
  SiteValues values;
  values.replace(put_in_text(family, 2));
  const Tensor whole = seen(nullptr, std::nullopt), third = seen(&values, 2), fifth = seen(&values, 4);
  EXPECT_NE(third(1, 0), whole(1, 0));
  for (int64_t i = 0; i < whole.size(); ++i) EXPECT_EQ(fifth.data()[i], whole.data()[i]);
  EXPECT_THROW(seen(&values, std::nullopt), UsageError);  // one text alone is sequence 0
}

}  // namespace
}  // namespace mh
