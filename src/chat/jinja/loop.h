// Loop: the `loop` variable of a for statement, and its walk through the items.
//
// A condition (`for x in xs if ...`) is asked when its item is wanted and not before, as the body may change what it says;
// loop.last and loop.nextitem look one item ahead, loop.length looks at all.
// Thread rule: that of the rendering it belongs to.
#pragma once

#include <functional>
#include <optional>

#include "chat/jinja/value.h"

namespace ebb::jinja {

class Run;

class Loop final : public Object {
 public:
  // `wanted` may be empty. It must live until close().
  Loop(ListRef items, int depth, std::function<bool(const Value&)> wanted)
      : items_(std::move(items)), depth_(depth), wanted_(std::move(wanted)) {}
  ~Loop() override { let_go(); }

  // Steps to the next item; false at the end.
  bool next();
  [[nodiscard]] const Value& item() const { return current_; }
  // No condition is asked from here on.
  void close() { wanted_ = nullptr; }

  // loop.NAME; undefined when there is no such thing.
  Value attribute(Run& run, std::string_view name);
  [[nodiscard]] bool changed(Run& run, const Value& value);
  [[nodiscard]] std::int64_t index0() const { return index_; }

 private:
  std::optional<Value> fetch();
  const std::optional<Value>& peek();
  std::int64_t count();
  void let_go() override;

  ListRef items_;
  int depth_;
  std::function<bool(const Value&)> wanted_;
  std::size_t fetched_ = 0;  // items that were looked at
  std::int64_t index_ = -1;
  Value before_;
  Value current_;
  std::vector<Value> ahead_;  // wanted items behind the current one, as far as they were looked at; the first last
  std::optional<Value> peeked_;
  std::optional<Value> seen_;  // by changed()
};

}  // namespace ebb::jinja
