// Steering: directions, what they do when they are added to a model's values, and what they break. docs/heads/steer.md
//
//   direction  = mean of r(x) over the texts `toward`  -  mean of r(x) over the texts `away`;  without `away` the first mean alone
//   r(x)       the row of the last position of text x at a site, or the mean of its rows
//   value      = value + strength * direction    in every row of the site: at every position
//
// Turner et al. 2023 ("Activation addition: steering language models without optimization"), Rimsky et al. 2024 ("Steering Llama 2
// via contrastive activation addition"), Todd et al. 2024 ("Function vectors in large language models"). A head's contribution
// ("decoder.9.self_attention.contributions.4") gives what the head adds to the stream on average.
//
//   const mh::SteerDirection direction =
//       mh::make_direction(folder, {.toward = polite, .away = rude, .site = "decoder.12.output"});
//   mh::SiteValues values;
//   values.add(direction.times(4));
//   mh::generate_text(folder, prompts, {.generate = {.sites = &values}});
//
// The effect is log p(answer | text) of words after texts, natural logarithms; the damage is the loss of other text, -1/N sum log p of its N
// tokens, and the perplexity, exp(loss): a large strength may make an answer likelier and everything else unlikely.
//
//   const mh::SteerReport steering =
//       mh::heads_steer(model, direction, {.texts = {"The film was"}, .answers = {"good", "bad"}}, &other_corpus);
//   for (const mh::SteerDose& dose : steering.doses) dose.strength, dose.mean(0), dose.perplexity();
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "multihead/base/enum_names.h"
#include "multihead/batch/batch_tokens.h"
#include "multihead/folders/scored_model.h"
#include "multihead/heads/corpus/heads_corpus.h"
#include "multihead/heads/patching/patch_texts.h"
#include "multihead/heads/sites/site_replacement.h"
#include "multihead/models/model.h"
#include "multihead/nn/sites.h"
#include "multihead/tensor/tensor.h"
#include "multihead/text/text_languages.h"

namespace mh {

struct SteerDirection {
  std::string site = {};               // the name of the site where it is added, "decoder.12.output"
  std::optional<int> head = {};        // of sites of heads side by side: whose columns; none: all
  std::string name = "the direction";  // what errors call it: its file
  Tensor numbers = {};                 // [1, columns], in units of the site's values
  std::string weights =
      {};  // SHA-256 of the files of weights of the model that it was made with; empty: not known
  std::string made = {};  // how, in words
  /// The mean length (root of the sum of squares) of the rows of which it was made; none: not known. A strength of row_length / length()
  /// adds as much as there is.
  std::optional<double> row_length = {};

  double length() const;
  /// What SiteValues::add() takes. Throws nothing; that refuses a strength that cannot be.
  SiteReplacement times(float strength) const;
};

/// Throws UsageError when the model has no such site or head, or its columns are others, and when its weights are others: each with
/// what to do. Reads the files of weights.
void check_direction(const SteerDirection& direction, const ModelFolder& folder);
/// The same for weights_hash() of a model (folders/weights_hash.h); empty: it is not compared.
void check_direction(const SteerDirection& direction, const Model& model, const std::string& weights);

/// The bytes of its file, one of safetensors: the tensor "direction", float32 [columns], and metadata (docs/file-formats.md).
std::string direction_file(const SteerDirection& direction);
/// Throws FileError, and FormatError on what is no direction.
SteerDirection read_direction(const std::filesystem::path& path);

/// Which rows of a text are read.
enum class DirectionRows {
  kLast,  // that of its last position, which has seen all of the text in a causal model
  kAll,   // the mean over all positions, special tokens among them
};
inline constexpr EnumNames<DirectionRows> kDirectionRowsNames = {{"last", DirectionRows::kLast},
                                                                 {"all", DirectionRows::kAll}};

struct DirectionTexts {
  std::vector<std::string> toward,
      away = {};                 // of a translator sources; its decoder reads greedy translations
  std::string site = {};         // the name of the site that is read
  std::optional<int> head = {};  // of sites of heads side by side
  /// Where the direction is added; empty: where it is read, and what a head contributes where its attention adds it
  /// ("decoder.9.self_attention.output").
  std::string at = {};
};

struct DirectionOptions {
  std::optional<DirectionRows> rows = {};  // none: the last of a causal model, all of any other
  TextLanguages languages = {};
  Sites* sites = nullptr;  // called while texts are read, e.g. SiteValues that mute heads
  std::function<void(const std::string&)> remark = nullptr;
  std::function<void(int64_t texts)> progress = nullptr;  // how many are read

  template <class V>
  void visit(V& v) {
    v("rows", rows, kDirectionRowsNames,
      {.group = "Direction",
       .help = "Rows of a text that make the direction: of its last position, or the mean of all",
       .otherwise = "last of a causal model, else all"});
    languages.visit(v);
  }
};

/// Throws UsageError on no texts, on texts without tokens, on a site or head that the model does not have or whose columns are keys, and
/// on an `at` of other columns; Error when values are not finite.
SteerDirection make_direction(const ModelFolder& folder, const DirectionTexts& texts,
                              const DirectionOptions& options = {});

/// Words that are asked for after texts.
struct SteerQuestion {
  std::vector<std::string> texts = {};
  std::vector<std::string> answers = {};  // words; of several tokens the first counts
  std::string prefix = {};                // of a translator: what its decoder has read
};

struct SteerOptions {
  DirectionOptions direction = {};  // languages, sites and remarks of all that is read
  std::vector<double> strengths = {-4, -2, -1, 0, 1, 2, 4};
  int64_t max_batch_tokens = 2048;                                    // of other text
  std::function<void(int64_t done, int64_t all)> progress = nullptr;  // strengths

  template <class V>
  void visit(V& v) {
    direction.visit(v);
    visit_batch_tokens(v, max_batch_tokens);
  }
};

/// A text, and the answers as tokens in their place after it.
struct SteeredText {
  PatchText text = {}, target = {};
  std::vector<PatchAnswer> answers = {};
};

struct SteerDose {
  double strength = 0;
  std::vector<std::vector<double>> log_probabilities = {};  // [texts][answers]
  std::optional<double> loss = {};                          // of other text, per token; none: there is none

  /// Of an answer over all texts.
  double mean(size_t answer) const;
  /// exp(loss); may be infinite.
  double perplexity() const;
};

struct SteerReport {
  SteerDirection direction = {};
  std::vector<SteeredText> texts = {};
  int64_t other_texts = 0, other_tokens = 0;  // tokens: that are predicted
  std::vector<SteerDose> doses = {};          // in the order of the strengths

  /// How many answers are asked for after each text.
  size_t answers() const { return texts.empty() ? 0 : texts[0].answers.size(); }
};

/// Of a causal model, a translator or an encoder that predicts masked words: words are asked for as patch_texts.h says, and other text
/// is scored as scored_texts.h does, by next tokens, translations with their ends, or masked words. other: text whose loss is measured;
/// may be null. Throws UsageError on a model that predicts no words, on a direction as check_direction() does (its weights are the
/// caller's to check), on no strengths and on one that is not finite, where neither answers nor other text are given, on texts without answers and answers
/// without texts, and as read_patch_texts() does; FormatError when no other text can be scored; Error when results are not finite.
SteerReport heads_steer(const ScoredModel& model, const SteerDirection& direction,
                        const SteerQuestion& question, HeadsCorpus* other, const SteerOptions& options = {});

}  // namespace mh
