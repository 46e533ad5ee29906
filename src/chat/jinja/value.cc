#include "chat/jinja/value.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "chat/jinja/callable.h"
#include "chat/jinja/loop.h"
#include "chat/jinja/run.h"

namespace ebb::jinja {
namespace {

// Below, walking the entries is faster than the index.
constexpr std::size_t kMaxUnindexed = 12;
// Deeper values are taken for different: only a value that holds itself is so deep.
constexpr int kMaxDepth = 200;

bool equal_lists(const List& a, const List& b, CompareCost& cost) {
  const bool same_kind = (a.kind == ListKind::kTuple) == (b.kind == ListKind::kTuple);
  if (!same_kind || a.kind == ListKind::kLazy || b.kind == ListKind::kLazy) return &a == &b;
  return std::ranges::equal(a.items, b.items, [&cost](const Value& x, const Value& y) { return equal(x, y, cost); });
}

bool equal_dicts(const Dict& a, const Dict& b, CompareCost& cost) {
  if (a.entries().size() != b.entries().size()) return false;
  return std::ranges::all_of(a.entries(), [&](const Dict::Entry& entry) {
    if (entry.key.is_text()) cost.n_steps += b.n_bytes_to_find(entry.key.bytes().size()) / kBytesAStep;
    const Value* other = b.find(entry.key);
    return other != nullptr && equal(entry.value, *other, cost);
  });
}

}  // namespace

double Value::number() const {
  if (const auto* value = find<double>()) return *value;
  return static_cast<double>(whole());
}

std::string_view Value::type_name() const {
  if (is_undefined()) return "Undefined";
  if (is_none()) return "NoneType";
  if (is<bool>()) return "bool";
  if (is<std::int64_t>()) return "int";
  if (is<double>()) return "float";
  if (is_text()) return "str";
  if (is<DictRef>()) return "dict";
  if (is<NamespaceRef>()) return "Namespace";
  if (is<LoopRef>()) return "LoopContext";
  if (const auto* list = find<ListRef>()) {
    switch ((*list)->kind) {
      case ListKind::kList: return "list";
      case ListKind::kTuple: return "tuple";
      case ListKind::kLazy: return "generator";
      case ListKind::kRange: return "range";
      case ListKind::kKeys: return "dict_keys";
      case ListKind::kValues: return "dict_values";
      case ListKind::kItems: return "dict_items";
    }
  }
  return "function";
}

bool Value::truthy() const {
  if (is_undefined() || is_none()) return false;
  if (is_number()) return number() != 0.0;
  if (is_text()) return !bytes().empty();
  if (const auto* list = find<ListRef>()) return (*list)->kind == ListKind::kLazy || !(*list)->items.empty();
  if (const auto* dict = find<DictRef>()) return !(*dict)->entries().empty();
  return true;
}

bool Value::same_object(const Value& other) const {
  if (const auto* a = find<ListRef>()) return other.is<ListRef>() && *a == other.get<ListRef>();
  if (const auto* a = find<DictRef>()) return other.is<DictRef>() && *a == other.get<DictRef>();
  if (const auto* a = find<NamespaceRef>()) return other.is<NamespaceRef>() && *a == other.get<NamespaceRef>();
  if (const auto* a = find<CallableRef>()) return other.is<CallableRef>() && *a == other.get<CallableRef>();
  if (const auto* a = find<LoopRef>()) return other.is<LoopRef>() && *a == other.get<LoopRef>();
  return type_name() == other.type_name() && equal(*this, other);
}

bool equal(const Value& a, const Value& b) {
  CompareCost cost{.max_steps = std::numeric_limits<std::size_t>::max()};
  return equal(a, b, cost);
}

bool equal(const Value& a, const Value& b, CompareCost& cost) {
  if (cost.n_steps >= cost.max_steps || cost.depth > kMaxDepth) return false;
  ++cost.n_steps;
  if (a.is_whole() && b.is_whole()) return a.whole() == b.whole();
  if (a.is_number() && b.is_number()) return a.number() == b.number();
  if (a.is_text() && b.is_text()) {
    cost.n_steps += a.bytes().size() == b.bytes().size() ? a.bytes().size() / kBytesAStep : 0;
    return a.bytes() == b.bytes();
  }
  if (a.is_none() || a.is_undefined()) return a.is_none() == b.is_none() && a.is_undefined() == b.is_undefined();
  if (a.is<NamespaceRef>() || a.is<CallableRef>() || a.is<LoopRef>()) return a.same_object(b);
  ++cost.depth;
  bool same = false;
  if (a.is<ListRef>() && b.is<ListRef>()) same = equal_lists(*a.get<ListRef>(), *b.get<ListRef>(), cost);
  if (a.is<DictRef>() && b.is<DictRef>()) same = equal_dicts(*a.get<DictRef>(), *b.get<DictRef>(), cost);
  --cost.depth;
  return same;
}

Heap::~Heap() {
  while (first_ != nullptr) {
    const std::shared_ptr<Object> object = first_->weak_from_this().lock();
    if (object == nullptr) {  // its last reference is going right now
      first_->unlink();
      continue;
    }
    object->unlink();
    object->let_go();
  }
}

void Heap::adopt(Object& object) {
  object.heap_ = this;
  object.after_ = first_;
  if (first_ != nullptr) first_->before_ = &object;
  first_ = &object;
}

void Heap::bury(std::vector<Value> values) {
  std::ranges::move(values, std::back_inserter(grave_));
  if (burying_) return;
  burying_ = true;
  while (!grave_.empty()) {
    const Value last = std::move(grave_.back());
    grave_.pop_back();
  }
  burying_ = false;
}

Object::~Object() { unlink(); }

void Object::bury(std::vector<Value> values) {
  if (heap_ != nullptr && !values.empty()) heap_->bury(std::move(values));
}

void Object::unlink() {
  if (heap_ == nullptr) return;
  if (before_ != nullptr) {
    before_->after_ = after_;
  } else if (heap_->first_ == this) {
    heap_->first_ = after_;
  }
  if (after_ != nullptr) after_->before_ = before_;
  before_ = after_ = nullptr;
}

Dict::~Dict() { let_go(); }

void Dict::let_go() {
  std::vector<Value> values;
  values.reserve(entries_.size());
  for (Entry& entry : entries_) values.push_back(std::move(entry.value));
  entries_.clear();
  index_.clear();
  bury(std::move(values));
}

std::string Dict::key_text(const Value& key) {
  if (key.is_text()) return "s" + key.bytes();
  if (key.is_whole()) return "n" + std::to_string(key.whole());
  if (const auto* number = key.find<double>()) {
    const bool whole = std::trunc(*number) == *number && std::abs(*number) < 9e15;
    return whole ? "n" + std::to_string(static_cast<std::int64_t>(*number)) : "f" + std::to_string(*number);
  }
  return "0";
}

bool Dict::same_key(const Value& a, const Value& b) {
  if (a.is_text() || b.is_text()) return a.is_text() && b.is_text() && a.bytes() == b.bytes();
  return key_text(a) == key_text(b);
}

std::size_t Dict::find_index(const Value& key) const {
  if (!index_.empty()) {
    const auto found = index_.find(key_text(key));
    return found == index_.end() ? entries_.size() : found->second;
  }
  std::size_t i = 0;
  while (i < entries_.size() && !same_key(entries_[i].key, key)) ++i;
  return i;
}

const Value* Dict::find(const Value& key) const {
  if (key.is_text()) return find(std::string_view(key.bytes()));
  const std::size_t i = find_index(key);
  return i == entries_.size() ? nullptr : &entries_[i].value;
}

const Value* Dict::find(std::string_view key) const {
  if (index_.empty()) {
    for (const Entry& entry : entries_) {
      if (entry.key.is_text() && entry.key.bytes() == key) return &entry.value;
    }
    return nullptr;
  }
  const auto found = index_.find("s" + std::string(key));
  return found == index_.end() ? nullptr : &entries_[found->second].value;
}

void Dict::set(const Value& key, Value value) {
  const std::size_t i = find_index(key);
  if (i < entries_.size()) {
    entries_[i].value = std::move(value);
    return;
  }
  entries_.push_back({key, std::move(value)});
  if (entries_.size() == kMaxUnindexed + 1) {
    for (std::size_t j = 0; j < entries_.size(); ++j) index_.emplace(key_text(entries_[j].key), j);
  } else if (entries_.size() > kMaxUnindexed) {
    index_.emplace(key_text(key), entries_.size() - 1);
  }
}

bool Dict::erase(const Value& key) {
  const std::size_t i = find_index(key);
  if (i == entries_.size()) return false;
  entries_.erase(entries_.begin() + static_cast<std::ptrdiff_t>(i));
  index_.clear();
  if (entries_.size() > kMaxUnindexed) {
    for (std::size_t j = 0; j < entries_.size(); ++j) index_.emplace(key_text(entries_[j].key), j);
  }
  return true;
}

}  // namespace ebb::jinja
