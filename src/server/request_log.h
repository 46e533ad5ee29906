// A line of each request that ended, for whoever runs the server: the id that its answer has, what it asked for, what became of
// it and when. No query, prompt or key is in it, and a path that a stranger wrote cannot begin a line of its own.
//
// Thread rule: the responder's.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "server/http_message.h"

namespace ebb {

struct RequestOutcome {
  int status = 0;  // 0: there was no answer
  double ms = 0.0;
  // Such as " (client left)".
  std::string_view note = {};
};

// "req_1 POST /v1/completions 200 12.3 ms"
[[nodiscard]] std::string request_line(std::string_view id, const HttpRequest& request, const RequestOutcome& outcome);

// Answers as `inner` does, and has `log` told once, when the answer is complete or given up.
[[nodiscard]] std::shared_ptr<Responder> log_answer(std::shared_ptr<Responder> inner, std::string id,
                                                    const HttpRequest& request,
                                                    std::function<void(std::string_view line)> log);

}  // namespace ebb
