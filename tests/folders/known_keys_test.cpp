#include "multihead/folders/known_keys.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/folders/generation_config.h"
#include "multihead/folders/generation_keys.h"
#include "multihead/io/config.h"

namespace mh {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::ThrowsMessage;

struct KnownPositions {
  std::optional<double> base, factor;
  template <class V>
  void visit(V& v) {
    v("rope_theta", base);
    v("factor", factor);
  }
};
struct KnownLayer {
  int32_t heads = 1;
  template <class V>
  void visit(V& v) {
    v("heads", heads, {.low = 1, .required = true});
  }
};
struct KnownFields {
  int32_t width = 7;
  std::optional<KnownPositions> positions;
  std::vector<KnownLayer> layers;
  std::vector<std::string> names;
  template <class V>
  void visit(V& v) {
    v("width", width);
    v("rope_parameters", positions);
    v("layers", layers);
    v("names", names);
  }
};

KnownKeys known() {
  return {.obeyed = keys_of(KnownFields()),
          .rules = {{.key = "note_*"},
                    {.key = "note_loud", .harmless = "[false]"},
                    {.key = "slices", .harmless = "[1, 2]"},
                    {.key = "is_decoder", .harmless = "[false]", .refused = "expected an encoder"},
                    {.key = "rope_parameters.yarn", .refused = "expected other positions"}}};
}

TEST(KnownKeys, FieldsOfAStructAreKnownAlsoInsideOfItsStructs) {
  EXPECT_THAT(keys_of(KnownFields()),
              ElementsAre("layers", "layers.heads", "names", "rope_parameters", "rope_parameters.factor",
                          "rope_parameters.rope_theta", "width"));
}

TEST(KnownKeys, WhatIsNotKnownIsNamedOnce) {
  const KeyFindings none = known().look_at(
      R"({"width": 3, "names": ["a"], "layers": [{"heads": 2}], "rope_parameters": {"factor": 2, "rope_theta": 5},
          "note_a": 1, "slices": 2.0, "x": null, "is_decoder": false, "note_loud": null})",
      "config.json");
  EXPECT_EQ(none.remark(), "");
  EXPECT_NO_THROW(none.throw_if_refused());
  EXPECT_EQ(known().look_at(R"({"x_y": 0})", "a/config.json").remark(),
            "a/config.json: x_y is not known here and was not used");
  EXPECT_EQ(
      known()
          .look_at(
              R"({"slices": 3, "note_loud": true, "rope_parameters": {"beta": 1, "factor": 2}, "b": {}})",
              "config.json")
          .remark(),
      "config.json: b, note_loud, rope_parameters.beta and slices are not known here and were not used");
}

TEST(KnownKeys, WhatChangesNumbersIsRefused) {
  const KeyFindings found =
      known().look_at(R"({"is_decoder": true, "rope_parameters": {"yarn": {}}})", "config.json");
  EXPECT_THAT(found.unused, IsEmpty());
  EXPECT_THAT([&] { found.throw_if_refused(); },
              ThrowsMessage<FormatError>("config.json: is_decoder is true; expected an encoder; "
                                         "rope_parameters.yarn is {}; expected other positions"));
  EXPECT_THAT([] { known().look_at("[1]", "config.json"); },
              ThrowsMessage<FormatError>("config.json: expected an object, got [1]"));
}

TEST(KnownKeys, ReadersOfOneObjectAddWhatTheyKnow) {
  KnownKeys keys{.obeyed = {"general.*"}};
  keys.add({.rules = {{.key = "x"}}}).add({.obeyed = {"y"}});
  EXPECT_THAT(keys.look_at(R"({"general.name": "a", "x": 1, "y": 2, "z": 3})", "f").unused, ElementsAre("z"));
}

TEST(GenerationKeys, AreNamedWhereTransformersWouldChooseOtherWords) {
  const auto remark = [](const char* json, bool translates = false) {
    return generation_remark(json, "generation_config.json",
                             {.source_vocabulary = translates ? 7 : 0, .eos_id = 5, .start_id = 3});
  };
  EXPECT_EQ(remark(R"({"eos_token_id": [5, 7], "max_length": 20, "temperature": 1.0, "forced_eos_token_id": 5,
                       "num_beams": 1, "bad_words_ids": [[3]], "transformers_version": "5"})"),
            "");
  EXPECT_EQ(remark(R"({"num_beams": 5, "early_stopping": true})", true), "");
  EXPECT_EQ(remark(R"({"do_sample": true})", true),
            "generation_config.json: do_sample counts here as no default; the options of the call say how "
            "words are "
            "chosen");
  EXPECT_THAT(remark(R"({"temperature": 0.6, "top_p": 0.9, "do_sample": true})"),
              HasSubstr(": temperature and top_p count here as no defaults;"));
  EXPECT_THAT(remark(R"({"bad_words_ids": [[3], [4, 5]]})"), HasSubstr("bad_words_ids of several tokens"));
  EXPECT_EQ(remark(R"({"forced_eos_token_id": [6]})", true), "");
  EXPECT_THAT(remark(R"({"forced_eos_token_id": [5, 6]})", true), HasSubstr("forced_eos_token_id"));
  EXPECT_THAT(remark(R"({"eos_token_id": [6, 7]})", true), HasSubstr("eos_token_id"));
  EXPECT_THAT(remark(R"({"x_y": 6})"), HasSubstr("x_y"));
}

TEST(GenerationKeys, OfATranslatorAreObeyedOrNamedUnlessTheyChooseNoWords) {
  const std::set<std::string_view> chooses_none = {"max_time",
                                                   "cache_implementation",
                                                   "remove_invalid_values",
                                                   "num_return_sequences",
                                                   "output_scores",
                                                   "output_logits",
                                                   "return_dict_in_generate",
                                                   "num_assistant_tokens",
                                                   "target_lookbehind",
                                                   "num_assistant_tokens_schedule",
                                                   "assistant_confidence_threshold"};
  const ModelFacts facts{
      .source_vocabulary = 7, .vocabulary = 11, .max_positions = 20, .eos_id = 5, .start_id = 3};
  const auto completed = [&](const std::string& json) {
    SearchOptions options;
    read_generation_config(json, "file", facts).complete(options);
    return fmt::format("{} {} {} {} {}", to_json(options), options.suppressed.size(),
                       options.end_tokens.size(), options.forced_first.value_or(-1),
                       options.forced_last.value_or(-1));
  };
  for (const std::string_view key : generation_key_names()) {
    std::string value = "6";
    if (key.ends_with("_tokens") && key.find("suppress") != key.npos) value = "[6]";
    if (key == "early_stopping" || key == "do_sample" || key == "renormalize_logits") value = "true";
    if (key == "bad_words_ids") value = "[[6, 4]]";
    const std::string json = fmt::format(R"({{"{}": {}}})", key, value);
    const bool obeyed = completed(json) != completed("{}");
    const bool named = generation_remark(json, "file", facts).find(key) != std::string::npos;
    EXPECT_NE(obeyed || chooses_none.contains(key), named) << key;
  }
}

}  // namespace
}  // namespace mh
