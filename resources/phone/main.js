// The page: it joins with a code, shows the chats of this browser, and asks the computer that serves it.

import { allChats, deleteAllChats, deleteChat, newChat, saveChat } from "./chats.js";
import { copyButton, Growing, render } from "./markdown.js";
import { asRequest, canvasOf, hasRoom, MOST_OF_QUESTION, shrunk } from "./pictures.js";
import { ask, disconnect, isConnected, join, models, Problem } from "./node.js";
import { fillWords, words } from "./words.js";

const MODEL = "poolhouse model";
const TITLE_LETTERS = 60, NEAR_END_PX = 80, SAVE_MS = 1000;
const part = (id) => document.getElementById(id);
const log = part("log"), question = part("question"), model = part("model");

let chat = newChat();
let running = null; // the AbortController of the answer that is being written
let host = "";
let attached = []; // pictures for the next question, in base64
let shrinking = 0; // pictures that are being made small

// Joining

function showJoin(problem = "") {
  part("chat").hidden = true;
  part("join").hidden = false;
  part("join-error").hidden = !problem;
  part("join-error").textContent = problem;
  if (!part("device").value) part("device").value = deviceName();
  takeCode();
  part(part("code").value ? "join-button" : "code").focus();
}

/** Move the code from the address that the picture contains to its field, so that no history keeps it. */
function takeCode() {
  const code = /^#(\d{4,12})$/.exec(location.hash)?.[1];
  if (code) part("code").value = code.replace(/(.{4})(?=.)/g, "$1 ");
  history.replaceState(null, "", location.pathname);
}

function deviceName() {
  const agent = navigator.userAgent;
  for (const name of ["iPhone", "iPad"]) if (agent.includes(name)) return name;
  if (/Android/.test(agent)) return words(/Mobile/.test(agent) ? "phone" : "tablet");
  return words("browser");
}

part("join-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  part("join-button").disabled = true;
  try {
    await join(part("code").value, part("device").value);
    part("code").value = "";
    await start();
  } catch (problem) {
    showJoin(sentence(problem));
  } finally {
    part("join-button").disabled = false;
  }
});

// Models

async function loadModels() {
  const answer = await models();
  host = answer.host;
  const chosen = model.value || localStorage.getItem(MODEL) || "";
  model.replaceChildren(...answer.models.map(({ name, machine, vision }) => {
    const plain = machine ? name.replace(`@${machine}`, "") : name;
    const option = new Option(words("on_machine", { name: plain, machine: machine || host }), name);
    option.dataset.machine = machine || host;
    option.dataset.sees = vision ? "yes" : "";
    return option;
  }));
  if (!answer.models.length) model.append(new Option(words("no_model"), ""));
  if (answer.models.some(({ name }) => name === chosen)) model.value = chosen;
  showState();
}

model.addEventListener("change", () => {
  localStorage.setItem(MODEL, model.value);
  showState();
});

function showState() {
  const machine = model.selectedOptions[0]?.dataset.machine ?? "";
  part("empty").hidden = chat.messages.length > 0;
  part("empty-about").textContent = model.value ? words("empty_about", { machine }) : words("no_model_about");
  part("send").hidden = running !== null;
  part("stop").hidden = running === null;
  const isBlind = attached.length > 0 && !sees();
  part("add-picture").hidden = !sees() || running !== null;
  part("add-picture").disabled = attached.length + shrinking >= MOST_OF_QUESTION;
  part("picture-note").hidden = !isBlind;
  part("send").disabled = !(question.value.trim() || attached.length) || !model.value || isBlind || shrinking > 0;
}

function sees() {
  return Boolean(model.selectedOptions[0]?.dataset.sees);
}

// Pictures

part("add-picture").addEventListener("click", () => part("picture-file").click());
part("picture-file").addEventListener("change", async ({ target }) => {
  const files = [...target.files];
  target.value = ""; // so that the same one can be chosen again
  await attach(files);
});
question.addEventListener("paste", async (event) => {
  const files = [...(event.clipboardData?.files ?? [])].filter(({ type }) => type.startsWith("image/"));
  if (!files.length || !sees()) return;
  event.preventDefault();
  await attach(files);
});

