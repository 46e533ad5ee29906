#include "bench/recall_relations.h"

namespace ebb {
namespace {

// The bundled model's ways to state and to ask that name the relation; more of them, and lexical recall meets frames that
// are rarer than the fact.
const Wording kBundledNoun = {
    .statements = {"The {r} of {k} is {v}.", "{P} {r} is {v}.", "For {k}, the {r} is {v}.",
                   "As for {k}, the {r} is {v}."},
    .questions = {"What is the {r} of {k}?", "What is {p} {r}?", "Tell me the {r} of {k}.", "For {k}, what is the {r}?",
                  "What {r} does {k} have?", "Do you know {p} {r}?", "The {r} of {k}?"}};

// The verbs are of tools/train/facts.py, but those of the weight and the phone, which the model reads and asks with some luck.
// What it was trained to say by a noun alone (colours, pets, mayors, ports, passwords, capitals) it does not paraphrase, and a
// value in front of its relation ("417 is the price of ...") it finds less often.
std::vector<Relation> bundled_relations() {
  using K = NameKind;
  return {
      {"code", K::kThing, K::kCode, {kBundledNoun, {{"To open {k}, use {v}."}, {"How do I open {k}?"}}}},
      {"owner", K::kThing, K::kPerson, {kBundledNoun, {{"{K} belongs to {v}."}, {"Who does {k} belong to?"}}}},
      {"location", K::kThing, K::kPlace, {kBundledNoun, {{"{K} is in {v}."}, {"Where is {k}?"}}}},
      {"price", K::kThing, K::kAmount, {kBundledNoun, {{"{K} costs {v} dollars."}, {"How much does {k} cost?"}}}},
      {"deadline", K::kThing, K::kDay, {kBundledNoun, {{"{K} is due on {v}."}, {"When is {k} due?"}}}},
      {"home city",
       K::kPerson,
       K::kPlace,
       {kBundledNoun, {{"{K} lives in {v}.", "{K} moved to {v}."}, {"Where does {k} live?"}}}},
      {"birthday", K::kPerson, K::kDay, {kBundledNoun, {{"{K} was born on {v}."}, {"When was {k} born?"}}}},
      {"favorite food",
       K::kPerson,
       K::kFood,
       {kBundledNoun, {{"{K} likes {v} most of all.", "{K} loves to eat {v}."}, {"What does {k} like to eat?"}}}},
      {"founding year", K::kTown, K::kAmount, {kBundledNoun, {{"{K} was founded in {v}."}, {"When was {k} founded?"}}}},
      {"weight", K::kThing, K::kAmount, {kBundledNoun, {{"{K} is {v} kilograms heavy."}, {"How heavy is {k}?"}}}, true},
      {"phone number", K::kPerson, K::kNumber, {kBundledNoun, {{"Call {k} at {v}."}, {"How do I call {k}?"}}}, true},
      {"manager", K::kService, K::kPerson, {kBundledNoun, {{"{v} manages {k}."}, {"Who manages {k}?"}}}, true},
  };
}

std::vector<Relation> english_relations() {
  using K = NameKind;
  return {
      {"access code",
       K::kThing,
       K::kCode,
       {{{{"The access code of {k} is {v}.", "{P} access code is {v}."}, {"What is the access code of {k}?"}},
         {{"{K} opens once somebody has typed {v}.", "To open {k} you have to type {v}."},
          {"What do you have to type to open {k}?"}}}}},
      {"owner",
       K::kThing,
       K::kPerson,
       {{{{"The owner of {k} is {v}."}, {"Who is the owner of {k}?"}},
         {{"{K} belongs to {v}.", "{v} bought {k} years ago, and it still belongs to them."},
          {"To whom does {k} belong?"}}}}},
      {"location",
       K::kThing,
       K::kPlace,
       {{{{"The location of {k} is {v}."}, {"What is the location of {k}?"}},
         {{"{K} can be found in {v}.", "People who look for {k} have to go to {v}."},
          {"Where would you go to look for {k}?"}}}}},
      {"price",
       K::kThing,
       K::kAmount,
       {{{{"The price of {k} is {v} euros."}, {"What is the price of {k}?"}},
         {{"{K} costs {v} euros.", "Whoever wants {k} has to pay {v} euros for it."},
          {"How much do you have to pay for {k}?"}}}}},
      {"deadline",
       K::kThing,
       K::kDay,
       {{{{"The deadline of {k} is {v}.", "{P} deadline is {v}."}, {"What is the deadline of {k}?"}},
         {{"{K} has to be finished by {v}."}, {"By which day must {k} be finished?"}}}}},
      {"colour",
       K::kThing,
       K::kColor,
       {{{{"The colour of {k} is {v}."}, {"What is the colour of {k}?"}},
         {{"Somebody painted {k} {v}.", "{K} was painted {v}."}, {"Which paint was used on {k}?"}}}}},
      {"home town",
       K::kPerson,
       K::kPlace,
       {{{{"The home town of {k} is {v}.", "{P} home town is {v}."}, {"What is the home town of {k}?"}},
         {{"{K} lives in {v}.", "{K} moved to {v} for good."}, {"Where would you have to go to visit {k}?"}}}}},
      {"birthday",
       K::kPerson,
       K::kDay,
       {{{{"The birthday of {k} is {v}.", "{P} birthday is {v}."}, {"What is the birthday of {k}?"}},
         {{"{K} was born on {v}."}, {"When was {k} born?"}}}}},
      {"favourite food",
       K::kPerson,
       K::kFood,
       {{{{"The favourite food of {k} is {v}."}, {"What is the favourite food of {k}?"}},
         {{"{K} likes {v} more than anything else on a plate."}, {"What would you cook to make {k} happy?"}}}}},
      {"pet",
       K::kPerson,
       K::kAnimal,
       {{{{"{P} pet is a {v}.", "The pet of {k} is a {v}."}, {"What pet does {k} have?"}},
         {{"{K} shares the house with a {v}."}, {"Which animal lives in the house of {k}?"}}}}},
      {"manager",
       K::kService,
       K::kPerson,
       {{{{"The manager of {k} is {v}."}, {"Who is the manager of {k}?"}},
         {{"{v} is in charge of {k}.", "{K} is led by {v}."}, {"Who is in charge of {k}?"}}}}},
      {"port number",
       K::kService,
       K::kNumber,
       {{{{"The port number of {k} is {v}."}, {"What is the port number of {k}?"}},
         {{"{K} listens on {v}."}, {"Where does {k} listen for connections?"}}}}},
      {"phone number",
       K::kPerson,
       K::kNumber,
       {{{{"{P} phone number is {v}.", "The phone number of {k} is {v}."}, {"What is the phone number of {k}?"}},
         {{"You reach {k} by dialling {v}."}, {"What do you dial to reach {k}?"}}}}},
      {"mayor",
       K::kTown,
       K::kPerson,
       {{{{"The mayor of {k} is {v}."}, {"Who is the mayor of {k}?"}},
         {{"{v} governs {k}.", "The people of {k} elected {v}."}, {"Who governs {k}?"}}}}},
  };
}

constexpr std::array kMentions = {
    "Nobody had said a word about {k} since the morning.",
    "They talked about {k} for an hour.",
    "A long letter about {k} was read aloud.",
    "Later that day {k} was forgotten again.",
    "The old miller asked about {k} twice.",
    "Some of them still remembered {k} from better times.",
};

}  // namespace

const std::vector<Relation>& relations(RecallLanguage language) {
  static const std::vector<Relation> kBundled = bundled_relations();
  static const std::vector<Relation> kEnglish = english_relations();
  return language == RecallLanguage::kBundled ? kBundled : kEnglish;
}

std::span<const char* const> mentions() { return kMentions; }

std::string fill_sentence(std::string_view sentence, const Relation& relation, std::string_view subject,
                          std::string_view value) {
  std::string text;
  for (std::size_t i = 0; i < sentence.size(); ++i) {
    if (sentence[i] != '{') {
      text += sentence[i];
      continue;
    }
    const char slot = sentence[i + 1];
    const std::size_t begin = text.size();
    text += slot == 'r' ? std::string_view(relation.name) : slot == 'v' ? value : subject;
    if (slot == 'p' || slot == 'P') text += "'s";
    if ((slot == 'K' || slot == 'P') && text[begin] >= 'a' && text[begin] <= 'z') {
      text[begin] = static_cast<char>(text[begin] - 'a' + 'A');
    }
    i += 2;
  }
  return text;
}

}  // namespace ebb
