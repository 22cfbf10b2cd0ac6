// 002.6: what a model folder stores of an attention.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>
#include <system_error>

#include "lab/studies/lab.h"
#include "lab/studies/two_matrices_or_one/claims.h"
#include "multihead/base/error.h"
#include "multihead/folders/families/family.h"
#include "multihead/folders/folder_source.h"
#include "multihead/folders/model_folder.h"
#include "multihead/folders/parameters.h"
#include "multihead/folders/save_folder.h"
#include "multihead/folders/tensor_files.h"
#include "multihead/models/encoder_decoder.h"
#include "multihead/nn/multi_head_attention.h"

namespace mh::two_matrices_or_one {
namespace {

using namespace lab;

ModelFolder load_with_encoder(const std::filesystem::path& path) {
  ModelFolder folder = load_model_folder(path);
  if (folder.model->facts().source_vocabulary > 0) return folder;
  throw UsageError(fmt::format(
      "`checkpoint` {} holds a {} model, which has no encoder; give the folder of a translator or "
      "of an encoder such as BERT",
      path.string(), folder.model_type));
}

/// A model folder, and its files as they are. Attentions are those of the encoder.
class OpenFolder {
 public:
  explicit OpenFolder(const std::filesystem::path& path)
      : folder_(load_with_encoder(path)), files_(folder_.source->tensors()), plan_(folder_.source->plan()) {}

  int layers() const {
    const auto all = folder_.model->attentions();
    return static_cast<int>(std::count_if(all.begin(), all.end(), [](const Model::AttentionName& one) {
      return one.name.starts_with("encoder.") && one.name.ends_with(".self_attention");
    }));
  }
  const MultiHeadAttention& attention(int layer) const {
    return folder_.model->attention(name_of_layer(layer));
  }

  /// The tensors of an attention: all with the names' common beginning, but for norms beside it.
  TensorFiles::Tensors tensors(int layer) const {
    std::string common = tensor(layer, "w_q");
    for (const char* name : {"w_k", "w_v", "w_o"}) {
      const std::string other = tensor(layer, name);
      common.erase(std::mismatch(common.begin(), common.end(), other.begin(), other.end()).first,
                   common.end());
    }
    common.erase(common.rfind('.') + 1);  // "model.encoder.layers.0.self_attn."
    TensorFiles::Tensors found;
    for (const auto& [name, entry] : files_.tensors()) {
      if (name.starts_with(common) && name.find("Norm") == std::string::npos) found.emplace(name, entry);
    }
    return found;
  }
  /// A parameter as the file has it.
  Matrix stored(int layer, const char* name) const {
    const std::string from = tensor(layer, name);
    const std::vector<int64_t>& shape = files_.tensor(from).shape;
    const std::vector<float> floats = files_.floats(from);
    Matrix a(shape.size() == 1 ? 1 : shape[0], shape.back());
    std::copy(floats.begin(), floats.end(), a.data());
    return plan_.place(parameter(layer, name)).layout == TensorPlace::Layout::kTransposed ? transposed(a) : a;
  }

 private:
  static std::string name_of_layer(int layer) { return fmt::format("encoder.{}.self_attention", layer); }
  static std::string parameter(int layer, const char* name) {
    return fmt::format("{}.{}", name_of_layer(layer), name);
  }
  std::string tensor(int layer, const char* name) const {
    return tensor_of(files_, plan_, parameter(layer, name));
  }

  ModelFolder folder_;
  TensorFiles files_;
  FolderPlan plan_;
};

Matrix plus_row(Matrix a, const Matrix& row) {
  for (int64_t i = 0; i < a.rows(); ++i) {
    for (int64_t j = 0; j < a.cols(); ++j) a(i, j) += row(0, j);
  }
  return a;
}

/// Concat(head_1, ...) as the model's own layer computes it.
Matrix heads_of(const MultiHeadAttention& layer, const Matrix& x) {
  const Tensor rows = in_float(x);
  const Ragged ragged = Ragged::from_lengths(std::vector<int32_t>{static_cast<int32_t>(x.rows())});
  Tape tape;
  Context context{.tape = tape};
  return in_double(layer
                       .self_heads(context, tape.constant(const_cast<Tensor&>(rows).view()),
                                   {.ids = {}, .ragged = &ragged, .sentences = {}}, Mask::none())
                       .value());
}

/// What the files have of an attention: matrices [d, d], biases [d], and other tensors.
struct StoredCount {
  int matrices = 0, biases = 0, others = 0;

