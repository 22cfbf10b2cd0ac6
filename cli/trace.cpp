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
#include "cli/options.h"
#include "cli/trace_report.h"
#include "cli/verb.h"
#include "cli/verbs.h"
#include "multihead/base/error.h"
#include "multihead/heads/reports/trace/trace_files.h"
#include "multihead/heads/sites/observe_text.h"
#include "multihead/nn/initialise.h"

namespace mh::cli {
namespace {

struct TraceFlags {
  std::string model, text, target_text, attention;
  std::string weights, input, memory, mask, save;
  GeometryFlags geometry = GeometryFlags({.d_model = 8, .heads = 2, .head_changes = {}, .d_out = {}});
  int64_t tokens = 4, keys = 0;
  uint64_t seed = 1;
  Positions positions = Positions::kNone;
  bool causal = false;

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
  std::vector<std::string> of_random = flags.geometry.names();
  for (const char* flag : {"--geometry", "--tokens", "--keys", "--seed", "--causal", "--positions"})
    of_random.emplace_back(flag);
  const Kind kinds[] = {
      {"a model folder's layer", {"--text", "--target-text", "--attention"}},
      {"a layer of --weights", {"--input", "--memory", "--heads", "--scale", "--causal", "--mask"}},
      {"a random layer", of_random},
  };
  if (!flags.model.empty() && !flags.weights.empty())
    throw UsageError("a model folder and --weights are both given; give one of them");
  const Kind& chosen = kinds[!flags.model.empty() ? 0 : !flags.weights.empty() ? 1 : 2];
  for (const Kind& other : kinds) {
    if (&other != &chosen) refuse_flags_of(flags, other, chosen);
  }
  if (!flags.model.empty() && flags.text.empty())
    throw UsageError("--text is missing; give a sentence for the model to read");
  if (!flags.weights.empty() && flags.input.empty())
    throw UsageError("--input is missing; give the rows as a .npy file [tokens, d_model]");
}

struct Traced {
  AttentionTrace trace;
  TraceLabels labels;
};

Traced of_model(const TraceFlags& flags) {
  check_utf8(flags.text, "--text");
  check_utf8(flags.target_text, "--target-text");
  const ModelFolder folder = load_model(flags.model);
  const std::string name = flags.attention.empty() ? folder.model->attentions().at(0).name : flags.attention;
  folder.model->attention(name);  // a name that is not there is said before anything is translated
  const Observation seen = observe_text(
      folder, flags.text, flags.target_text,
      {.keep = sites_of_trace(*folder.model, name), .remark = [](const std::string& line) { remark(line); }});
  const AttentionKind kind = folder.model->place(name).kind;
  Traced traced{
      trace_attention(*folder.model, name, seen.values),
      {kind == AttentionKind::kEncoderSelf ? seen.source.labels : seen.target.labels, seen.key_labels(kind)}};
  traced.trace.attention += " of " + flags.model;
  return traced;
}

Traced of_own_weights(const TraceFlags& flags) {
  OwnLayerOptions options;
  if (flags.given("--heads")) options.heads = flags.geometry.layer().heads;
  HeadGeometry given;
  flags.geometry.layer().head_changes.apply(given);
  options.scale = given.scale;
  const auto layer = read_own_layer(flags.weights, options);
  const Tensor x = read_rows(flags.input), memory = flags.memory.empty() ? Tensor() : read_rows(flags.memory);
  if (flags.causal && !flags.mask.empty())
    throw UsageError("--causal and --mask are both given; give one of them");
  OwnMask bits;
  Mask mask = flags.causal ? Mask::causal() : Mask::none();
  if (!flags.mask.empty()) {
    bits = read_mask(flags.mask, x.rows(), flags.memory.empty() ? x.rows() : memory.rows());
    mask = bits.mask();
  }
  return {trace_attention(*layer, x.view(), memory.view(), mask), {}};
}

Traced of_random_layer(const TraceFlags& flags) {
  DropoutStreams streams;
  const int d_model = flags.geometry.layer().d_model;
  MultiHeadAttention layer(fmt::format("a random layer, {}, seed {}", flags.geometry.geometry, flags.seed),
                           {.d_model = d_model,
                            .d_out = flags.geometry.d_out(),
                            .geometry = flags.geometry.described(),
                            .positions = flags.positions,
                            .mask = flags.causal ? StackMask::causal() : StackMask::none()},
                           streams);
  Random random(flags.seed);
  layer.initialise(random);
  Parameter x(flags.tokens, d_model), memory(flags.keys, d_model);
  fill_normal(x, random, 1);
  fill_normal(memory, random, 1);
  return {trace_attention(layer, x.value.view(), memory.value.view(),
                          flags.causal ? Mask::causal() : Mask::none()),
          {}};
}

void run(const TraceFlags& flags) {
  check_kind(flags);
  const Traced traced = !flags.model.empty()     ? of_model(flags)
                        : !flags.weights.empty() ? of_own_weights(flags)
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
  verb->add_option("--text", flags->text, "Sentence that the model reads");
  verb->add_option("--target-text", flags->target_text,
                   "Translation that the decoder reads; without: the greedy one");
  verb->add_option("--attention", flags->attention,
                   "Attention layer of the model, as multihead info lists them; without: the first");
  verb->add_option(
      "--weights", flags->weights,
      "Your own layer: a .safetensors file with w_q, w_k, w_v, w_o and perhaps b_q, ..., or a folder "
      "of such .npy files");
  verb->add_option("--input", flags->input, "Input of that layer: a .npy file [tokens, d_model]");
  verb->add_option("--memory", flags->memory,
                   "Rows that the queries read in cross-attention: a .npy file [keys, d_model]");
  verb->add_option("--mask", flags->mask,
                   "Mask: a .npy file [tokens, keys] of booleans or numbers; a query reads a key where it "
                   "is true or not 0");
  verb->add_flag("--causal", flags->causal, "Causal mask: a token reads the tokens up to its own position");
  flags->geometry.add(*verb);
  constexpr int64_t kMostTokens = 4096;
  add_number(*verb, "--tokens", flags->tokens, {.low = 1, .high = kMostTokens},
             "Tokens that a random layer reads");
  add_size(*verb, "--keys", flags->keys, kMostTokens,
           "Number of keys, when the tokens read another sequence (cross-attention)");
  add_choice(*verb, "--positions", flags->positions,
             {{"none", Positions::kNone},
              {"rotary", Positions::kRotary},
              {"alibi", Positions::kAlibi},
              {"t5", Positions::kT5},
              {"shaw", Positions::kShaw}},
             "Positional encoding of a random layer");
  add_number(*verb, "--seed", flags->seed, {}, "Seed of a random layer's weights and input");
  expect_folder(
      verb->add_option("--save", flags->save, "Save every tensor as NAME.npy, and steps.txt, in this folder"),
      "a folder of .npy files");
  name_values(*verb, "ATTENTION", {"--attention"});
  name_values(*verb, "DIR|FILE", {"--weights"});
  name_values(*verb, "FILE", {"--input", "--memory", "--mask"});
  name_values(*verb, "DIR", {"--save"});
  group_flags(*verb, "A layer of a model", {"--text", "--target-text", "--attention"});
  group_flags(*verb, "A layer of your own", {"--weights", "--input", "--memory", "--mask"});
  group_flags(*verb, "A random layer", {"--tokens", "--keys", "--causal", "--positions", "--seed"});
  common_flags(*verb, {"--save", "--text", "--attention", "--weights", "--input", "--tokens", "--causal",
                       "--geometry", "--d-model", "--heads", "--d-key", "--d-value"});
  verb->footer(
      "Example:\n"
      "  multihead trace --d-model 4 --heads 2 --tokens 3\n"
      "  multihead trace model --text 'the small dog sees a cat .' \\\n"
      "    --attention encoder.1.self_attention\n"
      "  multihead trace --weights weights --input x.npy --heads 2 --save steps");
  verb->callback([flags] {
    flags->geometry.take();
    run(*flags);
  });
}

}  // namespace mh::cli
