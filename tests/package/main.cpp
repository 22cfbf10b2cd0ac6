#include <cstdio>

#include "multihead/models/encoder_decoder.h"

int main() {
  mh::EncoderDecoderConfig config = mh::transformer_preset("tiny");
  config.vocabulary_size = 11;
  mh::EncoderDecoder model(config);
  std::printf("%lld parameters\n", static_cast<long long>(model.parameter_count()));
  return model.attentions().size() == 12 ? 0 : 1;
}
