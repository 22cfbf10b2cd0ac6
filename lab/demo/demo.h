// The demonstration: makes a corpus with the built-in grammar, trains a small translator on it, translates
// unseen sentences, and shows what its heads do. `multihead demo` prints the result.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "lab/grammar/grammar.h"
#include "multihead/heads/measures/inspect_heads.h"
#include "multihead/train/translator/train_translator.h"

namespace mh {

struct DemoSettings {
  std::filesystem::path folder = "demo";  // gets corpus/ and model/
  GrammarOptions grammar;
  TranslatorSettings translator;  // of model and training; paths are filled in
};

/// Returns the settings of the demonstration for a seed; training takes about a minute on two cores.
DemoSettings demo_settings(uint64_t seed = 1);

/// How many translations equal those of the grammar exactly.
struct ExactMatch {
  int64_t right = 0, all = 0;
  void count(bool is_right) { ++all, right += is_right; }
  double share() const { return all > 0 ? static_cast<double>(right) / static_cast<double>(all) : 0; }
};

struct DemoExample {
  std::string source, translation, expected;
};

/// The head of encoder or decoder that beats the best fixed offset by most, for one relation.
struct DemoRelation {
  std::string what;  // "goes from a verb to its object"
  RelationScore score;
};

struct DemoResult {
  TrainingResult training;
  ExactMatch ordinary;                // the test part
  ExactMatch verb_object, depth;      // the compositional part by its two kinds
  ExactMatch shipped;                 // the same of the translator that comes with the library, of both parts
  ExactMatch alike;                   // translations that it gives as this one does, of both parts
  std::vector<DemoExample> examples;  // of the test part, then of the compositional one
  std::vector<DemoExample> mistakes;  // the first wrong translations of the test part
  HeadReport heads;                   // on the test part, with its trees and alignments
  RelationScore previous_word;        // the self-attention head that reads the word before most often
  std::vector<DemoRelation> relations;  // verb to object, object to verb, verb to subject, article to noun
  AlignmentScore aligner;               // the best head of cross-attention
  Observation sentence;                 // of the test part: one whose word order changes

  ExactMatch compositional() const { return {verb_object.right + depth.right, verb_object.all + depth.all}; }
};

struct DemoWatcher {
  std::function<void(const std::string&)> step;  // a line that says which step begins
  TrainingWatcher training;
};

/// Runs the demonstration. A finished model in the folder is used again; unfinished training is resumed.
/// Throws UsageError when that model was made with other settings, Interrupted as train_translator() does,
/// and FileError.
DemoResult run_demo(const DemoSettings& settings, const DemoWatcher& watcher = {});

}  // namespace mh
