#include "bench/svg_plot.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace ebb {
namespace {

using testing::ElementsAre;

// Whether every tag that is opened is closed in order, and no "<" or "&" stands alone: what XML wants of these files.
testing::AssertionResult is_well_formed(std::string_view xml) {
  std::vector<std::string> open;
  for (std::size_t i = 0; i < xml.size(); ++i) {
    if (xml[i] == '&') {
      const std::size_t end = xml.find(';', i);
      if (end == std::string_view::npos || end - i > 5) return testing::AssertionFailure() << "a bare & at " << i;
    }
    if (xml[i] != '<') continue;
    const std::size_t end = xml.find('>', i);
    if (end == std::string_view::npos) return testing::AssertionFailure() << "an open < at " << i;
    const std::string_view tag = xml.substr(i + 1, end - i - 1);
    if (std::ranges::count(tag, '"') % 2 != 0) return testing::AssertionFailure() << "an open quote in " << tag;
    const std::string name(tag.substr(0, tag.find_first_of(" \n/", 1)));
    if (name.starts_with("/")) {
      if (open.empty() || "/" + open.back() != std::string(tag)) return testing::AssertionFailure() << tag;
      open.pop_back();
    } else if (!tag.ends_with("/") && !tag.starts_with("!")) {
      open.push_back(name);
    }
    i = end;
  }
  if (!open.empty()) return testing::AssertionFailure() << "<" << open.back() << "> is never closed";
  return testing::AssertionSuccess();
}

std::ptrdiff_t count(std::string_view text, std::string_view part) {
  std::ptrdiff_t n = 0;
  for (std::size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

LinePlot lines() {
  return {.title = "A <b> & \"c\"",
          .x = {.label = "span, tokens", .is_log = true},
          .y = {.label = "time, ms", .is_log = true},
          .series = {{"save", {{64, 0.1}, {320, 0.5}, {1280, 2.0}}}, {"recall", {{64, 0.01}, {1280, 0.2}}}}};
}

TEST(SvgPlot, draws_a_line_and_its_points_for_each_series) {
  const std::string svg = draw_svg(lines());
  EXPECT_TRUE(is_well_formed(svg)) << svg;
  EXPECT_EQ(count(svg, "<polyline"), 2);
  EXPECT_EQ(count(svg, "<circle"), 5);
  EXPECT_NE(svg.find("span, tokens (log)"), std::string::npos);
  EXPECT_NE(svg.find("time, ms (log)"), std::string::npos);
  EXPECT_NE(svg.find("A &lt;b&gt; &amp; &quot;c&quot;"), std::string::npos);
}

TEST(SvgPlot, draws_where_a_point_may_lie_and_not_beyond_the_axis) {
  LinePlot plot{.x = {.label = "budget"}, .y = {.label = "right, %"}, .series = {{"recall", {{1, 50}, {2, 60}}}}};
  EXPECT_EQ(count(draw_svg(plot), "class=\"range\""), 0);
  plot.series[0].points[0].low = -1000.0;
  plot.series[0].points[0].high = 55.0;
  const std::string svg = draw_svg(plot);
  EXPECT_EQ(count(svg, "class=\"range\""), 1);
  EXPECT_THAT(svg, ::testing::Not(::testing::HasSubstr("y1=\"-")));
}

TEST(SvgPlot, draws_a_bar_for_each_value) {
  const BarPlot plot = {.title = "Speed",
                        .y = {.label = "tok/s"},
                        .series = {"ebb", "peer"},
                        .groups = {{"q4_k", {10, 9}}, {"q8_0", {6, std::numeric_limits<double>::quiet_NaN()}}}};
  const std::string svg = draw_svg(plot);
  EXPECT_TRUE(is_well_formed(svg)) << svg;
  EXPECT_EQ(count(svg, "<title>"), 3);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
}

TEST(SvgPlot, draws_a_dot_for_each_place_full_or_empty) {
  const DotPlot plot = {.title = "Answers",
                        .x = {.label = "tokens"},
                        .full = "right",
                        .empty = "wrong",
                        .rows = {{"one", {{10, true}, {20, false}}}, {"two <i>", {{10, true}}}, {"none", {}}}};
  const std::string svg = draw_svg(plot);
  EXPECT_TRUE(is_well_formed(svg)) << svg;
  EXPECT_EQ(count(svg, "<circle"), 3 + 2) << "the legend has one of each";
  EXPECT_EQ(count(svg, "fill=\"var(--page)\""), 1 + 1);
  EXPECT_NE(svg.find("<title>one, 20: wrong</title>"), std::string::npos);
  EXPECT_NE(svg.find("two &lt;i&gt;"), std::string::npos);
}

TEST(SvgPlot, a_line_of_many_points_has_no_marks) {
  LinePlot plot = lines();
  const auto n_marks = count(draw_svg(plot), "<circle");
  plot.series.push_back({"long", {}});
  for (int i = 1; i <= 100; ++i) plot.series.back().points.push_back({100.0 * i, 1.0});
  EXPECT_EQ(count(draw_svg(plot), "<circle"), n_marks);
}

TEST(SvgPlot, leaves_out_what_an_axis_cannot_show) {
  LinePlot plot = lines();
  plot.series[0].points[1].y = 0.0;
  plot.series[1].points[0].y = std::numeric_limits<double>::infinity();
  const std::string svg = draw_svg(plot);
  EXPECT_EQ(count(svg, "<circle"), 3);
  EXPECT_EQ(svg.find("inf"), std::string::npos);
}

TEST(SvgPlot, draws_nothing_too) {
  EXPECT_TRUE(is_well_formed(draw_svg(LinePlot{.title = "none"})));
  EXPECT_TRUE(is_well_formed(draw_svg(DotPlot{.title = "none"})));
  EXPECT_TRUE(is_well_formed(draw_svg(BarPlot{.title = "none", .y = {.label = "ms", .is_log = true}})));
}

TEST(SvgPlot, many_series_stay_inside_the_drawing) {
  LinePlot plot = lines();
  for (int i = 0; i < 12; ++i) plot.series.push_back({"a series with a long name", {{100, 1}}});
  const std::string svg = draw_svg(plot);
  EXPECT_TRUE(is_well_formed(svg));
  // The ninth has the first one's colour, and another dash.
  EXPECT_GT(count(svg, "stroke-dasharray"), 0);
}

TEST(SvgPlot, marks_are_round_numbers_around_the_data) {
  EXPECT_THAT(axis_marks(0.0, 10.0, false), ElementsAre(0.0, 2.0, 4.0, 6.0, 8.0, 10.0));
  EXPECT_THAT(axis_marks(0.0, 37.0, false), ElementsAre(0.0, 5.0, 10.0, 15.0, 20.0, 25.0, 30.0, 35.0, 40.0));
  EXPECT_THAT(axis_marks(32.0, 1280.0, true), ElementsAre(20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 2000.0));
  EXPECT_THAT(axis_marks(1.0, 10.0, true), ElementsAre(1.0, 2.0, 5.0, 10.0));
  const std::vector<double> wide = axis_marks(0.003, 9000.0, true);
  ASSERT_EQ(wide.size(), 8U);
  EXPECT_DOUBLE_EQ(wide.front(), 0.001);
  EXPECT_DOUBLE_EQ(wide.back(), 10000.0);
}

TEST(SvgPlot, an_axis_of_one_value_has_an_extent) {
  for (const bool is_log : {false, true}) {
    for (const double value : {1.0, 7.0, 1e-9, 64.0, 1e6}) {
      const std::vector<double> marks = axis_marks(value, value, is_log);
      ASSERT_GE(marks.size(), 2U) << value;
      EXPECT_LE(marks.front(), value * (1 + 1e-9));
      EXPECT_GE(marks.back(), value * (1 - 1e-9));
      EXPECT_LT(marks.front(), marks.back());
    }
  }
  EXPECT_GE(axis_marks(0.0, 0.0, false).size(), 2U);
}

TEST(HtmlPage, is_one_file_that_loads_nothing) {
  HtmlPage page("Speed & more");
  page.add_heading("One");
  page.add_paragraph("a < b");
  page.add_preformatted("x  y");
  page.add_plot(lines());
  const std::filesystem::path path = std::filesystem::temp_directory_path() / fmt::format("ebb_page_{}.html", getpid());
  ASSERT_TRUE(page.write(path).ok());
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  std::filesystem::remove(path);
  EXPECT_EQ(text.str(), page.render());
  EXPECT_TRUE(is_well_formed(
      text.str().substr(text.str().find("<body>"), text.str().find("</html>") - text.str().find("<body>"))));
  for (const char* outside : {"<script", "href", "src=", "url(", "@import"}) {
    EXPECT_EQ(text.str().find(outside), std::string::npos) << outside;
  }
  EXPECT_NE(text.str().find("prefers-color-scheme: dark"), std::string::npos);
  EXPECT_NE(text.str().find("<title>Speed &amp; more</title>"), std::string::npos);
}

TEST(HtmlPage, a_folder_that_is_not_there_is_an_error_with_the_files_name) {
  const Status status = HtmlPage("x").write("/nowhere/at/all.html");
  EXPECT_EQ(status.code(), Code::kIo);
  EXPECT_NE(status.message().find("/nowhere/at/all.html"), std::string::npos);
}

}  // namespace
}  // namespace ebb
