// Calls of the computer that serves this page. Errors are of the class Problem, whose `key` names a text.

const TOKEN = "poolhouse token";

/** An error that can be said in one sentence: `key` of words.js, or `text` that the computer wrote. */
export class Problem extends Error {
  constructor(key, text = "") {
    super(text || key);
    this.key = key;
    this.text = text;
  }
}

export function isConnected() {
  return Boolean(localStorage.getItem(TOKEN));
}

export function disconnect() {
  localStorage.removeItem(TOKEN);
}

/** Exchange the one-time code for a token of this device. */
export async function join(code, name) {
  const answer = await call("join", { method: "POST", body: JSON.stringify({ code, name }) });
  if (answer.status === 403) throw new Problem("code_wrong");
  if (!answer.ok) throw await problemOf(answer);
  localStorage.setItem(TOKEN, (await answer.json()).token);
}

/** Return the models that can answer now, and the name of the computer. */
export async function models() {
  const answer = await call("v1/models");
  if (!answer.ok) throw await problemOf(answer);
  return answer.json();
}

/** Yield the pieces of an answer, `{text}` or `{thought}`. Aborting `signal` stops it on the computer, too. */
export async function* ask(model, messages, signal) {
  const body = JSON.stringify({ model, messages, stream: true });
  const answer = await call("v1/chat/completions", { method: "POST", body, signal });
  if (!answer.ok) throw await problemOf(answer);
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read().catch(async (error) => {
      throw error.name === "AbortError" ? error : await brokenBy({});
    });
    if (done) throw await brokenBy({}); // a whole answer says so before it ends
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const line of lines) {
      if (!line.startsWith("data: ")) continue;
      if (line === "data: [DONE]") return;
      const event = JSON.parse(line.slice(6));
      if (event.error) throw await brokenBy(event.error);
      const delta = event.choices?.[0]?.delta ?? {};
      if (delta.reasoning_content) yield { thought: delta.reasoning_content };
      if (delta.content) yield { text: delta.content };
    }
  }
}

async function call(path, options = {}) {
  const headers = { "Content-Type": "application/json" };
  const token = localStorage.getItem(TOKEN);
  if (token) headers.Authorization = `Bearer ${token}`;
  try {
    return await fetch(path, { ...options, headers, cache: "no-store", credentials: "omit", redirect: "error" });
  } catch (error) {
    throw error.name === "AbortError" ? error : new Problem("unreachable");
  }
}

async function problemOf(answer) {
  const { error = {} } = await answer.json().catch(() => ({}));
  if (error.code === "context_length_exceeded") return new Problem("too_long");
  const keys = { 401: "removed", 404: "phones_off", 429: "busy", 503: "broken" };
  if (error.code === "model_not_found") return new Problem("model_gone");
  return keys[answer.status] ? new Problem(keys[answer.status]) : new Problem("failed", error.message);
}

/** An answer that broke off: whether this device was removed meanwhile is asked, since the answer cannot say it. */
async function brokenBy(error) {
  if (error.code === "context_length_exceeded") return new Problem("too_long");
  try {
    await models();
  } catch (problem) {
    return problem;
  }
  return error.code === "rate_limit_exceeded" ? new Problem("busy") : new Problem("broken");
}
