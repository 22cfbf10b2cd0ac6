#include <fmt/format.h>

#include "multihead/base/embed.h"
#include "multihead/base/error.h"
#include "multihead/heads/retrieval/heads_retrieval.h"
#include "multihead/io/split_at.h"

// MULTIHEAD_RETRIEVAL is share/retrieval of the sources.
MH_EMBED(mh_needles, MULTIHEAD_RETRIEVAL "/needles.tsv");
MH_EMBED(mh_filler, MULTIHEAD_RETRIEVAL "/filler.txt");

namespace mh {
std::vector<RetrievalNeedle> needles_of(std::span<const std::string> lines, const std::string& name) {
  std::vector<RetrievalNeedle> needles;
  for (size_t i = 0; i < lines.size(); ++i) {
    std::string line = lines[i];
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.find_first_not_of(" \t") == std::string::npos) continue;
    const std::vector<std::string> fields = split_at(line, '\t');
    if (fields.size() != 3)
      throw FormatError(fmt::format(
          "{}, line {}: expected a sentence, a question and its answer with tabs between them, got {} {}",
          name, i + 1, fields.size(), fields.size() == 1 ? "field" : "fields"));
    needles.push_back({.sentence = fields[0], .question = fields[1], .answer = fields[2]});
  }
  return needles;
}

RetrievalTexts::RetrievalTexts()
    : needles(needles_of(split_at({mh_needles, static_cast<size_t>(mh_needles_end - mh_needles)}, '\n'),
                         "share/retrieval/needles.tsv")) {
  for (const std::string& line : split_at({mh_filler, static_cast<size_t>(mh_filler_end - mh_filler)}, '\n'))
    if (!line.empty()) filler += (filler.empty() ? "" : " ") + line;
}

}  // namespace mh
