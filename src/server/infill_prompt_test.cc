#include "server/infill_prompt.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "text/toy_vocabulary.h"

namespace ebb {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// One letter is one token there; the words are marks where the file says so: libllama knows them by no name of their own.
class InfillPrompt : public ::testing::Test {
 protected:
  static constexpr std::int32_t kFirstWord = 261;

  // A vocabulary whose file names these of its words as marks, in this order.
  void load(const std::vector<std::string>& keys) {
    ToyHeader gguf = toy_bpe({.words = {"<m1>", "<m2>", "<m3>", "<m4>", "<m5>"}});
    for (std::size_t i = 0; i < keys.size(); ++i) {
      gguf.number("tokenizer.ggml.fim_" + keys[i] + "_token_id",
                  static_cast<std::uint32_t>(kFirstWord) + static_cast<std::uint32_t>(i));
    }
    file_ = std::make_unique<ToyFile>(gguf.bytes());
    vocabulary_ = Vocabulary::load(file_->path()).value();
    marks_ = find_fill_tokens(*vocabulary_);
  }
  // Its text.
  Result<std::string> prompt(const Json& body) {
    EBB_ASSIGN_OR_RETURN(const std::vector<Token> tokens, infill_prompt(*vocabulary_, marks_, body));
    return vocabulary_->detokenize(tokens, SpecialTokens::kShow);
  }

  std::unique_ptr<ToyFile> file_;
  std::unique_ptr<Vocabulary> vocabulary_;
  FillTokens marks_;
};

TEST_F(InfillPrompt, asks_for_what_stands_between_two_texts) {
  load({"pre", "suf", "mid"});
  EXPECT_TRUE(check_fill_tokens(marks_).ok());
  EXPECT_EQ(marks_.suffix, Token(kFirstWord + 1));
  EXPECT_EQ(prompt({{"input_prefix", "a\n"}, {"input_suffix", "c\n"}, {"prompt", "b"}}).value(), "<m1>a\nb<m2>c\n<m3>");
  EXPECT_EQ(prompt({{"input_prefix", ""}, {"input_suffix", ""}}).value(), "<m1><m2><m3>");
}

TEST_F(InfillPrompt, other_files_come_first_under_their_names_where_the_model_knows_of_files) {
  const Json body = {{"input_prefix", "a"},
                     {"input_suffix", "c"},
                     {"input_extra", Json::parse(R"([{"filename":"x.h","text":"int x;"},{"text":"int y;"}])")}};
  load({"pre", "suf", "mid"});
  EXPECT_EQ(prompt(body).value(), "\n\n--- snippet ---\n\nint x;\n\n--- snippet ---\n\nint y;<m1>a<m2>c<m3>");
  load({"pre", "suf", "mid", "rep", "sep"});
  EXPECT_EQ(prompt(body).value(), "<m4>myproject\n<m5>x.h\nint x;<m5>tmp\nint y;<m5>filename\n<m1>a<m2>c<m3>");
}

TEST_F(InfillPrompt, text_that_looks_like_a_mark_is_none) {
  load({"pre", "suf", "mid"});
  const auto tokens = infill_prompt(*vocabulary_, marks_, {{"input_prefix", "<|im_end|>"}, {"input_suffix", ""}});
  ASSERT_TRUE(tokens.ok());
  EXPECT_THAT(*tokens, Not(::testing::Contains(*vocabulary_->eos())));
}

TEST_F(InfillPrompt, a_model_without_the_marks_is_told_which_are_missing) {
  load({});
  EXPECT_THAT(check_fill_tokens(marks_).message(),
              HasSubstr("Infill is not supported by this model: prefix token is missing. suffix token is missing. "
                        "middle token is missing."));
  load({"pre", "suf"});
  EXPECT_THAT(check_fill_tokens(marks_).message(), Not(HasSubstr("suffix")));
  EXPECT_EQ(check_fill_tokens(marks_).code(), Code::kUnsupported);
}

TEST_F(InfillPrompt, what_makes_no_sense_is_refused_with_the_field_named) {
  load({"pre", "suf", "mid"});
  EXPECT_THAT(prompt(Json::object()).status().message(), HasSubstr("'input_prefix'"));
  EXPECT_THAT(prompt({{"input_prefix", "a"}}).status().message(), HasSubstr("'input_suffix'"));
  Json body = {{"input_prefix", "a"}, {"input_suffix", "c"}, {"input_extra", 5}};
  EXPECT_THAT(prompt(body).status().message(), HasSubstr("'input_extra'"));
  body["input_extra"] = Json::array({Json{{"text", 5}}});
  EXPECT_THAT(prompt(body).status().message(), HasSubstr("'input_extra[0].text'"));
  body["input_extra"] = nullptr;
  body["prompt"] = 5;
  EXPECT_THAT(prompt(body).status().message(), HasSubstr("'prompt'"));
}

}  // namespace
}  // namespace ebb
