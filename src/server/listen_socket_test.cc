#include "server/listen_socket.h"

#include <filesystem>
#include <fstream>

#include <sys/socket.h>
#include <unistd.h>

#include "gtest/gtest.h"
#include "server/http.h"
#include "server/http_test_client.h"
#include "server/http_test_desk.h"

namespace ebb {
namespace {

class UnixSocket : public testing::Test {
 protected:
  UnixSocket() {
    std::string pattern = testing::TempDir() + "ebb-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    path_ = folder_ + "/ebb.sock";
  }
  ~UnixSocket() override { std::filesystem::remove_all(folder_); }

  std::string folder_;
  std::string path_;
};

TEST_F(UnixSocket, serves_and_takes_its_file_away) {
  auto server = start_test_server({.host = path_}, echo);
  EXPECT_EQ(server->port(), 0);
  EXPECT_EQ(server->address(), "unix:" + path_);
  HttpTestClient client(path_);
  ASSERT_TRUE(client.get("/a"));
  const auto answer = client.read_answer();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->body, "GET /a? ");
  server->stop(std::chrono::milliseconds(0));
  EXPECT_FALSE(std::filesystem::exists(path_));
  const auto successor = start_test_server({.host = path_}, echo);
  server.reset();  // takes nothing of the successor's away
  EXPECT_TRUE(HttpTestClient(path_).connected());
}

TEST_F(UnixSocket, of_another_server_is_left_alone) {
  const auto server = start_test_server({.host = path_}, echo);
  const auto second = HttpServer::start({.host = path_}, echo);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.status().code(), Code::kIo);
  EXPECT_NE(second.status().message().find("another server"), std::string::npos);
  HttpTestClient client(path_);
  ASSERT_TRUE(client.get("/a"));
  EXPECT_TRUE(client.read_answer());
}

TEST_F(UnixSocket, that_nobody_listens_on_is_replaced) {
  {
    ListenSockets sockets = ListenSockets::open(path_, 0).value();
    for (const int descriptor : sockets.release()) ::close(descriptor);
    std::filesystem::rename(path_, path_ + ".kept");  // as a killed server leaves it
  }
  std::filesystem::rename(path_ + ".kept", path_);
  const auto server = HttpServer::start({.host = path_}, echo);
  ASSERT_TRUE(server.ok()) << server.status().message();
  HttpTestClient client(path_);
  ASSERT_TRUE(client.get("/a"));
  EXPECT_TRUE(client.read_answer());
}

TEST_F(UnixSocket, is_not_removed_when_it_is_somebody_elses_by_now) {
  {
    const ListenSockets ours = ListenSockets::open(path_, 0).value();
    std::filesystem::rename(path_, path_ + ".ours");  // keeps the inode, so that the next file has another
    std::ofstream(path_) << "theirs";
  }
  EXPECT_TRUE(std::filesystem::exists(path_));
}

TEST_F(UnixSocket, is_not_made_over_a_file_or_out_of_a_long_path) {
  std::ofstream(path_) << "notes";
  EXPECT_EQ(ListenSockets::open(path_, 0).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(std::filesystem::file_size(path_), 5u);
  EXPECT_EQ(ListenSockets::open(folder_ + "/" + std::string(200, 'x') + ".sock", 0).status().code(),
            Code::kInvalidArgument);
  EXPECT_EQ(ListenSockets::open(folder_ + "/none/ebb.sock", 0).status().code(), Code::kIo);
}

TEST(ListenSocket, localhost_is_reached_by_all_its_addresses) {
  const auto server = start_test_server({.host = "localhost"}, echo);
  EXPECT_EQ(server->address(), fmt::format("http://localhost:{}", server->port()));
  HttpTestClient client(server->port());
  ASSERT_TRUE(client.get("/a"));
  EXPECT_TRUE(client.read_answer());
}

TEST(ListenSocket, an_address_that_is_not_ours_is_refused) {
  const Status status = ListenSockets::open("192.0.2.1", 0).status();  // of no machine (RFC 5737)
  EXPECT_EQ(status.code(), Code::kIo);
  EXPECT_NE(status.message().find("--host"), std::string::npos);
}

}  // namespace
}  // namespace ebb
