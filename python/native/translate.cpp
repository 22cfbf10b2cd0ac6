// model.translate: the translations of texts, and how their tokens are aligned.
#include <fmt/format.h>
#include <nanobind/stl/function.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "call.h"
#include "model.h"
#include "multihead/base/error.h"
#include "multihead/generate/translate.h"
#include "multihead/heads/measures/heads_alignment.h"
#include "multihead/models/encoder_decoder.h"
#include "multihead/tasks/model_text.h"
#include "multihead/tasks/translate_into.h"
#include "settings.h"

namespace mh::python {
namespace {

using Lines = std::vector<std::string>;
using Ids = std::vector<int32_t>;

/// (text, score, log-probability, alignment, its tokens), the best first; the last two are empty without an alignment.
using Translations =
    std::vector<std::tuple<std::string, double, double, std::vector<std::pair<int32_t, int32_t>>, Lines>>;
/// The translations of a text, and the tokens that the model read; without an alignment none.
using Translated = std::pair<Translations, Lines>;

/// What --alignment and --alignment auto of the tool take; `by`: "mean" or "auto".
AlignOptions aligners(const LoadedModel& loaded, const std::string& by, Translator& translator,
                      std::span<const Ids> sources, std::span<const int32_t> codes,
                      const TranslateOptions& options) {
  if (by == "mean") return {};
  ObserveHeadsOptions observe;
  observe.observe.sites = options.sites;
  observe.remark = warn;
  return aligners_for(loaded.folder(), sources, observe, [&](auto numbers) {
    TranslateOptions greedy = options;
    greedy.search.beam_size = greedy.search.n_best = 1;
    greedy.progress = nullptr;
    return translate_some(loaded.folder(), translator, numbers, sources, codes, greedy);
  });
}

std::vector<Translated> translate_lines(const LoadedModel& loaded, const Lines& lines,
                                        const std::optional<Lines>& targets,
                                        const std::optional<std::string>& alignment,
                                        const std::string& settings, Edits* edits,
                                        const std::function<void(int64_t)>& progress) {
  auto options = settings_of<TranslateOptions>(settings, "translate");
  const LanguagePair languages = language_pair(loaded.folder(), options.languages);
  std::vector<int32_t> codes;
  if (targets) {
    if (targets->size() != lines.size())
      throw UsageError(fmt::format("`target_language`: expected one for each of {} texts, got {}",
                                   lines.size(), targets->size()));
    codes = target_codes(loaded.folder(), *targets, {.one = "`target_language`"});
  } else {
    complete_search(loaded.folder(), languages, options.search);
  }
  options.sites = sites_of(edits, loaded);
  options.progress = progress;
  return long_call([&] {
    if (!loaded.folder().generation_remark.empty()) warn(loaded.folder().generation_remark);
    ModelText text(loaded.folder(),
                   {.remark = warn, .languages = languages, .prefix = options.source_prefix.value_or("")});
    const auto sources = text.sources_to_translate(lines, {.name = "text"});
    if (text.unknown().tokens > 0) warn(text.unknown().in_words());
    Translator translator(loaded.folder().translator());
    if (alignment) options.align = aligners(loaded, *alignment, translator, sources, codes, options);
    const auto shown = [](const Tokenizer& tokenizer, const Ids& ids) {
      Lines tokens;
      for (const int32_t id : ids) tokens.push_back(tokenizer.shown(id));
      return tokens;
    };
    std::vector<Translated> all;
    for (const auto& hypotheses : translate_into(loaded.folder(), translator, sources, codes, options)) {
      auto& [found, read] = all.emplace_back();
      if (alignment) read = shown(loaded.folder().source_tokens(), sources[all.size() - 1]);
      for (const Hypothesis& one : hypotheses) {
        auto& [words, score, log_probability, links, tokens] = found.emplace_back();
        words = text.text(one.tokens);
        score = one.score;
        log_probability = one.log_probability;
        for (const AlignmentPoint& point : one.alignment) links.emplace_back(point.source, point.target);
        if (alignment) tokens = shown(loaded.folder().target_tokens(), one.tokens);
      }
    }
    return all;
  });
}

}  // namespace

void add_translate(nb::class_<LoadedModel>& model) {
  using namespace nb::literals;
  model.def("translate", translate_lines, "texts"_a, nb::kw_only(), "targets"_a.none(), "alignment"_a.none(),
            "settings"_a, "edits"_a.none(), "progress"_a.none());
}

}  // namespace mh::python
