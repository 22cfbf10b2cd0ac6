#include "multihead/models/encoder_decoder_config.h"

#include <fmt/format.h>

#include <algorithm>

#include "multihead/models/config_checks.h"

namespace mh {

void become_classifier(EncoderDecoderConfig& config, int32_t labels) {
  config.labels = LabelConfig{.labels = labels, .rows = LabelRows::kEnd, .dense = LabelDense()};
  config.tied = true;
  config.output_bias = false;
}

std::vector<std::string> problems_of(const EncoderDecoderConfig& config, const ConfigNames& names) {
  std::vector<std::string> found;
  const int64_t d_model = config.embedding.d_model;
  check_sizes(found, config.embedding, config.encoder.positions, config.max_positions, names);
  // What both sides have is said once.
  const auto add_new = [&](const std::vector<std::string>& clauses) {
    for (const std::string& clause : clauses) {
      if (std::find(found.begin(), found.end(), clause) == found.end()) found.push_back(clause);
    }
  };
  ConfigNames of_target = names;
  of_target.vocabulary = names.target_vocabulary;
  std::vector<std::string> target;
  check_sizes(target, config.target_embedding, config.decoder.positions, config.max_positions, of_target);
  add_new(target);
  const bool all_count = !config.embedding.uncounted && !config.target_embedding.uncounted;
  check_range(found, "position_offset", config.position_offset, all_count ? 0 : 1, 1024);
  if (config.sinusoids == SinusoidForm::kFairseq) check_range(found, names.d_model, d_model, 4, 1 << 16);
  if (config.target_embedding.d_model != d_model) {
    found.push_back(fmt::format("the target embedding's d_model is {}, that of the source's {}",
                                config.target_embedding.d_model, d_model));
  }
  if (found.empty()) {
    check_stack(found, config.encoder, d_model);
    std::vector<std::string> of_decoder;
    check_stack(of_decoder, config.decoder, d_model);
    add_new(of_decoder);
  }
  if (config.labels) {
    check_range(found, "labels", config.labels->labels, 1, 1 << 16);
    if (!config.tied || config.output_bias)
      found.emplace_back("a classifier has labels in the place of an output layer; leave that one out");
    if (config.labels->rows == LabelRows::kPooled)
      found.emplace_back("labels are made of what a pooler gives, and there is none");
  }
  if (config.encoder.name != "encoder" || config.decoder.name != "decoder")
    found.emplace_back("the stacks have other names; call them encoder and decoder");
  if (!all_look(AttentionDirection::kBidirectional, config.encoder))
    found.emplace_back("an encoder sees both sides of a token; set its masks to none or local");
  if (!all_look(AttentionDirection::kCausal, config.decoder))
    found.emplace_back("a causal decoder must not see what is to come; set its masks to causal or a window");
  if (config.encoder.cross_attention)
    found.emplace_back("an encoder reads no memory; set cross_attention to no");
  if (!config.decoder.cross_attention)
    found.emplace_back("the decoder reads the encoder's memory; set cross_attention to yes");
  std::vector<std::string> rest;
  check_dropout_and_words(rest, config, names);
  add_new(rest);
  return found;
}

double least_parameters(const EncoderDecoderConfig& config) {
  const auto d = static_cast<double>(config.embedding.d_model);
  return d * static_cast<double>(config.embedding.vocabulary) + least_parameters(config.encoder) +
         least_parameters(config.decoder);
}

}  // namespace mh
