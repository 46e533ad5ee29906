#include "cli/llama_flags.h"

#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ebb {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Variables = std::map<std::string, std::string, std::less<>>;

Result<TranslatedLine> translate(std::vector<const char*> arguments, const Variables& variables = {}) {
  return translate_llama_line(arguments, [&](std::string_view name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional<std::string>(found->second);
  });
}

std::vector<std::string> ours(std::vector<const char*> arguments, const Variables& variables = {}) {
  const Result<TranslatedLine> line = translate(std::move(arguments), variables);
  EXPECT_TRUE(line.ok()) << line.status().message();
  return line.ok() ? line->arguments : std::vector<std::string>();
}

std::string refused(std::vector<const char*> arguments, const Variables& variables = {}) {
  const Result<TranslatedLine> line = translate(std::move(arguments), variables);
  EXPECT_FALSE(line.ok());
  return line.status().message();
}

TEST(LlamaFlags, mean_what_they_mean_there) {
  EXPECT_THAT(ours({"-m", "a.gguf", "-np", "2", "-to", "30", "--temp=0.5", "-ub", "128"}),
              ElementsAre("--model=a.gguf", "--parallel=2", "--timeout=30", "--temp=0.5", "--chunk=128"));
  EXPECT_THAT(ours({"-t", "-1", "-np", "-1", "-dev", "none", "-ctk", "q8_0", "-ctv", "q8_0"}),
              ElementsAre("--device=cpu", "--kv-type=q8_0"));
  EXPECT_THAT(ours({"-cram", "256", "--cache-reuse", "16", "--api-key", "a,b"}),
              ElementsAre("--kv-store=ram=256M", "--kv-reuse=approximate", "--api-key=a", "--api-key=b"));
  EXPECT_THAT(ours({"-cram", "-1", "--cache-reuse", "0"}), IsEmpty());
  EXPECT_THAT(ours({"--api-key", ""}), ElementsAre("--api-key", ""));
  EXPECT_THAT(ours({"--kv-budget", "64", "-c", "32", "--no-slots"}),
              ElementsAre("--kv-budget", "64", "--ctx-size=32", "--no-slots"));
}

void expect_kv_type(std::vector<const char*> arguments, const std::string& type, const char* note) {
  const Result<TranslatedLine> line = translate(std::move(arguments));
  ASSERT_TRUE(line.ok()) << line.status().message();
  EXPECT_THAT(line->arguments, ElementsAre("--kv-type=" + type));
  ASSERT_FALSE(line->notes.empty());
  EXPECT_THAT(line->notes.front(), HasSubstr(note));
}

TEST(LlamaFlags, of_types_of_k_and_v_start_with_a_line_where_there_is_another_one) {
  expect_kv_type({"-ctk", "q8_0"}, "q8_0", "K and V have one type here: q8_0 is taken");
  expect_kv_type({"-ctv", "q8_0"}, "q8_0", "K and V have one type here: q8_0 is taken");
  expect_kv_type({"-ctk", "q8_0", "-ctv", "f16"}, "f16", "K and V have one type here: f16 is taken");
  expect_kv_type({"-ctk", "q4_0", "-ctv", "q4_0"}, "q8_0", "-ctk q4_0 is taken as q8_0");
  EXPECT_THAT(ours({"-ctk", "f16", "-ctv", "f16", "-ctk", "q8_0", "-ctv", "q8_0"}), ElementsAre("--kv-type=q8_0"));
  EXPECT_THAT(ours({"-ctk", "f16", "--kv-type", "kivi4"}), ElementsAre("--kv-type", "kivi4"));
  EXPECT_THAT(ours({"-cram", "5", "--kv-store", "disk=/x"}), ElementsAre("--kv-store", "disk=/x"));
}

TEST(LlamaFlags, know_chatml_by_its_name_and_leave_the_model_its_template_for_others) {
  EXPECT_THAT(ours({"--chat-template", "chatml"}), ElementsAre(HasSubstr("--chat-template={%")));
  EXPECT_THAT(ours({}, {{"LLAMA_ARG_CHAT_TEMPLATE", "chatml"}}), ElementsAre(HasSubstr("<|im_start|>")));
  EXPECT_THAT(ours({"--chat-template", "{{ x }}"}), ElementsAre("--chat-template={{ x }}"));
  const Result<TranslatedLine> named = translate({"--chat-template", "llama3"});
  ASSERT_TRUE(named.ok()) << named.status().message();
  EXPECT_THAT(named->arguments, IsEmpty());
  EXPECT_THAT(named->notes, ElementsAre(HasSubstr("--chat-template llama3 has no effect")));
}

TEST(LlamaFlags, take_a_reply_until_the_context_is_full_as_one_without_a_bound) {
  const Result<TranslatedLine> line = translate({"-n", "-2"});
  ASSERT_TRUE(line.ok()) << line.status().message();
  EXPECT_THAT(line->arguments, ElementsAre("--predict=-1"));
  EXPECT_THAT(line->notes, ElementsAre(HasSubstr("-n -2 is taken as -1")));
  EXPECT_THAT(ours({"-n", "7"}), ElementsAre("--predict=7"));
}

