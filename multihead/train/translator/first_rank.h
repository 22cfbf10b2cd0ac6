// What rank 0 of several processes gives to the others before they train together: tokens, the model's shape, and with
// `share_corpus` the text. Everything that rank 0 has as a file need be nowhere else.
#pragma once

#include <optional>

#include "multihead/distributed/message.h"
#include "multihead/distributed/process_group.h"
#include "multihead/models/encoder_decoder_config.h"
#include "multihead/train/translator/translator_corpus.h"

namespace mh {

/// Each takes what rank 0 has, and returns it on every rank; what other ranks pass is not read.
TranslatorTokenizers tokenizers_of_first_rank(ProcessGroup& group,
                                              const std::optional<TranslatorTokenizers>& tokenizers);
EncoderDecoderConfig config_of_first_rank(ProcessGroup& group,
                                          const std::optional<EncoderDecoderConfig>& config);

void add_corpus(MessageWriter& message, const TrainingCorpus& corpus);
TrainingCorpus read_corpus(MessageReader& reader);

}  // namespace mh
