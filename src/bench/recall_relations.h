// Relations: what is told of things and people, and asked for again, in two wordings that share no word but the subject.
//
// Two languages: what the bundled model was trained to read and to answer (tools/train/facts.py), and plain English for any
// other model. A question of the wording in which a fact was told repeats its words; one of the other wording paraphrases it.
// Thread rule: pure functions of constants.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench/recall_names.h"

namespace ebb {

enum class RecallLanguage : std::uint8_t { kBundled, kEnglish };

// Sentences with slots: {k} the subject, {p} "the subject's", {v} the value, {r} the relation's name; {K}, {P} with a
// capital.
struct Wording {
  std::vector<const char*> statements;
  std::vector<const char*> questions;
};

struct Relation {
  const char* name;
  NameKind subject;
  NameKind value;
  // The noun's ("The owner of ... is ...") and the verb's ("... belongs to ...").
  std::array<Wording, 2> wordings;
  // The bundled model answers too few of these with everything hot for a bench to show what is lost: tasks tell of them only
  // where they are named.
  bool is_hard = false;
};

[[nodiscard]] const std::vector<Relation>& relations(RecallLanguage language);
// Sentences that name a subject and tell nothing of it.
[[nodiscard]] std::span<const char* const> mentions();
[[nodiscard]] std::string fill_sentence(std::string_view sentence, const Relation& relation, std::string_view subject,
                                        std::string_view value = "");

}  // namespace ebb
