// Continues a text with a causal model such as GPT-2; pieces of the text are printed as they come.
//   continue_text MODEL "The sky is"
#include <cstdio>
#include <string_view>

#include "multihead/multihead.h"

int main(int argc, char** argv) {
  if (argc != 3) return std::fprintf(stderr, "usage: %s MODEL PROMPT\n", argv[0]), 2;
  try {
    const mh::ModelFolder folder = mh::load_model_folder(argv[1]);
    mh::GenerateTextOptions options;
    options.generate.filters = {.temperature = 0.8, .top_p = 0.95};
    options.generate.max_new_tokens = 40;
    options.on_text = [](size_t, std::string_view piece) {
      std::printf("%.*s", static_cast<int>(piece.size()), piece.data());
      std::fflush(stdout);
    };
    const mh::GeneratedText found = mh::generate_text(folder, {argv[2]}, options).at(0);
    std::printf("\nlog-probability %.3f\n", found.generated.log_probability);
  } catch (const mh::Error& error) {
    return std::fprintf(stderr, "%s\n", error.what()), 1;
  }
}
