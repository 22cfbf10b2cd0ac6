// A plot of a claim: lines, strips of seeds, or matrices of weights. report.h draws it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "multihead/base/enum_names.h"

namespace mh {

enum class PlotKind {
  kLines,     // y over x, the seeds as thin lines behind it
  kStrips,    // a row for each series: its numbers y as points, and their mean with its 95 % interval
  kMatrices,  // a heat map for each series: weights of queries (rows) for keys (columns)
  kBars,      // a bar for each series, as long as its one number y
};
inline constexpr EnumNames<PlotKind> kPlotKindNames = {{"lines", PlotKind::kLines},
                                                       {"strips", PlotKind::kStrips},
                                                       {"matrices", PlotKind::kMatrices},
                                                       {"bars", PlotKind::kBars}};

/// What the numbers of kStrips are compared with; a dashed line stands there.
enum class PlotReference {
  kFirst,  // the mean of the first row
  kZero,
  kNothing,  // no line
};
inline constexpr EnumNames<PlotReference> kPlotReferenceNames = {
    {"first", PlotReference::kFirst}, {"zero", PlotReference::kZero}, {"nothing", PlotReference::kNothing}};

struct Series {
  std::string name = {};
  std::vector<double> x = {}, y = {};
  /// kLines: what y is the mean of, one line [x] for each seed; kMatrices: the rows of the matrix, numbers from 0 to 1.
  std::vector<std::vector<double>> lines = {};

  template <class V>
  void visit(V& v) {
    v("name", name);
    v("x", x);
    v("y", y);
    v("lines", lines);
  }
};

struct Plot {
  std::string title = {}, x_label = {}, y_label = {};
  bool log_x = false, log_y = false;  // log_y: of kLines; numbers that are 0 lie on the lower edge
  std::vector<Series> series = {};
  PlotKind kind = PlotKind::kLines;
  PlotReference reference = PlotReference::kFirst;
  std::vector<std::string> row_names = {}, column_names = {};  // of kMatrices: words of queries and of keys
  bool row_colours = false;  // of kMatrices: each row has a colour of its own
  /// What the reader is to look at: of kMatrices cells that get a frame, [series, row, column]; of kBars bars that get a
  /// colour of their own, [series]. Numbers from 0.
  std::vector<std::vector<int32_t>> marks = {};

  template <class V>
  void visit(V& v) {
    v("title", title);
    v("x_label", x_label);
    v("y_label", y_label);
    v("log_x", log_x);
    v("log_y", log_y);
    v("series", series);
    v("kind", kind, kPlotKindNames);
    v("reference", reference, kPlotReferenceNames);
    v("row_names", row_names);
    v("column_names", column_names);
    v("row_colours", row_colours);
    v("marks", marks);
  }
};

}  // namespace mh
