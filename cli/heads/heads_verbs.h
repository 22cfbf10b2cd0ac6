// The verbs of `multihead heads`, one file each.
#pragma once

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

/// Refuses flags and arguments of `heads` itself, which CLI11 would hand on to its verbs.
void refuse_flags_of_heads(const CLI::App& verb);

}  // namespace mh::cli
