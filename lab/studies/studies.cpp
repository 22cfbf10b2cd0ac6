#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

#include "lab/studies/arms.h"
#include "lab/studies/study.h"
#include "multihead/base/error.h"
#include "multihead/base/thread_pool.h"
#include "multihead/kernels/simd.h"

namespace mh {
namespace {

constexpr std::string_view kBroken =
    "An algebraic check failed on this machine: report it before you believe the rest.";

const Claim* find_claim(const std::vector<Claim>& claims, std::string_view id) {
  const auto found = std::find_if(claims.begin(), claims.end(), [&](const Claim& c) { return c.id == id; });
  return found == claims.end() ? nullptr : &*found;
}

std::string_view sentence_of(const Sentence& sentence, Verdict verdict) {
  switch (verdict) {
    case Verdict::kPass:
      return sentence.pass;
    case Verdict::kFail:
      return sentence.fail.empty() ? kBroken : sentence.fail;
    case Verdict::kUndecided:
    case Verdict::kMeasured:
      return sentence.undecided;
    case Verdict::kWithdrawn:
      break;
  }
  return "";
}

}  // namespace

std::string answer_of(std::span<const Sentence> sentences, const std::vector<Claim>& claims) {
  std::string answer;
  for (const Sentence& sentence : sentences) {
    const Claim* claim = find_claim(claims, sentence.claim);
    MH_ASSERT(claim != nullptr && sentence.clause < claim->clauses.size());
    const std::string_view words = sentence_of(sentence, claim->clauses[sentence.clause].verdict);
    if (!words.empty()) answer += fmt::format("{}{}", answer.empty() ? "" : " ", words);
  }
  return answer;
}

const Study& find_study(std::string_view name) {
  std::string names;
  for (const Study& study : studies()) {
    if (study.name == name) return study;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", study.name);
  }
  throw UsageError(fmt::format("study '{}' is unknown; choose one of {}", name, names));
}

namespace {

/// "001.4" of claim "001.4, trained".
std::string_view number_of(std::string_view id) {
  return id.substr(0, id.find(','));
}

/// Whether a claim is among those asked for; none asked for: all are.
bool asked_for(std::string_view id, const std::vector<std::string>& numbers) {
  return numbers.empty() || std::find(numbers.begin(), numbers.end(), number_of(id)) != numbers.end();
}

/// What models of a size can show.
std::string_view note_on(std::string_view size) {
  if (size == size_name(StudySize::kQuick))
    return "Trained claims of this size rest on a language of 33 words and models of one layer.";
  if (size == size_name(StudySize::kStandard))
    return "Trained claims of this size show early learning: models of 600 updates. Canonical ones translate "
           "about 60 % "
           "of the test sentences exactly; the model of `multihead demo`, trained longer, 98 % of its own.";
  return "Trained claims of this size show early learning, too: 1,500 updates on 29,000 sentence pairs.";
}

/// Those of the answer; of a report of some claims those that stand alone and are about its claims.
std::vector<Sentence> sentences_for(const StudyReport& report, const Study& study) {
  if (report.whole) return study.answer;
  std::vector<Sentence> sentences = study.alone;
  std::erase_if(sentences, [&](const Sentence& s) { return find_claim(report.claims, s.claim) == nullptr; });
  return sentences;
}

/// The study's, or the first claim with a plot when the report is about others.
std::string picture_for(const StudyReport& report, const Study& study) {
  if (report.whole || find_claim(report.claims, study.picture) != nullptr) return study.picture;
  const auto found = std::find_if(report.claims.begin(), report.claims.end(),
                                  [](const Claim& claim) { return !claim.plots.empty(); });
  return found == report.claims.end() ? "" : found->id;
}

/// What follows from the figures of all claims.
void settle(StudyReport& report, const Study& study) {
  for (Claim& claim : report.claims) settle(claim);
  std::stable_sort(report.claims.begin(), report.claims.end(),
                   [](const Claim& a, const Claim& b) { return comes_before(a.id, b.id); });
  report.question = study.question;
  report.picture = picture_for(report, study);
  const bool any_trained = std::any_of(report.claims.begin(), report.claims.end(),
                                       [](const Claim& claim) { return claim.kind == Evidence::kTrained; });
  report.note = any_trained ? note_on(report.size) : "";
  report.answer = answer_of(sentences_for(report, study), report.claims);
}

}  // namespace

void check_claims(const Study& study, const std::vector<std::string>& claims) {
  std::set<std::string_view> known;
  for (const AlgebraCheck& check : study.algebra) known.insert(check.id);
  for (const TrainedCheck& check : study.trained) known.insert(number_of(check.id));
  for (const std::string& claim : claims) {
    if (!known.contains(claim))
      throw UsageError(fmt::format("study {} has no claim '{}'; choose one of {}", study.name, claim,
                                   fmt::join(known, ", ")));
  }
}

StudyReport run_study(const Study& study, ArmRunner& runner, const std::vector<std::string>& claims,
                      const StudyWatcher& watcher) {
  check_claims(study, claims);
  for (const TrainedCheck& check : study.trained) {
    if (check.paper_only && runner.size() != StudySize::kPaper && !claims.empty() &&
        asked_for(check.id, claims))
      throw UsageError(fmt::format("claim {} needs real text: add --paper --data DIR", check.id));
  }
  runner.keep_for(study.name);
  const auto start = std::chrono::steady_clock::now();
  StudyReport report;
  report.name = study.name;
  report.size = size_name(runner.size());
  report.machine =
      fmt::format("{} {}, {}", thread_count(), thread_count() == 1 ? "thread" : "threads", dispatch_target());
  if (watcher.step && !study.algebra.empty()) watcher.step(fmt::format("{}: algebraic claims", study.name));
  const auto add = [&](Claim claim, std::string_view id) {
    MH_ASSERT(claim.id == id);
    report.claims.push_back(std::move(claim));
  };
  const auto stop_if_asked = [&] {
    if (watcher.stop && watcher.stop())
      throw Interrupted("the study was stopped; runs that are done are kept");
  };
  for (const AlgebraCheck& check : study.algebra) {
    stop_if_asked();
    if (asked_for(check.id, claims)) add(check.run({}), check.id);
  }
  for (const TrainedCheck& check : study.trained) {
    stop_if_asked();
    if (asked_for(check.id, claims) && (!check.paper_only || runner.size() == StudySize::kPaper))
      add(check.run(runner), check.id);
  }
  report.whole = claims.empty();
  settle(report, study);
  const ArmRunner::Used used = runner.used();
  report.models = used.runs;
  report.training_seconds = used.training_seconds;
  report.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() - used.waited_seconds;
  return report;
}

StudyReport redrawn(StudyReport kept) {
  const Study& study = find_study(kept.name);
  for (const Sentence& sentence : sentences_for(kept, study)) {
    const Claim* claim = find_claim(kept.claims, sentence.claim);
    if (claim == nullptr || sentence.clause >= claim->clauses.size()) {
      throw FormatError(fmt::format("the report of {} lacks claim {} or a clause of it; run the study again",
                                    kept.name, sentence.claim));
    }
  }
  settle(kept, study);
  return kept;
}

}  // namespace mh
