#include "multihead/folders/write_parameters.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <utility>

#include "multihead/base/error.h"
#include "multihead/base/finite.h"
#include "multihead/folders/file_names.h"
#include "multihead/folders/int8_matrices.h"
#include "multihead/folders/part_columns.h"
#include "multihead/folders/replaced_folder.h"
#include "multihead/io/safetensors.h"

namespace mh {
namespace {

using Layout = TensorPlace::Layout;

/// A parameter in the tensor that it is written to, of which it may be a part.
struct Part {
  const Parameter* parameter = nullptr;
  TensorPlace place = {};
};

/// The numbers of a tensor, as rows in the order of the file: those of its parts side by side, or, where matrices lie
/// transposed, one below the other.
class TensorRows {
 public:
  explicit TensorRows(const std::vector<Part>& parts) {
    below_ = parts.front().place.layout == Layout::kTransposed;
    offset_ = parts.front().place.offset;
    std::vector<int64_t> widths;
    for (const Part& part : parts) widths.push_back(part.parameter->value.cols());
    for (size_t i = 0; i < parts.size(); ++i) {
      const BorrowedMatrix& numbers = borrowed_.emplace_back(parts[i].parameter->value.borrow());
      for (const ColumnRun& run : column_runs(widths, static_cast<int>(i), parts[i].place.block)) {
        const StoredMatrix columns = numbers.matrix.columns_between(run.first, run.first + run.count);
        pieces_.push_back({.numbers = below_ ? columns.transposed() : columns, .at = run.at});
      }
      const int64_t rows = numbers.matrix.rows, cols = numbers.matrix.cols;
      cols_ = below_ ? rows : cols_ + cols;
      rows_ = below_ ? rows_ + cols : rows;
    }
  }
  explicit TensorRows(std::vector<float> copied)
      : copied_(std::move(copied)), rows_(1), cols_(std::ssize(copied_)) {
    pieces_.push_back({.numbers = StoredMatrix::of(ConstMatrixView(copied_.data(), 1, cols_))});
  }

  int64_t rows() const { return rows_; }
  int64_t cols() const { return cols_; }
  /// Rows [begin, end), row after row.
  void read(int64_t begin, int64_t end, float* to) const {
    for (const auto& [numbers, at] : pieces_) {
      const int64_t column = below_ ? 0 : at, above = below_ ? at : 0;
      const int64_t first = std::max(begin, above), last = std::min(end, above + numbers.rows);
      const auto row = [&](int64_t i) { return to + (i - begin) * cols_ + column; };
      if (numbers.col_stride == 1) {
        for (int64_t i = first; i < last; ++i) numbers.read_row(i - above, 0, numbers.cols, row(i));
      } else {  // in the order of memory: a column of these rows is one run of it
        for (int64_t j = 0; j < numbers.cols; ++j) {
          for (int64_t i = first; i < last; ++i) row(i)[j] = numbers(i - above, j);
        }
      }
    }
    if (offset_ == 0) return;
    for (int64_t i = 0; i < (end - begin) * cols_; ++i) to[i] -= offset_;
  }

 private:
  /// A run of the columns of a part, where the tensor has it: as columns, or as rows where matrices lie transposed.
  struct Piece {
    StoredMatrix numbers;
    int64_t at = 0;
  };

