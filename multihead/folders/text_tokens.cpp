#include "multihead/folders/text_tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "multihead/base/error.h"
#include "multihead/models/encoder_model.h"
#include "multihead/text/cut_tokens.h"
#include "multihead/text/long_lines.h"

namespace mh {
namespace {

/// Models with one token type are given none, as in transformers, whatever the template says.
bool gives_types(const ModelFolder& folder) {
  const auto* encoder = dynamic_cast<const EncoderModel*>(folder.model.get());
  return encoder != nullptr && encoder->config().embedding.token_types > 1;
}

}  // namespace

TextReader::TextReader(const ModelFolder& folder, size_t longest)
    : folder_(folder),
      tokenizer_(folder.source_tokens()),
      longest_(longest),
      closing_(closing_tokens(tokenizer_)),
      has_types_(gives_types(folder)) {}

TextTokens TextReader::read(const std::string& text) const {
  TextTokens tokens{.ids = tokenizer_.encode_ids(text)};
  tokens.uncut = tokens.ids.size();
  cut_tokens(tokens.ids, longest_, closing_);
  return tokens;
}

TextTokens TextReader::read(const std::string& first, const std::string& second) const {
  check_pairs();
  const Encoding a = tokenizer_.encode(first, false), b = tokenizer_.encode(second, false);
  const size_t special = tokenizer_.joined({}, {}).ids.size();
  const auto [of_a, of_b] = shares_of_pair(a.ids.size(), b.ids.size(), longest_ - special);
  TokenPair joined = tokenizer_.joined(std::span(a.ids).first(of_a), std::span(b.ids).first(of_b));
  TextTokens tokens{.ids = std::move(joined.ids), .uncut = a.ids.size() + b.ids.size() + special};
  // Where each text begins among the special tokens, which the template tells of two texts of a token each.
  const std::vector<int32_t> in_a{-1}, in_b{-2};
  const std::vector<int32_t> places = tokenizer_.joined(in_a, in_b).ids;
  const auto place_of = [&](int32_t id) {
    return static_cast<size_t>(std::find(places.begin(), places.end(), id) - places.begin());
  };
  tokens.offsets.resize(tokens.ids.size());
  for (size_t i = 0; i < of_a; ++i) tokens.offsets[place_of(-1) + i] = a.offsets[i];
  for (size_t i = 0; i < of_b; ++i) tokens.offsets[place_of(-2) - 1 + of_a + i] = b.offsets[i];
  if (has_types_) tokens.types = std::move(joined.types);
  return tokens;
}

void TextReader::check_pairs() const {
  const std::string path = folder_.path.string();
  if (dynamic_cast<const EncoderModel*>(folder_.model.get()) == nullptr) {
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

PairsRead read_pairs(const ModelFolder& folder, const std::vector<std::string>& firsts,
                     const std::vector<std::string>& seconds,
                     const std::function<void(const std::string&)>& remark) {
  check_second_texts(seconds.size(), firsts.size());
  const auto longest = static_cast<size_t>(folder.model->facts().max_positions);
  const TextReader reader(folder, longest);
  reader.check_pairs();
  PairsRead pairs;
  LongLines long_lines({.one = "pair"}, {.longest = longest});
  for (size_t i = 0; i < firsts.size(); ++i) {
    TextTokens tokens = reader.read(firsts[i], seconds[i]);
    long_lines.note(i, tokens.uncut);
    pairs.ids.push_back(std::move(tokens.ids));
    pairs.types.push_back(std::move(tokens.types));
    pairs.offsets.push_back(std::move(tokens.offsets));
  }
  long_lines.tell(firsts.size(), remark);
  return pairs;
}

void check_second_texts(size_t seconds, size_t firsts) {
  if (seconds == firsts) return;
  throw UsageError(fmt::format("{} second texts for {} texts; there must be one for each", seconds, firsts));
}

std::pair<size_t, size_t> shares_of_pair(size_t first, size_t second, size_t room) {
  if (first + second <= room) return {first, second};
  size_t less = std::min(first, second);
  if (2 * less > room) less = room / 2;
  return first <= second ? std::pair(less, room - less) : std::pair(room - less, less);
}

}  // namespace mh
