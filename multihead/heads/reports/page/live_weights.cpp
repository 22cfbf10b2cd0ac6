#include "multihead/heads/reports/page/live_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "multihead/autograd/tape.h"
#include "multihead/base/error.h"
#include "multihead/base/stored_matrix.h"
#include "multihead/batch/batch.h"
#include "multihead/folders/file_names.h"
#include "multihead/folders/folder_source.h"
#include "multihead/folders/gguf_folder.h"
#include "multihead/folders/int8_matrices.h"
#include "multihead/folders/sentence_tokens.h"
#include "multihead/folders/tensor_files.h"
#include "multihead/heads/sites/inspected_texts.h"
#include "multihead/heads/sites/observe_text.h"
#include "multihead/heads/sites/text_pass.h"
#include "multihead/io/safetensors.h"
#include "multihead/tensor/cosine.h"

namespace mh {
namespace {

constexpr double kMostOfLogits = 0.01, kLeastCosine = 0.999;

/// A tensor of the rounded file: how it is written, and what makes its bytes.
struct RoundedTensor {
  TensorEntry entry;  // without its place
  std::function<std::string()> bytes;
};

bool is_float(DType type) {
  return type == DType::kF32 || type == DType::kF16 || type == DType::kBF16 || type == DType::kF64;
}

/// How tensors are rounded.
struct Rounding {
  LiveNumbers numbers = LiveNumbers::kFile;
  size_t group = 0;  // numbers of a scale

