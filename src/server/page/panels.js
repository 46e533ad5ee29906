// Budget, tiers, throughput and turns.
import { metric } from "./api.js";
import { bytes, count, element, find, setText } from "./dom.js";
import { showTurn } from "./map.js";

// The chart shows the last minute until it has more to show.
const kWindowsMs = [60_000, 300_000];

// --- budget and tiers ---

function showMeter(meter, share, figures, note) {
  meter.querySelector("i").style.width = `${100 * Math.min(1, share)}%`;
  setText(meter.querySelector("span"), figures);
  setText(meter.querySelector("p"), note);
}

// What is not named here is called as the server calls it.
const kTierTitles = { ram: "RAM", disk: "Disk" };

function tierMeter(name) {
  const there = document.getElementById(`tier-${name}`);
  if (there) return there;
  const made = element(
    "div",
    { className: "meter", id: `tier-${name}` },
    element("h2", { text: kTierTitles[name] ?? name }),
    element("span", { className: "figures" }),
    element("div", { className: "bar" }, element("i")),
    element("p", { className: "quiet figures" }),
  );
  find("meters").append(made);
  return made;
}

function showTier(tier) {
  const troubles = [
    [tier.misses, "missed"],
    [tier.refused, "refused"],
    [tier.write_errors, "not written"],
  ].filter(([n]) => n > 0);
  const note = [`${count(tier.records)} blocks`, ...troubles.map(([n, what]) => `${count(n)} ${what}`)];
  if (!tier.writing) note.push("writing is off");
  showMeter(tierMeter(tier.name), tier.bytes / tier.max_bytes, `${bytes(tier.bytes)} of ${bytes(tier.max_bytes)}`, note.join(" · "));
}

export function showMeters(metrics, store) {
  const hot = metric(metrics, "ebb:kv_hot_tokens");
  const budget = metric(metrics, "ebb:kv_budget_tokens");
  const atWork = metric(metrics, "ebb:requests_processing");
  const waiting = metric(metrics, "ebb:requests_deferred");
  const sessions = metric(metrics, "ebb:sessions");
  showMeter(
    find("budget"),
    hot / budget,
    `${count(hot)} of ${count(budget)}`,
    `${sessions} ${sessions === 1 ? "session" : "sessions"} · ${atWork} at work${waiting > 0 ? ` · ${waiting} waiting` : ""}`,
  );
  store.tiers.forEach(showTier);
}

// --- throughput ---

let samples = [];  // { at, generated }

function rates() {
  const list = [];
  for (let i = 1; i < samples.length; ++i) {
    const seconds = (samples[i].at - samples[i - 1].at) / 1000;
    list.push({ at: samples[i].at, rate: Math.max(0, samples[i].generated - samples[i - 1].generated) / seconds });
  }
  return list;
}

export function showRate(metrics, now) {
  samples.push({ at: now, generated: metric(metrics, "ebb:tokens_predicted_total") });
  samples = samples.filter((sample) => now - sample.at <= kWindowsMs.at(-1));
  const windowMs = kWindowsMs.find((ms) => now - samples[0].at <= ms);
  const list = rates();
  if (list.length === 0) return;
  const peak = Math.max(...list.map((point) => point.rate));
  const x = (at) => (300 * (1 - (now - at) / windowMs)).toFixed(2);
  const y = (rate) => (58 - (54 * rate) / Math.max(peak, 1)).toFixed(2);
  const line = list.map((point) => `${x(point.at)},${y(point.rate)}`).join(" L");
  const chart = find("rate");
  chart.querySelector(".line").setAttribute("d", `M${line}`);
  chart.querySelector(".area").setAttribute("d", `M${x(list[0].at)},60 L${line} L${x(list.at(-1).at)},60 Z`);
  setText(find("rate-begin"), `${windowMs / 60_000} min ago`);
  setText(find("rate-summary"), `now ${count(Math.round(list.at(-1).rate))} · peak ${count(Math.round(peak))}`);
}

// --- turns ---

const kParts = [
  ["hot", (prompt) => prompt.hot + prompt.shared],
  ["partly", (prompt) => prompt.partly_hot],
  ["recalled", (prompt) => prompt.recalled_exact + prompt.recalled_approximate],
  ["recomputed", (prompt) => prompt.recomputed],
  ["new", (prompt) => prompt.new],
  ["holes", (prompt) => prompt.holes],
];

function partsBar(prompt) {
  const bar = element("div", { className: "parts" });
  for (const [name, value] of kParts) {
    if (value(prompt) === 0) continue;
    const part = element("span", { className: `part ${name}`, title: `${count(value(prompt))} ${name}` });
    part.style.flexGrow = value(prompt);
    bar.append(part);
  }
  return bar;
}

// Where there are few milliseconds, the tenths say more.
function numberCell(n) {
  const rounded = n < 10 ? Math.round(n * 10) / 10 : Math.round(n);
  return element("td", { text: count(rounded), className: rounded === 0 ? "zero" : "" });
}

function turnRow(turn, number) {
  const row = element("tr", { tabIndex: 0 }, element("td", { text: number }));
  if (turn.prompt) {
    row.append(element("td", { className: "wide" }, partsBar(turn.prompt)));
    const figures = [...kParts.map(([, value]) => value(turn.prompt)), turn.evicted, turn.recallMs, turn.inRate, turn.outRate];
    row.append(...figures.map(numberCell));
  } else {
    row.append(element("td", { text: "stopped", colSpan: 11, className: "zero wide" }));
  }
  for (const [event, of] of [["pointerenter", number], ["pointerleave", null], ["focus", number], ["blur", null]]) {
    row.addEventListener(event, () => showTurn(of));
  }
  return row;
}

let shownTurns = null;
let nShown = 0;

export function showTurns(turns) {
  const body = find("turns");
  if (turns !== shownTurns) {
    body.replaceChildren();
    nShown = 0;
  }
  shownTurns = turns;
  for (; nShown < turns.length; ++nShown) body.prepend(turnRow(turns[nShown], nShown + 1));
  find("no-turns").hidden = turns.length > 0;
  body.closest(".scroll").hidden = turns.length === 0;
}
