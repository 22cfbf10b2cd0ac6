// Makes one vector of the states of a sentence's tokens, as a Pooling says.
#pragma once

#include <span>

#include "multihead/base/matrix_view.h"
#include "multihead/base/ragged.h"

namespace mh {

enum class Pooling;  // sentence_model.h

/// vectors [S, modes * d]: for each sequence of states [N, d] the results of all modes side by side. A
/// sequence without tokens has zeros. Throws ShapeError when the shapes do not fit.
void pool_states(ConstMatrixView states, const Ragged& sequences, std::span<const Pooling> modes,
                 MatrixView vectors);

/// Divides each row by its length, sqrt(sum x^2); a row of zeros stays as it is.
void normalise_rows(MatrixView rows);

}  // namespace mh
