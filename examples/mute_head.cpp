// Mutes a head (multiplies its output by 0) and shows what changes: the translation, and how probable the model finds
// the translation that it made before.
//   mute_head MODEL "two dogs run ." encoder.1.self_attention.2
#include <cstdio>
#include <string>

#include "multihead/multihead.h"

int main(int argc, char** argv) {
  if (argc != 4) return std::fprintf(stderr, "usage: %s MODEL SENTENCE HEAD\n", argv[0]), 2;
  try {
    const mh::ModelFolder folder = mh::load_model_folder(argv[1]);
    mh::SiteValues muted;
    muted.mute(argv[3]);
    const std::string before = mh::translate_text(folder, {argv[2]}).at(0);
    const std::string after = mh::translate_text(folder, {argv[2]}, {.sites = &muted}).at(0);
    std::printf("before  %8.3f  %s\n", mh::score_text(folder, {argv[2]}, {before}).at(0), before.c_str());
    std::printf("muted   %8.3f  (the same sentence)\n",
                mh::score_text(folder, {argv[2]}, {before}, {.sites = &muted}).at(0));
    std::printf("muted, it says     %s\n", after.c_str());
  } catch (const mh::Error& error) {
    return std::fprintf(stderr, "%s\n", error.what()), 1;
  }
}
