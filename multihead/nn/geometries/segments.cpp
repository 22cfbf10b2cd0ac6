// q_i = x[:, c_i] W_i^Q and so on: head i reads only the columns c_i of a row, a slice or any others
// (Bloem's narrow self-attention; Deil's segments). Every such head is a canonical one whose W_i has rows
// of zeros. In the fourth form the columns are those of x W, another d_model x d_model before.
//
// Cost of a part of `size`, for n rows and c columns that all heads together read: c size parameters (with
// one for all those of one head), n c size multiply-adds; with projected slices d d and n d d more.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "multihead/kernels/attention.h"
#include "multihead/nn/geometries/separate_projections.h"
#include "multihead/nn/head_scheme.h"
#include "multihead/nn/initialise.h"

namespace mh {
namespace {

/// The columns that each head reads of a row of d_model numbers.
HeadColumns columns_read(const HeadGeometry& g, int d_model) {
  return g.input.kind == HeadInput::Kind::kColumns ? g.input.columns : slice_columns(g.heads, d_model);
}

int64_t all_of(const HeadColumns& columns) {
  int64_t all = 0;
  for (const auto& head : columns) all += static_cast<int64_t>(head.size());
  return all;
}

/// One of the three projections.
class SegmentProjection {
 public:
  SegmentProjection(const HeadGeometry& g, const HeadColumns& columns, int d_model, int size)
      : biased_(has_bias_of_heads(g.biases)),
        before_(g.input.kind == HeadInput::Kind::kProjectedSlices ? Parameter(d_model, d_model)
                                                                  : Parameter()),
        weight_(g.input.one_for_all ? static_cast<int64_t>(columns[0].size()) : all_of(columns), size),
        bias_(1, int64_t{g.heads} * size),
        heads_(columns, &weight_, biased_ ? &bias_ : nullptr) {
    if (before_.value.size() > 0) first_ = Affine({&before_}, {});
  }
  SegmentProjection(const SegmentProjection&) = delete;
  SegmentProjection& operator=(const SegmentProjection&) = delete;

  Var apply(Context& context, Var x) const {
    if (before_.value.size() > 0) x = affine(context.tape, x, first_);
    return head_affine(context.tape, x, heads_);
  }
  void initialise(const HeadGeometry& geometry, Random& random) {
    if (before_.value.size() > 0) fill_xavier(before_, random, before_.value.rows(), before_.value.cols());
    // Each head's own fans: there is no whole matrix here that others would share.
    const int64_t columns = weight_.value.cols();
    std::vector<MatrixView> blocks;
    for (int h = 0; h < heads_.heads(); ++h) {
      const HeadAffine::Rows rows = heads_.rows(h);
      Parameter one(rows.end - rows.begin, columns);
      initialise_heads(geometry, one, 1, columns, random);
      for (int64_t r = rows.begin; r < rows.end; ++r) {
        for (int64_t c = 0; c < columns; ++c) weight_.value(r, c) = one.value(r - rows.begin, c);
      }
      blocks.push_back(weight_.value.view().rows_between(rows.begin, rows.end));
      if (geometry.input.one_for_all) break;
    }
    make_equal(geometry, blocks, random);
    weight_.changed();
  }
  void visit(const std::string& name, HeadPart part, const ParameterVisitor& visitor) {
    if (before_.value.size() > 0) visitor(name + "." + before_name(part), before_);
    visitor(name + "." + weight_name(part), weight_);
    if (biased_) visitor(name + "." + bias_name(part), bias_);
  }

 private:
  bool biased_;
  Parameter before_, weight_, bias_;
  Affine first_;
  HeadAffine heads_;
};

class SegmentHeads final : public SeparateProjections<SegmentProjection> {
 public:
  SegmentHeads(const HeadGeometry& g, int d_model)
      : SeparateProjections(
            g, [&](int, int size) { return SegmentProjection(g, columns_read(g, d_model), d_model, size); }) {
  }

