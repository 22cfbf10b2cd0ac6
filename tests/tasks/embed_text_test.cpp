// Batching, threads, cutting, muting and neighbours of vectors; tests/tasks/sentence_folder_test.cpp compares their numbers.
#include "multihead/tasks/embed_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <set>

#include "multihead/base/error.h"
#include "multihead/base/random.h"
#include "multihead/base/thread_pool.h"
#include "multihead/heads/sites/site_values.h"
#include "multihead/io/lines.h"
#include "multihead/io/safetensors.h"
#include "multihead/models/encoder_decoder.h"
#include "multihead/models/translator_shape.h"
#include "multihead/text/train_tokenizer.h"
#include "tests/support/places.h"

namespace mh {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

class EmbedText : public testing::Test {
 protected:
  static std::filesystem::path goldens() { return std::filesystem::path(goldens_folder()) / "sentences"; }
  static bool same(const Tensor& a, const Tensor& b) {
    return a.rows() == b.rows() && a.cols() == b.cols() &&
           std::equal(a.data(), a.data() + a.size(), b.data());
  }
  SentenceModel model = load_sentence_model(goldens() / "dense");
  std::vector<std::string> lines = read_lines(goldens() / "sentences.txt");
};

TEST_F(EmbedText, BatchesAndThreadsDoNotChangeABit) {
  std::vector<std::string> many;
  for (int i = 0; i < 97; ++i) many.push_back(lines[static_cast<size_t>(i) % lines.size()]);
  const Tensor all = embed_text(model, many);
  const int before = thread_count();
  for (const int threads : {1, 3}) {
    set_thread_count(threads);
    for (const int64_t tokens : {1, 37, 100'000})
      EXPECT_TRUE(same(embed_text(model, many, {.max_batch_tokens = tokens}), all));
  }
  set_thread_count(before);
  for (size_t i = 0; i < lines.size(); ++i) {
    const Tensor alone = embed_text(model, {lines[i]});
    for (int64_t j = 0; j < model.dimension; ++j)
      EXPECT_EQ(alone(0, j), all(static_cast<int64_t>(i), j)) << i;
  }
  EXPECT_EQ(embed_text(model, {}).rows(), 0);
}

TEST_F(EmbedText, ProgressEndsWithAll) {
  const int before = thread_count();
  for (const int threads : {1, 3}) {
    set_thread_count(threads);
    std::vector<int64_t> told;
    const auto progress = [&](int64_t done) { told.push_back(done); };
    embed_text(model, lines, {.max_batch_tokens = 9, .progress = progress});
    // It is told after each batch of the calling thread, which of three may get one batch or all.
    if (threads == 1) {
      EXPECT_GT(told.size(), 3u);
    }
    EXPECT_TRUE(std::is_sorted(told.begin(), told.end()));
    EXPECT_EQ(told.back(), std::ssize(lines));
  }
  set_thread_count(before);
}

TEST_F(EmbedText, LongLinesAreCutBeforeTheClosingTokenOrRefused) {
  std::vector<std::string> remarks;
  const auto remark = [&](const std::string& line) { remarks.push_back(line); };
  std::string cat = "cat";
  for (int i = 1; i < 27; ++i) cat += " cat";  // with [CLS] and [SEP] the 29 tokens that it reads
  const Tensor rows = embed_text(model, {cat, cat + " dogs", cat + " dogs run"},
                                 {.from = {.name = "FILE", .first = 10}, .remark = remark});
  for (int64_t j = 0; j < model.dimension; ++j) {
    EXPECT_EQ(rows(0, j), rows(1, j));
    EXPECT_EQ(rows(0, j), rows(2, j));
  }
  EXPECT_THAT(remarks, ElementsAre("2 of 3 lines cut to the 29 tokens that the model reads, at their end; "
                                   "FILE line 11 has 30 tokens"));
  EXPECT_THAT(
      [&] {
        embed_text(model, {cat, cat + " dogs run"}, {.strict = true});
      },
      ThrowsMessage<FormatError>(HasSubstr("text 2 has 31 tokens, but the model reads 29")));
  EXPECT_NO_THROW(embed_text(model, {cat}, {.strict = true}));
}

TEST_F(EmbedText, NamesWordsThatTheTokenizerDoesNotKnow) {
  std::vector<std::string> remarks;
  embed_text(model, {"a zebra", "the cat", "a whale sees a zebra"},
             {.remark = [&](const std::string& line) { remarks.push_back(line); }});
  EXPECT_THAT(
      remarks,
      ElementsAre("3 unknown tokens in 2 lines, e.g. 'zebra', 'whale'; the tokenizer does not know them"));
}

TEST_F(EmbedText, MutedHeadsChangeTheVectorsAndMustBeThere) {
  SiteValues muted, missing;
  muted.mute("encoder.1.self_attention.1");
  missing.mute("encoder.1.self_attention.2");
  EXPECT_FALSE(same(embed_text(model, lines, {.sites = &muted}), embed_text(model, lines)));
  EXPECT_THROW(embed_text(model, lines, {.sites = &missing}), UsageError);
}

TEST_F(EmbedText, WhatCannotBeIsOneLine) {
  EXPECT_THAT(
      [&] {
        embed_text(model, {"a", "b\xff"});
      },
      ThrowsMessage<FormatError>("text 2: byte 2 (0xff) is not UTF-8"));
  EXPECT_THROW(embed_text(model, lines, {.max_batch_tokens = 0}), UsageError);
  model.longest = 2;
  EXPECT_THROW(embed_text(model, lines), UsageError);
  model.longest = 29, model.dimension = 10;
  EXPECT_THROW(embed_text(model, lines), ShapeError);
  model.folder.tokenizer.reset();
  EXPECT_THROW(embed_text(model, lines), FileError);
}

TEST_F(EmbedText, VectorsThatAreNotFiniteAreAnError) {
  model.folder.model->visit([](const std::string& name, Parameter& parameter) {
    if (!name.ends_with("feed_forward_norm.gain")) return;
    parameter.value.fill(3e38f);
    parameter.changed();
  });
  for (const int64_t tokens : {1, 2048})  // on many threads, and on one
    EXPECT_THAT(
        [&] { embed_text(model, lines, {.max_batch_tokens = tokens}); },
        ThrowsMessage<Error>("the model's states are not finite numbers; its weights may be damaged"));
}

// Any model reads a text: of a translator the encoder does. Its tokenizer closes a text and opens none.
TEST_F(EmbedText, OtherModelsGiveTheMeanOfTheirStates) {
  SentenceModel translator;
  translator.longest = 5, translator.dimension = 6;
  const std::vector<std::string> text{"a cat", "a dog"};
  translator.folder.tokenizer = train_bpe(text, {.vocabulary_size = 17, .least_pair_count = 1});
  TranslatorShape shape;
  shape.vocabulary_size = translator.folder.tokenizer->size();
  shape.d_model = 6;
  shape.encoder_layers = shape.decoder_layers = 1;
  shape.encoder_heads = shape.decoder_heads = 3;
  shape.encoder_ff = shape.decoder_ff = 7;
  shape.max_positions = 5;
  shape.eos_id = kEndId;
  shape.pad_id = shape.decoder_start_id = kPadId;
  auto made = std::make_unique<EncoderDecoder>(shape.config());
  made->initialise(3);
  translator.folder.model = std::move(made);
  const Tensor rows = embed_text(translator, {"a dog a dog a dog a dog", "a cat"});
  Tape tape;
  Context context{.tape = tape};
  auto ids = translator.folder.tokenizer->encode_ids("a dog a dog a dog a dog");
  ids.resize(4);
  ids.push_back(kEndId);
  const Batch batch(std::vector<std::vector<int32_t>>{ids});
  const ConstMatrixView states = translator.folder.model->read(context, batch.view(), {}).value();
  for (int64_t j = 0; j < 6; ++j) {
    double sum = 0;
    for (int64_t i = 0; i < 5; ++i) sum += static_cast<double>(states(i, j));
    EXPECT_NEAR(rows(0, j), sum / 5, 1e-6);
  }
}

TEST(NearestRows, AreThoseOfTheGreatestCosine) {
  Random random(7);
  Tensor queries(300, 7), rows(23, 7);  // more queries than are compared at once
  for (Tensor* tensor : {&queries, &rows}) {
    for (int64_t i = 0; i < tensor->size(); ++i) tensor->data()[i] = static_cast<float>(random.normal());
  }
  for (int64_t j = 0; j < 7; ++j) rows(11, j) = 0, rows(5, j) = 2 * rows(17, j);
  const auto nearest = nearest_rows(queries.view(), rows.view(), 23);
  ASSERT_EQ(nearest.size(), 300u);
  Tensor both(2, 7);
  for (int64_t q = 0; q < 300; ++q) {
    const auto& of_query = nearest[static_cast<size_t>(q)];
    ASSERT_EQ(of_query.size(), 23u);
    for (size_t k = 0; k < of_query.size(); ++k) {
      std::copy_n(queries.view().row(q), 7, both.view().row(0));
      std::copy_n(rows.view().row(of_query[k].row), 7, both.view().row(1));
      EXPECT_NEAR(of_query[k].similarity, cosine(both.view(), 0, 1), 1e-6);
      if (k > 0) {
        EXPECT_GE(of_query[k - 1].similarity, of_query[k].similarity);
      }
    }
  }
  EXPECT_EQ(nearest_rows(queries.view(), rows.view(), 1000)[0].size(), 23u);
  EXPECT_EQ(nearest_rows(queries.view(), rows.view(), 2)[4].size(), 2u);
  EXPECT_TRUE(nearest_rows(queries.view(), Tensor(0, 7).view(), 2)[4].empty());
  EXPECT_THROW(nearest_rows(queries.view(), rows.view(), 0), UsageError);
  EXPECT_THROW(nearest_rows(queries.view(), Tensor(3, 5).view(), 1), ShapeError);
  EXPECT_EQ(cosine(rows.view(), 11, 0), 0);
  EXPECT_NEAR(cosine(rows.view(), 5, 17), 1, 1e-6);
  EXPECT_THROW(cosine(rows.view(), 0, 23), UsageError);
}

// tests/oracles/similarity_goldens.py makes the numbers.
TEST(Similarities, AreThoseOfSentenceTransformers) {
  const SafetensorsFile golden =
      SafetensorsFile::open(std::filesystem::path(goldens_folder()) / "similarities.safetensors");
  const auto matrix = [&](const std::string& name, int64_t rows, int64_t cols) {
    const std::vector<float> numbers = golden.floats(name);
    Tensor found(rows, cols);
    EXPECT_EQ(std::ssize(numbers), found.size()) << name;
    std::copy_n(numbers.begin(), found.size(), found.data());
    return found;
  };
  const Tensor queries = matrix("queries", 5, 7), rows = matrix("rows", 11, 7);
  for (const auto& entry : kSimilarityNames) {
    const Tensor expected = matrix(entry.first, 5, 11);
    const Tensor found = similarities(queries.view(), rows.view(), entry.second);
    for (int64_t q = 0; q < 5; ++q) {
      for (int64_t i = 0; i < 11; ++i)
        EXPECT_NEAR(found(q, i), expected(q, i), 2e-6) << entry.first << " " << q << " " << i;
    }
  }
  EXPECT_EQ(similarities(queries.view(), Tensor(0, 7).view(), Similarity::kDot).cols(), 0);
  EXPECT_THROW(similarities(queries.view(), Tensor(3, 5).view(), Similarity::kDot), ShapeError);
}

TEST(NearestRows, AreThoseOfEachKindOfSimilarity) {
  Random random(11);
  Tensor queries(5, 3), rows(13, 3);
  for (Tensor* tensor : {&queries, &rows}) {
    for (int64_t i = 0; i < tensor->size(); ++i) tensor->data()[i] = static_cast<float>(random.normal());
  }
  const auto in_double = [&](Similarity kind, int64_t q, int64_t i) {
    double dot = 0, squares = 0, sum = 0, of_q = 0, of_i = 0;
    for (int64_t j = 0; j < 3; ++j) {
      const double x = queries(q, j), y = rows(i, j);
      dot += x * y, squares += (x - y) * (x - y), sum += std::abs(x - y), of_q += x * x, of_i += y * y;
    }
    switch (kind) {
      case Similarity::kDot:
        return dot;
      case Similarity::kEuclidean:
        return -std::sqrt(squares);
      case Similarity::kManhattan:
        return -sum;
      case Similarity::kCosine:
        break;
    }
    return dot / std::sqrt(of_q * of_i);
  };
  std::set<std::vector<int64_t>> orders;
  for (const auto& [name, kind] : kSimilarityNames) {
    const auto nearest = nearest_rows(queries.view(), rows.view(), 13, kind);
    std::vector<int64_t> order;
    for (int64_t q = 0; q < 5; ++q) {
      const auto& of_query = nearest[static_cast<size_t>(q)];
      for (size_t k = 0; k < of_query.size(); ++k) {
        order.push_back(of_query[k].row);
        EXPECT_NEAR(of_query[k].similarity, in_double(kind, q, of_query[k].row), 1e-6) << name;
        if (k > 0) {
          EXPECT_GE(of_query[k - 1].similarity, of_query[k].similarity) << name;
        }
      }
    }
    orders.insert(order);
    Tensor both(2, 3);
    std::copy_n(queries.view().row(4), 3, both.view().row(0));
    std::copy_n(rows.view().row(2), 3, both.view().row(1));
    EXPECT_NEAR(similarity_of(both.view(), 0, 1, kind), in_double(kind, 4, 2), 1e-12) << name;
  }
  EXPECT_EQ(orders.size(), 4u);
}

// Rows that a caller has from elsewhere.
TEST(NearestRows, NumbersThatAreNotFiniteAreRefused) {
  for (const float bad : {std::nanf(""), std::numeric_limits<float>::infinity()}) {
    Tensor queries(5, 3), rows(7, 3);
    queries.fill(1), rows.fill(2);
    EXPECT_NO_THROW(nearest_rows(queries.view(), rows.view(), 2));
    rows(6, 1) = bad;
    EXPECT_THAT([&] { nearest_rows(queries.view(), rows.view(), 2); },
                ThrowsMessage<UsageError>("nearest rows: row 6 has numbers that are not finite"));
    EXPECT_THAT([&] { cosine(rows.view(), 0, 6); },
                ThrowsMessage<UsageError>("cosine: row 6 has numbers that are not finite"));
    EXPECT_NEAR(cosine(rows.view(), 0, 5), 1, 1e-6);
    rows(6, 1) = 2, queries(0, 0) = bad;
    EXPECT_THROW(nearest_rows(queries.view(), rows.view(), 2), UsageError);
  }
}

}  // namespace
}  // namespace mh
