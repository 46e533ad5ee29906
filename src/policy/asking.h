// Asking: which pieces of a text ask for something, and where a long one does so between its ends.
//
// What is there to be read asks too: people in novels do, headings of help pages do. So only a line counts there that asks as a whole and
// stands by itself, outside of quotation marks: it is what somebody put between the pages for whoever reads them. A line that
// goes on from the one before, as it begins small, is none.
//
// It knows marks, and of languages how English begins what it demands. Thread rule: pure functions.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace ebb {

[[nodiscard]] bool is_question_mark(std::string_view mark);
// Whether any of its sentences ends with a question mark.
[[nodiscard]] bool has_question(std::string_view text);
// "Please name the owner of the mill". English alone: of other languages a question mark and the place tell.
[[nodiscard]] bool demands_something(std::string_view sentence);
// Of what is demanded, something that is to be found: "Tell me who owns the mill", "Find the date", and not "Answer in one sentence".
[[nodiscard]] bool demands_to_be_told(std::string_view sentence);

// Where the last line that says anything begins; the end of the text where it is the only one. Whoever writes there says it himself, whatever
// quotation marks are open before it.
[[nodiscard]] std::size_t last_line_begin(std::string_view text);
// The first or the last line of a text does and says nothing else: of several sentences that say how to answer one may.
[[nodiscard]] bool outer_line_demands(std::string_view text);

// The line of a text that a sentence, which is a view of it, stands in does and says nothing else.
[[nodiscard]] bool line_demands(std::string_view text, std::string_view sentence);

// How far quotation marks are open behind what was read; an empty line closes them all.
class QuoteMarks {
 public:
  // One line, or a part of it.
  void read(std::string_view text);
  [[nodiscard]] bool are_open() const { return is_straight_open_ || n_open_ > 0; }
  void close() { *this = {}; }
  // "He asked" is said by nobody, '"Where?" he asked' is, and so is "> Where?" in a mail.
  [[nodiscard]] static bool begin(std::string_view text);

 private:
  bool is_straight_open_ = false;
  int n_open_ = 0;
};

// Lines of a text that ask and stand by themselves, in order, each with its marks and without the space around it: those that ask with a
// question mark and say nothing else; where there are none of them, those that say something before they ask; else those that
// demand something.
[[nodiscard]] std::vector<std::string_view> find_asked_lines(std::string_view text);

}  // namespace ebb
