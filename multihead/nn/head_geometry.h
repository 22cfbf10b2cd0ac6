// How the heads of a layer read and write: what each head sees of a row, its three projections, the scale,
// who shares what with whom, and the output projection. Chosen once, when a layer is made (make_heads).
//
//   {.heads = 8}                                                     the paper's (Vaswani et al. 2017)
//   {.heads = 8, .key_heads = 1}                                     multi-query (Shazeer 2019)
//   {.heads = 8, .input = HeadInput::slices()}                       Bloem's narrow: each sees its slice only
//   {.heads = 8, .scores = Scores::kMerged}                          one matrix W_i for W_i^Q W_i^K^T
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "multihead/base/enum_names.h"
#include "multihead/nn/head_columns.h"

namespace mh {

/// What a head sees of a row of d_model numbers.
struct HeadInput {
  enum class Kind {
    kWholeRow,         // all of it (the paper's)
    kSlices,           // head i: numbers i d / h up to (i + 1) d / h
    kColumns,          // head i: the numbers columns[i]
    kProjectedSlices,  // its slice of x W, W [d_model, d_model] for each of Q, K and V (Bloem's fourth form)
  };
  Kind kind = Kind::kWholeRow;
  HeadColumns columns = {};  // of kColumns: rising, below d_model, one list a head
  /// One projection for all heads instead of one a head; not for kWholeRow, where all heads would be the
  /// same.
  bool one_for_all = false;

  bool operator==(const HeadInput&) const = default;

