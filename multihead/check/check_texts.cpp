#include "multihead/check/check_texts.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "multihead/base/error.h"
#include "multihead/base/random.h"
#include "multihead/folders/text_tokens.h"
#include "multihead/models/label_head.h"

namespace mh {
namespace {

const std::vector<std::string>& own_lines() {
  static const std::vector<std::string> lines = {
      "Hello",
      "The quick brown fox jumps over the lazy dog, and then it sleeps in the warm sun of the afternoon. "
      "When it wakes "
      "up, the dog has gone; nobody knows where. \"Perhaps,\" said the fox, \"it has found another fox.\" So "
      "it waits "
      "until the evening, looks at the stars, and thinks of what it will do on the next day, if that day "
      "comes.",
      "Na\u00efve caf\u00e9s \u2014 \u4f60\u597d, \u4e16\u754c! \U0001F642 x\u00b2 \u2264 3.14\t"
      "\u0414\u043e\u0431\u0440\u044b\u0439 \u0434\u0435\u043d\u044c",
      "for (int i = 0; i < 1024; ++i) sum += 2.5e-3 * a[i];"};
  return lines;
}

/// The lengths of drawn texts; the longest is longer than the windows of tests' models.
constexpr std::array<int32_t, 4> kLengths = {3, 1, 29, 11};
/// Ids below are those of special tokens in most vocabularies.
constexpr int32_t kFirstDrawn = 3;

std::vector<int32_t> drawn(int32_t vocabulary, int32_t length, uint64_t stream) {
  Random random(13 + stream);
  std::vector<int32_t> ids;
  const int32_t first = std::min(kFirstDrawn, vocabulary - 1);
  for (int32_t i = 0; i < length; ++i)
    ids.push_back(first + static_cast<int32_t>(random.below(static_cast<uint32_t>(vocabulary - first))));
  return ids;
}

bool is_translator(const ModelFolder& folder) {
  return folder.model->kind() == ModelKind::kTranslator;
}

/// The ids of the source, or of what the decoder of a translator reads.
std::vector<std::vector<int32_t>> ids_of(const ModelFolder& folder, std::span<const std::string> lines,
                                         const LanguagePair& languages, bool target) {
  const ModelFacts facts = folder.model->facts();
  const int32_t longest = facts.max_positions;
  std::vector<std::vector<int32_t>> all;
  if (lines.empty()) {
    const int32_t vocabulary = target ? facts.vocabulary : facts.vocabulary_read();
    for (size_t i = 0; i < kLengths.size(); ++i) {
      const int32_t length = kLengths[target ? kLengths.size() - 1 - i : i];
      all.push_back(drawn(vocabulary, std::min(length, longest), target ? i + kLengths.size() : i));
    }
  } else {
    const TextSide side = !is_translator(folder) ? TextSide::kOnly
                          : target               ? TextSide::kTarget
                                                 : TextSide::kSource;
    const TextReader reader(folder,
                            {.longest = static_cast<size_t>(longest), .side = side, .languages = languages});
    for (const std::string& line : lines) all.push_back(reader.read(line).ids);
  }
  return all;
}

}  // namespace

int64_t CheckTexts::rows() const {
  int64_t sum = 0;
  for (const auto* of : {&ids, &targets}) {
    for (const auto& text : *of) sum += static_cast<int64_t>(text.size());
  }
  return sum;
}

CheckTexts check_texts(const ModelFolder& folder, std::span<const std::string> lines, int32_t new_tokens,
                       const TextLanguages& languages) {
  const ModelFacts facts = folder.model->facts();
  const LanguagePair pair = language_pair(folder, languages);
  const bool reads_text = folder.tokenizer && knows_languages(folder, pair);
  if (!lines.empty() && !reads_text) folder.source_tokens();  // says what is missing
  if (lines.empty() && reads_text) lines = own_lines();
  std::vector<std::vector<int32_t>> ids = ids_of(folder, lines, pair, false);
  std::vector<std::vector<int32_t>> targets;
  if (is_translator(folder)) targets = ids_of(folder, lines, pair, true);
  CheckTexts texts;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i].empty()) continue;
    const LabelHead* const head = folder.model->label_head();
    if (lines.empty() && head != nullptr && head->config().rows == LabelRows::kEnd)
      ids[i].back() = facts.eos_id;
    if (!lines.empty()) texts.lines.push_back(lines[i]);
    if (is_translator(folder)) {
      const std::vector<int32_t> end =
          lines.empty() ? std::vector<int32_t>{facts.eos_id} : source_end(folder, pair);
      if (!lines.empty() || ids[i].size() < static_cast<size_t>(facts.max_positions))
        ids[i].insert(ids[i].end(), end.begin(), end.end());
      targets[i].insert(targets[i].begin(), facts.start_id);
      if (targets[i].size() > static_cast<size_t>(facts.max_positions)) targets[i].pop_back();
      texts.targets.push_back(std::move(targets[i]));
      texts.new_tokens.push_back(std::min(new_tokens, facts.max_positions - 1));
    } else if (folder.model->kind() == ModelKind::kCausal && folder.model->predicts()) {
      texts.new_tokens.push_back(
          std::min(new_tokens, facts.max_positions - static_cast<int32_t>(ids[i].size())));
    }
    texts.ids.push_back(std::move(ids[i]));
  }
  if (texts.ids.empty()) throw UsageError("none of the texts has a token");
  return texts;
}

}  // namespace mh
