// The texts of the page in the browser's language: English, or German where that is preferred.

const WORDS = {
  en: {
    join_title: "Connect this device",
    join_about: "Enter the code that Poolhouse is showing on the computer (Settings > Phones).",
    code: "Code (8 digits)",
    device_name: "Name of this device",
    connect: "Connect",
    tablet: "Tablet", phone: "Phone", browser: "Browser",
    chats: "Chats", open_chats: "Show chats", close_chats: "Close chats", conversation: "Conversation",
    new_chat: "New chat",
    kept_here: "Chats are kept only in this browser. The computers that answer do not store them.",
    forget: "Disconnect this device",
    forget_asks: "Disconnect this device and delete all its chats? You will need a new code to connect again.",
    model: "Model",
    on_machine: "{name} · on {machine}",
    no_model: "No model is loaded",
    no_model_about: "Load a model in Poolhouse on the computer. It will then appear here.",
    empty_title: "Ask anything",
    empty_about: "Questions go to {machine} over your own network.",
    question: "Ask a question",
    send: "Send", stop: "Stop the answer", copy: "Copy", copied: "Copied", copy_code: "Copy the code",
    regenerate: "Answer again", try_again: "Try again",
    delete_chat: "Delete the chat {title}", delete_asks: "Delete this chat? This cannot be undone.",
    add_picture: "Add a picture", pictures: "Pictures for the question", picture: "Picture {number}",
    remove_picture: "Remove picture {number}",
    model_blind: "This model can't look at pictures. Choose one that can, or remove the pictures.",
    picture_unread: "This picture could not be read. Try a JPEG, PNG or WebP file of at most 40 MB.",
    pictures_many: "A question has room for only {most} pictures.",
    you: "You", answer: "Answer", thoughts: "Thoughts",
    answering: "The answer is being written.", answered: "The answer is complete.", stopped: "Stopped.",
    open_link: "Open this address? It leads outside Poolhouse:\n\n{address}",
    code_wrong: "This code is wrong, was already used, or has expired. Get a new one on the computer.",
    removed: "This device is no longer connected. Get a new code on the computer (Settings > Phones).",
    phones_off: "Poolhouse no longer lets phones chat. Turn this on again on the computer (Settings > Phones).",
    unreachable: "The computer is not responding. Check that it is on and that this device is on the same network.",
    model_gone: "This model is no longer loaded. Choose another one above, then press Try again.",
    busy: "Many questions are already waiting. Try again in a moment.",
    broken: "The answer was cut off because a computer stopped. Press Try again.",
    too_long: "This chat is too long for the model. Start a new one.",
    failed: "This question could not be answered. Press Try again.",
  },
  de: {
    join_title: "Dieses Gerät verbinden",
    join_about: "Tippen Sie den Code ein, den Poolhouse am Computer zeigt: Einstellungen > Handys.",
    code: "Code (8 Ziffern)",
    device_name: "Name dieses Geräts",
    connect: "Verbinden",
    tablet: "Tablet", phone: "Handy", browser: "Browser",
    chats: "Chats", open_chats: "Chats zeigen", close_chats: "Chats schließen", conversation: "Gespräch",
    new_chat: "Neuer Chat",
    kept_here: "Chats bleiben nur in diesem Browser. Die Computer, die antworten, speichern sie nicht.",
    forget: "Dieses Gerät trennen",
    forget_asks: "Dieses Gerät trennen und alle seine Chats löschen? Zum Verbinden ist dann ein neuer Code nötig.",
    model: "Modell",
    on_machine: "{name} · auf {machine}",
    no_model: "Kein Modell geladen",
    no_model_about: "Laden Sie am Computer in Poolhouse ein Modell. Dann erscheint es hier.",
    empty_title: "Fragen Sie etwas",
    empty_about: "Fragen gehen über Ihr eigenes Netz an {machine}.",
    question: "Frage stellen",
    send: "Senden", stop: "Antwort anhalten", copy: "Kopieren", copied: "Kopiert", copy_code: "Code kopieren",
    regenerate: "Neu antworten", try_again: "Noch einmal",
    delete_chat: "Chat {title} löschen", delete_asks: "Diesen Chat löschen? Das lässt sich nicht rückgängig machen.",
    add_picture: "Bild hinzufügen", pictures: "Bilder zur Frage", picture: "Bild {number}",
    remove_picture: "Bild {number} entfernen",
    model_blind: "Dieses Modell kann keine Bilder ansehen. Wählen Sie ein anderes, oder entfernen Sie die Bilder.",
    picture_unread: "Dieses Bild ließ sich nicht lesen. Versuchen Sie JPEG, PNG oder WebP mit höchstens 40 MB.",
    pictures_many: "Eine Frage hat Platz für {most} Bilder.",
    you: "Sie", answer: "Antwort", thoughts: "Gedanken",
    answering: "Die Antwort wird geschrieben.", answered: "Die Antwort ist fertig.", stopped: "Angehalten.",
    open_link: "Diese Adresse öffnen? Sie führt aus Poolhouse hinaus:\n\n{address}",
    code_wrong: "Dieser Code ist falsch, schon benutzt oder abgelaufen. Lassen Sie sich am Computer einen neuen geben.",
    removed: "Dieses Gerät ist nicht mehr verbunden. Lassen Sie sich am Computer einen neuen Code geben: "
      + "Einstellungen > Handys.",
    phones_off: "Poolhouse lässt Handys nicht mehr chatten. Schalten Sie es am Computer wieder ein: "
      + "Einstellungen > Handys.",
    unreachable: "Der Computer antwortet nicht. Ist er an, und ist dieses Gerät im selben Netz?",
    model_gone: "Dieses Modell ist nicht mehr geladen. Wählen Sie oben ein anderes und drücken Sie Noch einmal.",
    busy: "Es warten schon viele Fragen. Versuchen Sie es gleich noch einmal.",
    broken: "Die Antwort brach ab, weil ein Computer ausfiel. Drücken Sie Noch einmal.",
    too_long: "Dieser Chat ist für das Modell zu lang. Beginnen Sie einen neuen.",
    failed: "Das ließ sich nicht beantworten. Drücken Sie Noch einmal.",
  },
};

export const LANGUAGE = (navigator.language || "en").toLowerCase().startsWith("de") ? "de" : "en";

/** Return a text, with `{fact}` replaced by the facts. */
export function words(key, facts = {}) {
  return WORDS[LANGUAGE][key].replace(/\{(\w+)\}/g, (whole, fact) => facts[fact] ?? whole);
}

/** Fill in every text and accessible name of the page. */
export function fillWords() {
  document.documentElement.lang = LANGUAGE;
  for (const part of document.querySelectorAll("[data-text]")) part.textContent = words(part.dataset.text);
  for (const part of document.querySelectorAll("[data-label]")) {
    part.setAttribute("aria-label", words(part.dataset.label));
    if (part.tagName === "BUTTON") part.title = words(part.dataset.label);
  }
  for (const part of document.querySelectorAll("[data-placeholder]")) part.placeholder = words(part.dataset.placeholder);
}
