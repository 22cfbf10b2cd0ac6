// The studies: their questions and the sentences of their answers, from answers.json, and the checks of their claims.
#include <nlohmann/json.hpp>

#include "lab/studies/diversity/claims.h"
#include "lab/studies/one_product/claims.h"
#include "lab/studies/split_or_project/claims.h"
#include "lab/studies/study.h"
#include "lab/studies/table3/claims.h"
#include "lab/studies/two_matrices_or_one/claims.h"
#include "lab/studies/unique_heads/claims.h"
#include "multihead/base/embed.h"

// MULTIHEAD_ANSWERS is answers.json beside this file.
MH_EMBED(mh_answers, MULTIHEAD_ANSWERS);

namespace mh {
namespace {

struct Checks {
  std::string_view study;
  std::span<const AlgebraCheck> algebra;
  std::span<const TrainedCheck> trained;
};

/// Of a clause by its name: "001.4, trained (a)".
Sentence sentence_of(const nlohmann::json& sentences, const std::string& clause) {
  const nlohmann::json& words = sentences.at(clause);
  const size_t letter = clause.rfind(" (");
  return {.claim = clause.substr(0, letter),
          .clause = static_cast<size_t>(clause.at(letter + 2) - 'a'),
          .pass = words.at("pass"),
          .fail = words.value("fail", ""),
          .undecided = words.value("undecided", "")};
}

std::vector<Study> read_studies() {
  const Checks checks[] = {
      {"split-or-project", split_or_project::algebra(), split_or_project::trained()},
      {"diversity", diversity::algebra(), diversity::trained()},
      {"two-matrices-or-one", two_matrices_or_one::algebra(), two_matrices_or_one::trained()},
      {"unique-heads", unique_heads::algebra(), unique_heads::trained()},
      {"one-product", one_product::algebra(), one_product::trained()},
      {"table3", {}, table3::trained()}};
  const auto file = nlohmann::json::parse(mh_answers, mh_answers_end);
  std::vector<Study> studies;
  for (const nlohmann::json& from : file.at("studies")) {
    Study& study = studies.emplace_back();
    study.name = from.at("name"), study.question = from.at("question");
    study.picture = from.at("picture"), study.on_text = from.at("on_text");
    for (const auto& [list, sentences] : {std::pair{"answer", &study.answer}, {"alone", &study.alone}}) {
      for (const nlohmann::json& clause : from.at(list))
        sentences->push_back(sentence_of(file.at("sentences"), clause));
    }
    for (const Checks& of : checks) {
      if (of.study == study.name) study.algebra = of.algebra, study.trained = of.trained;
    }
  }
  return studies;
}

}  // namespace

std::span<const Study> studies() {
  static const std::vector<Study> all = read_studies();
  return all;
}

}  // namespace mh
