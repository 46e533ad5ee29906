#include "grammar/gbnf_switches.h"

#include <algorithm>
#include <span>

namespace ebb {
namespace {

using Kind = GbnfElement::Kind;

// So many alternatives are walked as they are: a switch would be searched for as long.
constexpr std::size_t kFewAlternatives = 4;

class SwitchWriter {
 public:
  explicit SwitchWriter(Gbnf& gbnf) : gbnf_(gbnf) {}

  void rewrite(GbnfWrittenRule& rule) {
    std::vector<std::uint32_t> words;
    std::vector<std::uint32_t> others;
    for (const std::uint32_t place : rule.alternatives) (is_letter(place) ? words : others).push_back(place);
    if (words.size() <= kFewAlternatives) return;
    others.push_back(write(std::move(words)));
    rule.alternatives = std::move(others);
  }

 private:
  // A switch to be written: over words[begin, end), which are alike up to `n_alike` letters.
  struct Node {
    std::uint32_t element = 0;
    std::size_t begin = 0;
    std::size_t end = 0;
    std::uint32_t n_alike = 0;
  };

  [[nodiscard]] bool is_letter(std::uint32_t place) const {
    const GbnfElement& element = gbnf_.elements[place];
    if (element.kind != Kind::kChars || element.n_ranges != 1) return false;
    return gbnf_.ranges[element.value].least == gbnf_.ranges[element.value].most;
  }
  [[nodiscard]] char32_t letter(std::uint32_t place) const { return gbnf_.ranges[gbnf_.elements[place].value].least; }

  [[nodiscard]] bool is_before(std::uint32_t one, std::uint32_t other) const {
    while (is_letter(one) && is_letter(other) && letter(one) == letter(other)) {
      ++one;
      ++other;
    }
    if (!is_letter(one) || !is_letter(other)) return is_letter(other);
    return letter(one) < letter(other);
  }

  std::uint32_t new_element() {
    gbnf_.elements.push_back({.kind = Kind::kSwitch});
    return static_cast<std::uint32_t>(gbnf_.elements.size() - 1);
  }

  // Returns where the switch over the words stands. Words are as long as a grammar, so it does not recurse.
  std::uint32_t write(std::vector<std::uint32_t> words) {
    std::ranges::sort(words, [this](std::uint32_t one, std::uint32_t other) { return is_before(one, other); });
    const std::uint32_t root = new_element();
    std::vector<Node> nodes = {{.element = root, .begin = 0, .end = words.size(), .n_alike = 0}};
    while (!nodes.empty()) {
      const Node node = nodes.back();
      nodes.pop_back();
      const std::size_t first_way = gbnf_.ways.size();
      for (std::size_t begin = node.begin; begin < node.end;) {
        const char32_t character = letter(words[begin] + node.n_alike);
        std::size_t end = begin;
        std::size_t first_longer = node.end;  // shorter words come first
        for (; end < node.end && letter(words[end] + node.n_alike) == character; ++end) {
          const std::uint32_t behind = words[end] + node.n_alike + 1;
          if (is_letter(behind)) first_longer = std::min(first_longer, end);
          if (end < first_longer) gbnf_.ways.push_back({.character = character, .element = behind});
        }
        if (first_longer + 1 == end) {
          gbnf_.ways.push_back({.character = character, .element = words[first_longer] + node.n_alike + 1});
        } else if (first_longer < end) {
          nodes.push_back({.element = new_element(), .begin = first_longer, .end = end, .n_alike = node.n_alike + 1});
          gbnf_.ways.push_back({.character = character, .element = nodes.back().element});
        }
        begin = end;
      }
      gbnf_.elements[node.element].value = static_cast<std::uint32_t>(first_way);
      gbnf_.elements[node.element].n_ranges = static_cast<std::uint32_t>(gbnf_.ways.size() - first_way);
    }
    return root;
  }

  Gbnf& gbnf_;
};

}  // namespace

void add_switches(Gbnf& gbnf) {
  SwitchWriter writer(gbnf);
  for (GbnfWrittenRule& rule : gbnf.rules) writer.rewrite(rule);
}

}  // namespace ebb
