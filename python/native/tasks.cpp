// What a model does with texts: score, embed, generate, fill words in, tokenize.
#include <fmt/format.h>
#include <nanobind/stl/function.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <functional>
#include <optional>
#include <tuple>
#include <utility>

#include "arrays.h"
#include "call.h"
#include "given_text.h"
#include "model.h"
#include "multihead/base/error.h"
#include "multihead/evaluate/perplexity.h"
#include "multihead/evaluate/score.h"
#include "multihead/evaluate/score_settings.h"
#include "multihead/folders/mask_token.h"
#include "multihead/models/encoder_decoder.h"
#include "multihead/tasks/classify_text.h"
#include "multihead/tasks/embed_text.h"
#include "multihead/tasks/fill_words.h"
#include "multihead/tasks/generate_text.h"
#include "multihead/tasks/model_text.h"
#include "names.h"
#include "settings.h"

namespace mh::python {
namespace {

using Lines = std::vector<std::string>;
using Progress = std::function<void(int64_t)>;

/// log p of each token of each text, its end token last where there is one.
std::vector<std::vector<float>> score_lines(const LoadedModel& loaded, const GivenTexts& texts,
                                            const std::optional<GivenTexts>& targets,
                                            const std::string& settings, Edits* edits,
                                            const Progress& progress) {
  const auto given = settings_of<ScoreSettings>(settings, "score");
  WindowOptions options = given.windows;
  options.sites = sites_of(edits, loaded);
  options.progress = progress;
  const ModelFolder& folder = loaded.folder();
  const auto count = [](const GivenTexts& list) {
    return std::visit([](const auto& all) { return all.size(); }, list);
  };
  if (targets && count(*targets) != count(texts))
    throw UsageError(
        fmt::format("`target`: expected one for each of {} texts, got {}", count(texts), count(*targets)));
  return long_call([&] {
    if (targets) {
      ModelText text(folder, {.remark = warn, .languages = language_pair(folder, given.languages)});
      const auto as_given = [](const std::vector<Ids>& ids) { return ids; };
      const auto sources = read_given(
          texts, [&](const Lines& lines) { return text.sources(lines, {.name = "text"}); }, as_given);
      const auto wanted = read_given(
          *targets, [&](const Lines& lines) { return text.targets(lines, {.name = "target"}); }, as_given);
      if (text.unknown().tokens > 0) warn(text.unknown().in_words());
      return score(
          folder.translator(), sources, wanted,
          {.max_batch_tokens = options.max_batch_tokens, .sites = options.sites, .progress = progress});
    }
    const auto encoded = [&](const Lines& lines) {
      std::vector<Ids> all;
      for (const std::string& text : lines) all.push_back(folder.source_tokens().encode_ids(text));
      return all;
    };
    const std::vector<Ids> ids =
        read_given(texts, encoded, [](const std::vector<Ids>& given_ids) { return given_ids; });
    return score_windows(folder.causal_model(), ids, options);
  });
}

/// What was given of a task that reads one text or two together.
template <class Options>
Options pair_options(const LoadedModel& loaded, const std::optional<Lines>& pairs,
                     const std::string& settings, const char* verb, Edits* edits) {
  auto options = settings_of<Options>(settings, verb);
  options.sites = sites_of(edits, loaded);
  options.pairs = pairs.value_or(Lines());
  options.remark = warn;
  return options;
}

NumpyFloats embed_lines(const LoadedModel& loaded, const GivenTexts& texts, const std::optional<Lines>& pairs,
                        const std::string& settings, Edits* edits, const Progress& progress) {
  auto options = pair_options<EmbedTextOptions>(loaded, pairs, settings, "embed", edits);
  options.progress = progress;
  const SentenceModel& model = loaded.sentences();
  for (const std::string& line : loaded.vector_remarks()) warn(line);
  Tensor rows = long_call([&] {
    return read_given(
        texts, [&](const Lines& lines) { return embed_text(model, lines, options); },
        [&](const std::vector<Ids>& ids) { return embed_tokens(model, ids, options); });
  });
  const std::vector<int64_t> shape = {rows.rows(), rows.cols()};
  return numpy_of(std::move(rows), shape);
}

NumpyFloats similarities_of(const LoadedModel& loaded, nb::handle first, nb::handle second) {
  FloatArray a(first, "first"), b(second, "second");
  for (const FloatArray* array : {&a, &b}) {
    if (array->dimensions() != 2)
      throw UsageError(fmt::format("`{}`: expected vectors [texts, dimension], got {}", array->name(),
                                   array->shape_text()));
  }
  const ConstMatrixView queries = a.matrix({0, 1}, 1), rows = b.matrix({0, 1}, 1);
  const Similarity kind = loaded.sentences().similarity;
  Tensor found = long_call([&] { return similarities(queries, rows, kind); });
  const std::vector<int64_t> shape = {found.rows(), found.cols()};
  return numpy_of(std::move(found), shape);
}

Lines generate_lines(const LoadedModel& loaded, const GivenTexts& prompts,
                     const std::vector<std::pair<std::string, std::string>>& earlier,
                     const std::string& settings, Edits* edits,
                     const std::optional<std::function<bool(const std::string&)>>& on_text) {
  auto options = settings_of<GenerateTextOptions>(settings, "generate");
  options.remark = warn;
  options.generate.sites = sites_of(edits, loaded);
  for (const auto& [role, content] : earlier) {
    options.earlier.push_back({value_named(role, kChatRoles, "messages"), content});
  }
  bool go_on = true;
  if (on_text) {
    options.on_text = [&](size_t, std::string_view piece) {
      go_on = (*on_text)(std::string(piece)) && go_on;
    };
    if (options.generate.next_token != NextToken::kBeam)
      options.generate.goes_on = [&](size_t, int32_t) { return go_on; };
  }
  return long_call([&] {
    Lines texts;
    std::vector<GeneratedText> all = read_given(
        prompts, [&](const Lines& lines) { return generate_text(loaded.folder(), lines, options); },
        [&](const std::vector<Ids>& ids) { return continue_tokens(loaded.folder(), ids, options); });
    for (GeneratedText& one : all) texts.push_back(std::move(one.text));
    return texts;
  });
}

/// By text and mask (word, probability, token id), the best first.
using Filled = std::vector<std::vector<std::vector<std::tuple<std::string, double, int32_t>>>>;

Filled fill_lines(const LoadedModel& loaded, const Lines& texts, const std::optional<Lines>& pairs,
                  const std::string& settings, Edits* edits) {
  const auto options = pair_options<FillOptions>(loaded, pairs, settings, "fill", edits);
  return long_call([&] {
    Filled all;
    for (const auto& of_text : fill_words(loaded.folder(), texts, options)) {
      auto& masks = all.emplace_back();
      for (const auto& of_mask : of_text) {
        auto& found = masks.emplace_back();
        for (const FilledWord& word : of_mask) found.emplace_back(word.word, word.probability, word.token);
      }
    }
    return all;
  });
}

/// (name, score, logit), the best first, of each row of a text; and of a classifier of tokens their (text, characters).
using Classified = std::vector<std::pair<std::vector<std::vector<std::tuple<std::string, double, float>>>,
                                         std::vector<std::pair<std::string, std::pair<int32_t, int32_t>>>>>;

Classified classify_lines(const LoadedModel& loaded, const Lines& texts, const std::optional<Lines>& pairs,
                          const std::string& settings, Edits* edits) {
  const auto options = pair_options<ClassifyOptions>(loaded, pairs, settings, "classify", edits);
  return long_call([&] {
    Classified all;
    for (const LabelledText& text : classify_text(loaded.folder(), texts, options)) {
      auto& [rows, tokens] = all.emplace_back();
      for (const LabelRow& row : text.rows) {
        auto& labels = rows.emplace_back();
        for (const int32_t label : row.best_first()) {
          const auto at = static_cast<size_t>(label);
          labels.emplace_back(loaded.folder().labels->names[at], row.scores[at], row.logits[at]);
        }
      }
      for (const LabelledToken& token : text.tokens) tokens.emplace_back(token.token, token.characters);
    }
    return all;
  });
}

/// Ids, tokens as people read them, and characters [first, second) of the text.
using Tokens = std::tuple<std::vector<int32_t>, Lines, std::vector<std::pair<int32_t, int32_t>>>;

Tokens tokenize(const LoadedModel& loaded, const std::string& text, bool special_tokens, bool of_target) {
  const Tokenizer& tokenizer = of_target ? loaded.folder().target_tokens() : loaded.folder().source_tokens();
  const nb::gil_scoped_release unlocked;
  Encoding found = tokenizer.encode(text, special_tokens);
  Lines labels;
  for (const int32_t id : found.ids) labels.push_back(tokenizer.shown(id));
  return {std::move(found.ids), std::move(labels), std::move(found.offsets)};
}

std::string decode(const LoadedModel& loaded, const std::vector<int32_t>& ids, bool skip_special_tokens,
                   bool of_target) {
  const Tokenizer& tokenizer = of_target ? loaded.folder().target_tokens() : loaded.folder().source_tokens();
  const nb::gil_scoped_release unlocked;
  return tokenizer.decode(ids, skip_special_tokens);
}

}  // namespace

void add_tasks(nb::class_<LoadedModel>& model) {
  using namespace nb::literals;
  model
      .def("score", score_lines, "texts"_a, nb::kw_only(), "targets"_a.none(), "settings"_a, "edits"_a.none(),
           "progress"_a.none())
      .def("embed", embed_lines, "texts"_a, nb::kw_only(), "pairs"_a.none(), "settings"_a, "edits"_a.none(),
           "progress"_a.none())
      .def("similarity", similarities_of, "first"_a, "second"_a)
      .def_prop_ro(
          "similarity_fn_name",
          [](const LoadedModel& loaded) { return name_of(loaded.sentences().similarity, kSimilarityNames); })
      .def("generate", generate_lines, "prompts"_a, nb::kw_only(), "earlier"_a, "settings"_a,
           "edits"_a.none(), "on_text"_a.none())
      .def("fill", fill_lines, "texts"_a, nb::kw_only(), "pairs"_a.none(), "settings"_a, "edits"_a.none())
      .def("classify", classify_lines, "texts"_a, nb::kw_only(), "pairs"_a.none(), "settings"_a,
           "edits"_a.none())
      .def_prop_ro("labels",
                   [](const LoadedModel& loaded) {
                     return loaded.folder().labels ? loaded.folder().labels->names : Lines();
                   })
      .def_prop_ro("labels_tokens",
                   [](const LoadedModel& loaded) {
                     return loaded.folder().labels && loaded.folder().labels->of == LabelsOf::kTokens;
                   })
      .def_prop_ro("mask_token", [](const LoadedModel& loaded) { return mask_token(loaded.folder()); })
      .def("tokenize", tokenize, "text"_a, nb::kw_only(), "special_tokens"_a, "of_target"_a)
      .def("decode", decode, "ids"_a, nb::kw_only(), "skip_special_tokens"_a, "of_target"_a);
}

}  // namespace mh::python
