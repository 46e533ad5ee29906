#include "policy/selector.h"

#include <algorithm>
#include <array>

namespace ebb {
namespace {

// What is named and what shares rare words comes before the prompt and its tail; what the tail's queries ask for, behind it.
// By measurement: docs/decisions/0020.
constexpr std::string_view kFused = "identity+lexical+digest";
// Where there is an embedding model: docs/decisions/0022.
constexpr std::string_view kFusedByMeaning = "identity+lexical+embedding+digest";

constexpr SelectorKind kKinds[] = {
    {.name = kIdentity, .summary = "blocks that the caller names", .make = make_identity},
    {.name = "lexical", .summary = "rare words in common with what was just said (BM25)", .make = make_lexical},
    {.name = kEmbedding,
     .summary = "a sentence that means what was just said means, by the model of --embedding-model",
     .make = make_embedding},
    {.name = "digest",
     .summary = "attention that the prompt's last queries would give, by 2-bit sketches of keys that left",
     .make = make_digest},
    {.name = "arkvale", .summary = "the same by ArkVale's cuboid-mean of a block's keys", .make = make_arkvale},
    {.name = "quest", .summary = "the same by Quest's least and greatest of a block's keys", .make = make_quest},
    {.name = "representative",
     .summary = "InfLLM's: the mean query times the mean of a block's few representative keys, by layer",
     .make = make_representative},
    {.name = "evoke",
     .summary =
         "EVOKE's: the four blocks that are likest what was just said, of those that are liker than all hot ones",
     .make = make_evoke}};

// Constant initialisation cannot see the spans of other files.
std::span<const Parameter> parameters_of(std::string_view name) {
  if (name == kEmbedding) return kEmbeddingParameters;
  if (name == "digest" || name == "arkvale" || name == "quest" || name == "representative") return kDigestParameters;
  if (name == "lexical") return kLexicalParameters;
  if (name == "evoke") return kEvokeParameters;
  return {};
}

std::string known_names() {
  std::string names = "fused, none";
  for (const SelectorKind& kind : selector_kinds()) names += fmt::format(", {}", kind.name);
  return names;
}

Result<std::shared_ptr<const Selector>> make_selector(std::string_view spec) {
  for (const SelectorKind& kind : selector_kinds()) {
    if (kind.name != spec_name(spec)) continue;
    EBB_ASSIGN_OR_RETURN(const ParameterValues values,
                         ParameterValues::parse_behind_name(kind.parameters, spec, "selector "));
    return std::shared_ptr<const Selector>(kind.make(values));
  }
  if (spec_name(spec) == "fused" || spec_name(spec) == "none") {
    return error(Code::kInvalidArgument, "{} stands alone, without parameters and '+'", spec_name(spec));
  }
  return error(Code::kNotFound, "there is no selector {}; there are {}, and several are joined by '+'", spec_name(spec),
               known_names());
}

}  // namespace

std::span<const SelectorKind> selector_kinds() {
  static const std::array all = [] {
    std::array<SelectorKind, std::size(kKinds)> kinds;
    std::ranges::copy(kKinds, kinds.begin());
    for (SelectorKind& kind : kinds) kind.parameters = parameters_of(kind.name);
    return kinds;
  }();
  return all;
}

Result<SelectorList> SelectorList::parse(std::string_view text) {
  SelectorList list;
  list.text_ = text;
  if (text == "none") return list;
  for (std::string_view rest = text == "fused" ? kFused : text; !rest.empty();) {
    const std::size_t end = std::min(rest.find('+'), rest.size());
    EBB_ASSIGN_OR_RETURN(std::shared_ptr<const Selector> selector, make_selector(rest.substr(0, end)));
    for (const auto& other : list.selectors_) {
      if (other->name() == selector->name()) {
        return error(Code::kInvalidArgument, "selector {} twice in {}", selector->name(), text);
      }
    }
    list.selectors_.push_back(std::move(selector));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (rest.empty() && end < text.size() && text.back() == '+') {
      return error(Code::kInvalidArgument, "no selector behind the last '+' of {}", text);
    }
  }
  if (list.selectors_.empty()) {
    return error(Code::kInvalidArgument, "no selector; give one of {}, several joined by '+'", known_names());
  }
  return list;
}

SelectorList SelectorList::fused(bool has_meanings) {
  static const SelectorList list = parse("fused").value();
  static const SelectorList by_meaning = [] {
    SelectorList with_meanings = parse(kFusedByMeaning).value();
    with_meanings.text_ = list.text_;
    return with_meanings;
  }();
  return has_meanings ? by_meaning : list;
}

bool SelectorList::asks_queries() const {
  return std::ranges::any_of(selectors_, [](const auto& selector) { return selector->asks().queries; });
}

double SelectorList::writing_share() const {
  double most = 0.0;
  for (const auto& selector : selectors_) most = std::max(most, selector->asks().writing);
  return most;
}

bool SelectorList::asks_reply_words() const {
  return std::ranges::any_of(selectors_, [](const auto& selector) { return selector->asks().reply_words; });
}

bool SelectorList::asks_meanings() const {
  return std::ranges::any_of(selectors_, [](const auto& selector) { return selector->asks().meanings; });
}

double SelectorList::most_wait_ms() const {
  double most = 0.0;
  for (const auto& selector : selectors_) most = std::max(most, selector->asks().most_wait_ms);
  return most;
}

std::string_view verdict_name(Verdict verdict) {
  switch (verdict) {
    case Verdict::kAsks: return "asks";
    case Verdict::kRecall: return "recall";
    case Verdict::kKeep: return "keep";
    case Verdict::kWeak: return "weak";
    case Verdict::kBeyond: return "beyond";
  }
  return "";
}

}  // namespace ebb
