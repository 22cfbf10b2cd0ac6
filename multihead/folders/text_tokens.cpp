#include "multihead/folders/text_tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "multihead/base/error.h"
#include "multihead/base/thread_pool.h"
#include "multihead/base/utf8.h"
#include "multihead/io/lines.h"
#include "multihead/nn/embedding.h"
#include "multihead/text/cut_tokens.h"

namespace mh {
namespace {

/// Models with one token type are given none, as in transformers, whatever the template says.
bool has_token_types(const ModelFolder& folder) {
  return folder.model->kind() == ModelKind::kEncoder && folder.model->embedding_config().token_types > 1;
}

}  // namespace

TextReader::TextReader(const ModelFolder& folder, const Options& options)
    : folder_(folder),
      tokenizer_(options.side == TextSide::kTarget ? folder.target_tokens() : folder.source_tokens()),
      longest_(options.longest),
      cut_{.end = tokenizer_.cut_end()},
      offsets_(options.offsets),
      has_types_(has_token_types(folder) && tokenizer_.gives_types()) {
  const bool is_source = options.side == TextSide::kSource;
  if (options.side != TextSide::kOnly) {
    end_ = folder.model->facts().eos_id;
    room_for_end_ = is_source ? source_end(folder, options.languages).size() : 1;
    own_template_ = folder.languages == nullptr;
  }
  if (own_template_) {
    cut_.opening = opening_tokens(tokenizer_);
    cut_.closing = end_ ? 0 : closing_tokens(tokenizer_);
  } else {
    before_ = is_source ? before_source(folder, options.languages) : before_target(folder, options.languages);
    cut_.opening = before_.size();
  }
}

bool TextReader::has_unknown(std::span<const int32_t> ids) const {
  const auto unknown = tokenizer_.unknown_id();
  return unknown && std::find(ids.begin(), ids.end(), *unknown) != ids.end();
}

TextTokens TextReader::read(const std::string& text) const {
  TextTokens tokens;
  if (offsets_) {
    Encoding encoding = tokenizer_.encode(text, own_template_);
    tokens.ids = std::move(encoding.ids);
    tokens.offsets = std::move(encoding.offsets);
  } else {
    tokens.ids = tokenizer_.encode_ids(text, own_template_);
  }
  tokens.ids.insert(tokens.ids.begin(), before_.begin(), before_.end());
  if (offsets_) tokens.offsets.insert(tokens.offsets.begin(), before_.size(), {0, 0});
  if (end_ && own_template_ && !tokens.ids.empty() && tokens.ids.back() == *end_) {
    tokens.ids.pop_back();
    if (offsets_) tokens.offsets.pop_back();
  }
  tokens.uncut = tokens.ids.size() + room_for_end_;
  tokens.has_unknown = has_unknown(tokens.ids);
  const size_t room = longest_ - std::min(longest_, room_for_end_);
  cut_tokens(tokens.ids, room, cut_);
  cut_tokens(tokens.offsets, room, cut_);
  return tokens;
}

TextTokens TextReader::read(const std::string& first, const std::string& second) const {
  check_pairs();
  const Encoding a = tokenizer_.encode(first, false), b = tokenizer_.encode(second, false);
  const size_t special = tokenizer_.joined({}, {}).ids.size();
  const auto [of_a, of_b] = shares_of_pair(a.ids.size(), b.ids.size(), longest_ - special);
  // What stays of each begins here.
  const bool at_start = cut_.end == TextEnd::kStart;
  const size_t from_a = at_start ? a.ids.size() - of_a : 0, from_b = at_start ? b.ids.size() - of_b : 0;
  TokenPair joined =
      tokenizer_.joined(std::span(a.ids).subspan(from_a, of_a), std::span(b.ids).subspan(from_b, of_b));
  TextTokens tokens{.ids = std::move(joined.ids),
                    .uncut = a.ids.size() + b.ids.size() + special,
                    .has_unknown = has_unknown(a.ids) || has_unknown(b.ids)};
  // Where each text begins among the special tokens, which the template tells of two texts of a token each.
  const std::vector<int32_t> in_a{-1}, in_b{-2};
  const std::vector<int32_t> places = tokenizer_.joined(in_a, in_b).ids;
  const auto place_of = [&](int32_t id) {
    return static_cast<size_t>(std::find(places.begin(), places.end(), id) - places.begin());
  };
  tokens.offsets.resize(tokens.ids.size());
  for (size_t i = 0; i < of_a; ++i) tokens.offsets[place_of(-1) + i] = a.offsets[from_a + i];
  tokens.second = place_of(-2) - 1 + of_a;
  for (size_t i = 0; i < of_b; ++i) tokens.offsets[*tokens.second + i] = b.offsets[from_b + i];
  if (has_types_) tokens.types = std::move(joined.types);
  return tokens;
}

void TextReader::check_pairs() const {
  const std::string path = folder_.path.string();
  if (folder_.model->kind() != ModelKind::kEncoder && !folder_.labels) {
    throw UsageError(
        fmt::format("{} holds a {} model, which does not read two texts as one sequence; leave the second "
                    "text out, or name an encoder such as BERT",
                    path, folder_.model_type));
  }
  if (!tokenizer_.joins_pairs()) {
    throw UsageError(
        fmt::format("the tokenizer of {} has no template for two texts; leave the second text out", path));
  }
  const size_t special = tokenizer_.joined({}, {}).ids.size();
  if (longest_ < special + 2) {
    throw UsageError(
        fmt::format("the model of {} reads {} tokens; a pair of texts needs more than its {} special tokens",
                    path, longest_, special));
  }
}

std::vector<TextTokens> read_lines(const TextReader& reader, std::span<const std::string> lines,
                                   const ReadLinesOptions& options) {
  const std::span<const std::string> seconds = options.seconds;
  if (!seconds.empty()) {
    if (seconds.size() != lines.size())
      throw UsageError(fmt::format("{} second texts for {} texts; there must be one for each", seconds.size(),
                                   lines.size()));
    reader.check_pairs();
  }
  const auto text_of = [&](const std::string& line) {
    return options.prepare ? options.prepare(line) : line;
  };
  std::vector<TextTokens> read(lines.size());
  constexpr size_t kLinesATask = 64;
  parallel_for(static_cast<int64_t>((lines.size() + kLinesATask - 1) / kLinesATask), [&](int64_t task) {
    const size_t begin = static_cast<size_t>(task) * kLinesATask;
    for (size_t i = begin; i < std::min(begin + kLinesATask, lines.size()); ++i) {
      const auto checked = [&](const std::string& line) {
        if (const std::string problem = utf8_problem(line); !problem.empty())
          throw FormatError(fmt::format("{}: {}", options.from.at(i), problem));
        return text_of(line);
      };
      read[i] = seconds.empty() ? reader.read(checked(lines[i]))
                                : reader.read(checked(lines[i]), checked(seconds[i]));
    }
  });

  LongLines::Limit limit{.longest = reader.longest(),
                         .strict = options.strict || options.whole,
                         .cut = reader.tokenizer().cut_end()};
  if (options.whole) limit.remedy = "shorten it";
  LongLines long_lines(options.from, std::move(limit));
  UnknownTokens told;
  UnknownTokens& unknown = options.unknown != nullptr ? *options.unknown : told;
  const bool count = options.unknown != nullptr || options.remark != nullptr;
  for (size_t i = 0; i < lines.size(); ++i) {
    long_lines.note(i, read[i].uncut);
    if (!count || !read[i].has_unknown) continue;
    unknown.add(text_of(lines[i]), reader.tokenizer());
    if (!seconds.empty()) unknown.add(text_of(seconds[i]), reader.tokenizer());
  }
  long_lines.tell(lines.size(), options.remark);
  told.tell(options.remark);
  return read;
}

std::string behind_prefix(const std::string& prefix, const std::string& line) {
  return is_blank(line) ? line : prefix + line;
}

std::pair<size_t, size_t> shares_of_pair(size_t first, size_t second, size_t room) {
  if (first + second <= room) return {first, second};
  size_t less = std::min(first, second);
  if (2 * less > room) less = room / 2;
  return first <= second ? std::pair(less, room - less) : std::pair(room - less, less);
}

}  // namespace mh
