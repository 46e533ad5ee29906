#include "session/question_span.h"

#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "text/toy_vocabulary.h"

namespace ebb {
namespace {

class QuestionSpan : public testing::Test {
 protected:
  [[nodiscard]] std::int32_t n_tokens(const std::string& text) const {
    return static_cast<std::int32_t>(vocabulary_->tokenize(text, {.add_bos = false})->size());
  }

  [[nodiscard]] std::int32_t n_asking(const std::string& text, const std::vector<Cue>& cues) const {
    return n_asking_tokens(*vocabulary_->tokenize(text, {.add_bos = false}), *vocabulary_, cues);
  }

  ToyFile file_{toy_bpe().bytes()};
  std::unique_ptr<Vocabulary> vocabulary_ = *Vocabulary::load(file_.path());
};

TEST_F(QuestionSpan, it_begins_at_the_first_of_several_questions_and_goes_to_the_end) {
  const std::string asked = "Who is Ada? Where is she?\n";
  const std::string text = "We read a book. " + asked;
  EXPECT_EQ(n_asking(text, find_cues(text)), n_tokens(asked));
}

TEST_F(QuestionSpan, what_was_cut_off_in_front_is_let_be) {
  const std::vector<Cue> cues = find_cues("Who is Ada? Where is she?");
  EXPECT_EQ(n_asking("is Ada? Where is she?", cues), n_tokens("Where is she?"));
}

TEST_F(QuestionSpan, words_that_do_not_lead_or_stand_elsewhere_hold_nothing) {
  const std::vector<Cue> cues = find_cues("We read a book. Who is Ada?");
  EXPECT_EQ(n_asking("We read a book.", cues), 0);
  EXPECT_EQ(n_asking("who is ada?", cues), 0);
  EXPECT_EQ(n_asking("Who is Ada?", {}), 0);
  EXPECT_EQ(n_asking("", cues), 0);
}

}  // namespace
}  // namespace ebb
