#include "bench/svg_plot.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "bench/report.h"

namespace ebb {
namespace {

// Sizes of the drawing, in its own units; the page scales it.
//
//   +-- kLeft --+------------- plot --------------+- kRight -+
//   |           |  title, legend: above (kTop)    |          |
//   |   marks   |                                 |          |
//   +-----------+------ marks, label: kBottom ----+----------+
constexpr double kWidth = 760.0;
constexpr double kPlotHeight = 320.0;
constexpr double kLeft = 86.0;
// Half of the last mark of an axis stands here.
constexpr double kRight = 32.0;
constexpr double kBottom = 52.0;
constexpr double kTitleHeight = 30.0;
constexpr double kLegendLine = 20.0;
// The width of a letter, roughly: legends must not run into each other.
constexpr double kLetterWidth = 7.2;
constexpr double kLegendKey = 34.0;

constexpr double kRowHeight = 34.0;
constexpr double kDotRadius = 5.5;
// The most marks of a line: more run into each other.
constexpr std::size_t kMostMarks = 40;

// Colours of the page. As 8 and 3 have no common divisor, 24 lines have each their own colour and dash.
constexpr std::size_t kSeriesColors = 8;
constexpr std::array<std::string_view, 3> kDashes = {"", " stroke-dasharray=\"7 4\"", " stroke-dasharray=\"2 4\""};

constexpr std::string_view kStyle = R"(
:root { color-scheme: light dark; --page: #ffffff; --ink: #1d2329; --soft: #5b6670; --grid: #d9dee3;
  --c0: #0066b3; --c1: #c14a09; --c2: #00795c; --c3: #a23b83; --c4: #8a6a00; --c5: #2a8fbd; --c6: #b3261e; --c7: #555f69; }
@media (prefers-color-scheme: dark) {
  :root { --page: #14181c; --ink: #e6eaee; --soft: #a2adb8; --grid: #343c44;
    --c0: #6cb6f5; --c1: #f59a5c; --c2: #4fc9a4; --c3: #e38fc9; --c4: #e0bd4b; --c5: #8fd4ee; --c6: #ff8a80; --c7: #b6c0ca; }
}
body { background: var(--page); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; max-width: 72rem;
  margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.2rem; margin-top: 2.5rem; }
pre { font: 12px/1.45 ui-monospace, monospace; overflow-x: auto; }
figure { margin: 1.5rem 0; overflow-x: auto; }
svg { width: 100%; min-width: 30rem; height: auto; font: 13px system-ui, sans-serif; }
svg text { fill: var(--ink); } svg .soft { fill: var(--soft); } svg .title { font-size: 15px; font-weight: 600; }
svg .grid { stroke: var(--grid); } svg .axis { stroke: var(--soft); }
svg .line { fill: none; stroke-width: 2; } svg .range { stroke-width: 1; opacity: .55; }
)";

std::string color(std::size_t series) { return fmt::format("var(--c{})", series % kSeriesColors); }

bool can_show(double value, const PlotAxis& axis) { return std::isfinite(value) && (!axis.is_log || value > 0.0); }

// An axis with its range, and where a value lies on it.
class Scale {
 public:
  Scale(const PlotAxis& axis, std::vector<double> values, double from, double to) : is_log_(axis.is_log) {
    std::erase_if(values, [&](double value) { return !can_show(value, axis); });
    if (values.empty()) values = {1.0, 10.0};
    const auto [low, high] = std::ranges::minmax(values);
    marks_ = axis_marks(low, high, is_log_);
    from_ = from;
    to_ = to;
  }

  [[nodiscard]] double at(double value) const {
    const double share =
        is_log_ ? std::log(value / low()) / std::log(high() / low()) : (value - low()) / (high() - low());
    return from_ + share * (to_ - from_);
  }
  [[nodiscard]] double low() const { return marks_.front(); }
  [[nodiscard]] double high() const { return marks_.back(); }
  [[nodiscard]] const std::vector<double>& marks() const { return marks_; }

 private:
  bool is_log_;
  double from_ = 0.0;
  double to_ = 1.0;
  std::vector<double> marks_;
};

struct Frame {
  double top = 0.0;
  double bottom = 0.0;
  double height = 0.0;
};

std::string text_at(double x, double y, std::string_view attributes, std::string_view text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" {}>{}</text>\n", x, y, attributes, markup_text(text));
}

std::size_t n_letters(std::string_view text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

// The legend in as many lines as it takes; adds what it takes to `y`.
std::string draw_legend(const std::vector<std::string>& names, bool as_lines, double& y) {
  std::string svg;
  double x = kLeft;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const double width = kLegendKey + kLetterWidth * static_cast<double>(n_letters(names[i])) + 14.0;
    if (x > kLeft && x + width > kWidth - kRight) {
      x = kLeft;
      y += kLegendLine;
    }
    if (as_lines) {
      svg += fmt::format(
          "<line class=\"line\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\"{}/>\n", x,
          y - 4.0, x + kLegendKey - 8.0, y - 4.0, color(i), kDashes[i % kDashes.size()]);
    } else {
      svg += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"18\" height=\"11\" fill=\"{}\"/>\n", x + 6.0,
                         y - 10.0, color(i));
    }
    svg += text_at(x + kLegendKey, y, "class=\"soft\"", names[i]);
    x += width;
  }
  y += kLegendLine;
  return svg;
}

struct Canvas {
  std::string svg;
  Frame frame;
};

// Title and legend, and below them the frame of the plot.
Canvas begin_canvas(const std::string& title, const std::vector<std::string>& names, bool as_lines) {
  Canvas canvas;
  double y = kTitleHeight - 8.0;
  canvas.svg = text_at(kLeft, y, "class=\"title\"", title);
  y += kLegendLine + 2.0;
  canvas.svg += draw_legend(names, as_lines, y);
  canvas.frame = {.top = y, .bottom = y + kPlotHeight, .height = y + kPlotHeight + kBottom};
  return canvas;
}

void draw_y_axis(Canvas& canvas, const PlotAxis& axis, const Scale& scale) {
  for (const double mark : scale.marks()) {
    const double y = scale.at(mark);
    canvas.svg += fmt::format("<line class=\"grid\" x1=\"{}\" y1=\"{:.1f}\" x2=\"{}\" y2=\"{:.1f}\"/>\n", kLeft, y,
                              kWidth - kRight, y);
    canvas.svg += text_at(kLeft - 8.0, y + 4.0, "class=\"soft\" text-anchor=\"end\"", fmt::format("{:g}", mark));
  }
  const double middle = (canvas.frame.top + canvas.frame.bottom) / 2.0;
  canvas.svg +=
      text_at(0.0, 0.0, fmt::format("text-anchor=\"middle\" transform=\"translate(18 {:.1f}) rotate(-90)\"", middle),
              axis.is_log ? axis.label + " (log)" : axis.label);
}

void draw_bottom(Canvas& canvas) {
  canvas.svg += fmt::format("<line class=\"axis\" x1=\"{}\" y1=\"{:.1f}\" x2=\"{}\" y2=\"{:.1f}\"/>\n", kLeft,
                            canvas.frame.bottom, kWidth - kRight, canvas.frame.bottom);
}

void draw_x_axis(Canvas& canvas, const PlotAxis& axis, const Scale& scale) {
  for (const double mark : scale.marks()) {
    const double x = scale.at(mark);
    canvas.svg += fmt::format("<line class=\"grid\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>\n", x,
                              canvas.frame.top, x, canvas.frame.bottom);
    canvas.svg +=
        text_at(x, canvas.frame.bottom + 18.0, "class=\"soft\" text-anchor=\"middle\"", fmt::format("{:g}", mark));
  }
  canvas.svg += text_at((kLeft + kWidth - kRight) / 2.0, canvas.frame.bottom + 40.0, "text-anchor=\"middle\"",
                        axis.is_log ? axis.label + " (log)" : axis.label);
}

std::string finish(const Canvas& canvas, const std::string& title) {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {:.0f}\" role=\"img\" aria-label=\"{}\">\n{}</svg>\n",
      kWidth, canvas.frame.height, markup_text(title), canvas.svg);
}

