// FormCalls: the CallFormat of a CallForm, derived or known.
//
// Families whose models write more ways than their form, or whose calls begin otherwise, derive from it. Names and marks of known ones must live
// for ever.
//
// Thread rule: immutable.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "chat/calls/call_form.h"
#include "chat/calls/call_format.h"

namespace ebb {

class FormCalls : public CallFormat {
 public:
  explicit FormCalls(CallForm form, std::string_view name = "derived", std::string_view taught_by = {});

  [[nodiscard]] std::string_view name() const final { return name_; }
  [[nodiscard]] bool is_taught_by(std::string_view template_source) const override {
    return !taught_by_.empty() && template_source.find(taught_by_) != template_source.npos;
  }
  [[nodiscard]] bool allows_parallel() const final { return form_.parallel; }
  [[nodiscard]] const std::vector<CallOpener>& openers() const override { return openers_; }
  // Openers that are no marks may be said in text, and force nothing there.
  [[nodiscard]] std::string_view forced_opener() const override {
    return openers().front().only_first ? std::string_view() : openers().front().text;
  }
  [[nodiscard]] std::vector<std::string_view> marks() const override { return {marks_.begin(), marks_.end()}; }
  [[nodiscard]] std::string write(const std::vector<WrittenCall>& calls) const final;
  [[nodiscard]] std::unique_ptr<CallReader> make_reader(std::size_t opener,
                                                        const std::vector<Tool>& tools) const override;
  [[nodiscard]] Result<std::string> add_call_rules(SchemaRules& rules, const std::vector<Tool>& tools,
                                                   bool parallel) const final;

 private:
  CallForm form_;
  CallForm one_call_;
  std::string_view name_;
  std::string_view taught_by_;
  std::vector<std::string> opener_texts_;  // of all calls, of one
  std::vector<CallOpener> openers_;
  std::vector<std::string> marks_;
};

// {"name": "read", "arguments": {…}}, with what stands around it; `id_key` empty: it has none.
[[nodiscard]] std::vector<CallPiece> object_call(std::string before, std::string_view arguments_key,
                                                 std::string_view id_key, std::string after);

}  // namespace ebb
