#include "policy/cues.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ebb {
namespace {

std::vector<std::string> texts(const std::vector<Cue>& cues) {
  std::vector<std::string> all;
  for (const Cue& cue : cues) all.push_back(cue.text);
  return all;
}

TEST(Cues, each_sentence_of_a_short_message_is_one_the_newest_first) {
  const std::vector<Cue> cues = find_cues("Where does Ada live? What does Ben grow? Who sold the red boat?");
  EXPECT_EQ(texts(cues),
            (std::vector<std::string>{" Who sold the red boat", " What does Ben grow", "Where does Ada live"}));
  for (const Cue& cue : cues) EXPECT_EQ(cue.weight, 1.0);
}

TEST(Cues, what_says_something_beside_a_question_weighs_less_and_alone_it_does_not) {
  const std::vector<Cue> both = find_cues("Thank you for the report. Who wrote the third page?");
  ASSERT_EQ(both.size(), 2U);
  EXPECT_EQ(both[0].text, " Who wrote the third page");
  EXPECT_LT(both[1].weight, both[0].weight);
  EXPECT_EQ(find_cues("Write down who wrote the third page").front().weight, 1.0);
}

TEST(Cues, what_demands_beside_a_question_is_one_and_elsewhere_it_tells) {
  for (const Cue& cue : find_cues("Who sold the red boat? Tell me the code of the mill. Name its owner.")) {
    EXPECT_EQ(cue.weight, 1.0) << cue.text;
  }
  const std::vector<Cue> tale = find_cues("When it rained, he stayed. The mill stood still. Who sold the red boat?");
  EXPECT_EQ(tale.front().text, " Who sold the red boat");
  EXPECT_LT(tale[1].weight, 1.0);
  EXPECT_LT(tale[2].weight, 1.0);
}

TEST(Cues, the_next_one_is_what_was_said_behind_it) {
  const std::vector<SaidText> said = {{.text = "The boat is red."},
                                      {.text = "Thank you for that. Who sold it to Ada? Where does Ben live?"}};
  const std::vector<Cue> cues = find_cues(said);
  const auto next_of = [&](std::string_view text) {
    const auto cue =
        std::ranges::find_if(cues, [&](const Cue& one) { return one.text.find(text) != std::string::npos; });
    const Cue* const next = next_cue(cues, cue->place);
    return next == nullptr ? "" : next->text;
  };
  EXPECT_THAT(next_of("boat"), testing::HasSubstr("Ada")) << "what asks comes before what is said between";
  EXPECT_THAT(next_of("Thank you"), testing::HasSubstr("Ada"));
  EXPECT_THAT(next_of("Ada"), testing::HasSubstr("Ben"));
  EXPECT_EQ(next_of("Ben"), "");
}

TEST(Cues, a_full_stop_in_a_path_or_a_number_ends_no_sentence) {
  EXPECT_EQ(texts(find_cues("Why does src/base/hash.cc print 3.14 there?")),
            (std::vector<std::string>{"Why does src/base/hash.cc print 3.14 there"}));
}

TEST(Cues, a_word_or_two_go_with_the_sentence_before_them) {
  EXPECT_EQ(texts(find_cues("What grew there in autumn? And spring?")),
            (std::vector<std::string>{"What grew there in autumn? And spring"}));
  EXPECT_EQ(texts(find_cues("Velkor?")), (std::vector<std::string>{"Velkor"}));
}

TEST(Cues, of_a_long_message_only_its_ends_are) {
  std::string document;
  for (int i = 0; i < 400; ++i) document += "The mill stood by river number " + std::to_string(i) + " for years. ";
  for (const std::string& message :
       {document + "\nWhich lock opens the mill?", "Which lock opens the mill?\n" + document}) {
    const std::vector<Cue> cues = find_cues(message);
    EXPECT_THAT(cues.front().text, testing::HasSubstr("Which lock opens the mill"));
    EXPECT_EQ(cues.front().weight, 1.0);
    EXPECT_LE(cues.size(), 24U);
    for (const std::string& text : texts(cues)) EXPECT_LE(text.size(), 1024U);
  }
}

TEST(Cues, of_a_long_message_what_demands_an_answer_is_all_that_is_looked_for) {
  std::string document;
  for (int i = 0; i < 60; ++i) document += "The mill stood by river number " + std::to_string(i) + " for years. ";
  EXPECT_EQ(texts(find_cues(document + "Please tell me the code of the mill.")),
            (std::vector<std::string>{" Please tell me the code of the mill"}));
  EXPECT_EQ(texts(find_cues("Name the owner of the mill.\n" + document)),
            (std::vector<std::string>{"Name the owner of the mill"}));
  // Where nothing tells, the outermost weigh most.
  const std::vector<Cue> cues = find_cues("Mill owner, surname first.\n" + document);
  ASSERT_GT(cues.size(), 2U);
  EXPECT_EQ(cues[1].text, "Mill owner, surname first");
  EXPECT_EQ(cues[1].weight, 1.0);
  EXPECT_LT(cues[2].weight, 1.0);
}

TEST(Cues, a_short_line_that_is_no_sentence_before_or_behind_a_long_message_may_say_what_is_meant) {
  std::string pairs = "{";
  for (int i = 0; i < 200; ++i) pairs += "\"k" + std::to_string(i) + "\": \"v" + std::to_string(i) + "\", ";
  const std::string demand = "Extract the value for the key from this JSON object.\n";
  const std::vector<Cue> last = find_cues(demand + pairs + "}\nKey: \"k77\"");
  ASSERT_EQ(texts(last),
            (std::vector<std::string>{"Extract the value for the key from this JSON object", "Key: \"k77\""}));
  EXPECT_EQ(last[0].weight, 1.0);
  EXPECT_LT(last[1].weight, 1.0);
  EXPECT_GT(last[1].weight, 0.5);
  EXPECT_EQ(
      texts(find_cues("Key: \"k77\" of this object\n" + demand + pairs)),
      (std::vector<std::string>{"Extract the value for the key from this JSON object", "Key: \"k77\" of this object"}));
  // Rows of two words go with nothing.
  std::string rows = "{";
  for (int i = 0; i < 200; ++i) rows += "\"k" + std::to_string(i) + "\": \"v" + std::to_string(i) + "\",\n ";
  EXPECT_EQ(texts(find_cues(demand + rows + "\"k\": \"v\"}\nKey: \"k77\"")), texts(last));
  // The end of a line that is longer than what is looked at is none.
  std::string line = "Summarise this:\n";
  for (int i = 0; i < 100; ++i) line += std::string(50, static_cast<char>('a' + i % 26)) + " ";
  EXPECT_EQ(texts(find_cues(line)), (std::vector<std::string>{"Summarise this:"}));
  // What ends with a mark is the document's.
  EXPECT_EQ(find_cues(demand + pairs + "}\nThe object ends here.").size(), 1U);
}

std::string novel(int n_lines) {
  std::string text = "\"Well, Prince, what do you say to Genoa and Lucca?\" she asked him.\n";
  for (int i = 0; i < n_lines; ++i)
    text += "The mill stood by river number " + std::to_string(i) + " for many years.\n";
  return text;
}

TEST(Cues, of_a_long_message_that_asks_nothing_are_what_was_asked_before) {
  const std::string asked = "Who sold the red boat?";
  const auto cues_of = [](const SaidText& before, const std::string& now) {
    return find_cues(std::vector<SaidText>{before, {.text = now}});
  };
  for (const Source source : {Source::kUser, Source::kSystem}) {
    const SaidText before = {.text = "Be brief. " + asked, .source = source, .is_before = true};
    const std::vector<Cue> cues = cues_of(before, novel(40));
    EXPECT_EQ(bare_text(cues.front()), "Who sold the red boat");
    EXPECT_TRUE(cues.front().where == SaidWhere::kBefore);
    EXPECT_EQ(leading_cues(cues).size(), 1U) << "and not the outermost lines of what is to be read";
    const std::vector<Cue> asks_itself = cues_of(before, novel(40) + "Where is the mill?");
    EXPECT_EQ(bare_text(asks_itself.front()), "Where is the mill");
    EXPECT_TRUE(leading_cues(asks_itself).back().where == SaidWhere::kAtEnds);
    for (const Cue& cue : cues_of(before, "And the mill?")) EXPECT_TRUE(cue.where != SaidWhere::kBefore);
  }
  // Much of what systems demand is how to answer.
  const auto demanded = [&](const char* text) {
    return cues_of({.text = text, .source = Source::kSystem, .is_before = true}, novel(40)).front();
  };
  for (const char* how : {"Answer in one short sentence.", "List your sources.", "Tell me.", "Find.", "Tell jokes."}) {
    EXPECT_TRUE(demanded(how).where != SaidWhere::kBefore) << how;
  }
  for (const char* what : {"Tell me the owner of the boat.", "Please give us the boat's price.", "Name the owner."}) {
    EXPECT_TRUE(demanded(what).where == SaidWhere::kBefore) << what;
  }
}

TEST(Cues, what_a_user_asks_between_the_ends_of_a_long_message_is_one_with_its_mark) {
  const std::string asked = "Who sold the red boat?";
  const std::vector<Cue> alone = find_cues(novel(40) + asked + "\n" + novel(40));
  EXPECT_EQ(texts(alone), (std::vector<std::string>{asked}));
  EXPECT_TRUE(alone.front().where == SaidWhere::kWithin);
  EXPECT_EQ(alone.front().weight, 1.0);
  const std::string instructions =
      "\n" + std::string(600, '-') + " Answer in one short sentence. If the text does not say it, say so.\n";
  const std::vector<Cue> before = find_cues(novel(40) + asked + "\n" + instructions);
  EXPECT_EQ(before.front().text, asked);
  EXPECT_EQ(before.front().weight, 1.0);
  EXPECT_LT(before.back().weight, kOuterLineWeight) << before.back().text;
  // Nor is it the page's heading that is asked.
  const std::vector<Cue> heading = find_cues(novel(40) + asked + "\n" + novel(40) + "Tell me the owner of the mill.");
  EXPECT_EQ(heading.front().text, "Tell me the owner of the mill");
  EXPECT_EQ(heading.front().weight, 1.0);
  // Of several questions in a line each is one, whatever the page begins with.
  std::string several;
  for (int i = 0; i < 9; ++i) several += "Who sold boat number " + std::to_string(i) + "? ";
  const std::vector<Cue> nine = find_cues("When it rained, he stayed.\n" + novel(40) + several + "\n" + novel(40));
  EXPECT_EQ(
      std::ranges::count_if(nine, [](const Cue& cue) { return cue.weight == 1.0 && cue.where == SaidWhere::kWithin; }),
      9);
  // Tools return pages that ask.
  const std::vector<SaidText> page = {{.text = novel(40) + asked + "\n" + novel(40), .source = Source::kTool}};
  for (const Cue& cue : find_cues(page)) EXPECT_FALSE(cue.where == SaidWhere::kWithin) << cue.text;
}

TEST(Cues, a_last_line_that_only_demands_asks_as_much_as_the_first_lines_of_what_is_to_be_read) {
  std::string text = "Why did the old prince not come to the mill in spring?\n";
  for (int i = 0; i < 60; ++i) text += "The prince looked at the long road and said nothing of the matter.\n";
  for (const std::string demand : {"Tell me the owner of the green clock.",
                                   "Name the owner of the red mill. Tell me the owner of the green clock."}) {
    const std::vector<Cue> cues = find_cues(text + demand);
    ASSERT_GE(cues.size(), 2U);
    EXPECT_THAT(cues.front().text, ::testing::HasSubstr("the owner of the green clock"));
    EXPECT_EQ(cues.front().weight, 1.0);
    EXPECT_TRUE(cues.front().asks);
    if (demand.starts_with("Name")) {
      EXPECT_EQ(std::ranges::count_if(cues, [](const Cue& cue) { return cue.weight == 1.0; }), 3);
    }
  }
}

// Ten questions in one line are longer than what is looked at of an end, and each of them is one all the same.
TEST(Cues, a_line_of_questions_that_an_end_cuts_is_taken_whole) {
  std::string text;
  for (int i = 0; i < 60; ++i) text += "The prince looked at the long road and said nothing of the matter.\n";
  std::string line;
  for (int i = 0; i < 20; ++i)
    line +=
        (i > 0 ? " Who is the owner of mill number " : "Who is the owner of mill number ") + std::to_string(i) + "?";
  for (const std::string& message :
       {text + line, line + "\n" + text, text + "\n" + line + "\nAnswer in short sentences."}) {
    const std::vector<Cue> cues = find_cues(message);
    for (int i = 0; i < 20; ++i) {
      const auto n = std::ranges::count_if(cues, [&](const Cue& cue) {
        return cue.weight == 1.0 &&
               (cue.text + "?").find("mill number " + std::to_string(i) + "?") != std::string::npos;
      });
      EXPECT_EQ(n, 1) << i;
    }
  }
}

// What is to be read ends in the middle of what somebody says, and the last line stands right behind it.
TEST(Cues, the_last_line_is_said_by_nobody_in_what_is_to_be_read) {
  std::string text;
  for (int i = 0; i < 40; ++i) text += "The prince looked at the long road and said nothing of the matter.\n";
  text += "\"Where are you going?\" he cried. \"I have never seen such a road, and I wish that\n";
  for (const std::string speech : {"\"And what then?\" he said.\n", "the prince would come.\n", "he asked: \"Why?\n"}) {
    const std::vector<Cue> cues = find_cues(text + speech + "Who owns the red mill? Who owns the blue boat?");
    EXPECT_EQ(texts(cues), (std::vector<std::string>{" Who owns the blue boat", "Who owns the red mill"})) << speech;
  }
}

TEST(Cues, of_lines_that_ask_within_beside_ends_that_ask_few_weigh_nearly_as_much_and_many_are_the_documents) {
  const std::string last = "Where does Ada live?";
  const std::vector<Cue> few = find_cues(novel(40) + "Who sold the red boat?\n" + novel(40) + last);
  ASSERT_EQ(few.size(), 2U);
  EXPECT_EQ(few[0].text, "Where does Ada live");
  EXPECT_EQ(few[1].weight, kOuterLineWeight);
  std::string help = novel(20);
  for (int i = 0; i < 9; ++i) help += "How is page number " + std::to_string(i) + " printed?\nBy the green key.\n";
  const std::vector<Cue> many = find_cues(help + novel(20) + last);
  EXPECT_EQ(many[0].text, "Where does Ada live");
  EXPECT_LT(many[1].weight, 0.5);
}

// Chats and novels ask at their ends too.
TEST(Cues, what_asks_in_a_paragraph_or_line_of_its_own_comes_before_what_the_document_asks_beside_it) {
  std::string chat;
  for (int i = 0; i < 60; ++i)
    chat += "Tom: yes, I will be there at two.\nUma: can we meet at six instead?\nPaul: no.\n";
  const std::string question = "What is the code of the blue chest?";
  for (const std::string& text : {chat + "\n" + question, chat + question, question + "\n\n" + chat}) {
    const std::vector<Cue> cues = find_cues(text);
    ASSERT_GT(cues.size(), 1U);
    EXPECT_EQ(cues[0].text, question.substr(0, question.size() - 1));
    EXPECT_LT(cues[1].weight, kOuterLineWeight * cues[0].weight) << cues[1].text;
  }
  // Several questions lead together, in a paragraph, in lines and in paragraphs of their own.
  const std::string other = "Who owns the silver mill?";
  for (const char* between : {" ", "\n", "\n\n", " Tell me both. "}) {
    const std::vector<Cue> cues = find_cues(chat + "\n" + question + between + other);
    EXPECT_EQ(leading_cues(cues).size(), std::string_view(between).size() > 2 ? 3U : 2U) << between;
  }
}

TEST(Cues, rules_that_stand_beside_a_question_in_its_paragraph_do_not_hide_it) {
  std::string rules;
  for (int i = 0; i < 12; ++i)
    rules += " Keep the names and the numbers just as they are, and be brief in all you say.";
  for (const std::string& asked : {"Where does Ada live?" + rules, rules + " Where does Ada live?" + rules}) {
    for (const std::string& text : {novel(80) + "\n\n" + asked, asked + "\n\n" + novel(80)}) {
      const std::vector<Cue> cues = find_cues(text);
      EXPECT_NE(cues[0].text.find("Where does Ada live"), std::string::npos) << cues[0].text;
      EXPECT_TRUE(cues[0].asks);
      // Far from both ends it is looked for elsewhere, and told by its mark from what answers.
      const bool is_far = !text.starts_with("Where");
      EXPECT_EQ(cues[0].where == SaidWhere::kWithin, is_far);
      EXPECT_EQ(cues[0].text.ends_with('?'), is_far);
    }
  }
  // A paragraph of what is to be read is none of them.
  const std::string read = "Where does Ben live? he asked." + rules + rules + rules;
  EXPECT_EQ(find_cues(novel(80) + "\n\n" + read).front().text.find("Where does Ben"), std::string::npos);
}

TEST(Cues, sentences_of_scripts_with_marks_of_their_own_end_there) {
  EXPECT_EQ(
      texts(find_cues("\u7eff\u8272\u7684\u8239\u5728\u54ea\u91cc\uff1f\u7ea2\u8272\u7684\u8239\u5f88\u65e7\u3002"))
          .size(),
      2U);
}

TEST(Cues, the_last_thing_said_comes_first_and_what_a_tool_says_weighs_less_than_a_user) {
  const std::vector<SaidText> said = {{.text = "Find out why the build of velkor fails"},
                                      {.text = "read_file velkor/build.log", .source = Source::kAssistant},
                                      {.text = "error in module quagga at line nine", .source = Source::kTool}};
  const std::vector<Cue> cues = find_cues(said);
  ASSERT_EQ(cues.size(), 3U);
  EXPECT_EQ(cues[0].text, "error in module quagga at line nine");
  const std::vector<SaidText> asked = {{.text = "error in module quagga at line nine", .source = Source::kTool},
                                       {.text = "What does that mean now"}};
  EXPECT_EQ(find_cues(asked)[0].text, "What does that mean now");
}

TEST(Cues, what_one_result_asks_comes_before_what_stands_at_the_ends_of_another_that_is_there_to_be_read) {
  std::string prose = "The prince rode out in the early morning";
  for (int i = 0; i < 40; ++i) prose += ". The road was long and the wind cold that day";
  const std::vector<SaidText> said = {{.text = "Read the files and do what they say."},
                                      {.text = "What is the code of the red gate?", .source = Source::kTool},
                                      {.text = prose + ". The horses were tired", .source = Source::kTool}};
  EXPECT_EQ(texts(find_cues(said)).at(1), "What is the code of the red gate") << "behind what the user said";
  // What is short may be all that is meant, and where nobody asks the last one leads.
  std::vector<SaidText> is_short = said;
  is_short.back().text = "The manager of the office is Kim";
  EXPECT_EQ(find_cues(is_short).front().text, "The manager of the office is Kim");
  std::vector<SaidText> none_asks = said;
  none_asks[1].text = "The code of the red gate";
  EXPECT_EQ(find_cues(none_asks).front().text, " The horses were tired");
}

// An agent asked once, and reads file after file: what answers may stand in the first of them.
TEST(Cues, what_the_user_asks_leads_however_many_calls_came_since_unless_a_result_asks) {
  std::vector<SaidText> said = {{.text = "What is the code of the red gate?"}};
  for (int i = 0; i < 6; ++i) {
    said.push_back({.text = "read_file notes.txt", .source = Source::kAssistant});
    said.push_back({.text = "Salt the water well. The soup is thin. A cook waits.", .source = Source::kTool});
  }
  const std::vector<Cue> cues = find_cues(said);
  EXPECT_EQ(cues.front().text, "What is the code of the red gate");
  EXPECT_EQ(leading_cues(cues).size(), 1U) << "the results' sentences come behind it";
  said.back().text = "Now, what is the owner of the blue barn?";
  EXPECT_NE(find_cues(said).front().text, "What is the code of the red gate");
}

TEST(Cues, how_a_reply_was_begun_says_what_it_tells) {
  const std::string document = novel(80);
  const std::vector<SaidText> said = {{.text = document},
                                      {.text = "The code of the red gate is", .source = Source::kAssistant}};
  EXPECT_EQ(find_cues(said).front().text, "The code of the red gate is");
  EXPECT_EQ(leading_cues(find_cues(said)).front().text, "The code of the red gate is");
}

TEST(Cues, nothing_said_and_nothing_but_marks_are_none) {
  EXPECT_TRUE(find_cues("").empty());
  EXPECT_TRUE(find_cues(" ... ?!\n\n").empty());
  EXPECT_TRUE(find_cues(std::span<const SaidText>()).empty());
}

TEST(Cues, bytes_that_are_no_text_and_cut_characters_are_taken_as_they_are) {
  std::string odd(5000, '\x80');
  odd += "\xe4\xb8";
  for (std::size_t n = 0; n < 64; ++n) EXPECT_LE(find_cues(odd.substr(n)).size(), 24U);
}

}  // namespace
}  // namespace ebb
