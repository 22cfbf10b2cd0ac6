// The report of a study: its claims, each with its clauses, tables and plots. A clause is one thing that is
// either so or not: what was asked, what was measured, the verdict.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lab/studies/plot.h"
#include "multihead/base/enum_names.h"

namespace mh {

enum class Verdict {
  kPass,       // what was measured is what was asked
  kFail,       // it is the opposite of what was asked
  kUndecided,  // the interval over the seeds covers the limit that was asked
  kMeasured,   // nothing was predicted; the figures are the result
  kWithdrawn,  // what was measured does not decide what the clause says; Clause::measured says why
};
inline constexpr EnumNames<Verdict> kVerdictNames = {{"PASS", Verdict::kPass},
                                                     {"FAIL", Verdict::kFail},
                                                     {"UNDECIDED", Verdict::kUndecided},
                                                     {"MEASURED", Verdict::kMeasured},
                                                     {"WITHDRAWN", Verdict::kWithdrawn}};
std::string_view verdict_name(Verdict verdict);  // "PASS", ...

/// What a verdict rests on.
enum class Evidence {
  kAlgebra,  // small layers with random weights: a formula holds, or this program is at fault
  kTrained,  // trained models, several seeds: may fail
};
inline constexpr EnumNames<Evidence> kEvidenceNames = {{"algebra", Evidence::kAlgebra},
                                                       {"trained", Evidence::kTrained}};
std::string_view evidence_name(Evidence evidence);

/// What it means for the words of the original question or answer that a clause passes.
enum class OriginalSays {
  kNothing,   // the original says nothing about it
  kSame,      // it says the same
  kOpposite,  // it says the opposite
};
inline constexpr EnumNames<OriginalSays> kOriginalSaysNames = {{"nothing", OriginalSays::kNothing},
                                                               {"same", OriginalSays::kSame},
                                                               {"opposite", OriginalSays::kOpposite}};

/// Whether the statement that the original makes is right; follows from the verdicts (settle()).
enum class OriginalStatement {
  kRight,
  kHalfRight,
  kWrong,
  kOpen,     // the clauses about it are undecided
  kNotMade,  // the original does not state what the claim states
};
inline constexpr EnumNames<OriginalStatement> kOriginalStatementNames = {
    {"right", OriginalStatement::kRight},
    {"half right", OriginalStatement::kHalfRight},
    {"wrong", OriginalStatement::kWrong},
    {"open", OriginalStatement::kOpen},
    {"not made", OriginalStatement::kNotMade}};
std::string_view original_statement_name(OriginalStatement statement);  // "right", "half right", ...

/// Rows of cells; the first column stands at the left, the others at the right.
struct Table {
  std::string caption;
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;

  template <class V>
  void visit(V& v) {
    v("caption", caption);
    v("columns", columns);
    v("rows", rows);
  }
};

struct Clause {
  std::string statement = {};  // a sentence
  std::string asked = {};      // what PASS asks for; empty with kMeasured
  std::string measured = {};   // figures; with kWithdrawn why nothing follows from them
  Verdict verdict = Verdict::kMeasured;
  Evidence kind = Evidence::kAlgebra;
  OriginalSays original = OriginalSays::kNothing;

  template <class V>
  void visit(V& v) {
    v("statement", statement);
    v("verdict", verdict, kVerdictNames);
    v("kind", kind, kEvidenceNames);
    v("asked", asked);
    v("measured", measured);
    v("original", original, kOriginalSaysNames);
  }
};

struct Claim {
  std::string id = {};              // "000.1"
  std::string statement = {};       // what it is about, a sentence
  std::string remark = {};          // what a reader must know before the clauses; empty: nothing
  std::string original_words = {};  // quoted, with their author; empty: there are none
  /// What the original leaves out or mixes up, said kindly; empty: nothing. It may say only what no verdict
  /// can change.
  std::string original_remark = {};
  std::vector<Clause> clauses = {};
  std::vector<Table> tables = {};
  std::vector<Plot> plots = {};
  // These follow from the clauses (settle()).
  Verdict verdict = Verdict::kMeasured;
  Evidence kind = Evidence::kAlgebra;
  OriginalStatement original_statement = OriginalStatement::kNotMade;

  template <class V>
  void visit(V& v) {
    v("id", id);
    v("statement", statement);
    v("verdict", verdict, kVerdictNames);
    v("kind", kind, kEvidenceNames);
    v("remark", remark);
    v("original_words", original_words);
    v("original_statement", original_statement, kOriginalStatementNames);
    v("original_remark", original_remark);
    v("clauses", clauses);
    v("tables", tables);
    v("plots", plots);
  }
};

/// Sets what follows from a claim's clauses:
///   verdict             FAIL when a clause fails; else UNDECIDED when one is undecided; else PASS when one
///                       passes; else MEASURED; WITHDRAWN when all are
///   kind                trained when a clause is
///   original_statement  of the clauses about the original: a PASS that says the same and a FAIL that
///                       says the opposite are for it, the other two against it. Right: all are for it.
///                       Wrong: all are against it. Half right: some of each. Open: some are undecided, and
///                       the others do not make it half right
void settle(Claim& claim);

/// "(a)", "(b)": what a page calls clause number `index`.
std::string clause_letter(size_t index);
/// The order of claims by their ids: "001.2", "001.2, trained", "001.10".
bool comes_before(std::string_view a, std::string_view b);

struct StudyReport {
  std::string name = {};        // "split-or-project"
  std::string question = {};    // as it was asked
  bool whole = false;           // every claim of the study was checked
  std::string answer = {};      // in plain words, by the verdicts; empty where some claims say nothing alone
  std::string note = {};        // on the size, what its models can show; empty: nothing
  std::string picture = {};     // the claim whose first plot shows the answer at a glance; empty: none
  std::string size = {};        // "quick", "standard", "paper"
  std::string command = {};     // that repeats it
  std::string machine = {};     // dispatch target and threads
  int64_t models = 0;           // runs that it rests on, those that chose learning rates among them
  double training_seconds = 0;  // CPU time of all of them, whenever they were made
  double seconds = 0;           // by the clock, of everything else
  std::vector<Claim> claims = {};

  template <class V>
  void visit(V& v) {
    v("name", name);
    v("question", question);
    v("whole", whole);
    v("answer", answer);
    v("note", note);
    v("picture", picture);
    v("size", size);
    v("command", command);
    v("machine", machine);
    v("models", models);
    v("training_seconds", training_seconds);
    v("seconds", seconds);
    v("claims", claims);
  }

  /// How many clauses have this verdict.
  int count(Verdict verdict) const;
};

}  // namespace mh