  std::vector<float> copied_;
  std::vector<BorrowedMatrix> borrowed_;
  std::vector<Piece> pieces_;
  float offset_ = 0;
  int64_t rows_ = 0, cols_ = 0;
  bool below_ = false;
};

/// A tensor to write, whose numbers are asked for when it is its turn.
struct Output {
  std::vector<int64_t> shape;
  std::vector<Part> parts = {};  // empty: it is copied
  bool int8 = false;             // as integers, behind which their scales follow
};
using Outputs = std::map<std::string, Output>;  // by name, as they lie in a file

Outputs outputs_of(const Model& model, const std::function<TensorPlace(std::string_view)>& place_of,
                   const WriteParametersOptions& options) {
  Outputs outputs;
  model.visit(ConstParameterVisitor([&](const std::string& name, const Parameter& parameter) {
    const TensorPlace place = place_of(name);
    Output& output = outputs[place.names.front()];
    output.parts.resize(static_cast<size_t>(place.parts));
    output.parts[static_cast<size_t>(place.part)] = {&parameter, place};
  }));
  for (auto& [name, output] : outputs) {
    // Heads of another geometry may lack some: merged ones have no keys. As read_parameters() reads it, that takes no columns.
    std::erase_if(output.parts, [](const Part& part) { return part.parameter == nullptr; });
    int64_t cols = 0;
    for (const Part& part : output.parts) cols += part.parameter->value.cols();
    const Part& first = output.parts.front();
    output.shape = shape_of(first.place.layout, first.parameter->value.rows(), cols);
    output.int8 = options.matrices == SavedMatrices::kInt8 && first.place.layout == Layout::kTransposed &&
                  output.shape[1] % block_layout(BlockType::kQ8_0).numbers == 0;
  }
  for (const std::string& name : options.copied)
    outputs[name].shape = options.copied_from->tensor(name).shape;
  return outputs;
}

using NamedOutput = std::pair<std::string, const Output*>;

int64_t bytes_of(const Output& output, NumberType type) {
  int64_t count = 1;
  for (const int64_t size : output.shape) count *= size;
  return output.int8 ? count + output.shape[0] * number_size(type) : count * number_size(type);
}

std::string header_of(std::span<const NamedOutput> tensors, NumberType type) {
  std::vector<TensorEntry> entries;
  uint64_t at = 0;
  const DType numbers = type == NumberType::kFloat32 ? DType::kF32 : DType::kBF16;
  const auto add = [&](const std::string& name, DType dtype, std::vector<int64_t> shape, uint64_t bytes) {
    entries.push_back(
        {.name = name, .dtype = dtype, .shape = std::move(shape), .begin = at, .end = at + bytes});
    at += bytes;
  };
  for (const auto& [name, output] : tensors) {
    const auto bytes = static_cast<uint64_t>(bytes_of(*output, type));
    if (output->int8) {
      const auto scales = static_cast<uint64_t>(output->shape[0] * number_size(type));
      add(name, DType::kI8, output->shape, bytes - scales);
      add(name + std::string(kScaleEnding), numbers, {output->shape[0], 1}, scales);
    } else {
      add(name, numbers, output->shape, bytes);
    }
  }
  return safetensors_header(entries,
                            {{"format", "pt"}, {kWriterKey, kWriter}});  // transformers asks for "format"
}

/// The pieces of one file of tensors.
class FilePieces {
 public:
  FilePieces(std::span<const NamedOutput> tensors, const WriteParametersOptions& options)
      : header_(header_of(tensors, options.type)), tensors_(tensors), options_(options) {}

  std::string_view next() {
    if (!header_.empty()) {
      bytes_ = std::exchange(header_, {});
      return bytes_;
    }
    while (!rows_ || row_ == rows_->rows()) {
      if (!scales_.empty()) {
        numbers_ = std::exchange(scales_, {});
        write_numbers();
        return bytes_;
      }
      if (tensor_ == tensors_.size()) return {};
      const auto& [name, output] = tensors_[tensor_++];
      rows_.reset();  // lets the last one's memory go first
      if (output->parts.empty()) {
        rows_.emplace(options_.copied_from->floats(name));
      } else {
        rows_.emplace(output->parts);
      }
      row_ = 0;
    }
    constexpr int64_t kNumbers = int64_t{1} << 20;
    const int64_t cols = rows_->cols();
    const int64_t end =
        std::min(rows_->rows(), row_ + std::max<int64_t>(1, kNumbers / std::max<int64_t>(1, cols)));
    numbers_.resize(static_cast<size_t>((end - row_) * cols));
    rows_->read(row_, end, numbers_.data());
    row_ = end;
    if (tensors_[tensor_ - 1].second->int8) {
      write_integers(cols);
    } else {
      write_numbers();
    }
    return numbers_.empty() ? next() : std::string_view(bytes_);
  }

