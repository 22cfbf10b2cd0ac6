#include "multihead/heads/reports/page/page_json.h"

#include <span>

#include "multihead/base/error.h"
#include "multihead/heads/sites/words.h"
#include "multihead/nn/attention_place.h"
#include "multihead/nn/multi_head_attention.h"

namespace mh {
namespace {

const char* kind_of(AttentionKind kind) {
  if (kind == AttentionKind::kEncoderSelf) return "encoder";
  return kind == AttentionKind::kDecoderSelf ? "decoder" : "cross";
}

const char* axis_of(TraceAxis axis) {
  if (axis == TraceAxis::kQueries) return "queries";
  return axis == TraceAxis::kKeys ? "keys" : "numbers";
}

}  // namespace

HeadsJson json_of(const PageNumbers::Block& block) {
  return {{"offset", block.offset}, {"bytes", block.bytes}};
}

HeadsJson json_of(const PageMaps& maps) {
  const auto block_or_null = [](const std::optional<PageNumbers::Block>& block) {
    return block ? json_of(*block) : HeadsJson();
  };
  HeadsJson json{{"queries", maps.queries},
                 {"keys", maps.keys},
                 {"roots", block_or_null(maps.roots)},
                 {"halves", block_or_null(maps.halves)}};
  json["products"] = nullptr;
  if (maps.products) {
    json["products"] = {
        {"q", json_of(maps.products->q)},
        {"k", json_of(maps.products->k)},
        {"scale", maps.products->scale},
        {"soft_cap", maps.products->soft_cap ? HeadsJson(*maps.products->soft_cap) : HeadsJson()},
        {"bias", block_or_null(maps.products->bias)},
        {"window", maps.products->window}};
  }
  json["value_lengths"] = block_or_null(maps.value_lengths);
  return json;
}

HeadsJson json_of_tokens(const ObservedTokens& tokens, const std::string& text) {
  const std::vector<Word> words = words_in(text);
  const WordOfToken word_of = words_of_tokens(tokens.offsets, text, words, "text");
  HeadsJson json{{"text", text}, {"tokens", HeadsJson::array()}};
  for (size_t i = 0; i < tokens.ids.size(); ++i) {
    const auto [begin, end] = tokens.offsets[i];
    json["tokens"].push_back({{"label", tokens.labels[i]},
                              {"token", tokens.tokens[i]},
                              {"begin", begin},
                              {"end", end},
                              {"word", word_of[i]},
                              {"special", end == 0}});
  }
  return json;
}

HeadsJson json_of_attention(const Model& model, const Model::Attention& attention) {
  const AttentionPlace place = attention.place;
  const MultiHeadAttention& layer = model.attention(attention.name);
  const int d_key = layer.geometry().d_key;
  return {{"name", attention.name},
          {"kind", kind_of(place.kind)},
          {"layer", place.layer},
          {"heads", attention.heads},
          {"key_heads", layer.key_width() / d_key},
          {"d_key", d_key},
          {"causal", place.kind == AttentionKind::kDecoderSelf}};
}

HeadsJson json_of_walk(const AttentionTrace& trace, PageNumbers& numbers) {
  HeadsJson json{{"attention", trace.attention}, {"steps", HeadsJson::array()}};
  for (const TraceStep& step : trace.steps) {
    const std::span<const float> all(step.value.view().data, static_cast<size_t>(step.value.size()));
    json["steps"].push_back({{"name", step.name},
                             {"formula", step.formula},
                             {"heads", step.heads},
                             {"rows", step.value.rows()},
                             {"columns", step.value.cols()},
                             {"row_axis", axis_of(step.rows)},
                             {"column_axis", axis_of(step.columns)},
                             {"numbers", json_of(numbers.add(all))}});
  }
  return json;
}

}  // namespace mh
