// `ebb key`: API keys for `ebb serve`, and what stands for them in its key file.
#include <iostream>
#include <memory>

#include <CLI/CLI.hpp>

#include "cli/command.h"
#include "cli/terminal.h"
#include "cli/text_file.h"
#include "server/api_keys.h"

namespace ebb {
namespace {

constexpr const char* kKeyFooter = R"(Examples:
  ebb key                                    a new key, and below it the line that stands for it in a key file
  ebb key --hash < plain.txt > keys.txt      the lines for keys that there are already, one to a line
  ebb serve --api-key-file keys.txt

The key is for the client, which sends it as "Authorization: Bearer KEY"; it is printed this once and kept nowhere. The line
that begins with sha256: is for the server's file: nobody can ask with it, and it stands for the same key, so that sessions
stay where they were when a plain key in the file is replaced by its hash.)";

Status print_key(bool hash) {
  ApiKeys keys;
  if (hash) {
    EBB_ASSIGN_OR_RETURN(const std::string text, read_text("-"));
    EBB_RETURN_IF_ERROR(keys.add_lines(text));
    if (keys.empty()) return error(Code::kInvalidArgument, "no key on standard input; write one to a line");
  } else {
    EBB_ASSIGN_OR_RETURN(const std::string key, ApiKeys::make_key());
    std::cout << key << '\n';
    keys = ApiKeys({key});
  }
  for (const std::string& line : keys.hashed_lines()) std::cout << line << '\n';
  std::cout << std::flush;
  return {};
}

}  // namespace

void add_key(CLI::App& app, Action& action) {
  auto hash = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand("key", "Make a key for clients of serve, and its hash for the key file");
  command->footer(kKeyFooter);
  command->add_flag("--hash", *hash, "Make none, and print the hashes of the keys on standard input");
  command->callback([hash, &action] {
    action = [hash] {
      const Status status = print_key(*hash);
      return status.ok() ? ExitCode::kOk : fail(status);
    };
  });
}

}  // namespace ebb
