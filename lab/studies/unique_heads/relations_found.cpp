#include "lab/studies/unique_heads/relations_found.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "lab/demo/grammar_heads.h"
#include "lab/studies/micro_language.h"
#include "multihead/base/error.h"

namespace mh::unique_heads {
namespace {

bool of_encoder(const RelationScore& score) {
  return attention_place(score.attention).kind == AttentionKind::kEncoderSelf;
}

const RelationScore* find(const Part& part, const RelationScore& as) {
  for (const RelationScore& score : part.report.relations) {
    if (score.attention == as.attention && score.head == as.head && score.relation == as.relation &&
        score.direction == as.direction)
      return &score;
  }
  return nullptr;
}

/// The same head's figures on test, beside the offset of validation.
RelationScore on_test(const RelationScore& chosen, const Part& test) {
  RelationScore score = chosen;
  const RelationScore* found = find(test, chosen);
  score.support = found ? found->support : 0;
  score.found = found ? found->found : 0;
  score.found_at_offset = found_at_offset(test.trees, chosen.relation, chosen.direction, chosen.offset);
  return score;
}

/// The names of the relations that have words enough in both.
std::set<std::string> frequent_relations(const Part& validation, const Part& test, Direction direction) {
  std::set<std::string> names;
  for (const RelationScore& score : validation.report.relations) {
    if (score.direction != direction || !of_encoder(score) || score.support < kFewestWords) continue;
    const RelationScore* other = find(test, score);
    if (other && other->support >= kFewestWords) names.insert(score.relation);
  }
  return names;
}

Part look(const ModelFolder& folder, std::span<const GrammarSentence> sentences, int neighbour,
          const std::string& relation) {
  HeadsText text = heads_text(sentences);
  // The encoder is asked alone: words of the decoder see only what stands before them.
  text.target_trees.clear();
  text.alignments.clear();
  if (neighbour != 0) text.source_trees = neighbour_trees(std::move(text.source_trees), neighbour, relation);
  Part part{inspect_heads(folder, text, {.similarities = false}), {}};
  part.trees = std::move(text.source_trees);
  return part;
}

RelationScore required(RelationScore score, const char* relation) {
  if (score.support > 0) return score;
  throw UsageError(fmt::format("003.4 needs {} words or more with the relation {}", kFewestWords, relation));
}

}  // namespace

Trees neighbour_trees(Trees trees, int offset, const std::string& relation) {
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
  const RelationScore* best = nullptr;
  for (const Direction direction : directions) {
    if (!frequent_relations(validation, test, direction).contains(std::string(relation))) continue;
    for (const RelationScore& score : validation.report.relations) {
      if (score.relation != relation || score.direction != direction || !of_encoder(score)) continue;
      if (!best || score.gain() > best->gain()) best = &score;
    }
  }
  return best ? on_test(*best, test) : RelationScore();
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
    for (const RelationScore& score : part.report.relations) {
      if (score.direction != kDirection[0] || !of_encoder(score) || !relations.contains(score.relation))
        continue;
      auto at = std::find_if(heads.begin(), heads.end(),
                             [&](const RelationScore& head) { return head.name() == score.name(); });
      if (at == heads.end())
        at = heads.insert(at, {.attention = score.attention, .head = score.head, .relation = "all"});
      at->found += score.found;
      at->support += score.support;
    }
  };
  add_up(validation);
  const auto best = std::max_element(heads.begin(), heads.end(),
                                     [](const auto& a, const auto& b) { return a.found < b.found; });
  if (best == heads.end()) return all;
  const auto chosen = static_cast<size_t>(best - heads.begin());
  add_up(test);
  all.single = heads[chosen];
  int64_t each = 0, offsets = 0, next = 0;
  for (const std::string& relation : relations) {
    const RelationScore head = choose_head(validation, test, relation, kDirection);
    each += head.found;
    offsets += head.found_at_offset;
    next += found_at_offset(test.trees, relation, kDirection[0], 1);
  }
  const auto words = static_cast<double>(all.single.support);
  all.each = static_cast<double>(each) / words;
  all.offsets = static_cast<double>(offsets) / words;
  all.right_branching = static_cast<double>(next) / words;
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
      known.insert(text_of(sentence.source));
      known.insert(text_of(sentence.target));
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
  const auto end = middle + static_cast<ptrdiff_t>(scored_on);
  return {{std::make_move_iterator(fresh.begin()), std::make_move_iterator(middle)},
          {std::make_move_iterator(middle), std::make_move_iterator(end)}};
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

std::vector<SeedFindings> find_heads(ArmRunner& runner, const Arm& arm, const FreshSentences& sentences) {
  constexpr Direction kToNeighbour[] = {Direction::kToHead};
  std::vector<SeedFindings> all;
  for (const ArmRun& run : runner.runs(arm, fresh_seeds(runner))) {
    const ModelFolder folder = folder_of(runner, arm, run.seed);
    SeedFindings of;
    of.seed = run.seed, of.loss = run.loss, of.exact = run.exact;
    const auto keep = [&](const Part& validation, const Part& test, const char* relation,
                          std::span<const Direction> directions) {
      of.heads[relation] = required(choose_head(validation, test, relation, directions), relation);
    };
    const Part validation = look(folder, sentences.validation, 0, ""),
               test = look(folder, sentences.test, 0, "");
    keep(validation, test, "det", kBothDirections);
    keep(validation, test, "obj", kFromHead);  // as the original says: from verbs to their objects
    keep(validation, test, "nsubj", kBothDirections);
    for (const Direction& direction : kBothDirections) {
      for (const std::string& relation : frequent_relations(validation, test, direction))
        of.relations.push_back(choose_head(validation, test, relation, {&direction, 1}));
    }
    std::stable_sort(of.relations.begin(), of.relations.end(),
                     [](const auto& a, const auto& b) { return a.relation < b.relation; });
    of.totals = totals(validation, test);
    for (const auto& [relation, offset] : {std::pair(kPreviousWord, -1), std::pair(kNextWord, 1)}) {
      keep(look(folder, sentences.validation, offset, relation),
           look(folder, sentences.test, offset, relation), relation, kToNeighbour);
    }
    const RelationScore& previous = of.heads[kPreviousWord];
    for (const HeadFigures& head : test.report.heads) {
      if (head.name() == previous.name()) of.previous_of_all = head.most_at_offset[HeadFigures::kReach - 1];
    }
    all.push_back(std::move(of));
  }
  return all;
}

}  // namespace mh::unique_heads
