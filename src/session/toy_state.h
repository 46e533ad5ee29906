// ToyState: a sequence state that a test can follow: a hash over all tokens in their order, so that one token too many, too
// few or elsewhere shows for good.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "base/check.h"
#include "base/ids.h"
#include "model/sequence_state.h"

namespace ebb {

class ToyState final : public SequenceState {
 public:
  struct Value {
    Hash128 hash;
    std::int64_t n_tokens = 0;
    // Stands for the last bits, in which what is computed in other company may differ.
    std::uint64_t rounding = 0;

    void add(Token token) {
      hash = hash_words({hash.low, hash.high, static_cast<std::uint64_t>(token.value()), rounding});
      ++n_tokens;
    }
    friend bool operator==(const Value&, const Value&) = default;
  };

  [[nodiscard]] const Value& value() const { return value_; }
  void set_rounding(std::uint64_t rounding) { value_.rounding = rounding; }
  // As a model would, row after row.
  void compute(std::span<const Token> tokens) {
    for (const Token token : tokens) {
      value_.add(token);
      if (passed_.size() < borders_.size() && ++n_rows_ == borders_[passed_.size()]) passed_.push_back(value_);
    }
  }

  [[nodiscard]] std::size_t n_bytes() const override { return sizeof(Value); }
  [[nodiscard]] Hash128 layout() const override { return {7, 7}; }
  void reset() override { set({}); }
  void begin_step(std::span<const std::int32_t> borders) override {
    set(value_);
    borders_.assign(borders.begin(), borders.end());
  }
  void copy_border(std::size_t i, std::span<std::byte> bytes) const override {
    EBB_CHECK(i < passed_.size(), "border {} of {} that were passed", i, passed_.size());
    std::memcpy(bytes.data(), &passed_[i], bytes.size());
  }
  void drop_step() override { set(before_); }
  void copy_out(std::span<std::byte> bytes) const override { std::memcpy(bytes.data(), &value_, bytes.size()); }
  void copy_in(std::span<const std::byte> bytes) override {
    Value value;
    std::memcpy(&value, bytes.data(), bytes.size());
    set(value);
  }

 private:
  void set(const Value& value) {
    value_ = value;
    before_ = value;
    borders_.clear();
    passed_.clear();
    n_rows_ = 0;
  }

  Value value_;
  Value before_;
  std::vector<std::int32_t> borders_;
  std::vector<Value> passed_;
  std::int32_t n_rows_ = 0;
};

}  // namespace ebb
