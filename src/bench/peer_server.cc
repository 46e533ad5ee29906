#include "bench/peer_server.h"

#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <fstream>
#include <iterator>
#include <thread>
#include <utility>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"

namespace ebb {
namespace {

using std::chrono::milliseconds;

constexpr double kMostStartMs = 600'000.0;
constexpr auto kBetweenLooks = milliseconds(50);
// A whole answer may take as long as reading the longest prompt.
constexpr int kMostSilenceSeconds = 3600;
constexpr int kMostHealthSeconds = 5;
constexpr std::size_t kLastBytes = 1500;

class Socket {
 public:
  Socket() : descriptor_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {}
  ~Socket() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  [[nodiscard]] int get() const { return descriptor_; }

 private:
  int descriptor_;
};

sockaddr_in local_address(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

// One that nobody listens at now.
Result<std::uint16_t> find_free_port() {
  const Socket socket;
  sockaddr_in address = local_address(0);
  socklen_t size = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  if (::bind(socket.get(), any, size) != 0 || ::getsockname(socket.get(), any, &size) != 0) {
    return error(Code::kIo, "no free port: {}", std::strerror(errno));
  }
  return ntohs(address.sin_port);
}

Status send_all(const Socket& socket, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return error(Code::kIo, "a request was not taken: {}", std::strerror(errno));
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return {};
}

// Until the other side ends it.
Result<std::string> receive_all(const Socket& socket) {
  std::string all;
  std::array<char, 65536> piece;
  while (true) {
    const ssize_t n = ::recv(socket.get(), piece.data(), piece.size(), 0);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return error(Code::kIo, "an answer broke off: {}", std::strerror(errno));
    if (n == 0) return all;
    all.append(piece.data(), static_cast<std::size_t>(n));
  }
}

// HTTP 1.0, so that the answer comes in one piece and its end is that of the connection.
Result<PeerAnswer> ask_at(std::uint16_t port, std::string_view request, int most_silence_seconds) {
  const Socket socket;
  const timeval most{.tv_sec = most_silence_seconds, .tv_usec = 0};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
  const sockaddr_in address = local_address(port);
  const Stopwatch watch;
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return error(Code::kIo, "nobody listens at port {}: {}", port, std::strerror(errno));
  }
  EBB_RETURN_IF_ERROR(send_all(socket, request));
  EBB_ASSIGN_OR_RETURN(std::string answer, receive_all(socket));
  PeerAnswer made{.ms = watch.elapsed_ms()};
  const std::size_t code = answer.find(' ');
  const std::size_t head = answer.find("\r\n\r\n");
  if (code == std::string::npos || head == std::string::npos) return error(Code::kIo, "no HTTP came back");
  std::from_chars(answer.data() + code + 1, answer.data() + answer.size(), made.status);
  made.body = answer.substr(head + 4);
  return made;
}

}  // namespace

Result<std::unique_ptr<PeerServer>> PeerServer::start(Program program) {
  EBB_ASSIGN_OR_RETURN(const std::uint16_t port, find_free_port());
  for (const std::string& more :
       {std::string("--host"), std::string("127.0.0.1"), std::string("--port"), std::to_string(port)}) {
    program.arguments.push_back(more);
  }
  std::unique_ptr<PeerServer> server(new PeerServer(std::move(program), port));
  const Program& started = server->program_;
  EBB_ASSIGN_OR_RETURN(
      server->child_,
      ChildProcess::start(
          {.path = started.path, .arguments = started.arguments, .out = started.log, .err = started.log}));
  EBB_RETURN_IF_ERROR(server->wait_until_ready());
  return server;
}

Status PeerServer::wait_until_ready() {
  const Stopwatch watch;
  while (watch.elapsed_ms() < kMostStartMs) {
    if (child_.has_ended()) {
      return error(Code::kIo, "{} ended before it was ready:\n{}", program_.path.string(), last_lines());
    }
    const Result<PeerAnswer> health =
        ask_at(port_, "GET /health HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n", kMostHealthSeconds);
    // Another may have taken the port meanwhile, and answer.
    if (health.ok() && health->status == 200 && !child_.has_ended()) return {};
    std::this_thread::sleep_for(kBetweenLooks);
  }
  return error(Code::kIo, "{} was not ready within ten minutes:\n{}", program_.path.string(), last_lines());
}

std::string PeerServer::last_lines() const {
  std::ifstream file(program_.log, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  return text.substr(text.size() - std::min(text.size(), kLastBytes));
}

Result<PeerAnswer> PeerServer::post(std::string_view path, std::string_view body, std::string_view session) const {
  const std::string request = fmt::format(
      "POST {} HTTP/1.0\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nX-Session-Id: {}\r\n"
      "Content-Length: {}\r\n\r\n{}",
      path, session, body.size(), body);
  Result<PeerAnswer> answer = ask_at(port_, request, kMostSilenceSeconds);
  if (answer.ok()) return answer;
  return error(answer.status().code(), "{}: {}; it printed last:\n{}", program_.path.string(),
               answer.status().message(), last_lines());
}

}  // namespace ebb
