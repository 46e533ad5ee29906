#include "text/tokenizer_section.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <optional>
#include <string_view>
#include <system_error>
#include <unordered_set>
#include <vector>

namespace ebb {
namespace {

// GGUF's value types (docs/gguf.md of ggml); the numbers are the file format.
enum ValueType : std::uint32_t {
  kUint8,
  kInt8,
  kUint16,
  kInt16,
  kUint32,
  kInt32,
  kFloat32,
  kBool,
  kString,
  kArray,
  kUint64,
  kInt64,
  kFloat64,
};

// Bytes of a value of fixed size; 0 for strings, arrays and unknown types.
std::uint64_t value_bytes(std::uint32_t type) {
  constexpr std::array<std::uint64_t, 13> kBytes = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
  return type < kBytes.size() ? kBytes[type] : 0;
}

// More than any vocabulary has; token ids are 32 bits, and libllama keeps several strings per token.
constexpr std::uint64_t kMaxTokens = std::uint64_t{1} << 24;
// libllama's grammars recurse once per character of a token.
constexpr std::uint64_t kMaxTokenBytes = 4096;
// libllama writes a token of n bytes that are not in the byte alphabet as up to n*n bytes. 150000 tokens of 10 bytes add
// up to 2^24.
constexpr std::uint64_t kMaxSquaredTokenBytes = std::uint64_t{1} << 28;
// Of keys and of single strings that we keep.
constexpr std::uint64_t kMaxNameBytes = 65536;

// These pass "gpt2" and then break libllama: it stops at the first run of spaces, or its expression backtracks without
// end.
constexpr std::array<std::string_view, 2> kBrokenPreTokenizers = {"whitespace", "exaone-moe"};

class Reader {
 public:
  Reader(const std::filesystem::path& path, std::uint64_t n_bytes)
      : name_(path.filename().string()), file_(path, std::ios::binary), n_left_(n_bytes) {}

  Result<TokenizerSection> read();

 private:
  Status damaged(std::string_view what) const { return error(Code::kDamaged, "{}: {}", name_, what); }

  Status read_bytes(void* to, std::uint64_t n) {
    if (n > n_left_) return damaged("the file ends inside its header");
    file_.read(static_cast<char*>(to), static_cast<std::streamsize>(n));
    if (!file_) return error(Code::kIo, "{}: cannot be read", name_);
    n_left_ -= n;
    return {};
  }
  template <class T>
  Status read_number(T& to) {
    return read_bytes(&to, sizeof to);
  }
  Status skip(std::uint64_t n) {
    if (n > n_left_) return damaged("the file ends inside its header");
    file_.seekg(static_cast<std::streamoff>(n), std::ios::cur);
    if (!file_) return error(Code::kIo, "{}: cannot be read", name_);
    n_left_ -= n;
    return {};
  }
  Status read_string(std::string& to, std::uint64_t most_bytes);
  Status skip_string();
  Status skip_value(std::uint32_t type);
  Status skip_array();
  Status read_key_value(TokenizerSection& section);
  Status read_tokens(TokenizerSection& section);
  Status read_split_count(std::uint32_t type);
  Status check(const TokenizerSection& section) const;

