#include "grammar/gbnf_match.h"

#include <algorithm>
#include <string>

namespace ebb {
namespace {

using Kind = GbnfElement::Kind;
constexpr std::uint32_t kNobody = 0;
// Dead callers are looked for when links have doubled and grown by this: more often costs time, more rarely memory.
constexpr std::size_t kLinksBeforeForgetting = 4096;
// Items that are looked at, and not gone on from, in the time of one place.
constexpr std::size_t kItemsAPlace = 4;

}  // namespace

void GbnfMatch::Seen::clear() {
  n_cells_used_ = 0;
  if (++round_ != 0) return;
  std::ranges::fill(cells_, Cell());
  round_ = 1;
}

GbnfMatch::Seen::Cell& GbnfMatch::Seen::find(std::uint64_t key) {
  std::size_t at = (key * 0x9E3779B97F4A7C15U) >> 32U;
  while (true) {
    Cell& cell = cells_[at & (cells_.size() - 1)];
    if (cell.round != round_ || cell.key == key) return cell;
    ++at;
  }
}

std::pair<std::uint32_t, bool> GbnfMatch::Seen::insert(std::uint32_t high, std::uint32_t low, std::uint32_t value) {
  const std::uint64_t key = std::uint64_t{high} << 32U | low;
  Cell& cell = find(key);
  if (cell.round == round_) return {cell.value, false};
  cell = {.key = key, .value = value, .round = round_};
  if (++n_cells_used_ * 2 > cells_.size()) {
    std::vector<Cell> old(cells_.size() * 2);
    old.swap(cells_);
    for (const Cell& one : old) {
      if (one.round == round_) find(one.key) = one;
    }
  }
  return {value, true};
}

GbnfMatch::GbnfMatch(std::shared_ptr<const Gbnf> gbnf, const GbnfMatchLimits& limits)
    : gbnf_(std::move(gbnf)), limits_(limits), callers_(1), links_(1) {}

Result<GbnfMatch> GbnfMatch::begin(std::shared_ptr<const Gbnf> gbnf, const GbnfMatchLimits& limits) {
  GbnfMatch match(std::move(gbnf), limits);
  const GbnfWrittenRule& root = match.gbnf_->rules[match.gbnf_->root];
  Front& front = match.begin_front(0);
  for (const std::uint32_t alternative : root.alternatives) match.enter(alternative, kNobody);
  match.walk(front);
  front.may_end = root.may_be_empty;
  if (const Status bounds = match.check_bounds(); !bounds.ok())
    return error(Code::kUnsupported, "{}", bounds.message());
  return match;
}

// Whether the item takes any character of these.
bool GbnfMatch::takes(const Item& item, char32_t least, char32_t most) const {
  const GbnfElement& element = gbnf_->elements[item.element];
  if (element.kind == Kind::kSwitch) return !ways_by(element, least, most).empty();
  if (element.kind != Kind::kChars && element.kind != Kind::kNotChars) return false;
  const auto ranges = std::span(gbnf_->ranges).subspan(element.value, element.n_ranges);
  const auto range = std::ranges::lower_bound(ranges, least, {}, &GbnfChars::most);
  if (element.kind == Kind::kChars) return range != ranges.end() && range->least <= most;
  return range == ranges.end() || range->least > least || range->most < most;
}

std::span<const GbnfWay> GbnfMatch::ways_by(const GbnfElement& element, char32_t least, char32_t most) const {
  const auto ways = std::span(gbnf_->ways).subspan(element.value, element.n_ranges);
  const auto first = std::ranges::lower_bound(ways, least, {}, &GbnfWay::character);
  const auto last = std::ranges::upper_bound(first, ways.end(), most, {}, &GbnfWay::character);
  return {first, last};
}

bool GbnfMatch::takes_token(const Item& item, Token token) const {
  const GbnfElement& element = gbnf_->elements[item.element];
  const bool is_same = element.value == static_cast<std::uint32_t>(token.value());
  return (element.kind == Kind::kToken && is_same) || (element.kind == Kind::kNotToken && !is_same);
}

void GbnfMatch::find_token_items() {
  tokens_.clear();
  but_token_.reset();
  takes_any_token_ = false;
  count_scanned(fronts_.front());
  for (const Item& item : fronts_.front().items) {
    const GbnfElement& element = gbnf_->elements[item.element];
    if (element.kind == Kind::kToken) tokens_.push_back(element.value);
    if (element.kind != Kind::kNotToken) continue;
    takes_any_token_ = takes_any_token_ || (but_token_ && *but_token_ != element.value);
    but_token_ = element.value;
  }
  std::ranges::sort(tokens_);
}

bool GbnfMatch::allows_token(Token token) const {
  const auto value = static_cast<std::uint32_t>(token.value());
  return takes_any_token_ || (but_token_ && *but_token_ != value) || std::ranges::binary_search(tokens_, value);
}

void GbnfMatch::count_scanned(const Front& front) {
  n_token_places_ += front.items.size() / kItemsAPlace;
  is_too_much_ = is_too_much_ || !has_room();
}

bool GbnfMatch::has_room() const {
  return n_token_places_ <=
         std::min(limits_.max_places_in_all,
                  limits_.max_places_per_token + limits_.max_places_per_character * n_token_characters_);
}

bool GbnfMatch::is_alive(const Front& front, const PartialCodePoint& partial) const {
  if (partial.n_missing == 0) return front.may_end || !front.items.empty();
  return std::ranges::any_of(front.items,
                             [&](const Item& item) { return takes(item, partial.least(), partial.most()); });
}

Status GbnfMatch::check_bounds() {
  if (!std::exchange(is_too_much_, false)) return {};
  n_token_places_ = n_token_characters_ = 0;
  go_back(0);
  return error(
      Code::kOutOfBudget,
      "the grammar reads this text in too many ways at once (more than {} places in its rules for one character, "
      "{} for one token, or {} open rules); write what alternatives begin with once, in front of them: "
      "\"a\" (\"b\" | \"c\"), not \"a\" \"b\" | \"a\" \"c\"",
      limits_.max_places, limits_.max_places_per_token, limits_.max_links);
}

void GbnfMatch::go_back(std::size_t n_characters) {
  callers_.resize(fronts_[n_characters].n_callers);
  links_.resize(fronts_[n_characters].n_links);
}

GbnfMatch::Front& GbnfMatch::begin_front(std::size_t n_characters) {
  if (fronts_.size() <= n_characters) fronts_.resize(n_characters + 1);
  fronts_[n_characters].items.clear();
  fronts_[n_characters].may_end = false;
  for (Seen* seen : {&entered_, &called_, &linked_, &left_}) seen->clear();
  n_old_callers_ = callers_.size();
  n_places_ = 0;
  return fronts_[n_characters];
}

// The front after n_characters + 1.
void GbnfMatch::step(std::size_t n_characters, char32_t character) {
  Front& front = begin_front(n_characters + 1);
  count_scanned(fronts_[n_characters]);
  for (const Item& item : fronts_[n_characters].items) {
    const GbnfElement& element = gbnf_->elements[item.element];
    if (element.kind == Kind::kSwitch) {
      for (const GbnfWay& way : ways_by(element, character, character)) enter(way.element, item.caller);
    } else if (takes(item, character, character)) {
      enter(item.element + 1, item.caller);
    }
  }
  walk(front);
}

// The front after n_characters + 1, by a whole token from the text so far.
void GbnfMatch::step_token(std::size_t n_characters, Token token) {
  Front& front = begin_front(n_characters + 1);
  count_scanned(fronts_.front());
  for (const Item& item : fronts_.front().items) {
    if (takes_token(item, token)) enter(item.element + 1, item.caller);
  }
  walk(front);
}

void GbnfMatch::enter(std::uint32_t element, std::uint32_t caller) {
  if (++n_places_ > limits_.max_places || links_.size() > 2 * limits_.max_links) {
    is_too_much_ = true;
  } else if (entered_.insert(element, caller).second) {
    to_do_.push_back({.element = element, .caller = caller});
  }
}

// From the entered places to all that wait for a character or a token.
void GbnfMatch::walk(Front& front) {
  while (!to_do_.empty()) {
    const Item item = to_do_.back();
    to_do_.pop_back();
    switch (gbnf_->elements[item.element].kind) {
      case Kind::kEnd: leave(item.caller, front); break;
      case Kind::kRule: call(item); break;
      default: front.items.push_back(item);
    }
  }
  front.n_callers = callers_.size();
  front.n_links = links_.size();
  n_token_places_ += n_places_ + 1;
  is_too_much_ = is_too_much_ || !has_room();
}

// A rule that matches nothing is passed over here, so its empty alternatives need not be entered, and a caller need not
// be left in the front in which it came to be.
void GbnfMatch::call(const Item& item) {
  const GbnfWrittenRule& rule = gbnf_->rules[gbnf_->elements[item.element].value];
  const std::uint32_t behind = item.element + 1;
  const bool is_last = gbnf_->elements[behind].kind == Kind::kEnd;
  const std::uint32_t caller = is_last ? item.caller : caller_for(behind, item.caller);
  for (const std::uint32_t alternative : rule.alternatives) {
    if (gbnf_->elements[alternative].kind != Kind::kEnd) enter(alternative, caller);
  }
  if (rule.may_be_empty) enter(behind, item.caller);
}

std::uint32_t GbnfMatch::caller_for(std::uint32_t element, std::uint32_t behind) {
  const auto [caller, is_new] = called_.insert(element, 0, static_cast<std::uint32_t>(callers_.size()));
  if (is_new) callers_.push_back({.element = element});
  if (linked_.insert(caller, behind).second) {
    links_.push_back({.caller = behind, .next = callers_[caller].first_link});
    callers_[caller].first_link = static_cast<std::uint32_t>(links_.size() - 1);
  }
  return caller;
}

void GbnfMatch::leave(std::uint32_t caller, Front& front) {
  if (caller == kNobody) {
    front.may_end = true;
    return;
  }
  if (caller >= n_old_callers_ || !left_.insert(caller, 0).second) return;
  for (std::uint32_t link = callers_[caller].first_link; link != 0; link = links_[link].next) {
    enter(callers_[caller].element, links_[link].caller);
  }
}

// From the front after n_known of the characters to that after all, or to the first that is dead. Returns how many it
// came to.
std::size_t GbnfMatch::follow(std::u32string_view characters, std::size_t n_known) {
  go_back(n_known);
  while (n_known < characters.size() && !fronts_[n_known].items.empty() && !is_too_much_) {
    step(n_known, characters[n_known]);
    ++n_known;
  }
  return n_known;
}

Result<std::vector<bool>> GbnfMatch::allows(std::span<const GbnfPiece> pieces) {
  struct Candidate {
    std::size_t piece = 0;
    std::u32string characters;
    PartialCodePoint partial;
  };
  std::vector<bool> allowed(pieces.size(), false);
  std::vector<Candidate> candidates;
  find_token_items();
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    if (pieces[i].bytes.empty()) continue;
    allowed[i] = partial_.n_missing == 0 && allows_token(pieces[i].token);
    Candidate candidate{.piece = i, .characters = {}, .partial = partial_};
    if (!decode_code_points(pieces[i].bytes, candidate.partial, candidate.characters)) continue;
    n_token_characters_ += candidate.characters.size();
    candidates.push_back(std::move(candidate));
  }
  // In order of their text, so that what they begin with in common is followed once.
  std::ranges::sort(candidates, {}, &Candidate::characters);
  std::u32string_view before;
  std::size_t n_followed = 0;  // of `before`
  for (const Candidate& candidate : candidates) {
    const std::u32string_view characters = candidate.characters;
    const auto common = static_cast<std::size_t>(std::ranges::mismatch(before, characters).in1 - before.begin());
    n_followed = follow(characters, std::min(common, n_followed));
    before = characters;
    if (n_followed < characters.size()) continue;
    if (candidate.partial.n_missing > 0) count_scanned(fronts_[n_followed]);
    if (is_alive(fronts_[n_followed], candidate.partial)) allowed[candidate.piece] = true;
  }
  EBB_RETURN_IF_ERROR(check_bounds());
  go_back(0);
  return allowed;
}

