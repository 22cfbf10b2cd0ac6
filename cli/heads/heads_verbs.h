// The verbs of `multihead heads`, one file each.
#pragma once

#include <functional>

namespace CLI {
class App;
}

namespace mh::cli {

void add_heads_alignment(CLI::App& heads);
void add_heads_attribution(CLI::App& heads);
void add_heads_circuits(CLI::App& heads);
void add_heads_importance(CLI::App& heads);
void add_heads_patch(CLI::App& heads);
void add_heads_prune(CLI::App& heads);
void add_heads_relations(CLI::App& heads);
void add_heads_stats(CLI::App& heads);
void add_heads_similar(CLI::App& heads);
void add_heads_where(CLI::App& heads);

/// Runs this when the verb is chosen. Flags and arguments of `heads` itself, which CLI11 would hand on to its verbs, are refused.
void when_chosen(CLI::App& verb, std::function<void()> run);

}  // namespace mh::cli
