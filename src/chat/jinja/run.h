// Run: the state of one rendering that every part of the engine shares: its heap, its first error, and what it may still
// spend.
//
// The first failure stays; whoever works for the run stops at failed(), and what it returns then means nothing. Work is paid
// for before it is done, so that no template takes for ever or fills the memory, whatever its input.
// Thread rule: one thread.
#pragma once

#include <cstddef>
#include <ctime>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/status.h"
#include "chat/jinja/value.h"

namespace ebb::jinja {

// Bytes that are copied, compared or searched for one step, which takes some 0.1 µs: what goes word by word. More: a template that does
// nothing else takes longer than one of small steps.
constexpr std::size_t kBytesAStep = 64;
// Bytes that are read or changed character by character for one step.
constexpr std::size_t kReadBytesAStep = 8;

// The real templates need under a thousandth of the steps for a prompt of 30,000 characters.
struct RunLimits {
  std::size_t max_steps = 10'000'000;            // nodes evaluated, items made, bytes looked at
  std::size_t max_bytes = std::size_t{1} << 30;  // all strings and lists made, also those that are gone
  std::size_t max_output_bytes = std::size_t{1} << 26;
  int max_depth = 800;  // nested calls, statements and expressions; some 500 bytes of stack each
};

class Run {
 public:
  Run(const RunLimits& its_limits, const std::tm& time) : limits(its_limits), now(time) {}

  [[nodiscard]] bool failed() const { return !failure_.ok(); }
  [[nodiscard]] const Status& failure() const { return failure_; }
  // Returns undefined, so that `return run.fail(...)` reads well.
  template <class... Args>
  Value fail(fmt::format_string<Args...> format, Args&&... args) {
    set_failure(Code::kInvalidArgument, fmt::format(format, std::forward<Args>(args)...));
    return {};
  }
  // raise_exception
  Value raise(const std::string& message);

  // False, and failed, when it is too much.
  bool pay(std::size_t steps);
  bool pay_bytes(std::size_t n_bytes);
  // Of what is there already: looked through, and read character by character.
  bool pay_scan(std::size_t n_bytes) { return pay(n_bytes / kBytesAStep); }
  bool pay_reading(std::size_t n_bytes) { return pay(n_bytes / kReadBytesAStep); }

  // Members of dicts, paid for as long as their keys are. Null when there is none, or it cannot be a key.
  const Value* find(const Dict& dict, const Value& key);
  const Value* find(const Dict& dict, std::string_view key);
  void set(Dict& dict, const Value& key, Value value);

  [[nodiscard]] std::size_t n_steps() const { return steps_; }

  // Python's ==, paid for.
  bool equal(const Value& a, const Value& b);

  // What strings and lists are made with: paid for, undefined when it is too much.
  Value text(MarkedText marked);
  Value text(std::string bytes) { return text(MarkedText(std::move(bytes))); }
  Value list(std::vector<Value> items, ListKind kind = ListKind::kList);
  DictRef dict() { return heap.make<Dict>(); }

  const RunLimits limits;
  const std::tm now;
  Heap heap;
  int line = 0;   // of the template, where it is now
  int depth = 0;  // see Deeper

 private:
  void set_failure(Code code, std::string what);

  Status failure_;
  std::size_t steps_ = 0;
  std::size_t bytes_ = 0;
};

// One level of nesting, as long as it lives. Fails the run at the limit.
class Deeper {
 public:
  explicit Deeper(Run& run) : run_(run) {
    if (++run_.depth > run_.limits.max_depth) {
      run_.fail("it nests calls and expressions deeper than {} levels", run_.limits.max_depth);
    }
  }
  ~Deeper() { --run_.depth; }
  Deeper(const Deeper&) = delete;
  Deeper& operator=(const Deeper&) = delete;

 private:
  Run& run_;
};

}  // namespace ebb::jinja
