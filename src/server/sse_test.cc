#include "server/sse.h"

#include "gtest/gtest.h"

namespace ebb {
namespace {

std::string event_of(std::string_view data, std::string_view event = {}) {
  std::string out;
  append_sse(out, data, event);
  return out;
}

TEST(Sse, frames_an_event) {
  EXPECT_EQ(event_of("{\"a\":1}"), "data: {\"a\":1}\n\n");
  EXPECT_EQ(event_of(""), "data: \n\n");
  EXPECT_EQ(event_of("[DONE]"), kSseDone);
}

TEST(Sse, names_an_event_on_one_line) {
  EXPECT_EQ(event_of("{}", "message_start"), "event: message_start\ndata: {}\n\n");
  EXPECT_EQ(event_of("{}", "a\ndata: forged"), "event: a\ndata: {}\n\n");
}

TEST(Sse, gives_each_line_its_field) {
  EXPECT_EQ(event_of("a\nb\r\nc\rd\n"), "data: a\ndata: b\ndata: c\ndata: d\ndata: \n\n");
}

}  // namespace
}  // namespace ebb
