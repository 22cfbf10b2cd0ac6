#include "multihead/folders/sentence_dense.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <numbers>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "multihead/autograd/plain_loops.h"
#include "multihead/base/error.h"
#include "multihead/base/file.h"
#include "multihead/base/finite.h"
#include "multihead/folders/sentence_settings.h"
#include "multihead/io/config.h"
#include "multihead/io/safetensors.h"
#include "multihead/text/in_quotes.h"

namespace mh {
namespace {

namespace fs = std::filesystem;

/// The module's config.json. The start values are what Dense does without the key.
struct DenseFields {
  int32_t in = 0, out = 0;
  bool bias = true, residual = false;
  std::string activation = "torch.nn.modules.activation.Tanh";
  std::string input = "sentence_embedding";
  std::optional<std::string> output;

  template <class V>
  void visit(V& v) {
    v("in_features", in, {.low = 1, .high = 1 << 20, .required = true});
    v("out_features", out, {.low = 1, .high = 1 << 20, .required = true});
    v("bias", bias);
    v("use_residual", residual);
    v("activation_function", activation);
    v("module_input_name", input);
    v("module_output_name", output);
  }
};

double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}
/// The normal distribution's share below x, and its density.
double below(double x) {
  return std::erfc(-x / std::numbers::sqrt2) / 2;
}
double density(double x) {
  return std::exp(-x * x / 2) * std::numbers::inv_sqrtpi / std::numbers::sqrt2;
}

constexpr SentenceActivation kActivations[] = {
    {.name = "Tanh",
     .value = [](double x) { return std::tanh(x); },
     .slope = [](double x) { return 1 - std::tanh(x) * std::tanh(x); }},
    {.name = "ReLU",
     .value = [](double x) { return x > 0 ? x : 0; },
     .slope = [](double x) { return x > 0 ? 1.0 : 0.0; }},
    {.name = "GELU",
     .value = [](double x) { return x * below(x); },
     .slope = [](double x) { return below(x) + x * density(x); }},
    {.name = "SiLU",
     .value = [](double x) { return x * sigmoid(x); },
     .slope = [](double x) { return sigmoid(x) * (1 + x * (1 - sigmoid(x))); }},
    {.name = "Sigmoid", .value = sigmoid, .slope = [](double x) { return sigmoid(x) * (1 - sigmoid(x)); }}};

/// Null: the identity. torch.nn has its classes in its modules, too: "torch.nn.modules.linear.Identity".
const SentenceActivation* activation_of(const std::string& given, const std::string& file) {
  constexpr std::string_view kIdentity = "Identity";
  const std::string_view name = std::string_view(given).substr(given.rfind('.') + 1);
  std::vector<std::string_view> known{kIdentity};
  if (given.starts_with("torch.nn.")) {
    if (name == kIdentity) return nullptr;
    for (const SentenceActivation& one : kActivations) {
      if (name == one.name) return &one;
    }
  }
  for (const SentenceActivation& one : kActivations) known.push_back(one.name);
  throw FormatError(fmt::format("{}: activation_function {} is not supported; only {} of torch.nn are", file,
                                in_quotes(given, kWholeName), fmt::join(known, ", ")));
}

/// Dense is small beside the Transformer, so these are plain loops.
Var activated(Tape& tape, Var rows, const SentenceActivation& activation) {
  Var y = ops::detail::filled(tape, rows.rows(), rows.cols(), {rows}, [&](int64_t i, int64_t j) {
    return static_cast<float>(activation.value(static_cast<double>(rows.value()(i, j))));
  });
  tape.record(y, [&tape, rows, y, activation = &activation] {
    ops::detail::pass_on(tape, rows, [&](int64_t i, int64_t j) {
      const auto x = static_cast<double>(rows.value()(i, j));
      // Held: (f(x) - f(0)) / x, so that what is left over is a bias.
      const double factor = tape.stream_alone() && x != 0 ? (activation->value(x) - activation->value(0)) / x
                                                          : activation->slope(x);
      return y.gradient()(i, j) * static_cast<float>(factor);
    });
  });
  return y;
}

/// The numbers of a tensor of this shape.
std::vector<float> numbers_of(const SafetensorsFile& weights, const std::string& file, const char* tensor,
                              const std::vector<int64_t>& shape) {
  if (!weights.contains(tensor)) throw FormatError(fmt::format("{}: no tensor {}", file, tensor));
  if (weights.shape(tensor) != shape) {
    throw FormatError(fmt::format(
        "{}: {} has another shape than config.json says; take both from the same model", file, tensor));
  }
  std::vector<float> numbers = weights.floats(tensor);
  if (!all_finite(numbers))
    throw FormatError(fmt::format("{}: {} has numbers that are not finite", file, tensor));
  return numbers;
}

}  // namespace

