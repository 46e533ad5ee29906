// The conversation of this tab: sent whole with each turn, under a session id of its own, and kept over a reload.
import { streamChat } from "./api.js";
import { count, element, find, setText } from "./dom.js";

const kStoreName = "ebb.conversation";

let conversation = kept() ?? fresh();
let stopping = null;  // an AbortController while a reply comes

function fresh() {
  return { session: `page-${crypto.getRandomValues(new Uint32Array(3)).join("-")}`, messages: [], turns: [] };
}

function kept() {
  try {
    return JSON.parse(sessionStorage.getItem(kStoreName));
  } catch {
    return null;
  }
}

// A conversation too long for the browser's storage is not kept, and goes on all the same.
function keep() {
  try {
    sessionStorage.setItem(kStoreName, JSON.stringify(conversation));
  } catch {
    sessionStorage.removeItem(kStoreName);
  }
}

export const turns = () => conversation.turns;
export const isBusy = () => stopping !== null;
// The server puts more behind the client's id.
export const isOwn = (id) => typeof id === "string" && id.startsWith(conversation.session);

// A turn that was stopped has no counters; where it ends is known once the session rests.
export function closeTurn(endTokens) {
  const last = conversation.turns.at(-1);
  if (stopping || !last || last.end !== null) return;
  last.end = endTokens;
  keep();
}

// --- what is shown ---

// Follows the reply, unless the reader has scrolled away from it.
function grow(change) {
  const log = find("messages");
  const atEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 40;
  change();
  if (atEnd) log.scrollTop = log.scrollHeight;
}

function addMessage(kind, text = "") {
  const shown = element("div", { className: `message ${kind}` }, element("div", { className: "text", text }));
  find("welcome").hidden = true;
  grow(() => find("messages").append(shown));
  return shown;
}

function showThinking(shown, text, isOver) {
  let box = shown.querySelector("details");
  if (!box) {
    box = element("details", { open: true }, element("summary"), element("div", { className: "text" }));
    shown.prepend(box);
  }
  setText(box.querySelector("summary"), isOver ? "Thought" : "Thinking");
  setText(box.querySelector(".text"), text);
  if (isOver && box.dataset.over !== "1") {
    box.dataset.over = "1";
    box.open = false;
  }
}

function addNote(shown, text) {
  if (text) grow(() => shown.append(element("p", { className: "note quiet figures", text })));
}

function noteOf(turn) {
  if (!turn.prompt) return "stopped";
  const parts = [`${count(turn.total)} tokens`];
  if (turn.recalled > 0) parts.push(`${count(turn.recalled)} recalled`);
  if (turn.blocksBack > 0) parts.push(`${count(turn.blocksBack)} block${turn.blocksBack === 1 ? "" : "s"} came back`);
  if (turn.prompt.holes > 0) parts.push(`${count(turn.prompt.holes)} in holes`);
  if (turn.outRate > 0) parts.push(`${count(Math.round(turn.outRate))} tok/s`);
  return parts.join(" · ");
}

const kAway = { no_room: "no room beside what came before it", late: "its read would have taken too long", lost: "lost" };
const kVerdicts = { asks: "the question", keep: "stayed", weak: "too weak", beyond: "no place left" };

function becameOf(block) {
  const where = block.heads ? ` in ${block.heads.length} head${block.heads.length === 1 ? "" : "s"}` : "";
  // What the block beside it says begins or ends across the border between them.
  const beside = block.score === 0 ? ", beside what was found" : "";
  if (block.verdict === "recall") return (block.came ? `came back${where}` : kAway[block.away] ?? "did not come") + beside;
  return kVerdicts[block.verdict] ?? block.verdict;
}

// Which blocks were considered for a turn, by whom, and what became of them.
function addRecall(shown, looks) {
  const told = (looks ?? []).filter((look) => look.blocks?.length > 0);
  if (told.length === 0) return;
  const rows = told.flatMap((look) =>
    look.blocks.map((block) =>
      element(
        "tr",
        {},
        element("td", { text: look.selector }),
        element("td", { text: block.name }),
        element("td", { className: "figures", text: block.score.toFixed(3) }),
        element("td", { text: becameOf(block) }),
      ),
    ),
  );
  const ms = looks.reduce((sum, look) => sum + look.ms, 0);
  const box = element(
    "details",
    { className: "recall quiet" },
    element("summary", { text: `Recall: ${told.reduce((sum, look) => sum + look.chosen, 0)} chosen in ${ms.toFixed(1)} ms` }),
    element("table", {}, element("tbody", {}, ...rows)),
  );
  grow(() => shown.append(box));
}

