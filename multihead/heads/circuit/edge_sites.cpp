#include "multihead/heads/circuit/edge_sites.h"

#include <algorithm>
#include <utility>

#include "multihead/base/thread_pool.h"
#include "multihead/kernels/gemm.h"
#include "multihead/kernels/norm.h"

namespace mh {
namespace {

/// x += sign * y.
void add_rows(MatrixView x, ConstMatrixView y, float sign = 1) {
  for (int64_t i = 0; i < x.rows; ++i) {
    const float* from = y.row(i);
    float* to = x.row(i);
    for (int64_t c = 0; c < x.cols; ++c) to[c] += sign * from[c];
  }
}

}  // namespace

void normalise_rows(const NormParameters& norm, MatrixView x) {
  if (norm.gain != nullptr) normalise(norm.values(), x, x, nullptr, nullptr);
}

void keep_streams(const StreamGraph& graph, bool step_by_step, SiteValues& values) {
  for (const Stream& stream : graph.streams()) {
    values.keep(stream.embeddings_site());
    for (const StreamSublayer& sublayer : stream.sublayers) {
      if (sublayer.attention != nullptr) values.keep(sublayer.heads_site());
      if (sublayer.attention == nullptr || step_by_step || !stream.is_sum())
        values.keep(sublayer.output_site);
      values.keep(sublayer.behind_site);
    }
  }
}

EdgeSites::EdgeSites(const Given& given)
    : given_(given),
      readings_(given.graph.targets().size() * given.runs.size()),
      needed_(given.graph.sources().size()),
      differences_(given.graph.sources().size()),
      offsets_(given.graph.streams().size()) {
  for (int s = 0; s < static_cast<int>(given.graph.streams().size()); ++s) {
    const Stream& stream = given.graph.streams()[static_cast<size_t>(s)];
    const bool steps = given.step_by_step || !stream.is_sum();
    actions_[stream.embeddings_site()] = {Part::kEmbeddings, s};
    for (int i = 0; i < static_cast<int>(stream.sublayers.size()); ++i) {
      const StreamSublayer& sublayer = stream.sublayers[static_cast<size_t>(i)];
      const auto add_targets = [&](TargetKind kind) {
        actions_[StreamGraph::site_of(sublayer, kind)] = {Part::kTargets, s, i, kind};
      };
      if (sublayer.attention == nullptr) {
        add_targets(TargetKind::kFeedForward);
      } else {
        for (const TargetKind kind : {TargetKind::kQueries, TargetKind::kKeys, TargetKind::kValues})
          add_targets(kind);
        actions_[sublayer.heads_site()] = {Part::kHeads, s, i};
      }
      if (steps || sublayer.attention == nullptr) actions_[sublayer.output_site] = {Part::kOutput, s, i};
      if (!steps) actions_[sublayer.behind_site] = {Part::kBehind, s, i};
    }
  }
  const StreamTarget& last = given.graph.targets().back();
  actions_[last.name] = {Part::kTargets, last.owner, -1, TargetKind::kStates};
  plan();
}

void EdgeSites::plan() {
  const StreamGraph& graph = given_.graph;
  for (size_t run = 0; run < given_.runs.size(); ++run) {
    std::vector<std::vector<int>> has(graph.targets().size()), lacks(graph.targets().size());
    for (const StreamGraph::Edge& edge : graph.edges()) {
      (given_.runs[run].edges->has(edge.source, edge.target) ? has : lacks)[static_cast<size_t>(edge.target)]
          .push_back(edge.source);
    }
    for (size_t t = 0; t < has.size(); ++t) {
      Reading& own = readings_[t * given_.runs.size() + run];
      own.natural = lacks[t].empty();
      own.current = lacks[t].size() < has[t].size();
      if (!own.natural) own.sources = own.current ? std::move(lacks[t]) : std::move(has[t]);
      for (const int source : own.sources) needed_[static_cast<size_t>(source)] = true;
    }
  }
}

ConstMatrixView EdgeSites::corrupt_rows(const std::string& site, size_t run) const {
  return given_.corrupt.kept(site).sequence(given_.pair_of[run]);
}

ConstMatrixView EdgeSites::current_rows(const Tensor& value, int stream, size_t run) const {
  return value.view().rows_between(offsets(stream)[run], offsets(stream)[run + 1]);
}

Var EdgeSites::at(Tape& tape, const Site& site, const SiteValue& value) {
  const std::string name = site.name();
  const Action& action = actions_.find(name)->second;
  const ConstMatrixView now = value.value.value();
  const Stream& stream = given_.graph.streams()[static_cast<size_t>(action.stream)];
  switch (action.part) {
    case Part::kTargets:
      return targets(tape, action, value);
    case Part::kEmbeddings:
      offsets_[static_cast<size_t>(action.stream)].assign(value.rows.offsets.begin(),
                                                          value.rows.offsets.end());
      current_[name] = copied(now);
      break;
    case Part::kBehind:
      current_[name] = copied(now);
      return value.value;
    case Part::kOutput:
      current_[name] = copied(now);
      if (stream.sublayers[static_cast<size_t>(action.sublayer)].attention != nullptr) return value.value;
      break;
    case Part::kHeads:
      break;
  }
  const StreamSublayer* sublayer =
      action.sublayer >= 0 ? &stream.sublayers[static_cast<size_t>(action.sublayer)] : nullptr;
  const int first = sublayer != nullptr ? sublayer->first_source : stream.embeddings;
  const int count = sublayer != nullptr ? sublayer->sources : 1;
  const auto begin = needed_.begin() + first;
  if (std::find(begin, begin + count, true) == begin + count) return value.value;
  Tensor difference = copied(now);
  for (size_t run = 0; run < given_.runs.size(); ++run)
    add_rows(difference.view().rows_between(offsets(action.stream)[run], offsets(action.stream)[run + 1]),
             corrupt_rows(name, run), -1);
  if (action.part != Part::kHeads) {
    differences_[static_cast<size_t>(first)] = std::move(difference);
    return value.value;
  }
  for (int source = first; source < first + count; ++source) {
    if (needed_[static_cast<size_t>(source)])
      differences_[static_cast<size_t>(source)] = given_.matrices.written(source, difference.view());
  }
  return value.value;
}

void EdgeSites::add(const Reading& reading, int source, size_t run, MatrixView x) const {
  const int stream = given_.graph.sources()[static_cast<size_t>(source)].stream;
  add_rows(x, current_rows(differences_[static_cast<size_t>(source)], stream, run),
           reading.current ? -1.0f : 1.0f);
}

Tensor EdgeSites::stream_read(int number, size_t run) const {
  const StreamTarget& target = given_.graph.targets()[static_cast<size_t>(number)];
  const Reading& own = reading(number, run);
  const Stream& stream = given_.graph.streams()[static_cast<size_t>(target.stream)];
  if (given_.step_by_step || !stream.is_sum()) return replayed(target, own, run);
  const std::string site = stream.site_before(target.place);
  Tensor x =
      copied(own.current ? current_rows(current_.at(site), target.stream, run) : corrupt_rows(site, run));
  for (const int source : own.sources) add(own, source, run, x.view());
  return x;
}

Tensor EdgeSites::replayed(const StreamTarget& target, const Reading& own, size_t run) const {
  const Stream& stream = given_.graph.streams()[static_cast<size_t>(target.stream)];
  const auto begun = [&](const std::string& site) {
    return copied(own.current ? current_rows(current_.at(site), target.stream, run)
                              : corrupt_rows(site, run));
  };
  auto next = own.sources.begin();  // they rise, as the sublayers do
  const auto add_those_before = [&](int end, MatrixView x) {
    for (; next != own.sources.end() && *next < end; ++next) add(own, *next, run, x);
  };
  Tensor x = begun(stream.embeddings_site());
  add_those_before(stream.embeddings + 1, x.view());
  for (int place = 0; place < target.place; ++place) {
    const StreamSublayer& sublayer = stream.sublayers[static_cast<size_t>(place)];
    Tensor added = begun(sublayer.output_site);
    add_those_before(sublayer.first_source + sublayer.sources, added.view());
    normalise_rows(sublayer.output, added.view());
    add_rows(x.view(), added.view());
    normalise_rows(sublayer.after, x.view());
  }
  return x;
}

Var EdgeSites::targets(Tape& tape, const Action& action, const SiteValue& value) {
  const StreamGraph::Targets all = given_.graph.targets_of(action.stream, action.sublayer, action.kind);
  const size_t runs = given_.runs.size();
  std::vector<std::pair<int, size_t>> changed;
  for (int target = all.first; target < all.first + all.count; ++target) {
    for (size_t run = 0; run < runs; ++run) {
      if (!reading(target, run).natural) changed.emplace_back(target, run);
    }
  }
  if (changed.empty()) return value.value;
  const ConstMatrixView now = value.value.value();
  const MatrixView read = tape.arena().matrix<float>(now.rows, now.cols);
  for (int64_t i = 0; i < now.rows; ++i) std::copy_n(now.row(i), now.cols, read.row(i));
  const int64_t width = now.cols / all.count;
  parallel_for(std::ssize(changed), [&](int64_t i) {
    const auto [number, run] = changed[static_cast<size_t>(i)];
    const StreamTarget& target = given_.graph.targets()[static_cast<size_t>(number)];
    Tensor x = stream_read(number, run);
    normalise_rows(target.norm, x.view());
    const std::span<const int32_t> rows = offsets(target.stream);
    const MatrixView to = read.rows_between(rows[run], rows[run + 1])
                              .columns_between(target.head * width, (target.head + 1) * width);
    if (action.kind == TargetKind::kFeedForward || action.kind == TargetKind::kStates) {
      for (int64_t row = 0; row < to.rows; ++row) std::copy_n(x.view().row(row), to.cols, to.row(row));
      return;
    }
    const HeadProjection& projection = given_.matrices.projection(number);
    multiply(x.view(), projection.weight, to);
    for (int64_t row = 0; row < to.rows; ++row) {
      for (int64_t c = 0; c < to.cols; ++c) to(row, c) += projection.bias(0, c);
    }
  });
  return tape.constant(read);
}

}  // namespace mh
