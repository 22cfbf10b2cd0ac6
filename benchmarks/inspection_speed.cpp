// What looking inside costs, in forward passes of the same text: inspection_speed MODEL TOKENS [ROUNDS]. Rounds take turns:
//
//   pass            a pass over the text with the logits of every position
//   contributions   of all heads and layers to the logits of all positions (every_position, no sources)
//   answer          of all heads and layers to one logit, of the last position
//   lens            what the model would say at the last position after each layer
//
// Prints JSON: the median seconds of a pass, and of each of the others the median of its ratio to the pass of its round.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "multihead/heads.h"

namespace {

double seconds_of(const std::function<void()>& run) {
  const auto begin = std::chrono::steady_clock::now();
  run();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

double median(std::vector<double> numbers) {
  std::sort(numbers.begin(), numbers.end());
  return numbers[numbers.size() / 2];
}

/// A text of so many tokens, by repeating words.
std::string text_of(const mh::ModelFolder& folder, size_t tokens) {
  std::string text;
  for (size_t word = 0; folder.source_tokens().encode_ids(text).size() < tokens; ++word)
    text += fmt::format(" {} {}", word % 3 == 0 ? "the" : "dog", word);
  return text;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    fmt::print(stderr, "usage: inspection_speed MODEL TOKENS [ROUNDS]\n");
    return 2;
  }
  try {
    const mh::ModelFolder folder = mh::load_model_folder(argv[1]);
    const std::string text = text_of(folder, std::strtoul(argv[2], nullptr, 10));
    const int rounds = argc > 3 ? std::atoi(argv[3]) : 9;
    const mh::Observation seen = mh::observe_text(folder, text, {}, {.tokens_alone = true});
    const auto tokens = std::ssize(seen.target.ids);
    const std::vector<std::pair<const char*, std::function<void()>>> runs = {
        {"pass", [&] { mh::TextPass(*folder.model, seen).logits(); }},
        {"contributions",
         [&] { mh::heads_contributions(folder, {.text = text}, {.every_position = true, .sources = 0}); }},
        {"answer", [&] { mh::heads_contributions(folder, {.text = text}, {.sources = 0}); }},
        {"lens", [&] { mh::heads_lens(folder, text, {.position = -1}); }}};
    std::vector<double> passes;
    std::vector<std::vector<double>> ratios(runs.size());
    for (int round = -1; round < rounds; ++round) {  // the first is not counted
      double pass = 0;
      for (size_t i = 0; i < runs.size(); ++i) {
        const double took = seconds_of(runs[i].second);
        if (i == 0) pass = took;
        if (round >= 0) ratios[i].push_back(took / pass);
      }
      if (round >= 0) passes.push_back(pass);
    }
    fmt::print("{{\"tokens\": {}, \"pass\": {:.4f}", tokens, median(passes));
    for (size_t i = 1; i < runs.size(); ++i) fmt::print(", \"{}\": {:.2f}", runs[i].first, median(ratios[i]));
    fmt::print("}}\n");
  } catch (const std::exception& error) {
    fmt::print(stderr, "inspection_speed: {}\n", error.what());
    return 1;
  }
}
