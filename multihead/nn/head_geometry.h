// HeadGeometry: the description of the heads of one attention. It says what each head sees of a row, how
// queries, keys and values are projected, the scale, which heads share keys and values, what the values are
// weighed with, and the output projection. Each description is made into a layer once
// (make_heads, heads.h).
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

/// Which part of a row of d_model numbers a head reads.
struct HeadInput {
  enum class Kind {
    kWholeRow,         // every head reads the whole row (the paper's)
    kSlices,           // head i of h reads the numbers i d / h up to (i + 1) d / h, not including the last
    kColumns,          // head i reads the numbers columns[i]
    kProjectedSlices,  // head i reads its slice of x W; Q, K and V each have a W [d_model, d_model] (Bloem's
                       // fourth form)
  };
  Kind kind = Kind::kWholeRow;
  HeadColumns columns = {};  // for kColumns: a list of rising numbers below d_model for each head
  /// All heads share one projection. Not for kWholeRow, where all heads would then be the same.
  bool one_for_all = false;

  bool operator==(const HeadInput&) const = default;

  static HeadInput slices(bool one_for_all = false) { return {Kind::kSlices, {}, one_for_all}; }
  static HeadInput of_columns(HeadColumns columns) { return {Kind::kColumns, std::move(columns), false}; }
  static HeadInput projected_slices(bool one_for_all = false) {
    return {Kind::kProjectedSlices, {}, one_for_all};
  }
};

/// How a score is computed. x_a is the row of the query, x_b the row of the key.
enum class Scores {
  kQueryKey,       // (x_a W_i^Q) . (x_b W_i^K), the paper's
  kTied,           // the same with W_i^K = W_i^Q
  kMerged,         // (x_a W_i) . x_b: one matrix [d, d] for each head; all heads share the input as keys
  kDoubled,        // (x_a W^Q W_i^Q) . (x_b W^K W_i^K): a d x d matrix before that of each head
  kCollaborative,  // (x_a W^Q * m_i) . (x_b W^K): heads share W^Q and W^K, each has a mixing vector m_i
                   // (Cordonnier et al. 2020)
  kLatent,         // as kQueryKey, but keys and values are projected from x W^C, one short row for all heads
                   // (DeepSeek-V2, 2024)
};

/// What is done to queries and keys before their product.
enum class QueryKeyNorm {
  kNone,
  kL2,   // query-key normalisation: each query and key is scaled to length 1, so a score is a learned factor
         // times their cosine (Henry et al. 2020); `scale` is the initial value of that factor
  kRms,  // each query and key is divided by its root mean square, times a gain [d_key] for all queries, and one for all
         // keys (Qwen3, 2025)
  kRmsRow,  // the same over the queries, or keys, of all heads together, with gains [heads * d_key] (OLMo 2, 2024)
};

/// The weights with which a head averages its values.
enum class HeadWeights {
  kSoftmax,       // the softmax of its scores
  kDifferential,  // the difference of two softmaxes, A_1 - lambda A_2; then a norm for each head (Ye et al.
                  // 2024)
  kTalking,       // talking heads mix their scores, and their weights again (Shazeer et al. 2020); slow, and
                  // it stores every Tq x Tk matrix, since the fused kernel cannot compute it
};

/// Which projections have biases; those of Tensor2Tensor have none.
enum class Biases {
  kAll,
  kQueriesKeysValues,  // and the output none (Qwen2, 2024)
  kOutput,             // and queries, keys and values none (GPT-Neo, 2021)
  kNone,
};
constexpr bool has_bias_of_heads(Biases biases) {
  return biases == Biases::kAll || biases == Biases::kQueriesKeysValues;
}
constexpr bool has_bias_of_output(Biases biases) {
  return biases == Biases::kAll || biases == Biases::kOutput;
}

/// What is done with the heads' outputs, side by side in a row.
enum class HeadOutput {
  kProjection,     // they are multiplied with W^O [heads * d_value, d_out]
  kConcatenation,  // they are the output of the layer; needs heads * d_value == d_model
};

/// How the projections are initialised.
enum class HeadInitialisation {
  kXavier,          // Xavier (Glorot's bound) with the fans of the whole matrix, (d_model, heads * d_key)
  kXavierHead,      // Xavier with the fans of one head's matrix, (d_model, d_key)
  kXavierPacked,    // Xavier with the fans of [W^Q | W^K | W^V], as one packed in_proj (torch, fairseq)
  kOrthogonal,      // each head's matrix has orthonormal columns (or rows, when it is wider than high)
  kEqual,           // all heads start equal, also their W_i^O
  kEqualInput,      // all heads start equal except for their W_i^O
  kEqualWithNoise,  // as kEqual, with normal noise of standard deviation 1e-6
  kCopiedKeys,      // kXavier, and W^K starts as a copy of W^Q (AGGCN, Guo et al. 2019)
};

// Their names in files and flags.
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
                                                               {"l2", QueryKeyNorm::kL2},
                                                               {"rms", QueryKeyNorm::kRms},
                                                               {"rms_row", QueryKeyNorm::kRmsRow}};
inline constexpr EnumNames<HeadWeights> kHeadWeightsNames = {{"softmax", HeadWeights::kSoftmax},
                                                             {"differential", HeadWeights::kDifferential},
                                                             {"talking", HeadWeights::kTalking}};
