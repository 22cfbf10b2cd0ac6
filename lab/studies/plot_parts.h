// What the drawings of plots share: axes, headings, colours, and the matrices of a plot.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "lab/studies/plot.h"
#include "multihead/tensor/tensor.h"

namespace mh {

/// Told apart by people who do not see all colours (Okabe and Ito 2008).
constexpr const char* kPlotColours[] = {"#0072B2", "#D55E00", "#009E73", "#CC79A7",
                                        "#E69F00", "#56B4E9", "#000000"};

struct Axis {
  double low = std::numeric_limits<double>::infinity(), high = -std::numeric_limits<double>::infinity();
  bool logarithmic = false;
  double from = 0, to = 1;  // in the picture

  /// Whether the axis has a place for it: finite, and above 0 where it is logarithmic.
  bool takes(double value) const;
  /// Widens the axis to a number that it takes.
  void meet(double value);
  /// Room on both sides, a part of the span; some numbers where it met none.
  void widen(double part);
  double place(double value) const;
};

struct Tick {
  double at = 0;
  std::string number;
};
/// Round numbers between the axis' ends, at most eight, written with equally many decimals.
std::vector<Tick> ticks(const Axis& axis);

/// The beginning of a picture: page and title, as many lines as it needs.
class Heading {
 public:
  Heading(const std::string& title, double width);
  /// What the drawing below begins at.
  double bottom() const;
  std::string draw(double width, double height, double left) const;

 private:
  std::vector<std::string> lines_;
};

/// What lines at ticks look like.
constexpr const char* kGrid = "stroke=\"#ddd\"";
/// Vertical lines at the ticks, their numbers, and what the axis is.
std::string x_axis(const Axis& x, const std::string& label, double top, double bottom);

/// Series::lines. Throws ShapeError when its rows differ in length or there is none.
Tensor matrix_of(const Series& series);
/// The names of rows and columns; numbers from 1 where the plot has none.
struct MatrixNames {
  std::vector<std::string> rows, columns;
};
MatrixNames names_of(const Plot& plot, ConstMatrixView matrix);

std::string lines_as_svg(const Plot& plot);
std::string strips_as_svg(const Plot& plot);
std::string bars_as_svg(const Plot& plot);
std::string matrices_as_svg(const Plot& plot);

}  // namespace mh