async function attach(files) {
  const own = chat, taken = files.slice(0, Math.max(0, MOST_OF_QUESTION - attached.length - shrinking));
  let unread = 0, most = taken.length < files.length ? MOST_OF_QUESTION : 0; // 0: there was room for all
  shrinking += taken.length;
  showState();
  for (const file of taken) {
    const picture = await shrunk(file);
    shrinking -= 1;
    if (picture === null) unread += 1;
    else if (own === chat && hasRoom(attached, picture)) attached.push(picture);
    else if (own === chat) most = attached.length;
    showAttached();
  }
  const problem = unread ? "picture_unread" : most ? "pictures_many" : "";
  if (problem) showProblem(words(problem, { most }));
  question.focus({ preventScroll: true });
}

function showAttached() {
  part("attached").hidden = !attached.length;
  part("attached").replaceChildren(...attached.map((picture, at) => {
    const entry = document.createElement("li"), remove = document.createElement("button");
    remove.type = "button";
    remove.className = "icon";
    remove.textContent = "×";
    remove.setAttribute("aria-label", words("remove_picture", { number: at + 1 }));
    remove.addEventListener("click", () => {
      attached.splice(at, 1);
      showAttached();
      question.focus({ preventScroll: true });
    });
    entry.append(canvasOf(picture, words("picture", { number: at + 1 })), remove);
    return entry;
  }));
  showState();
}

// Messages

function addMessage(message, isWritten = false) {
  const box = document.createElement("article");
  box.className = `message ${message.role === "user" ? "question" : "answer"}`;
  box.setAttribute("aria-label", words(message.role === "user" ? "you" : "answer"));
  const body = document.createElement("div");
  body.className = "body";
  if (message.role === "user") {
    body.textContent = message.content;
    for (const [at, picture] of (message.pictures ?? []).entries()) {
      box.append(canvasOf(picture, words("picture", { number: at + 1 })));
    }
  } else {
    if (message.thought) thoughtsIn(box).textContent = message.thought;
    body.append(render(message.content));
  }
  box.append(body);
  if (message.role !== "user" && !isWritten) finishMessage(box, message);
  log.append(box);
  return box;
}

function thoughtsIn(box) {
  let thoughts = box.querySelector(".thoughts div");
  if (!thoughts) {
    const details = document.createElement("details");
    details.className = "thoughts";
    const summary = document.createElement("summary");
    summary.textContent = words("thoughts");
    thoughts = document.createElement("div");
    details.append(summary, thoughts);
    box.prepend(details);
  }
  return thoughts;
}

function finishMessage(box, message) {
  if (message.stopped) {
    const note = document.createElement("p");
    note.className = "note";
    note.textContent = words("stopped");
    box.append(note);
  }
  const actions = document.createElement("div");
  actions.className = "actions";
  actions.append(copyButton(words("copy"), () => message.content));
  const again = document.createElement("button");
  again.type = "button";
  again.className = "regenerate";
  again.textContent = words("regenerate");
  again.addEventListener("click", answerAgain);
  actions.append(again);
  box.append(actions);
  showOneRegenerate();
}

/** Only the last answer can be asked for again. */
function showOneRegenerate() {
  const all = [...log.querySelectorAll(".regenerate")];
  for (const button of all) button.hidden = running !== null || button.closest(".message") !== log.lastElementChild;
}

function showChat(next, staysOpen = false) {
  stop();
  if (next !== chat) attached = [];
  chat = next;
  showAttached();
  log.replaceChildren();
  hideProblem();
  for (const message of chat.messages) addMessage(message);
  showOneRegenerate();
  showState();
  part("messages").scrollTop = part("messages").scrollHeight;
  if (staysOpen) return;
  closeDrawer();
  if (matchMedia("(pointer: fine)").matches) question.focus({ preventScroll: true }); // a phone's keyboard covers much
}

// Asking

