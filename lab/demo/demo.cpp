#include "lab/demo/demo.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>

#include "lab/demo/grammar_heads.h"
#include "multihead/base/error.h"
#include "multihead/folders/model_folder.h"
#include "multihead/folders/shipped_folder.h"
#include "multihead/models/encoder_decoder.h"
#include "multihead/tasks/translate_text.h"

namespace mh {
namespace {

constexpr size_t kExamples = 2, kMistakes = 2;

std::vector<std::string> translations(const ModelFolder& folder, const std::vector<std::string>& lines) {
  return translate_text(folder, lines,
                        {.search = {.beam_size = 1,
                                    .max_length = folder.translator().config().max_positions,
                                    .max_length_factor = 3}});
}

/// One of two clauses, not long, translated rightly, whose words change places: there is something to see in
/// it.
size_t telling_sentence(const std::vector<GrammarSentence>& sentences,
                        const std::vector<std::string>& translated, const ParallelText& text) {
  size_t best = 0;
  int64_t most = -1;
  for (size_t i = 0; i < sentences.size(); ++i) {
    const Alignment& alignment = sentences[i].alignment;
    if (translated[i] != text.target[i] || sentences[i].source.size() > 11 || sentences[i].target.size() > 13)
      continue;
    int64_t crossings = 0;
    for (const auto& a : alignment) {
      for (const auto& b : alignment) crossings += a.first < b.first && a.second > b.second;
    }
    const bool has_object = std::any_of(sentences[i].source.begin(), sentences[i].source.end(),
                                        [](const Word& word) { return word.relation == "obj"; });
    if (has_object && crossings > most) most = crossings, best = i;
  }
  return best;
}

/// How the translator that comes with the library does, beside what this one says.
void compare_with_shipped(const ModelFolder& shipped, const ParallelText& text,
                          const std::vector<std::string>& translated, DemoResult& result) {
  const std::vector<std::string> of_shipped = translations(shipped, text.source);
  for (size_t i = 0; i < of_shipped.size(); ++i) {
    result.shipped.count(of_shipped[i] == text.target[i]);
    result.alike.count(of_shipped[i] == translated[i]);
  }
}

/// Hangs each word on the one before it: who follows these trees reads the previous word.
void chain(std::vector<std::vector<Word>>& trees) {
  for (std::vector<Word>& tree : trees) {
    for (size_t i = 0; i < tree.size(); ++i) {
      tree[i].head = static_cast<int>(i) - 1;
      tree[i].relation = tree[i].upos == "PUNCT" ? "punct" : kPreviousWord;
    }
  }
}

/// The score that beats its best fixed offset by most; support 0 when there is none with this relation and
/// direction. Each attention has its own offset, since the decoder reads another language.
RelationScore best_head_for(std::span<const RelationScore> scores, std::string_view relation,
                            Direction direction) {
  RelationScore best;
  for (const RelationScore& score : scores) {
    if (score.relation != relation || score.direction != direction) continue;
    if (best.attention.empty() || score.gain() > best.gain()) best = score;
  }
  return best;
}

/// The head of encoder or decoder that reads the previous word most often. It is counted like a relation,
/// ignoring a word's weight on itself and on special tokens; punctuation is left out.
RelationScore previous_word_head(const ModelFolder& folder, HeadsText text) {
  chain(text.source_trees);
  chain(text.target_trees);
  text.alignments.clear();
  const HeadReport report = inspect_heads(folder, text, {.similarities = false});
  RelationScore best;
  for (const RelationScore& score : report.relations) {
    const bool asked = score.relation == kPreviousWord && score.direction == Direction::kToHead;
    if (asked && score.score() > best.score()) best = score;
  }
  return best;
}

void inspect(const ModelFolder& folder, const std::vector<GrammarSentence>& sentences, DemoResult& result) {
  HeadsText text = heads_text(sentences);
  result.heads = inspect_heads(folder, text);
  const auto add = [&](const char* what, const char* relation, Direction direction) {
    result.relations.push_back({what, best_head_for(result.heads.relations, relation, direction)});
  };
  add("goes from a verb to its object", "obj", Direction::kToDependent);
  add("goes from an object to its verb", "obj", Direction::kToHead);
  add("goes from a verb to its subject", "nsubj", Direction::kToDependent);
  add("goes from an article to its noun", "det", Direction::kToHead);
  result.aligner = best_aligner(result.heads.aligners);
  result.previous_word = previous_word_head(folder, std::move(text));
}

}  // namespace

HeadsText heads_text(std::span<const GrammarSentence> sentences) {
  HeadsText text;
  for (const GrammarSentence& sentence : sentences) {
    text.sources.push_back(text_of(sentence.source));
    text.targets.push_back(text_of(sentence.target));
    text.source_trees.push_back(sentence.source);
    text.target_trees.push_back(sentence.target);
    text.alignments.push_back(sentence.alignment);
  }
  return text;
}

DemoSettings demo_settings(uint64_t seed) {
  DemoSettings demo;
  demo.grammar.seed = seed;
  demo.grammar.max_words = 16;
  demo.grammar.train = 60000;
  TranslatorSettings& s = demo.translator;
  s.seed = seed;
  s.word_level = true;  // a token is a word: what a head reads is read off directly
  s.encoder_layers = s.decoder_layers = 2;
  s.d_model = 96;
  s.d_ff = 256;
  s.heads = 4;  // few, so that each has its own work
  // Positions speak as loud as words at first: the first layer's heads learn to read by place.
  s.embedding_init = 0.3f;
  // A generated language has no noise to be careful of: neither dropout nor smoothing.
  s.dropout = 0.0f;
  s.label_smoothing = 0;
  s.learning_rate = 5e-3;
  s.warmup = 250;
  s.batch_tokens = 1500;
  s.schedule = Schedule::Decay::kLinear;
  s.updates = 1800;
  s.save_every = 300;
  return demo;
}

DemoResult run_demo(const DemoSettings& settings, const DemoWatcher& watcher) {
  const auto step = [&](const std::string& line) {
    if (watcher.step) watcher.step(line);
  };
  const std::filesystem::path corpus_folder = settings.folder / "corpus",
                              model_folder = settings.folder / "model";
  std::error_code error;
  std::filesystem::create_directories(settings.folder, error);
  if (error) throw FileError(fmt::format("cannot make {}: {}", settings.folder.string(), error.message()));

  const GrammarCorpus corpus = make_grammar_corpus(settings.grammar);
  write_grammar_corpus(corpus, corpus_folder);
  step(fmt::format("{}: {} sentence pairs to learn from, {} ordinary and {} compositional ones to test with",
                   corpus_folder.string(), corpus.train.size(), corpus.test.size(),
                   corpus.compositional.size()));

  TranslatorSettings translator = settings.translator;
  translator.train_source = (corpus_folder / "train.en").string();
  translator.train_target = (corpus_folder / "train.de").string();
  translator.model = model_folder.string();
  DemoResult result;
  try {
    result.training = train_translator(translator, watcher.training);
  } catch (const UsageError& problem) {
    throw UsageError(fmt::format("{}; remove {} or name another folder with `folder`", problem.what(),
                                 model_folder.string()));
  }

  step("translating the unseen sentences");
  const ModelFolder folder = load_model_folder(model_folder);
  const ParallelText test = parallel_text(corpus.test), compositional = parallel_text(corpus.compositional);
  const std::vector<std::string> of_test = translations(folder, test.source);
  for (size_t i = 0; i < of_test.size(); ++i) {
    const DemoExample example{test.source[i], of_test[i], test.target[i]};
    const bool right = of_test[i] == test.target[i];
    result.ordinary.count(right);
    if (right && result.examples.size() < kExamples) result.examples.push_back(example);
    if (!right && result.mistakes.size() < kMistakes) result.mistakes.push_back(example);
  }
  const std::vector<std::string> of_compositional = translations(folder, compositional.source);
  bool shown[2] = {};
  for (size_t i = 0; i < of_compositional.size(); ++i) {
    const bool by_depth = corpus.compositional[i].novelty == Novelty::kDepth;
    const bool right = of_compositional[i] == compositional.target[i];
    (by_depth ? result.depth : result.verb_object).count(right);
    if (right && !shown[by_depth]) {
      shown[by_depth] = true;
      result.examples.push_back({compositional.source[i], of_compositional[i], compositional.target[i]});
    }
  }

  const ModelFolder shipped = load_model_folder(open_shipped_folder());
  compare_with_shipped(shipped, test, of_test, result);
  compare_with_shipped(shipped, compositional, of_compositional, result);

  step("looking at the heads");
  inspect(folder, corpus.test, result);
  const size_t telling = telling_sentence(corpus.test, of_test, test);
  result.sentence = observe_text(folder, test.source[telling], test.target[telling]);
  return result;
}

}  // namespace mh