  static HeadInput slices(bool one_for_all = false) { return {Kind::kSlices, {}, one_for_all}; }
  static HeadInput of_columns(HeadColumns columns) { return {Kind::kColumns, std::move(columns), false}; }
  static HeadInput projected_slices(bool one_for_all = false) {
    return {Kind::kProjectedSlices, {}, one_for_all};
  }
};

/// How a score comes about. x_a the row that asks, x_b the row that is read.
enum class Scores {
  kQueryKey,       // (x_a W_i^Q) . (x_b W_i^K)
  kTied,           // W_i^K is W_i^Q
  kMerged,         // (x_a W_i) . x_b: one matrix [d, d] a head, K is the input itself, shared by all heads
  kDoubled,        // (x_a W^Q W_i^Q) . (x_b W^K W_i^K): another d x d before (002.5)
  kCollaborative,  // (x_a W^Q * m_i) . (x_b W^K): heads share W^Q, W^K and mix by m_i (Cordonnier et al.
                   // 2020)
  kLatent,  // as kQueryKey, but keys and values of x W^C, one short row for all heads (DeepSeek-V2, 2024)
};

/// What is done to queries and keys before they meet.
enum class QueryKeyNorm {
  kNone,
  kL2,  // each head's are scaled to length 1, and scores are a learned number times their cosine (Henry et
        // al. 2020); `scale` is where that number starts
};

/// What a head weighs its values with.
enum class HeadWeights {
  kSoftmax,       // the softmax of its scores
  kDifferential,  // the difference of two softmaxes, A_1 - lambda A_2; then a norm for each head (Ye et al.
                  // 2024)
  kTalking,       // heads mix their scores, and their weights again (Shazeer et al. 2020); not in the fused
                  // kernel: slow, and memory for every Tq x Tk
};

enum class Biases { kAll, kNone };  // Tensor2Tensor has none

/// What becomes of the heads' outputs side by side.
enum class HeadOutput {
  kProjection,     // times W^O [heads * d_value, d_out]
  kConcatenation,  // as they are; needs heads * d_value == d_model
};

/// How the projections start (claim 001.2).
enum class HeadInitialisation {
  kXavier,          // Glorot's bound with the fans of the whole matrix, (d_model, heads * d_key)
  kXavierHead,      // with those of one head's matrix, (d_model, d_key)
  kXavierPacked,    // with those of [W^Q | W^K | W^V], as one packed in_proj gets (torch, fairseq)
  kOrthogonal,      // each head's matrix with orthonormal columns (or rows, when it is wider than high)
  kEqual,           // all heads the same, W_i^O too
  kEqualInput,      // all heads the same but for their W_i^O
  kEqualWithNoise,  // as kEqual, and normal noise of 1e-6
  kCopiedKeys,      // Xavier, and W^K starts as a copy of W^Q (AGGCN, Guo et al. 2019)
};

// In files and flags.
inline constexpr EnumNames<HeadInput::Kind> kHeadInputNames = {
    {"whole_row", HeadInput::Kind::kWholeRow},
    {"slices", HeadInput::Kind::kSlices},
    {"columns", HeadInput::Kind::kColumns},
    {"projected_slices", HeadInput::Kind::kProjectedSlices}};
inline constexpr EnumNames<Scores> kScoresNames = {{"query_key", Scores::kQueryKey},
                                                   {"tied", Scores::kTied},
                                                   {"merged", Scores::kMerged},
                                                   {"doubled", Scores::kDoubled},
                                                   {"collaborative", Scores::kCollaborative},
                                                   {"latent", Scores::kLatent}};
inline constexpr EnumNames<QueryKeyNorm> kQueryKeyNormNames = {{"none", QueryKeyNorm::kNone},
                                                               {"l2", QueryKeyNorm::kL2}};
inline constexpr EnumNames<HeadWeights> kHeadWeightsNames = {{"softmax", HeadWeights::kSoftmax},
                                                             {"differential", HeadWeights::kDifferential},
                                                             {"talking", HeadWeights::kTalking}};
inline constexpr EnumNames<Biases> kBiasesNames = {{"all", Biases::kAll}, {"none", Biases::kNone}};
inline constexpr EnumNames<HeadOutput> kHeadOutputNames = {{"projection", HeadOutput::kProjection},
                                                           {"concatenation", HeadOutput::kConcatenation}};
inline constexpr EnumNames<HeadInitialisation> kHeadInitialisationNames = {
    {"xavier", HeadInitialisation::kXavier},
    {"xavier_head", HeadInitialisation::kXavierHead},
    {"xavier_packed", HeadInitialisation::kXavierPacked},
    {"orthogonal", HeadInitialisation::kOrthogonal},
    {"equal", HeadInitialisation::kEqual},
    {"equal_input", HeadInitialisation::kEqualInput},
    {"equal_with_noise", HeadInitialisation::kEqualWithNoise},
    {"copied_keys", HeadInitialisation::kCopiedKeys}};

/// All heads the same; with segments, which read different columns, their matrices are.
inline bool starts_equal(HeadInitialisation initialisation) {
  return initialisation == HeadInitialisation::kEqual || initialisation == HeadInitialisation::kEqualInput ||
         initialisation == HeadInitialisation::kEqualWithNoise;
}

// Who answers for a way to make heads is a file of geometries/ each: the specialisation of its own value.
// Heads that read the whole row have that of their Scores, others that of their HeadInput::Kind. A value
// without a file does not link.
class HeadScheme;      // geometries/head_scheme.h: how queries, keys and values come about
class WeightScheme;    // geometries/weight_scheme.h: what values are weighed with
class QueryKeyScheme;  // geometries/query_key_scheme.h: what is done to queries and keys before they meet

template <auto kWay>
const HeadScheme& head_scheme();
template <HeadWeights kWay>
const WeightScheme& weight_scheme();
template <QueryKeyNorm kWay>
const QueryKeyScheme& query_key_scheme();

// clang-format off
template <> const HeadScheme& head_scheme<Scores::kQueryKey>();
template <> const HeadScheme& head_scheme<Scores::kTied>();
template <> const HeadScheme& head_scheme<Scores::kMerged>();
template <> const HeadScheme& head_scheme<Scores::kDoubled>();
template <> const HeadScheme& head_scheme<Scores::kCollaborative>();
template <> const HeadScheme& head_scheme<Scores::kLatent>();
template <> const HeadScheme& head_scheme<HeadInput::Kind::kSlices>();
template <> const HeadScheme& head_scheme<HeadInput::Kind::kColumns>();
template <> const HeadScheme& head_scheme<HeadInput::Kind::kProjectedSlices>();
template <> const WeightScheme& weight_scheme<HeadWeights::kSoftmax>();
template <> const WeightScheme& weight_scheme<HeadWeights::kDifferential>();
template <> const WeightScheme& weight_scheme<HeadWeights::kTalking>();
template <> const QueryKeyScheme& query_key_scheme<QueryKeyNorm::kNone>();
template <> const QueryKeyScheme& query_key_scheme<QueryKeyNorm::kL2>();
// clang-format on

/// What files, flags and help say of a field of HeadGeometry.
struct HeadField {
  const char* name;
  const char* help;
  int low = 0, high = 0;            // of whole numbers; 0 is what stands for the usual one
  std::optional<Scores> only = {};  // the scores that alone have it
};
inline constexpr int kLargestHead = 1024;  // the kernel's

struct HeadGeometry {
  int heads = 8;  // h, of queries
  int d_key = 0;
  int d_value = 0;
  int key_heads = 0;
  int value_heads = 0;
  HeadInput input = {};
  Scores scores = Scores::kQueryKey;
  int shared_size = 0;
  int latent_size = 0;
  QueryKeyNorm query_key_norm = QueryKeyNorm::kNone;
  HeadWeights weights = HeadWeights::kSoftmax;
  Biases biases = Biases::kAll;
  HeadOutput output = HeadOutput::kProjection;
  std::optional<float> scale = std::nullopt;  // Bloem's: 1 / sqrt(d_model)
  /// The smaller bound by default: with kXavier the cross-attention of the tiny model on Multi30k begins to
  /// align much later (figures in docs/architecture.md).
  HeadInitialisation initialisation = HeadInitialisation::kXavierPacked;

