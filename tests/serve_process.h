// A server as people run it, `ebb serve` on a port of its own on this machine, and requests to it over sockets.
#pragma once

#include <charconv>
#include <csignal>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "json/json_fields.h"
#include "server/http_test_client.h"
#include "tests/program.h"

namespace ebb {

struct ServeAnswer {
  int status = 0;  // 0: none came
  std::map<std::string, std::string> headers;
  std::string body;

  [[nodiscard]] Json json() const { return Json::parse(body, nullptr, false); }
};

class ServeProcess {
 public:
  // With the bundled model on one thread, and these flags.
  explicit ServeProcess(std::vector<std::string> flags) : program_(with_defaults(std::move(flags))) {
    const std::string line = program_.read_line_with(" serves ");
    const std::size_t colon = line.find("127.0.0.1:");
    if (colon == std::string::npos) return;
    const char* const digits = line.data() + colon + std::string_view("127.0.0.1:").size();
    (void)std::from_chars(digits, line.data() + line.size(), port_);
  }

  // 0 when it did not come up.
  [[nodiscard]] std::uint16_t port() const { return port_; }
  [[nodiscard]] HttpTestClient connect() const { return HttpTestClient(port_); }

  static std::string request_text(std::string_view method, std::string_view path, std::string_view body = "",
                                  std::string_view key = "") {
    std::string text = fmt::format("{} {} HTTP/1.1\r\nHost: test\r\nContent-Length: {}\r\n", method, path, body.size());
    if (!key.empty()) text += fmt::format("X-Api-Key: {}\r\n", key);
    return fmt::format("{}\r\n{}", text, body);
  }

  [[nodiscard]] ServeAnswer ask(std::string_view method, std::string_view path, std::string_view body = "",
                                std::string_view key = "") const {
    HttpTestClient client = connect();
    if (!client.connected() || !client.send(request_text(method, path, body, key))) return {};
    std::optional<TestAnswer> answer = client.read_answer();
    if (!answer || !answer->whole) return {};
    return {.status = answer->status, .headers = std::move(answer->headers), .body = std::move(answer->body)};
  }

  [[nodiscard]] double metric(const std::string& name, std::string_view key = "") const {
    const std::string text = "\n" + ask("GET", "/metrics", "", key).body;
    const std::size_t at = text.find("\n" + name + " ");
    return at == std::string::npos ? -1.0 : std::stod(text.substr(at + name.size() + 2));
  }

  // The next line of its stderr that holds `text`; "" when it ends before.
  std::string read_line_with(std::string_view text) { return program_.read_line_with(text); }

  // As `kill PID` does; its exit code.
  ProgramResult stop() {
    program_.send_signal(SIGTERM);
    return program_.wait();
  }
  void kill() {
    program_.send_signal(SIGKILL);
    (void)program_.wait();
  }

 private:
  static std::vector<std::string> with_defaults(std::vector<std::string> flags) {
    std::vector<std::string> all = {"serve", "--host", "127.0.0.1", "--port", "0", "-t", "1"};
    all.insert(all.end(), flags.begin(), flags.end());
    return all;
  }

  RunningEbb program_;
  std::uint16_t port_ = 0;
};

}  // namespace ebb
