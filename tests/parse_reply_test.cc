// `ebb parse-reply`, as people meet it.
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/files.h"
#include "tests/program.h"

namespace ebb {
namespace {

using testing::HasSubstr;

TEST(ParseReply, reads_calls_in_the_form_of_a_template) {
  const TemporaryFile chat_template(".jinja");
  std::ofstream(chat_template.path())
      << "{{ tools | tojson if tools }}{% for m in messages %}[{{ m.role }}]{{ m.content }}{% for c in m.tool_calls or "
         "[] %}"
         "<call>{{ c.function.name }}{% for k, v in c.function.arguments.items() %}<key>{{ k }}</key><value>"
         "{{ v if v is string else v | tojson }}</value>{% endfor %}</call>{% endfor %}{% endfor %}";
  const TemporaryFile tools(".json");
  std::ofstream(tools.path()) << R"({"tools": [{"type": "function", "function": {"name": "wait", "parameters":
    {"type": "object", "properties": {"seconds": {"type": "integer"}}}}}]})";
  const std::vector<std::string> words = {"parse-reply", "--chat-template-file", chat_template.path().string(),
                                          "--tools", tools.path().string()};
  const std::string reply = "So.<call>wait<key>seconds</key><value>5</value></call>";
  const ProgramResult whole = run_ebb(words, reply);
  EXPECT_EQ(whole.exit_code, 0) << whole.err;
  EXPECT_THAT(whole.out, HasSubstr(R"("calls": "derived")"));
  EXPECT_THAT(whole.out, HasSubstr(R"("content": "So.")"));
  EXPECT_THAT(whole.out, HasSubstr(R"("arguments": "{\"seconds\":5}")"));
  std::vector<std::string> streamed = words;
  streamed.insert(streamed.end(), {"--stream", "2"});
  const ProgramResult pieces = run_ebb(streamed, reply);
  EXPECT_THAT(pieces.out, HasSubstr(R"("name":"wait")"));
  EXPECT_THAT(pieces.out, HasSubstr(R"({"call":0,"complete":true})"));
  EXPECT_NE(run_ebb({"parse-reply", "--chat-template-file", "none.jinja"}, reply).exit_code, 0);
}

}  // namespace
}  // namespace ebb
