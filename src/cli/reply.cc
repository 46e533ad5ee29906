#include "cli/reply.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "base/text_table.h"
#include "cli/interrupt.h"
#include "cli/terminal.h"
#include "engine/meaning_thread.h"

namespace ebb {
namespace {

void show(Generation& generation) {
  const std::string text = generation.take_text();
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

std::string speed_text(std::int32_t n_tokens, double ms) {
  if (n_tokens == 0 || ms <= 0.0) return "none";
  return fmt::format("{} tokens in {:.2f} s, {:.1f} tok/s", n_tokens, ms / 1000.0, 1000.0 * n_tokens / ms);
}

std::string mb(std::size_t n_bytes) { return bytes_text(static_cast<double>(n_bytes)); }

}  // namespace

Status stream_reply(Engine& engine, Generation& generation, InterruptListener& interrupt) {
  Generation* const generations[] = {&generation};
  Status status;
  while (!generation.finished() && status.ok()) {
    status = engine.step(generations);
    show(generation);
  }
  if (interrupt.take() || status.code() == Code::kCancelled) {
    generation.finish(FinishReason::kCancelled);
    status = {};
  } else if (!status.ok()) {
    generation.finish(FinishReason::kCancelled);
  } else if (!generation.status().ok() && generation.stats().n_generated == 0) {
    status = generation.status();
  }
  show(generation);
  if (!generation.status().ok() && status.ok()) {
    fmt::print(stderr, "\nebb: the reply ends here: {}\n", generation.status().message());
  }
  return status;
}

std::string budget_use_text(const Generation& generation, const Session& session) {
  const auto use_text = [&](const BudgetUse& use) {
    const BlockShape& shape = session.shape();
    return fmt::format("peak {} of {} tokens", FrameBudget{use.peak_frames}.n_tokens(shape),
                       use.budget.n_tokens(shape));
  };
  const TurnStats& turn = generation.turn_stats();
  return fmt::format("prompt: {}; reply: {}", use_text(turn.prompt), use_text(turn.reply));
}

std::string reply_stats_text(const Generation& generation, const Session& session) {
  const GenerationStats& stats = generation.stats();
  TextTable table({{"", TextTable::Align::kLeft}, {"", TextTable::Align::kLeft}});
  const std::int32_t n_adopted = generation.turn_stats().n_adopted;
  const std::int32_t n_again = generation.turn_stats().n_computed_again;
  table.add_row(
      {"prompt", speed_text(stats.n_prompt - n_adopted, stats.prefill_ms) +
                     (n_adopted > 0 ? fmt::format(", {} tokens from the cold store", n_adopted) : "") +
                     (n_again > 0 ? fmt::format(", {} of them a second time, to look with them", n_again) : "")});
  // The first token comes with the prompt: its time is the prompt's.
  table.add_row({"reply", fmt::format("{} tokens, {} behind the first ({})", stats.n_generated,
                                      speed_text(std::max(0, stats.n_generated - 1), stats.decode_ms),
                                      generation.reason() ? finish_reason_name(*generation.reason()) : "unfinished")});
  table.add_row({"KV budget", budget_use_text(generation, session)});
  return table.render();
}

std::string session_stats_text(Engine& engine, const Session& session) {
  const SessionStats& stats = session.stats();
  const EngineMemory memory = engine.memory();
  TextTable table({{"", TextTable::Align::kLeft}, {"", TextTable::Align::kLeft}});
  table.add_row({"session", fmt::format("{} tokens in {} blocks of {}", session.end().value(), session.n_blocks(),
                                        session.block_size())});
  table.add_row({"KV", fmt::format("{} of {} tokens hot, in {} blocks; peak {}", session.n_hot_tokens(),
                                   session.budget_tokens(), session.n_hot_blocks(), session.peak_hot_tokens())});
  table.add_row(
      {"blocks", fmt::format("{} evicted, {} saved, {} recalled, {} recalls missed, {} lost and computed again",
                             stats.n_evicted_blocks, stats.n_saved_blocks, stats.n_recalled_blocks,
                             stats.n_missed_recalls, stats.n_recomputed_blocks)});
  if (stats.n_moved_blocks > 0) {
    table.add_row({"anchors", fmt::format("{} rebases, {} blocks moved: positions are approximate", stats.n_rebases,
                                          stats.n_moved_blocks)});
  }
  if (const std::string loss = move_loss_text(engine, session); !loss.empty()) table.add_row({"", loss});
  if (const ColdStore* store = engine.store(); store != nullptr) {
    std::string title = "cold store";
    for (const TierStats& tier : store->stats().tiers) {
      table.add_row(
          {std::exchange(title, ""), fmt::format("{}: {} in {} records", tier.name, mb(tier.bytes), tier.n_records)});
      for (const std::string& said : {tier.last_error, tier.notice}) {
        if (!said.empty()) table.add_row({"", said});
      }
    }
  }
  if (const MeaningThread* meanings = engine.meanings(); meanings != nullptr) {
    const MeaningStats embedded = meanings->stats();
    table.add_row(
        {"embedding",
         fmt::format("{} blocks, {} sentences in {:.2f} s; {} blocks from the cold store, {} without room, {} "
                     "wait; {} sentences cut",
                     embedded.n_blocks, embedded.n_texts, embedded.ms / 1000.0, embedded.n_read,
                     embedded.n_without_room, embedded.n_waiting, embedded.n_cut)});
  }
  const std::size_t hot_bytes = engine.layout().frame_bytes() * static_cast<std::size_t>(engine.pool().peak_hot());
  const std::string open =
      memory.open_reserved > 0
          ? fmt::format(", open blocks {} of {}", mb(engine.peak_open_bytes()), mb(memory.open_reserved))
          : std::string();
  table.add_row({"memory", fmt::format("weights {} mapped and {} copied, frames {} touched of {}{}, computing {}",
                                       mb(memory.weights.mapped), mb(memory.weights.copied), mb(hot_bytes),
                                       mb(memory.frames_reserved), open, mb(memory.compute))});
  table.add_row({"computing", fmt::format("{} threads", engine.n_threads())});
  return table.render();
}

std::string move_loss_text(const Engine& engine, const Session& session) {
  const std::int64_t n_blocks = session.stats().n_requantised_blocks;
  if (n_blocks == 0) return {};
  return fmt::format(
      "{} times a block was moved to other positions, and its keys quantised again: with {} that is lossy, with f16 "
      "less",
      n_blocks, row_type_name(engine.layout().row_type));
}

}  // namespace ebb
