// Plots as SVG text, and the one-file HTML page that holds them.
//
// A plot is a value; drawing it is a pure function. What it draws takes its colours from the page (HtmlPage), which has a
// set for light and one for dark screens; neighbours differ in dash or place too, so that colour is not needed to tell them
// apart. Pages have no scripts and load nothing. It does not know benchmarks. Thread rule: pure functions.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace ebb {

struct PlotAxis {
  std::string label;  // with its unit: "time, ms"
  bool is_log = false;
};

struct PlotPoint {
  double x = 0.0;
  double y = 0.0;
  // Where y may lie, as a stroke from one to the other; the same: no stroke. It does not stretch the axis.
  double low = 0.0;
  double high = 0.0;
};

// Points joined in the order given, and marked where they are few. What an axis cannot show is left out: no number, or on a logarithmic axis one that
// is not above 0.
struct LinePlot {
  struct Series {
    std::string name;
    std::vector<PlotPoint> points;
  };

  std::string title;
  PlotAxis x;
  PlotAxis y;
  std::vector<Series> series;
};
[[nodiscard]] std::string draw_svg(const LinePlot& plot);

// Bars side by side in groups: values[i] belongs to series[i]. One that cannot be shown leaves its place empty.
struct BarPlot {
  struct Group {
    std::string label;
    std::vector<double> values;
  };

  std::string title;
  PlotAxis y;
  std::vector<std::string> series;
  std::vector<Group> groups;
};
[[nodiscard]] std::string draw_svg(const BarPlot& plot);

// Rows of dots over one axis, full or empty: what is true or not at a place. A row may have none.
struct DotPlot {
  struct Dot {
    double x = 0.0;
    bool is_full = false;
  };
  struct Row {
    std::string name;
    std::vector<Dot> dots;
  };

  std::string title;
  PlotAxis x;
  std::string full;  // what a full dot means, and an empty one
  std::string empty;
  std::vector<Row> rows;
};
[[nodiscard]] std::string draw_svg(const DotPlot& plot);

// Where an axis has marks: round numbers from the first at or below `low` to the first at or above `high`; of a
// logarithmic one (low > 0) powers of ten, and 2 and 5 times those where there are few.
[[nodiscard]] std::vector<double> axis_marks(double low, double high, bool is_log);

// "<", "&" and quotes as HTML and SVG want them in text and attributes.
[[nodiscard]] std::string markup_text(std::string_view text);

class HtmlPage {
 public:
  explicit HtmlPage(std::string title) : title_(std::move(title)) {}

  void add_heading(std::string_view text);
  void add_paragraph(std::string_view text);
  // As it stands, in letters of one width: tables of bench/report.h.
  void add_preformatted(std::string_view text);
  void add_plot(const LinePlot& plot) { add_figure(draw_svg(plot)); }
  void add_plot(const BarPlot& plot) { add_figure(draw_svg(plot)); }
  void add_plot(const DotPlot& plot) { add_figure(draw_svg(plot)); }

  [[nodiscard]] std::string render() const;
  // The file appears whole or not at all.
  Status write(const std::filesystem::path& path) const;

 private:
  void add_figure(const std::string& svg);

  std::string title_;
  std::string body_;
};

}  // namespace ebb
