// The text of an answer as elements of the page. The text is untrusted: HTML in it is shown as text, nothing is loaded,
// and what the Markdown library makes of it passes DOMPurify, of which only a list of harmless elements is left.

import { extensions } from "./formulas.js";
import { Marked } from "./marked.esm.js";
import { words } from "./words.js";

const TAGS = ["a", "b", "blockquote", "br", "code", "del", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "input", "li",
  "ol", "p", "pre", "strong", "table", "tbody", "td", "th", "thead", "tr", "ul"];
const SAFE = {
  ALLOWED_TAGS: TAGS,
  ALLOWED_ATTR: ["href", "start", "align", "class", "type", "checked", "disabled"],
  ALLOWED_URI_REGEXP: /^(?:https?|mailto):/i,
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
  RETURN_DOM_FRAGMENT: true,
};
const REORDERING = /[\u061c\u200b-\u200f\u202a-\u202e\u2066-\u2069]/g; // signs that make code look like other code

function escaped(text) {
  return text.replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`);
}

const marked = new Marked({
  gfm: true,
  breaks: true,
  extensions,
  renderer: {
    html: ({ text }) => escaped(text),
    image: ({ href, text }) => escaped(`${text} (${href})`),
  },
});

/** Return an answer's Markdown as a fragment of the page. What the library cannot read, such as 10,000 quotes in one
 * another, is shown as it was written: otherwise one such answer would keep its chat, and the page, from opening. */
export function render(text) {
  let html = "";
  try {
    html = marked.parse(text);
  } catch {
    html = `<pre>${escaped(text)}</pre>`;
  }
  const fragment = window.DOMPurify.sanitize(html, SAFE);
  for (const link of fragment.querySelectorAll("a")) {
    link.rel = "noopener noreferrer nofollow";
    link.target = "_blank";
    link.addEventListener("click", (event) => {
      if (!confirm(words("open_link", { address: link.href }))) event.preventDefault();
    });
  }
  for (const box of fragment.querySelectorAll("input")) {
    box.type = "checkbox";
    box.disabled = true;
  }
  for (const table of fragment.querySelectorAll("table")) wrap(table, "table-box");
  for (const code of fragment.querySelectorAll("code")) finishCode(code);
  return fragment;
}

function finishCode(code) {
  const text = code.textContent;
  const plain = text.replace(REORDERING, (sign) => `[U+${sign.charCodeAt(0).toString(16).toUpperCase()}]`);
  if (plain !== text) code.textContent = plain;
  const block = code.parentElement;
  if (block?.tagName !== "PRE") return;
  const head = document.createElement("div");
  head.className = "code-head";
  const language = document.createElement("span");
  language.textContent = (/(?:^| )language-(\S+)/.exec(code.className) ?? ["", ""])[1];
  head.append(language, copyButton(words("copy_code"), () => text));
  wrap(block, "code-box").prepend(head);
  block.tabIndex = 0; // so that a keyboard scrolls it
}

function wrap(element, name) {
  const box = document.createElement("div");
  box.className = name;
  element.replaceWith(box);
  box.append(element);
  return box;
}

/** Return a button that copies a text and says so. */
export function copyButton(label, text) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = words("copy");
  button.setAttribute("aria-label", label);
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(text());
    button.textContent = words("copied");
    document.getElementById("said").textContent = words("copied");
    setTimeout(() => { button.textContent = words("copy"); }, 1500);
  });
  return button;
}

/** An answer that grows: only its last blocks are made anew, so that a long one is painted as fast as a short one. */
export class Growing {
  constructor(body) {
    this.body = body;
    this.text = "";
    this.settled = 0; // characters whose blocks can no longer change
    this.rest = []; // the elements of what follows
  }

  add(text) {
    this.text += text;
  }

  /** Show what was added since. */
  paint() {
    const end = settledEnd(this.text, this.settled);
    for (const element of this.rest) element.remove();
    if (end > this.settled) {
      this.body.append(render(this.text.slice(this.settled, end)));
      this.settled = end;
    }
    const rest = render(this.text.slice(this.settled));
    this.rest = [...rest.childNodes];
    this.body.append(rest);
  }

  /** Show the whole answer as one text, because lists and references may reach over its blocks. */
  finish() {
    this.body.replaceChildren(render(this.text));
    this.rest = [];
  }
}

/** Return where the last block begins that may still change, at a blank line outside of code. */
function settledEnd(text, from) {
  let end = from, at = from, fence = "";
  for (const line of text.slice(from).split("\n")) {
    const mark = /^ {0,3}(`{3,}|~{3,})/.exec(line)?.[1] ?? "";
    if (fence) {
      if (mark.startsWith(fence) && !line.trim().replaceAll(fence[0], "")) fence = "";
    } else if (mark) {
      fence = mark;
    } else if (!line.trim() && at > from) {
      end = Math.min(at + line.length + 1, text.length);
    }
    at += line.length + 1;
  }
  return end;
}
