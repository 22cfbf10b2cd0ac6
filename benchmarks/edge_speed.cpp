// What the scores of all edges of a circuit cost (heads/circuit/edge_scores.h): edge_speed MODEL [PAIRS] [TOKENS] [STEPS] [ROUNDS].
// Pair p has the tokens 100 + (7 p + 13 i) % 40000, the corrupt text others at positions 3 and 11, so that peers/edge_scores.py reads the
// same. Prints JSON: the median seconds for all pairs, and the scores of the first edges of the last target, so that both can be compared.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <vector>

#include "multihead/folders/scored_model.h"
#include "multihead/heads/circuit/edge_scores.h"

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "usage: edge_speed MODEL [PAIRS] [TOKENS] [STEPS] [ROUNDS]\n");
    return 2;
  }
  try {
    const auto number = [&](int at, int otherwise) { return argc > at ? std::atoi(argv[at]) : otherwise; };
    const int count = number(2, 100), tokens = number(3, 16), steps = number(4, 5), rounds = number(5, 3);
    const mh::ScoredModel model = mh::load_scored_model(argv[1]);
    std::vector<mh::CircuitPair> pairs(static_cast<size_t>(count));
    for (int p = 0; p < count; ++p) {
      mh::PatchTexts& texts = pairs[static_cast<size_t>(p)].texts;
      for (int i = 0; i < tokens; ++i) {
        texts.clean.ids.push_back(100 + (7 * p + 13 * i) % 40000);
        texts.corrupt.ids.push_back(texts.clean.ids.back() + (i == 3 || i == 11 ? 1000 : 0));
      }
      texts.predicting = tokens - 1;
      texts.answer.token = 200 + p;
      texts.wrong.token = 400 + p;
    }
    const mh::CircuitTexts texts(model);
    const mh::StreamGraph graph(texts.model());
    const mh::HeadMatrices matrices(graph);
    std::vector<double> seconds;
    std::vector<double> first;
    for (int round = 0; round < rounds; ++round) {
      mh::EdgeScores scores(texts, graph, matrices, {.steps = steps});
      const auto begin = std::chrono::steady_clock::now();
      scores.add(pairs);
      seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
      first.clear();
      const auto last = static_cast<int>(graph.targets().size()) - 1;
      for (int source = 0; source < 4; ++source) first.push_back(scores.total({source, last}));
    }
    std::sort(seconds.begin(), seconds.end());
    fmt::print(
        "{{\"pairs\": {}, \"tokens\": {}, \"steps\": {}, \"edges\": {}, \"seconds\": {:.3f}, \"scores\": "
        "[{:.5f}]}}\n",
        count, tokens, steps, graph.edges().size(), seconds[seconds.size() / 2], fmt::join(first, ", "));
  } catch (const std::exception& error) {
    fmt::print(stderr, "edge_speed: {}\n", error.what());
    return 1;
  }
}
