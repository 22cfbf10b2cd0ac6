#include "multihead/heads/reports/trace/trace_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "multihead/base/error.h"
#include "multihead/base/file.h"
#include "multihead/io/check_option.h"
#include "multihead/io/npy.h"
#include "multihead/io/safetensors.h"

namespace mh {
namespace {

namespace fs = std::filesystem;

struct OwnTensor {
  std::vector<int64_t> shape;
  std::vector<float> numbers;
};
using OwnTensors = std::map<std::string, OwnTensor>;

constexpr std::array kOwnNames = {"w_q", "w_k", "w_v", "w_o", "b_q", "b_k", "b_v", "b_o"};

OwnTensor floats_of(NpyArray array, const std::string& name) {
  if (auto* numbers = std::get_if<std::vector<float>>(&array.data)) return {array.shape, std::move(*numbers)};
  throw FormatError(
      fmt::format("{}: expected float32 or float64, got {}", name,
                  std::holds_alternative<std::vector<bool>>(array.data) ? "booleans" : "whole numbers"));
}

void require_finite_numbers(const std::vector<float>& numbers, const std::string& name) {
  const auto bad = std::find_if(numbers.begin(), numbers.end(), [](float x) { return !std::isfinite(x); });
  if (bad == numbers.end()) return;
  throw FormatError(
      fmt::format("{}: number {} of {} is not finite", name, bad - numbers.begin(), numbers.size()));
}

OwnTensors read_own_tensors(const fs::path& path) {
  OwnTensors found;
  std::error_code code;
  if (fs::is_directory(path, code)) {
    for (const char* name : kOwnNames) {
      const fs::path file = path / (std::string(name) + ".npy");
      if (fs::exists(file, code))
        found[name] = floats_of(read_npy(read_regular_file(file), file.string()), file.string());
    }
  } else {
    const SafetensorsFile file = SafetensorsFile::open(path);
    for (const std::string& name : file.names()) {
      if (std::find(kOwnNames.begin(), kOwnNames.end(), name) == kOwnNames.end()) {
        throw FormatError(fmt::format("{}: tensor {} is unknown; expected {}", path.string(), name,
                                      fmt::join(kOwnNames, ", ")));
      }
      found[name] = {file.shape(name), file.floats(name)};
    }
  }
  for (const char* name : {"w_q", "w_k", "w_v"}) {
    if (!found.contains(name))
      throw FormatError(fmt::format(
          "{} has no {}; expected w_q, w_k, w_v and perhaps w_o, b_q, b_k, b_v, b_o", path.string(), name));
  }
  for (const auto& [name, tensor] : found)
    require_finite_numbers(tensor.numbers, path.string() + ": " + name);
  return found;
}

/// What the shapes say about the layer.
class OwnShapes {
 public:
  OwnShapes(const OwnTensors& tensors, std::string file, const OwnLayerOptions& options)
      : tensors_(tensors), file_(std::move(file)) {
    const OwnTensor& w_q = tensors.at("w_q");
    g_.heads = options.heads > 0 ? options.heads : w_q.shape.size() == 3 ? static_cast<int>(w_q.shape[1]) : 0;
    if (g_.heads == 0)
      throw UsageError(
          fmt::format("{}: w_q is [{}], which does not tell how many heads there are; say it with "
                      "`heads`",
                      file_, fmt::join(w_q.shape, ",")));
    g_.scale = options.scale;
    d_model = static_cast<int>(inputs("w_q"));
    g_.d_key = divided("w_q", outputs("w_q"), g_.heads);
    expect("w_k", inputs("w_k") == d_model, fmt::format("[{},heads * {}]", d_model, g_.d_key));
    expect("w_v", inputs("w_v") == d_model, fmt::format("[{},heads * d_value]", d_model));
    g_.key_heads = divided("w_k", outputs("w_k"), g_.d_key);
    if (tensors.contains("w_o")) {
      d_out = static_cast<int>(outputs("w_o", 1));
      g_.d_value = divided("w_o", inputs("w_o", 1), g_.heads);
    } else {
      g_.d_value = divided("w_v", outputs("w_v"), g_.key_heads);
      g_.output = HeadOutput::kConcatenation;
      expect("w_v", int64_t{g_.heads} * g_.d_value == d_model,
             fmt::format("[{},{}], as there is no w_o", d_model, d_model));
    }
    g_.value_heads = divided("w_v", outputs("w_v"), g_.d_value);
    const bool biased = tensors.contains("b_q") || tensors.contains("b_k") || tensors.contains("b_v") ||
                        tensors.contains("b_o");
    g_.biases = biased ? Biases::kAll : Biases::kNone;
    if (tensors.contains("b_o") && !tensors.contains("w_o"))
      throw FormatError(fmt::format("{} has b_o, but no w_o", file_));
  }

  HeadGeometry geometry() const { return g_; }
  int d_model = 0, d_out = 0;