Result<bool> GbnfMatch::accept(const GbnfPiece& piece) {
  if (piece.bytes.empty()) return false;
  PartialCodePoint partial = partial_;
  std::u32string characters;
  std::size_t n = 0;
  bool is_read = decode_code_points(piece.bytes, partial, characters);
  if (is_read) n = follow(characters, 0);
  is_read = is_read && n == characters.size() && is_alive(fronts_[n], partial);
  if (partial_.n_missing == 0) {
    step_token(n, piece.token);
    Front& whole = fronts_[n + 1];
    const bool is_token = is_alive(whole, {});
    if (is_token && is_read && partial.n_missing == 0) {
      whole.items.insert(whole.items.end(), fronts_[n].items.begin(), fronts_[n].items.end());
      whole.may_end = whole.may_end || fronts_[n].may_end;
    }
    if (is_token) {
      ++n;
      partial = {};
      is_read = true;
    }
  }
  EBB_RETURN_IF_ERROR(check_bounds());
  if (!is_read) {
    go_back(0);
    return false;
  }
  if (n > 0) std::swap(fronts_.front(), fronts_[n]);
  partial_ = partial;
  n_token_places_ = n_token_characters_ = 0;
  if (links_.size() > 2 * n_live_links_ + kLinksBeforeForgetting) forget_dead_callers();
  is_too_much_ = n_live_links_ > limits_.max_links;
  EBB_RETURN_IF_ERROR(check_bounds());
  return true;
}

