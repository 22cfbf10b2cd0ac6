// Draws what one head of a translator looks at: rows read columns, darker is more.
//   see_head MODEL "two dogs run ." encoder.1.self_attention.2
#include <cstdio>
#include <string>

#include "multihead/multihead.h"

int main(int argc, char** argv) {
  if (argc != 4) return std::fprintf(stderr, "usage: %s MODEL SENTENCE HEAD\n", argv[0]), 2;
  try {
    const mh::ModelFolder folder = mh::load_model_folder(argv[1]);
    const mh::Observation seen = mh::observe_text(folder, argv[2]);
    const mh::HeadName head = mh::parse_head_name(argv[3]);
    const mh::AttentionKind kind = seen.place(head.attention).kind;
    std::printf("%s -> %s\n\n%s", argv[2], seen.translation.c_str(),
                mh::heat_map(seen.weights(head), seen.query_labels(kind), seen.key_labels(kind)).c_str());
  } catch (const mh::Error& error) {
    return std::fprintf(stderr, "%s\n", error.what()), 1;
  }
}
