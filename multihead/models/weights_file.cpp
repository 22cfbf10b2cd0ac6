#include "multihead/models/weights_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/kernels/embedding.h"

namespace mh {
namespace {

using Layout = TensorPlace::Layout;

std::vector<int64_t> shape_in_file(ConstMatrixView value, Layout layout) {
  switch (layout) {
    case Layout::kTransposed:
      return {value.cols, value.rows};
    case Layout::kVector:
      return {value.cols};
    case Layout::kMatrix:
      break;
  }
  return {value.rows, value.cols};
}

template <class From, class To>
void transpose(const From* from, To* to, int64_t rows, int64_t cols) {
  constexpr int64_t kBlock = 32;  // both sides stay within the cache
  for (int64_t row = 0; row < rows; row += kBlock) {
    for (int64_t col = 0; col < cols; col += kBlock) {
      for (int64_t i = row; i < std::min(rows, row + kBlock); ++i) {
        for (int64_t j = col; j < std::min(cols, col + kBlock); ++j) to[j * rows + i] = from[i * cols + j];
      }
    }
  }
}

bool is_floating(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16 || dtype == DType::kF64;
}

// What is wrong with a file, by kind.
class Differences {
 public:
  void missing(const std::string& name) { missing_.push_back(name); }
  void unused(const std::string& name) { unused_.push_back(name); }
  void other(std::string clause) { others_.push_back(std::move(clause)); }

  void throw_if_any(const std::string& file) const {
    std::vector<std::string> clauses;
    if (!missing_.empty()) clauses.push_back("missing: " + listed(missing_, ", "));
    if (!others_.empty()) clauses.push_back(listed(others_, "; "));
    if (!unused_.empty()) clauses.push_back("not used: " + listed(unused_, ", "));
    if (clauses.empty()) return;
    throw FormatError(fmt::format("{} does not fit config.json: {}; take both files from the same model",
                                  file, fmt::join(clauses, "; ")));
  }

