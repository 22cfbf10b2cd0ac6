// SentenceModel: a model that turns a sentence into one vector, in the folder that sentence-transformers
// writes:
//
//   modules.json                    what is done in order: Transformer, Pooling, then Dense and Normalize
//   config.json, model.safetensors, tokenizer.json    the Transformer, here or in the folder modules.json names
//   sentence_bert_config.json       beside it: max_seq_length, do_lower_case, processing_kwargs
//   1_Pooling/config.json           which poolings
//   2_Dense/config.json, model.safetensors            activation(x W + b) of the pooled vector
//   config_sentence_transformers.json                 prompts, one of which may come before every text, truncate_dim,
//                                                     similarity_fn_name
//
// A key of these files that changes vectors is obeyed or refused; one that is not known is named in a remark
// (folders/sentence_settings.h).
//
// Older versions have other keys than version 6; both are read. Any other model folder works, too: its
// vectors are the means of its states.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "multihead/base/enum_names.h"
#include "multihead/batch/batch.h"
#include "multihead/folders/model_folder.h"
#include "multihead/nn/context.h"

namespace mh {

class SentenceDense;

/// How one vector is made of the states x_1, ..., x_n of a sentence's tokens, special tokens among them
/// (Reimers and Gurevych 2019, section 3, and the modes that sentence-transformers added).
enum class Pooling {
  kFirst,           // x_1, in BERT the state of [CLS]
  kMax,             // the largest of each column
  kMean,            // sum x_i / n
  kMeanSqrtLength,  // sum x_i / sqrt(n)
  kWeightedMean,    // sum i x_i / sum i    (Muennighoff 2022)
  kLast,            // x_n
};

/// Their names in the folders of sentence-transformers, in the order of its older flags.
inline constexpr EnumNames<Pooling> kPoolingNames = {{"cls", Pooling::kFirst},
                                                     {"max", Pooling::kMax},
                                                     {"mean", Pooling::kMean},
                                                     {"mean_sqrt_len_tokens", Pooling::kMeanSqrtLength},
                                                     {"weightedmean", Pooling::kWeightedMean},
                                                     {"lasttoken", Pooling::kLast}};

/// How alike two vectors are, as the folder says (similarity_fn_name of config_sentence_transformers.json).
enum class Similarity {
  kCosine,     // x y / (|x| |y|), from -1 to 1
  kDot,        // x y
  kEuclidean,  // -|x - y|, at most 0
  kManhattan,  // -sum |x_i - y_i|, at most 0
};

/// The same in words, behind "similarity is".
constexpr const char* formula_of(Similarity similarity) {
  switch (similarity) {
    case Similarity::kDot:
      return "the dot product";
    case Similarity::kEuclidean:
      return "minus the Euclidean distance";
    case Similarity::kManhattan:
      return "minus the Manhattan distance";
    case Similarity::kCosine:
      break;
  }
  return "the cosine";
}

/// Their names there.
inline constexpr EnumNames<Similarity> kSimilarityNames = {{"cosine", Similarity::kCosine},
                                                           {"dot", Similarity::kDot},
                                                           {"euclidean", Similarity::kEuclidean},
                                                           {"manhattan", Similarity::kManhattan}};

/// A text that comes before other texts, and its name in the folder, such as "query".
struct SentencePrompt {
  std::string name, text;
};

struct SentenceModel {
  ModelFolder folder;
  std::vector<Pooling> poolings = {Pooling::kMean};  // their results stand side by side
  /// What is done to the pooled vector, in order: a dense layer, or where there is none, its division by its
  /// length.
  std::vector<std::shared_ptr<const SentenceDense>> steps = {};
  int32_t longest = 0;                          // tokens of a sentence, special tokens among them
  bool lowercase = false;                       // the text is put in lower case before its tokeniser sees it
  std::string prompt = {};                      // comes before every text that is given no other
  int64_t dimension = 0;                        // numbers of a vector
  Similarity similarity = Similarity::kCosine;  // for which the vectors were trained
  std::vector<SentencePrompt> prompts = {};     // all of the folder, with an empty text, too; sorted by names
  bool pools_prompt = true;                     // no: no pooling takes the states of a prompt's tokens
  int32_t unpooled = 0;                         // those tokens of `prompt`: include_prompt is false
  /// Of what the steps give only the first numbers are kept, so many (Matryoshka vectors, Kusupati et al. 2022).
  std::optional<int64_t> truncate_dim = std::nullopt;
  /// Lines worth knowing: what was assumed where the folder does not say.
  std::vector<std::string> remarks = {};

  /// [S, dimension]: the vectors of token sequences, a site. Sequences without tokens get zeros from the pooling.
  /// unpooled_tokens: how many at the start of each no pooling takes; not given: those of `prompt`, as sentence_tokens() reads
  /// texts (sentence_tokens.h). Throws ShapeError when `dimension` is not the number of what comes out, and Error when that is
  /// not finite.
  Var vectors(Context& context, const Sequences& tokens,
              std::optional<int32_t> unpooled_tokens = std::nullopt) const;
  /// The sites of the model, and "sentence.vectors".
  std::vector<SiteShape> sites() const;
};

/// Reads the folder. Throws FileError or FormatError, in one line, as load_model_folder() does, and on
/// modules, activations and modes that are not supported, naming them; on a module's folder outside of
/// `path`; on sizes that do not fit; on a folder without tokenizer, or with one of another vocabulary.
SentenceModel load_sentence_model(const std::filesystem::path& path);
/// Sets everything but `folder`, which load_model_folder(path) has read already. Throws the same.
void read_sentence_steps(const std::filesystem::path& path, SentenceModel& model);

}  // namespace mh
