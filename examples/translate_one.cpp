// Translates a sentence with a model folder.
//   translate_one MODEL "two dogs run ."
#include <cstdio>
#include <string>

#include "multihead/generate/translate.h"
#include "multihead/models/encoder_decoder.h"
#include "multihead/models/model_folder.h"

int main(int argc, char** argv) {
  if (argc != 3) return std::fprintf(stderr, "usage: %s MODEL SENTENCE\n", argv[0]), 2;
  try {
    const mh::ModelFolder folder = mh::load_model_folder(argv[1]);
    const std::vector<std::vector<int32_t>> sources = {folder.source_tokens().encode_ids(argv[2])};
    const auto best = mh::translate(folder.translator(), sources, {.search = {.beam_size = 5}}).at(0).at(0);
    std::printf("%s\n", folder.target_tokens().decode(best.tokens).c_str());
    std::printf("log-probability %.3f, %zu tokens\n", best.log_probability, best.tokens.size());
  } catch (const mh::Error& error) {
    return std::fprintf(stderr, "%s\n", error.what()), 1;
  }
}
