#include "multihead/check/site_rows.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>

#include "multihead/autograd/tape.h"
#include "multihead/batch/batch.h"
#include "multihead/generate/generate.h"
#include "multihead/generate/translate.h"
#include "multihead/heads/sites/site_values.h"
#include "multihead/models/label_head.h"
#include "multihead/models/next_words.h"
#include "multihead/nn/stack_cache.h"

namespace mh {
namespace {

/// Row r of what was kept, without the columns that count for nothing.
std::vector<float> row_of(const KeptValue& kept, int64_t r) {
  const int64_t columns = kept.keys.empty() ? kept.value.cols() : kept.keys[static_cast<size_t>(r)];
  const float* const begin = kept.value.view().row(r);
  return {begin, begin + columns};
}

/// Appends what a pass kept.
void append(const Model& model, const SiteValues& values, RowsOfSites& rows) {
  for (const SiteShape& site : compared_sites(model)) {
    const KeptValue& kept = values.kept(site.name);
    CheckedRows& all = rows[site.name];
    for (int64_t r = 0; r < kept.value.rows(); ++r) all.push_back(row_of(kept, r));
  }
}

void read(const Model& model, const Batch& text, const Batch& target, RowsOfSites& rows) {
  SiteValues values;
  for (const SiteShape& site : compared_sites(model)) values.keep(site.name);
  Tape tape;
  Context context{.tape = tape, .sites = &values};
  const bool translates = model.kind() == ModelKind::kTranslator;
  const Var states = model.read(context, text.view(), translates ? target.view() : Sequences());
  model.call_output_sites(context, states, (translates ? target : text).view());
  append(model, values, rows);
}

/// The next token of all texts that have one at this position.
struct Step {
  Ragged added;
  std::vector<int32_t> ids, rows;
};
Step step_at(const Batch& read, int32_t position) {
  Step step;
  for (int32_t s = 0; s < read.ragged.sequences(); ++s) {
    const bool has = position < read.ragged.length(s);
    step.added.add(has ? 1 : 0);
    if (has) step.rows.push_back(read.ragged.begin(s) + position);
  }
  for (const int32_t row : step.rows) step.ids.push_back(read.ids[static_cast<size_t>(row)]);
  return step;
}

void read_in_steps(const LanguageModel& model, const Batch& text, const Batch& target, RowsOfSites& rows) {
  const bool translates = model.kind() == ModelKind::kTranslator;
  const Batch& read = translates ? target : text;
  SiteValues values;
  const std::vector<SiteShape> sites = compared_sites(model);
  for (const SiteShape& site : sites) values.keep(site.name);
  Tape tape;
  Context context{.tape = tape, .sites = &values};
  StackCache cache;
  model.start(context, translates ? text.view() : Sequences(), cache);
  std::vector<int32_t> sources;
  for (int32_t s = 0; translates && s < read.ragged.sequences(); ++s) sources.push_back(s);
  for (int32_t position = 0; position < read.ragged.longest(); ++position) {
    const Step step = step_at(read, position);
    tape.clear();
    const Var states = model.extend(context, step.ids, {.rows = &step.added, .sources = sources}, cache);
    if (model.predicts()) NextWords(model.vocabulary(), context, states, cache.new_places()).logits();
    if (model.label_head() != nullptr && model.label_head()->of_tokens())
      model.label_logits(context, states, {.ids = step.ids, .ragged = &step.added, .sentences = {}});
    for (const SiteShape& site : sites) {
      if (site.rows != SiteRows::kTarget) continue;  // read with the source
      const KeptValue& kept = values.kept(site.name);
      CheckedRows& all = rows[site.name];
      all.resize(static_cast<size_t>(read.ragged.rows()));
      for (size_t r = 0; r < step.rows.size(); ++r)
        all[static_cast<size_t>(step.rows[r])] = row_of(kept, static_cast<int64_t>(r));
    }
  }
}

}  // namespace

std::vector<SiteShape> compared_sites(const Model& model) {
  std::vector<SiteShape> sites = model.sites();
  std::erase_if(sites, [](const SiteShape& site) {
    for (const char* part : {".query_input.", ".key_input.", ".value_input."}) {
      if (site.name.find(part) != std::string::npos) return true;
    }
    return site.name.ends_with(".gates") || site.name.ends_with("_norm.scale") ||
           site.name.ends_with("feed_forward.input");
  });
  return sites;
}

RowsOfSites rows_of_sites(const ModelFolder& folder, const CheckTexts& texts, CheckedRun run) {
  const Batch text(texts.ids), target(texts.targets);
  RowsOfSites rows;
  if (run == CheckedRun::kTogether) {
    read(*folder.model, text, target, rows);
  } else if (run == CheckedRun::kAlone) {
    for (size_t i = 0; i < texts.ids.size(); ++i) {
      const auto one = [&](const auto& all) {
        return all.empty() ? Batch() : Batch(std::span(all).subspan(i, 1));
      };
      read(*folder.model, one(texts.ids), one(texts.targets), rows);
    }
  } else if (const auto* const decodes = dynamic_cast<const LanguageModel*>(folder.model.get());
             decodes != nullptr && folder.model->kind() != ModelKind::kEncoder) {
    read_in_steps(*decodes, text, target, rows);
  }
  return rows;
}

std::vector<GreedyIds> greedy_ids(const ModelFolder& folder, const CheckTexts& texts) {
  std::vector<GreedyIds> found;
  for (size_t i = 0; i < texts.new_tokens.size(); ++i) {
    const std::span<const std::vector<int32_t>> one(&texts.ids[i], 1);
    const int32_t most = texts.new_tokens[i];
    if (most < 1) {
      found.emplace_back();
    } else if (folder.model->kind() == ModelKind::kTranslator) {
      const TranslateOptions options{.search = {.beam_size = 1, .max_length = most}};
      Hypothesis best = translate(folder.language_model(), one, options).at(0).at(0);
      found.push_back({.ids = std::move(best.tokens), .ended = best.ended});
    } else {
      Generated text = generate(folder.language_model(), one,
                                {.next_token = NextToken::kGreedy, .max_new_tokens = most})[0];
      found.push_back({.ids = std::move(text.tokens), .ended = text.end == GenerationEnd::kEndToken});
    }
  }
  return found;
}

}  // namespace mh
