// Two texts as one sequence: the templates of BERT and RoBERTa, written out by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/base/file.h"
#include "multihead/text/tokenizer.h"
#include "tests/support/places.h"

namespace mh {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::ThrowsMessage;
using Ids = std::vector<int32_t>;

json golden(const std::string& name) {
  const std::filesystem::path folder = goldens_folder();
  return json::parse(read_file(folder / "fill" / name / "tokenizer.json"));
}

Tokenizer tokenizer_of(const json& document) {
  return Tokenizer::from_json(document.dump(), "tokenizer.json");
}

/// `golden` with another post-processor.
Tokenizer with_processor(const std::string& name, const json& processor) {
  json document = golden(name);
  document["post_processor"] = processor;
  return tokenizer_of(document);
}

json sequence(const char* id, int type) {
  return {{"Sequence", {{"id", id}, {"type_id", type}}}};
}
json special(const char* id, int type) {
  return {{"SpecialToken", {{"id", id}, {"type_id", type}}}};
}

TEST(Pairs, OfBertAreSeparatedAndHaveTwoTypes) {
  const json bert_processing = {{"type", "BertProcessing"}, {"sep", {"[SEP]", 3}}, {"cls", {"[CLS]", 2}}};
  for (const Tokenizer& tokenizer : {tokenizer_of(golden("bert")), with_processor("bert", bert_processing)}) {
    ASSERT_TRUE(tokenizer.joins_pairs());
    const TokenPair pair = tokenizer.joined(Ids{7, 8, 9}, Ids{5, 6});
    EXPECT_THAT(pair.ids, ElementsAre(2, 7, 8, 9, 3, 5, 6, 3));  // [CLS] a [SEP] b [SEP]
    EXPECT_THAT(pair.types, ElementsAre(0, 0, 0, 0, 0, 1, 1, 1));
    EXPECT_THAT(tokenizer.joined({}, {}).ids, ElementsAre(2, 3, 3));
    // What is read again is the same.
    const Tokenizer again = Tokenizer::from_json(tokenizer.to_json(), "again");
    EXPECT_EQ(again.joined(Ids{7}, Ids{5, 6}).types, (Ids{0, 0, 0, 1, 1, 1}));
  }
}

TEST(Pairs, OfRobertaHaveTwoSeparatorsAndOneType) {
  const TokenPair pair = tokenizer_of(golden("roberta")).joined(Ids{11, 12}, Ids{13});
  EXPECT_THAT(pair.ids, ElementsAre(0, 11, 12, 2, 2, 13, 2));  // <s> a </s></s> b </s>
  EXPECT_THAT(pair.types, ElementsAre(0, 0, 0, 0, 0, 0, 0));
}

TEST(Pairs, FollowTheTemplateWhateverItIs) {
  const json tokens = {{"[SEP]", {{"id", "[SEP]"}, {"ids", {3, 4}}, {"tokens", {"[SEP]", "[MASK]"}}}}};
  const json single = json::array({sequence("A", 0)});
  const json byte_level = {
      {"type", "ByteLevel"}, {"add_prefix_space", true}, {"trim_offsets", true}, {"use_regex", true}};
  const json other = {{"type", "TemplateProcessing"},
                      {"single", single},
                      {"pair", {sequence("B", 5), special("[SEP]", 2), sequence("A", 1)}},
                      {"special_tokens", tokens}};
  const json both = {{"type", "Sequence"}, {"processors", json::array({byte_level, other})}};
  for (const json& processor : {other, both}) {
    const TokenPair pair = with_processor("bert", processor).joined(Ids{7}, Ids{8, 9});
    EXPECT_THAT(pair.ids, ElementsAre(8, 9, 3, 4, 7));
    EXPECT_THAT(pair.types, ElementsAre(5, 5, 2, 2, 1));
  }
}

TEST(Pairs, WithoutATemplateThatCanBeUsedAreRefused) {
  const auto processor = [](const json& pair) {
    return json{{"type", "TemplateProcessing"},
                {"single", json::array({sequence("A", 0)})},
                {"pair", pair},
                {"special_tokens", json::object()}};
  };
  const json good = processor(json::array({sequence("A", 0), sequence("B", 1)}));
  EXPECT_TRUE(with_processor("bert", good).joins_pairs());
  for (const json& none : {json(), processor(nullptr), processor(json::array({sequence("A", 0)})),
                           processor(json::array({sequence("B", 0)})),
                           processor(json::array({sequence("A", 0), sequence("B", 1), sequence("A", 0)})),
                           processor(json::array({sequence("A", 0), special("[SEP]", 0), sequence("B", 1)})),
                           json{{"type", "Sequence"}, {"processors", json::array({good, good})}}}) {
    const Tokenizer tokenizer = with_processor("bert", none);
    EXPECT_FALSE(tokenizer.joins_pairs()) << none.dump();
    EXPECT_THAT([&] { tokenizer.joined(Ids{7}, Ids{8}); },
                ThrowsMessage<UsageError>(HasSubstr("no template for two texts")));
  }
}

}  // namespace
}  // namespace mh
