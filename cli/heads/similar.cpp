// multihead heads similar: which heads of a model read alike on a corpus.
#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <optional>
#include <string>

#include "cli/common.h"
#include "cli/corpus_flags.h"
#include "cli/file_endings.h"
#include "cli/heads/heads_verbs.h"
#include "cli/heads/report_flags.h"
#include "cli/load_model.h"
#include "cli/verb.h"
#include "multihead/base/terminal_text.h"
#include "multihead/heads/measures/heads_similar.h"
#include "multihead/heads/reports/pictures/draw_similar.h"
#include "multihead/heads/reports/similar_json.h"
#include "multihead/nn/attention_place.h"

namespace mh::cli {
namespace {

struct SimilarFlags {
  ReportFlags<SimilarOptions> report = {};
  CorpusFlags corpus = {};
  std::string svg = {};
};

/// "3.11": short enough for 80 columns.
std::string layer_and_head(const ComparedHead& head) {
  return fmt::format("{}.{}", head.layer, head.head);
}

std::string ratio_of(double divergence, double null) {
  return null > 0 ? fmt::format("{:.2f}", divergence / null) : "-";
}

std::string heads_part(const SimilarKind& kind) {
  const ComparedHeads& of = kind.compared;
  std::string text, attention;
  for (size_t h = 0; h < of.heads.size(); ++h) {
    if (of.heads[h].attention != attention) {
      attention = of.heads[h].attention;
      text += fmt::format("\n{}\nhead  nats   nearest    JSD   null  ratio   then\n", attention);
    }
    text += fmt::format("{:>4}{:>6.2f}", of.heads[h].head, of.heads[h].entropy);
    for (size_t n = 0; n < kind.nearest[h].size(); ++n) {
      const auto other = static_cast<size_t>(kind.nearest[h][n]);
      const std::string name = layer_and_head(of.heads[other]);
      const double divergence = of.divergence_of(h, other), null = of.null_of(h, other);
      text += n == 0 ? fmt::format("{:>10}{:>7.3f}{:>7.3f}{:>7}", name, divergence, null,
                                   ratio_of(divergence, null))
                     : fmt::format("{:>7}{:>7.3f}", name, divergence);
    }
    text += "\n";
  }
  return text;
}

std::string with_interval(const Interval& of, int decimals = 3) {
  return std::isfinite(of.half) ? fmt::format("{:.{}f} ± {:.{}f}", of.mean, decimals, of.half, decimals)
                                : fmt::format("{:.{}f} ± {:^{}}", of.mean, decimals, "-", decimals + 2);
}

std::string mean_line(const std::string& what, const std::optional<PairsMean>& of) {
  if (!of) return "";
  return fmt::format("{:<22}{:>6}  {}  {}  {}\n", what, of->pairs, with_interval(of->divergence),
                     with_interval(of->null_divergence), of->ratio ? with_interval(*of->ratio) : "-");
}

std::string means_part(const ComparedHeads& of) {
  if (!of.within_layers && !of.between_layers) return "";
  std::string text = "\nmean over pairs        pairs  JSD            null           ratio\n";
  text += mean_line("in one layer", of.within_layers) + mean_line("in two layers", of.between_layers);
  if (of.shared_keys) {
    text += mean_line("sharing their keys", of.shared_keys->sharing) +
            mean_line("in one layer, others", of.shared_keys->others);
    text += fmt::format("{:<29}{} {}\n", "  others - sharing", with_interval(of.shared_keys->difference, 4),
                        with_interval(of.shared_keys->null_difference, 4));
  }
  for (const ComparedLayer& layer : of.layers) {
    const std::string name = fmt::format("layer {}", layer.layer);
    text += mean_line(name, layer.within);
    text += mean_line(layer.within ? "  to other layers" : name + " to others", layer.to_others);
    if (!layer.shared_keys) continue;
    text += mean_line("  sharing their keys", layer.shared_keys->sharing) +
            mean_line("  others", layer.shared_keys->others);
  }
  return text;
}

std::string clusters_part(const SimilarKind& kind, double ratio) {
  if (kind.tree.merges.empty()) return "";
  std::string text;
  for (const int cluster : kind.clusters) {
    const auto k = static_cast<size_t>(cluster - kind.tree.points);
    const Merge& merge = kind.tree.merges[k];
    std::string names;
    for (const int h : kind.tree.points_of(cluster))
      names += " " + layer_and_head(kind.compared.heads[static_cast<size_t>(h)]);
    text += wrapped(fmt::format("{} heads, JSD {:.3f}, null {:.3f}:{}", merge.size, merge.height,
                                kind.null_heights[k], names),
                    "", 80, "    ");
  }
  if (text.empty()) text = "none\n";
  return "\n" +
         wrapped(
             fmt::format("Clusters in which every merge joined heads whose mean JSD is at most {:g} of the "
                         "null, and both for the last merge:",
                         ratio)) +
         text;
}

std::string similar_table(const SimilarReport& similar) {
  std::string text = what_was_read(similar.read);
  for (const SimilarKind& kind : similar.kinds) {
    const auto heads = std::ssize(kind.compared.heads);
    text += fmt::format("\n{}: {}, {}{}\n", name_of(kind.compared.kind), counted(heads, "head"),
                        counted(kind.compared.queries, "query", "queries"),
                        heads > 1 ? "" : "; there is none to compare it with");
    text += heads_part(kind) + means_part(kind.compared) + clusters_part(kind, similar.cluster_ratio);
  }
  return text + "\n" +
         wrapped(
             "nats: mean entropy of a query's weights; nearest: the head LAYER.HEAD with the smallest JSD, "
             "the Jensen-Shannon divergence of two heads' weights in nats, 0 to 0.69; null: when the "
             "weights of both are permuted at random; ratio: JSD over null, below 1 where heads are more "
             "alike than equally sharp ones by chance; then: the next nearest; ±: 95 % interval over "
             "sentences. docs/heads/similar.md says more.");
}

}  // namespace

void add_heads_similar(Verb& heads) {
  auto flags = std::make_shared<SimilarFlags>();
  Verb* verb = heads.add_subcommand(
      "similar", "Which heads read alike: divergence of all pairs against chance, clusters, a picture");
  flags->report.add(*verb);
  add_corpus_flags(*verb, flags->corpus, {.pairs = true});
  expect_ending(add_output_flag(*verb, "--svg", flags->svg,
                                "Draw all heads in the order of their dendrogram as an SVG picture"),
                ".svg", "an SVG picture");
  name_values(*verb, "FILE", {"--svg"});
  verb->footer(
      "Example:\n"
      "  multihead heads similar minilm -i corpus.txt --svg similar.svg\n"
      "  multihead heads similar smollm2.gguf -i corpus.txt --json");
  verb->callback([flags] {
    SimilarOptions options = flags->report.settings.given();
    CorpusRun run(load_model(flags->report.model_to_run()), flags->corpus);
    run.attach(options.observe);
    const SimilarReport similar = heads_similar(run.folder(), run.corpus(), options);
    if (!flags->svg.empty()) write_text(flags->svg, draw_similar(similar));
    flags->report.write(similar, options, similar_json, similar_table);
  });
}

}  // namespace mh::cli
