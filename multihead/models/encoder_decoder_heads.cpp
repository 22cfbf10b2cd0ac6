// An encoder-decoder with other heads: one description for as many attentions as possible, and the others' own.
#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "multihead/models/encoder_decoder.h"
#include "multihead/nn/head_geometry.h"
#include "multihead/nn/multi_head_attention.h"

namespace mh {
namespace {

bool of_encoder(const std::string& attention) {
  return attention.starts_with("encoder.");
}

/// With what stands for itself left unset again, so that attentions can share one description.
HeadGeometry shortest(HeadGeometry g, int d_model) {
  const HeadGeometry whole = completed(g, d_model, "");
  const auto leave_out = [&](const auto& field, auto& value) {
    using Value = std::remove_reference_t<decltype(value)>;
    if constexpr (std::is_same_v<Value, int> || std::is_same_v<Value, std::optional<float>>) {
      const Value kept = std::exchange(value, Value{});
      if (!problems_of(g, d_model).empty() || completed(g, d_model, "") != whole) value = kept;
    }
    static_cast<void>(field);
  };
  // The scale follows from sizes, values' sizes from keys': what depends on others is left out first.
  const auto in_turn = [&](const std::set<std::string_view>& names) {
    HeadGeometry::describe(g, [&](const HeadField& field, auto& value, const auto&...) {
      if (names.contains(field.name)) leave_out(field, value);
    });
  };
  for (const char* name : {"scale", "value_heads", "key_heads", "d_value", "d_key"}) in_turn({name});
  HeadGeometry::describe(g, [&](const HeadField& field, auto& value, const auto&...) {
    if (field.only) leave_out(field, value);
  });
  return g;
}

/// Whether an attention that shares this description has these heads.
bool describes(HeadGeometry shared, const HeadGeometry& heads, int d_model) {
  shared.heads = heads.heads;
  return problems_of(shared, d_model).empty() && completed(shared, d_model, "") == heads;
}

/// The shape of a model with these attentions: one description for as many as possible, and the others' own.
EncoderDecoderConfig config_for(const EncoderDecoderConfig& before, const HeadsOfAttentions& all) {
  const int d_model = before.d_model;
  const HeadGeometry &encoder = all.at("encoder.0.self_attention"),
                     &decoder = all.at("decoder.0.self_attention");
  EncoderDecoderConfig after = before;
  after.own_heads.clear();
  int64_t most = -1;
  // The description must be possible with the heads of either side, which with keys of as many of the other side is not: then
  // both sides get the heads of one.
  const auto consider = [&](const HeadGeometry& described_by, int encoder_heads, int decoder_heads) {
    const HeadGeometry candidate = shortest(described_by, d_model);
    for (const int heads : {encoder_heads, decoder_heads}) {
      HeadGeometry one = candidate;
      one.heads = heads;
      if (!problems_of(one, d_model).empty()) return;
    }
    const int64_t described = std::count_if(all.begin(), all.end(), [&](const auto& attention) {
      return attention.second.heads == (of_encoder(attention.first) ? encoder_heads : decoder_heads) &&
             describes(candidate, attention.second, d_model);
    });
    if (described <= most) return;
    most = described;
    after.geometry = candidate;
    after.geometry.heads = HeadGeometry().heads;  // the sides have their own
    after.encoder_heads = encoder_heads;
    after.decoder_heads = decoder_heads;
  };
  consider(encoder, encoder.heads, decoder.heads);
  consider(decoder, encoder.heads, decoder.heads);
  if (most < 0) {
    consider(encoder, encoder.heads, encoder.heads);
    consider(decoder, decoder.heads, decoder.heads);
  }
  for (const auto& [name, heads] : all) {
    const HeadGeometry shared = after.heads_of(name);
    if (problems_of(shared, d_model).empty() && completed(shared, d_model, name) == heads) continue;
    after.own_heads.push_back({.attention = name, .geometry = shortest(heads, d_model)});
  }
  return after;
}

}  // namespace

std::unique_ptr<Model> EncoderDecoder::with_heads(const HeadsOfAttentions& heads) const {
  HeadsOfAttentions all;
  for (const Attention& named : attentions()) all[named.name] = attention(named.name).geometry();
  for (const auto& [name, geometry] : heads) {
    attention(name);  // it must be there
    all[name] = geometry;
  }
  return std::make_unique<EncoderDecoder>(config_for(config_, all));
}

}  // namespace mh