  void initialise(Random& random) override {
    for (SegmentProjection* projection : {&q_, &k_, &v_}) projection->initialise(geometry_, random);
  }
};

bool equally_many(const HeadColumns& columns) {
  return std::all_of(columns.begin(), columns.end(),
                     [&](const auto& head) { return head.size() == columns.front().size(); });
}

class SegmentScheme : public HeadScheme {
 public:
  void find_problems(const HeadGeometry& g, int d_model, std::vector<std::string>& found) const override {
    find_problems_of_columns(g, d_model, found);
    if (g.scores != Scores::kQueryKey) {
      found.push_back(
          "scores other than query_key need heads that read the whole row; set input to whole_row");
    }
    if (!has_own_keys(g)) {
      found.push_back(
          "key_heads and value_heads must equal heads when heads read parts of the row; set both to 0");
    }
  }
  bool several_softmaxes() const override { return false; }
  bool copies_queries() const override { return true; }
  std::unique_ptr<Heads> make(const HeadGeometry& g, int d_model) const override {
    return std::make_unique<SegmentHeads>(g, d_model);
  }
  /// Of weights, whose rows are the heads' matrices below each other, or one of them for all.
  std::optional<Block> block(const HeadGeometry& g, int d_model, const NamedShape& p,
                             int head) const override {
    if (p.name == "w_q" || p.name == "w_k" || p.name == "w_v") {
      if (g.input.one_for_all) return std::nullopt;
      const HeadColumns read = columns_read(g, d_model);
      int64_t begin = 0;
      for (int h = 0; h < head; ++h) begin += static_cast<int64_t>(read[static_cast<size_t>(h)].size());
      return Block{begin, begin + static_cast<int64_t>(read[static_cast<size_t>(head)].size()), 0, p.cols};
    }
    return columns_of_head(p, head, g.heads, {{"b_q", g.heads}, {"b_k", g.heads}, {"b_v", g.heads}});
  }
  HeadMatrix head_matrix(const LayerWeights& layer, HeadPart part, int head) const override {
    HeadMatrix found = HeadScheme::head_matrix(layer, part, head);
    const auto columns = columns_read(layer.geometry, layer.d_model)[static_cast<size_t>(head)];
    DoubleMatrix whole(layer.d_model, found.weight.cols());
    for (size_t i = 0; i < columns.size(); ++i) {
      for (int64_t j = 0; j < whole.cols(); ++j)
        whole(columns[i], j) = found.weight(static_cast<int64_t>(i), j);
    }
    found.weight = std::move(whole);
    return found;
  }
  std::string formula(const TraceNames& names, HeadPart part, const std::string& rows,
                      int head) const override {
    const auto columns = columns_read(names.geometry(), names.d_model())[static_cast<size_t>(head)];
    const bool run = columns.back() - columns.front() + 1 == static_cast<int32_t>(columns.size());
    return HeadScheme::formula(names, part,
                               fmt::format("{}[:, {}]", rows,
                                           run ? fmt::format("{} ... {}", columns.front(), columns.back())
                                               : fmt::format("{}", fmt::join(columns, " "))),
                               head);
  }
  LedgerPart cost(const HeadGeometry& g, HeadPart part, const ProjectedRows& rows) const override {
    LedgerPart cost;
    const HeadColumns columns = columns_read(g, rows.d_model);
    const int64_t all = all_of(columns), count = rows.of(part), size = shape(g, rows.d_model).size_of(part);
    const int64_t gathered = count_product({count, all});
    if (!in_place(columns, rows.d_model)) cost.add_moves(gathered, gathered);
    const int64_t matrix = g.input.one_for_all ? static_cast<int64_t>(columns[0].size()) : all;
    const int64_t outputs = count_product({g.heads, size});
    cost.parameters = count_product({matrix, size});
    cost.multiply_adds = count_product({count, all, size});
    if (has_bias_of_heads(g.biases)) {
      cost.parameters = count_sum(cost.parameters, outputs);
      cost.other_flops = count_product({count, outputs});
    }
    cost.add_moves(gathered, count_product({count, outputs}));
    return cost;
  }

 protected:
  virtual void find_problems_of_columns(const HeadGeometry& g, int d_model,
                                        std::vector<std::string>& found) const = 0;

 private:
  /// Whether together they are the row itself, in order: then there is nothing to gather.
  static bool in_place(const HeadColumns& columns, int d_model) {
    int64_t next = 0;
    for (const auto& head : columns) {
      for (const int32_t column : head) {
        if (column != next++) return false;
      }
    }
    return next == d_model;
  }
};

class ColumnsScheme final : public SegmentScheme {
 protected:
  void find_problems_of_columns(const HeadGeometry& g, int d_model,
                                std::vector<std::string>& found) const override {
    if (std::string wrong = wrong_columns(g, d_model); !wrong.empty()) found.push_back(std::move(wrong));
    if (equally_many(g.input.columns)) return;
    if (g.input.one_for_all) {
      found.push_back("input.one_for_all needs heads that read equally many columns; give each as many");
    } else if (starts_equal(g.initialisation)) {
      found.push_back(
          "heads that start equal must read equally many columns; give each as many, or use another "
          "initialisation");
    }
  }

