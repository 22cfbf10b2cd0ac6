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

/// Of a clause by its name: "001.4, trained (a)".
Sentence read_sentence(const nlohmann::json& sentences, const std::string& clause) {
  const nlohmann::json& words = sentences.at(clause);
  const size_t letter = clause.rfind(" (");
  return {.claim = clause.substr(0, letter),
          .clause = static_cast<size_t>(clause.at(letter + 2) - 'a'),
          .pass = words.at("pass"),
          .fail = words.value("fail", ""),
          .undecided = words.value("undecided", "")};
}

Study read_study(const nlohmann::json& file, const char* name, std::span<const AlgebraCheck> algebra,
                 std::span<const TrainedCheck> trained) {
  const nlohmann::json& from = file.at("studies").at(name);
  const auto sentences = [&](const char* list) {
    std::vector<Sentence> read;
    for (const nlohmann::json& clause : from.at(list))
      read.push_back(read_sentence(file.at("sentences"), clause));
    return read;
  };
  return {.name = name,
          .question = from.at("question"),
          .answer = sentences("answer"),
          .alone = sentences("alone"),
          .picture = from.at("picture"),
          .algebra = algebra,
          .trained = trained};
}

std::vector<Study> read_studies() {
  const auto file = nlohmann::json::parse(mh_answers, mh_answers_end);
  return {
      read_study(file, "split-or-project", split_or_project::algebra(), split_or_project::trained()),
      read_study(file, "diversity", diversity::algebra(), diversity::trained()),
      read_study(file, "two-matrices-or-one", two_matrices_or_one::algebra(), two_matrices_or_one::trained()),
      read_study(file, "unique-heads", unique_heads::algebra(), unique_heads::trained()),
      read_study(file, "one-product", one_product::algebra(), one_product::trained()),
      read_study(file, "table3", {}, table3::trained())};
}

}  // namespace

std::span<const Study> studies() {
  static const std::vector<Study> all = read_studies();
  return all;
}

}  // namespace mh
