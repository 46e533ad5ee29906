// The page: asks the server once a second how things stand, while somebody looks, and shows it.
import { ApiError, getJson, getText, hasKey, postJson, setKey } from "./api.js";
import * as chat from "./chat.js";
import { count, element, find, setText } from "./dom.js";
import { beginMap, showMap } from "./map.js";
import { showMeters, showRate, showTurns } from "./panels.js";

const kPauseMs = 1000;

let timer = null;
let isAsking = false;
let askedAt = -kPauseMs;
let wasKeyAsked = false;
let chosen = "";  // a session's id; "": this page's own
let shown = null;  // the session whose blocks are on the map

// --- sessions ---

// An id that the server made up says nothing: how long the session is tells more.
function nameOf(session) {
  const isMadeUp = /^auto-[0-9a-f]{16}$/.test(session.id);
  const id = isMadeUp ? session.id.slice(0, 9) : session.id;
  const where = session.busy ? "at work" : session.parked ? "parked" : `${count(session.hot_tokens)} hot`;
  return `${id.length > 28 ? `${id.slice(0, 27)}…` : id} · ${count(session.tokens)} tokens · ${where}`;
}

function pickSession(sessions) {
  return sessions.find((session) => (chosen === "" ? chat.isOwn(session.id) : session.id === chosen));
}

// In the order of the server's list: those at work first, then the last used.
function showSessions(sessions) {
  const named = sessions.filter((session) => typeof session.id === "string" && !chat.isOwn(session.id));
  const select = find("session");
  const wanted = [["", "this conversation"], ...named.map((session) => [session.id, nameOf(session)])];
  if (!wanted.some(([id]) => id === chosen)) chosen = "";
  const isSame = wanted.length === select.options.length && wanted.every(([id], i) => select.options[i].value === id);
  if (!isSame) select.replaceChildren(...wanted.map(([value, text]) => element("option", { value, text })));
  wanted.forEach(([, text], i) => setText(select.options[i], text));
  select.value = chosen;
  select.hidden = named.length === 0;
}

function summaryOf(session, blocks) {
  if (!session) return "";
  const where = session.parked ? "parked" : `${count(session.hot_tokens)} hot`;
  return `${where} · ${count(session.tokens)} tokens · ${count(blocks.length)} blocks · by ${session.kv_eviction}`;
}

// --- asking ---

async function blocksOf(session) {
  if (!session) return [];
  try {
    return (await getJson(`v1/sessions/${encodeURIComponent(session.id)}/blocks`)).data;
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return [];  // it went in the meantime
    throw error;
  }
}

async function refresh() {
  const [sessions, store, metrics] = await Promise.all([getJson("v1/sessions"), getJson("v1/store"), getText("metrics")]);
  const session = pickSession(sessions.data);
  const blocks = await blocksOf(session);
  shown = session ?? null;
  const isOwn = session !== undefined && chat.isOwn(session.id);
  if (isOwn && !session.busy) chat.closeTurn(session.tokens);
  showSessions(sessions.data);
  showMap(blocks, isOwn ? chat.turns() : null);
  setText(find("map-summary"), summaryOf(session, blocks));
  showMeters(metrics, store);
  showRate(metrics, performance.now());
  showTurns(chat.turns());
}

// Pins, evicts or recalls; the map shows what came of it with its next look.
async function actOnBlock(name, act) {
  try {
    await postJson(`v1/sessions/${encodeURIComponent(shown.id)}/blocks/${act}`, { names: [name] });
  } catch (error) {
    setText(find("map-note"), error.message);
    return;
  }
  setText(find("map-note"), "");
  tick();
}

function showLink(look, text) {
  find("link").className = `quiet ${look}`;
  setText(find("link"), text);
}

function askForKey() {
  wasKeyAsked = true;
  find("key-button").hidden = false;
  if (!find("key-dialog").open) find("key-dialog").showModal();
}

async function tick() {
  clearTimeout(timer);
  if (document.hidden || isAsking) return;
  const early = askedAt + kPauseMs - performance.now();
  if (early > 0) {
    timer = setTimeout(tick, early);
    return;
  }
  isAsking = true;
  try {
    await refresh();
    showLink("live", "live");
  } catch (error) {
    const isRefused = error instanceof ApiError && error.status === 401;
    showLink("lost", isRefused ? "key needed" : "no answer from the server");
    // Once; then the button does it.
    if (isRefused && !wasKeyAsked) askForKey();
    find("key-button").hidden = !isRefused && !hasKey();
  }
  isAsking = false;
  askedAt = performance.now();
  timer = setTimeout(tick, kPauseMs);
}

async function showModel() {
  try {
    const model = (await getJson("v1/models")).data[0];
    setText(find("model"), model.id);
    document.title = `ebb · ${model.id}`;
  } catch {
    // tick() says that there is no answer.
  }
}

beginMap(actOnBlock);
chat.begin({
  changed: (error) => {
    showTurns(chat.turns());
    if (error instanceof ApiError && error.status === 401) askForKey();
  },
});
find("session").addEventListener("change", (event) => (chosen = event.target.value));
find("key-button").addEventListener("click", askForKey);
find("key-dialog").addEventListener("close", () => {
  const key = find("key").value.trim();
  find("key").value = "";
  if (key === "") return;
  setKey(key);
  find("key-button").hidden = false;
});
document.addEventListener("visibilitychange", tick);
showModel();
tick();
find("input").focus();
