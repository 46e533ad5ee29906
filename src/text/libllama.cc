#include "text/libllama.h"

#include <algorithm>
#include <mutex>

#include "llama.h"

namespace ebb {
namespace {

// Messages become one line of a Status; a hostile file must not make it endless.
constexpr std::size_t kMaxErrorBytes = 1000;

std::string& errors_of_thread() {
  thread_local std::string errors;
  return errors;
}

// Called from C++ and C code of libllama and ggml: nothing may escape.
void keep_errors(ggml_log_level level, const char* text, void* /*user_data*/) {
  if (level != GGML_LOG_LEVEL_ERROR || text == nullptr) return;
  try {
    std::string& errors = errors_of_thread();
    if (errors.size() < kMaxErrorBytes)
      errors.append(text, std::min(std::char_traits<char>::length(text), kMaxErrorBytes));
  } catch (...) {  // out of memory: the message is lost, the failure itself is still returned
  }
}

}  // namespace

void start_libllama() {
  static std::once_flag started;
  std::call_once(started, [] {
    llama_log_set(keep_errors, nullptr);
    llama_backend_init();
  });
}

std::string take_libllama_errors() {
  std::string line;
  line.swap(errors_of_thread());
  while (!line.empty() && (line.back() == '\n' || line.back() == ' ')) line.pop_back();
  std::replace_if(
      line.begin(), line.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; }, ' ');
  return line;
}

}  // namespace ebb
