#include "multihead/tasks/model_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "multihead/base/error.h"
#include "multihead/folders/family.h"
#include "multihead/folders/text_tokens.h"
#include "multihead/models/encoder_decoder.h"
#include "multihead/text/cut_tokens.h"

namespace mh {
namespace {

std::vector<int32_t> parse_ids(const std::string& line, int32_t vocabulary, const std::string& where) {
  std::vector<int32_t> ids;
  const char* at = line.data();
  const char* const end = at + line.size();
  while (true) {
    while (at < end && (*at == ' ' || *at == '\t')) ++at;
    if (at == end) return ids;
    int32_t id = 0;
    const auto [next, error] = std::from_chars(at, end, id);
    if (error != std::errc() || (next < end && *next != ' ' && *next != '\t')) {
      throw FormatError(
          fmt::format("{}: expected token ids in decimal, separated by spaces; without `token_ids` "
                      "the line is read as text",
                      where));
    }
    if (id < 0 || id >= vocabulary) {
      throw FormatError(
          fmt::format("{}: expected token ids from 0 to {}, got {}", where, vocabulary - 1, id));
    }
    ids.push_back(id);
    at = next;
  }
}

void check_prefix(const ModelFolder& folder, const std::string& prefix) {
  const size_t tokens = folder.source_tokens().encode_ids(prefix).size();
  const auto longest = static_cast<size_t>(folder.translator().facts().max_positions);
  if (tokens >= longest) {
    throw UsageError(
        fmt::format("`source_prefix` has {} tokens, which leaves no room for a text: {} reads {}", tokens,
                    folder.path.string(), longest));
  }
}

}  // namespace

ModelText::ModelText(const ModelFolder& folder, Options options)
    : folder_(folder), options_(std::move(options)) {
  folder.translator();  // it must be one
  if (options_.form == LineForm::kTokenIds) {
    if (!options_.prefix.empty())
      throw UsageError(
          "`source_prefix` goes before texts; with `token_ids` put its ids before those of each line");
    return;
  }
  folder.source_tokens();
  folder.target_tokens();
  before_source(folder, options_.languages);  // which says its language
  if (!options_.prefix.empty()) check_prefix(folder, options_.prefix);
}

UnknownTokens ModelText::take_unknown() {
  return std::exchange(unknown_, {});
}

ModelText::Ids ModelText::sources(const std::vector<std::string>& lines, const LinesFrom& from) {
  return encode(lines, from, Side::kSource);
}

ModelText::Ids ModelText::sources_to_translate(const std::vector<std::string>& lines, const LinesFrom& from) {
  Ids ids = sources(lines, from);
  // Nothing but special tokens: the end, behind what BART puts before a text.
  size_t around = 1;
  if (options_.form == LineForm::kText) {
    around = source_end(folder_, options_.languages).size() +
             (folder_.languages ? before_source(folder_, options_.languages).size()
                                : opening_tokens(folder_.source_tokens()));
  }
  for (auto& source : ids) {
    if (source.size() <= around) source.clear();
  }
  return ids;
}

ModelText::Ids ModelText::targets(const std::vector<std::string>& lines, const LinesFrom& from) {
  return encode(lines, from, Side::kTarget);
}

ModelText::Ids ModelText::encode(const std::vector<std::string>& lines, const LinesFrom& from, Side side) {
  const ModelFacts facts = folder_.translator().facts();
  const bool is_source = side == Side::kSource;
  // A target's place for the end token is taken by the start token, which comes before it.
  const auto longest = static_cast<size_t>(facts.max_positions);

  Ids ids;
  ids.reserve(lines.size());
  if (options_.form == LineForm::kText) {
    const TextReader reader(folder_, {.longest = longest,
                                      .side = is_source ? TextSide::kSource : TextSide::kTarget,
                                      .languages = options_.languages});
    std::function<std::string(const std::string&)> prepare;
    if (is_source && !options_.prefix.empty())
      prepare = [&](const std::string& line) { return behind_prefix(options_.prefix, line); };
    for (TextTokens& line : read_lines(reader, lines,
                                       {.from = from,
                                       .prepare = prepare,
                                       .remark = options_.remark,
                                       .strict = options_.strict,
                                       .unknown = &unknown_})) {
      ids.push_back(std::move(line.ids));
    }
  } else {
    LongLines long_lines(from, {.longest = longest, .strict = options_.strict});
    for (size_t i = 0; i < lines.size(); ++i) {
      std::vector<int32_t>& of_line = ids.emplace_back(
          parse_ids(lines[i], is_source ? facts.source_vocabulary : facts.vocabulary, from.at(i)));
      if (!of_line.empty() && of_line.back() == facts.eos_id) of_line.pop_back();
      long_lines.note(i, of_line.size() + 1);
      cut_tokens(of_line, longest - 1, {});
    }
    long_lines.tell(lines.size(), options_.remark);
  }
  if (is_source) {
    const bool of_text = options_.form == LineForm::kText;
    const std::vector<int32_t> end =
        of_text ? source_end(folder_, options_.languages) : std::vector<int32_t>{facts.eos_id};
    // Ids have the end perhaps before a language's code.
    const Family* const family = family_named(folder_.model_type);
    const bool may_end_inside = !of_text && family != nullptr && family->texts == FamilyTexts::kManyLanguages;
    for (auto& source : ids) {
      if (may_end_inside && std::find(source.begin(), source.end(), facts.eos_id) != source.end()) continue;
      source.insert(source.end(), end.begin(), end.end());
    }
  }
  return ids;
}

std::string ModelText::text(const std::vector<int32_t>& target) const {
  if (options_.form == LineForm::kTokenIds) return fmt::format("{}", fmt::join(target, " "));
  std::string text = folder_.target_tokens().decode_known(target);
  for (char& c : text) {
    if (c == '\n' || c == '\r') c = ' ';
  }
  return text;
}

}  // namespace mh
