#include "server/request_id.h"

#include <gtest/gtest.h>

namespace ebb {
namespace {

TEST(RequestId, is_what_the_client_calls_it_or_new) {
  EXPECT_EQ(request_id({.headers = {{"X-Request-Id", "a-1_b.2:c"}}}), "a-1_b.2:c");
  const std::string first = request_id({});
  EXPECT_TRUE(first.starts_with("req_"));
  EXPECT_NE(request_id({}), first);
  for (const std::string& given :
       {std::string(), std::string("a b"), std::string("a\r\nx: y"), std::string(129, 'a')}) {
    const HttpRequest request{.headers = {{"X-Request-Id", given}}};
    EXPECT_TRUE(request_id(request).starts_with("req_")) << given;
  }
}

}  // namespace
}  // namespace ebb
