// The verbs, one file each: a verb adds itself to the command line and does its work in its callback.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace mh::cli {

void add_bleu(CLI::App& app);
void add_completion(CLI::App& app);
void add_convert(CLI::App& app);
void add_embed(CLI::App& app);
void add_fill(CLI::App& app);
void add_generate(CLI::App& app);
void add_heads(CLI::App& app);
void add_help(CLI::App& app);
void add_info(CLI::App& app);
void add_ledger(CLI::App& app);
void add_pages(CLI::App& app);
void add_score(CLI::App& app);
void add_tokenize(CLI::App& app);
void add_trace(CLI::App& app);
void add_train(CLI::App& app);
void add_translate(CLI::App& app);
void add_version(CLI::App& app);
void add_view(CLI::App& app);

// Those of the laboratory; a tool without it has none (-DMULTIHEAD_LAB=OFF).
#if MULTIHEAD_LAB
void add_data(CLI::App& app);
void add_demo(CLI::App& app);
void add_study(CLI::App& app);
/// The names of all studies.
std::vector<std::string> study_names();
#else
inline constexpr void (*add_data)(CLI::App&) = nullptr;
inline constexpr void (*add_demo)(CLI::App&) = nullptr;
inline constexpr void (*add_study)(CLI::App&) = nullptr;
inline std::vector<std::string> study_names() {
  return {};
}
#endif

}  // namespace mh::cli
