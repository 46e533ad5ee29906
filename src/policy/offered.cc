#include "policy/offered.h"

#include <algorithm>
#include <functional>
#include <set>

namespace ebb {
namespace {

// Of a name that is none, an error repeats no more.
constexpr std::size_t kMostRepeated = 64;

template <typename Wanted>
std::vector<std::string_view> names_of(Wanted wanted) {
  std::vector<std::string_view> names;
  for (const PolicyEntry& entry : policies()) {
    if (std::invoke(wanted, entry)) names.push_back(entry.name);
  }
  return names;
}

}  // namespace

OfferedPolicies::OfferedPolicies() : names_(names_of(&PolicyEntry::is_open)) {}

Result<OfferedPolicies> OfferedPolicies::parse(std::string_view list) {
  OfferedPolicies offered;
  if (list == "open") return offered;
  offered.with_costly_ = true;
  const std::vector<std::string_view> all = names_of([](const PolicyEntry&) { return true; });
  offered.names_ = list == "all" ? all : std::vector<std::string_view>();
  if (list == "all" || list == "own") return offered;
  std::set<std::string_view> named;
  for (std::string_view rest = list;;) {
    const std::string_view name = rest.substr(0, rest.find(','));
    if (std::ranges::find(all, name) == all.end()) {
      return error(Code::kInvalidArgument, "'{}' is no eviction policy; give open, all, own, or with commas any of {}",
                   name.substr(0, kMostRepeated), fmt::join(all, ", "));
    }
    named.insert(name);
    if (name.size() == rest.size()) break;
    rest.remove_prefix(name.size() + 1);
  }
  offered.names_ = names_of([&](const PolicyEntry& entry) { return named.contains(entry.name); });
  return offered;
}

bool OfferedPolicies::has(std::string_view name) const { return std::ranges::find(names_, name) != names_.end(); }

Result<std::shared_ptr<const Policy>> OfferedPolicies::make(std::string_view spec) const {
  if (spec == own_) {
    EBB_ASSIGN_OR_RETURN(std::shared_ptr<const Policy> own, make_policy(spec));
    return own;
  }
  if (names_.empty()) {
    return error(Code::kInvalidArgument, "this server lets nobody choose a policy; leave it out");
  }
  if (spec.size() > kMostBytes) {
    return error(Code::kInvalidArgument, "a policy of {} bytes; give {} at most", spec.size(), kMostBytes);
  }
  spec = spelled_out(spec);
  const std::string_view name = spec.substr(0, spec.find(':'));
  if (!has(name)) {
    return error(Code::kInvalidArgument, "'{}' is no policy that may be chosen here; there are {}",
                 name.substr(0, kMostRepeated), fmt::join(names_, ", "));
  }
  EBB_ASSIGN_OR_RETURN(std::shared_ptr<const Policy> policy, make_policy(spec));
  if (policy->compares_blocks() && !with_costly_) {
    return error(Code::kInvalidArgument,
                 "'{}' compares blocks with each other, which takes much time; have the server name {} in "
                 "--allowed-policies, or take other parameters",
                 spec, name);
  }
  const Ask ask = policy->asks();
  if (ask.slice > 0 && ask.window > 0 && !with_costly_) {
    return error(Code::kInvalidArgument,
                 "'{}' notes a window by slice, which takes much memory; take slice=0, or have the server name it in "
                 "--allowed-policies",
                 name);
  }
  return policy;
}

}  // namespace ebb
