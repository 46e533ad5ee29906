#include "json/parse_json.h"

#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace ebb {
namespace {

// Deeper nesting is nobody's request, and would cost stack.
constexpr std::size_t kMaxDepth = 128;

// The most members of one object. Who looks a member up walks them all, so more would cost its square to whoever copies
// an object.
constexpr std::size_t kMaxMembers = std::size_t{1} << 14;

constexpr int kNumberOutOfRange = 406;  // nlohmann's number for it

// Builds the value as the text is read. nlohmann's own way to stop early, a callback, walks all elements of an array
// anew at the end of each that is one itself, and looks a name up among all members before it adds one.
class ValueBuilder final : public nlohmann::json_sax<Json> {
 public:
  ValueBuilder(std::size_t most_values, RepeatedNames repeated) : most_values_(most_values), repeated_(repeated) {}

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t&) override { return add(value); }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t&) override { return false; }  // no text has any
  bool start_object(std::size_t) override { return open(Json::object()); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& name) override;
  bool parse_error(std::size_t byte, const std::string&, const nlohmann::detail::exception& failure) override {
    if (failure.id == kNumberOutOfRange) return fail("the JSON text has a number that is too large for 64 bits");
    return fail(fmt::format("the text is not JSON: it stops being so at byte {}", byte), byte);
  }

  // The value of a text of `n_bytes` that was read; it may be taken once.
  Result<Json> take(std::size_t n_bytes) {
    if (!failure_) return std::move(root_);
    if (failed_at_ > n_bytes) {
      return error(Code::kInvalidArgument, "the text is not JSON: it ends too early, after {} bytes", n_bytes);
    }
    return error(Code::kInvalidArgument, "{}{}", *failure_, failed_at_ > 0 ? fmt::format(" of {}", n_bytes) : "");
  }

 private:
  using Members = std::unordered_map<std::string, std::size_t>;  // where each name's value stands

  bool fail(std::string what, std::size_t at = 0) {
    failure_ = std::move(what);
    failed_at_ = at;
    return false;
  }
  bool count_one() {
    if (++n_values_ <= most_values_) return true;
    return fail(fmt::format("the JSON text has too many values and names, at most {} are taken", most_values_));
  }
  // Null where it failed.
  Json* place(Json&& value);
  bool add(Json&& value) { return place(std::move(value)) != nullptr; }
  bool open(Json&& empty);
  bool close() {
    if (open_.back()->is_object()) members_.pop_back();
    open_.pop_back();
    return true;
  }

  Json root_;
  std::vector<Json*> open_;       // outermost first
  std::vector<Members> members_;  // of the open objects
  Json* member_ = nullptr;        // the last name's value, which comes next
  std::size_t most_values_;
  RepeatedNames repeated_;
  std::size_t n_values_ = 0;
  std::optional<std::string> failure_;
  std::size_t failed_at_ = 0;  // 0: says nothing of a place
};

bool ValueBuilder::key(string_t& name) {
  if (!count_one()) return false;
  Json::object_t::Container& list = open_.back()->get_ref<Json::object_t&>();  // a vector of pairs
  const auto [known, is_new] = members_.back().try_emplace(name, list.size());
  if (!is_new && repeated_ == RepeatedNames::kRefused) {
    return fail("an object of the JSON text has a name twice; leave one of them out");
  }
  if (is_new) {
    if (list.size() >= kMaxMembers)
      return fail(fmt::format("an object of the JSON text has too many members, at most {} are taken", kMaxMembers));
    list.emplace_back(std::move(name), Json());
  }
  member_ = &list[known->second].second;  // of names that appear twice the last value counts
  return true;
}

Json* ValueBuilder::place(Json&& value) {
  if (!count_one()) return nullptr;
  if (open_.empty()) {
    root_ = std::move(value);
    return &root_;
  }
  if (open_.back()->is_array()) {
    auto& list = open_.back()->get_ref<Json::array_t&>();
    return &list.emplace_back(std::move(value));
  }
  *member_ = std::move(value);
  return member_;
}

bool ValueBuilder::open(Json&& empty) {
  if (open_.size() >= kMaxDepth) {
    return fail(fmt::format("the JSON text is nested deeper than {} levels", kMaxDepth));
  }
  const bool is_object = empty.is_object();
  Json* placed = place(std::move(empty));
  if (placed == nullptr) return false;
  open_.push_back(placed);
  if (is_object) members_.emplace_back();
  return true;
}

}  // namespace

Result<Json> parse_json(std::string_view text, std::size_t most_values, RepeatedNames repeated) {
  ValueBuilder builder(most_values, repeated);
  (void)Json::sax_parse(text, &builder);
  return builder.take(text.size());
}

}  // namespace ebb
