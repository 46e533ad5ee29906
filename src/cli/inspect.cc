// `ebb inspect`: what a model file holds, and what KV budget fits beside it on this machine.
#include <algorithm>
#include <iostream>
#include <map>
#include <memory>

#include <CLI/CLI.hpp>

#include "base/text_table.h"
#include "cache/frame_layout.h"
#include "cli/bundled_model.h"
#include "cli/command.h"
#include "cli/terminal.h"
#include "engine/engine.h"
#include "gguf/gguf_file.h"
#include "model/architecture.h"
#include "model/hparams.h"
#include "model/model.h"

namespace ebb {
namespace {

constexpr const char* kInspectFooter = R"(Examples:
  ebb inspect                    the model that comes with ebb
  ebb inspect model.gguf

"fits" is what could be hot beside the weights in the memory that is free now, with a tenth of it and 256 MB left alone;
give at most that as --kv-budget. The whole context is not needed: what a smaller budget evicts can be recalled.)";

constexpr std::int32_t kBlockSize = 64;
constexpr std::size_t kSpareBytes = std::size_t{256} << 20;

constexpr TextTable::Align kLeft = TextTable::Align::kLeft;

std::string count_text(double n) {
  if (n >= 1e9) return fmt::format("{:.2f}e9", n / 1e9);
  if (n >= 1e6) return fmt::format("{:.1f}e6", n / 1e6);
  return fmt::format("{:.0f}", n);
}

// "q4_K 84%, q6_K 15%, f32 0%": shares of the bytes, largest first.
std::string quantisation_text(const GgufFile& file) {
  std::map<std::string, std::size_t> bytes_of;
  for (const TensorInfo& tensor : file.tensors()) bytes_of[ggml_type_name(tensor.type)] += tensor.n_bytes;
  std::vector<std::pair<std::string, std::size_t>> parts(bytes_of.begin(), bytes_of.end());
  std::ranges::sort(parts, std::greater(), [](const auto& part) { return part.second; });
  std::string text;
  const auto all = static_cast<double>(std::max(file.n_tensor_bytes(), std::size_t{1}));
  for (const auto& [name, n_bytes] : parts) {
    text += fmt::format("{}{} {:.1f}%", text.empty() ? "" : ", ", name, 100.0 * static_cast<double>(n_bytes) / all);
  }
  return text;
}

std::string rope_text(const Hparams& hparams, const GgufFile& file) {
  std::string text = fmt::format("base {}", hparams.rope_freq_base);
  switch (hparams.rope_scaling) {
    case RopeScaling::kNone: break;
    case RopeScaling::kLinear: text += fmt::format(", linear scaling by {:.4g}", 1.0F / hparams.rope_freq_scale); break;
    case RopeScaling::kYarn:
      text += fmt::format(", YaRN scaling by {:.4g} of {} positions", 1.0F / hparams.rope_freq_scale,
                          hparams.rope_orig_ctx);
      break;
  }
  if (file.find_tensor("rope_freqs.weight") != nullptr) text += ", frequency factors (Llama 3.1)";
  return text;
}

std::string window_text(const Hparams& hparams) {
  const auto n_sliding = std::ranges::count(hparams.layer_is_sliding, true);
  if (n_sliding == 0) return "none: every layer sees everything";
  return fmt::format("{} positions in {} of {} layers", hparams.sliding_window, n_sliding, hparams.n_layers);
}

std::string file_table(const GgufFile& file) {
  TextTable table({{"", kLeft}, {"", kLeft}});
  table.add_row(
      {"file", fmt::format("{}, {}", file.name(), bytes_text(static_cast<double>(file.mapping().bytes().size())))});
  table.add_row({"parameters", fmt::format("{} in {} tensors", count_text(static_cast<double>(file.n_parameters())),
                                           file.tensors().size())});
  table.add_row({"weights", fmt::format("{} ({}); {:.2f} bits each",
                                        bytes_text(static_cast<double>(file.n_tensor_bytes())), quantisation_text(file),
                                        8.0 * static_cast<double>(file.n_tensor_bytes()) /
                                            static_cast<double>(std::max<std::int64_t>(file.n_parameters(), 1)))});
  return table.render();
}

std::string model_table(const GgufFile& file, const Hparams& hparams) {
  TextTable table({{"", kLeft}, {"", kLeft}});
  const bool tied = file.find_tensor("output.weight") == nullptr;
  table.add_row({"architecture", hparams.architecture + (hparams.name.empty() ? "" : " (" + hparams.name + ")")});
  const Result<Hash128> fingerprint = model_fingerprint(file, hparams);
  table.add_row({"fingerprint", fingerprint.ok() ? fingerprint->hex() : fingerprint.status().message()});
  table.add_row({"context", fmt::format("{} positions in training", hparams.n_ctx_train)});
  table.add_row(
      {"layers", fmt::format("{} of width {}, feed-forward {}", hparams.n_layers, hparams.n_embd, hparams.n_ff)});
  table.add_row(
      {"attention",
       fmt::format("{} query heads on {} KV heads of {}{}", hparams.n_heads, hparams.n_kv_heads, hparams.head_dim_k,
                   hparams.head_dim_v == hparams.head_dim_k ? std::string()
                                                            : fmt::format(" (values {})", hparams.head_dim_v))});
  table.add_row({"rope", rope_text(hparams, file)});
  table.add_row({"window", window_text(hparams)});
  table.add_row({"vocabulary", fmt::format("{} tokens, {} output matrix", hparams.n_vocab, tied ? "tied" : "own")});
  const auto chat_template = file.find_string("tokenizer.chat_template");
  const bool has_template = chat_template.ok() && chat_template->has_value();
  table.add_row({"chat template", has_template ? "yes" : "none; use `ebb run --raw`"});
  return table.render();
}

std::string budget_table(const GgufFile& file, const Hparams& hparams) {
  const auto available = static_cast<double>(available_memory_bytes());
  const double free_bytes = 0.9 * available - static_cast<double>(file.n_tensor_bytes() + kSpareBytes);
  TextTable table({{"KV type", kLeft}, {"bytes per token"}, {"bytes per frame"}, {"whole context"}, {"fits (tokens)"}});
  for (const RowType type : {RowType::kF16, RowType::kBF16, RowType::kQ8_0, RowType::kKivi4, RowType::kF32}) {
    const FrameLayout layout = {
        .row_type = type, .block_size = kBlockSize, .head_dim_k = hparams.head_dim_k, .head_dim_v = hparams.head_dim_v};
    const std::string name(row_type_name(type));
    if (!layout.validate().ok()) {
      table.add_row({name, "-", "-", "-", "-"});
      continue;
    }
    const double block_bytes = static_cast<double>(layout.frame_bytes()) * hparams.n_layers * hparams.n_kv_heads;
    const double token_bytes = block_bytes / kBlockSize;
    const double n_blocks = std::max(0.0, free_bytes / block_bytes);
    const auto n_tokens = static_cast<std::int64_t>(n_blocks) * kBlockSize;
    table.add_row(
        {name, fmt::format("{:.0f}", token_bytes), std::to_string(layout.frame_bytes()),
         bytes_text(token_bytes * hparams.n_ctx_train),
         n_tokens >= hparams.n_ctx_train ? fmt::format("{} (all)", hparams.n_ctx_train) : std::to_string(n_tokens)});
  }
  const FrameLayout open = {.head_dim_k = hparams.head_dim_k, .head_dim_v = hparams.head_dim_v};
  const double open_bytes = static_cast<double>(open.frame_bytes()) * hparams.n_layers * hparams.n_kv_heads;
  return fmt::format(
      "{} of memory free; blocks of {} tokens, {} frames each\n\n{}\nkivi4 has the block that a session writes to in "
      "f16 "
      "besides: {} for each session\n",
      bytes_text(available), kBlockSize, hparams.n_layers * hparams.n_kv_heads, table.render(), bytes_text(open_bytes));
}

Status inspect(const std::string& given) {
  EBB_ASSIGN_OR_RETURN(const std::filesystem::path path, given_or_bundled_model(given));
  EBB_ASSIGN_OR_RETURN(const GgufFile file, GgufFile::open(path));
  std::cout << file_table(file) << std::flush;
  // What follows needs an architecture that ebb knows; the file itself was shown either way.
  EBB_ASSIGN_OR_RETURN(const Architecture* architecture, get_architecture(file));
  EBB_ASSIGN_OR_RETURN(const Hparams hparams, read_hparams(file, *architecture));
  std::cout << '\n' << model_table(file, hparams) << '\n' << budget_table(file, hparams);
  return {};
}

}  // namespace

void add_inspect(CLI::App& app, Action& action) {
  auto path = std::make_shared<std::string>();
  CLI::App* command =
      app.add_subcommand("inspect", "Show what a model file holds and what KV budget fits this machine");
  command->footer(kInspectFooter);
  command
      ->add_option("model,-m,--model", *path,
                   "GGUF file, also as -m FILE; default: the small model that comes with ebb")
      ->type_name("FILE");
  command->callback([path, &action] {
    action = [path] {
      const Status status = inspect(*path);
      return status.ok() ? ExitCode::kOk : fail(status);
    };
  });
}

}  // namespace ebb
