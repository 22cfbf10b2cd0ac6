#include "multihead/tasks/translate_text.h"

#include <numeric>

#include "multihead/models/encoder_decoder.h"
#include "multihead/tasks/model_text.h"
#include "multihead/tasks/translate_into.h"

namespace mh {
namespace {

void tell_unknown(const UnknownTokens& unknown, const std::function<void(const std::string&)>& remark) {
  if (remark && unknown.tokens > 0) remark(unknown.in_words());
}

}  // namespace

std::vector<std::string> translate_text(const ModelFolder& folder, const std::vector<std::string>& lines,
                                        const TranslateOptions& options,
                                        const std::function<void(const std::string&)>& remark) {
  if (remark && !folder.generation_remark.empty()) remark(folder.generation_remark);
  const LanguagePair languages = language_pair(folder, options.languages);
  ModelText text(folder,
                 {.remark = remark, .languages = languages, .prefix = options.source_prefix.value_or("")});
  const auto sources = text.sources_to_translate(lines, {.name = "source"});
  tell_unknown(text.unknown(), remark);
  const std::vector<int32_t> codes = target_codes(folder, options.targets, {.one = "target language"});
  TranslateOptions wanted = options;
  if (codes.empty()) complete_search(folder, languages, wanted.search);
  Translator translator(folder.translator());
  std::vector<std::string> translations;
  translations.reserve(lines.size());
  for (const auto& hypotheses : translate_into(folder, translator, sources, codes, wanted))
    translations.push_back(hypotheses.empty() ? std::string() : text.text(hypotheses[0].tokens));
  return translations;
}

std::vector<double> score_text(const ModelFolder& folder, const std::vector<std::string>& sources,
                               const std::vector<std::string>& targets, const ScoreOptions& options,
                               const std::function<void(const std::string&)>& remark) {
  ModelText text(folder, {.remark = remark, .languages = language_pair(folder, options.languages)});
  const auto source_ids = text.sources(sources, {.name = "source"});
  const auto target_ids = text.targets(targets, {.name = "target"});
  tell_unknown(text.unknown(), remark);
  std::vector<double> sums;
  sums.reserve(sources.size());
  for (const std::vector<float>& tokens : score(folder.translator(), source_ids, target_ids, options))
    sums.push_back(std::accumulate(tokens.begin(), tokens.end(), 0.0));
  return sums;
}

}  // namespace mh
