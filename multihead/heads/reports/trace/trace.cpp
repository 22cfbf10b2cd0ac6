#include "multihead/heads/reports/trace/trace.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "multihead/base/error.h"
#include "multihead/nn/attention_place.h"

namespace mh {
const TraceStep& AttentionTrace::step(std::string_view name) const {
  std::vector<std::string> names;
  for (const TraceStep& step : steps) {
    if (step.name == name) return step;
    names.push_back(step.name);
  }
  throw UsageError(fmt::format("the trace has no step '{}'; it has {}", name, fmt::join(names, ", ")));
}

std::vector<std::string> sites_of_trace(const Model& model, std::string_view attention) {
  std::vector<std::string> sites{Site{attention, SitePart::kAttentionInput}.name()};
  if (model.place(attention).kind == AttentionKind::kCross)
    sites.push_back(Site{"encoder", SitePart::kStates}.name());
  return sites;
}

AttentionTrace trace_attention(const Model& model, std::string_view name, const SiteValues& seen) {
  const std::vector<std::string> sites = sites_of_trace(model, name);
  const Tensor none;
  return trace_attention(model.attention(name), seen.kept(sites[0]).sequence(0),
                         sites.size() > 1 ? seen.kept(sites[1]).sequence(0) : none.view(), model.mask(name));
}

AttentionTrace trace_attention(const Model& model, std::string_view name, std::span<const int32_t> source,
                               std::span<const int32_t> target) {
  model.attention(name);  // it has such
  if (source.empty()) throw UsageError("there is no source to trace; give at least one token");
  const bool reads_target =
      model.place(name).kind != AttentionKind::kEncoderSelf && model.kind() == ModelKind::kTranslator;
  if (reads_target && target.empty())
    throw UsageError(fmt::format("{} is the decoder's; give a target for it to read", name));
  SiteValues seen;
  for (const std::string& site : sites_of_trace(model, name)) seen.keep(site);
  Tape tape;
  Context context{.tape = tape, .sites = &seen};
  Batch read, written;
  read.add(source, 0);
  written.add(target, 0);
  model.read(context, read.view(), reads_target ? written.view() : Sequences());
  return trace_attention(model, name, seen);
}

}  // namespace mh
