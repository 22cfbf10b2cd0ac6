#include "multihead/heads/contributions/heads_contributions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "multihead/base/error.h"
#include "multihead/base/finite.h"
#include "multihead/batch/check_ids.h"
#include "multihead/heads/contributions/answer_pass.h"
#include "multihead/heads/contributions/head_sources.h"
#include "multihead/heads/contributions/stream_parts.h"
#include "multihead/heads/patching/patch_reader.h"
#include "multihead/heads/sites/inspected_texts.h"
#include "multihead/io/check_option.h"
#include "multihead/models/vocabulary_head.h"

namespace mh {
namespace {

/// sum_c value(i, c) gradient(i, c) over columns [begin, end), for each row; value has one row for all, or one for each.
void add_products(ConstMatrixView value, ConstMatrixView gradient, int64_t begin, int64_t end,
                  std::vector<double>& rows) {
  for (int64_t i = 0; i < gradient.rows; ++i) {
    const float *x = value.row(value.rows == 1 ? 0 : i), *g = gradient.row(i);
    double sum = 0;
    for (int64_t c = begin; c < end; ++c) sum += static_cast<double>(x[c]) * static_cast<double>(g[c]);
    rows[static_cast<size_t>(i)] += sum;
  }
}

int layer_of(const std::string& owner) {
  const size_t begin = owner.find('.') + 1;
  return whole_number_in(owner.substr(begin, owner.find('.', begin) - begin)).value_or(-1);
}

/// The parts of F that a pass over the stream shows; `before_output` gets those of the last states, of which `output` is the rest.
std::vector<Contribution> parts_of(const StreamParts& stream, std::vector<double>& before_output) {
  std::vector<Contribution> found;
  const size_t rows = static_cast<size_t>(stream.parts().front().value.rows);
  Contribution biases{.name = stream.stack() + ".biases", .kind = ContributionKind::kBiases};
  biases.positions.resize(rows);
  for (const StreamParts::Part& part : stream.parts()) {
    const auto add = [&](std::string name, ContributionKind kind, int layer, int64_t begin, int64_t end) {
      Contribution one{.name = std::move(name), .kind = kind, .layer = layer};
      one.positions.resize(rows);
      add_products(part.value, part.gradient, begin, end, one.positions);
      found.push_back(std::move(one));
    };
    const int64_t columns = part.value.cols;
    if (part.part == SitePart::kEmbeddings) {
      add(part.owner + ".embeddings", ContributionKind::kEmbeddings, -1, 0, columns);
    } else if (part.part == SitePart::kFeedForward) {
      add(part.owner + ".feed_forward", ContributionKind::kFeedForward, layer_of(part.owner), 0, columns);
    } else if (part.part == SitePart::kHeads) {
      const int64_t width = columns / part.blocks;
      for (int h = 0; h < part.blocks; ++h) {
        const HeadName head{part.owner, h};
        add(head.name(), ContributionKind::kHead, layer_of(part.owner), h * width, (h + 1) * width);
        found.back().head = head;
      }
    } else if (part.part == SitePart::kStates) {
      before_output.assign(rows, 0.0);
      add_products(part.value, part.gradient, 0, columns, before_output);
    }
    if (part.bias != nullptr)
      add_products(part.bias->value.view(), part.gradient, 0, columns, biases.positions);
  }
  found.push_back(std::move(biases));
  return found;
}

double sum_of(const std::vector<double>& numbers) {
  double sum = 0;
  for (const double number : numbers) sum += number;
  return sum;
}

void put_sums(ContributionReport& report) {
  for (Contribution& part : report.parts) {
    if (part.kind != ContributionKind::kOutput) part.sum = sum_of(part.positions);
    if (!std::isfinite(part.sum)) throw Error(fmt::format("{}: what it adds is not finite", part.name));
    report.sum += part.sum;
    report.magnitude += std::abs(part.sum);
  }
}

/// What a pass says.
void put_pass(AnswerPass& pass, const StreamParts& stream, bool every_position, ContributionReport& report) {
  pass.backward();
  const ConstMatrixView scores = pass.scores().value();
  std::vector<double> before_output;
  report.parts = parts_of(stream, before_output);
  Contribution output{.name = "output", .kind = ContributionKind::kOutput};
  for (int64_t i = 0; i < scores.rows; ++i) report.score += static_cast<double>(scores(i, 0));
  output.sum = report.score - sum_of(before_output);
  if (every_position) {
    report.scores.assign(before_output.size(), 0.0);
    for (int64_t i = 0; i < scores.rows; ++i)
      report.scores[static_cast<size_t>(i)] = static_cast<double>(scores(i, 0));
    for (size_t i = 0; i < before_output.size(); ++i)
      output.positions.push_back(report.scores[i] - before_output[i]);
  }
  report.parts.push_back(std::move(output));
  put_sums(report);
}

/// The heads of which sources are asked for.
std::vector<Contribution*> strongest_heads(ContributionReport& report, int64_t count) {
  std::vector<Contribution*> heads;
  for (Contribution& part : report.parts) {
    if (part.head) heads.push_back(&part);
  }
  std::stable_sort(heads.begin(), heads.end(), [](const Contribution* a, const Contribution* b) {
    return std::abs(a->sum) > std::abs(b->sum);
  });
  heads.resize(static_cast<size_t>(std::min<int64_t>(count, std::ssize(heads))));
  return heads;
}

template <class MakePass>
ContributionReport explained(const Model& model, AnswerText asked, ContributionScore kind,
                             const ContributionOptions& options, const MakePass& make_pass) {
  ContributionReport report{.kind = kind, .asked = std::move(asked), .centred = options.centred};
  StreamParts stream(model);
  SitesInTurn sites(options.sites, stream);
  const std::unique_ptr<AnswerPass> pass = make_pass(report.asked, sites);
  put_pass(*pass, stream, options.every_position, report);
  const std::vector<Contribution*> heads = strongest_heads(report, options.sources);
  if (heads.empty()) return report;
  HeadSources sources(heads);
  SitesInTurn again(options.sites, sources.values());
  make_pass(report.asked, again);
  sources.put(stream, options.remark);
  return report;
}

void check_options(const ContributionOptions& options, bool words, bool chain) {
  check_settings(options);
  if (options.centred && !words)
    throw UsageError("`centred`: only the logits of words have a mean that is subtracted; leave it out");
  if (options.every_position && !chain)
    throw UsageError(
        "`every_position`: this model predicts no words one after the other; name an answer in its place");
}

/// That the model has such tokens and rows, of a text that nobody read.
void check_tokens(const ModelFolder& folder, const AnswerText& asked) {
  const ModelFacts facts = folder.model->facts();
  const bool translator = translates(folder);
  check_ids({&asked.text.ids, 1}, {.what = "text",
                                   .longest = facts.max_positions,
                                   .vocabulary = facts.vocabulary_read(),
                                   .may_be_empty = false});
  if (translator)
    check_ids({&asked.target.ids, 1}, {.what = "target",
                                       .longest = facts.max_positions,
                                       .vocabulary = facts.vocabulary,
                                       .may_be_empty = false});
  const auto rows = std::ssize(translator ? asked.target.ids : asked.text.ids);
  if (asked.predicting < 0 || asked.predicting >= rows)
    throw UsageError(fmt::format("there is no position {} whose prediction could be explained; give 0 to {}",
                                 asked.predicting, rows - 1));
  const int64_t answers =
      folder.labels ? std::ssize(folder.labels->names) : folder.model->vocabulary().size();
  for (const std::optional<PatchAnswer>* answer : {&asked.answer, &asked.wrong}) {
    if (!*answer) continue;
    const int32_t id = (*answer)->token.value_or(-1);
    if (id < 0 || id >= answers)
      throw UsageError(fmt::format("there is no answer of the number {}; give 0 to {}", id, answers - 1));
  }
}

/// The means over several texts, of which explain(question, options) explains one. Nobody sees the tokens that heads read in each, so
/// that no second pass is made for them.
template <class Explain>
MeanContributions mean_of(std::span<const AnswerQuestion> questions, const ContributionOptions& options,
                          const Explain& explain) {
  if (questions.empty()) throw UsageError("there is no text; give at least one");
  MeanContributions found{.centred = options.centred, .every_position = options.every_position};
  check_settings(options);
  ContributionOptions of_one = options;
  of_one.sources = 0;
  std::vector<std::vector<double>> sums;
  std::vector<double> scores;
  for (const AnswerQuestion& question : questions) {
    const auto report = [&] {
      try {
        return explain(question, of_one);
      } catch (const UsageError& error) {
        throw UsageError(fmt::format("text {}: {}", found.texts + 1, error.what()));
      }
    }();
    const double count =
        options.every_position ? static_cast<double>(std::max<int64_t>(1, std::ssize(report.scores) - 1)) : 1;
    if (found.parts.empty()) {
      found.kind = report.kind;
      for (const Contribution& part : report.parts)
        found.parts.push_back({.name = part.name, .kind = part.kind, .layer = part.layer, .head = part.head});
      sums.resize(found.parts.size());
    }
    for (size_t i = 0; i < sums.size(); ++i) sums[i].push_back(report.parts[i].sum / count);
    scores.push_back(report.score / count);
    found.largest_error = std::max(found.largest_error, report.error());
    ++found.texts;
    if (options.progress) options.progress(found.texts);
  }
  for (size_t i = 0; i < sums.size(); ++i) found.parts[i].sum = interval_of(sums[i]);
  found.score = interval_of(scores);
  return found;
}

template <class Part, class SizeOf>
std::vector<const Part*> largest(const std::vector<Part>& parts, size_t count, const SizeOf& size_of) {
  std::vector<const Part*> all;
  for (const Part& part : parts) all.push_back(&part);
  std::stable_sort(all.begin(), all.end(),
                   [&](const Part* a, const Part* b) { return size_of(*a) > size_of(*b); });
  all.resize(std::min(count, all.size()));
  return all;
}

}  // namespace

double ContributionReport::error() const {
  return magnitude > 0 ? std::abs(sum - score) / magnitude : std::abs(sum - score);
}

std::vector<const Contribution*> ContributionReport::strongest(size_t count) const {
  return largest(parts, count, [](const Contribution& part) { return std::abs(part.sum); });
}

const std::vector<std::string>& ContributionReport::position_labels() const {
  if (!asked.target.ids.empty()) return asked.target.labels;
  return asked.shifted.ids.empty() ? asked.text.labels : asked.shifted.labels;
}

const std::vector<std::string>& ContributionReport::source_labels(const Contribution& head) const {
  const bool cross = head.head && head.head->attention.ends_with(".cross_attention");
  return cross ? asked.text.labels : position_labels();
}

std::vector<const MeanContribution*> MeanContributions::strongest(size_t count) const {
  return largest(parts, count, [](const MeanContribution& part) { return std::abs(part.sum.mean); });
}

ContributionReport heads_contributions(const ModelFolder& folder, const AnswerQuestion& question,
                                       const ContributionOptions& options) {
  if (options.every_position && !(question.answer.empty() && question.wrong.empty()))
    throw UsageError(
        "`every_position`: the answers are the text's own tokens; leave `answer` and `wrong` out");
  return heads_contributions(folder, read_answer_text(folder, question, options.languages, options.remark),
                             options);
}

ContributionReport heads_contributions(const ModelFolder& folder, const AnswerText& asked,
                                       const ContributionOptions& options) {
  const bool chain = !folder.labels && (is_causal(folder) || translates(folder));
  check_options(options, !folder.labels, chain);
  if (options.sites != nullptr) folder.model->check(*options.sites);
  check_tokens(folder, asked);
  if (options.every_position && std::ssize(translates(folder) ? asked.target.ids : asked.text.ids) < 2)
    throw UsageError(
        "`every_position`: the text has one token, behind which none stands; give a longer text");
  return explained(
      *folder.model, asked, folder.labels ? ContributionScore::kLabel : ContributionScore::kLogit, options,
      [&](AnswerText& text, Sites& sites) {
        return std::make_unique<AnswerPass>(
            folder, text,
            AnswerPassOptions{
                .sites = &sites, .every_position = options.every_position, .centred = options.centred});
      });
}

ContributionReport heads_contributions(const SentenceModel& model, const AnswerQuestion& question,
                                       const ContributionOptions& options) {
  check_options(options, false, false);
  if (options.sites != nullptr) model.folder.model->check(*options.sites, model.sites());
  language_pair(model.folder, options.languages);
  const AnswerText asked = read_answer_text(model, question, options.remark);
  std::vector<std::string> texts = {asked.answer->text};
  if (asked.wrong) texts.push_back(asked.wrong->text);
  const Tensor others = vectors_of_answers(model, texts, options.sites);
  return explained(
      *model.folder.model, asked, ContributionScore::kCosine, options, [&](AnswerText& text, Sites& sites) {
        return std::make_unique<AnswerPass>(model, text, others, AnswerPassOptions{.sites = &sites});
      });
}

MeanContributions heads_contributions(const ModelFolder& folder, std::span<const AnswerQuestion> questions,
                                      const ContributionOptions& options) {
  return mean_of(questions, options, [&](const AnswerQuestion& question, const ContributionOptions& of_one) {
    return heads_contributions(folder, question, of_one);
  });
}

MeanContributions heads_contributions(const SentenceModel& model, std::span<const AnswerQuestion> questions,
                                      const ContributionOptions& options) {
  return mean_of(questions, options, [&](const AnswerQuestion& question, const ContributionOptions& of_one) {
    return heads_contributions(model, question, of_one);
  });
}

}  // namespace mh
