// Says which of several sentences is most like the first one, by the cosine of their vectors.
//   nearest_sentence MODEL "two dogs run ." "a cat sleeps ." "a pair of dogs is running ."
#include <cstdio>
#include <string>
#include <vector>

#include "multihead/multihead.h"

int main(int argc, char** argv) {
  if (argc < 4) return std::fprintf(stderr, "usage: %s MODEL SENTENCE OTHER...\n", argv[0]), 2;
  try {
    const mh::SentenceModel model = mh::load_sentence_model(argv[1]);
    const std::vector<std::string> others(argv + 3, argv + argc);
    const mh::Tensor query = mh::embed_text(model, {argv[2]}), rows = mh::embed_text(model, others);
    const mh::Neighbour found = mh::nearest_rows(query.view(), rows.view(), 1).at(0).at(0);
    std::printf("%.4f %s\n", static_cast<double>(found.similarity),
                others[static_cast<size_t>(found.row)].c_str());
  } catch (const mh::Error& error) {
    return std::fprintf(stderr, "%s\n", error.what()), 1;
  }
}
