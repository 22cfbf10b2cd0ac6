// Gradients of what a model says of a text.
#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <tuple>
#include <utility>

#include "arrays.h"
#include "call.h"
#include "given_text.h"
#include "model.h"
#include "multihead/autograd/scores.h"
#include "multihead/autograd/tape.h"
#include "multihead/base/error.h"
#include "multihead/base/finite.h"
#include "multihead/batch/batch.h"
#include "multihead/batch/check_ids.h"
#include "multihead/folders/language_codes.h"
#include "multihead/folders/sentence_tokens.h"
#include "multihead/heads/sites/observe_text.h"
#include "multihead/heads/sites/site_pattern.h"
#include "multihead/heads/sites/text_pass.h"
#include "multihead/models/label_head.h"
#include "names.h"

namespace mh::python {
namespace {

/// The name of a language; none: the folder says it.
using Language = std::optional<std::string>;

struct Slopes {
  double value = 0;
  std::vector<std::string> source, target, predicted;  // labels
  std::vector<std::pair<std::string, Tensor>> gradients;
};

/// What gradients are asked of: names and patterns, and the sites that they fit.
struct Wanted {
  const std::vector<std::string>& at;
  std::vector<std::string> sites;
  const char* number;  // what is differentiated

  Wanted(const std::vector<std::string>& patterns, std::span<const SiteShape> all, const char* of)
      : at(patterns), sites(sites_named(all, patterns)), number(of) {}

