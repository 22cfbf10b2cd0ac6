#include "multihead/folders/parameters.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/base/thread_pool.h"
#include "multihead/folders/part_columns.h"

namespace mh {
namespace {

using Layout = TensorPlace::Layout;

void refuse_far_too_large(const TensorFiles& files, const FolderPlan& plan) {
  const double present = files.elements();
  if (plan.least_parameters <= 4 * present + 1e6) return;  // near enough to list each difference
  throw FormatError(fmt::format("{} holds {:.0f} numbers, but {} describes a model of at least {:.0f}; {}",
                                files.name(), present, plan.description, plan.least_parameters, plan.remedy));
}

/// A parameter and the tensor that it is read from.
struct Assignment {
  Parameter* parameter;
  std::string name;  // the tensor's
  const FileTensor* tensor;
  TensorPlace place;
  std::vector<ColumnRun> runs = {};  // its own columns in the tensor
  int64_t columns = 0;               // all of the tensor
};

/// The parts of a fused tensor lie side by side. What is missing takes no columns.
void find_columns(std::vector<Assignment>& assignments) {
  std::map<std::string_view, std::vector<int64_t>> widths;  // of each tensor's parts
  for (const Assignment& from : assignments) {
    std::vector<int64_t>& parts = widths[from.name];
    parts.resize(static_cast<size_t>(from.place.parts));
    parts[static_cast<size_t>(from.place.part)] = from.parameter->value.cols();
  }
  for (Assignment& from : assignments) {
    const std::vector<int64_t>& parts = widths[from.name];
    from.runs = column_runs(parts, from.place.part, from.place.block);
    from.columns = std::accumulate(parts.begin(), parts.end(), int64_t{0});
  }
}

/// As the model multiplies with it: [rows, cols] of the whole tensor.
StoredMatrix matrix_of(const std::byte* data, NumberType type, const Assignment& from) {
  const Weight& value = from.parameter->value;
  const bool transposed = from.place.layout == Layout::kTransposed;
  const StoredMatrix stored{.data = data,
                            .type = type,
                            .rows = transposed ? from.columns : value.rows(),
                            .cols = transposed ? value.rows() : from.columns,
                            .row_stride = transposed ? value.rows() : from.columns};
  return transposed ? stored.transposed() : stored;
}

/// Rows of a tensor [out, in] that belong to one parameter, where they do not lie below each other.
class RunsOfRows : public NumberSource {
 public:
  /// whole: the tensor as the model multiplies with it, whose columns are the tensor's rows.
  RunsOfRows(const StoredNumbers& numbers, const Assignment& from)
      : keeper_(numbers.keeper),
        whole_(matrix_of(numbers.data, numbers.type, from).transposed()),
        runs_(from.runs) {}

  void read_rows(int64_t begin, int64_t end, float* to) const override {
    for (const ColumnRun& run : runs_) {
      const int64_t last = std::min(end, run.first + run.count);
      for (int64_t i = std::max(begin, run.first); i < last; ++i)
        whole_.read_row(run.at + i - run.first, 0, whole_.cols, to + (i - begin) * whole_.cols);
    }
  }

