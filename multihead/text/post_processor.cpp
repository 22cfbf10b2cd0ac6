#include "multihead/text/post_processor.h"

#include <algorithm>

#include "multihead/text/unicode.h"

namespace mh {
namespace {

bool is_padding_space(char32_t c) {
  return c == U'\u0120' || is_whitespace(c);
}  // Ġ: a byte-level space

/// Leaves the spaces around a word out of its offsets (ByteLevel's trim_offsets).
void trim_offsets(const PostProcessorStep& step, Encoding& encoding) {
  for (size_t i = 0; i < encoding.ids.size(); ++i) {
    const std::string& token = encoding.tokens[i];
    auto& [begin, end] = encoding.offsets[i];
    int32_t leading = 0;
    int32_t trailing = 0;
    bool in_front = true;
    for (size_t at = 0; at < token.size();) {
      if (is_padding_space(next_character(token, at))) {
        leading += in_front ? 1 : 0;
        ++trailing;
      } else {
        in_front = false;
        trailing = 0;
      }
    }
    if (leading > 0) {
      const bool first = i == 0 || begin == 0;
      if (first && step.add_prefix_space && leading == 1)
        leading = 0;  // the pre-tokenizer may have put it there
      begin = std::min(begin + leading, end);
    }
    if (trailing > 0 && end >= trailing) end = std::max(end - trailing, begin);
  }
}

/// The first of that name: CLS and SEP may be the same token. Null when there is none.
const TemplateToken* special_token(const PostProcessorStep& step, const TemplatePiece& piece) {
  const auto found = std::find_if(step.special_tokens.begin(), step.special_tokens.end(),
                                  [&](const TemplateToken& token) { return token.name == piece.special; });
  return found == step.special_tokens.end() ? nullptr : &*found;
}

/// Puts the tokens of a template around a list of the text, of which `special` gives the template's own.
template <class Item, class Special>
void put_around(const PostProcessorStep& step, std::vector<Item>& text, Special&& special) {
  std::vector<Item> result;
  result.reserve(text.size() + step.single.size());
  for (const TemplatePiece& piece : step.single) {
    if (piece.sequence == 'A') result.insert(result.end(), text.begin(), text.end());
    if (piece.sequence != 0) continue;
    if (const TemplateToken* token = special_token(step, piece)) {
      for (size_t i = 0; i < token->ids.size(); ++i) result.push_back(special(*token, i));
    }
  }
  text = std::move(result);
}

void put_ids_around(const PostProcessorStep& step, std::vector<int32_t>& ids) {
  put_around(step, ids, [](const TemplateToken& token, size_t i) { return token.ids[i]; });
}

}  // namespace

void post_process(const std::vector<PostProcessorStep>& steps, bool add_special_tokens, Encoding& encoding) {
  for (const PostProcessorStep& step : steps) {
    if (step.kind != PostProcessorStep::Kind::kTemplateProcessing && step.trim_offsets) {
      trim_offsets(step, encoding);
    }
    if (step.kind != PostProcessorStep::Kind::kByteLevel && add_special_tokens) {
      put_ids_around(step, encoding.ids);
      put_around(step, encoding.tokens, [](const TemplateToken& token, size_t i) { return token.tokens[i]; });
      put_around(step, encoding.offsets, [](const TemplateToken&, size_t) { return std::pair(0, 0); });
    }
  }
}

void post_process_ids(const std::vector<PostProcessorStep>& steps, std::vector<int32_t>& ids) {
  for (const PostProcessorStep& step : steps) {
    if (step.kind != PostProcessorStep::Kind::kByteLevel) put_ids_around(step, ids);
  }
}

const PostProcessorStep* pair_template(const std::vector<PostProcessorStep>& steps) {
  const PostProcessorStep* found = nullptr;
  for (const PostProcessorStep& step : steps) {
    if (step.kind == PostProcessorStep::Kind::kByteLevel) continue;
    if (found != nullptr) return nullptr;
    found = &step;
  }
  if (found == nullptr) return nullptr;
  int first = 0, second = 0;
  for (const TemplatePiece& piece : found->pair) {
    first += piece.sequence == 'A' ? 1 : 0;
    second += piece.sequence == 'B' ? 1 : 0;
    if (piece.sequence == 0 && special_token(*found, piece) == nullptr) return nullptr;
  }
  return first == 1 && second == 1 ? found : nullptr;
}

TokenPair join_pair(const PostProcessorStep& step, std::span<const int32_t> first,
                    std::span<const int32_t> second) {
  TokenPair pair;
  for (const TemplatePiece& piece : step.pair) {
    const std::span<const int32_t> ids = piece.sequence == 'A'   ? first
                                         : piece.sequence == 'B' ? second
                                                                 : special_token(step, piece)->ids;
    pair.ids.insert(pair.ids.end(), ids.begin(), ids.end());
    pair.types.insert(pair.types.end(), ids.size(), piece.type_id);
  }
  return pair;
}

}  // namespace mh