void draw_series(Canvas& canvas, std::size_t i, const LinePlot& plot, const Scale& x, const Scale& y) {
  const LinePlot::Series& series = plot.series[i];
  std::string path;
  std::string marks;
  for (const PlotPoint& point : series.points) {
    if (!can_show(point.x, plot.x) || !can_show(point.y, plot.y)) continue;
    path += fmt::format("{}{:.1f},{:.1f}", path.empty() ? "" : " ", x.at(point.x), y.at(point.y));
    if (series.points.size() > kMostMarks) continue;
    if (point.low < point.high && can_show(point.low, plot.y)) {
      // Beside one another, so that lines of one y do not hide each other's.
      const double at = x.at(point.x) + 1.5 * static_cast<double>(i % kSeriesColors);
      marks +=
          fmt::format("<line class=\"range\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\"/>\n",
                      at, y.at(std::max(point.low, y.low())), at, y.at(std::min(point.high, y.high())), color(i));
    }
    marks += fmt::format(
        "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3.5\" fill=\"{}\"><title>{}: {:g}, {:g}</title></circle>\n",
        x.at(point.x), y.at(point.y), color(i), markup_text(series.name), point.x, point.y);
  }
  canvas.svg += fmt::format("<polyline class=\"line\" stroke=\"{}\"{} points=\"{}\"/>\n{}", color(i),
                            kDashes[i % kDashes.size()], path, marks);
}

}  // namespace