 private:
  static std::string wrong_columns(const HeadGeometry& g, int d_model) {
    if (g.input.columns.size() != static_cast<size_t>(g.heads)) {
      return fmt::format("input.columns has {} lists for {} heads; give one a head", g.input.columns.size(),
                         g.heads);
    }
    for (size_t h = 0; h < g.input.columns.size(); ++h) {
      const auto& columns = g.input.columns[h];
      if (columns.empty())
        return fmt::format("input.columns of head {} is empty; a head must see at least one number", h);
      const bool rising =
          std::adjacent_find(columns.begin(), columns.end(), std::greater_equal<>()) == columns.end();
      if (!rising || columns.front() < 0 || columns.back() >= d_model) {
        return fmt::format("input.columns of head {} is {}; expected rising numbers below d_model {}", h,
                           fmt::join(columns, " "), d_model);
      }
    }
    return "";
  }
};

/// Bloem's: no biases, scores scaled by the row's size.
HeadGeometry bloem(int heads, int d_model, HeadInput input, HeadOutput output) {
  return {.heads = heads,
          .input = std::move(input),
          .biases = Biases::kNone,
          .output = output,
          .scale = attention_scale(d_model)};
}

class SlicesScheme : public SegmentScheme {
 public:
  std::vector<GeometryPreset> presets() const override {
    return {{{"bloem-narrow-shared", "slices, one s x s projection for all heads, no W^O"},
             [](int h, int d) { return bloem(h, d, HeadInput::slices(true), HeadOutput::kConcatenation); }},
            {{"bloem-narrow", "slices, an s x s projection for each head, no W^O"},
             [](int h, int d) { return bloem(h, d, HeadInput::slices(), HeadOutput::kConcatenation); }},
            {{"bloem-narrow-output", "slices, an s x s projection for each head, and W^O"},
             [](int h, int d) { return bloem(h, d, HeadInput::slices(), HeadOutput::kProjection); }}};
  }

 protected:
  void find_problems_of_columns(const HeadGeometry& g, int d_model,
                                std::vector<std::string>& found) const override {
    if (g.heads > d_model) {
      found.push_back(fmt::format(
          "heads is {}, more than the d_model {} numbers there are to slice; use at most {} heads", g.heads,
          d_model, d_model));
    }
    if (d_model % g.heads == 0) return;
    if (g.input.one_for_all) {
      found.push_back(fmt::format(
          "input.one_for_all needs slices of one size, but {} heads do not divide d_model {}; use {} heads",
          g.heads, d_model, std::gcd(g.heads, d_model)));
    } else if (starts_equal(g.initialisation)) {
      found.push_back(fmt::format(
          "heads that start equal must read equally many columns; use {} heads, or another initialisation",
          std::gcd(g.heads, d_model)));
    }
  }
};

class ProjectedSlicesScheme final : public SlicesScheme {
 public:
  std::vector<GeometryPreset> presets() const override {
    return {
        {{"bloem-fourth", "d x d first, then slices with an s x s projection for each head"},
         [](int h, int d) { return bloem(h, d, HeadInput::projected_slices(), HeadOutput::kProjection); }}};
  }
  HeadMatrix head_matrix(const LayerWeights& layer, HeadPart part, int head) const override {
    HeadMatrix found = SlicesScheme::head_matrix(layer, part, head);
    found.weight = product(in_double(layer.values.at(before_name(part)).view()).view(), found.weight.view());
    return found;
  }
  std::string formula(const TraceNames& names, HeadPart part, const std::string& rows,
                      int head) const override {
    return SlicesScheme::formula(names, part, fmt::format("({} {})", rows, before_name(part)), head);
  }
  LedgerPart cost(const HeadGeometry& g, HeadPart part, const ProjectedRows& rows) const override {
    LedgerPart cost;
    cost.add_affine(rows.of(part), rows.d_model, rows.d_model, false);
    return cost += SlicesScheme::cost(g, part, rows);
  }
};

}  // namespace

template <>
const HeadScheme& head_scheme<HeadInput::Kind::kSlices>() {
  static const SlicesScheme scheme;
  return scheme;
}

template <>
const HeadScheme& head_scheme<HeadInput::Kind::kColumns>() {
  static const ColumnsScheme scheme;
  return scheme;
}

template <>
const HeadScheme& head_scheme<HeadInput::Kind::kProjectedSlices>() {
  static const ProjectedSlicesScheme scheme;
  return scheme;
}

}  // namespace mh
