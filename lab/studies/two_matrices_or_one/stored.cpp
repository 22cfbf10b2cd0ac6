// 002.6: what a model folder stores of an attention.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <string>

#include "lab/studies/claim_words.h"
#include "lab/studies/comparison.h"
#include "lab/studies/two_matrices_or_one/claims.h"
#include "multihead/base/error.h"
#include "multihead/base/scratch_files.h"
#include "multihead/folders/family.h"
#include "multihead/folders/folder_source.h"
#include "multihead/folders/model_folder.h"
#include "multihead/folders/parameters.h"
#include "multihead/folders/save_folder.h"
#include "multihead/folders/tensor_files.h"
#include "multihead/models/encoder_decoder.h"
#include "multihead/models/translator_shape.h"
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
    return static_cast<int>(std::count_if(all.begin(), all.end(), [](const Model::Attention& one) {
      return one.place.kind == AttentionKind::kEncoderSelf;
    }));
  }
  const MultiHeadAttention& attention(int layer) const {
    return folder_.model->attention(fmt::format("encoder.{}.self_attention", layer));
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
  static std::string parameter(int layer, const char* name) {
    return fmt::format("encoder.{}.self_attention.{}", layer, name);
  }
  std::string tensor(int layer, const char* name) const {
    return tensor_of(files_, plan_, parameter(layer, name));
  }

  ModelFolder folder_;
  TensorFiles files_;
  FolderPlan plan_;
};

/// Concat(head_1, ...) as the model's own layer computes it.
Matrix heads_of(const MultiHeadAttention& layer, const Matrix& x) {
  Tensor rows = in_float(x);
  const Ragged ragged = Ragged::from_lengths(std::vector<int32_t>{static_cast<int32_t>(x.rows())});
  const Sequences sequences{.ids = {}, .ragged = &ragged, .sentences = {}};
  Tape tape;
  Context context{.tape = tape};
  return in_double(layer.self_heads(context, tape.constant(rows.view()), sequences, Mask::none()).value());
}

/// What the files have of attentions: matrices [d, d], biases [d], and other tensors.
struct StoredCount {
  int matrices = 0, biases = 0, others = 0;

  void add(const std::vector<int64_t>& shape, int d) {
    const bool row = shape.size() == 1 || (shape.size() == 2 && shape[0] == 1);
    (row && shape.back() == d                              ? biases
     : shape.size() == 2 && shape[0] == d && shape[1] == d ? matrices
                                                           : others)++;
  }
  bool is_all(int attentions) const {
    return matrices == 4 * attentions && biases == 4 * attentions && others == 0;
  }
};

/// Of a head's columns of Concat(head_1, ...), `all`, from head_i = Attention(Q_i, K_i, V_i), computed from the head's d/h
/// columns of three of the file's matrices; with `taken` from those of another head.
double difference_from_file(const OpenFolder& folder, int layer, int head, int taken, const Matrix& x,
                            const Matrix& all) {
  const MultiHeadAttention& attention = folder.attention(layer);
  const int size = attention.config().d_model / attention.heads();
  Matrix ones(x.rows(), 1);
  ones.fill(1);
  const auto own = [&](const char* name) {
    return columns(folder.stored(layer, name), taken * size, (taken + 1) * size);
  };
  const auto projected = [&](const char* w, const char* b) {
    return sum(product(x, own(w)), product(ones, own(b)));
  };
  const Matrix q = projected("w_q", "b_q"), k = projected("w_k", "b_k"), v = projected("w_v", "b_v");
  const Matrix found = product(softmax_rows(scaled(product_transposed(q, k), 1 / std::sqrt(size))), v);
  return relative_difference(found, columns(all, head * size, (head + 1) * size));
}