std::string markup_text(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '&': out += "&amp;"; break;
      case '"': out += "&quot;"; break;
      default: out += c;
    }
  }
  return out;
}

std::vector<double> axis_marks(double low, double high, bool is_log) {
  EBB_CHECK(std::isfinite(low) && std::isfinite(high) && low <= high && (!is_log || low > 0.0), "an axis from {} to {}",
            low, high);
  std::vector<double> marks;
  if (is_log) {
    // Rounding must not push a power of ten into the next decade.
    constexpr double kSlack = 1e-9;
    const int first = static_cast<int>(std::floor(std::log10(low) + kSlack));
    const int last = static_cast<int>(std::ceil(std::log10(high) - kSlack));
    const bool is_short = last - first <= 3;
    for (int power = first; power <= std::max(last, first + 1); ++power) {
      for (const double factor : {1.0, 2.0, 5.0}) {
        if (factor == 1.0 || is_short) marks.push_back(factor * std::pow(10.0, power));
      }
    }
    while (marks.size() > 2 && marks[1] <= low * (1.0 + kSlack)) marks.erase(marks.begin());
    while (marks.size() > 2 && marks[marks.size() - 2] >= high * (1.0 - kSlack)) marks.pop_back();
    return marks;
  }
  constexpr double kMostSteps = 8.0;
  const double rough = std::max((high - low) / kMostSteps, std::max(std::abs(high), 1e-9) * 1e-6);
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  double step = 10.0 * power;
  for (const double factor : {5.0, 2.0, 1.0}) {
    if (factor * power >= rough * (1.0 - 1e-9)) step = factor * power;
  }
  const auto first = static_cast<std::int64_t>(std::floor(low / step + 1e-9));
  auto last = static_cast<std::int64_t>(std::ceil(high / step - 1e-9));
  last = std::max(last, first + 1);
  for (std::int64_t i = first; i <= last; ++i) marks.push_back(static_cast<double>(i) * step);
  return marks;
}

std::string draw_svg(const LinePlot& plot) {
  std::vector<std::string> names;
  std::vector<double> xs;
  std::vector<double> ys;
  for (const LinePlot::Series& series : plot.series) {
    names.push_back(series.name);
    for (const PlotPoint& point : series.points) {
      if (!can_show(point.x, plot.x) || !can_show(point.y, plot.y)) continue;
      xs.push_back(point.x);
      ys.push_back(point.y);
    }
  }
  Canvas canvas = begin_canvas(plot.title, names, true);
  if (!plot.y.is_log) ys.push_back(0.0);
  const Scale x(plot.x, xs, kLeft, kWidth - kRight);
  const Scale y(plot.y, ys, canvas.frame.bottom, canvas.frame.top);
  draw_y_axis(canvas, plot.y, y);
  draw_x_axis(canvas, plot.x, x);
  draw_bottom(canvas);
  for (std::size_t i = 0; i < plot.series.size(); ++i) draw_series(canvas, i, plot, x, y);
  return finish(canvas, plot.title);
}

std::string draw_svg(const BarPlot& plot) {
  std::vector<double> ys;
  for (const BarPlot::Group& group : plot.groups) {
    EBB_CHECK(group.values.size() == plot.series.size(), "{} values of {} series", group.values.size(),
              plot.series.size());
    for (const double value : group.values) {
      if (can_show(value, plot.y)) ys.push_back(value);
    }
  }
  Canvas canvas = begin_canvas(plot.title, plot.series, false);
  // The length of a bar means something only from 0; on a logarithmic axis at least it must not vanish.
  ys.push_back(plot.y.is_log && !ys.empty() ? std::ranges::min(ys) / 2.0 : 0.0);
  const Scale y(plot.y, ys, canvas.frame.bottom, canvas.frame.top);
  draw_y_axis(canvas, plot.y, y);
  draw_bottom(canvas);
  const double group_width = (kWidth - kLeft - kRight) / std::max<double>(1.0, static_cast<double>(plot.groups.size()));
  const double bar_width = 0.8 * group_width / std::max<double>(1.0, static_cast<double>(plot.series.size()));
  const double zero = plot.y.is_log ? canvas.frame.bottom : y.at(0.0);
  for (std::size_t g = 0; g < plot.groups.size(); ++g) {
    const BarPlot::Group& group = plot.groups[g];
    const double begin = kLeft + group_width * (static_cast<double>(g) + 0.1);
    for (std::size_t i = 0; i < group.values.size(); ++i) {
      if (!can_show(group.values[i], plot.y)) continue;
      const double top = y.at(group.values[i]);
      canvas.svg += fmt::format(
          "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\"><title>{}, {}: "
          "{:g}</title></rect>\n",
          begin + bar_width * static_cast<double>(i), std::min(top, zero), bar_width * 0.92, std::abs(zero - top),
          color(i), markup_text(group.label), markup_text(plot.series[i]), group.values[i]);
    }
    canvas.svg += text_at(begin + 0.4 * group_width, canvas.frame.bottom + 18.0,
                          "class=\"soft\" text-anchor=\"middle\"", group.label);
  }
  return finish(canvas, plot.title);
}

