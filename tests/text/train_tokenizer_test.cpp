#include "multihead/text/train_tokenizer.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>
#include <thread>

#include "multihead/base/error.h"
#include "multihead/base/file.h"
#include "multihead/base/random.h"
#include "multihead/io/lines.h"
#include "multihead/text/learn_merges.h"
#include "multihead/text/unicode.h"
#include "tests/support/goldens.h"

namespace mh {
namespace {

using testing::ElementsAre;
using Pair = std::pair<int32_t, int32_t>;

std::vector<std::string> small_lines() {
  return read_lines(kGoldens / "text" / "small.txt");
}

/// The definition: count all pairs anew, merge the most frequent, again and again.
std::vector<Pair> merges_by_definition(std::vector<CountedWord> words, std::vector<std::string> tokens,
                                       size_t size, int64_t least) {
  std::vector<Pair> merges;
  while (tokens.size() < size) {
    std::map<Pair, int64_t> counts;
    for (const auto& [symbols, count] : words) {
      for (size_t i = 0; i + 1 < symbols.size(); ++i) {
        if (symbols[i] >= 0 && symbols[i + 1] >= 0) counts[{symbols[i], symbols[i + 1]}] += count;
      }
    }
    const auto best = std::max_element(counts.begin(), counts.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    if (best == counts.end() || best->second < least) break;
    const Pair pair = best->first;
    const std::string merged = tokens[pair.first] + tokens[pair.second];
    const auto place = std::find(tokens.begin(), tokens.end(), merged);
    const auto id = static_cast<int32_t>(place - tokens.begin());
    if (place == tokens.end()) tokens.push_back(merged);
    merges.push_back(pair);
    for (auto& word : words) {
      std::vector<int32_t> next;
      for (size_t i = 0; i < word.symbols.size(); ++i) {
        const bool here = i + 1 < word.symbols.size() && Pair{word.symbols[i], word.symbols[i + 1]} == pair;
        next.push_back(here ? id : word.symbols[i]);
        i += here ? 1 : 0;
      }
      word.symbols = next;
    }
  }
  return merges;
}

TEST(LearnMerges, EqualsTheDefinition) {
  Random random(11);
  for (int round = 0; round < 50; ++round) {
    std::vector<std::string> tokens = {"a", "b", "c"};
    std::vector<CountedWord> words;
    for (int w = 0; w < 13; ++w) {
      CountedWord word{{}, static_cast<int64_t>(1 + random.below(5))};
      for (uint64_t n = 1 + random.below(9); n > 0; --n) {
        word.symbols.push_back(static_cast<int32_t>(random.below(4)) - (random.below(7) == 0 ? 4 : 0));
        word.symbols.back() = word.symbols.back() < 0 || word.symbols.back() > 2 ? -1 : word.symbols.back();
      }
      words.push_back(word);
    }
    const auto expected = merges_by_definition(words, tokens, 29, 2);
    EXPECT_EQ(learn_merges(words, tokens, 0, 29, 2), expected) << "round " << round;
  }
}

TEST(LearnMerges, NeverMakesAReservedToken) {
  std::vector<std::string> tokens = {"ab", "a", "b", "c"};
  const auto merges = learn_merges({{{1, 2}, 9}, {{2, 3}, 5}}, tokens, 1, 10, 2);
  EXPECT_THAT(merges, ElementsAre(Pair{2, 3}));
}

TEST(TrainBpe, MakesTheCommittedFilesByteForByte) {
  const auto lines = small_lines();
  EXPECT_EQ(train_bpe(lines, {.vocabulary_size = 300}).to_json(),
            read_file(kGoldens / "text" / "learned.json"));
  EXPECT_EQ(
      train_bpe(lines, {.vocabulary_size = 200, .lowercase = true, .normalization = Normalization::kNfc})
          .to_json(),
      read_file(kGoldens / "text" / "learned_lower.json"));
  EXPECT_EQ(train_word_level(lines, {.vocabulary_size = 120}).to_json(),
            read_file(kGoldens / "text" / "learned_words.json"));
}

TEST(TrainBpe, PutsTheSpecialTokensFirst) {
  const Tokenizer tokenizer = train_bpe(small_lines(), {.vocabulary_size = 211});
  EXPECT_EQ(tokenizer.size(), 211);
  EXPECT_EQ(tokenizer.id_of("</s>"), kEndId);
  EXPECT_EQ(tokenizer.id_of("<unk>"), kUnknownId);
  EXPECT_EQ(tokenizer.id_of("<pad>"), kPadId);
  EXPECT_EQ(tokenizer.unknown_id(), kUnknownId);
  EXPECT_EQ(tokenizer.encode_ids("").back(), kEndId);
  EXPECT_EQ(tokenizer.encode_ids("a </s> b", false)[1], kEndId);
  std::set<std::string> distinct;
  for (int32_t id = 0; id < tokenizer.size(); ++id) {
    EXPECT_EQ(tokenizer.id_of(tokenizer.token_of(id)), id);
    distinct.insert(tokenizer.token_of(id));
  }
  EXPECT_EQ(distinct.size(), 211u);
}

TEST(TrainBpe, DecodingReturnsTheNormalisedText) {
  const Tokenizer tokenizer = train_bpe(small_lines(), {.vocabulary_size = 290});
  const Tokenizer lower = train_bpe(small_lines(), {.vocabulary_size = 290, .lowercase = true});
  for (const std::string& line : small_lines()) {
    EXPECT_EQ(tokenizer.decode(tokenizer.encode_ids(line)), normal_form(line, NormalForm::kNfkc));
    EXPECT_EQ(lower.decode(lower.encode_ids(line)), lower_case(normal_form(line, NormalForm::kNfkc)));
  }
  EXPECT_EQ(tokenizer.decode(tokenizer.encode_ids(" The\t\tcat\u00a0 sits\u2581on, \"Ｄie\" Ba\u0308cker ")),
            "The cat sits on, \"Die\" Bäcker");
}

TEST(TrainBpe, RareCharactersAreUnknown) {
  const std::vector<std::string> lines = {"aaaa bbb aaaa bbb", "aa c", "d aab"};
  const Tokenizer tokenizer = train_bpe(lines, {.vocabulary_size = 40, .alphabet_limit = 3});  // ▁ a b
  EXPECT_EQ(tokenizer.id_of("c"), std::nullopt);
  const Encoding encoding = tokenizer.encode("aacdb", false);
  EXPECT_THAT(encoding.ids, testing::Contains(kUnknownId).Times(1));  // "cd" is one
  EXPECT_EQ(tokenizer.decode(encoding.ids, false), "aa<unk>b");
  for (int32_t id = 3; id < tokenizer.size(); ++id) {
    EXPECT_EQ(tokenizer.token_of(id).find_first_of("cd"), std::string::npos);
  }
}

TEST(TrainBpe, RefusesWhatCannotBe) {
  const std::vector<std::string> lines = {"ok", "broken \xff"};
  EXPECT_THROW(train_bpe(small_lines(), {.vocabulary_size = 3}), UsageError);
  EXPECT_THROW(train_bpe(small_lines(), {.vocabulary_size = -1}), UsageError);
  EXPECT_THROW(train_bpe(small_lines(), {.alphabet_limit = 0}), UsageError);
  EXPECT_THROW(train_bpe(std::vector<std::string>{}), FormatError);
  EXPECT_THROW(train_bpe(std::vector<std::string>{"", " \t", "</s>"}), FormatError);
  EXPECT_THROW(train_word_level(std::vector<std::string>{" "}), FormatError);
  try {
    train_bpe(lines);
    ADD_FAILURE() << "accepted";
  } catch (const FormatError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("line 2 is not UTF-8"));
  }
}

TEST(TrainWordLevel, CountsWords) {
  const std::vector<std::string> lines = {"the dog sees the cat", "The cat <pad> sees  the＜unk＞ ＜unk＞"};
  const Tokenizer tokenizer = train_word_level(lines, {.vocabulary_size = 6});
  EXPECT_EQ(tokenizer.size(), 6);
  EXPECT_EQ(tokenizer.token_of(3), "cat");  // twice, as "sees" and "the"
  EXPECT_EQ(tokenizer.token_of(4), "sees");
  EXPECT_EQ(tokenizer.token_of(5), "the");
  EXPECT_EQ(tokenizer.encode_ids("the bird sees"), (std::vector<int32_t>{5, kUnknownId, 4, kEndId}));
  EXPECT_EQ(tokenizer.decode(tokenizer.encode_ids("the  cat")), "the cat");
  EXPECT_EQ(train_word_level(lines, {.lowercase = true, .least_count = 2}).size(), 6);  // the, cat, sees
}

TEST(TrainBpe, EncodesInManyThreads) {
  const Tokenizer tokenizer = train_bpe(small_lines(), {.vocabulary_size = 250});
  const auto lines = small_lines();
  std::vector<std::vector<int32_t>> expected;
  const Tokenizer fresh = Tokenizer::from_json(tokenizer.to_json(), "fresh");
  for (const auto& line : lines) expected.push_back(fresh.encode_ids(line));
  std::vector<int> wrong(4, 0);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (size_t i = 0; i < lines.size(); ++i) wrong[t] += tokenizer.encode_ids(lines[i]) != expected[i];
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_THAT(wrong, ElementsAre(0, 0, 0, 0));
}

TEST(SlowTrainBpe, LearnsMulti30k) {
  const char* data = std::getenv("MULTIHEAD_DATA");
  if (data == nullptr) GTEST_SKIP() << "MULTIHEAD_DATA is not set: Multi30k is needed";
  const auto folder = std::filesystem::path(data) / "multi30k";
  auto lines = read_lines(folder / "train.en.gz");
  const auto german = read_lines(folder / "train.de.gz");
  lines.insert(lines.end(), german.begin(), german.end());
  ASSERT_EQ(lines.size(), 58'000u);
  const Tokenizer tokenizer = train_bpe(lines, {.vocabulary_size = 8000});
  EXPECT_EQ(tokenizer.size(), 8000);
  EXPECT_TRUE(tokenizer.id_of("▁Hund").has_value());
  EXPECT_TRUE(tokenizer.id_of("▁playing").has_value());
  size_t pieces = 0;
  for (const std::string& line : lines) {
    const auto ids = tokenizer.encode_ids(line);
    pieces += ids.size();
    const std::string normalized = normal_form(line, NormalForm::kNfkc);
    const bool odd_spaces = normalized.find("  ") != std::string::npos ||
                            normalized.find('\t') != std::string::npos || normalized.starts_with(' ') ||
                            normalized.ends_with(' ');
    if (odd_spaces) continue;  // some 400 lines
    ASSERT_EQ(tokenizer.decode(ids), normalized);
    ASSERT_THAT(ids, testing::Not(testing::Contains(kUnknownId)));
  }
  EXPECT_LT(pieces, 60'000u * 17);
}

}  // namespace
}  // namespace mh