inline constexpr EnumNames<Biases> kBiasesNames = {{"all", Biases::kAll},
                                                   {"queries_keys_values", Biases::kQueriesKeysValues},
                                                   {"output", Biases::kOutput},
                                                   {"none", Biases::kNone}};
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

/// Whether all heads start with the same matrices. (Heads that read different columns still give different
/// outputs.)
inline bool starts_equal(HeadInitialisation initialisation) {
  return initialisation == HeadInitialisation::kEqual || initialisation == HeadInitialisation::kEqualInput ||
         initialisation == HeadInitialisation::kEqualWithNoise;
}

// Each value of these enums has one file in geometries/, which defines the specialisation for it below.
// Heads that read the whole row use the scheme of their Scores, other heads that of their HeadInput::Kind.
// If a value has no file, the program does not link.
class HeadScheme;      // nn/head_scheme.h: how queries, keys and values are projected
class WeightScheme;    // nn/weight_scheme.h: the weights that average the values
class QueryKeyScheme;  // nn/query_key_scheme.h: what is done to queries and keys before their product

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
template <> const QueryKeyScheme& query_key_scheme<QueryKeyNorm::kRms>();
template <> const QueryKeyScheme& query_key_scheme<QueryKeyNorm::kRmsRow>();
// clang-format on

/// The name, range and description of a field of HeadGeometry, for files, flags and help.
struct HeadField {
  const char* name;
  const char* help;
  int low = 0, high = 0;            // range of a whole number; 0 stands for the default
  std::optional<Scores> only = {};  // set: only these scores use the field
};
inline constexpr int kLargestHead = 1024;  // the kernel's

struct HeadGeometry {
  int heads = 8;  // h, the number of query heads
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
  std::optional<float> scale = std::nullopt;     // Bloem's: 1 / sqrt(d_model)
  std::optional<float> soft_cap = std::nullopt;  // Gemma 2's: 50 (Riviere et al. 2024)
  /// The default has the smaller bound: with kXavier the cross-attention of the tiny model on Multi30k
  /// begins to align much later (figures in docs/architecture.md).
  HeadInitialisation initialisation = HeadInitialisation::kXavierPacked;

  bool operator==(const HeadGeometry&) const = default;

  /// Calls v(HeadField, value) for every field, and v(HeadField, value, names) for enums. `heads` is not
  /// among them, because encoder and decoder may have different numbers of heads. g: a HeadGeometry, const
  /// or not.
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
    v(HeadField{"biases", "which projections have biases"}, g.biases, kBiasesNames);
    v(HeadField{"output", "how the heads' outputs become the layer's output"}, g.output, kHeadOutputNames);
    v(
        HeadField{
            "scale",
            "factor of the scores; unset: 1 / sqrt(d_key), with query_key_norm l2 log2(L^2 - L) of L = 32 "
            "tokens"},
        g.scale);
    v(HeadField{"soft_cap",
                "scores s become soft_cap tanh(s / soft_cap), before bias, mask and softmax; unset: they are "
                "not capped"},
      g.soft_cap);
    v(HeadField{"initialisation", "how the projections are initialised"}, g.initialisation,
      kHeadInitialisationNames);
  }
  /// Visits the fields by the names that they have in files (io/config.h).
  template <class V>
  void visit(V& v) {
    describe(*this,
             [&](const HeadField& field, auto& value, auto... names) { v(field.name, value, names...); });
  }
};

/// Returns everything that is wrong with a description, one clause each, naming the field and a value that
/// would work; empty when a layer can be built.
std::vector<std::string> problems_of(const HeadGeometry& geometry, int d_model);
/// Returns the description with every 0 and unset field replaced by its default. Throws UsageError listing
/// problems_of().
HeadGeometry completed(const HeadGeometry& geometry, int d_model, std::string_view layer);
/// Returns the width of a layer's output: d_out, or d_model if that is 0, as a residual sum needs.
/// geometry: completed(). Throws UsageError when the geometry does not allow this d_out.
int output_size(const HeadGeometry& geometry, int d_model, int d_out, std::string_view layer);
/// How many softmaxes make one head: 2 for differential heads, else 1.
int softmaxes_per_head(const HeadGeometry& geometry);
/// Returns the geometry as the kernel sees it, where every softmax is a head.
HeadGeometry kernel_geometry(const HeadGeometry& geometry);
/// How many products a score sums: the size of a query and of a key. geometry: completed().
int key_size(const HeadGeometry& geometry, int d_model);
/// Whether each head has its own keys and values. geometry: its sizes are set.
inline bool has_own_keys(const HeadGeometry& g) {
  return g.key_heads == g.heads && g.value_heads == g.heads;
}
/// Sets the fields that only some Scores use to 0.
void clear_own_fields(HeadGeometry& geometry);

const HeadScheme& scheme_of(const HeadGeometry& geometry);
const WeightScheme& weight_scheme_of(const HeadGeometry& geometry);
const QueryKeyScheme& query_key_scheme_of(const HeadGeometry& geometry);

struct GeometryName {
  std::string_view name, what;
};
/// A geometry with a name, such as "multi-query".
struct GeometryPreset {
  GeometryName name;
  HeadGeometry (*make)(int heads, int d_model);
};
/// Returns the description with this name, one of geometry_names(). Throws UsageError listing the names.
HeadGeometry geometry_preset(std::string_view name, int heads, int d_model);
/// All names, in the order of the enums above: by scores, inputs, norms, weights.
std::vector<GeometryName> geometry_names();

}  // namespace mh
