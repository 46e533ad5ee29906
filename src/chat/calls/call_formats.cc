#include "chat/calls/call_format.h"

namespace ebb {

const std::vector<const CallFormat*>& call_formats() {
  static const std::vector<const CallFormat*> kFormats = {
      &qwen_xml_calls(), &mistral_named_id_calls(), &mistral_named_calls(), &mistral_list_calls(), &granite_calls(),
      &gemma_calls(),    &harmony_calls(),          &python_calls(),        &functionary_calls(),  &hermes_calls(),
      &llama3_calls(),
  };
  return kFormats;
}

const CallFormat* find_call_format(std::string_view template_source) {
  for (const CallFormat* format : call_formats()) {
    if (format->is_taught_by(template_source)) return format;
  }
  return nullptr;
}

}  // namespace ebb
