// Translates a sentence with a model folder.
//   translate_sentence MODEL "two dogs run ."
#include <cstdio>
#include <string>

#include "multihead/multihead.h"

int main(int argc, char** argv) {
  if (argc != 3) return std::fprintf(stderr, "usage: %s MODEL SENTENCE\n", argv[0]), 2;
  try {
    const mh::ModelFolder folder = mh::load_model_folder(argv[1]);
    const std::string best = mh::translate_text(folder, {argv[2]}).at(0);
    const double log_probability = mh::score_text(folder, {argv[2]}, {best}).at(0);
    std::printf("%s\nlog-probability %.3f\n", best.c_str(), log_probability);
  } catch (const mh::Error& error) {
    return std::fprintf(stderr, "%s\n", error.what()), 1;
  }
}