 private:
  void write_integers(int64_t cols) {
    bytes_.resize(numbers_.size());
    const auto width = static_cast<size_t>(cols);
    const std::span<std::byte> to = std::as_writable_bytes(std::span(bytes_));
    if (!all_finite(numbers_)) refuse("");
    for (size_t at = 0; at < numbers_.size(); at += width) {
      scales_.push_back(quantise_int8_row(std::span(numbers_).subspan(at, width), to.subspan(at, width)));
      if (!std::isfinite(scales_.back())) refuse(" as integers of 8 bits");
    }
  }
  void write_numbers() {
    const auto size = static_cast<size_t>(number_size(options_.type));
    bytes_.resize(numbers_.size() * size);
    bool finite = all_finite(numbers_);
    if (options_.type == NumberType::kFloat32) {
      std::memcpy(bytes_.data(), numbers_.data(), bytes_.size());
    } else {
      for (size_t i = 0; finite && i < numbers_.size(); ++i) {
        const uint16_t rounded = to_bfloat16(numbers_[i]);
        finite = std::isfinite(from_bfloat16(rounded));
        std::memcpy(bytes_.data() + i * size, &rounded, size);
      }
    }
    if (!finite) refuse(options_.type == NumberType::kBFloat16 ? " in bfloat16" : "");
  }
  [[noreturn]] void refuse(const char* stored) const {
    throw Error(fmt::format("tensor {} has numbers that are not finite{}; nothing was written",
                            tensors_[tensor_ - 1].first, stored));
  }

  std::string header_, bytes_;
  std::span<const NamedOutput> tensors_;
  const WriteParametersOptions& options_;
  size_t tensor_ = 0;  // the next one
  std::optional<TensorRows> rows_;
  int64_t row_ = 0;
  std::vector<float> numbers_;
  std::vector<float> scales_;  // of the rows that were written as integers
};

}  // namespace

const char* saved_type_name(NumberType type) {
  switch (type) {
    case NumberType::kFloat32:
      return "float32";
    case NumberType::kBFloat16:
      return "bfloat16";
    case NumberType::kFloat16:
      break;
  }
  throw UsageError("parameters are written as float32 or bfloat16, not as float16");
}

std::vector<std::string> int8_tensors(const Model& model,
                                      const std::function<TensorPlace(std::string_view)>& place,
                                      const WriteParametersOptions& options) {
  std::vector<std::string> names;
  for (const auto& [name, output] : outputs_of(model, place, options)) {
    if (output.int8) names.push_back(name);
  }
  return names;
}

std::vector<std::string> write_parameters(FolderWriter& folder, const Model& model,
                                          const std::function<TensorPlace(std::string_view)>& place,
                                          const WriteParametersOptions& options) {
  saved_type_name(options.type);  // refuses others
  const Outputs outputs = outputs_of(model, place, options);
  std::vector<NamedOutput> all;
  std::vector<size_t> begins;  // of the files
  int64_t in_file = 0, total = 0;
  for (const auto& [name, output] : outputs) {
    const int64_t bytes = bytes_of(output, options.type);
    if (begins.empty() || (in_file > 0 && in_file + bytes > options.largest_file)) {
      begins.push_back(all.size());
      in_file = 0;
    }
    in_file += bytes;
    total += bytes;
    all.emplace_back(name, &output);
  }
  const size_t files = begins.size();
  begins.push_back(all.size());
  std::vector<std::string> names;
  nlohmann::ordered_json index;
  index["metadata"]["total_size"] = total;
  for (size_t f = 0; f < files; ++f) {
    const std::string& file = names.emplace_back(
        files == 1 ? kWeightsFile : fmt::format("model-{:05}-of-{:05}.safetensors", f + 1, files));
    const auto tensors = std::span(all).subspan(begins[f], begins[f + 1] - begins[f]);
    for (const auto& [name, output] : tensors) {
      index["weight_map"][name] = file;
      if (output->int8) index["weight_map"][name + std::string(kScaleEnding)] = file;
    }
    FilePieces pieces(tensors, options);
    folder.add_pieces(file, [&] { return pieces.next(); });
  }
  if (files > 1) {
    folder.add(kWeightsIndexFile, index.dump(2) + "\n");
    names.emplace_back(kWeightsIndexFile);
  }
  return names;
}

std::string parameters_as_file(const Model& model,
                               const std::function<TensorPlace(std::string_view)>& place) {
  const WriteParametersOptions options;
  saved_type_name(options.type);  // refuses others
  const Outputs outputs = outputs_of(model, place, options);
  std::vector<NamedOutput> all;
  for (const auto& [name, output] : outputs) all.emplace_back(name, &output);
  FilePieces pieces(all, options);
  std::string bytes;
  for (std::string_view piece = pieces.next(); !piece.empty(); piece = pieces.next()) bytes += piece;
  return bytes;
}

}  // namespace mh
