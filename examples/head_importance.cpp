// The importance of every head for a text: |d log p(text) / d gate|, where the gate is the number that the head's output is
// multiplied by (Michel et al. 2019; over many texts, its mean). One forward and one backward pass of any model that
// predicts words; a translator is asked about its translation.
//   head_importance MODEL "two dogs run ."
#include <cmath>
#include <cstdio>
#include <string>

#include "multihead/multihead.h"

int main(int argc, char** argv) {
  if (argc != 3) return std::fprintf(stderr, "usage: %s MODEL TEXT\n", argv[0]), 2;
  try {
    const mh::ModelFolder folder = mh::load_model_folder(argv[1]);
    const mh::Observation seen = mh::observe_text(folder, argv[2], {}, {.tokens_alone = true});
    mh::SiteValues values;
    values.watch("*.gates");
    mh::TextPass pass(*folder.model, seen, {.sites = &values, .mode = mh::Tape::Mode::kRecordValues});
    pass.tape().backward(pass.log_probability());
    for (const auto& [attention, heads, place] : folder.model->attentions()) {
      std::printf("%-26s", attention.c_str());
      const mh::ConstMatrixView gradient = values.gradient(attention + ".gates");  // [1, heads]
      for (int h = 0; h < heads; ++h) std::printf(" %7.4f", static_cast<double>(std::abs(gradient(0, h))));
      std::printf("\n");
    }
  } catch (const mh::Error& error) {
    return std::fprintf(stderr, "%s\n", error.what()), 1;
  }
}
