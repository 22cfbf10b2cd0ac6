// What is put at a site goes by the text of the caller's list, in any order of the texts and in batches of any size.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/base/thread_pool.h"
#include "multihead/heads/sites/site_values.h"
#include "multihead/io/lines.h"
#include "multihead/tasks/embed_text.h"
#include "multihead/tasks/fill_words.h"
#include "tests/support/places.h"

namespace mh {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

std::filesystem::path list_goldens() {
  return goldens_folder();
}

Tensor numbers_of(int64_t rows, int64_t columns, float first = 0.25f) {
  Tensor numbers(rows, columns);
  for (int64_t i = 0; i < numbers.size(); ++i)
    numbers.data()[i] = first + 0.01f * static_cast<float>((i * 7) % 23);
  return numbers;
}

/// Rows [begin, end).
Tensor rows_of(const Tensor& all, int64_t begin, int64_t end) {
  return copied(all.view().rows_between(begin, end));
}

class EditsOfAList : public testing::Test {
 protected:
  static constexpr int64_t kBatches[] = {1, 13, 37, 100'000};

  Tensor embedded(const std::vector<std::string>& texts, SiteReplacement one,
                  int64_t tokens = 100'000) const {
    SiteValues values;
    values.replace(std::move(one));
    return embed_text(model, texts, {.max_batch_tokens = tokens, .sites = &values});
  }
  /// What a text has at a site when it is alone.
  Tensor alone(const std::string& text, const std::string& site) const {
    SiteValues values;
    values.keep(site);
    embed_text(model, {text}, {.sites = &values});
    return copied(values.value(site).view());
  }
  /// The rows of all texts, in the order of the list.
  Tensor by_text(const std::string& site) const {
    std::vector<Tensor> each;
    int64_t rows = 0;
    for (const std::string& text : lines) rows += each.emplace_back(alone(text, site)).rows();
    Tensor all(rows, each[0].cols());
    float* at = all.data();
    for (const Tensor& one : each) at = std::copy_n(one.data(), one.size(), at);
    return all;
  }
  static void expect_row(const Tensor& found, size_t i, const Tensor& expected, size_t j) {
    for (int64_t c = 0; c < found.cols(); ++c)
      ASSERT_EQ(found(static_cast<int64_t>(i), c), expected(static_cast<int64_t>(j), c)) << i << " " << c;
  }

  const SentenceModel model = load_sentence_model(list_goldens() / "sentences/dense");
  // The longest is not the first.
  const std::vector<std::string> lines{"a cat",
                                       "the small dogs run in the park",
                                       "two",
                                       "dogs see the cat",
                                       "two small dogs see a cat in the park",
                                       "the cat runs",
                                       "a"};
};

TEST_F(EditsOfAList, MeetTheTextOfThatNumber) {
  const std::string site = "encoder.0.self_attention.heads";
  const Tensor whole = embed_text(model, lines);
  const int64_t width = alone(lines[0], site).cols() / 2;
  for (const size_t edited : {1u, 3u, 6u}) {
    const Tensor expected =
        embedded({lines[edited]}, {.site = site, .sequence = 0, .head = 1, .numbers = numbers_of(1, width)});
    EXPECT_NE(expected(0, 0), whole(static_cast<int64_t>(edited), 0));
    for (const int64_t tokens : kBatches) {
      const Tensor found = embedded(lines,
                                    {.site = site,
                                     .sequence = static_cast<int32_t>(edited),
                                     .head = 1,
                                     .numbers = numbers_of(1, width)},
                                    tokens);
      for (size_t i = 0; i < lines.size(); ++i)
        expect_row(found, i, i == edited ? expected : whole, i == edited ? 0 : i);
    }
  }
}

TEST_F(EditsOfAList, AreTheSameInAnyOrder) {
  const std::string site = "encoder.1.output";
  const int64_t width = alone(lines[0], site).cols();
  const Tensor given =
      embedded(lines, {.site = site, .sequence = 3, .position = 1, .numbers = numbers_of(1, width)});
  std::vector<std::string> turned(lines.rbegin(), lines.rend());
  const Tensor found =
      embedded(turned, {.site = site, .sequence = 3, .position = 1, .numbers = numbers_of(1, width)}, 13);
  for (size_t i = 0; i < lines.size(); ++i) expect_row(found, i, given, lines.size() - 1 - i);
}

TEST_F(EditsOfAList, TakeRowsTextByText) {
  const std::string site = "encoder.0.output";
  const Tensor own = by_text(site), whole = embed_text(model, lines);
  const Tensor other = numbers_of(own.rows(), own.cols());
  for (const int64_t tokens : kBatches) {
    const Tensor same = embedded(lines, {.site = site, .numbers = copied(own.view())}, tokens);
    const Tensor found = embedded(lines, {.site = site, .numbers = copied(other.view())}, tokens);
    int64_t begin = 0;
    for (size_t i = 0; i < lines.size(); ++i) {
      expect_row(same, i, whole, i);
      const int64_t end = begin + alone(lines[i], site).rows();
      expect_row(found, i, embedded({lines[i]}, {.site = site, .numbers = rows_of(other, begin, end)}), 0);
      begin = end;
    }
  }
}

TEST_F(EditsOfAList, TakeTheRowsOfOnePositionTextByText) {
  const std::string site = "encoder.1.input";
  const int64_t width = alone(lines[0], site).cols();
  int64_t have = 0;  // texts with a position 4
  for (const std::string& text : lines) have += alone(text, site).rows() > 4 ? 1 : 0;
  ASSERT_LT(have, std::ssize(lines));
  const Tensor numbers = numbers_of(have, width), whole = embed_text(model, lines);
  for (const int64_t tokens : kBatches) {
    const Tensor found =
        embedded(lines, {.site = site, .position = 4, .numbers = copied(numbers.view())}, tokens);
    int64_t row = 0;
    for (size_t i = 0; i < lines.size(); ++i) {
      if (alone(lines[i], site).rows() <= 4) {
        expect_row(found, i, whole, i);
        continue;
      }
      const SiteReplacement one{.site = site, .position = 4, .numbers = rows_of(numbers, row, row + 1)};
      SiteReplacement copy{.site = one.site, .position = one.position, .numbers = copied(one.numbers.view())};
      expect_row(found, i, embedded({lines[i]}, std::move(copy)), 0);
      ++row;
    }
  }
}

TEST_F(EditsOfAList, TakeWeightsOfAsManyKeysAsTheLongestTextHas) {
  const std::string site = "encoder.1.self_attention.weights.0";
  int64_t rows = 0, keys = 0;
  std::vector<Tensor> each;
  for (const std::string& text : lines) {
    each.push_back(alone(text, site));
    rows += each.back().rows();
    keys = std::max(keys, each.back().cols());
  }
  Tensor all(rows, keys);
  all.fill(0);
  int64_t row = 0;
  for (const Tensor& one : each) {
    for (int64_t i = 0; i < one.rows(); ++i, ++row)
      std::copy_n(one.view().row(i), one.cols(), all.view().row(row));
  }
  const Tensor whole = embed_text(model, lines);
  for (const int64_t tokens : kBatches) {
    const Tensor found = embedded(lines, {.site = site, .numbers = copied(all.view())}, tokens);
    for (int64_t i = 0; i < found.size(); ++i) ASSERT_NEAR(found.data()[i], whole.data()[i], 1e-5);
    // Those of one text alone have the keys of that text.
    const Tensor of_one =
        embedded(lines, {.site = site, .sequence = 2, .numbers = copied(each[2].view())}, tokens);
    for (int64_t i = 0; i < found.size(); ++i) ASSERT_NEAR(of_one.data()[i], whole.data()[i], 1e-5);
  }
}

TEST_F(EditsOfAList, TakeARowForEachText) {
  const Tensor vectors = numbers_of(std::ssize(lines), model.dimension);
  for (const int64_t tokens : kBatches) {
    const Tensor found =
        embedded(lines, {.site = "sentence.vectors", .numbers = copied(vectors.view())}, tokens);
    for (size_t i = 0; i < lines.size(); ++i) expect_row(found, i, vectors, i);
  }
}

TEST_F(EditsOfAList, OfManyThreads) {
  std::vector<std::string> many;
  for (int i = 0; i < 97; ++i) many.push_back(lines[static_cast<size_t>(i) % lines.size()]);
  const auto found = [&] {
    return embedded(many, {.site = "encoder.0.output",
                           .sequence = 53,
                           .numbers = numbers_of(1, alone(lines[0], "encoder.0.output").cols())});
  };
  const Tensor whole = embed_text(model, many);
  const int before = thread_count();
  for (const int threads : {1, 3}) {
    set_thread_count(threads);
    const Tensor rows = found();
    for (size_t i = 0; i < many.size(); ++i) {
      if (i != 53) expect_row(rows, i, whole, i);
    }
    EXPECT_NE(rows(53, 0), whole(53, 0));
  }
  set_thread_count(before);
}

TEST_F(EditsOfAList, WhatTheListDoesNotHaveIsAnError) {
  const std::string site = "encoder.0.output";
  const int64_t width = alone(lines[0], site).cols();
  for (const int64_t tokens : kBatches) {
    EXPECT_THAT([&] { embedded(lines, {.site = site, .sequence = 7, .numbers = Tensor(1, width)}, tokens); },
                ThrowsMessage<UsageError>(HasSubstr("there is no sequence 7; there are 7, numbered from 0")));
    EXPECT_THAT(
        [&] { embedded(lines, {.site = site, .position = 999, .numbers = Tensor(1, width)}, tokens); },
        ThrowsMessage<UsageError>(HasSubstr("no sequence has a position 999; the longest has 11")));
    EXPECT_THAT(
        [&] {
          embedded(lines, {.site = site, .sequence = 2, .position = 5, .numbers = Tensor(1, width)}, tokens);
        },
        ThrowsMessage<UsageError>(HasSubstr("sequence 2 has no position 5; it has 3")));
    EXPECT_THAT([&] { embedded(lines, {.site = site, .numbers = Tensor(5, width)}, tokens); },
                ThrowsMessage<ShapeError>(HasSubstr(", or [1,")));
  }
  EXPECT_THAT([&] { embedded(lines, {.site = site, .position = -1, .numbers = Tensor(1, width)}); },
              ThrowsMessage<UsageError>(HasSubstr("there is no position -1")));
  EXPECT_THAT([&] { embedded(lines, {.site = site, .sequence = -1, .numbers = Tensor(1, width)}); },
              ThrowsMessage<UsageError>(HasSubstr("there is no sequence -1")));
  // Before anything runs.
  SiteValues narrow;
  narrow.replace({.site = "encoder.*.output", .numbers = Tensor(1, 3)});
  EXPECT_THAT([&] { model.folder.model->check(narrow); },
              ThrowsMessage<ShapeError>(HasSubstr(
                  "site 'encoder.0.self_attention.output': the numbers to put there have 3 columns")));
}

TEST_F(EditsOfAList, APatternStandsForAllItsSites) {
  const Tensor whole = embed_text(model, lines);
  const int64_t width = alone(lines[0], "encoder.states").cols();
  SiteValues named, pattern;
  named.replace({.site = "encoder.states", .sequence = 4, .numbers = numbers_of(1, width)});
  pattern.replace({.site = "*.states", .sequence = 4, .numbers = numbers_of(1, width)});
  const Tensor expected = embed_text(model, lines, {.sites = &named});
  const Tensor found = embed_text(model, lines, {.sites = &pattern});
  EXPECT_NE(found(4, 0), whole(4, 0));
  for (size_t i = 0; i < lines.size(); ++i) expect_row(found, i, expected, i);
  EXPECT_TRUE(pattern.unread().empty());
}

TEST(EditsOfAMaskedList, MeetTheTextOfThatNumber) {
  const ModelFolder folder = load_model_folder(list_goldens() / "fill/bert");
  const std::string mask = mask_token(folder);
  const std::vector<std::string> texts{mask, "the cat " + mask + " in the park", "a " + mask};
  const auto probability = [&](const std::vector<std::string>& of, int32_t number, int64_t tokens) {
    SiteValues values;
    values.replace({.site = "encoder.0.output",
                    .sequence = number,
                    .numbers = numbers_of(1, folder.model->facts().d_model)});
    std::vector<double> found;
    for (const auto& text : fill_words(folder, of, {.max_batch_tokens = tokens, .sites = &values}))
      found.push_back(text[0][0].probability);
    return found;
  };
  std::vector<double> whole;
  for (const auto& text : fill_words(folder, texts)) whole.push_back(text[0][0].probability);
  for (const int64_t tokens : {1, 7, 1000}) {
    for (size_t i = 0; i < texts.size(); ++i) {
      const auto found = probability(texts, static_cast<int32_t>(i), tokens);
      for (size_t j = 0; j < texts.size(); ++j)
        EXPECT_NEAR(found[j], i == j ? probability({texts[i]}, 0, 1000)[0] : whole[j], 1e-6) << i << " " << j;
    }
  }
}

}  // namespace
}  // namespace mh
