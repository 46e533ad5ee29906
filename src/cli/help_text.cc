#include "cli/help_text.h"

#include <algorithm>
#include <sstream>
#include <utility>
#include <vector>

namespace ebb {
namespace {

constexpr std::size_t kNameWidth = 30;
constexpr std::size_t kLineWidth = 112;
// The group in which CLI11 puts what was given none.
const std::string kOtherFlags = "Options";

// "  NAME     what it is, over as many lines as it takes"
std::string entry(std::string name, const std::string& text) {
  name.insert(0, "  ");
  std::string lines = name;
  std::size_t column = name.size();
  if (column + 2 > kNameWidth) {
    lines += '\n';
    column = 0;
  }
  const auto indent = [&] {
    lines.append(kNameWidth - column, ' ');
    column = kNameWidth;
  };
  indent();
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (column > kNameWidth && column + 1 + word.size() > kLineWidth) {
      lines += '\n';
      column = 0;
      indent();
    } else if (column > kNameWidth) {
      lines += ' ';
      ++column;
    }
    lines += word;
    column += word.size();
  }
  return lines + '\n';
}

// "[q4_k,q8_0]" -> "q4_k,q8_0"
std::string default_text(std::string text) {
  if (text.starts_with('[') && text.ends_with(']')) return text.substr(1, text.size() - 2);
  return text;
}

// What CLI11 adds to a type, behind the name that the command gave it: ":INT in [0 - 512]", ":{f16,f32}".
std::string value_name(const CLI::Option& option) {
  const std::string name = option.get_type_name();
  return name.substr(0, name.find(':'));
}

}  // namespace

HelpText::HelpText() { column_width(kNameWidth); }

std::string HelpText::make_option(const CLI::Option* option, bool is_positional) const {
  std::string name = is_positional ? option->get_name(true) : option->get_name(false, true);
  for (std::size_t comma = name.find(','); comma != std::string::npos; comma = name.find(',', comma + 2)) {
    name.insert(comma + 1, " ");
  }
  if (const std::string value = value_name(*option); !value.empty() && !is_positional) name += " " + value;
  std::string text = option->get_description();
  if (const std::string value = default_text(option->get_default_str()); !value.empty()) {
    text += " (default " + value + ")";
  }
  return entry(name, text);
}

// In the order in which the command put them, with --help and the like last.
std::string HelpText::flags_of(const CLI::App& app) const {
  std::vector<std::string> groups = app.get_groups();
  std::ranges::stable_partition(groups, [](const std::string& group) { return group != kOtherFlags; });
  std::string text;
  for (const std::string& group : groups) {
    const auto options = app.get_options(
        [&group](const CLI::Option* option) { return option->get_group() == group && !option->get_positional(); });
    if (group.empty() || options.empty()) continue;
    text += "\n" + (group == kOtherFlags ? "Flags" : group) + ":\n";
    for (const CLI::Option* option : options) text += make_option(option, false);
  }
  return text;
}

std::string HelpText::make_subcommand(const CLI::App* command) const {
  return entry(command->get_name(), command->get_description());
}

std::string HelpText::make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const {
  return app->get_description() + "\n\n" + make_usage(app, std::move(name)) + make_subcommands(app, mode) +
         make_positionals(app) + flags_of(*app) + "\n" + make_footer(app);
}

}  // namespace ebb