async function send() {
  const text = question.value.trim();
  if (!(text || attached.length) || running || shrinking || !model.value || (attached.length && !sees())) return;
  question.value = "";
  fitQuestion();
  chat.messages.push({ role: "user", content: text, ...(attached.length ? { pictures: attached } : {}) });
  chat.title ||= text.replace(/\s+/g, " ").slice(0, TITLE_LETTERS) || words("picture", { number: 1 });
  attached = [];
  showAttached();
  addMessage(chat.messages.at(-1));
  await answer();
}

async function answerAgain() {
  if (running) return;
  const asked = chat.messages.filter(({ role }) => role === "user").at(-1);
  if (asked?.pictures?.length && !sees()) {
    showProblem(words("model_blind"));
    scrollToEnd(true);
    return;
  }
  if (chat.messages.at(-1)?.role === "assistant") {
    chat.messages.pop();
    log.lastElementChild.remove();
  }
  await answer();
}

async function answer() {
  hideProblem();
  const own = chat, stops = (running = new AbortController());
  const asked = asRequest(own.messages, sees());
  const message = { role: "assistant", content: "", thought: "", stopped: true };
  own.messages.push(message);
  const box = addMessage(message, true), body = box.querySelector(".body"), growing = new Growing(body);
  body.setAttribute("aria-live", "polite"); // read out once it is complete
  body.setAttribute("aria-busy", "true");
  box.classList.add("waiting");
  part("said").textContent = words("answering");
  showState();
  showOneRegenerate();
  scrollToEnd(true);
  await saveChat(own);
  let frame = 0, saved = Date.now(), problem = null;
  const paint = () => {
    frame = 0;
    const follows = isNearEnd();
    growing.paint();
    if (message.thought) thoughtsIn(box).textContent = message.thought;
    scrollToEnd(follows);
  };
  try {
    for await (const piece of ask(model.value, asked, stops.signal)) {
      message.content += piece.text ?? "";
      message.thought += piece.thought ?? "";
      growing.add(piece.text ?? "");
      frame ||= requestAnimationFrame(paint);
      if (Date.now() - saved > SAVE_MS) {
        saved = Date.now();
        saveChat(own).catch(() => {});
      }
    }
    message.stopped = false;
  } catch (error) {
    if (error.name !== "AbortError") problem = error;
  }
  cancelAnimationFrame(frame);
  if (running === stops) running = null;
  const follows = isNearEnd();
  growing.finish();
  if (message.thought) thoughtsIn(box).textContent = message.thought;
  box.classList.remove("waiting");
  body.setAttribute("aria-busy", "false");
  if (problem) message.stopped = Boolean(message.content);
  if (!message.content && !message.thought) {
    own.messages.splice(own.messages.indexOf(message), 1);
    box.remove();
  } else {
    finishMessage(box, message);
  }
  await saveChat(own);
  await listChats();
  if (own === chat) {
    part("said").textContent = words(message.stopped ? "stopped" : "answered");
    showState();
    showOneRegenerate();
    if (problem) await tell(problem);
    scrollToEnd(follows);
  }
}

function stop() {
  running?.abort();
  running = null;
}

function isNearEnd() {
  const view = part("messages");
  return view.scrollHeight - view.scrollTop - view.clientHeight < NEAR_END_PX;
}

function scrollToEnd(follows) {
  if (follows) part("messages").scrollTop = part("messages").scrollHeight;
}

// Errors

function sentence(problem) {
  if (!(problem instanceof Problem)) {
    console.error(problem);
    return words("failed");
  }
  return problem.text || words(problem.key);
}

async function tell(problem) {
  if (problem.key === "removed") {
    disconnect();
    takeCode();
    showJoin(part("code").value ? "" : words("removed")); // who has just scanned a code needs no other
    return;
  }
  showProblem(sentence(problem));
  if (problem.key === "model_gone") await loadModels().catch(() => {});
  scrollToEnd(true);
}

