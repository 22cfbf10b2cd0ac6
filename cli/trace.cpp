// multihead trace: one layer of attention, step by step.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/common.h"
#include "cli/file_endings.h"
#include "cli/geometry_flags.h"
#include "cli/load_model.h"
#include "cli/setting_flags.h"
#include "cli/trace_report.h"
#include "cli/trace_settings.h"
#include "cli/verb.h"
#include "cli/verbs.h"
#include "multihead/base/error.h"
#include "multihead/heads/reports/trace/trace_files.h"
#include "multihead/heads/sites/observe_text.h"
#include "multihead/nn/initialise.h"

namespace mh::cli {
namespace {

struct TraceFlags {
  ModelFlags model;
  std::string save;
  FlaggedSettings<ModelLayerSettings> of_model;
  FlaggedSettings<OwnLayerSettings> own;
  FlaggedSettings<RandomLayerSettings> random;
  GeometryFlags geometry = GeometryFlags({.d_model = 8, .heads = 2, .head_changes = {}, .d_out = {}});

  Verb* verb = nullptr;
  bool given(const std::string& flag) const { return verb->get_option(flag)->count() > 0; }
};

/// Which layer is traced, and the flags for such a layer only.
struct Kind {
  const char* what;
  std::vector<std::string> flags;
};

void refuse_flags_of(const TraceFlags& flags, const Kind& other, const Kind& chosen) {
  for (const std::string& flag : other.flags) {
    const bool too = std::find(chosen.flags.begin(), chosen.flags.end(), flag) != chosen.flags.end();
    if (!too && flags.given(flag))
      throw UsageError(fmt::format("{} is for {}, but {} is traced", flag, other.what, chosen.what));
  }
}

void check_kind(const TraceFlags& flags) {
  std::vector<std::string> of_model = flags.of_model.flags.names(), of_own = flags.own.flags.names(),
                           of_random = flags.random.flags.names();
  of_model.emplace_back("--precision");
  of_own.insert(of_own.end(), {"--heads", "--scale", "--causal"});
  for (const std::string& flag : flags.geometry.names()) of_random.push_back(flag);
  of_random.emplace_back("--geometry");
  const Kind kinds[] = {
      {"a model folder's layer", of_model},
      {"a layer of --weights", of_own},
      {"a random layer", of_random},
  };
  if (!flags.model.path.empty() && !flags.own->weights.empty())
    throw UsageError("a model folder and --weights are both given; give one of them");
  const Kind& chosen = kinds[!flags.model.path.empty() ? 0 : !flags.own->weights.empty() ? 1 : 2];
  for (const Kind& other : kinds) {
    if (&other != &chosen) refuse_flags_of(flags, other, chosen);
  }
  if (!flags.model.path.empty() && flags.of_model->text.empty())
    throw UsageError("--text is missing; give a sentence for the model to read");
  if (!flags.own->weights.empty() && flags.own->input.empty())
    throw UsageError("--input is missing; give the rows as a .npy file [tokens, d_model]");
}

struct Traced {
  AttentionTrace trace;
  TraceLabels labels;
};

Traced of_model(const TraceFlags& flags) {
  check_utf8(flags.of_model->text, "--text");
  check_utf8(flags.of_model->target_text, "--target-text");
  const ModelFolder folder = load_model(flags.model);
  const std::string name =
      flags.of_model->attention.empty() ? folder.model->attentions().at(0).name : flags.of_model->attention;
  folder.model->attention(name);  // a name that is not there is said before anything is translated
  const Observation seen = observe_text(folder, flags.of_model->text, flags.of_model->target_text,
                                        {.keep = sites_of_trace(*folder.model, name),
                                         .remark = [](const std::string& line) { remark(line); },
                                         .languages = flags.of_model->languages});
  const AttentionKind kind = folder.model->place(name).kind;
  Traced traced{
      trace_attention(*folder.model, name, seen.values),
      {kind == AttentionKind::kEncoderSelf ? seen.source.labels : seen.target.labels, seen.key_labels(kind)}};
  traced.trace.attention += " of " + flags.model.path;
  return traced;
}

Traced of_own_weights(const TraceFlags& flags) {
  const OwnLayerSettings& own = flags.own.settings;
  const bool causal = flags.random->causal;
  OwnLayerOptions options;
  if (flags.given("--heads")) options.heads = flags.geometry.layer().heads;
  HeadGeometry given;
  flags.geometry.layer().head_changes.apply(given);
  options.scale = given.scale;
  const auto layer = read_own_layer(own.weights, options);
  const Tensor x = read_rows(own.input), memory = own.memory.empty() ? Tensor() : read_rows(own.memory);
  if (causal && !own.mask.empty()) throw UsageError("--causal and --mask are both given; give one of them");
  OwnMask bits;
  Mask mask = causal ? Mask::causal() : Mask::none();
  if (!own.mask.empty()) {
    bits = read_mask(own.mask, x.rows(), own.memory.empty() ? x.rows() : memory.rows());
    mask = bits.mask();
  }
  return {trace_attention(*layer, x.view(), memory.view(), mask), {}};
}

Traced of_random_layer(const TraceFlags& flags) {
  const RandomLayerSettings& of = flags.random.settings;
  DropoutStreams streams;
  const int d_model = flags.geometry.layer().d_model;
  MultiHeadAttention layer(fmt::format("a random layer, {}, seed {}", flags.geometry.geometry, of.seed),
                           {.d_model = d_model,
                            .d_out = flags.geometry.d_out(),
                            .geometry = flags.geometry.described(),
                            .positions = of.positions,
                            .mask = of.causal ? StackMask::causal() : StackMask::none()},
                           streams);
  Random random(of.seed);
  layer.initialise(random);
  Parameter x(of.tokens, d_model), memory(of.keys.value_or(0), d_model);
  fill_normal(x, random, 1);
  fill_normal(memory, random, 1);
  return {
      trace_attention(layer, x.value.view(), memory.value.view(), of.causal ? Mask::causal() : Mask::none()),
      {}};
}

void run(const TraceFlags& flags) {
  check_kind(flags);
  const Traced traced = !flags.model.path.empty()     ? of_model(flags)
                        : !flags.own->weights.empty() ? of_own_weights(flags)
                                                      : of_random_layer(flags);
  if (!flags.save.empty()) save_trace(traced.trace, flags.save);
  write_text("", trace_text(traced.trace, traced.labels));
}

}  // namespace

void add_trace(Verb& app) {
  auto flags = std::make_shared<TraceFlags>();
  Verb* verb = flags->verb = app.add_subcommand(
      "trace", "Print every tensor of one attention layer, step by step, with its formula");
  add_model(*verb, flags->model, "A model folder; without it and --weights, a random layer is traced");
  flags->of_model.add(*verb);
  flags->own.add(*verb);
  flags->random.add(*verb);
  flags->geometry.add(*verb);
  expect_folder(
      verb->add_option("--save", flags->save, "Save every tensor as NAME.npy, and steps.txt, in this folder"),
      "a folder of .npy files");
  name_values(*verb, "DIR", {"--save"});
  verb->footer(
      "Example:\n"
      "  multihead trace --d-model 4 --heads 2 --tokens 3\n"
      "  multihead trace model --text 'the small dog sees a cat .' \\\n"
      "    --attention encoder.1.self_attention\n"
      "  multihead trace --weights weights --input x.npy --heads 2 --save steps");
  verb->callback([flags] {
    flags->of_model.take();
    flags->own.take();
    flags->random.take();
    flags->geometry.take();
    run(*flags);
  });
}

}  // namespace mh::cli
