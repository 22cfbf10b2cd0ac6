#include "cli/model_text.h"

#include <fmt/format.h>

#include <charconv>

#include "cli/common.h"
#include "multihead/base/error.h"
#include "multihead/models/encoder_decoder.h"

namespace mh::cli {
namespace {

constexpr int kReportedLines = 10;

std::vector<int32_t> parse_ids(const std::string& line, const std::string& what, size_t number) {
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
          fmt::format("{} line {}: expected token ids in decimal, separated by spaces; without --token-ids "
                      "the line is read as text",
                      what, number));
    }
    ids.push_back(id);
    at = next;
  }
}

}  // namespace

ModelText::ModelText(const ModelFolder& folder, bool token_ids) : folder_(folder), token_ids_(token_ids) {
  if (!token_ids && !folder.tokenizer) {
    throw FileError(fmt::format(
        "{} has no tokenizer.json; put one there, or give --token-ids and token ids instead of text",
        folder.path.string()));
  }
  if (!token_ids && folder.translator().config().target_vocabulary_size > 0 && !folder.target_tokenizer) {
    throw FileError(fmt::format(
        "{} has no target_tokenizer.json, though its target has a vocabulary of its own; put one there, or "
        "give --token-ids and token ids instead of text",
        folder.path.string()));
  }
}

ModelText::Ids ModelText::sources(const std::vector<std::string>& lines, const std::string& what) const {
  return encode(lines, what, Side::kSource);
}

ModelText::Ids ModelText::targets(const std::vector<std::string>& lines, const std::string& what) const {
  return encode(lines, what, Side::kTarget);
}

ModelText::Ids ModelText::encode(const std::vector<std::string>& lines, const std::string& what,
                                 Side side) const {
  const EncoderDecoderConfig& config = folder_.translator().config();
  const Tokenizer* tokenizer = nullptr;
  if (!token_ids_) tokenizer = side == Side::kSource ? &folder_.source_tokens() : &folder_.target_tokens();
  // A target's place for the end token is taken by the start token, which comes before it.
  const auto longest = static_cast<size_t>(config.max_positions) - 1;

  Ids ids;
  ids.reserve(lines.size());
  int64_t cut = 0;
  for (const std::string& line : lines) {
    auto& of_line =
        ids.emplace_back(token_ids_ ? parse_ids(line, what, ids.size() + 1) : tokenizer->encode_ids(line));
    if (!of_line.empty() && of_line.back() == config.eos_id) of_line.pop_back();
    if (of_line.size() > longest) {
      if (++cut <= kReportedLines) {
        remark(fmt::format("{} line {}: {} tokens, cut to the model's longest, {}", what, ids.size(),
                           of_line.size() + 1, config.max_positions));
      }
      of_line.resize(longest);
    }
    if (side == Side::kSource) of_line.push_back(config.eos_id);
  }
  if (cut > kReportedLines) remark(fmt::format("{}: {} lines cut in all", what, cut));
  return ids;
}

std::string ModelText::text(const std::vector<int32_t>& target) const {
  if (token_ids_) return fmt::format("{}", fmt::join(target, " "));
  std::string text = folder_.target_tokens().decode(target);
  // One line out for a line in, whatever the tokens spell.
  for (char& c : text) {
    if (c == '\n' || c == '\r') c = ' ';
  }
  return text;
}

}  // namespace mh::cli
