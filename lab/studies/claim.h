// The report of a study: its claims, each with what was measured, the tolerance and the verdict.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace mh {

enum class Verdict {
  kPass,
  kFail,
  kUndecided,  // the interval covers the tolerance
  kMeasured,   // no prediction; the figures are the result
  kWithdrawn,  // an earlier result that does not stand; the claim says only why
};
std::string_view verdict_name(Verdict verdict);  // "PASS", ...

/// Whether the statement that the original question or one of its answers makes is right.
enum class OriginalStatement {
  kRight,
  kHalfRight,
  kWrong,
  kNotMade,  // the original does not state what the claim states
};
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

enum class PlotKind {
  kLines,   // y over x
  kStrips,  // a row for each series: its numbers y as points, and their mean with its 95 % interval
};

/// A line or strip of a plot; low and high: an interval around y, or empty.
struct Series {
  std::string name;
  std::vector<double> x, y, low, high;

  template <class V>
  void visit(V& v) {
    v("name", name);
    v("x", x);
    v("y", y);
    v("low", low);
    v("high", high);
  }
};

struct Plot {
  std::string title, x_label, y_label;
  bool log_x = false;
  std::vector<Series> series;
  PlotKind kind = PlotKind::kLines;

  template <class V>
  void visit(V& v) {
    v("title", title);
    v("x_label", x_label);
    v("y_label", y_label);
    v("log_x", log_x);
    v("series", series);
    v("kind", kind, {{"lines", PlotKind::kLines}, {"strips", PlotKind::kStrips}});
  }
};

struct Claim {
  std::string id = {};              // "000.1"
  std::string statement = {};       // a sentence
  std::string original_words = {};  // quoted, with their author; empty: there are none
  OriginalStatement original_statement = OriginalStatement::kNotMade;
  std::string measured = {};   // a sentence with figures
  std::string tolerance = {};  // what PASS asks for; empty with kMeasured
  Verdict verdict = Verdict::kMeasured;
  bool trained = false;  // rests on trained models; else on algebra, which may not fail
  std::vector<Table> tables = {};
  std::vector<Plot> plots = {};
  std::string withdrawn = {};  // with kWithdrawn: why, a sentence; then there is nothing else but the id

  template <class V>
  void visit(V& v) {
    v("id", id);
    v("statement", statement);
    v("original_words", original_words);
    v("original_statement", original_statement,
      {{"right", OriginalStatement::kRight},
       {"half right", OriginalStatement::kHalfRight},
       {"wrong", OriginalStatement::kWrong},
       {"not made", OriginalStatement::kNotMade}});
    v("measured", measured);
    v("tolerance", tolerance);
    v("verdict", verdict,
      {{"PASS", Verdict::kPass},
       {"FAIL", Verdict::kFail},
       {"UNDECIDED", Verdict::kUndecided},
       {"MEASURED", Verdict::kMeasured},
       {"WITHDRAWN", Verdict::kWithdrawn}});
    v("trained", trained);
    v("tables", tables);
    v("plots", plots);
    v("withdrawn", withdrawn);
  }
};

struct StudyReport {
  std::string name;        // "split-or-project"
  std::string question;    // as it was asked
  std::string answer;      // in plain words, a paragraph
  std::string conclusion;  // two sentences whose words depend on what was measured
  std::string size;        // "quick", "standard", "paper"
  std::string command;     // that repeats it
  std::string machine;     // dispatch target and threads
  double seconds = 0;
  std::vector<Claim> claims = {};

  template <class V>
  void visit(V& v) {
    v("name", name);
    v("question", question);
    v("answer", answer);
    v("conclusion", conclusion);
    v("size", size);
    v("command", command);
    v("machine", machine);
    v("seconds", seconds);
    v("claims", claims);
  }

  int count(Verdict verdict) const;
};

}  // namespace mh
