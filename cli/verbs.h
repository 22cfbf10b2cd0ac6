// The verbs, one file each: a verb adds itself to the command line and does its work in its callback.
#pragma once

#include <string>
#include <vector>

namespace mh::cli {

class Verb;

/// Adds the verbs and the flags that all of them take.
void add_all(Verb& tool);

void add_bleu(Verb& app);
void add_check(Verb& app);
void add_classify(Verb& app);
void add_completion(Verb& app);
void add_convert(Verb& app);
void add_embed(Verb& app);
void add_fill(Verb& app);
void add_generate(Verb& app);
void add_heads(Verb& app);
void add_help(Verb& app);
void add_info(Verb& app);
void add_ledger(Verb& app);
void add_pages(Verb& app);
void add_score(Verb& app);
void add_tokenize(Verb& app);
void add_trace(Verb& app);
void add_train(Verb& app);
void add_translate(Verb& app);
void add_version(Verb& app);
void add_view(Verb& app);

// Those of the laboratory; a tool without it has none (-DMULTIHEAD_LAB=OFF).
#if MULTIHEAD_LAB
void add_data(Verb& app);
void add_demo(Verb& app);
void add_study(Verb& app);
/// The names of all studies.
std::vector<std::string> study_names();
#else
inline constexpr void (*add_data)(Verb&) = nullptr;
inline constexpr void (*add_demo)(Verb&) = nullptr;
inline constexpr void (*add_study)(Verb&) = nullptr;
inline std::vector<std::string> study_names() {
  return {};
}
#endif

}  // namespace mh::cli