  std::string name_;
  std::ifstream file_;
  std::uint64_t n_left_;
  bool has_tokens_ = false;
  std::optional<bool> space_prefix_;
};

Status Reader::read_string(std::string& to, std::uint64_t most_bytes) {
  std::uint64_t n = 0;
  EBB_RETURN_IF_ERROR(read_number(n));
  if (n > most_bytes) {
    return error(Code::kDamaged, "{}: a string of {} bytes where at most {} belong", name_, n, most_bytes);
  }
  to.resize(n);
  return read_bytes(to.data(), n);
}

Status Reader::skip_string() {
  std::uint64_t n = 0;
  EBB_RETURN_IF_ERROR(read_number(n));
  return skip(n);
}

Status Reader::skip_array() {
  std::uint32_t type = 0;
  std::uint64_t n = 0;
  EBB_RETURN_IF_ERROR(read_number(type));
  EBB_RETURN_IF_ERROR(read_number(n));
  if (type == kString) {
    for (std::uint64_t i = 0; i < n; ++i) EBB_RETURN_IF_ERROR(skip_string());
    return {};
  }
  const std::uint64_t bytes = value_bytes(type);
  if (bytes == 0) return error(Code::kDamaged, "{}: an array of type {}, which GGUF does not have", name_, type);
  if (n > n_left_ / bytes) return damaged("an array is longer than the file");
  return skip(n * bytes);
}

Status Reader::skip_value(std::uint32_t type) {
  if (type == kString) return skip_string();
  if (type == kArray) return skip_array();
  const std::uint64_t bytes = value_bytes(type);
  if (bytes == 0) return error(Code::kDamaged, "{}: a value of type {}, which GGUF does not have", name_, type);
  return skip(bytes);
}

Status Reader::read_tokens(TokenizerSection& section) {
  std::uint32_t type = 0;
  std::uint64_t n = 0;
  EBB_RETURN_IF_ERROR(read_number(type));
  EBB_RETURN_IF_ERROR(read_number(n));
  if (type != kString || n == 0 || n > kMaxTokens || n > n_left_ / sizeof(std::uint64_t)) {
    return error(Code::kDamaged, "{}: tokenizer.ggml.tokens is not a list of 1 to {} strings", name_, kMaxTokens);
  }
  std::unordered_set<std::string> seen;
  seen.reserve(n);
  std::uint64_t squared_bytes = 0;
  std::string word;
  for (std::uint64_t i = 0; i < n; ++i) {
    EBB_RETURN_IF_ERROR(read_string(word, kMaxTokenBytes));
    squared_bytes += word.size() * word.size();
    // libllama reads words up to their first NUL, and gives empty ones this name.
    word.resize(std::min(word.size(), word.find('\0')));
    if (word.empty()) word = fmt::format("[EMPTY_{}]", i);
    if (!seen.insert(word).second)
      return error(Code::kDamaged, "{}: token {} has the text of an earlier one", name_, i);
  }
  if (squared_bytes > kMaxSquaredTokenBytes) return damaged("the tokens are too long for a vocabulary");
  section.n_tokens = static_cast<std::int64_t>(n);
  has_tokens_ = true;
  return {};
}

Status Reader::read_split_count(std::uint32_t type) {
  std::array<unsigned char, 8> bytes{};
  if (type == kString || type == kArray || value_bytes(type) == 0) return damaged("split.count is not a number");
  EBB_RETURN_IF_ERROR(read_bytes(bytes.data(), value_bytes(type)));
  const bool more_than_one = bytes[0] > 1 || std::any_of(bytes.begin() + 1, bytes.end(), [](auto b) { return b != 0; });
  if (!more_than_one) return {};
  return error(Code::kUnsupported, "{}: is one part of several; merge them with llama-gguf-split first", name_);
}

Status Reader::read_key_value(TokenizerSection& section) {
  std::string key;
  std::uint32_t type = 0;
  EBB_RETURN_IF_ERROR(read_string(key, kMaxNameBytes));
  EBB_RETURN_IF_ERROR(read_number(type));
  if (key == "split.count") return read_split_count(type);
  if (key == "tokenizer.ggml.model" && type == kString) return read_string(section.model, kMaxNameBytes);
  if (key == "tokenizer.ggml.pre" && type == kString) return read_string(section.pre_tokenizer, kMaxNameBytes);
  if (key == "tokenizer.ggml.tokens" && type == kArray) return read_tokens(section);
  if (key == "tokenizer.ggml.add_space_prefix" && type == kBool) {
    std::uint8_t value = 0;
    EBB_RETURN_IF_ERROR(read_number(value));
    space_prefix_ = value != 0;
    return {};
  }
  return skip_value(type);
}

Status Reader::check(const TokenizerSection& section) const {
  if (section.model.empty()) return damaged("no tokenizer.ggml.model; the file carries no vocabulary");
  if (section.model != "llama" && section.model != "gpt2" && section.model != "bert") {
    return error(Code::kUnsupported,
                 "{}: tokenizer '{:.40}' is not served; 'llama' (SentencePiece), 'gpt2' (BPE) and 'bert' (WordPiece) "
                 "are",
                 name_, section.model);
  }
  if (!has_tokens_) return damaged("no tokenizer.ggml.tokens; the file carries no vocabulary");
  const std::string_view pre = std::string_view(section.pre_tokenizer).substr(0, section.pre_tokenizer.find('\0'));
  if (std::find(kBrokenPreTokenizers.begin(), kBrokenPreTokenizers.end(), pre) != kBrokenPreTokenizers.end()) {
    return error(Code::kUnsupported, "{}: pre-tokenizer '{}' is not served", name_, pre);
  }
  return {};
}

Result<TokenizerSection> Reader::read() {
  std::array<char, 4> magic{};
  std::uint32_t version = 0;
  std::uint64_t n_tensors = 0;
  std::uint64_t n_keys = 0;
  if (!file_) return error(Code::kIo, "{}: cannot be opened", name_);
  EBB_RETURN_IF_ERROR(read_bytes(magic.data(), magic.size()));
  if (std::memcmp(magic.data(), "GGUF", 4) != 0) return damaged("is not a GGUF file");
  EBB_RETURN_IF_ERROR(read_number(version));
  if (version != 2 && version != 3)
    return error(Code::kUnsupported, "{}: GGUF version {}; 2 and 3 are served", name_, version);
  EBB_RETURN_IF_ERROR(read_number(n_tensors));
  EBB_RETURN_IF_ERROR(read_number(n_keys));

  TokenizerSection section;
  // Every key takes bytes of the file, so a huge count ends with the file.
  for (std::uint64_t i = 0; i < n_keys; ++i) EBB_RETURN_IF_ERROR(read_key_value(section));
  EBB_RETURN_IF_ERROR(check(section));
  section.adds_space_prefix = space_prefix_.value_or(section.model == "llama");
  return section;
}

}  // namespace

Result<TokenizerSection> read_tokenizer_section(const std::filesystem::path& gguf) {
  std::error_code failed;
  if (!std::filesystem::is_regular_file(gguf, failed)) {
    return error(Code::kNotFound, "{}: there is no such file", gguf.string());
  }
  const std::uintmax_t n_bytes = std::filesystem::file_size(gguf, failed);
  if (failed) return error(Code::kIo, "{}: {}", gguf.string(), failed.message());
  return Reader(gguf, n_bytes).read();
}

}  // namespace ebb
