#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <initializer_list>
#include <iterator>
#include <set>
#include <utility>

#include "lab/studies/arms.h"
#include "lab/studies/diversity/claims.h"
#include "lab/studies/one_product/claims.h"
#include "lab/studies/split_or_project/claims.h"
#include "lab/studies/study.h"
#include "lab/studies/table3/claims.h"
#include "lab/studies/two_matrices_or_one/claims.h"
#include "lab/studies/unique_heads/claims.h"
#include "lab/studies/withdrawn.h"
#include "multihead/base/error.h"
#include "multihead/base/thread_pool.h"
#include "multihead/kernels/simd.h"

namespace mh {
namespace {

/// REQUIRES: the claim is there; a conclusion is drawn of all claims of its study.
Verdict verdict_of(const std::vector<Claim>& claims, std::string_view id) {
  const auto found = std::find_if(claims.begin(), claims.end(), [&](const Claim& c) { return c.id == id; });
  MH_ASSERT(found != claims.end());
  return found->verdict;
}

bool all_pass(const std::vector<Claim>& claims, std::initializer_list<std::string_view> ids) {
  int64_t passed = 0;  // looks at all of them: an id that is no claim is found however the others went
  for (const std::string_view id : ids) passed += verdict_of(claims, id) == Verdict::kPass;
  return passed == std::ssize(ids);
}

constexpr const char* kBroken =
    "An algebraic check failed on this machine: report it before you believe the rest.";

/// One of three endings, by a trained claim's verdict.
std::string by_verdict(Verdict verdict, const char* pass, const char* fail, const char* undecided) {
  return verdict == Verdict::kPass ? pass : verdict == Verdict::kFail ? fail : undecided;
}

std::string split_conclusion(const std::vector<Claim>& c) {
  const std::string algebra =
      all_pass(c, {"000.1", "000.2", "000.4", "000.5"})
          ? "Every head here reads the whole row through a projection of its own; only the projection is "
            "narrow."
          : kBroken;
  return algebra + " " +
         by_verdict(
             verdict_of(c, "000.6"),
             "Several heads of size d/h were better than one of size d at equal cost in these runs.",
             "Several heads of size d/h were not better than one of size d at equal cost in these runs.",
             "Whether several heads of size d/h are better than one of size d at equal cost these runs leave "
             "open.");
}

std::string diversity_conclusion(const std::vector<Claim>& c) {
  return all_pass(c, {"001.2", "001.4", "001.6", "001.7"})
             ? "Random starts make heads different; heads that are exactly equal get equal gradients and "
               "stay "
               "equal. A head that reads a segment of the embedding is a canonical head with zero rows."
             : kBroken;
}

std::string two_conclusion(const std::vector<Claim>& c) {
  const std::string algebra =
      all_pass(c, {"002.1", "002.3", "002.8"})
          ? "One matrix W_i computes the same scores, but two thin ones hold them in 2 d d_k numbers instead "
            "of d^2."
          : kBroken;
  return algebra + " " +
         (verdict_of(c, "002.2") == Verdict::kPass
              ? "What they give up is rank."
              : "The ranks of trained heads were not as the formulas say.");
}

std::string unique_conclusion(const std::vector<Claim>& c) {
  const std::string algebra =
      all_pass(c, {"003.1", "003.2", "003.6", "003.7"})
          ? "Heads differ because their weights start different; equal heads would get equal gradients for "
            "ever."
          : kBroken;
  return algebra + " " +
         by_verdict(
             verdict_of(c, "003.4"),
             "In models whose embeddings start small, some of them find related words more often than "
             "the best fixed offset does.",
             "In models whose embeddings start small, heads did not beat the best fixed offset at every "
             "relation asked.",
             "Which relations of words they find, the standard size asks of a grammar whose relations "
             "lie at no fixed offset.");
}

std::string product_conclusion(const std::vector<Claim>& c) {
  return all_pass(c, {"004.1", "004.2", "004.3", "004.4", "004.5", "004.6"})
             ? "One product is how the heads are computed, not what they are: behind it stand h matrices of "
               "weights. A single head with "
               "the same numbers has one such matrix and computes something else."
             : "An algebraic check failed on this machine. Report it before you believe the rest.";
}

std::string table_conclusion(const std::vector<Claim>& c) {
  return c.empty() ? ""
                   : "In miniature, " + c.front().measured +
                         ". Where the interval covers 0 the miniature cannot tell the rows apart.";
}

const std::array kStudies = {
    Study{"split-or-project", "Is the input split over the heads, or duplicated for each?",
          "It is duplicated. Every head gets the whole row and projects it with matrices of its own from d "
          "numbers to d/h: what shrinks is the projection, not the input. The reshape in code that looks "
          "like a split comes after that projection.",
          split_or_project::algebra(), split_or_project::trained(), split_conclusion},
    Study{
        "diversity", "How are heads made different at the start, and what keeps them different?",
        "Random numbers do it. Heads whose matrices differ get different gradients; heads that are equal to "
        "the last bit, their part of W^O included, get equal ones and stay equal. The embedding is not cut "
        "into segments for that.",
        diversity::algebra(), diversity::trained(), diversity_conclusion},
    Study{"two-matrices-or-one", "Why W^Q and W^K, and not the one matrix that their product is?",
          "Because the product of two thin matrices costs 2 d d_k numbers and the one matrix d^2: with d_k = "
          "d/h that is h/2 times less. The price is rank: a head's matrix has rank d_k at most.",
          two_matrices_or_one::algebra(), two_matrices_or_one::trained(), two_conclusion},
    Study{"unique-heads", "What makes the learning of each head unique?",
          "Its own weights, from a random start. All heads see the same input; because their matrices differ "
          "their gradients differ, and so they come to do different things: one of them, for example, reads "
          "the previous word.",
          unique_heads::algebra(), unique_heads::trained(), unique_conclusion},
    Study{"one-product",
          "Why is it called multi-head when one big product computes all heads?",
          "Because after that product every head takes its own softmax: h matrices of T x T weights, not "
          "one. Stacking the matrices side by "
          "side saves time and changes nothing; taking one softmax of the whole would be another layer.",
          one_product::algebra(),
          {},
          product_conclusion},
    Study{"table3",
          "What are heads, their size, depth and width worth? (Table 3 of the paper, in miniature)",
          "More heads at equal cost help up to a point, and so do more layers, width and feed-forward: the "
          "paper's Table 3 says by how much at full size, this one at a size that trains in minutes.",
          {},
          table3::trained(),
          table_conclusion},
};

}  // namespace

std::span<const Study> studies() {
  return kStudies;
}

const Study& find_study(std::string_view name) {
  std::string names;
  for (const Study& study : kStudies) {
    if (study.name == name) return study;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", study.name);
  }
  throw UsageError(fmt::format("study '{}' is unknown; choose one of {}", name, names));
}

namespace {

template <class Check>
std::vector<std::string_view> ids_of(std::span<const Check> checks) {
  std::vector<std::string_view> ids;
  for (const Check& check : checks) ids.push_back(check.id);
  return ids;
}

/// "001.4" of claim "001.4, trained".
std::string_view number_of(std::string_view id) {
  return id.substr(0, id.find(','));
}

/// Whether a claim is among those asked for; none asked for: all are.
bool asked_for(std::string_view id, const std::vector<std::string>& numbers) {
  return numbers.empty() || std::find(numbers.begin(), numbers.end(), number_of(id)) != numbers.end();
}

/// Adds the withdrawn claims of the study that are asked for, in the place of what the report says of them,
/// and puts all claims in order.
void add_withdrawn(StudyReport& report, const std::vector<std::string>& numbers) {
  for (const WithdrawnResult& result : withdrawn_results()) {
    if (result.study != report.name || !asked_for(result.claim, numbers)) continue;
    std::erase_if(report.claims, [&](const Claim& claim) { return claim.id == result.claim; });
    report.claims.push_back(withdrawn_claim(result));
  }
  std::stable_sort(report.claims.begin(), report.claims.end(),
                   [](const Claim& a, const Claim& b) { return a.id < b.id; });
}

}  // namespace

void check_claims(const Study& study, const std::vector<std::string>& claims) {
  std::set<std::string_view> known;
  for (const AlgebraCheck& check : study.algebra) known.insert(check.id);
  for (const TrainedCheck& check : study.trained) known.insert(number_of(check.id));
  for (const WithdrawnResult& result : withdrawn_results()) {
    if (result.study == study.name) known.insert(number_of(result.claim));
  }
  for (const std::string& claim : claims) {
    if (!known.contains(claim))
      throw UsageError(fmt::format("study {} has no claim '{}'; choose one of {}", study.name, claim,
                                   fmt::join(known, ", ")));
  }
}

StudyReport run_study(const Study& study, ArmRunner& runner, const std::vector<std::string>& claims,
                      const StudyWatcher& watcher) {
  check_claims(study, claims);
  runner.keep_for(study.name);
  const auto start = std::chrono::steady_clock::now();
  StudyReport report;
  report.name = study.name;
  report.question = study.question;
  report.answer = study.answer;
  report.size = size_name(runner.size());
  report.machine = fmt::format("{} threads, {}", thread_count(), dispatch_target());
  if (watcher.step && !study.algebra.empty()) watcher.step(fmt::format("{}: algebraic claims", study.name));
  const auto add = [&](Claim claim, std::string_view id) {
    MH_ASSERT(claim.id == id);
    report.claims.push_back(std::move(claim));
  };
  for (const AlgebraCheck& check : study.algebra) {
    if (watcher.stop && watcher.stop())
      throw Interrupted("the study was stopped; runs that are done are kept");
    if (asked_for(check.id, claims)) add(check.run({}), check.id);
  }
  const auto stands = [&](const TrainedCheck& check) {
    return asked_for(check.id, claims) && !is_withdrawn(study.name, check.id);
  };
  std::vector<Arm> arms;
  for (const TrainedCheck& check : study.trained) {
    if (!stands(check) || (check.tunes && runner.size() != StudySize::kQuick)) continue;
    for (Arm& arm : check.arms(runner)) arms.push_back(std::move(arm));
  }
  runner.prepare(arms);
  for (const TrainedCheck& check : study.trained) {
    if (stands(check)) add(check.run(runner), check.id);
  }
  add_withdrawn(report, claims);
  if (claims.empty()) report.conclusion = study.conclusion(report.claims);
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

StudyReport redrawn(StudyReport kept) {
  const Study& study = find_study(kept.name);
  std::vector<std::string> numbers;  // of the claims that it has; all, where the whole study was run
  if (kept.conclusion.empty()) {
    for (const Claim& claim : kept.claims) numbers.emplace_back(number_of(claim.id));
  }
  kept.question = study.question;
  kept.answer = study.answer;
  add_withdrawn(kept, numbers);
  if (!kept.conclusion.empty()) {
    for (const auto& checks : {ids_of(study.algebra), ids_of(study.trained)}) {
      for (const std::string_view id : checks) {
        if (std::none_of(kept.claims.begin(), kept.claims.end(),
                         [&](const Claim& c) { return c.id == id; })) {
          throw FormatError(
              fmt::format("the report of {} has no claim {}; run the study again", kept.name, id));
        }
      }
    }
    kept.conclusion = study.conclusion(kept.claims);
  }
  return kept;
}

}  // namespace mh
