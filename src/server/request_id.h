// Request ids: what an answer is called, so that a client's log and whoever looks after the server speak of the same one.
//
// Thread rule: functions; any thread.
#pragma once

#include <string>

#include "server/http_message.h"

namespace ebb {

// What the client calls it (x-request-id, up to 128 letters, digits and -_.:), or a new one.
[[nodiscard]] std::string request_id(const HttpRequest& request);

}  // namespace ebb