 private:
  const std::vector<int64_t>& shape(const char* name) const {
    const auto& shape = tensors_.at(name).shape;
    const bool any = std::find(shape.begin(), shape.end(), 0) != shape.end();
    if ((shape.size() == 2 || shape.size() == 3) && !any) return shape;
    throw ShapeError(fmt::format("{}: {} is [{}]; expected a matrix, or one for each head", file_, name,
                                 fmt::join(shape, ",")));
  }
  /// Of a tensor of 2 or 3 axes as a matrix; `last`: how many of its axes are the outputs, 0 for all but the
  /// first.
  int64_t outputs(const char* name, int last = 0) const {
    const auto& s = shape(name);
    return last == 1 ? s.back() : s.size() == 3 ? s[1] * s[2] : s[1];
  }
  int64_t inputs(const char* name, int last = 0) const {
    const auto& s = shape(name);
    return last == 1 && s.size() == 3 ? s[0] * s[1] : s[0];
  }
  int divided(const char* name, int64_t size, int64_t parts) const {
    expect(name, parts > 0 && size % parts == 0,
           fmt::format("{} numbers a row to be a multiple of {}", size, parts));
    return static_cast<int>(size / parts);
  }
  void expect(const char* name, bool right, const std::string& expected) const {
    if (right) return;
    throw ShapeError(fmt::format("{}: {} is [{}]; with {} heads expected {}", file_, name,
                                 fmt::join(tensors_.at(name).shape, ","), g_.heads, expected));
  }

  const OwnTensors& tensors_;
  std::string file_;
  HeadGeometry g_;
};

}  // namespace

std::unique_ptr<MultiHeadAttention> read_own_layer(const fs::path& path, const OwnLayerOptions& options) {
  check_option("heads", options.heads, {.low = 0, .high = 65536});
  if (options.scale) check_option("scale", *options.scale, {});
  const OwnTensors tensors = read_own_tensors(path);
  const OwnShapes shapes(tensors, path.string(), options);
  DropoutStreams streams;
  auto layer = std::make_unique<MultiHeadAttention>(
      path.string(),
      MultiHeadAttentionConfig{
          .d_model = shapes.d_model, .d_out = shapes.d_out, .geometry = shapes.geometry()},
      streams);
  layer->visit("", [&](const std::string& visited, Parameter& parameter) {
    const std::string name = visited.substr(1);
    const auto found = tensors.find(name);
    if (found == tensors.end()) return;  // a bias that is not there is zero
    if (static_cast<int64_t>(found->second.numbers.size()) != parameter.value.size()) {
      throw ShapeError(fmt::format("{}: {} is [{}]; expected {} numbers", path.string(), name,
                                   fmt::join(found->second.shape, ","), parameter.value.size()));
    }
    std::copy(found->second.numbers.begin(), found->second.numbers.end(), parameter.value.data());
    parameter.changed();
  });
  return layer;
}

Tensor read_rows(const fs::path& path) {
  const OwnTensor array = floats_of(read_npy(read_regular_file(path), path.string()), path.string());
  if (array.shape.size() != 2 || array.shape[0] == 0 || array.shape[1] == 0) {
    throw FormatError(fmt::format("{}: expected [tokens, d_model], got [{}]; give one sentence",
                                  path.string(), fmt::join(array.shape, ",")));
  }
  require_finite_numbers(array.numbers, path.string());
  Tensor rows(array.shape[0], array.shape[1]);
  std::copy(array.numbers.begin(), array.numbers.end(), rows.data());
  return rows;
}

OwnMask read_mask(const fs::path& path, int64_t queries, int64_t keys) {
  const NpyArray array = read_npy(read_regular_file(path), path.string());
  if (array.shape != std::vector<int64_t>{queries, keys}) {
    throw FormatError(fmt::format("{}: expected a mask [{},{}], queries by keys, got [{}]", path.string(),
                                  queries, keys, fmt::join(array.shape, ",")));
  }
  OwnMask mask{.words = {}, .words_per_row = (keys + 63) / 64};
  mask.words.resize(static_cast<size_t>(queries * mask.words_per_row));
  std::visit(
      [&](const auto& numbers) {
        for (int64_t i = 0; i < queries; ++i) {
          for (int64_t j = 0; j < keys; ++j) {
            if (numbers[static_cast<size_t>(i * keys + j)] == 0) continue;
            mask.words[static_cast<size_t>(i * mask.words_per_row + j / 64)] |= uint64_t{1} << (j % 64);
          }
        }
      },
      array.data);
  return mask;
}

void save_trace(const AttentionTrace& trace, const fs::path& folder) {
  refuse_foreign_files(folder,
                       [](std::string_view name) { return name.ends_with(".npy") || name == "steps.txt"; });
  FolderWriter writer(folder);
  std::string steps;
  for (const TraceStep& step : trace.steps) {
    const std::vector<int64_t> shape{step.value.rows(), step.value.cols()};
    steps += fmt::format("{}\t[{},{}]\t{}\t{}\n", step.name, shape[0], shape[1], step.formula, step.owner);
    writer.add(
        step.name + ".npy",
        write_npy(shape, std::span<const float>(step.value.data(), static_cast<size_t>(step.value.size()))));
  }
  writer.add("steps.txt", steps);
  writer.commit();
}

}  // namespace mh