// Keeps the callers that a parse can still come back to.
void GbnfMatch::forget_dead_callers() {
  std::vector<std::uint32_t> now(callers_.size(), kNobody);  // old -> new
  std::vector<std::uint32_t> kept = {kNobody};
  const auto keep = [&](std::uint32_t caller) {
    if (caller == kNobody) return kNobody;
    if (now[caller] == kNobody) {
      now[caller] = static_cast<std::uint32_t>(kept.size());
      kept.push_back(caller);
    }
    return now[caller];
  };
  for (Item& item : fronts_.front().items) item.caller = keep(item.caller);
  std::vector<Caller> callers;
  std::vector<Link> links(1);
  for (std::size_t i = 0; i < kept.size(); ++i) {  // grows on the way
    const Caller& old = callers_[kept[i]];
    callers.push_back({.element = old.element});
    for (std::uint32_t link = old.first_link; link != 0; link = links_[link].next) {
      links.push_back({.caller = keep(links_[link].caller), .next = callers.back().first_link});
      callers.back().first_link = static_cast<std::uint32_t>(links.size() - 1);
    }
  }
  callers_ = std::move(callers);
  links_ = std::move(links);
  n_live_links_ = links_.size();
  fronts_.front().n_callers = callers_.size();
  fronts_.front().n_links = links_.size();
}

}  // namespace ebb