/// Of a claim with the clauses and the table of 002.6.
Claim look_into(std::string_view id, const OpenFolder& folder, const AlgebraCase& a,
                std::map<std::string, std::string> words = {}) {
  const MultiHeadAttention& first = folder.attention(0);
  const int d = first.config().d_model, heads = first.heads(), size = d / heads;
  words["d"] = std::to_string(d), words["heads"] = std::to_string(heads);
  Claim claim = claim_without_figures(id, words);
  StoredCount count;
  for (const auto& [name, entry] : folder.tensors(0)) {
    count.add(entry.shape, d);
    claim.tables[0].rows.push_back({name, fmt::format("[{}]", fmt::join(entry.shape, ", "))});
  }
  decide(claim, count.is_all(1),
         fmt::format("{} matrices [{}, {}], {} biases [{}], {} others", count.matrices, d, d, count.biases, d,
                     count.others));

  Random random(a.seed, 26);
  const Matrix x = random_matrix(7, d, random);
  const double difference = difference_from_file(folder, 0, 0, a.mistake == 2, x, heads_of(first, x));
  decide(claim, difference <= 1e-5,
         fmt::format("largest difference {:.1e} with columns 0 ... {} of {}", difference, size - 1, d));

  // Any W^Q that can be inverted splits the stored matrix: W_0^Q = (W^Q)^-1 W_0^{Q*}.
  const Matrix star = columns(folder.stored(0, "w_q"), 0, size), once = product(x, star);
  const Matrix before = random_rotation(d, random), after = product(transposed(before), star);
  const Matrix split = product(product(x, a.mistake == 3 ? transposed(before) : before), after);
  const double same = relative_difference(split, once);
  decide(claim, same <= 1e-10,
         fmt::format("[{}, {}]; largest difference {:.1e}", star.rows(), star.cols(), same));
  const Matrix twice = product(a.mistake == 4 ? x : product(x, before), star);
  const double apart = norm(sum(twice, once, -1)) / norm(once);
  decide(claim, apart > 0.1, fmt::format("{:.2f} of the norm away", apart));
  return claim;
}

/// The last clause of a folder that was given: all heads of all layers of the encoder.
void look_into_all(Claim& claim, const OpenFolder& folder) {
  const int d = folder.attention(0).config().d_model, layers = folder.layers();
  Random random(AlgebraCase{}.seed, 26);
  const Matrix x = random_matrix(7, d, random);
  StoredCount count;
  int heads = 0;
  double furthest = 0;
  for (int layer = 0; layer < layers; ++layer) {
    for (const auto& [name, entry] : folder.tensors(layer)) count.add(entry.shape, d);
    const Matrix all = heads_of(folder.attention(layer), x);
    const int here = folder.attention(layer).heads();
    for (int head = 0; head < here; ++head)
      furthest = std::max(furthest, difference_from_file(folder, layer, head, head, x, all));
    heads += here;
  }
  decide(claim, count.is_all(layers) && furthest <= 1e-5,
         fmt::format("{} layers: {} matrices, {} biases, {} others; {} heads: largest difference {:.1e}",
                     layers, count.matrices, count.biases, count.others, heads, furthest));
}

}  // namespace

Claim loaded(ArmRunner& runner) {
  std::filesystem::path path = runner.options().checkpoint;
  const bool given = !path.empty();
  if (!given) {
    path = runner.options().runs / "canonical-marian";
    save_model_folder(path, *runner.trained(canonical_arm(runner), runner.seeds()[0]));
  }
  const OpenFolder folder(path);
  const std::string name = (path / "").parent_path().filename().string();
  Claim claim = look_into("002.6, loaded", folder, {},
                          {{"checkpoint", given ? "the folder that was given, " + name
                                                : "a trained canonical model, saved as a Marian folder"}});
  given ? look_into_all(claim, folder) : claim.clauses.pop_back();  // the clause of all layers
  return claim;
}

/// mistake 1: a doubled model is looked into; 2: head 1's columns are taken for head 0's; 3: W^Q transposed;
/// 4: W^Q is left out.
Claim stored_afresh(const AlgebraCase& a) {
  TranslatorShape shape = transformer_preset("tiny");
  shape.vocabulary_size = 11;
  shape.encoder_layers = shape.decoder_layers = 1;
  if (a.mistake == 1) shape.geometry.scores = Scores::kDoubled;
  EncoderDecoder model(shape.config());
  model.initialise(a.seed);
  const ScratchFiles scratch("multihead-study");
  const std::filesystem::path folder = scratch / "model";
  save_model_folder(folder, model);
  return look_into("002.6", OpenFolder(folder), a);
}

}  // namespace mh::two_matrices_or_one
