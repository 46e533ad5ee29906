// The map: the blocks of one session in order, each a cell whose look says where its K and V are.
import { count, element, find, setText } from "./dom.js";

// Cells are large up to this many, and small beyond that many.
const kFew = 160;
const kMany = 600;
const kWeakest = 0.36;  // of 1: how strong the cell that leaves first is drawn

let cells = [];  // { shown, block, turn }
let marked = -1;     // the cell that is pointed at
let isHeld = false;  // it stays marked, and may be acted on, wherever the pointer goes

// Where a block stands among the hot ones by the policy's score: 0 leaves first, 1 stays longest. Scores of different
// policies have different scales, so that only their order is shown.
function strengths(blocks) {
  const scores = blocks.map((block) => block.score).filter(Number.isFinite).sort((a, b) => a - b);
  const rank = new Map(scores.map((score, i) => [score, i]));
  return blocks.map(({ score }) => (scores.length < 2 || !rank.has(score) ? 1 : rank.get(score) / (scores.length - 1)));
}

// Which turn the page has counted; in other sessions as the names say: "turn3#0", "reply3#1".
function turnOf(block, turns) {
  if (turns) {
    const i = turns.findIndex((turn) => turn.end === null || block.begin < turn.end);
    return i < 0 ? turns.length + 1 : i + 1;
  }
  const number = /(\d+)#\d+$/.exec(block.name);
  return number ? Number(number[1]) : 1;
}

function stateText(block) {
  if (block.state === "partly") return `hot in ${count(block.hot_heads)} heads`;
  return block.state === "missing" ? "hole" : block.state;
}

function describe(block) {
  return `${block.name}, positions ${count(block.begin)} to ${count(block.end)}, ${stateText(block)}${block.pinned ? ", pinned" : ""}`;
}

// What makes sense for the block that is held.
function showActs() {
  const block = isHeld ? cells[marked]?.block : undefined;
  find("block-acts").hidden = !block;
  if (!block) return;
  const isWhole = block.state === "hot" || block.state === "clean";
  const isSeen = isWhole || block.state === "partly";
  const fits = { pin: !block.pinned, unpin: block.pinned, evict: isSeen && !block.pinned, recall: !isWhole };
  for (const button of find("block-acts").children) button.hidden = !fits[button.value];
}

function showDetail() {
  showActs();
  const detail = find("block-detail");
  const block = cells[marked]?.block;
  detail.classList.toggle("quiet", !block);
  if (!block) return setText(detail, cells.length > 0 ? "Point at a block, or walk with the arrow keys; a click or Enter holds it." : "Nothing computed yet.");
  const score = Number.isFinite(block.score) ? ` · score ${Number(block.score.toPrecision(4))}` : "";
  detail.replaceChildren(
    element("b", { text: block.name }),
    ` · positions ${count(block.begin)}–${count(block.end)} · ${stateText(block)}` +
      `${block.pinned ? ", pinned" : ""}${score} · turn ${cells[marked].turn}`,
  );
}

function mark(index, hold = false) {
  cells[marked]?.shown.classList.remove("marked", "held");
  marked = index;
  isHeld = hold;
  const map = find("map");
  const cell = cells[index];
  cell?.shown.classList.add("marked");
  cell?.shown.classList.toggle("held", isHeld);
  if (cell) map.setAttribute("aria-activedescendant", cell.shown.id);
  else map.removeAttribute("aria-activedescendant");
  showDetail();
}

function makeCell(index) {
  const shown = element("i", { id: `block-${index}`, role: "option" });
  shown.dataset.index = index;
  return { shown, block: null, turn: 0 };
}

// Where turns begin changes seldom; then all cells are laid out anew, and only their looks change otherwise.
function layOut() {
  const laid = [];
  cells.forEach((cell, i) => {
    if (i === 0 || cell.turn !== cells[i - 1].turn) {
      laid.push(element("span", { className: "turn", text: cell.turn, role: "presentation" }));
    }
    laid.push(cell.shown);
  });
  find("map").replaceChildren(...laid);
}

export function showMap(blocks, turns) {
  const strength = strengths(blocks);
  let isLaidOut = cells.length === blocks.length;
  if (marked >= blocks.length) mark(-1);
  cells.length = Math.min(cells.length, blocks.length);
  blocks.forEach((block, i) => {
    const cell = (cells[i] ??= makeCell(i));
    const turn = turnOf(block, turns);
    if (turn !== cell.turn) isLaidOut = false;
    cell.turn = turn;
    cell.block = block;
    const mine = i !== marked ? "" : isHeld ? " marked held" : " marked";
    const look = `block ${block.state}${block.pinned ? " pinned" : ""}${mine}`;
    if (cell.shown.className !== look) cell.shown.className = look;
    cell.shown.style.setProperty("--strength", (kWeakest + (1 - kWeakest) * strength[i]).toFixed(2));
    cell.shown.setAttribute("aria-label", describe(block));
  });
  find("map").classList.toggle("few", blocks.length <= kFew);
  find("map").classList.toggle("many", blocks.length > kMany);
  if (!isLaidOut) layOut();
  showDetail();
}

// Dims all but the blocks of a turn; null: none.
export function showTurn(turn) {
  find("map").classList.toggle("dim", turn !== null);
  for (const cell of cells) cell.shown.classList.toggle("of-turn", cell.turn === turn);
}

// The cell above or below, which may be anywhere in its own row.
function neighbour(index, direction) {
  const from = cells[index].shown.getBoundingClientRect();
  let best = index;
  let least = Infinity;
  for (let i = index + direction; cells[i]; i += direction) {
    const to = cells[i].shown.getBoundingClientRect();
    const rows = Math.abs(to.top - from.top);
    if (rows < 1) continue;
    if (rows > from.height * 1.9) break;
    if (Math.abs(to.left - from.left) < least) [best, least] = [i, Math.abs(to.left - from.left)];
  }
  return best;
}

// `act` is called with the name of the block that is held and what to do with it.
export function beginMap(act) {
  const map = find("map");
  const cellAt = (event) => Number(event.target.closest(".block")?.dataset.index ?? -1);
  map.addEventListener("pointerover", (event) => {
    if (!isHeld && cellAt(event) >= 0) mark(cellAt(event));
  });
  map.addEventListener("click", (event) => {
    const index = cellAt(event);
    if (index >= 0) mark(index, !(isHeld && index === marked));
  });
  find("block-acts").addEventListener("click", (event) => {
    if (event.target.value) act(cells[marked].block.name, event.target.value);
  });
  map.addEventListener("keydown", (event) => {
    const last = cells.length - 1;
    const at = Math.max(0, marked);
    const moves = {
      ArrowRight: () => Math.min(last, marked + 1),
      ArrowLeft: () => Math.max(0, at - 1),
      ArrowDown: () => neighbour(at, 1),
      ArrowUp: () => neighbour(at, -1),
      Home: () => 0,
      End: () => last,
    };
    if (event.key === "Escape" || (event.key === "Enter" && marked >= 0)) return mark(marked, event.key === "Enter");
    if (last < 0 || !moves[event.key]) return;
    event.preventDefault();
    mark(moves[event.key]());
    cells[marked].shown.scrollIntoView({ block: "nearest" });
  });
}