std::string draw_svg(const DotPlot& plot) {
  std::vector<double> xs;
  std::size_t n_letters_of_names = 0;
  for (const DotPlot::Row& row : plot.rows) {
    n_letters_of_names = std::max(n_letters_of_names, n_letters(row.name));
    for (const DotPlot::Dot& dot : row.dots) xs.push_back(dot.x);
  }
  Canvas canvas;
  const double left = std::max(kLeft, kLetterWidth * static_cast<double>(n_letters_of_names) + 24.0);
  const double top = kTitleHeight + kLegendLine + 8.0;
  const double bottom = top + kRowHeight * static_cast<double>(plot.rows.size());
  canvas.frame = {.top = top, .bottom = bottom, .height = bottom + kBottom};
  const auto dot_at = [](double x, double y, bool is_full, std::string_view text) {
    return fmt::format(
        "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\" stroke=\"{}\" stroke-width=\"2\" fill=\"{}\"><title>{}</title>"
        "</circle>\n",
        x, y, kDotRadius, color(is_full ? 0 : 1), is_full ? color(0) : "var(--page)", markup_text(text));
  };
  canvas.svg = text_at(kLeft, kTitleHeight - 8.0, "class=\"title\"", plot.title);
  const double legend = kTitleHeight + kLegendLine - 6.0;
  const double second = left + kLegendKey + kLetterWidth * static_cast<double>(n_letters(plot.full)) + 24.0;
  canvas.svg += dot_at(left + 8.0, legend - 4.0, true, plot.full);
  canvas.svg += text_at(left + 20.0, legend, "class=\"soft\"", plot.full);
  canvas.svg += dot_at(second, legend - 4.0, false, plot.empty);
  canvas.svg += text_at(second + 12.0, legend, "class=\"soft\"", plot.empty);
  const Scale x(plot.x, xs, left, kWidth - kRight);
  draw_x_axis(canvas, plot.x, x);
  for (std::size_t i = 0; i < plot.rows.size(); ++i) {
    const DotPlot::Row& row = plot.rows[i];
    const double y = top + kRowHeight * (static_cast<double>(i) + 0.5);
    canvas.svg += fmt::format("<line class=\"grid\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{}\" y2=\"{:.1f}\"/>\n", left, y,
                              kWidth - kRight, y);
    canvas.svg += text_at(left - 12.0, y + 4.0, "text-anchor=\"end\"", row.name);
    for (const DotPlot::Dot& dot : row.dots) {
      if (!can_show(dot.x, plot.x)) continue;
      canvas.svg += dot_at(x.at(dot.x), y, dot.is_full,
                           fmt::format("{}, {:g}: {}", row.name, dot.x, dot.is_full ? plot.full : plot.empty));
    }
  }
  return finish(canvas, plot.title);
}

void HtmlPage::add_heading(std::string_view text) { body_ += fmt::format("<h2>{}</h2>\n", markup_text(text)); }
void HtmlPage::add_paragraph(std::string_view text) { body_ += fmt::format("<p>{}</p>\n", markup_text(text)); }
void HtmlPage::add_preformatted(std::string_view text) { body_ += fmt::format("<pre>{}</pre>\n", markup_text(text)); }
void HtmlPage::add_figure(const std::string& svg) { body_ += fmt::format("<figure>\n{}</figure>\n", svg); }

std::string HtmlPage::render() const {
  const std::string title = markup_text(title_);
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n<title>{}</title>\n"
      "<style>{}</style>\n</head>\n<body>\n<h1>{}</h1>\n{}</body>\n</html>\n",
      title, kStyle, title, body_);
}

Status HtmlPage::write(const std::filesystem::path& path) const { return write_text(path, render()); }

}  // namespace ebb
