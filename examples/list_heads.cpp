// Says what a model folder holds: its kind, its size, and the names of its attentions.
//   list_heads MODEL
#include <cstdio>

#include "multihead/model.h"

int main(int argc, char** argv) {
  if (argc != 2) return std::fprintf(stderr, "usage: %s MODEL\n", argv[0]), 2;
  try {
    const mh::ModelFolder folder = mh::load_model_folder(argv[1]);
    std::printf("%s, %lld parameters\n", folder.model_type.c_str(),
                static_cast<long long>(folder.model->parameter_count()));
    for (const auto& [name, heads, place] : folder.model->attentions())
      std::printf("%s: %d heads\n", name.c_str(), heads);
  } catch (const mh::Error& error) {
    return std::fprintf(stderr, "%s\n", error.what()), 1;
  }
}