  bool to_integers(const TensorEntry& entry) const {
    return numbers == LiveNumbers::kInt8 && is_float(entry.dtype) && entry.shape.size() == 2 &&
           entry.shape[1] > 0 && static_cast<size_t>(entry.shape[1]) % group == 0;
  }
  bool to_float16(const TensorEntry& entry) const {
    return numbers == LiveNumbers::kFloat16 && is_float(entry.dtype);
  }
  size_t bytes(const TensorEntry& entry) const {
    const auto count = static_cast<size_t>(entry.elements());
    if (to_float16(entry)) return 2 * count;
    return to_integers(entry) ? count + 2 * (count / group) : entry.end - entry.begin;
  }
};

/// A scale has 64 numbers, and where that would leave matrices out, 32. Of MiniLM 64 make the page 3 % smaller; its vectors have a cosine of at
/// least 0.9992 with those of the file with either, and of 0.9965 with a scale for each row.
Rounding rounding_of(const std::vector<SafetensorsFile>& files, LiveNumbers numbers) {
  constexpr size_t kBlock =
      block_layout(BlockType::kQ8_0).numbers;  // so that they take 8 bits in memory, too
  const Rounding small{numbers, kBlock}, large{numbers, 2 * kBlock};
  for (const SafetensorsFile& file : files) {
    for (const TensorEntry& entry : file.entries()) {
      if (small.to_integers(entry) != large.to_integers(entry)) return small;
    }
  }
  return large;
}

std::string halves_of(std::span<const float> numbers, const std::string& name) {
  std::string bytes(2 * numbers.size(), '\0');
  for (size_t i = 0; i < numbers.size(); ++i) {
    const uint16_t half = to_float16(numbers[i]);
    if (!std::isfinite(from_float16(half)))
      throw Error(fmt::format(
          "tensor {} has the number {}, which float16 does not hold; leave its weights as they are", name,
          numbers[i]));
    std::memcpy(&bytes[2 * i], &half, 2);
  }
  return bytes;
}

/// The integers of a matrix, and their scales.
std::pair<std::string, std::vector<float>> integers_of(std::span<const float> numbers, size_t group,
                                                       const std::string& name) {
  std::string bytes(numbers.size(), '\0');
  std::vector<float> scales;
  const std::span<std::byte> to = std::as_writable_bytes(std::span(bytes));
  for (size_t at = 0; at < numbers.size(); at += group) {
    scales.push_back(quantise_int8_row(numbers.subspan(at, group), to.subspan(at, group)));
    if (!std::isfinite(scales.back()))
      throw Error(fmt::format("tensor {} has numbers that are too large for integers of 8 bits", name));
  }
  return {std::move(bytes), std::move(scales)};
}

/// Adds what becomes of one tensor of `file`, which outlives them.
void add_rounded(std::vector<RoundedTensor>& tensors, const SafetensorsFile& file, const TensorEntry& entry,
                 const Rounding& rounding) {
  const std::string& name = entry.name;
  const auto add = [&](std::string called, DType type, std::vector<int64_t> shape,
                       std::function<std::string()> bytes) {
    tensors.push_back(
        {{.name = std::move(called), .dtype = type, .shape = std::move(shape)}, std::move(bytes)});
  };
  if (rounding.to_integers(entry)) {
    const size_t group = rounding.group;
    // Twice, since integers and scales stand apart in the file: rounding takes less time than inflating the page.
    const auto rounded = [&file, name, group] { return integers_of(file.floats(name), group, name); };
    add(name, DType::kI8, entry.shape, [rounded] { return rounded().first; });
    add(name + std::string(kScaleEnding), DType::kF16,
        {entry.shape[0], entry.shape[1] / static_cast<int64_t>(group)},
        [rounded, name] { return halves_of(rounded().second, name); });
  } else if (rounding.to_float16(entry)) {
    add(name, DType::kF16, entry.shape, [&file, name] { return halves_of(file.floats(name), name); });
  } else {
    add(name, entry.dtype, entry.shape, [&file, name] { return file.bytes(name); });
  }
}

/// Sorted as safetensors sorts them, so that each lies at a multiple of the size of its numbers.
std::string file_of(std::vector<RoundedTensor> tensors) {
  std::sort(tensors.begin(), tensors.end(), [](const RoundedTensor& a, const RoundedTensor& b) {
    return std::pair(-dtype_size(a.entry.dtype), std::string_view(a.entry.name)) <
           std::pair(-dtype_size(b.entry.dtype), std::string_view(b.entry.name));
  });
  std::string data;
  std::vector<TensorEntry> entries;
  for (RoundedTensor& tensor : tensors) {
    tensor.entry.begin = data.size();
    data += tensor.bytes();
    tensor.entry.end = data.size();
    entries.push_back(std::move(tensor.entry));
  }
  return safetensors_header(entries, {{"format", "pt"}}) + data;
}

std::shared_ptr<const MemoryFolder> folder_of(const LiveFiles& files) {
  return std::make_shared<const MemoryFolder>(MemoryFolder::Files(files.begin(), files.end()),
                                              "the model of the page");
}

/// The open files of weights, and their names: shards, and their index, too.
struct WeightFiles {
  std::vector<SafetensorsFile> open;
  std::vector<std::string> names;
};

WeightFiles weight_files(const LiveFiles& files) {
  const std::shared_ptr<const MemoryFolder> folder = folder_of(files);
  WeightFiles found;
  for (const std::string& name : tensor_file_names(*folder)) {
    found.names.push_back(name);
    if (name != kWeightsIndexFile) found.open.push_back(folder->open_tensors(name));
  }
  return found;
}

bool is_gguf_alone(const LiveFiles& files) {
  return files.size() == 1 && is_gguf(files.begin()->first);
}

/// What both models make of one text.
struct TwoLogits {
  ConstMatrixView exact, rounded;
};

size_t largest_at(std::span<const float> row) {
  return static_cast<size_t>(std::max_element(row.begin(), row.end()) - row.begin());
}

void compare(RoundingError& error, const TwoLogits& logits, bool last_row_alone) {
  double least = INFINITY, most = -INFINITY, off = 0;
  const int64_t rows = logits.exact.rows, cols = logits.exact.cols;
  for (int64_t i = 0; i < rows; ++i) {
    const std::span exact(logits.exact.row(i), static_cast<size_t>(cols));
    const std::span rounded(logits.rounded.row(i), static_cast<size_t>(cols));
    for (size_t j = 0; j < exact.size(); ++j) {
      least = std::min<double>(least, exact[j]);
      most = std::max<double>(most, exact[j]);
      off = std::max(off, std::fabs(double{rounded[j]} - exact[j]));
    }
    if ((!last_row_alone || i + 1 == rows) && largest_at(exact) != largest_at(rounded))
      error.same_words = false;
  }
  const double range = most - least;
  error.of_logits = std::max(error.of_logits.value_or(0), range > 0 ? off / range : 0);
}

void compare_logits(RoundingError& error, const ModelFolder& exact, const ModelFolder& rounded,
                    const HeadsText& texts, const TextLanguages& languages) {
  const bool says_words = translates(exact) || is_causal(exact) || exact.labels.has_value();
  for (size_t i = 0; i < texts.sources.size(); ++i) {
    ObserveTextOptions options{.tokens_alone = true, .languages = languages};
    if (!texts.pairs.empty()) options.pair = texts.pairs[i];
    const Observation seen =
        observe_text(exact, texts.sources[i], texts.targets.empty() ? "" : texts.targets[i], options);
    TextPass one(*exact.model, seen), other(*rounded.model, seen);
    const auto logits = [&](TextPass& pass) { return exact.labels ? pass.label_logits() : pass.logits(); };
    const bool same = error.same_words;
    compare(error, {logits(one).value(), logits(other).value()}, is_causal(exact));
    if (!says_words) error.same_words = same;
  }
}

void compare_vectors(RoundingError& error, const SentenceModel& exact, ModelFolder folder,
                     const HeadsText& texts) {
  SentenceModel rounded{.folder = std::move(folder)};
  read_sentence_steps(exact.folder.path, rounded);
  error.cosine = 1;
  for (const TextTokens& text : sentence_tokens(exact, texts.sources, {})) {
    Batch batch;
    batch.add(text.ids, 0, text.types);
    const auto vector_of = [&](const SentenceModel& model, Tape& tape) {
      Context context{.tape = tape};
      const ConstMatrixView vector = model.vectors(context, batch.view()).value();
      return std::span(vector.row(0), static_cast<size_t>(vector.cols));
    };
    Tape one, other;
    error.cosine = std::min(*error.cosine, cosine(vector_of(exact, one), vector_of(rounded, other)));
  }
}

}  // namespace

LiveFiles rounded_files(const LiveFiles& files, LiveNumbers numbers) {
  if (numbers == LiveNumbers::kFile) return files;
  if (is_gguf_alone(files))
    throw UsageError(
        fmt::format("{} is put into the page as it is; leave out `live_weights`, or give a folder",
                    files.begin()->first));
  const WeightFiles weights = weight_files(files);
  const Rounding rounding = rounding_of(weights.open, numbers);
  std::vector<RoundedTensor> tensors;
  std::vector<std::string> integers;
  for (const SafetensorsFile& file : weights.open) {
    for (const TensorEntry& entry : file.entries()) {
      add_rounded(tensors, file, entry, rounding);
      if (rounding.to_integers(entry)) integers.push_back(entry.name);
    }
  }
  LiveFiles rounded = files;
  for (const std::string& name : weights.names) rounded.erase(name);
  rounded[kWeightsFile] = file_of(std::move(tensors));
  if (numbers == LiveNumbers::kInt8) {
    if (integers.empty())
      throw UsageError(
          "`live_weights` int8: the model has no matrix whose rows are a multiple of 32 numbers; take "
          "float16");
    std::string& config = rounded.at(kConfigFile);
    config = with_int8_config(config, integers, {}, static_cast<int64_t>(rounding.group));
  }
  return rounded;
}

std::optional<size_t> rounded_bytes(const LiveFiles& files, LiveNumbers numbers) {
  size_t bytes = 0;
  for (const auto& [name, file] : files) bytes += file.size();
  if (numbers == LiveNumbers::kFile) return bytes;
  if (is_gguf_alone(files)) return std::nullopt;
  bool changes = false;
  const WeightFiles weights = weight_files(files);
  const Rounding rounding = rounding_of(weights.open, numbers);
  for (const SafetensorsFile& file : weights.open) {
    for (const TensorEntry& entry : file.entries()) {
      changes = changes || rounding.to_float16(entry) || rounding.to_integers(entry);
      bytes = bytes - (entry.end - entry.begin) + rounding.bytes(entry);
    }
  }
  return changes ? std::optional(bytes) : std::nullopt;
}

RoundingError rounding_error(const ScoredModel& model, const LiveFiles& rounded, const HeadsText& texts,
                             const TextLanguages& languages) {
  RoundingError error{.texts = std::ssize(texts.sources)};
  ModelFolder folder = load_model_folder(folder_of(rounded));
  if (model.folder().gives_vectors_alone()) {
    compare_vectors(error, model.sentences(), std::move(folder), texts);
  } else {
    compare_logits(error, model.folder(), folder, texts, languages);
  }
  return error;
}

void check_rounding(const RoundingError& error, LiveNumbers numbers) {
  const auto refuse = [&](const std::string& what) {
    throw UsageError(fmt::format("`live_weights` {}: {}; {}", name_of(numbers, kLiveNumbersNames), what,
                                 numbers == LiveNumbers::kInt8 ? "take float16, or file" : "take file"));
  };
  if (error.of_logits && !(*error.of_logits <= kMostOfLogits))
    refuse(fmt::format("a logit is off by {:.2f} % of their range, more than {:.0f} %",
                       100 * *error.of_logits, 100 * kMostOfLogits));
  if (error.cosine && !(*error.cosine >= kLeastCosine))
    refuse(fmt::format("a vector has the cosine {:.5f} with that of the file, less than {}", *error.cosine,
                       kLeastCosine));
  if (!error.same_words) refuse("the model says other words than that of the file");
}

}  // namespace mh
