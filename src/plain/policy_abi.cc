// The C ABI (include/ebb/policy_abi.h): where exceptions end and replies begin.
#include "ebb/policy_abi.h"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/caught.h"
#include "plain/areas_acts.h"
#include "plain/question.h"
#include "replay/areas_replay.h"

struct ebb_areas {
  ebb::PlainAreas areas;
};

namespace ebb {
namespace {

// With the text that it points into.
struct OwnedReply : ebb_reply {
  std::string owned_text;
};

ebb_reply* make_reply(const Result<std::string>& result) {
  try {
    const Status status = result.status();
    auto owned = std::make_unique<OwnedReply>();
    owned->owned_text = status.ok() ? *result : status.message();
    owned->code = static_cast<std::int32_t>(status.code());
    owned->n_bytes = owned->owned_text.size();
    owned->text = owned->owned_text.c_str();
    return owned.release();
  } catch (...) {  // not even that
    return nullptr;
  }
}

// What is thrown on the way is an error like any other: memory that ran short.
template <class Work>
ebb_reply* reply_to(std::string_view doing, const Work& work) {
  try {
    return make_reply(work());
  } catch (...) {
    try {
      return make_reply(caught(doing));
    } catch (...) {
      return nullptr;
    }
  }
}

Status check_pointers(const char* text, size_t n_bytes, const ebb_numbers* arrays, size_t n_arrays) {
  bool fits = (text != nullptr || n_bytes == 0) && (arrays != nullptr || n_arrays == 0);
  for (std::size_t i = 0; fits && i < n_arrays; ++i) fits = arrays[i].values != nullptr || arrays[i].n == 0;
  return fits ? Status() : error(Code::kInvalidArgument, "a null pointer with a length above 0");
}

std::vector<Numbers> numbers_of(const ebb_numbers* arrays, size_t n_arrays) {
  std::vector<Numbers> all;
  for (std::size_t i = 0; i < n_arrays; ++i) all.emplace_back(arrays[i].values, arrays[i].n);
  return all;
}

// A text of what came from a stranger may be cut within a character.
Result<std::string> text_of(const Result<Json>& answer) {
  if (!answer.ok()) return answer.status();
  return answer->dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace
}  // namespace ebb

extern "C" {

void ebb_reply_free(ebb_reply* reply) { delete static_cast<ebb::OwnedReply*>(reply); }

ebb_reply* ebb_policy_ask(const char* question, size_t n_bytes, const ebb_numbers* arrays, size_t n_arrays) {
  return ebb::reply_to("a question was answered", [&]() -> ebb::Result<std::string> {
    EBB_RETURN_IF_ERROR(ebb::check_pointers(question, n_bytes, arrays, n_arrays));
    return ebb::text_of(ebb::answer_question({question, n_bytes}, ebb::numbers_of(arrays, n_arrays)));
  });
}

ebb_reply* ebb_policy_replay(const char* recording, size_t n_bytes) {
  return ebb::reply_to("a recording was replayed", [&]() -> ebb::Result<std::string> {
    EBB_RETURN_IF_ERROR(ebb::check_pointers(recording, n_bytes, nullptr, 0));
    EBB_ASSIGN_OR_RETURN(const ebb::AreasReplay replay, ebb::read_areas_replay({recording, n_bytes}));
    EBB_ASSIGN_OR_RETURN(const ebb::AreasReplayReport report, ebb::run_areas_replay(replay));
    return ebb::areas_replay_json(report);
  });
}

ebb_reply* ebb_areas_make(const char* recording, size_t n_bytes, ebb_areas** areas) {
  return ebb::reply_to("a sequence was begun", [&]() -> ebb::Result<std::string> {
    if (areas == nullptr) return ebb::error(ebb::Code::kInvalidArgument, "nowhere to put the sequence");
    *areas = nullptr;
    EBB_RETURN_IF_ERROR(ebb::check_pointers(recording, n_bytes, nullptr, 0));
    EBB_ASSIGN_OR_RETURN(ebb::PlainAreas made, ebb::make_areas({recording, n_bytes}));
    *areas = new ebb_areas{std::move(made)};
    return std::string("{}");
  });
}

ebb_reply* ebb_areas_copy(const ebb_areas* areas, ebb_areas** copy) {
  return ebb::reply_to("a sequence was copied", [&]() -> ebb::Result<std::string> {
    if (areas == nullptr || copy == nullptr) return ebb::error(ebb::Code::kInvalidArgument, "no sequence");
    *copy = nullptr;
    *copy = new ebb_areas(*areas);
    return std::string("{}");
  });
}

ebb_reply* ebb_areas_act(ebb_areas* areas, const char* act, size_t n_bytes, const ebb_numbers* arrays,
                         size_t n_arrays) {
  return ebb::reply_to("a sequence went on", [&]() -> ebb::Result<std::string> {
    if (areas == nullptr) return ebb::error(ebb::Code::kInvalidArgument, "no sequence");
    EBB_RETURN_IF_ERROR(ebb::check_pointers(act, n_bytes, arrays, n_arrays));
    return ebb::text_of(ebb::act_on_areas(areas->areas, {act, n_bytes}, ebb::numbers_of(arrays, n_arrays)));
  });
}

void ebb_areas_free(ebb_areas* areas) { delete areas; }
}
