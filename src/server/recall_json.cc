#include "server/recall_json.h"

namespace ebb {

nlohmann::ordered_json recall_json(std::span<const RecallLook> looks, bool tells_blocks) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const RecallLook& look : looks) {
    nlohmann::ordered_json json = {{"when", moment_name(look.moment)},
                                   {"selector", look.selector},
                                   {"looked_at", look.n_looked_at},
                                   {"chosen", look.n_chosen()},
                                   {"ms", look.ms}};
    if (!look.unknown_names.empty()) json["unknown_names"] = look.unknown_names;
    if (tells_blocks) {
      nlohmann::ordered_json blocks = nlohmann::ordered_json::array();
      for (const RecallLook::Told& told : look.told) {
        blocks.push_back({{"name", told.name},
                          {"score", told.considered.score},
                          {"verdict", verdict_name(told.considered.verdict)},
                          {"came", told.came}});
        if (told.away) blocks.back()["away"] = away_name(*told.away);
        if (!told.considered.heads.empty()) blocks.back()["heads"] = told.considered.heads;
      }
      json["blocks"] = std::move(blocks);
    }
    all.push_back(std::move(json));
  }
  return all;
}

}  // namespace ebb
