// How --help looks: groups of flags, each with its value's name, what it does, and its default, in lines that fit a
// terminal.
//
// CLI11's own layout repeats types and ranges where a person looks for words. Thread rule: immutable.
#pragma once

#include <string>

#include <CLI/CLI.hpp>

namespace ebb {

class HelpText final : public CLI::Formatter {
 public:
  HelpText();

  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override;
  std::string make_option(const CLI::Option* option, bool is_positional) const override;
  std::string make_subcommand(const CLI::App* command) const override;

 private:
  [[nodiscard]] std::string flags_of(const CLI::App& app) const;
};

}  // namespace ebb
