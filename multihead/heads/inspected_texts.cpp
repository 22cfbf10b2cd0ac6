#include "multihead/heads/inspected_texts.h"

#include <fmt/format.h>

#include <algorithm>

#include "multihead/base/error.h"
#include "multihead/folders/text_tokens.h"
#include "multihead/generate/translate.h"
#include "multihead/models/encoder_decoder.h"
#include "multihead/text/cut_tokens.h"
#include "multihead/text/unknown_tokens.h"

namespace mh {

InspectedTexts InspectedTextReader::read(const std::vector<std::string>& lines, const Tokenizer& tokenizer,
                                         const std::vector<std::vector<Word>>& words, const char* what,
                                         const Cut& cut) const {
  InspectedTexts texts;
  LongLines long_lines({.one = what}, {.longest = static_cast<size_t>(folder_.model->facts().max_positions)});
  UnknownTokens unknown;
  for (size_t i = 0; i < lines.size(); ++i) {
    Encoding encoding = tokenizer.encode(lines[i]);
    if (remark_) unknown.add(lines[i], encoding.ids, tokenizer);
    WordOfToken of_words;
    if (!words.empty())
      of_words = words_of_tokens(encoding, lines[i], words[i], fmt::format("{} {}", what, i + 1));
    const auto end = cut.drop_end ? folder_.model->facts().eos_id : -1;
    if (cut.drop_end && !encoding.ids.empty() && encoding.ids.back() == end) {
      encoding.ids.pop_back();
      encoding.offsets.pop_back();
      if (!of_words.empty()) of_words.pop_back();
    }
    long_lines.note(i, encoding.ids.size() + (cut.drop_end ? 1 : 0));
    cut_tokens(encoding.ids, cut.longest, cut.closing);
    cut_tokens(encoding.offsets, cut.longest, cut.closing);
    cut_tokens(of_words, cut.longest, cut.closing);
    texts.ids.push_back(std::move(encoding.ids));
    texts.offsets.push_back(std::move(encoding.offsets));
    if (!words.empty()) texts.words.push_back(std::move(of_words));
  }
  long_lines.tell(lines.size(), remark_);
  unknown.tell(remark_);
  return texts;
}

InspectedTexts InspectedTextReader::translated(const std::vector<std::string>& lines,
                                               const Tokenizer& tokenizer,
                                               const std::vector<std::vector<Word>>& words,
                                               const char* what) const {
  const auto longest = static_cast<size_t>(folder_.model->facts().max_positions) - 1;
  return read(lines, tokenizer, words, what, {.longest = longest, .closing = 0, .drop_end = true});
}

InspectedTexts InspectedTextReader::whole(const std::vector<std::string>& lines,
                                          const std::vector<std::vector<Word>>& words,
                                          const char* what) const {
  const Tokenizer& tokenizer = folder_.source_tokens();
  return read(lines, tokenizer, words, what,
              {.longest = static_cast<size_t>(folder_.model->facts().max_positions),
               .closing = closing_tokens(tokenizer),
               .drop_end = false});
}

InspectedTexts InspectedTextReader::pairs(const std::vector<std::string>& firsts,
                                          const std::vector<std::string>& seconds) const {
  PairsRead read = read_pairs(folder_, firsts, seconds, remark_);
  return {.ids = std::move(read.ids), .offsets = std::move(read.offsets), .types = std::move(read.types)};
}

bool translates(const ModelFolder& folder) {
  return dynamic_cast<const EncoderDecoder*>(folder.model.get()) != nullptr;
}

bool is_causal(const ModelFolder& folder) {
  return folder.model->facts().source_vocabulary == 0;
}

void refuse_targets(const ModelFolder& folder, bool given) {
  if (!given) return;
  throw UsageError(
      fmt::format("{} holds a {} model, which reads one text; leave out translations and alignments",
                  folder.path.string(), folder.model_type));
}

std::vector<std::vector<int32_t>> greedy_translations(const ModelFolder& folder,
                                                      std::span<const std::vector<int32_t>> sources,
                                                      Sites* sites) {
  TranslateOptions options;
  options.search.beam_size = 1;
  // The decoder reads the start token before the translation.
  options.search.max_length = std::max(1, std::min(256, folder.translator().config().max_positions - 1));
  options.search.max_length_factor = 4;
  options.search.suppressed = folder.suppressed;
  options.sites = sites;
  std::vector<std::vector<int32_t>> targets;
  for (auto& hypotheses : translate(folder.translator(), sources, options)) {
    targets.push_back(hypotheses.empty() ? std::vector<int32_t>() : std::move(hypotheses[0].tokens));
  }
  return targets;
}

}  // namespace mh
