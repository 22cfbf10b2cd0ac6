// The tables and the plot of 003.4.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "lab/studies/claim.h"
#include "lab/studies/unique_heads/relations_found.h"

namespace mh::unique_heads {

using Findings = std::vector<SeedFindings>;  // of the models of one arm

/// In per cent, or in points.
std::vector<double> by_seed(const Findings& findings,
                            const std::function<double(const SeedFindings&)>& share);
std::vector<double> accuracies(const Findings& findings, const char* relation);
std::vector<double> gains(const Findings& findings, const char* relation);
/// "81.2 ± 3.1", of by_seed().
std::string mean_text(const Findings& findings, const std::function<double(const SeedFindings&)>& share);
std::string percent(double share);  // "81.2"
/// Of SeedFindings::relations, those whose chosen heads, of all seeds together, are right at fewer words than the fixed
/// offset is.
int count_below_offset(const Findings& findings);

/// Points above the best fixed offset for each relation, and how often the previous word is read.
Plot points_plot(const Findings& small, const Findings& usual);
/// The chosen heads of each seed.
Table heads_table(const std::string& arm, const Findings& findings);
/// Every relation, beside the figures of papers.
Table relations_table(const std::string& arm, const Findings& findings);
/// All relations together; `sentences` are those of the findings.
Table totals_table(const Arm& small_embeddings, const Findings& small, const Arm& canonical,
                   const Findings& usual, const FreshSentences& sentences);
Table models_table(const Findings& small, const Findings& usual);
/// Sentences in which the chosen heads of one seed read what they are said to read.
Table sentences_table(ArmRunner& runner, const Arm& arm, const SeedFindings& of,
                      std::span<const GrammarSentence> sentences);

}  // namespace mh::unique_heads
