// LaTeX in answers: it is shown as it was written, whole and with all its backslashes, in the style of code. The rules
// are those of the window (app/gui/chat/message/math_rules.py): "costs $5 and $6" is no formula.

const MOST = 4000; // characters of a formula
const ENDS = { "$$": "$$", "\\[": "\\]", "\\(": "\\)", $: "$" };
const INSIDE = {
  "$$": /(?:[^$\\]|\\[^]|\$(?!\$))*/y,
  "\\[": /(?:[^\\]|\\[^\]])*/y,
  "\\(": /(?:[^\\]|\\[^)])*/y,
  $: /(?:[^$\\]|\\[^])*/y,
};
const KEPT = /^\\[\\()[\]{},;:%&=?^'"@/!]/; // matters in LaTeX and rarely protects anything from Markdown

/** Return the formula at the beginning of a text as it was written, or nothing. */
function formulaAt(text) {
  const opening = text.slice(0, 2) in ENDS ? text.slice(0, 2) : text[0];
  const end = ENDS[opening];
  if (!end || text.indexOf(end, opening.length) < 0) return "";
  const inside = INSIDE[opening];
  const near = text.slice(0, MOST);
  inside.lastIndex = opening.length;
  const found = inside.exec(near)?.[0] ?? "";
  const at = opening.length + found.length;
  if (!near.startsWith(end, at) || !found.trim()) return "";
  if (opening === "$" && !isMath(found, text[at + 1] ?? "")) return "";
  return text.slice(0, at + end.length);
}

function isMath(inside, after) {
  if (/^\s|\s$/.test(inside) || /^[\p{N}{]/u.test(after)) return false;
  return !/\p{L}/u.test(after) || /[\p{L}\p{N})\]}]$/u.test(inside);
}

function escaped(text) {
  return text.replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`);
}

const inline = {
  name: "formula",
  level: "inline",
  start: (text) => text.search(/[$\\]/),
  tokenizer(text, before) {
    if (/^\$(?!\$)/.test(text) && /[\p{L}\p{N}]$/u.test(before.at(-1)?.raw ?? "")) return undefined; // US$5
    const raw = formulaAt(text);
    return raw ? { type: "formula", raw } : undefined;
  },
  renderer: ({ raw }) => `<code class="formula">${escaped(raw)}</code>`,
};

const backslash = {
  name: "backslash",
  level: "inline",
  start: (text) => text.indexOf("\\"),
  tokenizer(text) {
    const raw = KEPT.exec(text)?.[0];
    return raw ? { type: "backslash", raw } : undefined;
  },
  renderer: ({ raw }) => escaped(raw),
};

const block = {
  name: "formulaLines",
  level: "block",
  start: (text) => text.match(/^(?:\$\$|\\\[)/m)?.index,
  tokenizer(text) {
    if (!/^(?:\$\$|\\\[)/.test(text)) return undefined;
    const raw = formulaAt(text);
    const rest = /^[ \t]*(?:\n+|$)/.exec(text.slice(raw.length));
    if (!raw || !rest || /\n[ \t]*\n/.test(raw)) return undefined;
    return { type: "formulaLines", raw: raw + rest[0], written: raw };
  },
  renderer: ({ written }) => `<p class="formula"><code>${escaped(written)}</code></p>`,
};

// The library tries the last one first.
export const extensions = [backslash, inline, block];