function setBusy(busy) {
  find("stop").hidden = !busy;
  find("send").hidden = busy;
  find("messages").setAttribute("aria-busy", String(busy));
}

// --- a turn ---

function turnOf(begin, event) {
  const { prompt, evicted_blocks, recalled_blocks, recall_ms, recall } = event.ebb;
  return {
    begin,
    end: event.usage.total_tokens,
    total: event.usage.total_tokens,
    prompt,
    recalled: prompt.recalled_exact + prompt.recalled_approximate,
    // For the prompt, for its tail and while the reply was written.
    blocksBack: recalled_blocks,
    evicted: evicted_blocks,
    recallMs: recall_ms,
    looks: recall,
    inRate: event.timings?.prompt_per_second ?? 0,
    outRate: event.timings?.predicted_per_second ?? 0,
  };
}

async function readReply(mine, shown, reply) {
  let counted = null;
  for await (const event of streamChat({ messages: mine.messages, ebb: { recall: { explain: true } } }, mine.session, stopping.signal)) {
    const delta = event.choices[0]?.delta ?? {};
    reply.thinking += delta.reasoning_content ?? "";
    reply.text += delta.content ?? "";
    grow(() => {
      if (reply.thinking) showThinking(shown, reply.thinking, reply.text !== "");
      setText(shown.querySelector(":scope > .text"), reply.text);
    });
    if (event.ebb && event.usage) counted = event;
  }
  return counted;
}

// Throws what went wrong before anything came; the message is then back where it was written.
async function say(text) {
  const mine = conversation;
  const begin = mine.turns.at(-1)?.end ?? 0;
  const asked = addMessage("user", text);
  const shown = addMessage("assistant busy");
  const reply = { text: "", thinking: "" };
  mine.messages.push({ role: "user", content: text });
  stopping = new AbortController();
  setBusy(true);
  let turn = { begin, end: null, prompt: null };
  let failure = null;
  try {
    const counted = await readReply(mine, shown, reply);
    if (counted) turn = turnOf(begin, counted);
  } catch (error) {
    failure = error;
  }
  stopping = null;
  setBusy(false);
  shown.classList.remove("busy");
  if (failure && reply.text === "" && reply.thinking === "") {
    mine.messages.pop();
    asked.remove();
    shown.remove();
    if (mine === conversation) find("input").value ||= text;
    if (failure.name === "AbortError") return;
    addMessage("error", failure.message);
    throw failure;
  }
  mine.messages.push({ role: "assistant", content: reply.text });
  mine.turns.push(turn);
  addNote(shown, failure && failure.name !== "AbortError" ? failure.message : noteOf(turn));
  addRecall(shown, turn.looks);
  if (mine === conversation) keep();
}

export function begin({ changed }) {
  conversation.messages.forEach((message, i) => {
    const shown = addMessage(message.role, message.content);
    if (message.role !== "assistant") return;
    const turn = conversation.turns[(i - 1) / 2];
    addNote(shown, noteOf(turn));
    addRecall(shown, turn.looks);
  });
  const send = async () => {
    const input = find("input");
    const text = input.value.trim();
    if (text === "" || isBusy()) return;
    input.value = "";
    find("messages").querySelectorAll(".error").forEach((error) => error.remove());
    const said = say(text);
    changed();
    try {
      await said;
    } catch (error) {
      changed(error);
      return;
    }
    changed();
  };
  find("composer").addEventListener("submit", (event) => {
    event.preventDefault();
    send();
  });
  find("input").addEventListener("keydown", (event) => {
    if (event.key === "Escape") stopping?.abort();
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    send();
  });
  find("stop").addEventListener("click", () => stopping?.abort());
  find("new").addEventListener("click", () => {
    stopping?.abort();
    conversation = fresh();
    keep();
    find("messages").querySelectorAll(".message").forEach((message) => message.remove());
    find("welcome").hidden = false;
    find("input").focus();
    changed();
  });
}
