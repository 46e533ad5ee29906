// The selectors by what is kept of keys: which blocks the queries would look at, were they hot.
#include <algorithm>

#include "policy/resident_gate.h"

namespace ebb {
namespace {

constexpr Parameter kParameters[] = {
    {.name = "least",
     .value = 0.4,
     .least = 0.0,
     .most = 1.0,
     .summary = "the score that a block must have: a share of some query's attention in some head"},
    {.name = "worth",
     .value = 0.8,
     .least = 0.0,
     .most = 1.0,
     .summary = "the part of the best cold block's score that another must have"},
    {.name = "heads",
     .value = 0.25,
     .least = 0.0,
     .most = 1.0,
     .summary = "the part of a block's score that a head must give it for the block to come back there; 0: it comes "
                "back in all"},
    {.name = "writing",
     .value = 0.05,
     .least = 0.0,
     .most = 1.0,
     .summary = "the reply's queries are asked too, as often as takes that share of the time of writing; of an answer "
                "to several questions more finds more; 0: never"},
    kGate};

class Digest final : public Selector {
 public:
  Digest(std::string_view name, DigestForm form, const ParameterValues& values)
      : name_(name),
        form_(form),
        least_(values["least"]),
        worth_(values["worth"]),
        heads_(values["heads"]),
        writing_(values["writing"]) {}

  [[nodiscard]] std::string_view name() const override { return name_; }
  [[nodiscard]] SelectorAsk asks() const override { return {.queries = true, .writing = writing_, .form = form_}; }

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
      if (told.verdict == Verdict::kRecall) {
        told.heads = heads_of(one);
        n_left -= told.heads.empty() ? cold
                                     : static_cast<double>(told.heads.size()) / static_cast<double>(one.by_head.size());
      }
      const bool is_chosen = told.verdict == Verdict::kRecall || told.verdict == Verdict::kKeep;
      if (is_chosen) chosen.push_back(told);
      if (!is_chosen && cold > 0.0 && rest.size() < kMostTold) rest.push_back(told);
    }
    chosen.insert(chosen.end(), rest.begin(), rest.end());
    return chosen;
  }

 private:
  // Those that look at it; none where that is all there are, or nobody wants to know.
  [[nodiscard]] std::vector<std::int32_t> heads_of(const BlockShare& one) const {
    std::vector<std::int32_t> heads;
    if (heads_ == 0.0 || one.share <= 0.0) return heads;
    for (std::size_t head = 0; head < one.by_head.size(); ++head) {
      if (double{one.by_head[head]} >= heads_ * one.share) heads.push_back(static_cast<std::int32_t>(head));
    }
    if (heads.size() == one.by_head.size()) heads.clear();
    return heads;
  }

  static double missing(const RecallEvidence& evidence, const BlockShare& one) {
    return one.block.value() < std::ssize(evidence.missing) ? evidence.missing[one.block.index()] : 0.0;
  }

  std::string_view name_;
  DigestForm form_;
  double least_;
  double worth_;
  double heads_;
  double writing_;
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