SentenceDense::SentenceDense(Weight w, std::optional<Weight> b, const SentenceActivation* activation)
    : activation_(activation) {
  w_.value = std::move(w);
  const bool has_bias = b.has_value();
  if (has_bias) b_.value = std::move(*b);
  affine_ = Affine({&w_}, has_bias ? std::vector<const Parameter*>{&b_} : std::vector<const Parameter*>{});
}

Var SentenceDense::of(Tape& tape, Var rows) const {
  const Var result = affine(tape, rows, affine_);
  require_finite(result.value(), "sentence vectors");  // tanh would make 1 of infinity
  return activation_ != nullptr ? activated(tape, result, *activation_) : result;
}

std::shared_ptr<const SentenceDense> load_sentence_dense(const fs::path& folder, int64_t inputs,
                                                         std::vector<std::string>& remarks) {
  const std::string config_file = (folder / "config.json").string();
  DenseFields fields;
  remark_unknown_keys(JsonFile(folder / "config.json"), {.obeyed = keys_of(fields)}, remarks);
  from_json(fields, read_regular_file(config_file), config_file, UnknownKeys::kIgnore);
  const SentenceActivation* const activation = activation_of(fields.activation, config_file);
  if (fields.residual) throw FormatError(fmt::format("{}: use_residual is not supported", config_file));
  if (fields.input != "sentence_embedding" || fields.output.value_or(fields.input) != fields.input) {
    throw FormatError(fmt::format("{}: expected a layer of the sentence_embedding, got {} to {}", config_file,
                                  in_quotes(fields.input), in_quotes(fields.output.value_or(fields.input))));
  }
  if (fields.in != inputs) {
    throw FormatError(fmt::format("{}: in_features is {}, but the vectors before it have {} numbers",
                                  config_file, fields.in, inputs));
  }
  const fs::path path = folder / "model.safetensors";
  std::error_code code;
  if (!fs::exists(path, code) && fs::exists(folder / "pytorch_model.bin", code)) {
    throw FileError(
        fmt::format("{} has no model.safetensors; its weights are a pickle, which multihead does not "
                    "read: save the model again with sentence-transformers",
                    folder.string()),
        ENOENT);
  }
  const SafetensorsFile weights = SafetensorsFile::open(path);
  const std::string file = path.string();
  // torch's Linear has [out, in].
  auto w = std::make_shared<const std::vector<float>>(
      numbers_of(weights, file, "linear.weight", {fields.out, fields.in}));
  const StoredMatrix stored{.data = reinterpret_cast<const std::byte*>(w->data()),
                            .type = NumberType::kFloat32,
                            .rows = fields.out,
                            .cols = fields.in,
                            .row_stride = fields.in};
  std::optional<Weight> bias;
  if (fields.bias) {
    const std::vector<float> b = numbers_of(weights, file, "linear.bias", {fields.out});
    Tensor row(1, fields.out);
    std::copy(b.begin(), b.end(), row.data());
    bias.emplace(std::move(row));
  }
  return std::make_shared<const SentenceDense>(Weight(stored.transposed(), w), std::move(bias), activation);
}

}  // namespace mh
