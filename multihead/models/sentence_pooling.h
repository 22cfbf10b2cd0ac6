// How one vector is made of the states of a sentence's tokens (Reimers and Gurevych 2019, section 3, and the
// modes that sentence-transformers added).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "multihead/base/enum_names.h"
#include "multihead/base/matrix_view.h"
#include "multihead/base/ragged.h"

namespace mh {

/// With x_1, ..., x_n the states of the n tokens of a sentence, special tokens among them:
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

/// vectors [S, modes * d]: for each sequence of states [N, d] the results of all modes side by side. A
/// sequence without tokens has zeros. Throws ShapeError when the shapes do not fit.
void pool_states(ConstMatrixView states, const Ragged& sequences, std::span<const Pooling> modes,
                 MatrixView vectors);

/// Divides each row by its length, sqrt(sum x^2); a row of zeros stays as it is.
void normalise_rows(MatrixView rows);

}  // namespace mh
