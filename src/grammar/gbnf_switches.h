// Switches: of alternatives that begin with letters, what a letter leads to, so that a long list of words is looked up and not walked.
//
// A rule's alternatives whose first symbol is one character become one element of GbnfElement::Kind::kSwitch, and where several go on alike,
// so does what is behind that character: a tree of the words by their letters. Which texts match stays as it was.
//
// Thread rule: a function of its argument.
#pragma once

#include "grammar/gbnf.h"

namespace ebb {

// Work and memory grow with the grammar's size only.
void add_switches(Gbnf& gbnf);

}  // namespace ebb
