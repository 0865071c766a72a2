// Pictures for a question: made small here, without where and when they were taken, and shown on canvases.

const MOST_SIDE = 1536, QUALITY = 0.85, MOST_FILE_BYTES = 40 << 20;
export const MOST_OF_QUESTION = 8, MOST_OF_CHAT = 16, MOST_CHARACTERS = 6 << 20; // the computer takes 8 MiB with the text
const HEAD = "data:image/jpeg;base64,";

/** Return a small JPEG copy of a picture as text in base64, or null if this is none that the browser can read. */
export async function shrunk(file) {
  if (!file.type.startsWith("image/") || file.size > MOST_FILE_BYTES) return null;
  let bitmap = null;
  try {
    bitmap = await createImageBitmap(file, { imageOrientation: "from-image" });
    const share = Math.min(1, MOST_SIDE / Math.max(bitmap.width, bitmap.height));
    const canvas = document.createElement("canvas");
    canvas.width = Math.max(1, Math.round(bitmap.width * share));
    canvas.height = Math.max(1, Math.round(bitmap.height * share));
    const paper = canvas.getContext("2d");
    paper.fillStyle = "#ffffff"; // below what is transparent
    paper.fillRect(0, 0, canvas.width, canvas.height);
    paper.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
    const address = canvas.toDataURL("image/jpeg", QUALITY);
    return address.startsWith(HEAD) ? address.slice(HEAD.length) : null;
  } catch {
    return null;
  } finally {
    bitmap?.close();
  }
}

/** Return a canvas that shows a picture. The policy of the page lets no address of a picture be loaded. */
export function canvasOf(picture, name) {
  const canvas = document.createElement("canvas");
  canvas.className = "picture";
  canvas.width = canvas.height = 1;
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", name);
  const bytes = Uint8Array.from(atob(picture), (letter) => letter.charCodeAt(0));
  createImageBitmap(new Blob([bytes], { type: "image/jpeg" })).then((bitmap) => {
    canvas.width = bitmap.width;
    canvas.height = bitmap.height;
    canvas.getContext("2d").drawImage(bitmap, 0, 0);
    bitmap.close();
  }).catch(() => {}); // a damaged one stays empty, and its name is there
  return canvas;
}

/** Return whether a question with these pictures can take one more. */
export function hasRoom(pictures, picture) {
  return [...pictures, picture].reduce((sum, { length }) => sum + length, 0) <= MOST_CHARACTERS;
}

/** Return the messages as a request has them, without the oldest pictures if there are too many. */
export function asRequest(messages, sees) {
  let most = sees ? MOST_OF_CHAT : 0, room = MOST_CHARACTERS;
  const asked = [];
  for (const { role, content, pictures = [] } of [...messages].reverse()) {
    const kept = [];
    for (const picture of [...pictures].reverse()) {
      if (most < 1 || picture.length > room) {
        most = 0; // older ones are left out too
        continue;
      }
      most -= 1;
      room -= picture.length;
      kept.unshift({ type: "image_url", image_url: { url: HEAD + picture } });
    }
    if (kept.length) asked.unshift({ role, content: [...kept, { type: "text", text: content }] });
    else if (content) asked.unshift({ role, content });
  }
  return asked;
}
