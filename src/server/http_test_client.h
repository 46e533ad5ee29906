// A client for tests: a plain blocking socket that sends what it is told, well-formed or not, and reads answers.
//
// It does not know the server's code. Every wait has one long deadline, after which the answer is empty and the test fails;
// nothing sleeps. Thread rule: one thread at a time.
#pragma once

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace ebb {

struct TestAnswer {
  int status = 0;
  std::string version;                         // "HTTP/1.1"
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;                            // chunks joined
  bool whole = false;                          // the body ended as its framing says
};

class HttpTestClient {
 public:
  // Not connected when that fails.
  explicit HttpTestClient(std::uint16_t port);
  explicit HttpTestClient(const std::string& unix_path);
  ~HttpTestClient();
  HttpTestClient(HttpTestClient&& other) noexcept;
  HttpTestClient(const HttpTestClient&) = delete;
  HttpTestClient& operator=(const HttpTestClient&) = delete;
  HttpTestClient& operator=(HttpTestClient&&) = delete;

  [[nodiscard]] bool connected() const { return descriptor_ >= 0; }
  // False when the server does not take it all.
  bool send(std::string_view bytes) const;
  // Without a body, and with one.
  bool get(const std::string& path) const;
  bool post(const std::string& path, std::string_view body) const;

  // The next answer; the one to HEAD has no body whatever its length says. Nothing when none comes.
  [[nodiscard]] std::optional<TestAnswer> read_answer(bool to_head = false);
  // Reads until all of `text` was seen since the last call; false at the end of input.
  [[nodiscard]] bool read_until(std::string_view text);
  // Whether the server ends the connection; throws away what comes before.
  [[nodiscard]] bool sees_end();
  void close_sending_half() const;
  void close();
  // Close with RST, as a process that was killed with unread input leaves.
  void reset();
  // Small windows, so that a client that does not read is noticed soon.
  void take_little() const;

 private:
  bool fill();  // more input; false at its end

  int descriptor_ = -1;
  std::string input_;
};

// Longer than any wait that a test should see, under sanitizers and on a busy machine.
inline constexpr int kTestDeadlineMs = 60'000;

inline bool wait_for_test_socket(int descriptor, short events) {
  pollfd poll_entry{.fd = descriptor, .events = events, .revents = 0};
  int n = 0;
  do {
    n = ::poll(&poll_entry, 1, kTestDeadlineMs);
  } while (n < 0 && errno == EINTR);
  return n > 0;
}

inline std::string lower_case(std::string text) {
  for (char& letter : text) {
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  }
  return text;
}

inline HttpTestClient::HttpTestClient(std::uint16_t port)
    : descriptor_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(descriptor_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) close();
}

inline HttpTestClient::HttpTestClient(const std::string& unix_path)
    : descriptor_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(static_cast<char*>(address.sun_path), unix_path.data(), unix_path.size());
  if (::connect(descriptor_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) close();
}

inline HttpTestClient::~HttpTestClient() { close(); }

inline HttpTestClient::HttpTestClient(HttpTestClient&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), input_(std::move(other.input_)) {}

inline bool HttpTestClient::send(std::string_view bytes) const {
  while (!bytes.empty()) {
    if (!wait_for_test_socket(descriptor_, POLLOUT)) return false;
    const ssize_t n = ::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n < 0 && errno != EINTR) return false;
    if (n > 0) bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

inline bool HttpTestClient::get(const std::string& path) const {
  return send(fmt::format("GET {} HTTP/1.1\r\nHost: test\r\n\r\n", path));
}

inline bool HttpTestClient::post(const std::string& path, std::string_view body) const {
  return send(fmt::format("POST {} HTTP/1.1\r\nHost: test\r\nContent-Length: {}\r\n\r\n{}", path, body.size(), body));
}

inline bool HttpTestClient::fill() {
  std::array<char, 65536> piece;
  while (true) {
    if (!wait_for_test_socket(descriptor_, POLLIN)) return false;
    const ssize_t n = ::recv(descriptor_, piece.data(), piece.size(), 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    input_.append(piece.data(), static_cast<std::size_t>(n));
    return true;
  }
}

inline std::optional<TestAnswer> HttpTestClient::read_answer(bool to_head) {
  std::size_t end = std::string::npos;
  while ((end = input_.find("\r\n\r\n")) == std::string::npos) {
    if (!fill()) return std::nullopt;
  }
  TestAnswer answer;
  std::string head = input_.substr(0, end + 2);
  input_.erase(0, end + 4);
  answer.version = head.substr(0, head.find(' '));
  answer.status = std::stoi(head.substr(head.find(' ') + 1));
  for (std::size_t at = head.find("\r\n") + 2; at < head.size();) {
    const std::size_t line_end = head.find("\r\n", at);
    const std::size_t colon = head.find(':', at);
    answer.headers[lower_case(head.substr(at, colon - at))] = head.substr(colon + 2, line_end - colon - 2);
    at = line_end + 2;
  }
  if (to_head || answer.status < 200 || answer.status == 204) {
    answer.whole = true;
  } else if (answer.headers.contains("content-length")) {
    const std::size_t size = std::stoul(answer.headers["content-length"]);
    while (input_.size() < size && fill()) continue;
    answer.whole = input_.size() >= size;
    answer.body = input_.substr(0, size);
    input_.erase(0, size);
  } else if (answer.headers.contains("transfer-encoding")) {
    while (true) {
      std::size_t line_end = 0;
      while ((line_end = input_.find("\r\n")) == std::string::npos) {
        if (!fill()) return answer;
      }
      const std::size_t size = std::stoul(input_.substr(0, line_end), nullptr, 16);
      while (input_.size() < line_end + 2 + size + 2) {
        if (!fill()) return answer;
      }
      answer.body += input_.substr(line_end + 2, size);
      input_.erase(0, line_end + 2 + size + 2);
      if (size == 0) break;
    }
    answer.whole = true;
  } else {
    while (fill()) continue;
    answer.body = std::exchange(input_, {});
    answer.whole = true;
  }
  return answer;
}

inline bool HttpTestClient::read_until(std::string_view text) {
  std::size_t at = std::string::npos;
  while ((at = input_.find(text)) == std::string::npos) {
    if (!fill()) return false;
  }
  input_.erase(0, at + text.size());
  return true;
}

inline bool HttpTestClient::sees_end() {
  std::array<char, 65536> piece;
  while (wait_for_test_socket(descriptor_, POLLIN)) {
    const ssize_t n = ::recv(descriptor_, piece.data(), piece.size(), 0);
    if (n == 0 || (n < 0 && errno == ECONNRESET)) return true;
    if (n < 0 && errno != EINTR) return false;
  }
  return false;
}

inline void HttpTestClient::close_sending_half() const { ::shutdown(descriptor_, SHUT_WR); }

inline void HttpTestClient::close() {
  if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
}

inline void HttpTestClient::reset() {
  const linger now{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(descriptor_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
  close();
}

inline void HttpTestClient::take_little() const {
  const int size = 64 << 10;
  ::setsockopt(descriptor_, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
}

}  // namespace ebb
