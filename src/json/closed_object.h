// closed_object: what is whole of a JSON object whose text broke off, as a model's does when it may say no more.
//
// It knows no fields, and reads what may be any text. Thread rule: a function of its arguments.
#pragma once

#include <string>

#include "json/parse_json.h"

namespace ebb {

// The object that a text begins, as far as its members are whole, of the last one a text as far as it goes; a text that begins no object as the
// member "text" of one.
[[nodiscard]] Json closed_object(const std::string& text);

}  // namespace ebb