  [[noreturn]] void refuse(const std::string& site) const {
    throw UsageError(
        fmt::format("`at`: the {} does not depend on {}; name sites that it is computed from (docs/sites.md)",
                    number, site));
  }
  /// Throws UsageError when the number depends on none of them.
  void check(Var of) const {
    if (!of.wants_gradient()) refuse(at.empty() ? "nothing" : at.front());
  }
};

/// Of the sites that a pattern fits those that the number depends on.
Slopes slopes_of(const Wanted& wanted, const SiteValues& values) {
  Slopes found;
  for (const std::string& site : wanted.sites) {
    if (!values.has_gradient(site)) {
      if (std::find(wanted.at.begin(), wanted.at.end(), site) != wanted.at.end()) wanted.refuse(site);
      continue;
    }
    found.gradients.emplace_back(site, copied(values.gradient(site)));
    require_finite(found.gradients.back().second.view(), "gradients");
  }
  return found;
}

/// Of log p of what the model predicts: all of it, or one position.
Slopes of_log_probability(const LoadedModel& loaded, const GivenText& text, const std::string& target,
                          const TextLanguages& languages, std::optional<int> position,
                          const std::vector<std::string>& at, Sites* changed) {
  const Observation seen = observe_given(
      loaded, text, target, {.tokens_alone = true, .sites = changed, .remark = warn, .languages = languages});
  SiteValues values;
  for (const std::string& pattern : at) values.watch(pattern);
  SitesInTurn sites(changed, values);
  TextPass pass(loaded.model(), seen, {.sites = &sites, .mode = Tape::Mode::kRecordValues});
  const Var each = pass.log_probabilities();
  Tensor weights(each.rows(), 1);
  weights.fill(1);
  if (position) {
    if (*position < 0 || *position >= each.rows())
      throw UsageError(fmt::format("`position`: expected 0 to {}, the tokens that are predicted, got {}",
                                   each.rows() - 1, *position));
    weights.fill(0);
    weights(*position, 0) = 1;
  }
  double value = 0;
  for (int64_t i = 0; i < each.rows(); ++i)
    value += static_cast<double>(weights(i, 0)) * static_cast<double>(each.value()(i, 0));
  const Wanted wanted(at, loaded.model().sites(), "log-probability");
  wanted.check(each);
  pass.tape().seed(each, weights.view());
  pass.tape().backward();
  Slopes found = slopes_of(wanted, values);
  found.value = value;
  found.source = seen.source.labels, found.target = seen.target.labels,
  found.predicted = seen.predicted.labels;
  return found;
}

double dot(ConstMatrixView a, ConstMatrixView b) {
  double sum = 0;
  for (int64_t j = 0; j < a.cols; ++j) sum += static_cast<double>(a(0, j)) * static_cast<double>(b(0, j));
  return sum;
}

std::vector<TextTokens> tokens_of_both(const SentenceModel& model, const GivenText& text,
                                       const std::string& second) {
  const ReadLinesOptions options{.from = {.one = "text"}, .remark = warn};
  const auto of_words = [&](const std::string& words) {
    return sentence_tokens(model, std::vector<std::string>{words, second}, options);
  };
  const auto of_ids = [&](const Ids& ids) {
    check_ids(ids, 1,
              {.what = "text",
               .longest = model.longest,
               .vocabulary = model.folder.model->facts().vocabulary_read()});
    std::vector<TextTokens> tokens = sentence_tokens(model, std::vector<std::string>{second}, options);
    tokens.insert(tokens.begin(), TextTokens{.ids = ids});
    return tokens;
  };
  return read_given(text, of_words, of_ids);
}

/// Of the cosine c of the vectors u of `text` and v of `second`: dc/du = (v / |v| - c u / |u|) / |u|.
Slopes of_similarity(const LoadedModel& loaded, const GivenText& text, const std::string& second,
                     const std::vector<std::string>& at, Sites* changed) {
  const SentenceModel& model = loaded.sentences();
  for (const std::string& line : loaded.vector_remarks()) warn(line);
  const std::vector<TextTokens> tokens = tokens_of_both(model, text, second);
  Batch first, other;
  first.add(tokens[0].ids, 0, tokens[0].types), other.add(tokens[1].ids, 0, tokens[1].types);
  Tape plain;
  Context beside{.tape = plain, .sites = changed};
  const ConstMatrixView v = model.vectors(beside, other.view()).value();

  SiteValues values;
  for (const std::string& pattern : at) values.watch(pattern);
  SitesInTurn sites(changed, values);
  model.folder.model->check(sites, model.sites());
  Tape tape(Tape::Mode::kRecordValues);
  Context context{.tape = tape, .sites = &sites};
  const Var vector = model.vectors(context, first.view());
  const ConstMatrixView u = vector.value();
  const double length_u = std::sqrt(dot(u, u)), length_v = std::sqrt(dot(v, v));
  const double cosine = dot(u, v) / (length_u * length_v);
  if (!std::isfinite(cosine)) throw UsageError("one of the texts has no vector; give texts with words");
  Tensor slope(1, u.cols);
  for (int64_t j = 0; j < u.cols; ++j) {
    slope(0, j) = static_cast<float>(
        (static_cast<double>(v(0, j)) / length_v - cosine * static_cast<double>(u(0, j)) / length_u) /
        length_u);
  }
  const Wanted wanted(at, model.sites(), "similarity");
  wanted.check(vector);
  tape.seed(vector, slope.view());
  tape.backward();
  Slopes found = slopes_of(wanted, values);
  found.value = cosine;
  for (const int32_t id : tokens[0].ids) found.source.push_back(model.folder.source_tokens().shown(id));
  return found;
}

/// Of the logit of a label: of the text, or of one of its tokens. asked: its name, perhaps a second text.
struct AskedLabel {
  std::string name;
  std::optional<std::string> second;
  std::optional<int> position;
};
Slopes of_label(const LoadedModel& loaded, const GivenText& text, const AskedLabel& asked,
                const std::vector<std::string>& at, Sites* changed) {
  const Observation seen = observe_given(
      loaded, text, {}, {.tokens_alone = true, .sites = changed, .remark = warn, .pair = asked.second});
  SiteValues values;
  for (const std::string& pattern : at) values.watch(pattern);
  SitesInTurn sites(changed, values);
  TextPass pass(loaded.model(), seen, {.sites = &sites, .mode = Tape::Mode::kRecordValues});
  const Var all = pass.label_logits();
  const bool of_tokens = loaded.model().label_head()->of_tokens();
  if (of_tokens != asked.position.has_value())
    throw UsageError(of_tokens ? "`position` is missing: this model gives labels to tokens; name one, from 0"
                               : "`position` is of a classifier of tokens; leave it out");
  const int row = asked.position.value_or(0);
  if (row < 0 || row >= all.rows())
    throw UsageError(
        fmt::format("`position`: expected 0 to {}, the tokens of the text, got {}", all.rows() - 1, row));
  const int32_t rows[] = {row}, columns[] = {loaded.folder().labels->number_of(asked.name)};
  const Var logit = ops::pick(pass.tape(), all, rows, columns);
  const Wanted wanted(at, loaded.model().sites(), "logit");
  wanted.check(logit);
  pass.tape().backward(logit);
  Slopes found = slopes_of(wanted, values);
  found.value = static_cast<double>(logit.value()(0, 0));
  found.source = seen.source.labels, found.target = seen.target.labels;
  return found;
}

/// What is differentiated.
enum class Number { kLogProbability, kSimilarity, kLabel };
constexpr EnumNames<Number> kNumbers = {{"log_probability", Number::kLogProbability},
                                        {"similarity", Number::kSimilarity},
                                        {"label", Number::kLabel}};

/// The number; labels of source, target and predicted tokens; gradients by site.
using Found = std::tuple<double, std::vector<std::string>, std::vector<std::string>, std::vector<std::string>,
                         std::vector<std::pair<std::string, NumpyFloats>>>;

Found gradient(const LoadedModel& loaded, const GivenText& text, const std::string& of,
               const std::vector<std::string>& at, const std::string& target, const Language& source_language,
               const Language& target_language, const std::optional<std::string>& second,
               const std::optional<std::string>& label, std::optional<int> position, Edits* edits) {
  const Number number = value_named(of, kNumbers, "of");
  if ((number == Number::kLabel) != label.has_value())
    throw UsageError("`label` is that of of='label'; give both or neither");
  if (number != Number::kLabel && (number == Number::kSimilarity) != second.has_value())
    throw UsageError("`second` is the other text of of='similarity', or of a pair with of='label'");
  if ((number == Number::kSimilarity && position) || (number != Number::kLogProbability && !target.empty()))
    throw UsageError("`position` and `target` need of='log_probability'; leave them out");
  const TextLanguages languages{source_language, target_language};
  if (number != Number::kLogProbability) language_pair(loaded.folder(), languages);  // it has none
  Slopes found = long_call([&] {
    Sites* changed = sites_of(edits, loaded);
    switch (number) {
      case Number::kSimilarity:
        return of_similarity(loaded, text, *second, at, changed);
      case Number::kLabel:
        return of_label(loaded, text, {.name = *label, .second = second, .position = position}, at, changed);
      case Number::kLogProbability:
        break;
    }
    return of_log_probability(loaded, text, target, languages, position, at, changed);
  });
  std::vector<std::pair<std::string, NumpyFloats>> gradients;
  for (const auto& [name, numbers] : found.gradients)
    gradients.emplace_back(name, numpy_copy(numbers.view()));
  return {found.value, std::move(found.source), std::move(found.target), std::move(found.predicted),
          std::move(gradients)};
}

}  // namespace

void add_gradient(nb::class_<LoadedModel>& model) {
  using namespace nb::literals;
  model.def("gradient", gradient, "text"_a, nb::kw_only(), "of"_a, "at"_a, "target"_a,
            "source_language"_a.none(), "target_language"_a.none(), "second"_a.none(), "label"_a.none(),
            "position"_a.none(), "edits"_a.none());
}

}  // namespace mh::python
