// Elements of the page. What comes from models, clients or the server becomes text and never markup.

export const find = (id) => document.getElementById(id);

export function element(tag, { text, ...properties } = {}, ...children) {
  const made = document.createElement(tag);
  Object.assign(made, properties);
  if (text !== undefined) made.textContent = text;
  made.append(...children);
  return made;
}

// Writes only what differs, so that selections and screen readers are left alone.
export function setText(target, text) {
  if (target.textContent !== text) target.textContent = text;
}

export const count = (n) => Number(n).toLocaleString("en").replaceAll(",", "\u202f");

export function bytes(n) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  for (; n >= 1024 && unit + 1 < units.length; ++unit) n /= 1024;
  return `${n < 10 && unit > 0 ? n.toFixed(1) : Math.round(n)} ${units[unit]}`;
}
