#include "server/http_wire.h"

#include "gtest/gtest.h"

namespace ebb {
namespace {

TEST(HttpWire, writes_a_head) {
  const HttpHeaders headers = {{"Content-Type", "text/plain"}};
  EXPECT_EQ(format_head({.status = 404, .headers = headers, .body_bytes = 12, .date = 784111777}),
            "HTTP/1.1 404 Not Found\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nContent-Type: text/plain\r\n"
            "Content-Length: 12\r\n\r\n");
  EXPECT_EQ(format_head({.headers = {}, .framing = Framing::kChunked, .keep_alive = false}),
            "HTTP/1.1 200 OK\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\nConnection: close\r\n"
            "Transfer-Encoding: chunked\r\n\r\n");
  EXPECT_EQ(format_head({.headers = {}, .framing = Framing::kUntilClose, .http_1_1 = false, .keep_alive = false}),
            "HTTP/1.1 200 OK\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\nConnection: close\r\n\r\n");
}

TEST(HttpWire, writes_chunks) {
  std::string out;
  append_chunk(out, "hello, chunk of 26 letters");
  append_chunk(out, "");
  EXPECT_EQ(out, "1a\r\nhello, chunk of 26 letters\r\n");
}

TEST(HttpWire, decodes_percents) {
  EXPECT_EQ(percent_decode("a%20b+c%2B%e2%82%ac", Plus::kIsPlus), "a b+c+\xE2\x82\xAC");
  EXPECT_EQ(percent_decode("a+b", Plus::kIsSpace), "a b");
  EXPECT_EQ(percent_decode("%00", Plus::kIsPlus), std::string(1, '\0'));
  for (const std::string_view bad : {"%", "a%2", "%g0", "%0g", "%%"}) {
    EXPECT_EQ(percent_decode(bad, Plus::kIsPlus), std::nullopt) << bad;
  }
}

void expect_target(std::string_view text, const std::string& path, const std::string& query) {
  const std::optional<HttpTarget> target = parse_target(text);
  ASSERT_TRUE(target) << text;
  EXPECT_EQ(target->path, path) << text;
  EXPECT_EQ(target->query, query) << text;
}

TEST(HttpWire, splits_targets) {
  expect_target("/", "/", "");
  expect_target("/a/b?c=d?e", "/a/b", "c=d?e");
  expect_target("/a?", "/a", "");
  expect_target("/a%3Fb?c", "/a?b", "c");
  expect_target("/a#b", "/a", "");
  expect_target("*", "*", "");
  expect_target("http://host:80/a?b", "/a", "b");
  expect_target("HTTPS://host", "/", "");
  expect_target("http://host?b", "/", "b");
  for (const std::string_view bad : {"", "a", "?a", "**", "ftp://host/a", "/%"}) EXPECT_FALSE(parse_target(bad)) << bad;
}

TEST(HttpWire, names_of_headers_have_no_case) {
  EXPECT_TRUE(equal_ignoring_case("Content-TYPE", "content-type"));
  EXPECT_FALSE(equal_ignoring_case("a", "ab"));
  EXPECT_FALSE(equal_ignoring_case("[", "{"));
}

TEST(HttpWire, finds_nothing_in_a_bad_query) {
  const HttpRequest request{.query = "&&=x&a=%zz&b=1&b=2&%62=3"};
  EXPECT_EQ(request.find_query("a"), std::nullopt);
  EXPECT_EQ(request.find_query("b"), "1");
  EXPECT_EQ(request.find_query(""), "");  // of "&&"
  EXPECT_EQ(request.find_query("c"), std::nullopt);
}

}  // namespace
}  // namespace ebb
