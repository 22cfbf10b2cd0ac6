#include "multihead/heads/steering/heads_steer.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "multihead/base/error.h"
#include "multihead/folders/language_codes.h"
#include "multihead/heads/importance/score_pass.h"
#include "multihead/heads/importance/scored_texts.h"
#include "multihead/heads/patching/word_place.h"
#include "multihead/heads/sites/inspected_texts.h"
#include "multihead/heads/sites/site_values.h"
#include "multihead/io/check_option.h"
#include "multihead/nn/list_sites.h"

namespace mh {
namespace {

constexpr double kMostStrength = std::numeric_limits<float>::max();

void check_question(const ModelFolder& folder, const SteerQuestion& question, const HeadsCorpus* other,
                    const SteerOptions& options) {
  check_settings(options);
  if (folder.labels || folder.gives_vectors_alone())
    throw UsageError(
        fmt::format("{} holds a model that predicts no words, so that nothing is asked of it; a direction "
                    "that was made with it can be added "
                    "where it runs on text",
                    folder.path.string()));
  if (options.strengths.empty()) throw UsageError("`strengths`: there are none; give at least one");
  if (question.texts.empty() && other == nullptr)
    throw UsageError("nothing is measured; give texts and answers, or other text, or both");
  if (question.texts.empty() != question.answers.empty())
    throw UsageError(question.texts.empty()
                         ? "`texts`: there are none after which an answer could come; give one"
                         : "`answers`: there are none; give a word that may come after the texts");
  if (!translates(folder)) refuse_prefix(question.prefix);
}

class SteeredPasses {
 public:
  SteeredPasses(const ScoredModel& model, const SteerQuestion& question, HeadsCorpus* other,
                const SteerOptions& options)
      : model_(model), options_(options) {
    if (options.direction.sites != nullptr) folder().model->check(*options.direction.sites);
    if (!question.texts.empty()) read_question(question);
    if (other == nullptr) return;
    ScoredTextsOptions read;
    read.read.observe.sites = options.direction.sites;
    read.read.languages = options.direction.languages;
    read.read.remark = options.direction.remark;
    other_ = read_scored_texts(folder(), *other, read);
  }

  const std::vector<SteeredText>& texts() const { return texts_; }
  int64_t other_texts() const { return std::ssize(other_.texts); }
  int64_t other_tokens() const { return other_.predictions(); }

  SteerDose dose(const SteerDirection& direction, double strength) {
    SiteValues added;
    added.add(direction.times(static_cast<float>(strength)));
    SitesInTurn both(options_.direction.sites, added);
    // Without anything added the model runs as it is, on its fastest paths.
    Sites* const sites = strength == 0 ? options_.direction.sites : &both;
    SteerDose dose{.strength = strength};
    for (size_t t = 0; t < texts_.size(); ++t) dose.log_probabilities.push_back(log_probabilities(t, sites));
    if (!other_.texts.empty()) dose.loss = loss(sites);
    return dose;
  }

 private:
  const ModelFolder& folder() const { return model_.folder(); }

  void read_question(const SteerQuestion& question) {
    const LanguagePair languages = language_pair(folder(), options_.direction.languages);
    std::set<std::string> told;  // once, and not for every text
    const PatchRemark remark = [&](const std::string& line) {
      if (options_.direction.remark && told.insert(line).second) options_.direction.remark(line);
    };
    std::vector<PatchText> read = read_whole_texts(folder(), question.texts, languages, remark);
    std::vector<int64_t> sources, targets;
    for (size_t t = 0; t < read.size(); ++t) {
      const std::string called = fmt::format("text {}", t + 1);
      if (read[t].ids.empty()) throw UsageError(fmt::format("{} has no tokens; give a text", called));
      WordPlace place =
          word_place(folder(), question.texts[t], read[t], question.prefix, languages, called, remark);
      SteeredText& text = texts_.emplace_back();
      for (const std::string& answer : question.answers)
        text.answers.push_back(word_answer(place, "answers", answer, remark));
      text.text = std::move(read[t]);
      text.target = std::move(place.target);
      predicting_.push_back(place.predicting);
      sources.push_back(std::ssize(text.text.ids));
      targets.push_back(std::ssize(text.target.ids));
    }
    offsets_ = ListOffsets::of_pairs(sources, translates(folder()) ? targets : sources);
  }

  std::vector<double> log_probabilities(size_t t, Sites* sites) {
    const int64_t number = static_cast<int64_t>(t);
    ListSites listed(sites, {.texts = {&number, 1}, .count = std::ssize(texts_), .offsets = &offsets_});
    tape_.clear();
    Context context{.tape = tape_, .sites = listed.sites()};
    std::vector<int32_t> tokens;
    for (const PatchAnswer& answer : texts_[t].answers) tokens.push_back(*answer.token);
    const std::vector<float> found = word_log_probabilities(*folder().model, context, texts_[t].text,
                                                            texts_[t].target, predicting_[t], tokens, 1);
    return {found.begin(), found.end()};
  }

  /// -1/N sum log p of other text.
  double loss(Sites* sites) {
    double sum = 0;
    for (const std::vector<int64_t>& numbers : plan_scored(other_, options_.max_batch_tokens)) {
      const ScoredBatch batch = scored_batch(*folder().model, other_, numbers);
      ScorePass pass(tape_, model_, other_.kind, batch, {.sites = sites});
      for (const double score : pass.scores({}, scratch_)) sum += score;
    }
    return -sum / static_cast<double>(other_.predictions());
  }

  const ScoredModel& model_;
  const SteerOptions& options_;
  std::vector<SteeredText> texts_;
  std::vector<int32_t> predicting_;  // of each text: the position whose state predicts
  ListOffsets offsets_;
  ScoredTexts other_;
  Tape tape_;
  VocabularyScratch scratch_;
};

}  // namespace

double SteerDose::mean(size_t answer) const {
  double sum = 0;
  for (const std::vector<double>& of_text : log_probabilities) sum += of_text[answer];
  return sum / static_cast<double>(log_probabilities.size());
}

double SteerDose::perplexity() const {
  return std::exp(*loss);
}

SteerReport heads_steer(const ScoredModel& model, const SteerDirection& direction,
                        const SteerQuestion& question, HeadsCorpus* other, const SteerOptions& options) {
  const ModelFolder& folder = model.folder();
  check_question(folder, question, other, options);
  check_direction(direction, *folder.model, {});
  for (const double strength : options.strengths) {
    check_option("strengths", strength, {.low = -kMostStrength, .high = kMostStrength});
    SiteValues().add(
        direction.times(static_cast<float>(strength)));  // that the numbers do not become too large
  }
  SteeredPasses passes(model, question, other, options);
  SteerReport found{.direction = direction,
                    .texts = passes.texts(),
                    .other_texts = passes.other_texts(),
                    .other_tokens = passes.other_tokens()};
  for (const double strength : options.strengths) {
    found.doses.push_back(passes.dose(direction, strength));
    if (options.progress) options.progress(std::ssize(found.doses), std::ssize(options.strengths));
  }
  return found;
}

}  // namespace mh
