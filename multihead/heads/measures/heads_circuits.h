// Circuits: what each head of a model can do, from its weights alone (Elhage et al. 2021, "A mathematical framework for
// transformer circuits"). Rows are x [1, d_model], as everywhere in this library. Head h scores a key row y for a query row x by
// x W_QK y^T, and moves y W_OV from the key's place to the query's:
//
//   W_QK = W_Q W_K^T   [d_model, d_model], of rank d_key at most
//   W_OV = W_V W_O     [d_model, d_model], of rank d_value at most
//
// What is in W_Q, W_K, W_V [d_model, d_key or d_value] and W_O [d_value, d_model]:
//
//   - Grouped queries: head h has the W_K and W_V of its group.
//   - A norm directly in front of the attention is folded in, up to the length that it gives a row: W becomes N W with
//     N = diag(gain) for RMS norms, N = (I - 11^T / d_model) diag(gain) for layer norms, which take the mean out first. With
//     norms before the sublayers (GPT-2, Llama) that is the layer's own norm; of the keys and values of cross-attention it is
//     the norm at the encoder's end. With norms after the sublayers (BERT, Marian) there is none in front: the rows that are
//     read have been normed already, their gains are in them and not in W.
//   - A norm of queries and keys: W_Q and W_K have its gains.
//   - Left out: all biases, the factor 1 / sqrt(d_key), what positions add to keys or scores. Rotary positions turn queries
//     and keys by their places: W_QK is that of a query and a key at the same place (offset 0).
//
// Geometries: merged scores give W_QK itself, collaborative, latent, tied and doubled ones and heads that read parts of a row
// their matrices as equal canonical heads have them. Differential and talking heads have no W_QK of their own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace mh {

class Model;
enum class HeadPart;  // nn/heads.h

/// The singular values of a product of two narrow matrices, and what they say.
struct Circuit {
  std::vector<double> singular_values;  // min(d_model, inner width) of them, largest first
  /// How many directions matter: exp(-sum p log p), p = singular values / their sum (Roy and Vetterli 2007); 0 if all are 0.
  double effective_rank = 0;
  double norm = 0;  // Frobenius
};

struct HeadCircuits {
  std::string attention;  // "encoder.3.self_attention"
  int head = 0;
  Circuit query_key, value_output;
  /// Whether a head that attends to a token makes the same token more probable (1) or less (-1): of the eigenvalues l of
  /// W_E W_OV W_U [V, V], sum of Re l / sum of |l|. W_E [V, d_model] are the embeddings, W_U [d_model, V] reads words from
  /// states. Causal models: their tables, with norms of embeddings and at the end of the stack folded in (above). Encoders
  /// that predict masked words: W_U is dense layer, norm and table without the activation between them. Translators: of the
  /// decoder's tables; of cross-attention from the source's embeddings, if source and target share one table. None where
  /// nothing reads words out or no token has one number on both sides, and if W_OV is 0.
  std::optional<double> copying;

  std::string name() const { return attention + "." + std::to_string(head); }
};

/// How much of what head 1 writes is read by head 2 of a later layer of the same stack:
///
///   queries  |W_OV1 W_QK2|   / (|W_OV1| |W_QK2|)     keys     |W_OV1 W_QK2^T| / (|W_OV1| |W_QK2|)
///   values   |W_OV1 W_OV2|   / (|W_OV1| |W_OV2|)
///
/// with Frobenius norms; 0 if one of them is 0. Between random matrices its root mean square is 1 / sqrt(d_model).
/// Cross-attention reads queries from the decoder, whose self-attention of the same layer is earlier, and keys and values from
/// the encoder.
struct Composition {
  size_t from = 0, to = 0;  // heads 1 and 2: CircuitsReport::heads[from]
  HeadPart part{};          // what of head 2 reads it
  double strength = 0;      // 0 to 1
  double random = 0;        // its mean for normal random matrices of these shapes
};

struct CircuitsReport {
  std::vector<HeadCircuits> heads;        // by attentions, as the model has them
  std::vector<Composition> compositions;  // by `to`, then `from`, then queries, keys, values
};

struct CircuitsOptions {
  bool compositions = true;
  int32_t random_draws = 8;  // of which Composition::random is the mean; at least 1
  uint64_t seed = 1;         // of these draws

  /// All but `compositions`.
  template <class V>
  void visit(V& v) {
    constexpr const char* kGroup = "Circuits";
    v("random_draws", random_draws, {.low = 1},
      {.group = kGroup, .help = "Random matrices averaged for the baseline of compositions", .rare = true});
    v("seed", seed, {}, {.group = kGroup, .help = "Seed of these matrices", .rare = true});
  }
};

/// Throws UsageError naming the attention and its geometry when its heads have no W_QK of their own, and Error on numbers that
/// are not finite. The results are the same bits for any number of threads. Singular values and eigenvalues are in double;
/// compositions multiply in float32.
CircuitsReport heads_circuits(const Model& model, const CircuitsOptions& options = {});

/// The `count` compositions that are furthest above random ones, by strength / random.
std::vector<Composition> strongest_compositions(const CircuitsReport& circuits, size_t count);

}  // namespace mh
