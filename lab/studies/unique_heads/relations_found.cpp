#include "lab/studies/unique_heads/relations_found.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "lab/demo/grammar_heads.h"
#include "lab/studies/micro_language.h"
#include "multihead/base/error.h"

namespace mh::unique_heads {
namespace {

/// The encoder's in this direction.
std::vector<RelationScore> scores_of(const Part& part, Direction direction) {
  std::vector<RelationScore> scores;
  std::ranges::copy_if(part.report.relations, std::back_inserter(scores), [&](const RelationScore& score) {
    return score.direction == direction && score.place.kind == AttentionKind::kEncoderSelf;
  });
  return scores;
}

const RelationScore* find(const Part& part, const RelationScore& as) {
  const auto& all = part.report.relations;
  const auto found = std::ranges::find_if(all, [&](const RelationScore& score) {
    return score.attention == as.attention && score.head == as.head && score.relation == as.relation &&
           score.direction == as.direction;
  });
  return found == all.end() ? nullptr : &*found;
}

/// The names of the relations that have words enough in both.
std::set<std::string> frequent_relations(const Part& validation, const Part& test, Direction direction) {
  std::set<std::string> names;
  for (const RelationScore& score : scores_of(validation, direction)) {
    const RelationScore* other = find(test, score);
    if (other && std::min(score.support, other->support) >= kFewestWords) names.insert(score.relation);
  }
  return names;
}

/// Their own trees, or those of kPreviousWord or kNextWord.
Part look(const ModelFolder& folder, std::span<const GrammarSentence> sentences,
          const std::string& relation = "") {
  HeadsText text = heads_text(sentences);
  // The encoder is asked alone: words of the decoder see only what stands before them.
  text.target_trees.clear();
  text.alignments.clear();
  text.source_trees = neighbour_trees(std::move(text.source_trees), relation);
  HeadReport report = inspect_heads(folder, text, {.similarities = false});
  return {std::move(report), std::move(text.source_trees)};
}

}  // namespace

int neighbour_of(std::string_view relation) {
  return relation == kPreviousWord ? -1 : relation == kNextWord ? 1 : 0;
}

Trees neighbour_trees(Trees trees, const std::string& relation) {
  const int offset = neighbour_of(relation);
  if (offset == 0) return trees;
  for (std::vector<Word>& tree : trees) {
    const int size = static_cast<int>(tree.size());
    for (int i = 0; i < size; ++i) {
      Word& word = tree[static_cast<size_t>(i)];
      const int to = i + offset;
      word.head = to >= 0 && to < size ? to : -1;
      word.relation = word.upos == "PUNCT" ? "punct" : relation;
    }
  }
  return trees;
}

int64_t found_at_offset(const Trees& trees, std::string_view relation, Direction direction, int offset) {
  int64_t found = 0;
  for (const std::vector<Word>& tree : trees) {
    for (size_t i = 0; i < tree.size(); ++i) {
      if (tree[i].head < 0 || tree[i].relation != relation) continue;
      const int to_head = tree[i].head - static_cast<int>(i);
      found += (direction == Direction::kToDependent ? -to_head : to_head) == offset;
    }
  }
  return found;
}

RelationScore choose_head(const Part& validation, const Part& test, std::string_view relation,
                          std::span<const Direction> directions) {
  std::optional<RelationScore> best;
  for (const Direction direction : directions) {
    if (!frequent_relations(validation, test, direction).contains(std::string(relation))) continue;
    for (const RelationScore& score : scores_of(validation, direction)) {
      if (score.relation == relation && (!best || score.gain() > best->gain())) best = score;
    }
  }
  if (!best) return {};
  // The same head's figures on test, beside the offset of validation.
  const RelationScore* found = find(test, *best);
  best->support = found ? found->support : 0;
  best->found = found ? found->found : 0;
  best->found_at_offset = found_at_offset(test.trees, relation, best->direction, best->offset);
  return *best;
}

Totals totals(const Part& validation, const Part& test) {
  constexpr Direction kDirection[] = {Direction::kToHead};
  const std::set<std::string> relations = frequent_relations(validation, test, kDirection[0]);
  Totals all;
  all.single.relation = "all";
  // By the order of the report, so that the first of equal heads is chosen.
  std::vector<RelationScore> heads;
  const auto add_up = [&](const Part& part) {
    for (RelationScore& head : heads) head.found = head.support = 0;
    for (const RelationScore& score : scores_of(part, kDirection[0])) {
      if (!relations.contains(score.relation)) continue;
      auto at = std::ranges::find(heads, score.name(), &RelationScore::name);
      if (at == heads.end())
        at = heads.insert(at, {.attention = score.attention, .head = score.head, .relation = "all"});
      at->found += score.found;
      at->support += score.support;
    }
  };
  add_up(validation);
  if (heads.empty()) return all;
  const auto chosen = std::ranges::max_element(heads, {}, &RelationScore::found) - heads.begin();
  add_up(test);
  all.single = heads[static_cast<size_t>(chosen)];
  for (const std::string& relation : relations) {
    const RelationScore head = choose_head(validation, test, relation, kDirection);
    all.each += static_cast<double>(head.found);
    all.offsets += static_cast<double>(head.found_at_offset);
    all.right_branching += static_cast<double>(found_at_offset(test.trees, relation, kDirection[0], 1));
  }
  for (double* words : {&all.each, &all.offsets, &all.right_branching})
    *words /= static_cast<double>(all.single.support);
  return all;
}

std::vector<GrammarSentence> new_sentences(std::vector<GrammarSentence> drawn,
                                           const std::set<std::string>& known,
                                           const TranslatorTokenizers& tokenizers) {
  const auto strange = [](const Tokenizer& tokenizer, const std::string& text) {
    const std::vector<int32_t> ids = tokenizer.encode_ids(text);
    const auto unknown = tokenizer.unknown_id();
    return unknown && std::find(ids.begin(), ids.end(), *unknown) != ids.end();
  };
  std::erase_if(drawn, [&](const GrammarSentence& sentence) {
    const std::string source = text_of(sentence.source), target = text_of(sentence.target);
    return known.contains(source) || known.contains(target) || strange(tokenizers.source, source) ||
           strange(tokenizers.target(), target);
  });
  return drawn;
}

FreshSentences fresh_sentences(const ArmRunner& runner) {
  const bool quick = runner.size() == StudySize::kQuick;
  const size_t chosen_on = quick ? 100 : 400, scored_on = quick ? 200 : 800;
  const auto drawn = static_cast<int64_t>(3 * (chosen_on + scored_on));  // known ones are dropped
  GrammarOptions options = runner.settings().grammar;
  const GrammarCorpus old = built_in_corpus(runner.size(), options);  // the runner's
  std::set<std::string> known;
  for (const auto* part : {&old.train, &old.valid, &old.test, &runner.test_sentences()}) {
    for (const GrammarSentence& sentence : *part) {
      known.insert({text_of(sentence.source), text_of(sentence.target)});
    }
  }
  options.seed += 1;
  options.train = options.valid = options.compositional = 0;
  options.test = drawn;
  GrammarCorpus corpus = quick ? make_micro_corpus(2, 0, 0, drawn) : make_grammar_corpus(options);
  std::vector<GrammarSentence> fresh = new_sentences(std::move(corpus.test), known, runner.tokenizers());
  if (fresh.size() < chosen_on + scored_on)
    throw UsageError(
        fmt::format("003.4 found only {} new sentences of {}", fresh.size(), chosen_on + scored_on));
  const auto middle = fresh.begin() + static_cast<ptrdiff_t>(chosen_on);
  return {{fresh.begin(), middle}, {middle, middle + static_cast<ptrdiff_t>(scored_on)}};
}

std::vector<uint64_t> fresh_seeds(const ArmRunner& runner) {
  std::vector<uint64_t> seeds = {6, 7, 8, 9, 10};
  seeds.resize(std::min(seeds.size(), runner.seeds().size()));
  return seeds;
}

ModelFolder folder_of(ArmRunner& runner, const Arm& arm, uint64_t seed) {
  ModelFolder folder;
  folder.path = "a model trained for this study";
  folder.model = runner.trained(arm, seed);
  folder.tokenizer = runner.tokenizers().source;
  return folder;
}

Findings find_heads(ArmRunner& runner, const Arm& arm, const FreshSentences& sentences) {
  constexpr Direction kToNeighbour[] = {Direction::kToHead};
  Findings all;
  for (const ArmRun& run : runner.runs(arm, fresh_seeds(runner))) {
    const ModelFolder folder = folder_of(runner, arm, run.seed);
    SeedFindings of;
    of.seed = run.seed, of.loss = run.loss, of.exact = run.exact;
    const auto keep = [&](const Part& validation, const Part& test, const char* relation,
                          std::span<const Direction> directions) {
      const RelationScore& head = of.heads[relation] = choose_head(validation, test, relation, directions);
      if (head.support > 0) return;
      throw UsageError(
          fmt::format("003.4 needs {} words or more with the relation {}", kFewestWords, relation));
    };
    const Part validation = look(folder, sentences.validation), test = look(folder, sentences.test);
    keep(validation, test, "det", kBothDirections);
    keep(validation, test, "obj", kFromHead);  // as the original says: from verbs to their objects
    keep(validation, test, "nsubj", kBothDirections);
    for (const Direction& direction : kBothDirections) {
      for (const std::string& relation : frequent_relations(validation, test, direction))
        of.relations.push_back(choose_head(validation, test, relation, {&direction, 1}));
    }
    std::ranges::stable_sort(of.relations, {}, &RelationScore::relation);
    of.totals = totals(validation, test);
    for (const char* relation : {kPreviousWord, kNextWord}) {
      keep(look(folder, sentences.validation, relation), look(folder, sentences.test, relation), relation,
           kToNeighbour);
    }
    const RelationScore& previous = of.heads[kPreviousWord];
    for (const HeadFigures& head : test.report.heads) {
      if (head.name() == previous.name()) of.previous_of_all = head.most_at_offset[HeadFigures::kReach - 1];
    }
    all.push_back(std::move(of));
  }
  return all;
}

int count_below_offset(const Findings& findings) {
  int below = 0;
  for (size_t i = 0; i < findings[0].relations.size(); ++i) {
    int64_t gained = 0;
    for (const SeedFindings& of : findings) gained += of.relations[i].found - of.relations[i].found_at_offset;
    below += gained < 0;
  }
  return below;
}

}  // namespace mh::unique_heads
