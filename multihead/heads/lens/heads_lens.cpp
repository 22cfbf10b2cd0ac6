#include "multihead/heads/lens/heads_lens.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>

#include "multihead/base/error.h"
#include "multihead/folders/language_codes.h"
#include "multihead/folders/mask_token.h"
#include "multihead/folders/scored_model.h"
#include "multihead/folders/sentence_tokens.h"
#include "multihead/heads/lens/lens_words.h"
#include "multihead/heads/lens/logit_rows.h"
#include "multihead/heads/lens/stream_ends.h"
#include "multihead/heads/sites/answer_word.h"
#include "multihead/heads/sites/inspected_texts.h"
#include "multihead/heads/sites/observe_text.h"
#include "multihead/io/check_option.h"
#include "multihead/models/label_head.h"
#include "multihead/nn/list_sites.h"
#include "multihead/nn/stack_config.h"
#include "multihead/tensor/cosine.h"

namespace mh {
namespace {

/// The stack whose states the model predicts by.
std::string last_stack(const Model& model) {
  return model.stack_configs().back()->name;
}

/// The positions that are read, of so many.
std::vector<int32_t> positions_read(const LensOptions& options, const ObservedTokens& tokens,
                                    std::optional<int32_t> mask) {
  const auto count = static_cast<int32_t>(tokens.ids.size());
  if (options.position) {
    const int32_t asked = *options.position, position = asked < 0 ? count + asked : asked;
    if (position < 0 || position >= count) {
      throw UsageError(
          fmt::format("`position`: there is no token {}; the model reads tokens 0 to {}, or from the end -1 "
                      "to -{} (`multihead tokenize` shows them)",
                      asked, count - 1, count));
    }
    return {position};
  }
  std::vector<int32_t> all;
  for (int32_t i = 0; mask && i < count; ++i) {
    if (tokens.ids[static_cast<size_t>(i)] == *mask) all.push_back(i);
  }
  if (!all.empty()) return all;
  all.resize(static_cast<size_t>(count));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

void require_words(const std::string& text) {
  if (text.find_first_not_of(" \t\n") == std::string::npos)
    throw UsageError("the text has no words; give one that the model reads");
}

/// What the text has where each position predicts; -1: not known.
std::vector<int32_t> actual_words(const Model& model, const Observation& seen, std::optional<int32_t> mask) {
  if (model.kind() == ModelKind::kTranslator) return seen.predicted.ids;
  if (model.kind() == ModelKind::kCausal) {
    std::vector<int32_t> next(seen.target.ids.begin() + 1, seen.target.ids.end());
    next.push_back(-1);
    return next;
  }
  std::vector<int32_t> own = seen.source.ids;
  if (mask) std::replace(own.begin(), own.end(), *mask, int32_t{-1});
  return own;
}

/// The answer as it stands behind the text up to the position that is read, or in place of the text's first mask.
AnswerPlace answer_place(const ModelFolder& folder, const Observation& seen, const std::string& text,
                         const LensOptions& options, std::span<const int32_t> positions) {
  if (folder.model->kind() == ModelKind::kEncoder) {
    const Tokenizer& tokenizer = folder.source_tokens();
    const std::optional<int32_t> mask = mask_id(folder, tokenizer);
    const std::string word = mask ? tokenizer.token_of(*mask) : "";
    const size_t at = mask ? text.find(word) : std::string::npos;
    if (at == std::string::npos) return {.tokenizer = tokenizer, .before = text};
    return {.tokenizer = tokenizer,
            .before = text.substr(0, at),
            .after = text.substr(at + word.size()),
            .mask = word};
  }
  const bool translator = folder.model->kind() == ModelKind::kTranslator;
  const Tokenizer& tokenizer = translator ? folder.target_tokens() : folder.source_tokens();
  if (!options.position) return {.tokenizer = tokenizer, .before = translator ? seen.translation : text};
  const auto end = static_cast<size_t>(positions[0]) + 1;
  return {.tokenizer = tokenizer, .before = tokenizer.decode_known(std::span(seen.target.ids).first(end))};
}

void read_words(const ModelFolder& folder, const Observation& seen, const StreamEnds& ends,
                const LensOptions& options, LensReport& found) {
  const Model& model = *folder.model;
  const bool decodes = model.kind() != ModelKind::kEncoder;
  const ObservedTokens& tokens = decodes ? seen.target : seen.source;
  const Tokenizer& tokenizer =
      model.kind() == ModelKind::kTranslator ? folder.target_tokens() : folder.source_tokens();
  const std::optional<int32_t> mask = decodes ? std::nullopt : mask_id(folder, tokenizer);
  const std::vector<int32_t> positions = positions_read(options, tokens, mask);
  const NameOfWord name = [&](int32_t id) {
    return id < tokenizer.size() ? tokenizer.shown(id) : fmt::format("<{}>", id);
  };
  std::optional<int32_t> answer;
  if (!options.answer.empty()) {
    const AnswerWord word = answer_word(answer_place(folder, seen, found.text, options, positions), "answer",
                                        options.answer, options.remark);
    answer = word.token;
    found.answer = {
        .text = options.answer, .token = {.id = word.token, .token = word.label}, .tokens = word.tokens};
  }
  const std::vector<int32_t> actual = actual_words(model, seen, mask);
  for (const int32_t position : positions) {
    const auto at = static_cast<size_t>(position);
    LensPosition& one =
        found.positions.emplace_back(LensPosition{.position = position, .token = tokens.labels[at]});
    if (actual[at] >= 0) one.actual = {.id = actual[at], .token = name(actual[at])};
  }
  lens_words(model, seen, ends,
             {.positions = positions,
              .answer = answer,
              .words = options.words,
              .name = name,
              .sites = options.sites},
             found);
}

void read_labels(const ModelFolder& folder, const Observation& seen, const StreamEnds& ends,
                 const LensOptions& options, LensReport& found) {
  const Labels& labels = *folder.labels;
  const Model& model = *folder.model;
  const ObservedTokens& tokens = model.kind() == ModelKind::kCausal ? seen.target : seen.source;
  const NameOfWord name = [&](int32_t id) { return labels.names[static_cast<size_t>(id)]; };
  found.says = LensSays::kLabels;
  found.scores = labels.scores;
  RankedWords ranked;
  if (!options.answer.empty()) {
    ranked.answer = labels.number_of(options.answer);
    found.answer = {.text = options.answer, .token = {.id = *ranked.answer, .token = name(*ranked.answer)}};
  }
  if (labels.of == LabelsOf::kTokens) {
    for (const int32_t position : positions_read(options, tokens, std::nullopt))
      found.positions.push_back(
          {.position = position, .token = tokens.labels[static_cast<size_t>(position)]});
  } else {
    if (options.position) {
      throw UsageError(
          "`position`: this classifier gives labels to whole texts, and to none of their tokens; leave it "
          "out");
    }
    found.positions.emplace_back();
  }
  Batch text;
  text.add(tokens.ids, 0, tokens.types);
  std::vector<Tensor> logits;  // [positions, labels] of each place
  ends.each(seen.values, options.sites, [&](size_t, Context& context) {
    const Var states = model.read(context, text.view(), Sequences());
    const ConstMatrixView all = model.label_logits(context, states, text.view()).value();
    Tensor& rows = logits.emplace_back(std::ssize(found.positions), all.cols);
    for (size_t i = 0; i < found.positions.size(); ++i) {
      const int64_t row = model.label_head()->row(text.ragged, 0, found.positions[i].position.value_or(0));
      std::copy_n(all.row(row), all.cols, rows.view().row(static_cast<int64_t>(i)));
    }
  });
  const auto row_of = [](const Tensor& of, size_t i) {
    return std::span(of.view().row(static_cast<int64_t>(i)), static_cast<size_t>(of.cols()));
  };
  for (const Tensor& place : logits) {
    for (size_t i = 0; i < found.positions.size(); ++i) {
      const EndRow end = end_row(row_of(logits.back(), i));
      const int32_t best = best_of(end.logits);
      found.positions[i].predicted = {.id = best, .token = name(best)};
      if (options.answer.empty()) ranked.predicted = best;
      found.readings.push_back(read_label_row(row_of(place, i), end, labels.scores, ranked, name));
    }
  }
}

}  // namespace

std::string LensPlace::name() const {
  if (layer < 0) return "embed";
  if (site.ends_with("after_self_attention")) return fmt::format("{} self", layer);
  return site.ends_with("after_cross_attention") ? fmt::format("{} cross", layer) : fmt::format("{}", layer);
}

LensReport heads_lens(const ModelFolder& folder, const std::string& text, const LensOptions& options) {
  check_settings(options);
  require_words(text);
  if (folder.gives_vectors_alone()) {
    throw UsageError(fmt::format(
        "{} holds a {} model that predicts no words and gives no labels; read it as a sentence model, by its "
        "vectors",
        folder.path.string(), folder.model_type));
  }
  const StreamEnds ends(*folder.model, last_stack(*folder.model), options.sublayers);
  const Observation seen =
      observe_text(folder, text, options.target,
                   {.keep = ends.kept_sites(),
                    .sites = options.sites,
                    .remark = options.remark,
                    .pair = options.pair.empty() ? std::nullopt : std::optional<std::string>(options.pair),
                    .languages = options.languages});
  LensReport found{.text = text, .pair = options.pair, .places = ends.places()};
  if (folder.labels) {
    read_labels(folder, seen, ends, options, found);
  } else {
    found.translation = seen.translation;
    read_words(folder, seen, ends, options, found);
  }
  return found;
}

LensReport heads_lens(const SentenceModel& model, const std::string& text, const std::string& second,
                      const LensOptions& options) {
  check_settings(options);
  require_words(text);
  language_pair(model.folder, options.languages);  // it has none
  for (const auto& [given, name] :
       {std::pair(!options.answer.empty(), "answer"), std::pair(options.position.has_value(), "position"),
        std::pair(!options.target.empty(), "target"), std::pair(!options.pair.empty(), "pair")}) {
    if (given) {
      throw UsageError(fmt::format(
          "`{}` is for a model that predicts words or gives labels; this one makes vectors: leave it out",
          name));
    }
  }
  const Model& own = *model.folder.model;
  // A translator's vector is made of its encoder's states.
  const StreamEnds ends(own, own.kind() == ModelKind::kTranslator ? "encoder" : last_stack(own),
                        options.sublayers);
  std::vector<std::string> lines = {text};
  if (!second.empty()) lines.push_back(second);
  const LinesFrom from{.one = "text"};
  const std::vector<TextTokens> read =
      sentence_tokens(model, lines, {.from = from, .remark = options.remark});
  std::vector<Batch> batches(read.size());
  for (size_t i = 0; i < read.size(); ++i) {
    batches[i].add(read[i].ids, 0, read[i].types);
  }
  SiteValues kept;
  for (const std::string& site : ends.kept_sites()) kept.keep(site);
  SitesInTurn first_pass(options.sites, kept);
  own.check(first_pass, model.sites());
  const auto vector = [&](Context& context, size_t of) {
    const ConstMatrixView row = model.vectors(context, batches[of].view()).value();
    return std::vector<float>(row.row(0), row.row(0) + row.cols);
  };
  Tape tape;
  std::vector<std::vector<float>> vectors;
  Context of_text{.tape = tape, .sites = &first_pass};
  vectors.push_back(vector(of_text, 0));
  if (!second.empty()) {
    constexpr int64_t kOfNoList = -1;  // an edit of the text is not meant
    ListSites listed(options.sites, {.texts = std::span(&kOfNoList, 1)});
    Context of_second{.tape = tape, .sites = listed.sites()};
    vectors.push_back(vector(of_second, 1));
  }
  LensReport found{.says = LensSays::kVectors, .text = text, .second = second, .places = ends.places()};
  ends.each(kept, options.sites, [&](size_t, Context& context) {
    const std::vector<float> at_place = vector(context, 0);
    LensCosines& cosines = found.cosines.emplace_back();
    cosines.own = cosine(at_place, vectors[0]);
    if (!second.empty()) cosines.second = cosine(at_place, vectors[1]);
  });
  return found;
}

LensReport heads_lens(const ScoredModel& model, const std::string& text, const std::string& second,
                      const LensOptions& options) {
  if (model.folder().gives_vectors_alone()) return heads_lens(model.sentences(), text, second, options);
  if (!second.empty()) {
    throw UsageError(
        "`second`: a text whose vector is compared, and this model predicts words or labels; leave it out");
  }
  return heads_lens(model.folder(), text, options);
}

}  // namespace mh