 private:
  static constexpr size_t kMostListed = 100;
  static std::string listed(const std::vector<std::string>& items, const char* separator) {
    const size_t shown = std::min(items.size(), kMostListed);
    std::string text =
        fmt::format("{}", fmt::join(items.begin(), items.begin() + static_cast<ptrdiff_t>(shown), separator));
    if (shown < items.size()) text += fmt::format("{}and {} more", separator, items.size() - shown);
    return text;
  }
  std::vector<std::string> missing_, unused_, others_;
};

void refuse_far_too_large(const EncoderDecoderConfig& config, const SafetensorsFile& file,
                          const std::string& name) {
  double present = 0;
  for (const TensorEntry& entry : file.entries()) present += static_cast<double>(entry.elements());
  const double expected = least_parameters(config);
  if (expected <= 4 * present + 1e6) return;  // near enough to list each difference
  throw FormatError(
      fmt::format("{} holds {:.0f} numbers, but config.json describes a model of at least {:.0f}; take both "
                  "files from the same model",
                  name, present, expected));
}

const std::string* first_present(const SafetensorsFile& file, const TensorPlace& place) {
  for (const std::string& name : place.names) {
    if (file.contains(name)) return &name;
  }
  return nullptr;
}

// Reads one tensor into its parameter, or says why not.
void read_parameter(const SafetensorsFile& file, const std::string& tensor, Layout layout,
                    Parameter& parameter, Differences& differences) {
  const TensorEntry& entry = file.entry(tensor);
  const std::vector<int64_t> expected = shape_in_file(parameter.value.view(), layout);
  if (entry.shape != expected) {
    differences.other(fmt::format("shape of {}: expected [{}], got [{}]", tensor, fmt::join(expected, ","),
                                  fmt::join(entry.shape, ",")));
    return;
  }
  if (!is_floating(entry.dtype)) {
    differences.other(
        fmt::format("type of {}: expected F32, F16 or BF16, got {}", tensor, dtype_name(entry.dtype)));
    return;
  }
  const MatrixView value = parameter.value.view();
  const auto size = static_cast<size_t>(value.size());
  if (layout == Layout::kTransposed) {
    const std::vector<float> numbers = file.floats(tensor);
    transpose(numbers.data(), value.data, value.cols, value.rows);
  } else {
    file.read_floats(tensor, {value.data, size});
  }
  const auto bad = std::count_if(value.data, value.data + size, [](float x) { return !std::isfinite(x); });
  if (bad > 0) {
    differences.other(
        fmt::format("not finite: {} of {} numbers of {} (the training diverged, or the file is damaged)", bad,
                    size, tensor));
  }
  parameter.changed();
}

bool holds(const SafetensorsFile& file, const std::string& tensor, const Tensor& expected, float tolerance) {
  const TensorEntry& entry = file.entry(tensor);
  if (entry.shape != std::vector<int64_t>{expected.rows(), expected.cols()} || !is_floating(entry.dtype))
    return false;
  const std::vector<float> found = file.floats(tensor);
  return std::equal(found.begin(), found.end(), expected.data(),
                    [&](float a, float b) { return std::abs(a - b) <= tolerance; });
}

// Marian's files may repeat the shared embedding under the names of its users, and may hold the sinusoids.
// Returns the names of those it has.
std::set<std::string> check_repeated(const SafetensorsFile& file, EncoderDecoder& model, ModelType type,
                                     const std::set<std::string>& used, Tying tying,
                                     Differences& differences) {
  constexpr float kHalfPrecision = 0.01f;
  std::set<std::string> found;
  const EncoderDecoderConfig& config = model.config();
  for (const std::string& tensor : repeated_tensors(type)) {
    if (!file.contains(tensor) || used.contains(tensor)) continue;
    found.insert(tensor);
    if (tensor.find("embed_positions") != std::string::npos) {
      Tensor positions(config.max_positions, config.d_model);
      sinusoids(positions.view());
      if (!holds(file, tensor, positions, kHalfPrecision)) {
        differences.other(fmt::format("{} holds something else than the [{},{}] sinusoids of Marian", tensor,
                                      config.max_positions, config.d_model));
      }
    } else if (tying.all()) {
      model.visit([&](const std::string& name, Parameter& parameter) {
        if (name == "embedding" && !holds(file, tensor, parameter.value.tensor(), 0)) {
          differences.other(
              fmt::format("{} is not the shared embedding, though config.json ties them", tensor));
        }
      });
    }
  }
  return found;
}

}  // namespace

double least_parameters(const EncoderDecoderConfig& c) {
  const double d = c.d_model;
  return d * c.vocabulary_size + c.encoder_layers * (4 * d * d + 2 * d * c.encoder_ff) +
         c.decoder_layers * (8 * d * d + 2 * d * c.decoder_ff);
}

std::string write_weights(const EncoderDecoder& model, ModelType type, Tying tying) {
  std::vector<NamedTensor> tensors;
  std::vector<std::unique_ptr<std::vector<float>>> transposed;  // alive until the file is written
  model.visit([&](const std::string& name, const Parameter& parameter) {
    const TensorPlace place = tensor_place(type, name, tying);
    const ConstMatrixView value = parameter.value.view();
    NamedTensor tensor{
        .name = place.names.front(), .shape = shape_in_file(value, place.layout), .data = value};
    if (place.layout == Layout::kTransposed) {
      transposed.push_back(std::make_unique<std::vector<float>>(value.size()));
      transpose(value.data, transposed.back()->data(), value.rows, value.cols);
      tensor.data = std::span<const float>(*transposed.back());
    } else if (place.layout == Layout::kVector) {
      tensor.data = std::span<const float>(value.data, static_cast<size_t>(value.size()));
    }
    tensors.push_back(std::move(tensor));
  });
  return write_safetensors(tensors, {{"format", "pt"}});  // transformers asks for "format"
}

std::unique_ptr<EncoderDecoder> read_weights(const SafetensorsFile& file, const std::string& name,
                                             const EncoderDecoderConfig& config, ModelType type,
                                             Tying tying) {
  refuse_far_too_large(config, file, name);
  auto model = std::make_unique<EncoderDecoder>(config);
  Differences differences;
  std::set<std::string> used;
  model->visit([&](const std::string& parameter_name, Parameter& parameter) {
    const TensorPlace place = tensor_place(type, parameter_name, tying);
    const std::string* tensor = first_present(file, place);
    if (tensor != nullptr) {
      used.insert(*tensor);
      read_parameter(file, *tensor, place.layout, parameter, differences);
    } else if (place.may_be_missing) {
      parameter.value.fill(0);
      parameter.changed();
    } else {
      differences.missing(place.names.front());
    }
  });
  const std::set<std::string> repeated = check_repeated(file, *model, type, used, tying, differences);
  for (const TensorEntry& entry : file.entries()) {
    if (!used.contains(entry.name) && !repeated.contains(entry.name)) differences.unused(entry.name);
  }
  differences.throw_if_any(name);
  return model;
}

}  // namespace mh
