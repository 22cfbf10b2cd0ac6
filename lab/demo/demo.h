// The demonstration: a corpus from the grammar, a small translator trained on it, unseen sentences
// translated, and what its heads do. `multihead demo` prints it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "lab/grammar/grammar.h"
#include "multihead/recipes/inspect_heads.h"
#include "multihead/recipes/train_translator.h"

namespace mh {

struct DemoSettings {
  std::filesystem::path folder = "demo";  // gets corpus/ and model/
  GrammarOptions grammar;
  TranslatorSettings translator;  // of model and training; paths are filled in
};

/// The demonstration's own settings, a function of the seed: about a minute of training on two cores.
DemoSettings demo_settings(uint64_t seed = 1);

/// Sentences that came out as the grammar has them, to the letter.
struct ExactMatch {
  int64_t right = 0, all = 0;
  double share() const { return all > 0 ? static_cast<double>(right) / static_cast<double>(all) : 0; }
};

struct DemoExample {
  std::string source, translation, expected;
};

/// The head of encoder or decoder that beats the best fixed offset most.
struct DemoRelation {
  std::string what;  // "goes from a verb to its object"
  RelationScore score;
};

struct DemoResult {
  TrainingResult training;
  ExactMatch ordinary;                  // the test part
  ExactMatch verb_object, depth;        // the compositional part by its two kinds
  std::vector<DemoExample> examples;    // of the test part, then of the compositional one
  std::vector<DemoExample> mistakes;    // the first of the test part
  HeadReport heads;                     // on the test part, with its trees and alignments
  RelationScore previous_word;          // the self-attention head that reads the word before most often
  std::vector<DemoRelation> relations;  // verb to object, object to verb, verb to subject, article to noun
  AlignmentScore aligner;               // the best head of cross-attention
  SentenceWeights sentence;             // of the test part: one whose word order changes

  ExactMatch compositional() const { return {verb_object.right + depth.right, verb_object.all + depth.all}; }
};

struct DemoWatcher {
  std::function<void(const std::string&)> step;  // what begins now, a line
  TrainingWatcher training;
};

/// A model that is finished in the folder is used again, an unfinished one goes on. Throws UsageError when
/// the folder's model was made with other settings, Interrupted as train_translator does, FileError.
DemoResult run_demo(const DemoSettings& settings, const DemoWatcher& watcher = {});

}  // namespace mh