  bool is_all(int attentions) const {
    return matrices == 4 * attentions && biases == 4 * attentions && others == 0;
  }
};

void add_count(StoredCount& count, const std::vector<int64_t>& shape, int d) {
  const bool row = shape.size() == 1 || (shape.size() == 2 && shape[0] == 1);
  (row && shape.back() == d                              ? count.biases
   : shape.size() == 2 && shape[0] == d && shape[1] == d ? count.matrices
                                                         : count.others)++;
}

/// head_i = Attention(Q_i, K_i, V_i) of the head's d/h columns of three of the file's matrices.
Matrix head_of_file(const OpenFolder& folder, int layer, int head, const Matrix& x) {
  const MultiHeadAttention& attention = folder.attention(layer);
  const int size = attention.config().d_model / attention.heads();
  const auto projected = [&](const char* w, const char* b) {
    const auto own = [&](const char* name) {
      return columns(folder.stored(layer, name), head * size, (head + 1) * size);
    };
    return plus_row(product(x, own(w)), own(b));
  };
  const Matrix q = projected("w_q", "b_q"), k = projected("w_k", "b_k"), v = projected("w_v", "b_v");
  return product(softmax_rows(scaled(product_transposed(q, k), 1 / std::sqrt(size))), v);
}

/// A folder that is gone with this object.
class ScratchFolder {
 public:
  ScratchFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "multihead-study-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) throw FileError("cannot make a folder like " + pattern);
    path_ = pattern;
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

Claim look_into(const std::filesystem::path& path, const AlgebraCase& a) {
  const OpenFolder folder(path);
  const MultiHeadAttention& first = folder.attention(0);
  const int d = first.config().d_model, heads = first.heads(), size = d / heads;
  Claim claim{
      .id = "002.6",
      .statement =
          "A model stores one matrix W_i^{Q*} [d, d/h] for each head's queries, and so for its keys and "
          "values: there is no W^Q before it.",
      .original_words =
          "\"Matrices W^Q, W^K, W^V (each d_model x d_model) are completely removed instead.\" \"Q_i(x) = x "
          "W_i^{Q*} = x W^Q W_i^{Q*} = Q W_i^Q.\" JimSi: \"I would really like to know if this is redundant "
          "now and it can be head_i = Attention(Q_i, K_i, V_i).\"",
      .original_remark =
          "The star in x W^Q W_i^{Q*} is a slip of the pen: the line above it has W_i^{Q*} = W^Q W_i^Q, so x "
          "W_i^{Q*} = x W^Q W_i^Q. The stored matrix is the one with the star."};
  Table table{fmt::format("the file's tensors of the first encoder attention, d = {}, h = {}", d, heads),
              {"tensor", "shape"},
              {}};
  StoredCount count;
  for (const auto& [name, entry] : folder.tensors(0)) {
    add_count(count, entry.shape, d);
    std::string text;
    for (const int64_t n : entry.shape) text += fmt::format("{}{}", text.empty() ? "" : ", ", n);
    table.rows.push_back({name, "[" + text + "]"});
  }
  claim.tables.push_back(std::move(table));
  claim.clauses.push_back(algebraic(
      "An attention in the file is four matrices [d, d], for queries, keys, values and output, with their "
      "biases [d], and nothing else.",
      "4 matrices, 4 biases, 0 others",
      fmt::format("{} matrices [{}, {}], {} biases [{}], {} others", count.matrices, d, d, count.biases, d,
                  count.others),
      count.is_all(1), OriginalSays::kSame));

  Random random(a.seed, 26);
  const Matrix x = random_matrix(7, d, random);
  const Matrix own = head_of_file(folder, 0, a.mistake == 2 ? 1 : 0, x);
  const Matrix expected = columns(heads_of(first, x), 0, size);
  const double difference = largest_difference(own, expected) / largest(expected);
  claim.clauses.push_back(algebraic(
      "The d columns are the heads' d/h columns side by side: head_0 = Attention(Q_0, K_0, V_0) follows from "
      "the first d/h columns of three of the matrices.",
      "equal to the head's output in the model to 1e-5 of the largest",
      fmt::format("largest difference {:.1e} with columns 0 ... {} of {}", difference, size - 1, d),
      difference <= 1e-5, OriginalSays::kSame));

  // Any W^Q that can be inverted splits the stored matrix: W_0^Q = (W^Q)^-1 W_0^{Q*}.
  const Matrix star = columns(folder.stored(0, "w_q"), 0, size);
  const Matrix before = random_rotation(d, random), after = product(transposed(before), star);
  const Matrix once = product(x, star);
  const Matrix split = product(product(x, a.mistake == 3 ? transposed(before) : before), after);
  const double same = largest_difference(split, once) / largest(once);
  claim.clauses.push_back(algebraic(
      "W_i^{Q*} = W^Q W_i^Q is one matrix of the stored shape [d, d/h], and x W^Q W_i^Q = x W_i^{Q*}.",
      "equal to 1e-10 of the largest, for a random W^Q and the W_0^Q that gives the stored matrix",
      fmt::format("[{}, {}]; largest difference {:.1e}", star.rows(), star.cols(), same), same <= 1e-10,
      OriginalSays::kSame));
  const Matrix twice = product(a.mistake == 4 ? x : product(x, before), star);
  const double apart = norm(sum(twice, once, -1)) / norm(once);
  claim.clauses.push_back(
      algebraic("x W^Q W_i^{Q*}, as it is printed, is something else: W^Q is in W_i^{Q*} already.",
                "further than 0.1 of the norm from x W_i^{Q*}", fmt::format("{:.2f} of the norm away", apart),
                apart > 0.1, OriginalSays::kOpposite));
  return claim;
}

}  // namespace

Claim stored(const std::filesystem::path& folder) {
  return look_into(folder, {});
}

Clause every_head(const std::filesystem::path& path) {
  const OpenFolder folder(path);
  const int d = folder.attention(0).config().d_model, layers = folder.layers();
  Random random(AlgebraCase{}.seed, 26);
  const Matrix x = random_matrix(7, d, random);
  StoredCount count;
  int heads = 0;
  double furthest = 0;
  for (int layer = 0; layer < layers; ++layer) {
    for (const auto& [name, entry] : folder.tensors(layer)) add_count(count, entry.shape, d);
    const Matrix all = heads_of(folder.attention(layer), x);
    const int here = folder.attention(layer).heads(), size = d / here;
    for (int head = 0; head < here; ++head) {
      const Matrix expected = columns(all, head * size, (head + 1) * size);
      furthest = std::max(
          furthest, largest_difference(head_of_file(folder, layer, head, x), expected) / largest(expected));
    }
    heads += here;
  }
  return algebraic(
      "So it is in every layer of the encoder: these matrices and biases and nothing else, and every head "
      "follows from its own d/h columns.",
      "4 matrices, 4 biases, 0 others a layer; all heads equal to their outputs in the model to 1e-5 of the "
      "largest",
      fmt::format("{} layers: {} matrices, {} biases, {} others; {} heads: largest difference {:.1e}", layers,
                  count.matrices, count.biases, count.others, heads, furthest),
      count.is_all(layers) && furthest <= 1e-5, OriginalSays::kNothing);
}

/// mistake 1: a doubled model is looked into; 2: head 1's columns are taken for head 0's; 3: W^Q transposed;
/// 4: W^Q is left out.
Claim stored_afresh(const AlgebraCase& a) {
  EncoderDecoderConfig config = transformer_preset("tiny");
  config.vocabulary_size = 11;
  config.encoder_layers = config.decoder_layers = 1;
  if (a.mistake == 1) config.geometry.scores = Scores::kDoubled;
  EncoderDecoder model(config);
  model.initialise(a.seed);
  const ScratchFolder scratch;
  save_model_folder(scratch.path() / "model", model);
  return look_into(scratch.path() / "model", a);
}

}  // namespace mh::two_matrices_or_one