function showProblem(text) {
  part("problem").hidden = false;
  part("problem-text").textContent = text;
  const last = chat.messages.at(-1);
  part("again").hidden = last?.role !== "user" && !last?.stopped && Boolean(model.value); // there is nothing to repeat
}

function hideProblem() {
  part("problem").hidden = true;
}

part("again").addEventListener("click", async () => {
  hideProblem();
  await loadModels().catch(tell);
  if (!model.value || !isConnected()) return;
  const last = chat.messages.at(-1);
  if (last?.role === "user" || last?.stopped) await answerAgain();
});

// The list of chats

async function listChats() {
  const rows = (await allChats()).map((kept) => {
    const row = document.createElement("li");
    if (kept.id === chat.id) row.className = "current";
    const open = document.createElement("button");
    open.type = "button";
    open.className = "title";
    open.textContent = kept.title;
    if (kept.id === chat.id) open.setAttribute("aria-current", "true");
    open.addEventListener("click", async () => {
      showChat(kept.id === chat.id ? chat : kept);
      await listChats();
    });
    const remove = document.createElement("button");
    remove.type = "button";
    remove.className = "icon";
    remove.textContent = "×";
    remove.setAttribute("aria-label", words("delete_chat", { title: kept.title }));
    remove.addEventListener("click", async () => {
      if (!confirm(words("delete_asks"))) return;
      if (kept.id === chat.id) showChat(newChat(), true);
      await deleteChat(kept.id);
      await listChats();
    });
    row.append(open, remove);
    return row;
  });
  part("chat-list").replaceChildren(...rows);
}

function openDrawer() {
  part("drawer").classList.add("open");
  part("veil").hidden = false;
  part("talk").inert = true;
  part("open-drawer").setAttribute("aria-expanded", "true");
  part("close-drawer").focus();
}

function closeDrawer() {
  if (!part("drawer").classList.contains("open")) return;
  part("drawer").classList.remove("open");
  part("veil").hidden = true;
  part("talk").inert = false;
  part("open-drawer").setAttribute("aria-expanded", "false");
  part("open-drawer").focus();
}

async function begin() {
  showChat(newChat());
  await listChats();
}

part("open-drawer").addEventListener("click", openDrawer);
part("close-drawer").addEventListener("click", closeDrawer);
part("veil").addEventListener("click", closeDrawer);
part("new-chat").addEventListener("click", begin);
part("new-in-drawer").addEventListener("click", begin);
part("forget").addEventListener("click", async () => {
  if (!confirm(words("forget_asks"))) return;
  stop();
  disconnect();
  await deleteAllChats();
  chat = newChat();
  log.replaceChildren();
  closeDrawer();
  showJoin();
});

// Keys and typing

part("composer").addEventListener("submit", (event) => {
  event.preventDefault();
  send().catch(tell);
});
part("stop").addEventListener("click", stop);
question.addEventListener("input", () => {
  fitQuestion();
  showState();
});
question.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    send().catch(tell);
  }
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  if (part("drawer").classList.contains("open")) closeDrawer();
  else stop();
});
document.addEventListener("visibilitychange", () => {
  if (document.visibilityState === "visible" && isConnected() && !running && !part("chat").hidden) {
    refresh().catch(tell);
  }
});
window.addEventListener("hashchange", () => {
  if (!isConnected()) showJoin();
});

/** Make the field as high as its text; the style limits it. */
function fitQuestion() {
  question.rows = Math.min(8, question.value.split("\n").length);
}

/** Show what has changed while this page was hidden: the models, and this chat if it went on in another tab. */
async function refresh() {
  const kept = (await allChats()).find(({ id }) => id === chat.id);
  if (kept?.changed > chat.changed) showChat(kept, true);
  await listChats();
  await loadModels();
}

async function start() {
  part("join").hidden = true;
  part("chat").hidden = false;
  takeCode(); // this device may have been removed, and then needs it
  const [last] = await allChats();
  showChat(last ?? chat);
  await listChats();
  await loadModels();
  part("code").value = "";
}

fillWords();
if (isConnected()) start().catch(tell);
else showJoin();