TEST(LlamaFlags, of_what_requests_say_are_their_members) {
  EXPECT_THAT(
      ours({"--xtc-probability", "0.5", "--mirostat", "2", "--ignore-eos", "--samplers", "top_k;temperature", "-l",
            "7-inf", "-l", "8+1.5", "--dry-sequence-breaker", "\\n", "--reasoning", "off", "-j",
            R"({"type":"object"})"}),
      ElementsAre(
          R"(--request-defaults={"xtc_probability":0.5,"mirostat":2,"ignore_eos":true,"samplers":["top_k","temperature"],)"
          R"("logit_bias":[[7,false],[8,1.5]],"dry_sequence_breakers":["\n"],"chat_template_kwargs":{"enable_thinking":false},)"
          R"("json_schema":{"type":"object"}})"));
}

TEST(LlamaFlags, without_an_effect_are_taken_with_a_line_and_their_values) {
  const Result<TranslatedLine> line =
      translate({"-ngl", "99", "-fa", "on", "--jinja", "-tb", "8", "-fa", "--mmproj", "x", "-ag", "--mlock", "-kvu"});
  ASSERT_TRUE(line.ok()) << line.status().message();
  EXPECT_THAT(line->arguments, IsEmpty());
  ASSERT_EQ(line->notes.size(), 9U);
  EXPECT_THAT(line->notes[0], HasSubstr("-ngl has no effect: "));
}

TEST(LlamaFlags, that_would_serve_another_model_are_refused_with_what_to_do) {
  EXPECT_THAT(refused({"-hf", "a/b"}), HasSubstr("-m FILE"));
  EXPECT_THAT(refused({"--lora", "x"}), HasSubstr("merge"));
  EXPECT_THAT(refused({"--ssl-key-file", "x"}), HasSubstr("proxy"));
  EXPECT_THAT(refused({"--chat-template", "chat.jinja"}), HasSubstr("--chat-template-file"));
  EXPECT_THAT(refused({"-ctk", "q9"}), HasSubstr("-ctk q9: must be one of kivi4, q8_0"));
  EXPECT_THAT(refused({"-c"}), HasSubstr("-c needs a value"));
  EXPECT_EQ(translate({"-m", "-hy", "-hx", "-hz"})->unknown, "-hx") << "and not a value";
  EXPECT_THAT(refused({}, {{"LLAMA_ARG_HF_REPO", "a/b"}}), HasSubstr("LLAMA_ARG_HF_REPO"));
}

TEST(LlamaFlags, may_be_variables_behind_the_command_line_and_ebbs_own) {
  const Variables variables = {{"LLAMA_ARG_MODEL", "a.gguf"},   {"LLAMA_ARG_CTX_SIZE", "4096"},
                               {"LLAMA_ARG_PORT", "1"},         {"EBB_PORT", "2"},
                               {"LLAMA_API_KEY", "k"},          {"LLAMA_ARG_ENDPOINT_SLOTS", "0"},
                               {"LLAMA_ARG_CONT_BATCHING", "0"}};
  const Result<TranslatedLine> line = translate({"-c", "64"}, variables);
  ASSERT_TRUE(line.ok()) << line.status().message();
  EXPECT_THAT(line->arguments, ElementsAre("--ctx-size=64", "--model=a.gguf", "--no-slots", "--api-key=k"));
  EXPECT_THAT(line->notes, ElementsAre(HasSubstr("LLAMA_ARG_CONT_BATCHING has no effect")));
  EXPECT_THAT(ours({}, {{"LLAMA_ARG_ENDPOINT_SLOTS", "1"}}), IsEmpty());
  EXPECT_THAT(ours({}, {{"LLAMA_ARG_NO_ENDPOINT_SLOTS", "1"}}), ElementsAre("--no-slots"));
  EXPECT_THAT(translate({}, {{"LLAMA_ARG_NO_MMAP", "1"}})->notes,
              ElementsAre(HasSubstr("LLAMA_ARG_NO_MMAP has no effect: the file is mapped")));
  EXPECT_THAT(translate({}, {{"LLAMA_ARG_NO_HOST", "1"}})->notes, ElementsAre(HasSubstr("LLAMA_ARG_NO_HOST")));
}

TEST(LlamaFlags, of_several_letters_are_told_from_several_of_one_letter_and_from_values) {
  for (const char* flag : {"-hf", "-np", "-no-kvu", "-abc"}) EXPECT_TRUE(is_bundled(flag)) << flag;
  for (const char* flag : {"-n", "-t4", "--np", "-1", "-", "a-b", "-x y z"}) EXPECT_FALSE(is_bundled(flag)) << flag;
}

TEST(LlamaFlags, have_one_name_each) {
  std::set<std::string> names;
  for (const LlamaFlag& flag : llama_flags()) {
    std::istringstream all{std::string(flag.names)};
    for (std::string name; all >> name;) EXPECT_TRUE(names.insert(name).second) << name;
    EXPECT_FALSE(flag.says.empty()) << flag.names;
  }
  EXPECT_GT(names.size(), 300U);
}

}  // namespace
}  // namespace ebb