  bool operator==(const HeadGeometry&) const = default;

  /// Calls v(HeadField, value, names...) with every field, and the names of those that are enums. heads is
  /// not among them: a model's sides have their own numbers. g: a HeadGeometry, const or not.
  template <class G, class V>
  static void describe(G& g, V&& v) {
    constexpr int kMost = kLargestHead;
    v(HeadField{"d_key",
                "size of a head's query and key; 0: d_model / heads, with differential weights half of it", 0,
                kMost},
      g.d_key);
    v(HeadField{"d_value", "size of a head's value; 0: d_key, with differential weights twice it", 0, kMost},
      g.d_value);
    v(HeadField{"key_heads", "number of key heads, a divisor of heads: query heads share them; 0: heads", 0,
                kMost},
      g.key_heads);
    v(HeadField{"value_heads", "number of value heads, a divisor of heads; 0: key_heads", 0, kMost},
      g.value_heads);
    v(HeadField{"input", "which part of a token's row each head reads"}, g.input.kind, kHeadInputNames);
    v(HeadField{"columns",
                "of input columns: the numbers of a row that each head reads, rising, one list a head"},
      g.input.columns);
    v(HeadField{"one_for_all", "one projection, shared by all heads that read parts of the row"},
      g.input.one_for_all);
    v(HeadField{"scores", "how attention scores are computed"}, g.scores, kScoresNames);
    v(HeadField{"shared_size",
                "width of the queries and keys that collaborative heads share; 0: heads * d_key", 0, kMost,
                Scores::kCollaborative},
      g.shared_size);
    v(HeadField{"latent_size",
                "width of the latent row that all keys and values come from; 0: heads * d_key / 2", 0, kMost,
                Scores::kLatent},
      g.latent_size);
    v(HeadField{"query_key_norm", "normalisation of queries and keys before their product"}, g.query_key_norm,
      kQueryKeyNormNames);
    v(HeadField{"weights", "how scores become attention weights"}, g.weights, kHeadWeightsNames);
    v(HeadField{"biases", "whether projections have biases"}, g.biases, kBiasesNames);
    v(HeadField{"output", "how the heads' outputs become the layer's output"}, g.output, kHeadOutputNames);
    v(HeadField{"scale",
                "factor of the scores; unset: 1 / sqrt(d_key), with a query_key_norm log2(L^2 - L) of L = 32 "
                "tokens"},
      g.scale);
    v(HeadField{"initialisation", "how the projections are initialised"}, g.initialisation,
      kHeadInitialisationNames);
  }
  /// The fields by their names, as files have them (io/config.h).
  template <class V>
  void visit(V& v) {
    describe(*this,
             [&](const HeadField& field, auto& value, auto... names) { v(field.name, value, names...); });
  }
};

/// All that cannot be, one clause each, naming the field and a description that would work; empty when it can
/// be built.
std::vector<std::string> problems_of(const HeadGeometry& geometry, int d_model);
/// With every 0 and unset field replaced by what it stands for. Throws UsageError listing problems_of().
HeadGeometry completed(const HeadGeometry& geometry, int d_model, std::string_view layer);
/// Numbers in a row that comes out of a layer: d_out, or when that is 0 d_model, which a residual sum needs.
/// geometry: completed(). Throws UsageError on a d_out that cannot be.
int output_size(const HeadGeometry& geometry, int d_model, int d_out, std::string_view layer);
/// How many softmaxes make one head.
int maps_per_head(const HeadGeometry& geometry);
/// As the kernel has it: every softmax is a head.
HeadGeometry of_kernel(const HeadGeometry& geometry);
/// Numbers in the query and in the key that meet in one score. geometry: completed().
int key_size(const HeadGeometry& geometry, int d_model);
/// Whether each head has keys and values of its own. geometry: its sizes are set.
inline bool has_own_keys(const HeadGeometry& g) {
  return g.key_heads == g.heads && g.value_heads == g.heads;
}
/// Sets the fields that some scores alone have to 0.
void clear_own_fields(HeadGeometry& geometry);

const HeadScheme& scheme_of(const HeadGeometry& geometry);
const WeightScheme& weight_scheme_of(const HeadGeometry& geometry);
const QueryKeyScheme& query_key_scheme_of(const HeadGeometry& geometry);

struct GeometryName {
  std::string_view name, what;
};
/// A system that people compare, by name.
struct GeometryPreset {
  GeometryName name;
  HeadGeometry (*make)(int heads, int d_model);
};
/// See geometry_names(). Throws UsageError listing the names.
HeadGeometry geometry_preset(std::string_view name, int heads, int d_model);
/// In the order of the lists above: those of scores, of inputs, of norms, of weights.
std::vector<GeometryName> geometry_names();

}  // namespace mh
