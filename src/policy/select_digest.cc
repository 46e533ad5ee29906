// The selectors by what is kept of keys: which blocks the queries would look at, were they hot.
#include <algorithm>

#include "policy/resident_gate.h"

namespace ebb {
namespace {

constexpr Parameter kParameters[] = {
    {.name = "least",
     .value = 0.2,
     .least = 0.0,
     .most = 1.0,
     .summary = "the score that a block must have: a share of some query's attention in some head"},
    {.name = "worth",
     .value = 0.8,
     .least = 0.0,
     .most = 1.0,
     .summary = "the part of the best cold block's score that another must have"},
    kGate};

class Digest final : public Selector {
 public:
  Digest(std::string_view name, DigestForm form, const ParameterValues& values)
      : name_(name), form_(form), least_(values["least"]), worth_(values["worth"]) {}

  [[nodiscard]] std::string_view name() const override { return name_; }
  [[nodiscard]] SelectorAsk asks() const override { return {.queries = true, .form = form_}; }

  // Later blocks first among equals, since what is near is likelier meant. Hot blocks that are worth as much stay.
  [[nodiscard]] std::vector<Considered> select(const RecallEvidence& evidence) const override {
    std::vector<BlockShare> ranked(evidence.shares.begin(), evidence.shares.end());
    std::ranges::sort(ranked, [](const BlockShare& a, const BlockShare& b) {
      return a.share != b.share ? a.share > b.share : a.block > b.block;
    });
    double best = 0.0;
    for (const BlockShare& one : ranked) {
      if (missing(evidence, one) > 0.0) best = std::max(best, one.share);
    }
    std::vector<Considered> chosen;
    std::vector<Considered> rest;
    double n_left = evidence.max_blocks;
    for (const BlockShare& one : ranked) {
      const double cold = missing(evidence, one);
      Considered told{.block = one.block, .score = one.share, .verdict = Verdict::kWeak};
      if (one.share >= least_ && one.share >= worth_ * best) {
        told.verdict = cold == 0.0 ? Verdict::kKeep : n_left > 0.0 ? Verdict::kRecall : Verdict::kBeyond;
      }
      if (told.verdict == Verdict::kRecall) n_left -= cold;
      const bool is_chosen = told.verdict == Verdict::kRecall || told.verdict == Verdict::kKeep;
      if (is_chosen) chosen.push_back(told);
      if (!is_chosen && cold > 0.0 && rest.size() < kMostTold) rest.push_back(told);
    }
    chosen.insert(chosen.end(), rest.begin(), rest.end());
    return chosen;
  }

 private:
  static double missing(const RecallEvidence& evidence, const BlockShare& one) {
    return one.block.value() < std::ssize(evidence.missing) ? evidence.missing[one.block.index()] : 0.0;
  }

  std::string_view name_;
  DigestForm form_;
  double least_;
  double worth_;
};

}  // namespace

const std::span<const Parameter> kDigestParameters = kParameters;

std::unique_ptr<const Selector> make_digest(const ParameterValues& values) {
  return behind_gate(values, std::make_unique<Digest>("digest", DigestForm::kSketch, values));
}
std::unique_ptr<const Selector> make_arkvale(const ParameterValues& values) {
  return behind_gate(values, std::make_unique<Digest>("arkvale", DigestForm::kCuboid, values));
}
std::unique_ptr<const Selector> make_quest(const ParameterValues& values) {
  return behind_gate(values, std::make_unique<Digest>("quest", DigestForm::kBox, values));
}
std::unique_ptr<const Selector> make_representative(const ParameterValues& values) {
  return behind_gate(values, std::make_unique<Digest>("representative", DigestForm::kRepresentative, values));
}

}  // namespace ebb
