#include "base/caught.h"

#include <exception>
#include <new>
#include <stdexcept>

namespace ebb {
namespace {

Status short_of_memory(std::string_view doing) {
  return error(Code::kOutOfBudget,
               "memory ran short while {}; say it shorter, do less at once, or give the KV cache a smaller budget",
               doing);
}

}  // namespace

Status caught(std::string_view doing) {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return short_of_memory(doing);
  } catch (const std::length_error&) {  // a container that would be larger than any memory
    return short_of_memory(doing);
  } catch (const std::exception& thrown) {
    return error(Code::kIo, "an error while {}: {}", doing, thrown.what());
  } catch (...) {
    return error(Code::kIo, "an error while {}", doing);
  }
}

}  // namespace ebb
