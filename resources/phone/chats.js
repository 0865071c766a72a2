// The chats, kept in this browser's IndexedDB and nowhere else.

const NAME = "poolhouse", STORE = "chats";

function opened() {
  return new Promise((resolve, reject) => {
    const request = indexedDB.open(NAME, 1);
    request.onupgradeneeded = () => request.result.createObjectStore(STORE, { keyPath: "id" });
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

let base = null;
const deleted = new Set(); // IDs

async function work(mode, how) {
  base ??= opened();
  const transaction = (await base).transaction(STORE, mode);
  return new Promise((resolve, reject) => {
    const request = how(transaction.objectStore(STORE));
    transaction.oncomplete = () => resolve(request.result);
    transaction.onerror = transaction.onabort = () => reject(transaction.error);
  });
}

/** Return a chat without messages. */
export function newChat() {
  const random = crypto.getRandomValues(new Uint32Array(4));
  return { id: Array.from(random, (part) => part.toString(36)).join(""), title: "", changed: 0, messages: [] };
}

/** Return all chats, the newest first. */
export async function allChats() {
  const chats = await work("readonly", (store) => store.getAll());
  return chats.sort((one, other) => other.changed - one.changed);
}

/** Save a chat, unless it was deleted while its answer was being written. */
export async function saveChat(chat) {
  if (deleted.has(chat.id)) return;
  chat.changed = Date.now();
  await work("readwrite", (store) => store.put(structuredClone(chat)));
}

export async function deleteChat(id) {
  deleted.add(id);
  await work("readwrite", (store) => store.delete(id));
}

export async function deleteAllChats() {
  for (const { id } of await allChats()) deleted.add(id);
  await work("readwrite", (store) => store.clear());
}
