// What Python's Jinja2 makes of the templates in tests/templates (tools/make_template_goldens), byte for byte.
#include <filesystem>
#include <fstream>
#include <iterator>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "chat/chat_template.h"

namespace ebb::chat_template_golden_test {
namespace {

using Json = nlohmann::ordered_json;

const std::filesystem::path kFolder = std::filesystem::path(EBB_SOURCE_DIR) / "tests" / "templates";

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

TemplateInputs inputs_of(const Json& request) {
  TemplateInputs inputs;
  inputs.messages = request["messages"];
  if (request.contains("tools")) inputs.tools = request["tools"];
  if (request.contains("arguments")) inputs.arguments = request["arguments"];
  inputs.add_generation_prompt = request.value("add_generation_prompt", true);
  inputs.bos_token = "<s>";
  inputs.eos_token = "</s>";
  inputs.now = {};
  inputs.now.tm_year = 126;  // 2026-07-26 10:00, a Sunday
  inputs.now.tm_mon = 6;
  inputs.now.tm_mday = 26;
  inputs.now.tm_hour = 10;
  inputs.now.tm_yday = 206;
  return inputs;
}

Result<std::string> render(const std::string& source, const Json& request) {
  EBB_ASSIGN_OR_RETURN(const ChatTemplate chat_template, ChatTemplate::compile(source));
  EBB_ASSIGN_OR_RETURN(const ChatPrompt prompt, chat_template.render(inputs_of(request)));
  return prompt.text();
}

TEST(ChatTemplateGolden, renders_as_jinja2_does) {
  const Json requests = Json::parse(read_file(kFolder / "requests.json"));
  const Json goldens = Json::parse(read_file(kFolder / "goldens.json"));
  ASSERT_GT(goldens.size(), 100U);
  for (const Json& golden : goldens) {
    const bool is_case = golden.contains("case");
    const auto name =
        golden[is_case ? "case" : "template"].get<std::string>() + " / " + golden["request"].get<std::string>();
    const std::string source =
        is_case ? golden["source"].get<std::string>() : read_file(kFolder / golden["template"].get<std::string>());
    const auto text = render(source, requests[golden["request"].get<std::string>()]);
    if (golden.contains("output")) {
      ASSERT_TRUE(text.ok()) << name << ": " << text.status().message();
      EXPECT_EQ(*text, golden["output"].get<std::string>()) << name;
    } else {
      ASSERT_FALSE(text.ok()) << name << " rendered as " << *text;
      EXPECT_NE(text.status().message().find("line "), std::string::npos) << name;
      const std::string raised = golden.value("raised", "");
      EXPECT_NE(text.status().message().find(raised), std::string::npos) << name << ": " << text.status().message();
    }
  }
}

}  // namespace
}  // namespace ebb::chat_template_golden_test
