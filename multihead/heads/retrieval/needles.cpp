#include <fmt/format.h>

#include "multihead/base/embed.h"
#include "multihead/base/error.h"
#include "multihead/heads/retrieval/heads_retrieval.h"
#include "multihead/io/cut_at.h"

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
    const std::vector<std::string_view> fields = cut_at(line, '\t');
    if (fields.size() != 3)
      throw FormatError(fmt::format(
          "{}, line {}: expected a sentence, a question and its answer with tabs between them, got {} {}",
          name, i + 1, fields.size(), fields.size() == 1 ? "field" : "fields"));
    needles.push_back({.sentence = std::string(fields[0]),
                       .question = std::string(fields[1]),
                       .answer = std::string(fields[2])});
  }
  return needles;
}

RetrievalTexts::RetrievalTexts() {
  const std::vector<std::string_view> lines =
      cut_at({mh_needles, static_cast<size_t>(mh_needles_end - mh_needles)}, '\n');
  needles = needles_of(std::vector<std::string>(lines.begin(), lines.end()), "share/retrieval/needles.tsv");
  for (const std::string_view line :
       cut_at({mh_filler, static_cast<size_t>(mh_filler_end - mh_filler)}, '\n')) {
    if (line.empty()) continue;
    if (!filler.empty()) filler += ' ';
    filler += line;
  }
}

}  // namespace mh