 private:
  std::shared_ptr<const void> keeper_;
  StoredMatrix whole_;
  std::vector<ColumnRun> runs_;
};

/// The parameter's numbers, copied.
Tensor copied(const StoredMatrix& whole, const Assignment& from) {
  Tensor to(whole.rows, from.parameter->value.cols());
  for (int64_t i = 0; i < to.rows(); ++i) {
    float* const row = to.view().row(i);
    for (const ColumnRun& run : from.runs) whole.read_row(i, run.at, run.count, row + run.first);
    for (int64_t j = 0; j < to.cols(); ++j) row[j] += from.place.offset;
  }
  return to;
}

/// Whether a tensor fits a parameter; otherwise says why not. Converts no numbers.
bool fits(const Assignment& from, Differences& differences) {
  const FileTensor& found = *from.tensor;
  const std::vector<int64_t> expected =
      shape_of(from.place.layout, from.parameter->value.rows(), from.columns);
  if (found.shape != expected) {
    differences.other(fmt::format("shape of {}: expected [{}], got [{}]", from.name, fmt::join(expected, ","),
                                  fmt::join(found.shape, ",")));
    return false;
  }
  if (!found.numbers)
    differences.other(fmt::format("type of {}: expected F32, F16 or BF16, got {}", from.name, found.type));
  return static_cast<bool>(found.numbers);
}

/// Of every tensor once, many at a time.
void refuse_not_finite(const std::vector<Assignment>& assignments, Differences& differences) {
  std::set<std::string_view> seen;  // a tensor may belong to several parameters
  std::vector<const Assignment*> first;
  for (const Assignment& from : assignments) {
    if (seen.insert(from.name).second) first.push_back(&from);
  }
  std::vector<int64_t> bad(first.size());
  parallel_for(static_cast<int64_t>(first.size()), [&](int64_t task) {
    const auto i = static_cast<size_t>(task);
    bad[i] = first[i]->tensor->not_finite();
  });
  for (size_t i = 0; i < first.size(); ++i) {
    if (bad[i] == 0) continue;
    differences.other(
        fmt::format("not finite: {} of {} numbers of {} (the training diverged, or the file is damaged)",
                    bad[i], first[i]->tensor->elements(), first[i]->name));
  }
}

void read_parameter(const Assignment& from) {
  Parameter& parameter = *from.parameter;
  // Of a tensor with the numbers of several parameters its share.
  const double share = static_cast<double>(parameter.value.size()) /
                       static_cast<double>(std::max<int64_t>(1, from.tensor->elements()));
  parameter.stored_as = {.type = from.tensor->type,
                         .bytes = std::llround(static_cast<double>(from.tensor->bytes) * share)};
  const auto& source = from.tensor->source;
  if (source && from.place.layout != Layout::kVector && from.place.parts == 1 && from.place.offset == 0) {
    parameter.value = Weight(parameter.value.rows(), parameter.value.cols(), source,
                             from.place.layout == Layout::kTransposed);
  } else {
    StoredNumbers numbers = from.tensor->numbers();
    const StoredMatrix whole = matrix_of(numbers.data, numbers.type, from);
    const ColumnRun& first = from.runs.front();
    if (from.place.offset != 0 || (from.runs.size() > 1 && from.place.layout != Layout::kTransposed)) {
      parameter.value = copied(whole, from);
    } else if (from.runs.size() > 1) {
      parameter.value = Weight(parameter.value.rows(), parameter.value.cols(),
                               std::make_shared<RunsOfRows>(numbers, from), /*transposed=*/true);
    } else {
      parameter.value = Weight(whole.columns_between(first.at, first.at + first.count),
                               std::move(numbers.keeper), numbers.in_file);
    }
  }
  parameter.changed();
}

/// The first of the place's names that is there, under the first prefix that it has; empty: none.
std::string find_tensor(const TensorFiles& files, const std::vector<std::string>& prefixes,
                        const TensorPlace& place) {
  for (const std::string& name : place.names) {
    for (const std::string& prefix : prefixes) {
      if (files.contains(prefix + name)) return prefix + name;
    }
  }
  return {};
}

std::string without_prefix(const std::string& tensor, const std::vector<std::string>& prefixes) {
  for (const std::string& prefix : prefixes) {
    if (!prefix.empty() && tensor.starts_with(prefix)) return tensor.substr(prefix.size());
  }
  return tensor;
}

}  // namespace

std::string tensor_of(const TensorFiles& files, const FolderPlan& plan, std::string_view parameter) {
  return find_tensor(files, plan.prefixes, plan.place(parameter));
}

std::unique_ptr<Model> make_model(const TensorFiles& files, const FolderPlan& plan) {
  refuse_far_too_large(files, plan);
  std::unique_ptr<Model> model = plan.make(files);
  if (plan.own_heads.empty()) {
    if (plan.pruned_heads.empty()) return model;
    return model->with_heads(without_pruned_heads(*model, plan.pruned_heads, plan.description));
  }
  HeadsOfAttentions heads;
  for (const OwnHeads& own : plan.own_heads) heads[own.attention] = own.geometry;
  try {
    return model->with_heads(heads);
  } catch (const UsageError& error) {
    throw FormatError(fmt::format("{}: multihead_heads: {}", plan.description, error.what()));
  }
}

std::vector<std::string> read_parameters(const TensorFiles& files, const FolderPlan& plan, Model& model) {
  Differences differences;
  std::set<std::string> used;
  std::vector<Assignment> assignments;
  model.visit([&](const std::string& name, Parameter& parameter) {
    TensorPlace place = plan.place(name);
    const std::string tensor = find_tensor(files, plan.prefixes, place);
    if (tensor.empty()) {
      if (!place.may_be_missing) differences.missing(plan.prefixes.front() + place.names.front());
      return;
    }
    used.insert(tensor);
    assignments.push_back({.parameter = &parameter,
                           .name = tensor,
                           .tensor = &files.tensor(tensor),
                           .place = std::move(place)});
  });
  find_columns(assignments);
  std::erase_if(assignments, [&](const Assignment& from) { return !fits(from, differences); });
  refuse_not_finite(assignments, differences);
  std::vector<std::string> of_other_heads;
  const auto tell_unused = [&](Differences& told) {
    of_other_heads.clear();
    for (const auto& [tensor, stored] : files.tensors()) {
      if (used.contains(tensor)) continue;
      const std::string name = without_prefix(tensor, plan.prefixes);
      if (std::any_of(plan.other_heads.begin(), plan.other_heads.end(),
                      [&](const std::string& begin) { return name.starts_with(begin); })) {
        of_other_heads.push_back(tensor);
      } else if (!plan.no_weight || !plan.no_weight(name, files, model, told)) {
        differences.unused(tensor);
      }
    }
  };
  // No number is converted before all fits, so that what is refused takes little memory; what tensors that
  // are no weights are compared with is there only afterwards.
  Differences too_early;
  tell_unused(too_early);
  differences.throw_if_any(files.name(), plan.description, plan.remedy);
  for (const Assignment& from : assignments) read_parameter(from);
  tell_unused(differences);
  differences.throw_if_any(files.name(), plan.description, plan.remedy);
  return of_other_heads;
}

std::unique_ptr<Model> read_parameters(const TensorFiles& files, const FolderPlan& plan) {
  std::unique_ptr<Model> model = make_model(files, plan);
  read_parameters(files, plan, *model);
  return model;
}

}  // namespace mh
