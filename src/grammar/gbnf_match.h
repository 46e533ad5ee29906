// GbnfMatch: which tokens may come next, of a text that must match a GBNF grammar.
//
// It holds every parse of the text so far at once, their stacks shared as a graph (GLL: Scott and Johnstone 2010): a
// grammar that reads the same text in 2^n ways costs little more than one that reads it in n. It does not know samplers
// or probabilities. It promises bounded work for a character and bounded memory; a grammar that needs more is a Status.
// What it refuses leaves it as it was.
//
//   caller  a place in a rule that goes on when the rule called before it ends; its links lead to the callers behind it
//   item    a place in a rule that waits for a character or a token, and the caller that goes on when the rule ends
//   front   the items of all parses after the same characters
//
// Thread rule: one thread at a time; several may read one Gbnf.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/status.h"
#include "grammar/gbnf.h"
#include "text/code_points.h"

namespace ebb {

struct GbnfMatchLimits {
  // Places looked at for one character. A grammar without ambiguity needs some tens, and as many as its longest list of
  // alternatives where that begins, if these begin with more than letters. Larger: one request makes all others wait longer.
  std::size_t max_places = std::size_t{1} << 16;
  // For all the candidates of one token that are asked about before one is accepted: so many, and some more for each character of
  // theirs, which is what strings of JSON take where all of a vocabulary of 256 000 is asked about; at most the last. Larger: others wait
  // longer for who needs a little less at every token (a million takes 10 ms).
  std::size_t max_places_per_token = std::size_t{1} << 20;
  std::size_t max_places_per_character = 8;
  std::size_t max_places_in_all = std::size_t{1} << 23;
  // Links alive, 16 bytes with their callers: one or two for each open bracket of the text.
  std::size_t max_links = std::size_t{1} << 19;
};

struct GbnfPiece {
  Token token;
  std::string_view bytes;
};

class GbnfMatch {
 public:
  // The beginning of the text. The grammar is too ambiguous: kUnsupported here, kOutOfBudget behind some text.
  [[nodiscard]] static Result<GbnfMatch> begin(std::shared_ptr<const Gbnf> gbnf, const GbnfMatchLimits& limits = {});

  // Whether each piece may come next: whole, or up to a character of which only the first bytes are there. A piece
  // without bytes may not.
  [[nodiscard]] Result<std::vector<bool>> allows(std::span<const GbnfPiece> pieces);
  [[nodiscard]] bool may_end() const { return fronts_.front().may_end && partial_.n_missing == 0; }
  // False, and no change, if the piece may not come here.
  [[nodiscard]] Result<bool> accept(const GbnfPiece& piece);

 private:
  struct Caller {
    std::uint32_t element = 0;
    std::uint32_t first_link = 0;  // 0: none
  };
  struct Link {
    std::uint32_t caller = 0;
    std::uint32_t next = 0;  // of the same caller; 0: none
  };
  struct Item {
    std::uint32_t element = 0;
    std::uint32_t caller = 0;
  };
  // Callers and links are only added, and links only to callers of the same front, so that going back to a front is to
  // forget what lies behind its counts.
  struct Front {
    std::vector<Item> items;
    bool may_end = false;
    std::size_t n_callers = 0;
    std::size_t n_links = 0;
  };
  // A map from two numbers to one, which is emptied at every character.
  class Seen {
   public:
    void clear();
    // What was inserted for the pair, and whether that was now.
    std::pair<std::uint32_t, bool> insert(std::uint32_t high, std::uint32_t low, std::uint32_t value = 0);

   private:
    struct Cell {
      std::uint64_t key = 0;
      std::uint32_t value = 0;
      std::uint32_t round = 0;  // of another round: free
    };
    Cell& find(std::uint64_t key);
    std::vector<Cell> cells_ = std::vector<Cell>(64);
    std::size_t n_cells_used_ = 0;
    std::uint32_t round_ = 1;
  };

  GbnfMatch(std::shared_ptr<const Gbnf> gbnf, const GbnfMatchLimits& limits);

  [[nodiscard]] bool takes(const Item& item, char32_t least, char32_t most) const;
  [[nodiscard]] bool takes_token(const Item& item, Token token) const;
  [[nodiscard]] std::span<const GbnfWay> ways_by(const GbnfElement& element, char32_t least, char32_t most) const;
  void find_token_items();
  [[nodiscard]] bool allows_token(Token token) const;
  void count_scanned(const Front& front);
  // Whether the text may stand at this front, in the middle of a character or not.
  [[nodiscard]] bool is_alive(const Front& front, const PartialCodePoint& partial) const;
  [[nodiscard]] Status check_bounds();
  [[nodiscard]] bool has_room() const;

  void go_back(std::size_t n_characters);
  Front& begin_front(std::size_t n_characters);
  void step(std::size_t n_characters, char32_t character);
  void step_token(std::size_t n_characters, Token token);
  std::size_t follow(std::u32string_view characters, std::size_t n_known);
  void enter(std::uint32_t element, std::uint32_t caller);
  void walk(Front& front);
  void call(const Item& item);
  void leave(std::uint32_t caller, Front& front);
  std::uint32_t caller_for(std::uint32_t element, std::uint32_t behind);
  void forget_dead_callers();

  std::shared_ptr<const Gbnf> gbnf_;
  GbnfMatchLimits limits_;
  std::vector<Caller> callers_;   // the first is nobody: the text ends with the rule
  std::vector<Link> links_;       // the first is none
  std::vector<Front> fronts_;     // after the text so far, and after 1, 2, ... characters of a candidate
  PartialCodePoint partial_;      // at the end of the text so far
  std::size_t n_live_links_ = 0;  // when dead callers were last forgotten

  // Work on the front that is being made.
  std::vector<Item> to_do_;
  Seen entered_;  // (element, caller)
  Seen called_;   // element -> caller
  Seen linked_;   // (caller, the one behind it)
  Seen left_;     // caller
  std::size_t n_old_callers_ = 0;
  std::size_t n_places_ = 0;

  // Of the front after the text so far: tokens that it takes whole, in order, and one that it takes any but.
  std::vector<std::uint32_t> tokens_;
  std::optional<std::uint32_t> but_token_;
  bool takes_any_token_ = false;

  std::size_t n_token_places_ = 0;
  std::size_t n_token_characters_ = 0;
  bool is_too_much_ = false;
};

}  // namespace ebb
