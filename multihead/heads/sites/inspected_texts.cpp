#include "multihead/heads/sites/inspected_texts.h"

#include <fmt/format.h>

#include <algorithm>

#include "multihead/base/error.h"
#include "multihead/generate/translate.h"
#include "multihead/models/encoder_decoder.h"

namespace mh {

InspectedTexts InspectedTextReader::read(const TextReader& reader, const std::vector<std::string>& lines,
                                         const ReadLinesOptions& options,
                                         const std::vector<std::vector<Word>>& words) const {
  InspectedTexts texts;
  std::vector<TextTokens> read = read_lines(reader, lines, options);
  for (size_t i = 0; i < read.size(); ++i) {
    if (!words.empty())
      texts.words.push_back(words_of_tokens(read[i].offsets, lines[i], words[i], options.from.at(i)));
    texts.ids.push_back(std::move(read[i].ids));
    texts.offsets.push_back(std::move(read[i].offsets));
    if (!options.seconds.empty()) {
      texts.types.push_back(std::move(read[i].types));
      texts.seconds.push_back(*read[i].second);
    }
  }
  return texts;
}

InspectedTexts InspectedTextReader::translated(const std::vector<std::string>& lines, TextSide side,
                                               const std::vector<std::vector<Word>>& words,
                                               const LinesFrom& from) const {
  const TextReader reader(folder_,
                          {.longest = longest_, .side = side, .offsets = true, .languages = languages_});
  InspectedTexts texts = read(reader, lines, {.from = from, .remark = remark_}, words);
  if (side == TextSide::kTarget) return texts;
  const std::vector<int32_t> end = source_end(folder_, languages_);
  for (auto& ids : texts.ids) ids.insert(ids.end(), end.begin(), end.end());
  for (auto& offsets : texts.offsets) offsets.insert(offsets.end(), end.size(), {0, 0});
  for (auto& of_text : texts.words) of_text.insert(of_text.end(), end.size(), -1);
  return texts;
}

InspectedTexts InspectedTextReader::whole(const std::vector<std::string>& lines,
                                          const std::vector<std::vector<Word>>& words,
                                          const LinesFrom& from) const {
  return read(TextReader(folder_, {.longest = longest_, .offsets = true}), lines,
              {.from = from, .remark = remark_}, words);
}

InspectedTexts InspectedTextReader::pairs(const std::vector<std::string>& firsts,
                                          const std::vector<std::string>& seconds,
                                          const LinesFrom& from) const {
  return read(TextReader(folder_, longest_), firsts, {.from = from, .seconds = seconds, .remark = remark_},
              {});
}

bool translates(const ModelFolder& folder) {
  return folder.model->kind() == ModelKind::kTranslator;
}

bool is_causal(const ModelFolder& folder) {
  return folder.model->kind() == ModelKind::kCausal;
}

void refuse_targets(const ModelFolder& folder, bool given) {
  if (!given) return;
  throw UsageError(
      fmt::format("{} holds a {} model, which reads one text; leave out translations and alignments",
                  folder.path.string(), folder.model_type));
}

std::vector<std::vector<int32_t>> greedy_translations(const ModelFolder& folder,
                                                      std::span<const std::vector<int32_t>> sources,
                                                      const LanguagePair& languages, Sites* sites) {
  TranslateOptions options;
  options.search.beam_size = 1;
  // The decoder reads the start token before the translation.
  options.search.max_length = std::max(1, std::min(256, folder.translator().config().max_positions - 1));
  options.search.max_length_factor = 4;
  complete_search(folder, languages, options.search);
  options.sites = sites;
  std::vector<std::vector<int32_t>> targets;
  for (auto& hypotheses : translate(folder.translator(), sources, options)) {
    targets.push_back(hypotheses.empty() ? std::vector<int32_t>() : std::move(hypotheses[0].tokens));
  }
  return targets;
}

}  // namespace mh
