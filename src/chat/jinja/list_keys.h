// By what the filters that order and choose look at items: an attribute's path, letters' case.
//
// Thread rule: that of the run.
#pragma once

#include "chat/jinja/run.h"
#include "chat/jinja/value.h"

namespace ebb::jinja {

// The item itself when `path` is undefined or none; else item.a.b, with whole numbers as places.
Value key_of(Run& run, const Value& item, const Value& path);
// Strings in small letters, unless case counts.
Value fold_case(Run& run, const Value& value, bool case_sensitive);

}  // namespace ebb::jinja
