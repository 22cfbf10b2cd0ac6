// How the page in which the model answers holds the model's weights: as its files have them, or rounded, which makes a smaller page; and
// how far the rounded model is from the one of the files.
//
//   const mh::LiveFiles rounded = mh::rounded_files(files, mh::LiveNumbers::kInt8);
//   const mh::RoundingError error = mh::rounding_error(model, rounded, texts);
//   mh::check_rounding(error, mh::LiveNumbers::kInt8);
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "multihead/base/enum_names.h"
#include "multihead/folders/scored_model.h"
#include "multihead/heads/corpus/heads_corpus.h"
#include "multihead/text/text_languages.h"

namespace mh {

/// Files of a model by their names, as load_scored_model() reads them.
using LiveFiles = std::map<std::string, std::string>;

enum class LiveNumbers {
  kFile,     // as the files have them
  kFloat16,  // numbers of 16 bits
  kInt8,  // matrices as integers of 8 bits with a scale for each 32 or 64 of a row (folders/int8_matrices.h), all else as the files have it
};

inline constexpr EnumNames<LiveNumbers> kLiveNumbersNames = {
    {"file", LiveNumbers::kFile}, {"float16", LiveNumbers::kFloat16}, {"int8", LiveNumbers::kInt8}};

struct LiveOptions {
  bool live = false;
  LiveNumbers weights = LiveNumbers::kFile;

  template <class V>
  void visit(V& v) {
    constexpr const char* kGroup = "The model in the page";
    v("live", live, {},
      {.group = kGroup,
       .help =
           "Put the model into the page: it answers there, on texts and with heads that the reader chooses"});
    v("live_weights", weights, kLiveNumbersNames,
      {.group = kGroup,
       .help = "How the page holds its weights: as the file has them, or rounded, which makes the page "
               "smaller"});
  }
};

/// The files with their weights rounded, in one model.safetensors. The matrices that become integers are those whose rows are a
/// multiple of 32 numbers, whichever way they lie. Throws UsageError on a .gguf file, whose weights are small already, and when no
/// matrix becomes integers; Error that names a tensor whose numbers float16 does not hold; FormatError as load_model_folder() does.
LiveFiles rounded_files(const LiveFiles& files, LiveNumbers numbers);

/// The bytes of all files when they are rounded, without rounding them; none where rounded_files() would throw UsageError.
std::optional<size_t> rounded_bytes(const LiveFiles& files, LiveNumbers numbers);

/// How far a model with rounded weights is from the one of the files.
struct RoundingError {
  /// The largest |z' - z| of a logit, of words or labels, as a share of max z - min z of its text. None: the model gives none.
  std::optional<double> of_logits = std::nullopt;
  /// The least cosine of a text's vectors by both, of a model that gives vectors alone.
  std::optional<double> cosine = std::nullopt;
  /// Whether both say the same: of a translator each word of the translation, of a causal model the next word, of a classifier each
  /// label.
  bool same_words = true;
  int64_t texts = 0;  // on which they were compared
};

/// Runs both on the texts, of a translator on the translations by the model of the files where there are none. Throws as
/// load_model_folder() and observe_text() do.
RoundingError rounding_error(const ScoredModel& model, const LiveFiles& rounded, const HeadsText& texts,
                             const TextLanguages& languages = {});

/// Throws UsageError that says by how much when the error is too large for a page: a logit off by 1 % of the range, other words, or a
/// cosine below 0.999.
void check_rounding(const RoundingError& error, LiveNumbers numbers);

}  // namespace mh
