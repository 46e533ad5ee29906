// Value: what a template computes with, after Python's types.
//
// Strings are shared and never change. Lists, dicts and everything else that can change or refer to others are Objects of
// one rendering's Heap: values keep them alive, and the Heap takes them apart at the end, so that a list that holds itself
// is not lost. Taking apart never recurses, however deep the nesting. It knows no syntax.
// Thread rule: one rendering is one thread; values that hold no Object (literals) may be shared.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "chat/jinja/marked_text.h"

namespace ebb::jinja {

class Value;
class Object;
class List;
class Dict;
class Namespace;
class Callable;
class Loop;

using TextRef = std::shared_ptr<const MarkedText>;
using ListRef = std::shared_ptr<List>;
using DictRef = std::shared_ptr<Dict>;
using NamespaceRef = std::shared_ptr<Namespace>;
using CallableRef = std::shared_ptr<Callable>;
using LoopRef = std::shared_ptr<Loop>;

// What a missing name, key or attribute gives; `what` says which, for errors.
struct Undefined {
  std::shared_ptr<const std::string> what = nullptr;
};
struct None {};

class Value {
 public:
  Value() : data_(Undefined{}) {}
  // Implicit, so that functions return what they have.
  Value(Undefined value) : data_(std::move(value)) {}
  Value(None value) : data_(value) {}
  template <std::same_as<bool> T>  // no pointers
  Value(T value) : data_(value) {}
  Value(std::int64_t value) : data_(value) {}
  Value(double value) : data_(value) {}
  Value(TextRef value) : data_(std::move(value)) {}
  Value(ListRef value) : data_(std::move(value)) {}
  Value(DictRef value) : data_(std::move(value)) {}
  Value(NamespaceRef value) : data_(std::move(value)) {}
  Value(CallableRef value) : data_(std::move(value)) {}
  Value(LoopRef value) : data_(std::move(value)) {}
  static Value text(MarkedText text) { return std::make_shared<const MarkedText>(std::move(text)); }
  static Value text(std::string text) { return Value::text(MarkedText(std::move(text))); }

  template <class T>
  [[nodiscard]] bool is() const {
    return std::holds_alternative<T>(data_);
  }
  // Null unless it is one.
  template <class T>
  [[nodiscard]] const T* find() const {
    return std::get_if<T>(&data_);
  }
  template <class T>
  [[nodiscard]] const T& get() const {
    return std::get<T>(data_);
  }
  [[nodiscard]] bool is_undefined() const { return is<Undefined>(); }
  [[nodiscard]] bool is_none() const { return is<None>(); }
  [[nodiscard]] bool is_text() const { return is<TextRef>(); }
  [[nodiscard]] const std::string& bytes() const { return get<TextRef>()->bytes(); }
  [[nodiscard]] bool is_number() const { return is<bool>() || is<std::int64_t>() || is<double>(); }
  // True as 1, False as 0.
  [[nodiscard]] double number() const;
  // An int or a bool.
  [[nodiscard]] bool is_whole() const { return is<bool>() || is<std::int64_t>(); }
  [[nodiscard]] std::int64_t whole() const { return is<bool>() ? std::int64_t{get<bool>()} : get<std::int64_t>(); }

  // Python's name of the type.
  [[nodiscard]] std::string_view type_name() const;
  [[nodiscard]] bool truthy() const;
  [[nodiscard]] bool same_object(const Value& other) const;

 private:
  std::variant<Undefined, None, bool, std::int64_t, double, TextRef, ListRef, DictRef, NamespaceRef, CallableRef,
               LoopRef>
      data_;
};

// The Objects of one rendering. Must outlive the values that hold them.
class Heap {
 public:
  Heap() = default;
  ~Heap();
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;

  template <class T, class... Args>
  std::shared_ptr<T> make(Args&&... args) {
    auto object = std::make_shared<T>(std::forward<Args>(args)...);
    adopt(*object);
    return object;
  }

 private:
  friend class Object;
  void adopt(Object& object);
  void bury(std::vector<Value> values);

  Object* first_ = nullptr;
  std::vector<Value> grave_;
  bool burying_ = false;
};

class Object : public std::enable_shared_from_this<Object> {
 public:
  Object() = default;
  virtual ~Object();
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;

 protected:
  // Derived destructors call it with what they hold.
  void bury(std::vector<Value> values);

 private:
  friend class Heap;
  // Lets go of all values it holds.
  virtual void let_go() = 0;
  void unlink();

  Heap* heap_ = nullptr;
  Object* before_ = nullptr;
  Object* after_ = nullptr;
};

// Everything that Python walks through in order, apart from strings and dicts.
enum class ListKind : std::uint8_t {
  kList,
  kTuple,
  kLazy,  // what map, select and their like give: true even when empty, without length or index
  kRange,
  kKeys,
  kValues,
  kItems,
};

class List final : public Object {
 public:
  explicit List(std::vector<Value> its_items = {}, ListKind its_kind = ListKind::kList)
      : items(std::move(its_items)), kind(its_kind) {}
  ~List() override { bury(std::move(items)); }

  std::vector<Value> items;
  ListKind kind;

 private:
  void let_go() override { items.clear(); }
};

// Keeps the order of insertion. Keys are strings, numbers, bools and none, equal where Python says so (1 == 1.0 == True).
class Dict final : public Object {
 public:
  struct Entry {
    Value key;
    Value value;
  };

  ~Dict() override;
  static bool can_be_key(const Value& value) { return value.is_text() || value.is_number() || value.is_none(); }

  [[nodiscard]] const std::vector<Entry>& entries() const { return entries_; }
  // Bytes looked at to find a text of so many: it is compared with each of a few entries, else copied and hashed.
  [[nodiscard]] std::size_t n_bytes_to_find(std::size_t key_bytes) const {
    return key_bytes * (index_.empty() ? entries_.size() + 1 : 2);
  }
  // Null when there is none.
  [[nodiscard]] const Value* find(const Value& key) const;
  [[nodiscard]] const Value* find(std::string_view key) const;
  void set(const Value& key, Value value);
  void set(std::string_view key, Value value) { set(Value::text(std::string(key)), std::move(value)); }
  // False when there is none.
  bool erase(const Value& key);

 private:
  static std::string key_text(const Value& key);
  static bool same_key(const Value& a, const Value& b);
  [[nodiscard]] std::size_t find_index(const Value& key) const;
  void let_go() override;

  std::vector<Entry> entries_;
  // By key_text; filled once a search through entries_ would be slow.
  std::unordered_map<std::string, std::size_t> index_;
};

// namespace(): variables that may be set from inner scopes.
class Namespace final : public Object {
 public:
  explicit Namespace(DictRef its_values) : values(std::move(its_values)) {}

  DictRef values;

 private:
  void let_go() override { values.reset(); }
};

// Python's ==, without a limit on how long it takes: Run::equal is for values that a template built.
[[nodiscard]] bool equal(const Value& a, const Value& b);
// What a comparison costs, and may cost; past that, and past a depth that only values that hold themselves have, the values
// count as different.
struct CompareCost {
  std::size_t max_steps;
  std::size_t n_steps = 0;
  int depth = 0;
};
[[nodiscard]] bool equal(const Value& a, const Value& b, CompareCost& cost);

}  // namespace ebb::jinja
