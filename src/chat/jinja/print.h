// How values look as text: Python's str and repr.
//
// What strings came from the request keep their marks. Thread rule: that of the run.
#pragma once

#include <string>

#include "chat/jinja/run.h"
#include "chat/jinja/value.h"

namespace ebb::jinja {

// str(value): nothing for undefined. An empty text when the run failed.
MarkedText to_text(Run& run, const Value& value);
// The same, without a copy where it is a text already. Never null.
TextRef as_text(Run& run, const Value& value);
void append_text(Run& run, const Value& value, MarkedText& out);
// repr(value)
void append_repr(Run& run, const Value& value, MarkedText& out);

// The shortest digits that read back as the same number, as Python writes them: "1.0", "1e+16", "nan".
[[nodiscard]] std::string float_text(double value);

}  // namespace ebb::jinja
