<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="de" sourcelanguage="en">
<context>
    <name>About</name>
    <message>
        <source>About</source>
        <translation>Über</translation>
    </message>
    <message>
        <source>Built on</source>
        <translation>Baut auf</translation>
    </message>
    <message>
        <source>Drawn for Poolhouse.</source>
        <translation>Für Poolhouse gezeichnet.</translation>
    </message>
    <message>
        <source>Icons</source>
        <translation>Symbole</translation>
    </message>
    <message>
        <source>This library comes without a license text.</source>
        <translation>Sie bringt keinen eigenen Lizenztext mit.</translation>
    </message>
    <message>
        <source>Libraries and their licenses</source>
        <translation>Bibliotheken und ihre Lizenzen</translation>
    </message>
    <message>
        <source>Libraries licenses</source>
        <translation>Bibliotheken Lizenzen</translation>
    </message>
    <message>
        <source>Library</source>
        <translation>Bibliothek</translation>
    </message>
    <message>
        <source>License</source>
        <translation>Lizenz</translation>
    </message>
    <message>
        <source>Show</source>
        <translation>Anzeigen</translation>
    </message>
    <message>
        <source>Show license</source>
        <translation>Lizenz anzeigen</translation>
    </message>
    <message>
        <source>Show license text</source>
        <translation>Lizenztext anzeigen</translation>
    </message>
    <message>
        <source>Show the license for Qt</source>
        <translation>Die Lizenz von Qt anzeigen</translation>
    </message>
    <message>
        <source>Show the license for the icons</source>
        <translation>Die Lizenz der Symbole anzeigen</translation>
    </message>
    <message>
        <source>Qt is used unchanged under the LGPL, version 3. Its libraries are separate files next to the app, and you can replace them with your own. Source: code.qt.io</source>
        <translation>Unverändert verwendet unter der LGPL, Version 3. Die Bibliotheken liegen als eigene Dateien neben der App und dürfen durch Ihre eigenen ersetzt werden. Quelltext: code.qt.io</translation>
    </message>
    <message>
        <source>Version</source>
        <translation>Version</translation>
    </message>
    <message>
        <source>Version {version}. Free software: Apache License 2.0.</source>
        <translation>Version {version}. Freie Software: Apache License 2.0.</translation>
    </message>
</context>
<context>
    <name>AboutView</name>
    <message>
        <source>This file belongs to {app}. Poolhouse uses it in place and never moves or changes it.</source>
        <translation>Gehört zu {app}. Es wird dort genutzt, wo es liegt, und nie verschoben oder verändert.</translation>
    </message>
    <message>
        <source>Find a model that fits</source>
        <translation>Ein passendes suchen</translation>
    </message>
    <message>
        <source>Model page</source>
        <translation>Seite des Modells</translation>
    </message>
    <message>
        <source>This is a base model. It completes text and doesn&apos;t chat.</source>
        <translation>Das ist ein Basismodell. Es setzt Texte fort und chattet nicht.</translation>
    </message>
    <message>
        <source>This small built-in model is for learning the app. For other questions, use a larger one.</source>
        <translation>Dieses Modell ist eingebaut, klein und zum Kennenlernen der App gedacht. Nehmen Sie für echte Fragen ein größeres.</translation>
    </message>
    <message>
        <source>came with Poolhouse</source>
        <translation>mit Poolhouse gekommen</translation>
    </message>
    <message>
        <source>from {app}</source>
        <translation>aus {app}</translation>
    </message>
    <message>
        <source>not in the catalog</source>
        <translation>nicht im Katalog</translation>
    </message>
    <message>
        <source>runs on one machine only</source>
        <translation>läuft ganz auf einem Gerät</translation>
    </message>
    <message>
        <source>{count} layers</source>
        <translation>{count} Schichten</translation>
    </message>
</context>
<context>
    <name>ActivityPage</name>
    <message>
        <source>Activity</source>
        <translation>Aktivität</translation>
    </message>
    <message>
        <source>Benchmark</source>
        <translation>Leistungstest</translation>
    </message>
    <message>
        <source>Log</source>
        <translation>Protokoll</translation>
    </message>
    <message>
        <source>Overview</source>
        <translation>Übersicht</translation>
    </message>
    <message>
        <source>Sections of this page</source>
        <translation>Teile dieser Seite</translation>
    </message>
</context>
<context>
    <name>AddMachineDialog</name>
    <message>
        <source>Add a machine</source>
        <translation>Gerät hinzufügen</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>Abbrechen</translation>
    </message>
    <message>
        <source>Close</source>
        <translation>Schließen</translation>
    </message>
    <message>
        <source>Done</source>
        <translation>Fertig</translation>
    </message>
    <message>
        <source>New code</source>
        <translation>Neuer Code</translation>
    </message>
    <message>
        <source>Open Poolhouse on the machine you want to add, click “Join a household” and enter this code.</source>
        <translation>Starten Sie Poolhouse auf dem Gerät, das dazukommen soll, drücken Sie dort „Einem Haushalt beitreten“ und geben Sie diesen Code ein.</translation>
    </message>
    <message>
        <source>The background service was restarted, so this code no longer works.</source>
        <translation>Der Hintergrunddienst wurde neu gestartet: Ein früherer Code öffnet nichts mehr.</translation>
    </message>
</context>
<context>
    <name>AddPhoneDialog</name>
    <message>
        <source>Add a phone or tablet</source>
        <translation>Handy oder Tablet hinzufügen</translation>
    </message>
    <message>
        <source>Close</source>
        <translation>Schließen</translation>
    </message>
    <message>
        <source>New code</source>
        <translation>Neuer Code</translation>
    </message>
    <message>
        <source>Connect the device to the same network, then point its camera at this code.</source>
        <translation>Richten Sie am Gerät, im selben Netz, die Kamera auf dieses Bild.</translation>
    </message>
    <message>
        <source>Or open {address} on the device and enter this code:</source>
        <translation>Oder öffnen Sie dort {address} und tippen Sie:</translation>
    </message>
    <message>
        <source>QR code with the address and the code</source>
        <translation>QR-Code mit der Adresse und dem Code</translation>
    </message>
    <message>
        <source>The browser shows a warning the first time because a home computer has no public certificate. The connection is still encrypted. Continue if the browser shows this SHA-256 fingerprint for the certificate:</source>
        <translation>Der Browser warnt beim ersten Mal, weil ein Computer zu Hause kein öffentliches Zertifikat hat. Die Verbindung ist trotzdem verschlüsselt. Fahren Sie fort, wenn der Browser diesen SHA-256-Fingerabdruck des Zertifikats zeigt:</translation>
    </message>
    <message>
        <source>This code has expired, or a wrong code was entered too many times.</source>
        <translation>Dieser Code ist abgelaufen oder wurde zu oft falsch getippt.</translation>
    </message>
    <message>
        <source>Valid for {time} and for one device.</source>
        <translation>Gilt noch {time} und für ein Gerät.</translation>
    </message>
    <message>
        <source>{name} is connected.</source>
        <translation>{name} ist verbunden.</translation>
    </message>
</context>
<context>
    <name>AddedEngineCard</name>
    <message>
        <source>Changing the engine…</source>
        <translation>Das Rechenprogramm wird gewechselt…</translation>
    </message>
    <message>
        <source>Choose the folder with PyTorch or MLX</source>
        <translation>Ordner mit PyTorch oder MLX wählen</translation>
    </message>
    <message>
        <source>Engine</source>
        <translation>Rechenprogramm</translation>
    </message>
    <message>
        <source>Folder: {folder}</source>
        <translation>Ordner: {folder}</translation>
    </message>
    <message>
        <source>It comes from the public index of Python packages, and only the files that this version of Poolhouse knows are accepted. It is tested first. Then it computes the models that it can, and llama.cpp the others.</source>
        <translation>Es kommt aus dem öffentlichen Verzeichnis der Python-Pakete, und nur die Dateien, die diese Version von Poolhouse kennt, werden angenommen. Zuerst wird es getestet. Dann rechnet es die Modelle, die es kann, und llama.cpp die anderen.</translation>
    </message>
    <message>
        <source>Testing the engine…</source>
        <translation>Das Rechenprogramm wird getestet…</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>Abbrechen</translation>
    </message>
    <message>
        <source>Cancel the installation of the engine</source>
        <translation>Installation des Rechenprogramms abbrechen</translation>
    </message>
    <message>
        <source>Delete</source>
        <translation>Löschen</translation>
    </message>
    <message>
        <source>Delete {engine}</source>
        <translation>{engine} löschen</translation>
    </message>
    <message>
        <source>Delete…</source>
        <translation>Löschen…</translation>
    </message>
    <message>
        <source>Downloading {engine}: {done} of {total}</source>
        <translation>{engine} wird heruntergeladen: {done} von {total}</translation>
    </message>
    <message>
        <source>Faster: {families}</source>
        <translation>Schneller: {families}</translation>
    </message>
    <message>
        <source>Install and use</source>
        <translation>Installieren und nutzen</translation>
    </message>
    <message>
        <source>Install {engine}</source>
        <translation>{engine} installieren</translation>
    </message>
    <message>
        <source>Installation of an engine</source>
        <translation>Installation eines Rechenprogramms</translation>
    </message>
    <message>
        <source>Install…</source>
        <translation>Installieren…</translation>
    </message>
    <message>
        <source>No model has been measured with it yet. That happens when a model is planned.</source>
        <translation>Noch wurde kein Modell damit gemessen. Das geschieht, wenn ein Modell geplant wird.</translation>
    </message>
    <message>
        <source>Poolhouse comes with llama.cpp. PyTorch or MLX can compute instead.</source>
        <translation>Poolhouse bringt llama.cpp mit. Stattdessen kann PyTorch oder MLX rechnen.</translation>
    </message>
    <message>
        <source>Slower: {families}</source>
        <translation>Langsamer: {families}</translation>
    </message>
    <message>
        <source>The installation was canceled.</source>
        <translation>Die Installation wurde abgebrochen.</translation>
    </message>
    <message>
        <source>This frees {size}. llama.cpp then computes what {engine} would have computed.</source>
        <translation>Das macht {size} frei. Danach rechnet llama.cpp, was {engine} gerechnet hätte.</translation>
    </message>
    <message>
        <source>Unpacking {engine}…</source>
        <translation>{engine} wird entpackt…</translation>
    </message>
    <message>
        <source>Use always</source>
        <translation>Immer nutzen</translation>
    </message>
    <message>
        <source>Use where faster</source>
        <translation>Nutzen, wo schneller</translation>
    </message>
    <message>
        <source>Use {engine} always</source>
        <translation>{engine} immer nutzen</translation>
    </message>
    <message>
        <source>Use {engine} where it is faster</source>
        <translation>{engine} nutzen, wo es schneller ist</translation>
    </message>
    <message>
        <source>Use from a folder…</source>
        <translation>Aus einem Ordner nutzen…</translation>
    </message>
    <message>
        <source>Use llama.cpp</source>
        <translation>llama.cpp nutzen</translation>
    </message>
    <message>
        <source>llama.cpp computes on this computer.</source>
        <translation>Auf diesem Computer rechnet llama.cpp.</translation>
    </message>
    <message>
        <source>{engine} computes on this computer. llama.cpp computes the models that it cannot.</source>
        <translation>Auf diesem Computer rechnet {engine}. Modelle, die es nicht kann, rechnet llama.cpp.</translation>
    </message>
    <message>
        <source>{engine} computes the models for which it is faster than llama.cpp on this computer.</source>
        <translation>{engine} rechnet auf diesem Computer die Modelle, bei denen es schneller ist als llama.cpp.</translation>
    </message>
    <message>
        <source>{engine} is a download of {size}, and takes {disk} on the disk.</source>
        <translation>{engine} wird heruntergeladen ({size}) und braucht {disk} auf der Festplatte.</translation>
    </message>
    <message>
        <source>{engine} is being tested. Until then, llama.cpp computes.</source>
        <translation>{engine} wird getestet. Bis dahin rechnet llama.cpp.</translation>
    </message>
    <message>
        <source>{engine} is installed and takes {size}.</source>
        <translation>{engine} ist installiert und belegt {size}.</translation>
    </message>
    <message>
        <source>{engine} is installed.</source>
        <translation>{engine} ist installiert.</translation>
    </message>
    <message>
        <source>{engine} is not installed (a download of {size}).</source>
        <translation>{engine} ist nicht installiert (Download: {size}).</translation>
    </message>
    <message>
        <source>{engine} is not used, so llama.cpp computes.</source>
        <translation>{engine} wird nicht genutzt; es rechnet llama.cpp.</translation>
    </message>
</context>
<context>
    <name>AddressForm</name>
    <message>
        <source>Address of {machine}</source>
        <translation>Adresse von {machine}</translation>
    </message>
    <message>
        <source>Connect</source>
        <translation>Verbinden</translation>
    </message>
    <message>
        <source>Connecting…</source>
        <translation>Wird verbunden…</translation>
    </message>
    <message>
        <source>Connected to {machine}. Its address was saved.</source>
        <translation>{machine} wurde erreicht, und die Adresse ist gemerkt.</translation>
    </message>
</context>
<context>
    <name>Advanced</name>
    <message>
        <source>Advanced</source>
        <translation>Erweitert</translation>
    </message>
    <message>
        <source>Background service</source>
        <translation>Hintergrunddienst</translation>
    </message>
    <message>
        <source>Copy</source>
        <translation>Kopieren</translation>
    </message>
    <message>
        <source>Copy the log</source>
        <translation>Protokoll kopieren</translation>
    </message>
    <message>
        <source>Data folder</source>
        <translation>Datenordner</translation>
    </message>
    <message>
        <source>Diagnostics for support</source>
        <translation>Diagnose für jemanden, der Ihnen hilft</translation>
    </message>
    <message>
        <source>Find out…</source>
        <translation>Herausfinden…</translation>
    </message>
    <message>
        <source>Help</source>
        <translation>Hilfe</translation>
    </message>
    <message>
        <source>Logs and settings in one file, without names, addresses or chats.</source>
        <translation>Protokolle und Einstellungen in einer Datei, ohne Namen, Adressen und Chats.</translation>
    </message>
    <message>
        <source>The log never contains text from your chats.</source>
        <translation>Aus Ihren Chats wird dort kein Text geschrieben.</translation>
    </message>
    <message>
        <source>Open</source>
        <translation>Öffnen</translation>
    </message>
    <message>
        <source>Open the data folder</source>
        <translation>Datenordner öffnen</translation>
    </message>
    <message>
        <source>Refresh</source>
        <translation>Neu einlesen</translation>
    </message>
    <message>
        <source>Restart</source>
        <translation>Neu starten</translation>
    </message>
    <message>
        <source>Save diagnostics…</source>
        <translation>Diagnose speichern…</translation>
    </message>
    <message>
        <source>Start</source>
        <translation>Starten</translation>
    </message>
    <message>
        <source>Tests this computer and its network to find the most likely cause of a problem. You can also press F1.</source>
        <translation>Prüft diesen Computer und sein Netzwerk und nennt die wahrscheinlichste Ursache. Auch mit der Taste F1.</translation>
    </message>
    <message>
        <source>Last lines of the log</source>
        <translation>Die letzten Zeilen seines Protokolls</translation>
    </message>
    <message>
        <source>Running version {version} (process {pid}).</source>
        <translation>Version {version}, Prozess {pid}. Läuft.</translation>
    </message>
    <message>
        <source>Why can&apos;t Poolhouse find my other computer?</source>
        <translation>Warum wird mein anderer Computer nicht gefunden?</translation>
    </message>
</context>
<context>
    <name>Answer</name>
    <message numerus="yes">
        <source>%n token(s)</source>
        <translation>
            <numerusform>%Ln Token</numerusform>
            <numerusform>%Ln Token</numerusform>
        </translation>
    </message>
    <message>
        <source>Checking the file</source>
        <translation>Prüft die Datei</translation>
    </message>
    <message>
        <source>Speculative decoding: {tokens} tokens guessed, {right} correct</source>
        <translation>Vorausberechnet: {tokens} geratene Token, davon {right} richtig</translation>
    </message>
    <message>
        <source>Copying</source>
        <translation>Kopiert</translation>
    </message>
    <message>
        <source>Extracting layers</source>
        <translation>Entnimmt Schichten</translation>
    </message>
    <message>
        <source>Fetching layers</source>
        <translation>Holt Schichten</translation>
    </message>
    <message>
        <source>First token: forecast {time}</source>
        <translation>Erstes Token: Prognose {time}</translation>
    </message>
    <message>
        <source>Guide</source>
        <translation>Guide</translation>
    </message>
    <message>
        <source>Loading</source>
        <translation>Lädt</translation>
    </message>
    <message>
        <source>Loading layers</source>
        <translation>Lädt Schichten</translation>
    </message>
    <message>
        <source>Measuring the machines</source>
        <translation>Misst die Geräte</translation>
    </message>
    <message>
        <source>Measuring {machine}</source>
        <translation>Misst {machine}</translation>
    </message>
    <message>
        <source>Next in line</source>
        <translation>Als Nächstes an der Reihe</translation>
    </message>
    <message>
        <source>Starting layers</source>
        <translation>Startet Schichten</translation>
    </message>
    <message>
        <source>Planning</source>
        <translation>Plant die Aufteilung</translation>
    </message>
    <message>
        <source>Preparing layers</source>
        <translation>Bereitet Schichten vor</translation>
    </message>
    <message>
        <source>Prompt: {tokens} tokens ({reused} loaded from disk in {time})</source>
        <translation>Eingabe: {tokens} Token, davon {reused} in {time} von der Festplatte geladen</translation>
    </message>
    <message>
        <source>Prompt: {tokens} tokens ({reused} reused)</source>
        <translation>Eingabe: {tokens} Token, davon {reused} schon bekannt</translation>
    </message>
    <message>
        <source>Reading the prompt: {rate}</source>
        <translation>Lesen der Eingabe: {rate}</translation>
    </message>
    <message>
        <source>Reading the question…</source>
        <translation>Liest die Frage…</translation>
    </message>
    <message>
        <source>Sending layers</source>
        <translation>Sendet Schichten</translation>
    </message>
    <message>
        <source>Moved the layers and continued after {time}</source>
        <translation>Die Schichten wurden verschoben; die Antwort ging nach {time} weiter</translation>
    </message>
    <message>
        <source>Waited in line: {time}</source>
        <translation>Wartete, bis sie an der Reihe war: {time}</translation>
    </message>
    <message>
        <source>Waiting</source>
        <translation>Wartet</translation>
    </message>
    <message numerus="yes">
        <source>Waiting in line: %n answer(s) ahead</source>
        <translation>
            <numerusform>Wartet, bis sie an der Reihe ist: %Ln Antwort davor</numerusform>
            <numerusform>Wartet, bis sie an der Reihe ist: %Ln Antworten davor</numerusform>
        </translation>
    </message>
    <message>
        <source>Waiting for the background service…</source>
        <translation>Wartet auf den Hintergrunddienst…</translation>
    </message>
    <message>
        <source>first token {time}</source>
        <translation>erstes Token {time}</translation>
    </message>
    <message>
        <source>{machine} left, and the answer continued after {time}</source>
        <translation>{machine} ging; die Antwort ging nach {time} weiter</translation>
    </message>
    <message>
        <source>{machine} left, and {others} took over after {time}</source>
        <translation>{machine} ging; die Antwort ging mit {others} nach {time} weiter</translation>
    </message>
    <message>
        <source>Lost {machine} and continued after {time}</source>
        <translation>{machine} ging verloren; die Antwort ging nach {time} weiter</translation>
    </message>
    <message>
        <source>Correct guesses: {looked_up} from earlier text, {drafted} from the draft model</source>
        <translation>Richtig geraten: {looked_up} aus früherem Text, {drafted} vom Entwurfsmodell</translation>
    </message>
    <message>
        <source>Guessed at a time, on average: {depth} tokens</source>
        <translation>Im Mittel auf einmal geraten: {depth} Token</translation>
    </message>
    <message>
        <source>Lost {machine} and continued with {others} after {time}</source>
        <translation>{machine} ging verloren; die Antwort ging mit {others} nach {time} weiter</translation>
    </message>
    <message>
        <source>Speed compared with plain decoding: {times} times</source>
        <translation>Tempo gegenüber einfachem Erzeugen: {times}-fach</translation>
    </message>
    <message>
        <source>Starting the tool servers…</source>
        <translation>Werkzeug-Server werden gestartet…</translation>
    </message>
    <message>
        <source>Testing the graphics card</source>
        <translation>Die Grafikkarte wird geprüft</translation>
    </message>
    <message>
        <source>Waiting for tools…</source>
        <translation>Wartet auf Werkzeuge…</translation>
    </message>
    <message>
        <source>Waiting for your decision</source>
        <translation>Wartet auf Ihre Entscheidung</translation>
    </message>
    <message>
        <source>{model} on {machine}</source>
        <translation>{model} auf {machine}</translation>
    </message>
    <message>
        <source>{nth} in line</source>
        <translation>{nth} in der Reihe</translation>
    </message>
    <message>
        <source>{place}, about {time}</source>
        <translation>{place}, noch etwa {time}</translation>
    </message>
    <message>
        <source>{rate} (forecast {forecast})</source>
        <translation>{rate} (Prognose {forecast})</translation>
    </message>
    <message>
        <source>{rate}, including a pause of {time}</source>
        <translation>{rate}, mit einer Pause von {time}</translation>
    </message>
    <message>
        <source>{step} on {machine}</source>
        <translation>{step} auf {machine}</translation>
    </message>
    <message>
        <source>{step}: {share}</source>
        <translation>{step}: {share}</translation>
    </message>
    <message>
        <source>{step}…</source>
        <translation>{step}…</translation>
    </message>
</context>
<context>
    <name>AnswersModel</name>
    <message>
        <source>First token</source>
        <translation>1. Token</translation>
    </message>
    <message>
        <source>Asked by</source>
        <translation>Für</translation>
    </message>
    <message>
        <source>Cut off by an error. See the log for details.</source>
        <translation>Sie brach ab; der Grund steht im Protokoll.</translation>
    </message>
    <message>
        <source>Complete.</source>
        <translation>Sie kam an ihr Ende.</translation>
    </message>
    <message>
        <source>Stopped at the token limit.</source>
        <translation>Sie erreichte ihre Höchstzahl an Token.</translation>
    </message>
    <message>
        <source>Stopped before it was finished.</source>
        <translation>Vor dem Ende angehalten.</translation>
    </message>
    <message>
        <source>First-token forecast</source>
        <translation>Prognose</translation>
    </message>
    <message>
        <source>Model</source>
        <translation>Modell</translation>
    </message>
    <message>
        <source>Speed</source>
        <translation>Tempo</translation>
    </message>
    <message>
        <source>Speed forecast</source>
        <translation>Tempo-Prognose</translation>
    </message>
    <message>
        <source>Stopped because the context was full.</source>
        <translation>Der Kontext war voll, darum endete sie dort.</translation>
    </message>
    <message>
        <source>Tokens</source>
        <translation>Token</translation>
    </message>
    <message>
        <source>When</source>
        <translation>Wann</translation>
    </message>
    <message>
        <source>cut off</source>
        <translation>abgebrochen</translation>
    </message>
    <message>
        <source>guest {name}</source>
        <translation>Gast {name}</translation>
    </message>
    <message>
        <source>none</source>
        <translation>keine</translation>
    </message>
    <message>
        <source>not measured</source>
        <translation>nicht gemessen</translation>
    </message>
    <message>
        <source>not recorded</source>
        <translation>nicht vermerkt</translation>
    </message>
    <message>
        <source>phone {name}</source>
        <translation>Handy {name}</translation>
    </message>
    <message>
        <source>program without a key</source>
        <translation>Programm ohne Schlüssel</translation>
    </message>
    <message>
        <source>program {name}</source>
        <translation>Programm {name}</translation>
    </message>
    <message>
        <source>stopped</source>
        <translation>pausiert</translation>
    </message>
    <message>
        <source>you</source>
        <translation>Sie</translation>
    </message>
</context>
<context>
    <name>AnswersTable</name>
    <message>
        <source>Recent answers</source>
        <translation>Die letzten Antworten</translation>
    </message>
</context>
<context>
    <name>Attachment</name>
    <message numerus="yes">
        <source>%n page(s)</source>
        <translation>
            <numerusform>%Ln Seite</numerusform>
            <numerusform>%Ln Seiten</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n sheet(s)</source>
        <translation>
            <numerusform>%Ln Blatt</numerusform>
            <numerusform>%Ln Blätter</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n slide(s)</source>
        <translation>
            <numerusform>%Ln Folie</numerusform>
            <numerusform>%Ln Folien</numerusform>
        </translation>
    </message>
    <message>
        <source>pages 1–{last} of {count}</source>
        <translation>Seiten 1–{last} von {count}</translation>
    </message>
    <message>
        <source>sheets 1–{last} of {count}</source>
        <translation>Blätter 1–{last} von {count}</translation>
    </message>
    <message>
        <source>shortened</source>
        <translation>gekürzt</translation>
    </message>
    <message>
        <source>slides 1–{last} of {count}</source>
        <translation>Folien 1–{last} von {count}</translation>
    </message>
</context>
<context>
    <name>AutostartSwitch</name>
    <message>
        <source>Poolhouse starts in the tray, without opening its window.</source>
        <translation>Poolhouse startet im Infobereich, ohne sein Fenster zu öffnen.</translation>
    </message>
    <message>
        <source>Start at sign-in</source>
        <translation>Bei der Anmeldung starten</translation>
    </message>
</context>
<context>
    <name>Bars</name>
    <message>
        <source>Where the time went</source>
        <translation>Wofür die Zeit gebraucht wurde</translation>
    </message>
    <message>
        <source>computing {busy}, waiting {wait}</source>
        <translation>rechnet {busy}, wartet {wait}</translation>
    </message>
</context>
<context>
    <name>BenchCard</name>
    <message>
        <source>Share of the time for an answer</source>
        <translation>Von der Zeit einer Antwort</translation>
    </message>
</context>
<context>
    <name>BenchModel</name>
    <message>
        <source>Compared with the forecast</source>
        <translation>Neben der Prognose</translation>
    </message>
    <message>
        <source>First token</source>
        <translation>Erstes Token</translation>
    </message>
    <message>
        <source>Kind</source>
        <translation>Art</translation>
    </message>
    <message>
        <source>Machines</source>
        <translation>Geräte</translation>
    </message>
    <message>
        <source>Model</source>
        <translation>Modell</translation>
    </message>
    <message>
        <source>Speed</source>
        <translation>Tempo</translation>
    </message>
    <message>
        <source>When</source>
        <translation>Wann</translation>
    </message>
    <message>
        <source>full</source>
        <translation>ausführlich</translation>
    </message>
    <message>
        <source>not measured</source>
        <translation>nicht gemessen</translation>
    </message>
    <message>
        <source>quick</source>
        <translation>kurz</translation>
    </message>
</context>
<context>
    <name>BenchTable</name>
    <message>
        <source>Earlier benchmarks</source>
        <translation>Frühere Leistungstests</translation>
    </message>
</context>
<context>
    <name>BenchView</name>
    <message numerus="yes">
        <source>%n answer(s) measured</source>
        <translation>
            <numerusform>%Ln Antwort gemessen</numerusform>
            <numerusform>%Ln Antworten gemessen</numerusform>
        </translation>
    </message>
    <message>
        <source>A benchmark asks random questions and discards the answers.</source>
        <translation>Ein Leistungstest stellt zufällige Fragen und verwirft die Antworten.</translation>
    </message>
    <message>
        <source>Benchmark</source>
        <translation>Leistungstest</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>Abbrechen</translation>
    </message>
    <message>
        <source>Full, about 10 min</source>
        <translation>Ausführlich, etwa 10 min</translation>
    </message>
    <message>
        <source>Full, about {time}</source>
        <translation>Ausführlich, etwa {time}</translation>
    </message>
    <message>
        <source>Load a model first, then measure it.</source>
        <translation>Laden Sie zuerst ein Modell, dann können Sie es messen.</translation>
    </message>
    <message>
        <source>Restoring the previous setup</source>
        <translation>Lädt wie zuvor</translation>
    </message>
    <message>
        <source>Loading on one machine</source>
        <translation>Lädt auf ein Gerät</translation>
    </message>
    <message>
        <source>Measure anyway</source>
        <translation>Trotzdem messen</translation>
    </message>
    <message>
        <source>Measure now</source>
        <translation>Jetzt messen</translation>
    </message>
    <message>
        <source>Measures {model} with its current settings.</source>
        <translation>Misst {model} mit seinen jetzigen Einstellungen.</translation>
    </message>
    <message>
        <source>Measuring one machine</source>
        <translation>Misst ein Gerät</translation>
    </message>
    <message>
        <source>Measuring the household</source>
        <translation>Misst den Haushalt</translation>
    </message>
    <message>
        <source>Nothing measured yet</source>
        <translation>Noch nichts gemessen</translation>
    </message>
    <message>
        <source>One machine against all</source>
        <translation>Ein Gerät gegen alle</translation>
    </message>
    <message>
        <source>Open the Models page</source>
        <translation>Modelle öffnen</translation>
    </message>
    <message>
        <source>Progress of the benchmark</source>
        <translation>Fortschritt des Leistungstests</translation>
    </message>
    <message>
        <source>Quick, about 1 min</source>
        <translation>Kurz, etwa 1 min</translation>
    </message>
    <message>
        <source>Quick, about {time}</source>
        <translation>Kurz, etwa {time}</translation>
    </message>
    <message>
        <source>An answer is in progress, so the measured speed would be too low.</source>
        <translation>Gerade bekommt jemand eine Antwort, deshalb wären die Zahlen zu niedrig.</translation>
    </message>
    <message>
        <source>Benchmark finished.</source>
        <translation>Der Leistungstest ist fertig.</translation>
    </message>
    <message>
        <source>Warming up</source>
        <translation>Wärmt auf</translation>
    </message>
</context>
<context>
    <name>Body</name>
    <message>
        <source>Show more ({count} characters)</source>
        <translation>Mehr anzeigen ({count} Zeichen)</translation>
    </message>
</context>
<context>
    <name>Buttons</name>
    <message>
        <source>More</source>
        <translation>Mehr</translation>
    </message>
</context>
<context>
    <name>Cards</name>
    <message>
        <source>If you turn off a card, the layers of other machines are removed from it immediately. Your own models stay on it until you load them again.</source>
        <translation>Wird eine Karte ausgeschaltet, gibt sie die Schichten anderer Geräte sofort zurück. Eigene Modelle bleiben auf ihr, bis sie neu geladen werden.</translation>
    </message>
    <message>
        <source>Doesn&apos;t run models ({memory}). {why}</source>
        <translation>Rechnet nicht ({memory}). {why}</translation>
    </message>
    <message>
        <source>Graphics cards</source>
        <translation>Grafikkarten</translation>
    </message>
    <message>
        <source>Lend only the graphics card</source>
        <translation>Nur die Grafikkarte verleihen</translation>
    </message>
    <message>
        <source>Maximum use of a card&apos;s memory</source>
        <translation>Höchstens so viel vom Speicher einer Karte</translation>
    </message>
    <message>
        <source>Now: {values}.</source>
        <translation>Jetzt: {values}.</translation>
    </message>
    <message>
        <source>Other machines can also use the processor for anything that the card can&apos;t hold or compute.</source>
        <translation>Andere Geräte dürfen auch den Prozessor nutzen, für das, was die Karte nicht fasst oder nicht rechnet.</translation>
    </message>
    <message>
        <source>Other machines can use the card but not the processor. If no card can be used, nothing is lent.</source>
        <translation>Andere Geräte bekommen die Karte und nie den Prozessor. Ohne benutzbare Karte wird nichts verliehen.</translation>
    </message>
    <message>
        <source>Runs models through {api} ({memory}).</source>
        <translation>Rechnet Modelle über {api} ({memory}).</translation>
    </message>
    <message>
        <source>This limit applies to all models on this computer together. Lower it to keep memory free for other programs.</source>
        <translation>Das begrenzt alle Modelle auf diesem Gerät zusammen. Mit weniger bleibt mehr für andere Programme frei.</translation>
    </message>
    <message>
        <source>This system doesn&apos;t report the card&apos;s temperature or usage.</source>
        <translation>Dieses System verrät ihre Temperatur und Auslastung nicht.</translation>
    </message>
    <message>
        <source>Use {card}</source>
        <translation>{card} benutzen</translation>
    </message>
    <message>
        <source>{degrees} °C</source>
        <translation>{degrees} °C</translation>
    </message>
    <message>
        <source>{percent}% busy</source>
        <translation>{percent} % ausgelastet</translation>
    </message>
    <message>
        <source>{size} shared with the processor</source>
        <translation>{size}, mit dem Prozessor geteilt</translation>
    </message>
</context>
<context>
    <name>Chat</name>
    <message>
        <source>Screen readers announce each paragraph when it is finished, instead of the whole answer at the end.</source>
        <translation>Ein Bildschirmleser hört jeden Absatz, sobald er fertig ist, und nicht erst die ganze Antwort.</translation>
    </message>
    <message>
        <source>Values above 1 reduce repetition.</source>
        <translation>Über 1: sagt seltener dasselbe.</translation>
    </message>
    <message>
        <source>Answers</source>
        <translation>Antworten</translation>
    </message>
    <message>
        <source>Chat</source>
        <translation>Chat</translation>
    </message>
    <message>
        <source>Limits the choice to this many of the most likely words. 0 means no limit.</source>
        <translation>Wählt unter so vielen Wörtern. 0: unter allen.</translation>
    </message>
    <message>
        <source>Limits the choice to the most likely words, up to this total probability. 1 means no limit.</source>
        <translation>Wählt unter den wahrscheinlichsten, die zusammen diesen Anteil ausmachen. 1: unter allen.</translation>
    </message>
    <message>
        <source>Ctrl+Enter</source>
        <translation>Strg+Eingabetaste</translation>
    </message>
    <message>
        <source>Default: Enter</source>
        <translation>Standard: Eingabetaste</translation>
    </message>
    <message>
        <source>Default: none</source>
        <translation>Standard: keine</translation>
    </message>
    <message>
        <source>Default: off</source>
        <translation>Standard: aus</translation>
    </message>
    <message>
        <source>Default: {value}</source>
        <translation>Standard: {value}</translation>
    </message>
    <message>
        <source>Enter</source>
        <translation>Eingabetaste</translation>
    </message>
    <message>
        <source>Higher values make answers more varied. 0 always picks the most likely word.</source>
        <translation>Höher: abwechslungsreicher. 0: immer das wahrscheinlichste Wort.</translation>
    </message>
    <message>
        <source>Skips words whose probability is below this fraction of the most likely word&apos;s.</source>
        <translation>Lässt aus, was seltener ist als dieser Anteil des wahrscheinlichsten Wortes.</translation>
    </message>
    <message>
        <source>Min p</source>
        <translation>Min p</translation>
    </message>
    <message>
        <source>New chats</source>
        <translation>Neue Chats</translation>
    </message>
    <message>
        <source>For example: Answer briefly, in German.</source>
        <translation>Keine. Zum Beispiel: Antworte kurz und auf Deutsch.</translation>
    </message>
    <message>
        <source>Read paragraphs aloud</source>
        <translation>Absätze vorlesen</translation>
    </message>
    <message>
        <source>Repeat penalty</source>
        <translation>Abzug für Wiederholungen</translation>
    </message>
    <message>
        <source>Sent to the model at the start of every new chat.</source>
        <translation>Wird dem Modell vor jedem neuen Chat gesagt.</translation>
    </message>
    <message>
        <source>Sampling</source>
        <translation>Auswahl der Wörter</translation>
    </message>
    <message>
        <source>Send with</source>
        <translation>Senden mit</translation>
    </message>
    <message>
        <source>Shift+Enter always starts a new line.</source>
        <translation>Umschalt+Eingabetaste beginnt immer eine neue Zeile.</translation>
    </message>
    <message>
        <source>System message</source>
        <translation>Anweisung (Systemnachricht)</translation>
    </message>
    <message>
        <source>Temperature</source>
        <translation>Temperatur</translation>
    </message>
    <message>
        <source>Top k</source>
        <translation>Top k</translation>
    </message>
    <message>
        <source>Top p</source>
        <translation>Top p</translation>
    </message>
</context>
<context>
    <name>ChatHead</name>
    <message>
        <source>Answered by {machine}</source>
        <translation>{machine} antwortet</translation>
    </message>
    <message>
        <source>Context used</source>
        <translation>Genutzter Kontext</translation>
    </message>
    <message>
        <source>Context {used} of {all}</source>
        <translation>Kontext: {used} von {all}</translation>
    </message>
    <message>
        <source>New chat</source>
        <translation>Neuer Chat</translation>
    </message>
    <message>
        <source>No machine is available to answer</source>
        <translation>Kein Gastgeber ist da, der antwortet</translation>
    </message>
    <message>
        <source>No model is available: {model} could not be loaded</source>
        <translation>Kein Modell antwortet: {model} ließ sich nicht laden</translation>
    </message>
    <message>
        <source>No model is loaded, and there is not enough memory for the Guide</source>
        <translation>Kein Modell ist geladen, und der Guide passt nicht</translation>
    </message>
    <message>
        <source>No model is loaded, so the Guide answers</source>
        <translation>Es ist kein Modell geladen: Der Guide antwortet</translation>
    </message>
    <message>
        <source>{model} on {server}, another server</source>
        <translation>{model} auf {server}, einem anderen Server</translation>
    </message>
    <message>
        <source>{server}, another server, runs the model. Your messages leave your household.</source>
        <translation>{server}, ein anderer Server, führt das Modell aus. Ihre Nachrichten verlassen Ihren Haushalt.</translation>
    </message>
    <message>
        <source>Chat settings</source>
        <translation>Einstellungen dieses Chats</translation>
    </message>
    <message>
        <source>Show on the Pool page</source>
        <translation>Auf der Seite Pool zeigen</translation>
    </message>
    <message>
        <source>Machines that process this chat</source>
        <translation>Welche Geräte diesen Chat verarbeiten</translation>
    </message>
    <message>
        <source>{model} is not available now</source>
        <translation>{model} ist gerade nicht verfügbar</translation>
    </message>
    <message numerus="yes">
        <source>{model} on %n machine(s)</source>
        <translation>
            <numerusform>{model} auf %Ln Gerät</numerusform>
            <numerusform>{model} auf %Ln Geräten</numerusform>
        </translation>
    </message>
    <message>
        <source>{model} on this machine</source>
        <translation>{model} auf diesem Gerät</translation>
    </message>
    <message>
        <source>{model} (loads with your next message)</source>
        <translation>{model}, wird mit der nächsten Nachricht geladen</translation>
    </message>
</context>
<context>
    <name>ChatList</name>
    <message numerus="yes">
        <source>%n chat(s) archived.</source>
        <translation>
            <numerusform>%Ln Chat archiviert.</numerusform>
            <numerusform>%Ln Chats archiviert.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n chat(s) deleted.</source>
        <translation>
            <numerusform>%Ln Chat gelöscht.</numerusform>
            <numerusform>%Ln Chats gelöscht.</numerusform>
        </translation>
    </message>
    <message>
        <source>Restore them</source>
        <translation>Zurückholen</translation>
    </message>
    <message>
        <source>Deleted “{title}”.</source>
        <translation>„{title}“ wurde gelöscht.</translation>
    </message>
    <message>
        <source>Folder “{name}” was deleted. Its chats were kept.</source>
        <translation>Der Ordner „{name}“ wurde gelöscht; seine Chats bleiben.</translation>
    </message>
    <message>
        <source>More options for all chats</source>
        <translation>Mehr für alle Chats</translation>
    </message>
    <message>
        <source>Folder name</source>
        <translation>Name des Ordners</translation>
    </message>
    <message>
        <source>New chat</source>
        <translation>Neuer Chat</translation>
    </message>
    <message>
        <source>New chat ({key})</source>
        <translation>Neuer Chat ({key})</translation>
    </message>
    <message>
        <source>New folder</source>
        <translation>Neuer Ordner</translation>
    </message>
    <message>
        <source>No chats contain all of these words.</source>
        <translation>Kein Chat enthält alle diese Wörter.</translation>
    </message>
    <message>
        <source>No chats yet</source>
        <translation>Noch keine Chats</translation>
    </message>
    <message>
        <source>Nothing found</source>
        <translation>Nichts gefunden</translation>
    </message>
    <message>
        <source>Search all chats</source>
        <translation>Alle Chats durchsuchen</translation>
    </message>
    <message>
        <source>Show all chats</source>
        <translation>Alle Chats anzeigen</translation>
    </message>
    <message>
        <source>Some of the damaged chats may still be readable.</source>
        <translation>Einige der beschädigten Chats sind vielleicht noch lesbar.</translation>
    </message>
    <message>
        <source>Start a chat</source>
        <translation>Chat beginnen</translation>
    </message>
    <message>
        <source>Undo</source>
        <translation>Rückgängig</translation>
    </message>
    <message>
        <source>Your chats are stored only on this computer.</source>
        <translation>Was Sie fragen und was geantwortet wird, bleibt nur auf diesem Computer.</translation>
    </message>
    <message>
        <source>{title} (copy)</source>
        <translation>{title} (Kopie)</translation>
    </message>
</context>
<context>
    <name>ChatListMenu</name>
    <message>
        <source>Archive</source>
        <translation>Archivieren</translation>
    </message>
    <message>
        <source>Delete</source>
        <translation>Löschen</translation>
    </message>
    <message>
        <source>Delete folder but keep its chats</source>
        <translation>Ordner löschen, Chats behalten</translation>
    </message>
    <message>
        <source>Duplicate</source>
        <translation>Duplizieren</translation>
    </message>
    <message>
        <source>Export</source>
        <translation>Exportieren</translation>
    </message>
    <message>
        <source>Export all chats</source>
        <translation>Alle Chats exportieren</translation>
    </message>
    <message>
        <source>Import chats…</source>
        <translation>Chats importieren…</translation>
    </message>
    <message>
        <source>Include the model&apos;s thinking</source>
        <translation>Mit Gedankengang</translation>
    </message>
    <message>
        <source>Move to folder</source>
        <translation>In Ordner verschieben</translation>
    </message>
    <message>
        <source>New chat here</source>
        <translation>Neuer Chat hier</translation>
    </message>
    <message>
        <source>New folder</source>
        <translation>Neuer Ordner</translation>
    </message>
    <message>
        <source>New folder…</source>
        <translation>Neuer Ordner…</translation>
    </message>
    <message>
        <source>No folder</source>
        <translation>Kein Ordner</translation>
    </message>
    <message>
        <source>Pin to the top</source>
        <translation>Oben anheften</translation>
    </message>
    <message>
        <source>Rename</source>
        <translation>Umbenennen</translation>
    </message>
    <message>
        <source>Unarchive</source>
        <translation>Aus dem Archiv nehmen</translation>
    </message>
    <message>
        <source>Unpin</source>
        <translation>Nicht mehr anheften</translation>
    </message>
</context>
<context>
    <name>ChatListModel</name>
    <message numerus="yes">
        <source>%n chat(s)</source>
        <translation>
            <numerusform>%Ln Chat</numerusform>
            <numerusform>%Ln Chats</numerusform>
        </translation>
    </message>
    <message>
        <source>Archive</source>
        <translation>Archiv</translation>
    </message>
    <message>
        <source>Folder {name}, {chats}</source>
        <translation>Ordner {name}, {chats}</translation>
    </message>
    <message>
        <source>New chat</source>
        <translation>Neuer Chat</translation>
    </message>
    <message>
        <source>{title}, pinned</source>
        <translation>{title}, angeheftet</translation>
    </message>
</context>
<context>
    <name>ChatListView</name>
    <message>
        <source>Chats</source>
        <translation>Chats</translation>
    </message>
</context>
<context>
    <name>ChatPage</name>
    <message>
        <source>Answer it</source>
        <translation>Beantworten</translation>
    </message>
    <message>
        <source>Ask the Guide</source>
        <translation>Den Guide fragen</translation>
    </message>
    <message>
        <source>Choose a larger context</source>
        <translation>Größeren Kontext wählen</translation>
    </message>
    <message>
        <source>Choose another context</source>
        <translation>Anderen Kontext wählen</translation>
    </message>
    <message>
        <source>Choose another model</source>
        <translation>Anderes Modell wählen</translation>
    </message>
    <message>
        <source>Continue</source>
        <translation>Fortsetzen</translation>
    </message>
    <message>
        <source>Edit message</source>
        <translation>Nachricht bearbeiten</translation>
    </message>
    <message>
        <source>Leave out the oldest messages</source>
        <translation>Die ältesten Nachrichten auslassen</translation>
    </message>
    <message>
        <source>Drop files here to attach them to your message</source>
        <translation>Loslassen, um es an Ihre Nachricht anzuhängen</translation>
    </message>
    <message>
        <source>Allow {name} to answer</source>
        <translation>{name} antworten lassen</translation>
    </message>
    <message>
        <source>The context is full, so this answer cannot be continued.</source>
        <translation>Der Kontext ist voll: Für mehr von dieser Antwort ist kein Platz.</translation>
    </message>
    <message>
        <source>The model wants to use {tool} from {server}. Allow or refuse it in the conversation.</source>
        <translation>Das Modell möchte {tool} von {server} verwenden. Erlauben Sie es im Chat oder lehnen Sie es ab.</translation>
    </message>
    <message>
        <source>This question has no answer yet.</source>
        <translation>Diese Frage hat noch keine Antwort.</translation>
    </message>
    <message>
        <source>Try again</source>
        <translation>Erneut versuchen</translation>
    </message>
</context>
<context>
    <name>ChatSettings</name>
    <message>
        <source> tokens</source>
        <translation> Token</translation>
    </message>
    <message>
        <source>Choosing a larger context than the current one reloads the model.</source>
        <translation>Ist der Kontext größer als der, mit dem das Modell geladen ist, wird es zuerst neu geladen.</translation>
    </message>
    <message>
        <source>Keep the current context</source>
        <translation>Jetzigen Kontext behalten</translation>
    </message>
    <message>
        <source>Model&apos;s default</source>
        <translation>Wie das Modell es tut</translation>
    </message>
    <message>
        <source>At least {count} tokens</source>
        <translation>Mindestens {count} Token</translation>
    </message>
    <message>
        <source>Random</source>
        <translation>Zufällig</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>Abbrechen</translation>
    </message>
    <message>
        <source>Context</source>
        <translation>Kontext</translation>
    </message>
    <message>
        <source>Default: {value}</source>
        <translation>Standard: {value}</translation>
    </message>
    <message>
        <source>Save as preset</source>
        <translation>Als Vorlage behalten</translation>
    </message>
    <message>
        <source>Save as preset…</source>
        <translation>Als Vorlage behalten…</translation>
    </message>
    <message>
        <source>Maximum answer length</source>
        <translation>Längste Antwort</translation>
    </message>
    <message>
        <source>Maximum thinking length</source>
        <translation>Längstes Nachdenken</translation>
    </message>
    <message>
        <source>Min p</source>
        <translation>Min p</translation>
    </message>
    <message>
        <source>Model</source>
        <translation>Modell</translation>
    </message>
    <message>
        <source>Preset name</source>
        <translation>Name der Vorlage</translation>
    </message>
    <message>
        <source>No limit</source>
        <translation>Keine Grenze</translation>
    </message>
    <message>
        <source>Off</source>
        <translation>Aus</translation>
    </message>
    <message>
        <source>On</source>
        <translation>Ein</translation>
    </message>
    <message>
        <source>Presets</source>
        <translation>Vorlagen</translation>
    </message>
    <message>
        <source>Sampling presets</source>
        <translation>Vorlagen für die Auswahl der Wörter</translation>
    </message>
    <message>
        <source>System message presets</source>
        <translation>Vorlagen für die Anweisung (Systemnachricht)</translation>
    </message>
    <message>
        <source>Remove preset</source>
        <translation>Vorlage entfernen</translation>
    </message>
    <message>
        <source>Repeat penalty</source>
        <translation>Abzug für Wiederholungen</translation>
    </message>
    <message>
        <source>Reset to defaults</source>
        <translation>Auf Standard zurücksetzen</translation>
    </message>
    <message>
        <source>Sampling</source>
        <translation>Auswahl der Wörter</translation>
    </message>
    <message>
        <source>Save</source>
        <translation>Speichern</translation>
    </message>
    <message>
        <source>Seed</source>
        <translation>Startwert</translation>
    </message>
    <message>
        <source>Chat settings</source>
        <translation>Einstellungen dieses Chats</translation>
    </message>
    <message>
        <source>Some models think before they answer. Some of them don&apos;t let you turn thinking off.</source>
        <translation>Manche Modelle denken nach, bevor sie antworten. Nicht bei jedem lässt sich das ausschalten.</translation>
    </message>
    <message>
        <source>System message</source>
        <translation>Anweisung (Systemnachricht)</translation>
    </message>
    <message>
        <source>Temperature</source>
        <translation>Temperatur</translation>
    </message>
    <message>
        <source>The Guide treats each question separately. Its default temperature is 0.</source>
        <translation>Der Guide nimmt jede Frage für sich, mit einer Temperatur von 0, wo keine gewählt ist.</translation>
    </message>
    <message>
        <source>Thinking</source>
        <translation>Nachdenken</translation>
    </message>
    <message>
        <source>This model&apos;s maximum context is {count} tokens.</source>
        <translation>Dieses Modell liest höchstens {count} Token.</translation>
    </message>
    <message>
        <source>Top k</source>
        <translation>Top k</translation>
    </message>
    <message>
        <source>Top p</source>
        <translation>Top p</translation>
    </message>
    <message>
        <source>The loaded model</source>
        <translation>Das gerade geladene Modell</translation>
    </message>
    <message>
        <source>Describe the model&apos;s role and how it should answer</source>
        <translation>Wer das Modell sein soll und wie es antwortet</translation>
    </message>
    <message>
        <source>There are already {count} presets. Remove one first.</source>
        <translation>{count} Vorlagen sind schon da. Entfernen Sie zuerst eine.</translation>
    </message>
</context>
<context>
    <name>CodeBlock</name>
    <message>
        <source>Code, {language}</source>
        <translation>Code, {language}</translation>
    </message>
    <message>
        <source>Copy code</source>
        <translation>Code kopieren</translation>
    </message>
    <message>
        <source>text</source>
        <translation>Text</translation>
    </message>
</context>
<context>
    <name>CodePanel</name>
    <message>
        <source>If the new machine can&apos;t find this one, enter this address there: {address}</source>
        <translation>Adresse, falls das andere Gerät dieses nicht findet: {address}</translation>
    </message>
    <message>
        <source>Permissions for the new machine</source>
        <translation>Das neue Gerät darf</translation>
    </message>
    <message>
        <source>Someone entered a wrong code. Tries left: {tries}.</source>
        <translation>Ein falscher Code wurde eingegeben. Verbleibende Versuche: {tries}.</translation>
    </message>
    <message>
        <source>The code is {code}.</source>
        <translation>Der Code ist {code}.</translation>
    </message>
    <message>
        <source>Time left</source>
        <translation>Verbleibende Zeit</translation>
    </message>
    <message>
        <source>Time left: {time}, tries left: {tries}</source>
        <translation>Noch {time}, verbleibende Versuche: {tries}</translation>
    </message>
</context>
<context>
    <name>CommandButton</name>
    <message>
        <source>Copy command</source>
        <translation>Befehl kopieren</translation>
    </message>
    <message>
        <source>Copy command for {machine}</source>
        <translation>Befehl für {machine} kopieren</translation>
    </message>
    <message>
        <source>For Fedora (firewalld)</source>
        <translation>Für Fedora (firewalld)</translation>
    </message>
    <message>
        <source>For Ubuntu and Debian (ufw)</source>
        <translation>Für Ubuntu und Debian (ufw)</translation>
    </message>
    <message>
        <source>For Windows</source>
        <translation>Für Windows</translation>
    </message>
</context>
<context>
    <name>CommandPalette</name>
    <message numerus="yes">
        <source>%n match(es)</source>
        <translation>
            <numerusform>%Ln Treffer</numerusform>
            <numerusform>%Ln Treffer</numerusform>
        </translation>
    </message>
    <message>
        <source>Close</source>
        <translation>Schließen</translation>
    </message>
    <message>
        <source>Go to</source>
        <translation>Gehe zu</translation>
    </message>
    <message>
        <source>Matches</source>
        <translation>Treffer</translation>
    </message>
    <message>
        <source>New chat</source>
        <translation>Neuer Chat</translation>
    </message>
    <message>
        <source>Page, chat or model</source>
        <translation>Seite, Chat oder Modell</translation>
    </message>
    <message>
        <source>chat</source>
        <translation>Chat</translation>
    </message>
    <message>
        <source>model</source>
        <translation>Modell</translation>
    </message>
    <message>
        <source>page</source>
        <translation>Seite</translation>
    </message>
    <message>
        <source>settings</source>
        <translation>Einstellungen</translation>
    </message>
</context>
<context>
    <name>CompletionView</name>
    <message>
        <source>Continue</source>
        <translation>Fortsetzen</translation>
    </message>
    <message>
        <source>Ctrl+Enter</source>
        <translation>Strg+Eingabe</translation>
    </message>
    <message>
        <source>Loading the model…</source>
        <translation>Modell wird geladen…</translation>
    </message>
    <message>
        <source>Stop</source>
        <translation>Stopp</translation>
    </message>
    <message>
        <source>Text to continue</source>
        <translation>Text zum Fortsetzen</translation>
    </message>
    <message>
        <source>Undo</source>
        <translation>Rückgängig</translation>
    </message>
    <message>
        <source>Write the beginning of a text, for example: Once upon a time</source>
        <translation>Schreiben Sie den Anfang eines Textes, zum Beispiel: Es war einmal</translation>
    </message>
    <message>
        <source>Writing…</source>
        <translation>Schreibt…</translation>
    </message>
    <message>
        <source>{model} is a base model. It doesn&apos;t chat: it continues the text that you begin.</source>
        <translation>{model} ist ein Basismodell. Es chattet nicht, sondern setzt den Text fort, den Sie beginnen.</translation>
    </message>
</context>
<context>
    <name>Composer</name>
    <message>
        <source>Attach a file</source>
        <translation>Datei anhängen</translation>
    </message>
    <message>
        <source>Attach pictures, text, PDF or Office files</source>
        <translation>Bilder, Text-, PDF- oder Office-Dateien anhängen</translation>
    </message>
    <message>
        <source>Attached: {file}</source>
        <translation>Angehängt: {file}</translation>
    </message>
    <message>
        <source>Pasted picture</source>
        <translation>Eingefügtes Bild</translation>
    </message>
    <message>
        <source>Reading {names}…</source>
        <translation>{names} wird gelesen…</translation>
    </message>
    <message>
        <source>Remove {name}</source>
        <translation>{name} entfernen</translation>
    </message>
    <message>
        <source>Send</source>
        <translation>Senden</translation>
    </message>
    <message>
        <source>Send (Ctrl+Enter)</source>
        <translation>Senden (Strg+Eingabetaste)</translation>
    </message>
    <message>
        <source>Send (Enter)</source>
        <translation>Senden (Eingabetaste)</translation>
    </message>
    <message>
        <source>Stop</source>
        <translation>Anhalten</translation>
    </message>
    <message>
        <source>Stop (Esc)</source>
        <translation>Anhalten (Esc)</translation>
    </message>
</context>
<context>
    <name>ComposerHint</name>
    <message>
        <source>Ask the Guide</source>
        <translation>Den Guide fragen</translation>
    </message>
    <message>
        <source>No model is loaded, and there is not enough memory for the Guide.</source>
        <translation>Kein Modell ist geladen, und auch der Guide passt nicht.</translation>
    </message>
    <message>
        <source>No model is loaded, so the Guide answers.</source>
        <translation>Es ist kein Modell geladen, daher antwortet der Guide.</translation>
    </message>
    <message>
        <source>The Guide understands English only.</source>
        <translation>Der Guide versteht nur Englisch.</translation>
    </message>
    <message>
        <source>The context is nearly full. The next answer may stop early.</source>
        <translation>Der Kontext ist fast voll: Die nächste Antwort endet vielleicht vorzeitig.</translation>
    </message>
    <message>
        <source>The context is nearly full. From now on, the oldest messages will be left out.</source>
        <translation>Der Kontext ist fast voll: Von jetzt an werden die ältesten Nachrichten weggelassen.</translation>
    </message>
    <message>
        <source>This chat&apos;s model can&apos;t look at pictures. Choose one that can, or remove the pictures.</source>
        <translation>Das Modell dieses Chats kann keine Bilder ansehen. Wählen Sie eines, das es kann, oder entfernen Sie die Bilder.</translation>
    </message>
    <message>
        <source>Use {model}</source>
        <translation>{model} verwenden</translation>
    </message>
    <message>
        <source>Your message will be sent when this answer is done.</source>
        <translation>Ihre Nachricht wird gesendet, sobald diese Antwort zu Ende ist.</translation>
    </message>
    <message>
        <source>{model} could not be loaded, so no model is available.</source>
        <translation>{model} ließ sich nicht laden, darum antwortet kein Modell.</translation>
    </message>
</context>
<context>
    <name>ComputerPage</name>
    <message>
        <source>Saved</source>
        <translation>Gespeichert</translation>
    </message>
    <message>
        <source>This computer</source>
        <translation>Dieser Computer</translation>
    </message>
    <message>
        <source>Try again</source>
        <translation>Erneut versuchen</translation>
    </message>
    <message>
        <source>Undo</source>
        <translation>Rückgängig</translation>
    </message>
    <message>
        <source>Undo the last change (Ctrl+Z)</source>
        <translation>Die letzte Änderung rückgängig machen (Strg+Z)</translation>
    </message>
</context>
<context>
    <name>ContextSlider</name>
    <message>
        <source>Context</source>
        <translation>Kontext</translation>
    </message>
    <message>
        <source>Context, in tokens</source>
        <translation>Kontext, in Token</translation>
    </message>
    <message>
        <source>{count} tokens</source>
        <translation>{count} Token</translation>
    </message>
    <message>
        <source>{count} tokens (model maximum)</source>
        <translation>{count} Token, mehr hat dieses Modell nicht</translation>
    </message>
</context>
<context>
    <name>Conversation</name>
    <message>
        <source>Conversation</source>
        <translation>Unterhaltung</translation>
    </message>
    <message>
        <source>Jump to the end</source>
        <translation>Zum Ende</translation>
    </message>
</context>
<context>
    <name>DailyCheck</name>
    <message>
        <source>Check for updates once a day</source>
        <translation>Einmal am Tag nach Updates sehen</translation>
    </message>
    <message>
        <source>Checks {place} for a new version. You decide whether to install it.</source>
        <translation>Fragt {place} nach einer neuen Version. Ob sie installiert wird, entscheiden Sie.</translation>
    </message>
</context>
<context>
    <name>Details</name>
    <message>
        <source>Looking up the model&apos;s files…</source>
        <translation>Es wird abgefragt, welche Dateien es gibt…</translation>
    </message>
    <message>
        <source>Choose a model on the left to see whether it fits and how fast it would run.</source>
        <translation>Wählen Sie links ein Modell. Dann sehen Sie, ob es passt und wie schnell es läuft.</translation>
    </message>
    <message>
        <source>Find a model that fits</source>
        <translation>Ein passendes suchen</translation>
    </message>
    <message>
        <source>No model selected</source>
        <translation>Kein Modell gewählt</translation>
    </message>
    <message>
        <source>Settings and details</source>
        <translation>Einstellungen und Details</translation>
    </message>
    <message>
        <source>The last attempt to load this model failed. {why}</source>
        <translation>Der letzte Versuch, es zu laden, schlug fehl. {why}</translation>
    </message>
    <message>
        <source>The file size is not known yet, so Poolhouse can&apos;t tell whether the model fits.</source>
        <translation>Die Größe der Datei ist noch nicht bekannt, deshalb lässt sich nicht sagen, ob das Modell passt.</translation>
    </message>
</context>
<context>
    <name>Diagnostics</name>
    <message>
        <source>Copy details</source>
        <translation>Einzelheiten kopieren</translation>
    </message>
    <message>
        <source>Poolhouse closed unexpectedly last time. No report was sent.</source>
        <translation>Das Fenster wurde beim letzten Mal unerwartet beendet. Niemandem wurde etwas gesendet.</translation>
    </message>
</context>
<context>
    <name>Doctor</name>
    <message>
        <source>A VPN may be blocking connections</source>
        <translation>Möglicherweise stört ein VPN</translation>
    </message>
    <message>
        <source>A firewall on this computer may be blocking Poolhouse</source>
        <translation>Eine Firewall auf diesem Computer</translation>
    </message>
    <message>
        <source>A firewall on {machine} may be blocking Poolhouse</source>
        <translation>Eine Firewall auf {machine}</translation>
    </message>
    <message>
        <source>Poolhouse is using a virtual network</source>
        <translation>Ein Netz in diesem Computer wird benutzt</translation>
    </message>
    <message>
        <source>A different computer answers at the address of {machine}</source>
        <translation>Statt {machine} antwortet ein anderer Computer</translation>
    </message>
    <message>
        <source>Mutual discovery</source>
        <translation>In beide Richtungen</translation>
    </message>
    <message>
        <source>Discovery of nearby computers failed</source>
        <translation>Nach Computern in der Nähe kann nicht gesucht werden</translation>
    </message>
    <message>
        <source>Copy the command and run it here. Poolhouse never changes firewall settings itself.</source>
        <translation>Kopieren Sie den Befehl und führen Sie ihn hier aus. Poolhouse selbst ändert keine Firewall.</translation>
    </message>
    <message>
        <source>Copy the command and run it on {machine}. Poolhouse never changes firewall settings itself.</source>
        <translation>Kopieren Sie den Befehl und führen Sie ihn auf {machine} aus. Poolhouse selbst ändert keine Firewall.</translation>
    </message>
    <message>
        <source>The test failed</source>
        <translation>Nicht prüfbar</translation>
    </message>
    <message>
        <source>Data folder</source>
        <translation>Datenordner</translation>
    </message>
    <message>
        <source>Disk</source>
        <translation>Datenträger</translation>
    </message>
    <message>
        <source>Engine</source>
        <translation>Rechenprogramm</translation>
    </message>
    <message>
        <source>Fail</source>
        <translation>Fehler</translation>
    </message>
    <message>
        <source>Free some space on the disk with your models.</source>
        <translation>Geben Sie Platz frei, wo die Modelle liegen.</translation>
    </message>
    <message>
        <source>Incoming connections</source>
        <translation>Von außen</translation>
    </message>
    <message>
        <source>Graphics</source>
        <translation>Grafik</translation>
    </message>
    <message>
        <source>Household</source>
        <translation>Haushalt</translation>
    </message>
    <message>
        <source>IPv6</source>
        <translation>IPv6</translation>
    </message>
    <message>
        <source>Reinstall Poolhouse, then test again.</source>
        <translation>Installieren Sie Poolhouse neu und prüfen Sie dann erneut.</translation>
    </message>
    <message>
        <source>The address of {machine} is unknown</source>
        <translation>Es ist nicht bekannt, wo {machine} ist</translation>
    </message>
    <message>
        <source>You can find the address on that machine in Settings &gt; Network.</source>
        <translation>Die Adresse steht dort unter Einstellungen &gt; Netzwerk.</translation>
    </message>
    <message>
        <source>Key</source>
        <translation>Schlüssel</translation>
    </message>
    <message>
        <source>Leave the household here too, then pair this computer again.</source>
        <translation>Verlassen Sie den Haushalt auch hier; dann lässt sich dieses Gerät neu koppeln.</translation>
    </message>
    <message>
        <source>Lending</source>
        <translation>Verleih</translation>
    </message>
    <message>
        <source>Link</source>
        <translation>Verbindung</translation>
    </message>
    <message>
        <source>Listening</source>
        <translation>Erreichbar</translation>
    </message>
    <message>
        <source>Discovery of nearby computers is off</source>
        <translation>Die Suche nach Computern in der Nähe ist aus</translation>
    </message>
    <message>
        <source>Machines nearby</source>
        <translation>Geräte in der Nähe</translation>
    </message>
    <message>
        <source>Make this folder writable for your account, then test again.</source>
        <translation>Geben Sie sich Schreibrechte für diesen Ordner und prüfen Sie dann erneut.</translation>
    </message>
    <message>
        <source>Memory</source>
        <translation>Arbeitsspeicher</translation>
    </message>
    <message>
        <source>Model</source>
        <translation>Modell</translation>
    </message>
    <message>
        <source>Model files</source>
        <translation>Modelldateien</translation>
    </message>
    <message>
        <source>Network</source>
        <translation>Netzwerk</translation>
    </message>
    <message>
        <source>No other computer was found</source>
        <translation>Kein anderer Computer meldet sich</translation>
    </message>
    <message>
        <source>No other computer is paired yet</source>
        <translation>Noch ist kein anderer Computer gekoppelt</translation>
    </message>
    <message>
        <source>Note</source>
        <translation>Hinweis</translation>
    </message>
    <message>
        <source>Pass</source>
        <translation>In Ordnung</translation>
    </message>
    <message>
        <source>Poolhouse is not running on this computer</source>
        <translation>Poolhouse läuft auf diesem Computer nicht</translation>
    </message>
    <message>
        <source>Poolhouse is not running on {machine}</source>
        <translation>Poolhouse läuft auf {machine} nicht</translation>
    </message>
    <message>
        <source>Poolhouse never changes these settings itself.</source>
        <translation>Poolhouse selbst ändert dort nichts.</translation>
    </message>
    <message>
        <source>Power supply</source>
        <translation>Stromversorgung</translation>
    </message>
    <message>
        <source>Start Poolhouse on the other computer. Then show a code on one computer and enter it on the other.</source>
        <translation>Starten Sie Poolhouse auf dem anderen Computer und fügen Sie ihn dann hinzu: Einer zeigt einen Code, am anderen geben Sie ihn ein.</translation>
    </message>
    <message>
        <source>Start Poolhouse on that computer. If it is already running, enter the computer&apos;s new address.</source>
        <translation>Starten Sie Poolhouse dort. Wenn es läuft und jetzt eine andere Adresse hat, geben Sie diese an.</translation>
    </message>
    <message>
        <source>The disk with your models is not connected</source>
        <translation>Die Festplatte mit Ihren Modellen ist nicht da</translation>
    </message>
    <message>
        <source>The models folder is not writable</source>
        <translation>Der Ordner der Modelle nimmt keine Dateien an</translation>
    </message>
    <message>
        <source>The link to {machine} is slow</source>
        <translation>Die Verbindung zu {machine} ist langsam</translation>
    </message>
    <message>
        <source>See the lending rules on the “This computer” page.</source>
        <translation>Die Seite „Dieser Computer“ zeigt die Regeln.</translation>
    </message>
    <message>
        <source>Different versions</source>
        <translation>Die Versionen sind verschieden</translation>
    </message>
    <message>
        <source>This computer can&apos;t discover {machine}</source>
        <translation>Dieser Computer hört {machine} nicht</translation>
    </message>
    <message>
        <source>This computer is not on any network</source>
        <translation>Dieser Computer ist mit keinem Netzwerk verbunden</translation>
    </message>
    <message>
        <source>This computer was removed from the household</source>
        <translation>Dieser Computer wurde aus dem Haushalt entfernt</translation>
    </message>
    <message>
        <source>Turn on discovery in Settings &gt; Network.</source>
        <translation>Schalten Sie sie unter Einstellungen &gt; Netzwerk ein.</translation>
    </message>
    <message>
        <source>Two computers have the same identity</source>
        <translation>Zwei Computer haben dieselbe Identität</translation>
    </message>
    <message>
        <source>VPN</source>
        <translation>VPN</translation>
    </message>
    <message>
        <source>Version</source>
        <translation>Version</translation>
    </message>
    <message>
        <source>Virtual networks</source>
        <translation>Virtuelle Netze</translation>
    </message>
    <message>
        <source>macOS is blocking access to your local network</source>
        <translation>macOS sperrt den Zugriff auf Ihr lokales Netzwerk</translation>
    </message>
    <message>
        <source>the other computer</source>
        <translation>der andere Computer</translation>
    </message>
    <message>
        <source>{machine} can&apos;t discover this computer</source>
        <translation>{machine} hört diesen Computer nicht</translation>
    </message>
    <message>
        <source>{machine} no longer knows this computer</source>
        <translation>{machine} kennt diesen Computer nicht mehr</translation>
    </message>
    <message>
        <source>{machine} is off, asleep or away</source>
        <translation>{machine} ist aus, im Ruhezustand oder woanders</translation>
    </message>
    <message>
        <source>{machine} is on another network</source>
        <translation>{machine} ist in einem anderen Netzwerk</translation>
    </message>
</context>
<context>
    <name>DoctorDialog</name>
    <message>
        <source>Add a machine…</source>
        <translation>Gerät hinzufügen…</translation>
    </message>
    <message numerus="yes">
        <source>All checks (%n)</source>
        <translation>
            <numerusform>Alle Prüfungen (%Ln)</numerusform>
            <numerusform>Alle Prüfungen (%Ln)</numerusform>
        </translation>
    </message>
    <message>
        <source>Back to “Join a household”</source>
        <translation>Zurück zu „Einem Haushalt beitreten“</translation>
    </message>
    <message>
        <source>Background service</source>
        <translation>Hintergrunddienst</translation>
    </message>
    <message>
        <source>Close</source>
        <translation>Schließen</translation>
    </message>
    <message>
        <source>Copied: {command}</source>
        <translation>Kopiert: {command}</translation>
    </message>
    <message>
        <source>Leave the household…</source>
        <translation>Haushalt verlassen…</translation>
    </message>
    <message>
        <source>Network</source>
        <translation>Netzwerk</translation>
    </message>
    <message>
        <source>No machine nearby is showing a code right now</source>
        <translation>Kein Gerät in der Nähe zeigt gerade einen Code</translation>
    </message>
    <message>
        <source>No problems found</source>
        <translation>Nichts steht im Weg</translation>
    </message>
    <message>
        <source>On a machine in the household, click “Add a machine”. It shows a code and an address.</source>
        <translation>Drücken Sie auf einem Gerät des Haushalts „Gerät hinzufügen“. Es zeigt dann einen Code und darunter eine Adresse.</translation>
    </message>
    <message>
        <source>Open firewall settings</source>
        <translation>Firewall-Einstellungen öffnen</translation>
    </message>
    <message>
        <source>Open network settings</source>
        <translation>Netzwerkeinstellungen öffnen</translation>
    </message>
    <message>
        <source>Restart</source>
        <translation>Neu starten</translation>
    </message>
    <message>
        <source>Save diagnostics…</source>
        <translation>Diagnose speichern…</translation>
    </message>
    <message>
        <source>Enter the address…</source>
        <translation>Adresse angeben…</translation>
    </message>
    <message>
        <source>Show the link</source>
        <translation>Verbindung zeigen</translation>
    </message>
    <message>
        <source>Start</source>
        <translation>Starten</translation>
    </message>
    <message>
        <source>Test again</source>
        <translation>Erneut prüfen</translation>
    </message>
    <message>
        <source>Testing…</source>
        <translation>Wird geprüft…</translation>
    </message>
    <message>
        <source>This computer can reach its household. If another computer can&apos;t find this one, run the test there too.</source>
        <translation>Dieser Computer sieht seinen Haushalt. Wenn ein anderer ihn nicht sieht, prüfen Sie auch dort.</translation>
    </message>
    <message>
        <source>This takes a few seconds.</source>
        <translation>Das dauert einige Sekunden.</translation>
    </message>
    <message>
        <source>Enter both here under “Join a household”. The two machines must be on the same network. Guest Wi-Fi does not work because it isolates devices.</source>
        <translation>Geben Sie beide unter „Einem Haushalt beitreten“ ein. Die zwei Geräte müssen im selben Netz sein: Ein Gast-WLAN trennt sie.</translation>
    </message>
    <message>
        <source>Why can&apos;t Poolhouse find my other computer?</source>
        <translation>Warum wird mein anderer Computer nicht gefunden?</translation>
    </message>
</context>
<context>
    <name>EarlierBenchmarks</name>
    <message numerus="yes">
        <source>%n machine(s)</source>
        <translation>
            <numerusform>%Ln Gerät</numerusform>
            <numerusform>%Ln Geräte</numerusform>
        </translation>
    </message>
    <message>
        <source>Earlier benchmarks</source>
        <translation>Frühere Leistungstests</translation>
    </message>
    <message>
        <source>Data (*.json)</source>
        <translation>Daten (*.json)</translation>
    </message>
    <message>
        <source>Markdown (*.md)</source>
        <translation>Markdown (*.md)</translation>
    </message>
    <message>
        <source>Picture (*.png)</source>
        <translation>Bild (*.png)</translation>
    </message>
    <message>
        <source>Remove</source>
        <translation>Entfernen</translation>
    </message>
    <message>
        <source>Save a report</source>
        <translation>Bericht speichern</translation>
    </message>
    <message>
        <source>Save a report…</source>
        <translation>Bericht speichern…</translation>
    </message>
    <message>
        <source>Saved as {file}. The report doesn&apos;t name any machines.</source>
        <translation>Gespeichert als {file}. Die Geräte werden darin nicht genannt.</translation>
    </message>
    <message>
        <source>Benchmark removed.</source>
        <translation>Der Leistungstest wurde entfernt.</translation>
    </message>
    <message>
        <source>Undo</source>
        <translation>Rückgängig</translation>
    </message>
    <message>
        <source>Web page (*.html)</source>
        <translation>Webseite (*.html)</translation>
    </message>
    <message>
        <source>{share} faster than the previous run ({when}, {machines}).</source>
        <translation>{share} schneller als zuvor ({when}, {machines}).</translation>
    </message>
    <message>
        <source>{share} slower than the previous run ({when}, {machines}).</source>
        <translation>{share} langsamer als zuvor ({when}, {machines}).</translation>
    </message>
</context>
<context>
    <name>Editor</name>
    <message>
        <source>Cancel</source>
        <translation>Abbrechen</translation>
    </message>
    <message>
        <source>Ctrl+Enter: {accept}. Esc: {cancel}.</source>
        <translation>Strg+Eingabetaste: {accept}. Esc: {cancel}.</translation>
    </message>
    <message>
        <source>Message text</source>
        <translation>Text der Nachricht</translation>
    </message>
</context>
<context>
    <name>EncryptionDialog</name>
    <message>
        <source>Answers continue in the meantime and are saved afterward.</source>
        <translation>Antworten laufen weiter; sie werden danach geschrieben.</translation>
    </message>
    <message>
        <source>Decrypting your chats</source>
        <translation>Ihre Chats werden entschlüsselt</translation>
    </message>
    <message>
        <source>Encrypting your chats</source>
        <translation>Ihre Chats werden verschlüsselt</translation>
    </message>
</context>
<context>
    <name>Engines</name>
    <message>
        <source>An engine pack is a program that runs on this computer with your permissions. This one comes from {machine}, and Poolhouse can&apos;t check what it does. Copy it only if you trust everyone who uses {machine}.</source>
        <translation>Ein Engine-Paket ist ein Programm, das auf diesem Computer mit Ihren Rechten läuft. Dieses kommt von {machine}, und Poolhouse kann nicht prüfen, was es tut. Kopieren Sie es nur, wenn Sie allen vertrauen, die {machine} benutzen.</translation>
    </message>
    <message>
        <source>An engine pack lets models run on the graphics card.</source>
        <translation>Mit einem Engine-Paket rechnen Modelle auf der Grafikkarte.</translation>
    </message>
    <message>
        <source>Asking the other machines…</source>
        <translation>Die anderen Geräte werden gefragt…</translation>
    </message>
    <message>
        <source>Asking {machine} for the pack…</source>
        <translation>{machine} wird um das Paket gebeten…</translation>
    </message>
    <message>
        <source>Built on {date}: {name}</source>
        <translation>Gebaut am {date}: {name}</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>Abbrechen</translation>
    </message>
    <message>
        <source>Cancel the copy of the engine pack</source>
        <translation>Das Kopieren des Engine-Pakets abbrechen</translation>
    </message>
    <message>
        <source>Switching to another pack…</source>
        <translation>Das Paket wird gewechselt…</translation>
    </message>
    <message>
        <source>Checksum: {hash}</source>
        <translation>Prüfsumme: {hash}</translation>
    </message>
    <message>
        <source>Copied from {machine}.</source>
        <translation>Kopiert von {machine}.</translation>
    </message>
    <message>
        <source>Copy an engine pack</source>
        <translation>Engine-Paket kopieren</translation>
    </message>
    <message>
        <source>Copy and use</source>
        <translation>Kopieren und verwenden</translation>
    </message>
    <message>
        <source>Copy from another machine…</source>
        <translation>Von anderem Gerät kopieren…</translation>
    </message>
    <message>
        <source>Copy of an engine pack</source>
        <translation>Kopie eines Engine-Pakets</translation>
    </message>
    <message>
        <source>Copy {name} from {machine}</source>
        <translation>{name} von {machine} kopieren</translation>
    </message>
    <message>
        <source>Copy {pack} from {machine}</source>
        <translation>{pack} von {machine} kopieren</translation>
    </message>
    <message>
        <source>Copying {name} from {machine}: {done} of {total}</source>
        <translation>{name} wird von {machine} kopiert: {done} von {total}</translation>
    </message>
    <message>
        <source>Copy…</source>
        <translation>Kopieren…</translation>
    </message>
    <message>
        <source>Engine packs (*.tar.gz)</source>
        <translation>Engine-Pakete (*.tar.gz)</translation>
    </message>
    <message>
        <source>Graphics engines</source>
        <translation>Grafik-Engines</translation>
    </message>
    <message>
        <source>Install an engine pack</source>
        <translation>Engine-Paket installieren</translation>
    </message>
    <message>
        <source>Install from file…</source>
        <translation>Aus Datei installieren…</translation>
    </message>
    <message>
        <source>Installing and testing the pack…</source>
        <translation>Das Paket wird installiert und getestet…</translation>
    </message>
    <message>
        <source>This pack is already installed.</source>
        <translation>Dieses Paket ist schon installiert.</translation>
    </message>
    <message>
        <source>No connected machine offers a pack for this computer. A machine offers its packs once you allow copies there: Settings &gt; Models.</source>
        <translation>Kein verbundenes Gerät bietet ein Paket für diesen Computer an. Ein Gerät bietet seine Pakete an, sobald Sie dort Kopien erlauben: Einstellungen &gt; Modelle.</translation>
    </message>
    <message>
        <source>No pack is installed, so models run on the processor.</source>
        <translation>Es ist keines installiert, deshalb rechnen Modelle auf dem Prozessor.</translation>
    </message>
    <message>
        <source>Other machines in your household can give this computer their engine packs.</source>
        <translation>Andere Geräte Ihres Haushalts können diesem Computer ihre Engine-Pakete geben.</translation>
    </message>
    <message>
        <source>Remove</source>
        <translation>Entfernen</translation>
    </message>
    <message>
        <source>Remove the pack {name}</source>
        <translation>Das Paket {name} entfernen</translation>
    </message>
    <message>
        <source>Remove {pack}</source>
        <translation>{pack} entfernen</translation>
    </message>
    <message>
        <source>Remove…</source>
        <translation>Entfernen…</translation>
    </message>
    <message>
        <source>Save an engine pack</source>
        <translation>Engine-Paket speichern</translation>
    </message>
    <message>
        <source>Save to file…</source>
        <translation>In Datei speichern…</translation>
    </message>
    <message>
        <source>Save {pack} to a file</source>
        <translation>{pack} in einer Datei speichern</translation>
    </message>
    <message>
        <source>Saving the pack…</source>
        <translation>Das Paket wird gespeichert…</translation>
    </message>
    <message>
        <source>Test</source>
        <translation>Testen</translation>
    </message>
    <message>
        <source>Test {pack}</source>
        <translation>{pack} testen</translation>
    </message>
    <message>
        <source>Testing the pack…</source>
        <translation>Das Paket wird getestet…</translation>
    </message>
    <message>
        <source>The copy was canceled.</source>
        <translation>Das Kopieren wurde abgebrochen.</translation>
    </message>
    <message>
        <source>The copy was interrupted. Copy the pack again to continue. The part that has arrived is kept.</source>
        <translation>Das Kopieren wurde unterbrochen. Kopieren Sie das Paket noch einmal, um fortzufahren. Was angekommen ist, bleibt erhalten.</translation>
    </message>
    <message>
        <source>The pack was removed.</source>
        <translation>Das Paket wurde entfernt.</translation>
    </message>
    <message>
        <source>The pack was saved as {file}.</source>
        <translation>Das Paket wurde als {file} gespeichert.</translation>
    </message>
    <message>
        <source>The pack&apos;s files will be deleted.</source>
        <translation>Die Dateien des Pakets werden gelöscht.</translation>
    </message>
    <message>
        <source>Use</source>
        <translation>Verwenden</translation>
    </message>
    <message>
        <source>Use previous</source>
        <translation>Vorheriges verwenden</translation>
    </message>
    <message>
        <source>Use the previous pack instead of {pack}</source>
        <translation>Das Paket vor {pack} verwenden</translation>
    </message>
    <message>
        <source>Use {pack}</source>
        <translation>{pack} verwenden</translation>
    </message>
    <message>
        <source>selected, but not in use now</source>
        <translation>ausgewählt, aber gerade nicht in Gebrauch</translation>
    </message>
    <message>
        <source>in use</source>
        <translation>in Gebrauch</translation>
    </message>
    <message>
        <source>installed</source>
        <translation>installiert</translation>
    </message>
    <message>
        <source>not used</source>
        <translation>nicht verwendet</translation>
    </message>
    <message>
        <source>previously used</source>
        <translation>früher verwendet</translation>
    </message>
    <message>
        <source>{machine} copied it from {other}.</source>
        <translation>{machine} hat es von {other} kopiert.</translation>
    </message>
    <message>
        <source>{name} for llama.cpp {version}, {size}, {state}</source>
        <translation>{name} für llama.cpp {version}, {size}, {state}</translation>
    </message>
    <message>
        <source>{name} from {machine} is in use.</source>
        <translation>{name} von {machine} ist in Gebrauch.</translation>
    </message>
    <message>
        <source>{name} from {machine}, {size}</source>
        <translation>{name} von {machine}, {size}</translation>
    </message>
    <message>
        <source>{name} is selected but not in use now.</source>
        <translation>{name} ist ausgewählt, aber gerade nicht in Gebrauch.</translation>
    </message>
    <message>
        <source>{name} is in use.</source>
        <translation>{name} wird verwendet.</translation>
    </message>
    <message>
        <source>{name} passed its test.</source>
        <translation>{name} hat den Test bestanden.</translation>
    </message>
    <message>
        <source>{name}, {size}</source>
        <translation>{name}, {size}</translation>
    </message>
    <message>
        <source>{name}, {size} shared with the processor</source>
        <translation>{name}, {size} gemeinsam mit dem Prozessor</translation>
    </message>
    <message>
        <source>{size} of it is already on this computer.</source>
        <translation>{size} davon sind schon auf diesem Computer.</translation>
    </message>
</context>
<context>
    <name>EraseDialog</name>
    <message>
        <source>Cancel</source>
        <translation>Abbrechen</translation>
    </message>
    <message>
        <source>Delete everything</source>
        <translation>Alles löschen</translation>
    </message>
    <message>
        <source>Delete everything, {size}</source>
        <translation>Alles löschen, {size}</translation>
    </message>
    <message>
        <source>Files that belong to other programs are kept, including the models that Poolhouse used from there. The other machines show this one as offline until one of them removes it.</source>
        <translation>Dateien anderer Programme bleiben erhalten, auch die Modelle, die Poolhouse von dort verwendet hat. Die anderen Geräte zeigen dieses als nicht erreichbar, bis eines von ihnen es entfernt.</translation>
    </message>
    <message>
        <source>This deletes all models, chats, settings, keys and pairings on this computer and quits Poolhouse. It can&apos;t be undone. Before you continue, export any chats you want to keep.</source>
        <translation>Modelle, Chats, Einstellungen, Schlüssel und die Kopplungen dieses Computers werden gelöscht, und Poolhouse wird beendet. Nichts bringt sie zurück: Exportieren Sie vorher Chats, die Sie behalten wollen.</translation>
    </message>
    <message>
        <source>Remove all data</source>
        <translation>Alle Daten löschen</translation>
    </message>
    <message>
        <source>Yes, delete everything</source>
        <translation>Ja, alles löschen</translation>
    </message>
</context>
<context>
    <name>Export</name>
    <message>
        <source>Answer</source>
        <translation>Antwort</translation>
    </message>
    <message>
        <source>Attachment {name}</source>
        <translation>Anhang {name}</translation>
    </message>
    <message>
        <source>New chat</source>
        <translation>Neuer Chat</translation>
    </message>
    <message>
        <source>System message</source>
        <translation>Anweisung (Systemnachricht)</translation>
    </message>
    <message>
        <source>Thinking before the answer</source>
        <translation>Nachgedacht vor der Antwort</translation>
    </message>
    <message>
        <source>Tool call: {tool} of {server}</source>
        <translation>Werkzeug-Aufruf: {tool} von {server}</translation>
    </message>
    <message>
        <source>You</source>
        <translation>Sie</translation>
    </message>
</context>
<context>
    <name>FailureDialog</name>
    <message>
        <source>Close</source>
        <translation>Schließen</translation>
    </message>
    <message>
        <source>Poolhouse can&apos;t start</source>
        <translation>Poolhouse kann nicht starten</translation>
    </message>
</context>
<context>
    <name>Field</name>
    <message>
        <source>Message</source>
        <translation>Nachricht</translation>
    </message>
    <message>
        <source>Message…</source>
        <translation>Nachricht…</translation>
    </message>
</context>
<context>
    <name>FileBudget</name>
    <message>
        <source>Shorten to fit</source>
        <translation>Passend kürzen</translation>
    </message>
    <message>
        <source>The files take up {used} of the {room} tokens available in this chat.</source>
        <translation>Die Dateien belegen {used} von {room} Token, die in diesem Chat Platz haben.</translation>
    </message>
    <message>
        <source>The files take up {used} tokens, but this chat has room for only {room}.</source>
        <translation>Die Dateien brauchen {used} Token, in diesem Chat ist aber nur Platz für {room}.</translation>
    </message>
</context>
<context>
    <name>FileChoice</name>
    <message>
        <source>Quantization</source>
        <translation>Quantisierung</translation>
    </message>
    <message>
        <source>{count} files</source>
        <translation>{count} Dateien</translation>
    </message>
    <message>
        <source>{words} (on this computer)</source>
        <translation>{words} (auf diesem Computer)</translation>
    </message>
    <message>
        <source>{words} (recommended)</source>
        <translation>{words} (empfohlen)</translation>
    </message>
</context>
<context>
    <name>FirstModels</name>
    <message>
        <source> and </source>
        <translation> und </translation>
    </message>
    <message>
        <source>Already on this computer. No download.</source>
        <translation>Schon auf diesem Computer. Kein Download.</translation>
    </message>
    <message>
        <source>Came with Poolhouse. Small, but made for real chats.</source>
        <translation>Kam mit Poolhouse. Klein, führt aber echte Gespräche.</translation>
    </message>
    <message>
        <source>Already downloaded by {app}. No download needed.</source>
        <translation>Schon mit {app} heruntergeladen. Kein Download nötig.</translation>
    </message>
    <message>
        <source>Ready now. Your questions go to {machine}.</source>
        <translation>Sofort bereit. Ihre Fragen gehen an {machine}.</translation>
    </message>
    <message>
        <source>Runs on {machines} together.</source>
        <translation>Läuft gemeinsam auf {machines}.</translation>
    </message>
    <message>
        <source>chat</source>
        <translation>Chat</translation>
    </message>
    <message>
        <source>code</source>
        <translation>Code</translation>
    </message>
    <message>
        <source>{model} for {uses}</source>
        <translation>{model} für {uses}</translation>
    </message>
    <message>
        <source>{model}, loaded on {machine}</source>
        <translation>{model}, geladen auf {machine}</translation>
    </message>
</context>
<context>
    <name>FirstPage</name>
    <message>
        <source>More settings</source>
        <translation>Weitere Einstellungen</translation>
    </message>
    <message>
        <source>Skip the setup</source>
        <translation>Einrichtung überspringen</translation>
    </message>
    <message>
        <source>This computer</source>
        <translation>Dieser Computer</translation>
    </message>
    <message>
        <source>Welcome to Poolhouse</source>
        <translation>Willkommen bei Poolhouse</translation>
    </message>
    <message>
        <source>Your home computers run one AI model together. Your chats stay on this computer; the others only process numbers.</source>
        <translation>Ihre Computer zu Hause rechnen zusammen an einem KI-Modell. Ihre Chats bleiben auf diesem Computer; die anderen verarbeiten nur Zahlen.</translation>
    </message>
</context>
<context>
    <name>ForecastChart</name>
    <message numerus="yes">
        <source>Over %n answer(s), the median forecast error was {first} for the first token and {speed} for the speed.</source>
        <translation>
            <numerusform>Bei %Ln Antwort lag die Prognose beim ersten Token um {first} und bei der Geschwindigkeit um {speed} daneben.</numerusform>
            <numerusform>Im Median von %Ln Antworten lag die Prognose beim ersten Token um {first} und bei der Geschwindigkeit um {speed} daneben.</numerusform>
        </translation>
    </message>
    <message>
        <source>Forecast and result</source>
        <translation>Prognose und Wirklichkeit</translation>
    </message>
    <message>
        <source>a factor of {times}</source>
        <translation>den Faktor {times}</translation>
    </message>
    <message>
        <source>as forecast</source>
        <translation>wie vorhergesagt</translation>
    </message>
    <message>
        <source>faster</source>
        <translation>schneller</translation>
    </message>
    <message>
        <source>slower</source>
        <translation>langsamer</translation>
    </message>
</context>
<context>
    <name>ForecastView</name>
    <message>
        <source>This answer took longer because a machine was lost or replaced.</source>
        <translation>Währenddessen ging ein Gerät verloren oder wurde gewechselt, was einen Teil der Zeit kostete.</translation>
    </message>
    <message>
        <source>These settings have not been measured yet. A ten-second test gives you a forecast.</source>
        <translation>So, wie es hier eingestellt ist, ist es noch nicht gemessen. Ein Test von etwa zehn Sekunden ergibt eine Prognose.</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>Abbrechen</translation>
    </message>
    <message>
        <source>Last answer: {rate}, first token after {first}. The forecast for the same lengths and machines was {rate_before}, first token after {first_before}.</source>
        <translation>Letzte Antwort: {rate}, erstes Token nach {first}. Für genau ihre Eingabe und ihre Länge, auf den Geräten, von denen sie kam, waren {rate_before} und {first_before} vorhergesagt.</translation>
    </message>
    <message>
        <source>Measure again</source>
        <translation>Noch einmal messen</translation>
    </message>
    <message>
        <source>Measure now</source>
        <translation>Jetzt messen</translation>
    </message>
    <message>
        <source>Measuring</source>
        <translation>Messung läuft</translation>
    </message>
    <message>
        <source>Measuring {machine}…</source>
        <translation>{machine} wird gemessen…</translation>
    </message>
    <message>
        <source>Measuring…</source>
        <translation>Wird gemessen…</translation>
    </message>
    <message>
        <source>Not measured yet. A ten-second test gives you a forecast.</source>
        <translation>Noch nicht gemessen. Ein Test von etwa zehn Sekunden ergibt eine Prognose.</translation>
    </message>
    <message>
        <source>When the computer was otherwise idle, answers were {factor} times as fast as forecast.</source>
        <translation>Wenn der Computer sonst nichts tat, waren Antworten {factor}-mal so schnell wie vorhergesagt.</translation>
    </message>
    <message>
        <source>Other programs used {share} of the processor.</source>
        <translation>Andere Programme brauchten {share} des Prozessors.</translation>
    </message>
    <message>
        <source>The figures above apply to a typical request with these settings.</source>
        <translation>Die Zahlen oben gelten für eine übliche Anfrage, so wie es hier eingestellt ist.</translation>
    </message>
    <message>
        <source>What would help</source>
        <translation>Was helfen würde</translation>
    </message>
    <message>
        <source>Why this placement</source>
        <translation>Warum so</translation>
    </message>
    <message>
        <source>first token</source>
        <translation>erstes Token</translation>
    </message>
    <message>
        <source>first token ({count}-token prompt)</source>
        <translation>erstes Token (Eingabe von {count})</translation>
    </message>
    <message>
        <source>forecast</source>
        <translation>Prognose</translation>
    </message>
    <message>
        <source>forecast for {count} simultaneous users</source>
        <translation>Prognose, {count} Personen gleichzeitig</translation>
    </message>
    <message>
        <source>{machine} was busy while it was measured, so this forecast is rough. Poolhouse will measure again when {machine} is idle.</source>
        <translation>{machine} war während der Messung beschäftigt, deshalb ist diese Prognose ungenau. Sobald {machine} nichts zu tun hat, misst Poolhouse noch einmal.</translation>
    </message>
</context>
<context>
    <name>General</name>
    <message>
        <source>Same as system</source>
        <translation>Wie das System</translation>
    </message>
    <message>
        <source>Dark</source>
        <translation>Dunkel</translation>
    </message>
    <message>
        <source>Default: 100%</source>
        <translation>Standard: 100 %</translation>
    </message>
    <message>
        <source>Default: same as system</source>
        <translation>Standard: wie das System</translation>
    </message>
    <message>
        <source>Always</source>
        <translation>Immer</translation>
    </message>
    <message>
        <source>Scales everything in this window.</source>
        <translation>Alles wächst mit.</translation>
    </message>
    <message>
        <source>First steps</source>
        <translation>Erste Schritte</translation>
    </message>
    <message>
        <source>Answers</source>
        <translation>Antworten</translation>
    </message>
    <message>
        <source>Default: on</source>
        <translation>Standard: an</translation>
    </message>
    <message>
        <source>Downloads and pairing</source>
        <translation>Downloads und Koppeln</translation>
    </message>
    <message>
        <source>General</source>
        <translation>Allgemein</translation>
    </message>
    <message>
        <source>Language</source>
        <translation>Sprache</translation>
    </message>
    <message>
        <source>Light</source>
        <translation>Hell</translation>
    </message>
    <message>
        <source>Appearance</source>
        <translation>Aussehen</translation>
    </message>
    <message>
        <source>Lost computers and models</source>
        <translation>Ausfälle</translation>
    </message>
    <message>
        <source>Notifications</source>
        <translation>Benachrichtigungen</translation>
    </message>
    <message>
        <source>Choose a name and a role and pair computers, as on the first launch.</source>
        <translation>Name, Rolle und Kopplung, wie am ersten Tag.</translation>
    </message>
    <message>
        <source>When a computer or model that you use is lost.</source>
        <translation>Wenn ein Computer oder Modell ausfällt, das Sie nutzen.</translation>
    </message>
    <message>
        <source>When a download finishes or a computer is paired.</source>
        <translation>Wenn ein Download fertig ist oder jemand koppelt.</translation>
    </message>
    <message>
        <source>When an answer is ready and this window isn&apos;t in front.</source>
        <translation>Wenn eine Antwort fertig und dieses Fenster nicht vorn ist.</translation>
    </message>
    <message>
        <source>Never</source>
        <translation>Nie</translation>
    </message>
    <message>
        <source>Turns off animations.</source>
        <translation>Nichts bewegt sich oder blendet über.</translation>
    </message>
    <message>
        <source>Reduce motion</source>
        <translation>Bewegung verringern</translation>
    </message>
    <message>
        <source>Show the first steps again</source>
        <translation>Die ersten Schritte noch einmal zeigen</translation>
    </message>
    <message>
        <source>Show them</source>
        <translation>Zeigen</translation>
    </message>
    <message>
        <source>Finish what you have open in this window, then choose the language again.</source>
        <translation>Etwas in diesem Fenster ist noch nicht fertig. Wählen Sie die Sprache danach noch einmal.</translation>
    </message>
    <message>
        <source>Start</source>
        <translation>Start</translation>
    </message>
    <message>
        <source>Start at sign-in, login</source>
        <translation>Start bei der Anmeldung Autostart</translation>
    </message>
    <message>
        <source>Text size</source>
        <translation>Textgröße</translation>
    </message>
    <message>
        <source>Theme</source>
        <translation>Farbschema</translation>
    </message>
</context>
<context>
    <name>GuideHandover</name>
    <message>
        <source>Ask {model}</source>
        <translation>{model} fragen</translation>
    </message>
    <message>
        <source>Choose a model</source>
        <translation>Modell wählen</translation>
    </message>
    <message>
        <source>The Guide knows only Poolhouse. A larger model may know this.</source>
        <translation>Der Guide kennt nur Poolhouse. Ein größeres Modell weiß das vielleicht.</translation>
    </message>
    <message>
        <source>The Guide knows only Poolhouse. Another model is loaded.</source>
        <translation>Der Guide kennt nur Poolhouse. Ein anderes Modell ist geladen.</translation>
    </message>
</context>
<context>
    <name>Hardware</name>
    <message>
        <source>Model disk</source>
        <translation>Datenträger der Modelle</translation>
    </message>
    <message>
        <source>Engine</source>
        <translation>Rechenprogramm</translation>
    </message>
    <message>
        <source>Graphics</source>
        <translation>Grafik</translation>
    </message>
    <message>
        <source>Memory</source>
        <translation>Arbeitsspeicher</translation>
    </message>
    <message>
        <source>Models folder</source>
        <translation>Modelle liegen in</translation>
    </message>
    <message>
        <source>No card in use; models run on the processor</source>
        <translation>Keine Karte in Gebrauch; Modelle laufen auf dem Prozessor</translation>
    </message>
    <message>
        <source>Processor</source>
        <translation>Prozessor</translation>
    </message>
    <message>
        <source>System</source>
        <translation>System</translation>
    </message>
    <message>
        <source>Temperature</source>
        <translation>Temperatur</translation>
    </message>
    <message>
        <source>{free} free of {total}</source>
        <translation>{free} von {total} frei</translation>
    </message>
    <message>
        <source>This machine computes a layer of {model} in {layer}. Alone, it would write at about {rate} and read prompts at about {prefill}.</source>
        <translation>Dieses Gerät berechnet eine Schicht von {model} in {layer}. Allein würde es mit etwa {rate} schreiben und Eingaben mit etwa {prefill} lesen.</translation>
    </message>
    <message>
        <source>{name} ({size}, {api}) runs the models</source>
        <translation>{name} ({size}, {api}) rechnet für die Modelle</translation>
    </message>
    <message>
        <source>{name} cannot be used: {why}.</source>
        <translation>{name} kann nicht genutzt werden: {why}.</translation>
    </message>
    <message numerus="yes">
        <source>{name}, %n core(s)</source>
        <translation>
            <numerusform>{name}, %Ln Kern</numerusform>
            <numerusform>{name}, %Ln Kerne</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>{name}, %n core(s), {threads} used for models</source>
        <translation>
            <numerusform>{name}, %Ln Kern, davon rechnen {threads}</numerusform>
            <numerusform>{name}, %Ln Kerne, davon rechnen {threads}</numerusform>
        </translation>
    </message>
    <message>
        <source>{name}: {why}</source>
        <translation>{name}: {why}</translation>
    </message>
</context>
<context>
    <name>HardwareCard</name>
    <message>
        <source>Checking the hardware…</source>
        <translation>Die Rechenprogramme werden gefragt, was sie finden…</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>Abbrechen</translation>
    </message>
    <message>
        <source>The speed couldn&apos;t be measured now. Try again when no answer is in progress.</source>
        <translation>Die Messung war gerade nicht möglich. Versuchen Sie es erneut, wenn keine Antwort läuft.</translation>
    </message>
    <message>
        <source>The model&apos;s speed hasn&apos;t been measured yet.</source>
        <translation>Die Geschwindigkeit ist noch nicht gemessen.</translation>
    </message>
    <message>
        <source>Measure speed</source>
        <translation>Geschwindigkeit messen</translation>
    </message>
    <message>
        <source>Not measured yet.</source>
        <translation>Noch nicht gemessen.</translation>
    </message>
    <message>
        <source>Progress of the measurement</source>
        <translation>Fortschritt der Messung</translation>
    </message>
    <message>
        <source>Details appear when the background service is running.</source>
        <translation>Wird gezeigt, sobald der Hintergrunddienst läuft.</translation>
    </message>
    <message>
        <source>Hardware of this machine</source>
        <translation>Dieses Gerät hat</translation>
    </message>
</context>
<context>
    <name>HardwareRow</name>
    <message>
        <source>Runs models on</source>
        <translation>Modelle laufen auf</translation>
    </message>
    <message>
        <source>Disk for models</source>
        <translation>Speicherplatz für Modelle</translation>
    </message>
    <message>
        <source>Memory</source>
        <translation>Arbeitsspeicher</translation>
    </message>
    <message>
        <source>Checking…</source>
        <translation>Wird geprüft…</translation>
    </message>
    <message>
        <source>That is not much space for models. Another disk on this computer may have more.</source>
        <translation>Das ist wenig für Modelle. Eine andere Festplatte dieses Computers hat vielleicht mehr Platz.</translation>
    </message>
    <message>
        <source>The disk could not be read</source>
        <translation>Der Datenträger konnte nicht gelesen werden</translation>
    </message>
    <message>
        <source>{free} free</source>
        <translation>{free} frei</translation>
    </message>
    <message>
        <source>{free} of {total} free</source>
        <translation>{free} von {total} frei</translation>
    </message>
</context>
<context>
    <name>Headline</name>
    <message>
        <source>Cancel</source>
        <translation>Abbrechen</translation>
    </message>
    <message>
        <source>Testing the model</source>
        <translation>Es wird geprüft, ob das Modell antwortet</translation>
    </message>
    <message>
        <source>Choose a model</source>
        <translation>Modell wählen</translation>
    </message>
    <message>
        <source>Forecast: {forecast}, first token after {first} ({count}-token prompt). No answer measured yet.</source>
        <translation>Prognose {forecast}, erstes Token nach {first} (Eingabe von {count}). Noch keine Antwort gemessen.</translation>
    </message>
    <message>
        <source>Forecast: {forecast}. No answer measured yet.</source>
        <translation>Prognose {forecast}. Noch keine Antwort gemessen.</translation>
    </message>
    <message>
        <source>Last answer: {fact}. Forecast: {forecast}.</source>
        <translation>Letzte Antwort {fact}, Prognose {forecast}.</translation>
    </message>
    <message>
        <source>Load again</source>
        <translation>Erneut laden</translation>
    </message>
    <message>
        <source>Loading</source>
        <translation>Lädt</translation>
    </message>
    <message>
        <source>Loading {model}</source>
        <translation>{model} wird geladen</translation>
    </message>
    <message>
        <source>Measure speeds</source>
        <translation>Geschwindigkeiten messen</translation>
    </message>
    <message>
        <source>Measuring…</source>
        <translation>Wird gemessen…</translation>
    </message>
    <message>
        <source>No forecast.</source>
        <translation>Keine Prognose.</translation>
    </message>
    <message>
        <source>No forecast: the model was loaded before its speed was measured.</source>
        <translation>Keine Prognose: Das Modell wurde geladen, bevor seine Geschwindigkeit hier gemessen war.</translation>
    </message>
    <message>
        <source>No forecast yet: the model&apos;s speed hasn&apos;t been measured.</source>
        <translation>Keine Prognose: Die Geschwindigkeit ist hier noch nicht gemessen.</translation>
    </message>
    <message>
        <source>No machine is available to answer</source>
        <translation>Kein Gastgeber ist da, der antwortet</translation>
    </message>
    <message>
        <source>No model is loaded</source>
        <translation>Es ist kein Modell geladen</translation>
    </message>
    <message>
        <source>Preparing</source>
        <translation>Wird vorbereitet</translation>
    </message>
    <message>
        <source>Ready. Answers come from {machine}</source>
        <translation>Bereit. Antworten kommen von {machine}</translation>
    </message>
    <message>
        <source>Ready. {model} {where}</source>
        <translation>Bereit. {model} {where}</translation>
    </message>
    <message>
        <source>This includes the time it took to replace a lost machine.</source>
        <translation>Währenddessen ging ein Gerät verloren oder wurde gewechselt, was einen Teil der Zeit kostete.</translation>
    </message>
    <message>
        <source>The model&apos;s memory is being freed.</source>
        <translation>Es gibt seinen Speicher zurück.</translation>
    </message>
    <message>
        <source>Ready. {model} will answer</source>
        <translation>Bereit. {model} antwortet</translation>
    </message>
    <message>
        <source>The next question will load it again.</source>
        <translation>Die nächste Frage lädt es wieder.</translation>
    </message>
    <message>
        <source>Unload</source>
        <translation>Entladen</translation>
    </message>
    <message>
        <source>Unload {model}</source>
        <translation>{model} entladen</translation>
    </message>
    <message>
        <source>What would help</source>
        <translation>Was helfen würde</translation>
    </message>
    <message>
        <source>extracting layers</source>
        <translation>Schichten werden entnommen</translation>
    </message>
    <message>
        <source>loading layers</source>
        <translation>Schichten werden geladen</translation>
    </message>
    <message numerus="yes">
        <source>on %n machine(s)</source>
        <translation>
            <numerusform>auf %Ln Gerät</numerusform>
            <numerusform>auf %Ln Geräten</numerusform>
        </translation>
    </message>
    <message>
        <source>on this machine</source>
        <translation>auf diesem Gerät</translation>
    </message>
    <message>
        <source>receiving layers</source>
        <translation>Schichten werden empfangen</translation>
    </message>
    <message numerus="yes">
        <source>split, with a full copy on %n more machine(s)</source>
        <translation>
            <numerusform>geteilt und ganz auf %Ln weiteren Gerät</numerusform>
            <numerusform>geteilt und ganz auf %Ln weiteren Geräten</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>with a full copy on each of %n machine(s)</source>
        <translation>
            <numerusform>ganz auf %Ln Gerät</numerusform>
            <numerusform>ganz auf jedem von %Ln Geräten</numerusform>
        </translation>
    </message>
    <message>
        <source>{model} could not be loaded</source>
        <translation>{model} ließ sich nicht laden</translation>
    </message>
    <message>
        <source>{model} fits.</source>
        <translation>{model} passt.</translation>
    </message>
    <message>
        <source>{model} fits. Its speed hasn&apos;t been measured yet.</source>
        <translation>{model} passt. Die Geschwindigkeit ist hier noch nicht gemessen.</translation>
    </message>
    <message>
        <source>{model} is being rebuilt</source>
        <translation>{model} wird neu aufgebaut</translation>
    </message>
    <message>
        <source>Stopping {model}</source>
        <translation>{model} wird beendet</translation>
    </message>
    <message>
        <source>{model} is not loaded now</source>
        <translation>{model} ist zurzeit nicht geladen</translation>
    </message>
    <message>
        <source>{model} stopped unexpectedly</source>
        <translation>{model} ist verloren gegangen</translation>
    </message>
    <message>
        <source>{model} would run at {speed}, with the first token after {first} ({count}-token prompt).</source>
        <translation>{model} würde mit {speed} laufen, das erste Token käme nach {first} (Eingabe von {count}).</translation>
    </message>
    <message>
        <source>{model} would run at {speed}.</source>
        <translation>{model} würde mit {speed} laufen.</translation>
    </message>
</context>
<context>
    <name>HoursCard</name>
    <message>
        <source>As text</source>
        <translation>Als Text</translation>
    </message>
    <message>
        <source>Hours as text</source>
        <translation>Stunden als Text</translation>
    </message>
    <message>
        <source>Select at least one hour, or turn lending off above.</source>
        <translation>Lassen Sie mindestens eine Stunde übrig oder schalten Sie oben den Verleih aus.</translation>
    </message>
    <message>
        <source>Lends at any hour.</source>
        <translation>Verleiht zu jeder Stunde.</translation>
    </message>
    <message>
        <source>Nights</source>
        <translation>Nachts</translation>
    </message>
    <message>
        <source>Nights and weekends</source>
        <translation>Nachts und am Wochenende</translation>
    </message>
    <message>
        <source>Lending is not allowed now.</source>
        <translation>Jetzt wird nicht verliehen.</translation>
    </message>
    <message>
        <source>Lending is allowed now.</source>
        <translation>Jetzt darf verliehen werden.</translation>
    </message>
    <message>
        <source>Only at certain hours</source>
        <translation>Nur zu bestimmten Stunden</translation>
    </message>
    <message>
        <source>There are too many short time ranges. Use longer ones.</source>
        <translation>Das ist zu fein unterteilt. Nehmen Sie längere Zeiträume.</translation>
    </message>
    <message>
        <source>The table shows only whole hours. The text is exact.</source>
        <translation>Die Tabelle zeigt nur ganze Stunden; der Text ist genau.</translation>
    </message>
</context>
<context>
    <name>Household</name>
    <message>
        <source>Add a machine…</source>
        <translation>Gerät hinzufügen…</translation>
    </message>
    <message>
        <source>Address</source>
        <translation>Adresse</translation>
    </message>
    <message>
        <source>Age</source>
        <translation>Alter</translation>
    </message>
    <message>
        <source>Also removed: {others}.</source>
        <translation>Damit wurden auch entfernt: {others}.</translation>
    </message>
    <message>
        <source>Another machine</source>
        <translation>Ein anderes Gerät</translation>
    </message>
    <message>
        <source>Incoming</source>
        <translation>Zurück</translation>
    </message>
    <message>
        <source>Between</source>
        <translation>Zwischen</translation>
    </message>
    <message>
        <source>Via</source>
        <translation>Über</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>Abbrechen</translation>
    </message>
    <message>
        <source>Connection</source>
        <translation>Über</translation>
    </message>
    <message>
        <source>Change</source>
        <translation>Ändern</translation>
    </message>
    <message>
        <source>Choose the network connection to use. A loaded model keeps its connections until you load it again.</source>
        <translation>Wählen Sie, welcher Anschluss dieses Computers den Verkehr trägt. Ein geladenes Modell behält seine Verbindungen, bis es neu geladen wird.</translation>
    </message>
    <message>
        <source>Close</source>
        <translation>Schließen</translation>
    </message>
    <message>
        <source>Computing</source>
        <translation>Rechnet</translation>
    </message>
    <message>
        <source>Connection to {name}</source>
        <translation>Der Weg zu {name}</translation>
    </message>
    <message>
        <source>Device</source>
        <translation>Rechnet mit</translation>
    </message>
    <message>
        <source>Finishing</source>
        <translation>Bringt zu Ende</translation>
    </message>
    <message>
        <source>Engine</source>
        <translation>Rechenprogramm</translation>
    </message>
    <message>
        <source>Guest</source>
        <translation>Gast</translation>
    </message>
    <message>
        <source>Holds</source>
        <translation>Hält</translation>
    </message>
    <message>
        <source>Host</source>
        <translation>Gastgeber</translation>
    </message>
    <message>
        <source>Household</source>
        <translation>Haushalt</translation>
    </message>
    <message>
        <source>Identity</source>
        <translation>Identität</translation>
    </message>
    <message>
        <source>The removed machine loses access immediately. Machines that are turned off learn of the removal the next time they connect.</source>
        <translation>Es wird sofort getrennt. Geräte, die aus sind, erfahren davon, sobald sie das nächste Mal ein anderes erreichen.</translation>
    </message>
    <message>
        <source>Pair another machine with a six-digit code.</source>
        <translation>Es wird mit einem sechsstelligen Code gekoppelt.</translation>
    </message>
    <message>
        <source>The key proves this machine&apos;s identity to the other machines. It never leaves this computer.</source>
        <translation>Er weist den anderen nach, wer dieses Gerät ist, und verlässt diesen Computer nie.</translation>
    </message>
    <message>
        <source>Keep: {added}</source>
        <translation>Behalten: {added}</translation>
    </message>
    <message>
        <source>Key of this machine</source>
        <translation>Schlüssel dieses Geräts</translation>
    </message>
    <message>
        <source>Last seen {when}.</source>
        <translation>Zuletzt gesehen: {when}.</translation>
    </message>
    <message>
        <source>Layers</source>
        <translation>Schichten</translation>
    </message>
    <message>
        <source>Left out</source>
        <translation>Ausgelassen</translation>
    </message>
    <message>
        <source>Lend only</source>
        <translation>Nur verleihen</translation>
    </message>
    <message>
        <source>Lends nothing</source>
        <translation>Verleiht nichts</translation>
    </message>
    <message>
        <source>Loaded</source>
        <translation>Geladen</translation>
    </message>
    <message>
        <source>Looking for this computer&apos;s network interfaces…</source>
        <translation>Die Anschlüsse dieses Computers werden gesucht…</translation>
    </message>
    <message>
        <source>Machine</source>
        <translation>Gerät</translation>
    </message>
    <message>
        <source>In theory, paired machines could reconstruct what you type from the numbers that they process. Pair only machines that you trust.</source>
        <translation>Geräte eines Haushalts können im Prinzip aus den Zahlen, die sie verarbeiten, erschließen, was geschrieben wird. Koppeln Sie nur Geräte, denen Sie vertrauen.</translation>
    </message>
    <message>
        <source>Permissions</source>
        <translation>Darf</translation>
    </message>
    <message>
        <source>Measured</source>
        <translation>Gemessen</translation>
    </message>
    <message>
        <source>Measured {when}</source>
        <translation>Gemessen {when}</translation>
    </message>
    <message>
        <source>Members</source>
        <translation>Mitglieder</translation>
    </message>
    <message>
        <source>Members, machines, roles, remove</source>
        <translation>Mitglieder Geräte Rollen entfernen</translation>
    </message>
    <message>
        <source>Memory</source>
        <translation>Speicher</translation>
    </message>
    <message>
        <source>Models of up to {size} fit on this machine now.</source>
        <translation>Jetzt passen Modelle bis {size} darauf.</translation>
    </message>
    <message>
        <source>Models of up to {size} fit on this machine now. Others can use at most {lent} of this memory.</source>
        <translation>Jetzt passen Modelle bis {size} darauf; andere dürfen davon höchstens {lent} nutzen.</translation>
    </message>
    <message>
        <source>Name</source>
        <translation>Name</translation>
    </message>
    <message>
        <source>Network</source>
        <translation>Netzwerk</translation>
    </message>
    <message>
        <source>Share of answer time</source>
        <translation>Anteil an der Antwortzeit</translation>
    </message>
    <message>
        <source>Offline</source>
        <translation>Nicht erreichbar</translation>
    </message>
    <message>
        <source>Paused</source>
        <translation>Pausiert</translation>
    </message>
    <message>
        <source>Power</source>
        <translation>Leistung</translation>
    </message>
    <message>
        <source>Preferred</source>
        <translation>Bevorzugt</translation>
    </message>
    <message>
        <source>Processor</source>
        <translation>Prozessor</translation>
    </message>
    <message>
        <source>Ready</source>
        <translation>Bereit</translation>
    </message>
    <message>
        <source>Also remove: {added}</source>
        <translation>Auch entfernen: {added}</translation>
    </message>
    <message>
        <source>Remove {name}</source>
        <translation>{name} entfernen</translation>
    </message>
    <message>
        <source>Remove {name} from the household</source>
        <translation>{name} aus dem Haushalt entfernen</translation>
    </message>
    <message>
        <source>Remove…</source>
        <translation>Entfernen…</translation>
    </message>
    <message>
        <source>Rename</source>
        <translation>Umbenennen</translation>
    </message>
    <message>
        <source>Rename {name}</source>
        <translation>{name} umbenennen</translation>
    </message>
    <message>
        <source>Permissions…</source>
        <translation>Rollen…</translation>
    </message>
    <message>
        <source>Round trip</source>
        <translation>Laufzeit</translation>
    </message>
    <message>
        <source>Runs Poolhouse {version}</source>
        <translation>Poolhouse {version} läuft darauf</translation>
    </message>
    <message>
        <source>Save</source>
        <translation>Speichern</translation>
    </message>
    <message>
        <source>State</source>
        <translation>Zustand</translation>
    </message>
    <message>
        <source>Testing…</source>
        <translation>Wird getestet…</translation>
    </message>
    <message>
        <source>Unnamed machine</source>
        <translation>Ein Gerät ohne Namen</translation>
    </message>
    <message>
        <source>Leave the household</source>
        <translation>Haushalt verlassen</translation>
    </message>
    <message>
        <source>Leave…</source>
        <translation>Verlassen…</translation>
    </message>
    <message>
        <source>You excluded this machine.</source>
        <translation>Sie haben dieses Gerät ausgeschlossen.</translation>
    </message>
    <message>
        <source>Link</source>
        <translation>Verbindung</translation>
    </message>
    <message>
        <source>Not seen by this computer yet.</source>
        <translation>Von diesem Computer noch nicht gesehen.</translation>
    </message>
    <message>
        <source>Transfer time</source>
        <translation>Unterwegs</translation>
    </message>
    <message>
        <source>To stop this machine from changing the household, remove it.</source>
        <translation>Das Recht, den Haushalt zu ändern, verliert es nur, wenn es entfernt wird.</translation>
    </message>
    <message>
        <source>Removing {name} does not delete the model layers on its disk or anything it has already seen. To rejoin, the machine needs a new identity and a new code.</source>
        <translation>Das Entfernen macht nicht ungeschehen, was {name} bereits gesehen hat, und die Schichten der Modelle bleiben dort auf dem Datenträger. Um zurückzukommen, braucht das Gerät eine neue Identität und einen neuen Code.</translation>
    </message>
    <message>
        <source>Share</source>
        <translation>Anteil</translation>
    </message>
    <message>
        <source>Speed</source>
        <translation>Tempo</translation>
    </message>
    <message>
        <source>Outgoing</source>
        <translation>Hin</translation>
    </message>
    <message>
        <source>This machine</source>
        <translation>Dieses Gerät</translation>
    </message>
    <message>
        <source>This machine can&apos;t change the household.</source>
        <translation>Dieses Gerät darf den Haushalt nicht ändern.</translation>
    </message>
    <message>
        <source>This machine can&apos;t change the household. Make the change on {names}.</source>
        <translation>Dieses Gerät darf den Haushalt nicht ändern. Tun Sie es auf {names}.</translation>
    </message>
    <message>
        <source>This machine, host</source>
        <translation>Dieses Gerät, Gastgeber</translation>
    </message>
    <message>
        <source>Thunderbolt</source>
        <translation>Thunderbolt</translation>
    </message>
    <message>
        <source>To {name}</source>
        <translation>Zu {name}</translation>
    </message>
    <message>
        <source>Use and test</source>
        <translation>Benutzen und testen</translation>
    </message>
    <message>
        <source>Use models</source>
        <translation>Modelle nutzen</translation>
    </message>
    <message>
        <source>Use models and lend</source>
        <translation>Modelle nutzen und Speicher verleihen</translation>
    </message>
    <message>
        <source>Use models only</source>
        <translation>Nur Modelle nutzen</translation>
    </message>
    <message>
        <source>Use, lend, and add or remove machines</source>
        <translation>Nutzen, verleihen, Geräte verwalten</translation>
    </message>
    <message>
        <source>Used by</source>
        <translation>Genutzt von</translation>
    </message>
    <message>
        <source>Used by the model</source>
        <translation>Vom Modell genutzt</translation>
    </message>
    <message>
        <source>Used / lent</source>
        <translation>Belegt/verliehen</translation>
    </message>
    <message>
        <source>Uses models</source>
        <translation>Nutzt Modelle</translation>
    </message>
    <message>
        <source>VPN</source>
        <translation>VPN</translation>
    </message>
    <message>
        <source>Version</source>
        <translation>Version</translation>
    </message>
    <message>
        <source>This limits how much memory others can use. Models that you load here may use more.</source>
        <translation>Was es verleiht, ist die Grenze für andere; ein Modell, das Sie hier laden, darf mehr belegen.</translation>
    </message>
    <message>
        <source>Permissions for {name}</source>
        <translation>Was {name} darf</translation>
    </message>
    <message>
        <source>Fastest available</source>
        <translation>Der jeweils schnellste</translation>
    </message>
    <message>
        <source>Wi-Fi</source>
        <translation>WLAN</translation>
    </message>
    <message>
        <source>Working</source>
        <translation>Arbeitet</translation>
    </message>
    <message>
        <source>its own model</source>
        <translation>ein eigenes Modell</translation>
    </message>
    <message>
        <source>at most {rate} Mbit/s</source>
        <translation>höchstens {rate} Mbit/s</translation>
    </message>
    <message>
        <source>cable</source>
        <translation>Kabel</translation>
    </message>
    <message>
        <source>holds {used}</source>
        <translation>belegt {used}</translation>
    </message>
    <message>
        <source>host</source>
        <translation>Gastgeber</translation>
    </message>
    <message>
        <source>unknown type</source>
        <translation>Art unbekannt</translation>
    </message>
    <message>
        <source>layers for another machine</source>
        <translation>Schichten für ein anderes Gerät</translation>
    </message>
    <message>
        <source>layers for {names}</source>
        <translation>Schichten für {names}</translation>
    </message>
    <message>
        <source>layers {runs}</source>
        <translation>Schichten {runs}</translation>
    </message>
    <message>
        <source>lends nothing</source>
        <translation>verleiht nichts</translation>
    </message>
    <message>
        <source>lends {lent}</source>
        <translation>verleiht {lent}</translation>
    </message>
    <message>
        <source>no layers</source>
        <translation>keine Schichten</translation>
    </message>
    <message>
        <source>nobody</source>
        <translation>niemand</translation>
    </message>
    <message>
        <source>no other machine</source>
        <translation>sonst niemand</translation>
    </message>
    <message>
        <source>none</source>
        <translation>keine</translation>
    </message>
    <message>
        <source>unknown</source>
        <translation>nicht bekannt</translation>
    </message>
    <message>
        <source>not measured</source>
        <translation>nicht gemessen</translation>
    </message>
    <message>
        <source>layers of {names}</source>
        <translation>Schichten von {names}</translation>
    </message>
    <message>
        <source>not yet</source>
        <translation>noch nicht</translation>
    </message>
    <message>
        <source>scores texts with {model}</source>
        <translation>bewertet Texte mit {model}</translation>
    </message>
    <message>
        <source>creates embeddings with {model}</source>
        <translation>Vektoren mit {model}</translation>
    </message>
    <message>
        <source>Another machine already has this name, so this one is now called {name}.</source>
        <translation>Dort heißt schon ein anderes Gerät so wie dieses; dieses heißt ab jetzt {name}.</translation>
    </message>
    <message>
        <source>Computed by</source>
        <translation>Rechnet mit</translation>
    </message>
    <message>
        <source>For other computers</source>
        <translation>Für andere Computer</translation>
    </message>
    <message>
        <source>You joined {name}’s household</source>
        <translation>Dem Haushalt von {name} beigetreten</translation>
    </message>
    <message>
        <source>You joined {name}’s household: +{size}</source>
        <translation>Dem Haushalt von {name} beigetreten: +{size}</translation>
    </message>
    <message numerus="yes">
        <source>whole model: %n answer(s)</source>
        <translation>
            <numerusform>ganzes Modell: %Ln Antwort</numerusform>
            <numerusform>ganzes Modell: %Ln Antworten</numerusform>
        </translation>
    </message>
    <message>
        <source>whole model: being rebuilt</source>
        <translation>ganzes Modell: wird neu aufgebaut</translation>
    </message>
    <message>
        <source>whole model: idle</source>
        <translation>ganzes Modell: untätig</translation>
    </message>
    <message>
        <source>whole model: lost</source>
        <translation>ganzes Modell: verloren</translation>
    </message>
    <message>
        <source>{age} ago</source>
        <translation>vor {age}</translation>
    </message>
    <message>
        <source>{days} d</source>
        <translation>{days} Tg.</translation>
    </message>
    <message>
        <source>{interface}, not connected now</source>
        <translation>{interface}, jetzt nicht verbunden</translation>
    </message>
    <message>
        <source>{kind} (not the fastest option)</source>
        <translation>{kind}, nicht der beste Weg</translation>
    </message>
    <message>
        <source>{lent} lent, {own} used here</source>
        <translation>{lent} verliehen, {own} selbst</translation>
    </message>
    <message>
        <source>{median} (95% under {slow})</source>
        <translation>{median}, 19 von 20 unter {slow}</translation>
    </message>
    <message>
        <source>{memory}; {total} total</source>
        <translation>{memory}; insgesamt hat es {total}</translation>
    </message>
    <message>
        <source>{model}: {layers}</source>
        <translation>{model}: {layers}</translation>
    </message>
    <message>
        <source>{name} joined</source>
        <translation>{name} ist dabei</translation>
    </message>
    <message>
        <source>{name} joined: +{size}</source>
        <translation>{name} ist dabei: +{size}</translation>
    </message>
    <message>
        <source>{part} lent</source>
        <translation>{part} verliehen</translation>
    </message>
    <message>
        <source>{percent} of the answer time</source>
        <translation>{percent} der Antwortzeit</translation>
    </message>
    <message>
        <source>{percent}, main bottleneck</source>
        <translation>{percent}, bremst am meisten</translation>
    </message>
    <message>
        <source>{size} total</source>
        <translation>{size} insgesamt</translation>
    </message>
    <message>
        <source>{was} is now called {now}.</source>
        <translation>{was} heißt jetzt {now}.</translation>
    </message>
    <message>
        <source>same computer</source>
        <translation>derselbe Computer</translation>
    </message>
    <message>
        <source>Use this if this computer was removed from its household, is a copy of another one, or moves to another household. All its pairings end, but models and chats are kept. The old identity is saved next to the new one.</source>
        <translation>Für einen Computer, der aus dem Haushalt entfernt wurde, die Kopie eines anderen ist oder den Haushalt wechselt. Alle Kopplungen dieses Geräts enden; Modelle und Chats bleiben. Die alte Identität wird neben der neuen aufgehoben.</translation>
    </message>
    <message>
        <source>Saved. Takes effect once {name} is connected.</source>
        <translation>Die Wahl für {name} ist gespeichert und gilt, sobald es verbunden ist.</translation>
    </message>
    <message>
        <source>Total</source>
        <translation>Gesamt</translation>
    </message>
    <message>
        <source>Traffic to {name} now uses {interface} ({speed}).</source>
        <translation>Der Verkehr zu {name} geht jetzt über {interface}: {speed}.</translation>
    </message>
    <message>
        <source>this machine</source>
        <translation>dieses Gerät</translation>
    </message>
    <message>
        <source>used by {names}</source>
        <translation>genutzt von {names}</translation>
    </message>
    <message>
        <source>virtual</source>
        <translation>virtuell</translation>
    </message>
    <message>
        <source>whole model: finishing</source>
        <translation>ganzes Modell: geht</translation>
    </message>
    <message>
        <source>{here} here, {there} on the other machine</source>
        <translation>{here}, dort {there}</translation>
    </message>
    <message>
        <source>{name} added {added} to the household. What do you want to do?</source>
        <translation>{name} hat {added} zum Haushalt hinzugefügt. Was soll damit geschehen?</translation>
    </message>
    <message>
        <source>{name} is no longer part of the household.</source>
        <translation>{name} gehört nicht mehr zum Haushalt.</translation>
    </message>
    <message>
        <source>{name} now has these permissions: {roles}.</source>
        <translation>{name} darf jetzt: {roles}.</translation>
    </message>
    <message>
        <source>{out} outgoing, {back} incoming</source>
        <translation>{out} hin, {back} zurück</translation>
    </message>
    <message>
        <source>{percent}, good</source>
        <translation>{percent}, gut</translation>
    </message>
    <message>
        <source>{percent}, noticeable</source>
        <translation>{percent}, spürbar</translation>
    </message>
    <message>
        <source>{size} used by the model</source>
        <translation>{size} vom Modell genutzt</translation>
    </message>
    <message>
        <source>{token} per token, {chunk} per {count} prompt tokens</source>
        <translation>{token} je Token, {chunk} für {count} Token einer Eingabe</translation>
    </message>
    <message>
        <source>{used} of {lent}</source>
        <translation>{used} von {lent}</translation>
    </message>
</context>
<context>
    <name>HouseholdPicture</name>
    <message>
        <source>One more</source>
        <translation>Noch einer</translation>
    </message>
    <message>
        <source>Nearby</source>
        <translation>In der Nähe</translation>
    </message>
    <message>
        <source>Nearby: {names}.</source>
        <translation>In der Nähe: {names}.</translation>
    </message>
    <message>
        <source>Together: {size}.</source>
        <translation>Zusammen: {size}.</translation>
    </message>
    <message>
        <source>Your household: {names}.</source>
        <translation>Ihr Haushalt: {names}.</translation>
    </message>
    <message>
        <source>can join</source>
        <translation>kann mitmachen</translation>
    </message>
    <message>
        <source>showing a code</source>
        <translation>zeigt einen Code</translation>
    </message>
</context>
<context>
    <name>HouseholdViews</name>
    <message>
        <source>Show log</source>
        <translation>Sein Protokoll zeigen</translation>
    </message>
    <message>
        <source>Your household will appear when the background service responds.</source>
        <translation>Der Haushalt wird angezeigt, sobald der Hintergrunddienst antwortet.</translation>
    </message>
    <message>
        <source>Waiting for the background service</source>
        <translation>Warten auf den Hintergrunddienst</translation>
    </message>
</context>
<context>
    <name>ImportExportPanel</name>
    <message numerus="yes">
        <source>%n chat(s) exported to {name}.</source>
        <translation>
            <numerusform>%Ln Chat nach {name} exportiert.</numerusform>
            <numerusform>%Ln Chats nach {name} exportiert.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n chat(s) imported.</source>
        <translation>
            <numerusform>%Ln Chat importiert.</numerusform>
            <numerusform>%Ln Chats importiert.</numerusform>
        </translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>Abbrechen</translation>
    </message>
    <message>
        <source>Chats</source>
        <translation>Chats</translation>
    </message>
    <message>
        <source>Export as {form}</source>
        <translation>Als {form} exportieren</translation>
    </message>
    <message numerus="yes">
        <source>Exporting %n chat(s)…</source>
        <translation>
            <numerusform>%Ln Chat wird exportiert…</numerusform>
            <numerusform>%Ln Chats werden exportiert…</numerusform>
        </translation>
    </message>
    <message>
        <source>Import chats</source>
        <translation>Chats importieren</translation>
    </message>
    <message numerus="yes">
        <source>Importing %n chat(s)…</source>
        <translation>
            <numerusform>%Ln Chat wird importiert…</numerusform>
            <numerusform>%Ln Chats werden importiert…</numerusform>
        </translation>
    </message>
    <message>
        <source>Reading {name}…</source>
        <translation>{name} wird gelesen…</translation>
    </message>
    <message>
        <source>Show folder</source>
        <translation>Ordner anzeigen</translation>
    </message>
    <message>
        <source>Undo</source>
        <translation>Rückgängig</translation>
    </message>
    <message>
        <source>Another file is still being read. Try again when it&apos;s done.</source>
        <translation>Warten Sie, bis die andere Datei fertig ist.</translation>
    </message>
</context>
<context>
    <name>Inspector</name>
    <message>
        <source>Close details</source>
        <translation>Details schließen</translation>
    </message>
    <message>
        <source>Details</source>
        <translation>Details</translation>
    </message>
    <message>
        <source>Use {interface}</source>
        <translation>{interface} benutzen</translation>
    </message>
</context>
<context>
    <name>InterfaceList</name>
    <message>
        <source>In use</source>
        <translation>In Gebrauch</translation>
    </message>
    <message>
        <source>Not connected</source>
        <translation>Nicht verbunden</translation>
    </message>
    <message>
        <source>This computer isn&apos;t on a network.</source>
        <translation>Dieser Computer ist mit keinem Netzwerk verbunden.</translation>
    </message>
    <message>
        <source>Use {name}</source>
        <translation>{name} verwenden</translation>
    </message>
</context>
<context>
    <name>JoinForm</name>
    <message>
        <source>Address</source>
        <translation>Adresse</translation>
    </message>
    <message>
        <source>Code</source>
        <translation>Code</translation>
    </message>
    <message>
        <source>Enter the address and the six-digit code.</source>
        <translation>Es braucht die Adresse und die sechs Ziffern des Codes.</translation>
    </message>
    <message>
        <source>Enter the address shown next to the code.</source>
        <translation>Geben Sie die Adresse ein, die neben dem Code steht.</translation>
    </message>
    <message>
        <source>Find out why</source>
        <translation>Grund suchen</translation>
    </message>
    <message>
        <source>Finding nearby machines is turned off in Settings.</source>
        <translation>Hier wird nicht nach Geräten in der Nähe gesucht. So ist es in den Einstellungen gewählt.</translation>
    </message>
    <message>
        <source>For example 192.168.1.20:4242</source>
        <translation>Zum Beispiel 192.168.1.20:4242</translation>
    </message>
    <message>
        <source>Households nearby</source>
        <translation>Haushalte in der Nähe</translation>
    </message>
    <message>
        <source>Nearby</source>
        <translation>In der Nähe</translation>
    </message>
    <message>
        <source>No nearby machine is showing a code right now.</source>
        <translation>In der Nähe nimmt gerade niemand ein Gerät auf.</translation>
    </message>
    <message>
        <source>Six-digit code</source>
        <translation>Code, sechs Ziffern</translation>
    </message>
    <message>
        <source>Why can&apos;t Poolhouse find my other computer?</source>
        <translation>Warum wird mein anderer Computer nicht gefunden?</translation>
    </message>
    <message>
        <source>{claims} (reported by that machine)</source>
        <translation>{claims}: nach eigener Angabe</translation>
    </message>
</context>
<context>
    <name>JoinHouseholdDialog</name>
    <message>
        <source>Cancel</source>
        <translation>Abbrechen</translation>
    </message>
    <message>
        <source>Done</source>
        <translation>Fertig</translation>
    </message>
    <message>
        <source>Join</source>
        <translation>Beitreten</translation>
    </message>
    <message>
        <source>Join a household</source>
        <translation>Einem Haushalt beitreten</translation>
    </message>
    <message>
        <source>Joining…</source>
        <translation>Beitritt läuft…</translation>
    </message>
    <message>
        <source>On a machine in the household, click “Add a machine”. It shows a code.</source>
        <translation>Drücken Sie auf einem Gerät des Haushalts „Gerät hinzufügen“. Es zeigt dann einen Code.</translation>
    </message>
</context>
<context>
    <name>KvChoice</name>
    <message>
        <source>Answers may differ slightly. In a test with the Guide, {same} of {asked} short answers were identical. Longer answers and other models were not tested.</source>
        <translation>Antworten können ein wenig anders ausfallen: Von {asked} kurzen Antworten des Guide blieben {same} Wort für Wort gleich. Längere anderer Modelle wurden nicht gemessen.</translation>
    </message>
    <message>
        <source>Context in memory</source>
        <translation>Kontext im Speicher</translation>
    </message>
    <message>
        <source>Context storage format</source>
        <translation>Wie der Kontext gehalten wird</translation>
    </message>
    <message>
        <source>The context uses {exact}. With q8_0, it would use {small}.</source>
        <translation>Der Kontext braucht {exact}; als q8_0 wären es {small}.</translation>
    </message>
    <message>
        <source>The context uses {small} instead of {exact}.</source>
        <translation>Der Kontext braucht {small} statt {exact}.</translation>
    </message>
    <message>
        <source>This model&apos;s attention heads are too small for q8_0, so its context stays in f16.</source>
        <translation>Die Köpfe dieses Modells sind zu klein für q8_0, deshalb bleibt sein Kontext in f16.</translation>
    </message>
    <message>
        <source>f16, exact</source>
        <translation>f16, genau</translation>
    </message>
    <message>
        <source>q8_0, about half the size</source>
        <translation>q8_0, etwa die Hälfte</translation>
    </message>
</context>
<context>
    <name>LeaveHouseholdDialog</name>
    <message>
        <source>This removes all pairings of this machine and gives it a new identity. To join a household again, it needs a new code.</source>
        <translation>Alle Kopplungen dieses Geräts enden, und es bekommt eine neue Identität: Um zurückzukehren oder sich anderen anzuschließen, braucht es einen neuen Code.</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>Abbrechen</translation>
    </message>
    <message>
        <source>Leave the household</source>
        <translation>Haushalt verlassen</translation>
    </message>
    <message>
        <source>Your models, chats and settings are kept. The other machines show this one as offline until one of them removes it. The background service restarts, which stops any answer in progress.</source>
        <translation>Modelle, Chats und Einstellungen bleiben. Die anderen Geräte zeigen dieses als nicht erreichbar, bis eines von ihnen es entfernt. Der Hintergrunddienst startet neu; eine laufende Antwort endet dabei.</translation>
    </message>
    <message>
        <source>This machine has left its household. It will be ready again in a few seconds.</source>
        <translation>Dieses Gerät hat seinen Haushalt verlassen. In wenigen Sekunden ist es wieder bereit.</translation>
    </message>
</context>
<context>
    <name>Lending</name>
    <message>
        <source>Pausing after the current answer (in at most {time}).</source>
        <translation>Eine Antwort wird noch zu Ende gebracht, dann wird pausiert (höchstens {time}).</translation>
    </message>
    <message>
        <source>{size} is reserved for {names} for 10 minutes.</source>
        <translation>{size} warten 10 Minuten lang auf die Rückkehr von {names}.</translation>
    </message>
    <message>
        <source>Lending {size} to {names}.</source>
        <translation>Verleiht {size} an {names}.</translation>
    </message>
    <message>
        <source>Not lending any memory now.</source>
        <translation>Zurzeit ist nichts verliehen.</translation>
    </message>
    <message>
        <source>Lending is paused until you resume it.</source>
        <translation>Von Ihnen pausiert, bis Sie fortsetzen.</translation>
    </message>
    <message>
        <source>Paused until {time}.</source>
        <translation>Von Ihnen pausiert bis {time}.</translation>
    </message>
    <message>
        <source>Ready. Others can use {size}.</source>
        <translation>Bereit. Andere dürfen {size} nutzen.</translation>
    </message>
    <message>
        <source>Since {time}</source>
        <translation>Seit {time}</translation>
    </message>
    <message>
        <source>Lending is stopped until you resume it.</source>
        <translation>Von Ihnen angehalten, bis Sie fortsetzen.</translation>
    </message>
    <message>
        <source>Lending is turned off on this machine.</source>
        <translation>Ausgeschaltet. Von diesem Gerät wird nichts verliehen.</translation>
    </message>
    <message>
        <source>Your household doesn&apos;t allow this machine to lend.</source>
        <translation>Ihr Haushalt lässt dieses Gerät nichts verleihen.</translation>
    </message>
    <message>
        <source>another machine</source>
        <translation>ein anderes Gerät</translation>
    </message>
    <message>
        <source>guest</source>
        <translation>Gast</translation>
    </message>
    <message>
        <source>lending</source>
        <translation>verleiht</translation>
    </message>
    <message>
        <source>lends nothing</source>
        <translation>verleiht nichts</translation>
    </message>
    <message>
        <source>loaded</source>
        <translation>geladen</translation>
    </message>
    <message>
        <source>offline</source>
        <translation>nicht erreichbar</translation>
    </message>
    <message>
        <source>paused</source>
        <translation>pausiert</translation>
    </message>
    <message>
        <source>pausing</source>
        <translation>wird pausiert</translation>
    </message>
    <message>
        <source>ready</source>
        <translation>bereit</translation>
    </message>
    <message>
        <source>uses models</source>
        <translation>nutzt Modelle</translation>
    </message>
    <message>
        <source>working</source>
        <translation>arbeitet</translation>
    </message>
</context>
<context>
    <name>Link</name>
    <message>
        <source>Cancel</source>
        <translation>Abbrechen</translation>
    </message>
    <message>
        <source>Copy address</source>
        <translation>Adresse kopieren</translation>
    </message>
    <message>
        <source>Open a link</source>
        <translation>Link öffnen</translation>
    </message>
    <message>
        <source>Open in browser</source>
        <translation>Im Browser öffnen</translation>
    </message>
    <message>
        <source>This link in the answer opens:</source>
        <translation>Dieser Link stammt aus einer Antwort und führt zu:</translation>
    </message>
</context>
<context>
    <name>LinkTable</name>
    <message>
        <source>Links between other machines</source>
        <translation>Verbindungen zwischen anderen Geräten</translation>
    </message>
</context>
<context>
    <name>Listing</name>
    <message>
        <source>Code</source>
        <translation>Code</translation>
    </message>
</context>
<context>
    <name>LoadSteps</name>
    <message>
        <source>All machines: {amounts}</source>
        <translation>Alle Geräte: {amounts}</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>Abbrechen</translation>
    </message>
    <message>
        <source>Verifying {model} with a known answer</source>
        <translation>{model} wird mit einer bekannten Antwort geprüft</translation>
    </message>
    <message>
        <source>Loading {model}</source>
        <translation>{model} wird geladen</translation>
    </message>
    <message>
        <source>Progress</source>
        <translation>Fortschritt</translation>
    </message>
    <message>
        <source>This file</source>
        <translation>Diese Datei</translation>
    </message>
</context>
<context>
    <name>LocalApi</name>
    <message>
        <source>When a program asks for another model, Poolhouse unloads the current one and loads the requested one.</source>
        <translation>Ein Programm, das ein anderes Modell verlangt, bekommt es, und das vorige wird entladen.</translation>
    </message>
    <message>
        <source>Address</source>
        <translation>Adresse</translation>
    </message>
    <message>
        <source>Allow</source>
        <translation>Erlauben</translation>
    </message>
    <message>
        <source>Allow: {what}</source>
        <translation>Erlauben: {what}</translation>
    </message>
    <message>
        <source>Also accept these host names</source>
        <translation>Auch unter diesen Namen antworten</translation>
    </message>
    <message>
        <source>Another program is using port {port}, so the next free port is used for now.</source>
        <translation>Ein anderes Programm belegt Port {port}, darum ist es diesmal der nächste freie.</translation>
    </message>
    <message>
        <source>Certificate</source>
        <translation>Zertifikat</translation>
    </message>
    <message>
        <source>Containers and proxies may use other names for this computer. Only allow names you know, because a website that uses an allowed name can reach the API.</source>
        <translation>Container und Proxys nennen diesen Computer anders. Erlauben Sie nur Namen, die Sie kennen: Eine Website, die sich einen erlaubten Namen gibt, erreicht die API.</translation>
    </message>
    <message>
        <source>Docker Desktop containers use this name for this computer.</source>
        <translation>So nennen Container von Docker Desktop diesen Computer.</translation>
    </message>
    <message>
        <source>Copy</source>
        <translation>Kopieren</translation>
    </message>
    <message>
        <source>Copy the API address</source>
        <translation>Die Adresse der API kopieren</translation>
    </message>
    <message>
        <source>Copy the API certificate</source>
        <translation>Das Zertifikat der API kopieren</translation>
    </message>
    <message>
        <source>Copy the key</source>
        <translation>Den Schlüssel kopieren</translation>
    </message>
    <message>
        <source>Default: 32</source>
        <translation>Standard: 32</translation>
    </message>
    <message>
        <source>Default: 47114, or the next free port</source>
        <translation>Standard: 47114 oder der nächste freie</translation>
    </message>
    <message>
        <source>Default: no limit</source>
        <translation>Standard: beliebig viele</translation>
    </message>
    <message>
        <source>Default: none</source>
        <translation>Standard: keine</translation>
    </message>
    <message>
        <source>Default: off</source>
        <translation>Standard: aus</translation>
    </message>
    <message>
        <source>Editors, agents and scripts on this computer can use the pool as they would use OpenAI, Anthropic or Ollama.</source>
        <translation>Editoren, Agenten und Skripte auf diesem Computer, wie sie OpenAI, Anthropic oder Ollama nutzen würden.</translation>
    </message>
    <message>
        <source>From other computers</source>
        <translation>Von anderen Computern</translation>
    </message>
    <message>
        <source>Hide</source>
        <translation>Verbergen</translation>
    </message>
    <message>
        <source>Hide the key</source>
        <translation>Den Schlüssel verbergen</translation>
    </message>
    <message>
        <source>Host names</source>
        <translation>Hostnamen</translation>
    </message>
    <message>
        <source>Limits for individual keys</source>
        <translation>Wie viel ein einzelner Schlüssel darf</translation>
    </message>
    <message>
        <source>Limits for each program</source>
        <translation>Wie viel jedes Programm bekommen darf</translation>
    </message>
    <message>
        <source>Key</source>
        <translation>Schlüssel</translation>
    </message>
    <message>
        <source>API key</source>
        <translation>Schlüssel der API</translation>
    </message>
    <message>
        <source>Your API keys and other servers are kept, but the servers are turned off.</source>
        <translation>Ihre API-Schlüssel und anderen Server bleiben erhalten, die Server sind aber ausgeschaltet.</translation>
    </message>
    <message>
        <source>Let web pages from these origins use the API</source>
        <translation>Seiten dieser Herkunft dürfen die API benutzen</translation>
    </message>
    <message>
        <source>Local API</source>
        <translation>Lokale API</translation>
    </message>
    <message>
        <source>Create a new API key</source>
        <translation>Einen neuen Schlüssel der API erzeugen</translation>
    </message>
    <message>
        <source>Most Ollama apps can&apos;t send a key. This lets any program on this computer connect without one.</source>
        <translation>Die meisten können keinen senden. Dann darf jedes Programm dieses Computers auf diesem Weg fragen.</translation>
    </message>
    <message>
        <source>New key</source>
        <translation>Neuer Schlüssel</translation>
    </message>
    <message>
        <source>The limit applies to each key and includes prompts. 0 means no limit.</source>
        <translation>Je Schlüssel, Eingaben mitgezählt. 0: beliebig viele.</translation>
    </message>
    <message>
        <source>The limit applies to each key. Programs that send more are told to try again later.</source>
        <translation>Je Schlüssel. Was darüber hinausgeht, wird auf später vertröstet.</translation>
    </message>
    <message>
        <source>Off</source>
        <translation>Aus</translation>
    </message>
    <message>
        <source>Ollama apps need no key</source>
        <translation>Programme für Ollama brauchen keinen Schlüssel</translation>
    </message>
    <message>
        <source>Available on this network at {there}. Requires TLS and a key. Nothing else on this computer is exposed.</source>
        <translation>Für dieses Netz offen unter {there}: über TLS und mit Schlüssel. Sonst ist dort nichts offen.</translation>
    </message>
    <message>
        <source>Other computers may use it too</source>
        <translation>Auch andere Computer dürfen sie nutzen</translation>
    </message>
    <message>
        <source>Other programs may use the pool</source>
        <translation>Andere Programme dürfen den Pool nutzen</translation>
    </message>
    <message>
        <source>Requires TLS and a key that you provide. Nothing else on this computer is exposed.</source>
        <translation>Über TLS, mit einem Schlüssel von Ihnen. Sonst wird nichts von diesem Computer geöffnet.</translation>
    </message>
    <message>
        <source>Port</source>
        <translation>Port</translation>
    </message>
    <message>
        <source>Remove</source>
        <translation>Entfernen</translation>
    </message>
    <message>
        <source>Remove {name}</source>
        <translation>{name} entfernen</translation>
    </message>
    <message>
        <source>Simultaneous requests</source>
        <translation>Anfragen zugleich</translation>
    </message>
    <message>
        <source>Simultaneous requests for {key}</source>
        <translation>Gleichzeitige Anfragen von {key}</translation>
    </message>
    <message>
        <source>Simultaneous requests and tokens per minute (0 means no limit).</source>
        <translation>Gleichzeitige Anfragen und Token in der Minute (0: beliebig viele).</translation>
    </message>
    <message>
        <source>Show</source>
        <translation>Anzeigen</translation>
    </message>
    <message>
        <source>Show the key</source>
        <translation>Den Schlüssel anzeigen</translation>
    </message>
    <message>
        <source>For example, http://localhost:3000 or app://obsidian.md. These pages can send requests with a key and read the answers. They can use the Ollama API without a key if you allow that above.</source>
        <translation>Etwa http://localhost:3000 oder app://obsidian.md. Seiten von dort können mit einem Schlüssel fragen und die Antworten lesen; den Teil von Ollama auch ohne, wenn das eingeschaltet ist.</translation>
    </message>
    <message>
        <source>Address copied.</source>
        <translation>Die Adresse wurde kopiert.</translation>
    </message>
    <message>
        <source>Certificate copied.</source>
        <translation>Das Zertifikat wurde kopiert.</translation>
    </message>
    <message>
        <source>Key copied.</source>
        <translation>Der Schlüssel wurde kopiert.</translation>
    </message>
    <message>
        <source>Programs on other computers must trust this certificate.</source>
        <translation>Ihre Programme müssen ihm vertrauen.</translation>
    </message>
    <message>
        <source>New key created. The old one no longer works.</source>
        <translation>Es gibt einen neuen Schlüssel. Der vorige öffnet nichts mehr.</translation>
    </message>
    <message>
        <source>Let programs load other models</source>
        <translation>Sie dürfen ein anderes Modell laden</translation>
    </message>
    <message>
        <source>Tokens per minute</source>
        <translation>Token pro Minute</translation>
    </message>
    <message>
        <source>Tokens per minute for {key}</source>
        <translation>Token in der Minute von {key}</translation>
    </message>
    <message>
        <source>Web pages and apps</source>
        <translation>Webseiten und Apps</translation>
    </message>
    <message>
        <source>Permissions for programs</source>
        <translation>Was sie dürfen</translation>
    </message>
    <message>
        <source>Programs connect to this port.</source>
        <translation>Wo diese Programme danach suchen.</translation>
    </message>
    <message>
        <source>same as other keys</source>
        <translation>wie für alle</translation>
    </message>
</context>
<context>
    <name>LockedChats</name>
    <message>
        <source>Start a new history</source>
        <translation>Neuen Verlauf beginnen</translation>
    </message>
    <message>
        <source>Start a new chat history without the locked chats?</source>
        <translation>Einen neuen Verlauf ohne die gesperrten Chats beginnen?</translation>
    </message>
    <message>
        <source>Start a new history…</source>
        <translation>Neuen Verlauf beginnen…</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>Abbrechen</translation>
    </message>
    <message>
        <source>The locked chats will be kept in a renamed file. New chats will not be encrypted until you turn encryption on.</source>
        <translation>Ihre Datei wird unter einem anderen Namen aufbewahrt. Neue Chats sind zunächst nicht verschlüsselt.</translation>
    </message>
    <message>
        <source>Your chats are encrypted and will appear when their key can be read.</source>
        <translation>Sie sind verschlüsselt und erscheinen, sobald ihr Schlüssel gelesen wurde.</translation>
    </message>
    <message>
        <source>Try again</source>
        <translation>Erneut versuchen</translation>
    </message>
    <message>
        <source>Your chats are locked</source>
        <translation>Ihre Chats sind gesperrt</translation>
    </message>
</context>
<context>
    <name>LogModel</name>
    <message>
        <source>What happened</source>
        <translation>Was geschehen ist</translation>
    </message>
    <message>
        <source>When</source>
        <translation>Wann</translation>
    </message>
</context>
<context>
    <name>LogView</name>
    <message>
        <source>Answers</source>
        <translation>Antworten</translation>
    </message>
    <message>
        <source>Everything</source>
        <translation>Alles</translation>
    </message>
    <message>
        <source>Lending</source>
        <translation>Verleih</translation>
    </message>
    <message>
        <source>Machines</source>
        <translation>Geräte</translation>
    </message>
    <message>
        <source>Models</source>
        <translation>Modelle</translation>
    </message>
    <message>
        <source>The log records events for models, machines, lending and answers, but never your chats.</source>
        <translation>Hier steht, welche Modelle geladen und entladen wurden und was mit Geräten, Verleih und Antworten geschah. Von Ihren Texten steht hier nie ein Wort.</translation>
    </message>
    <message>
        <source>No entries of this type match your search.</source>
        <translation>Kein Eintrag dieser Art enthält diese Wörter.</translation>
    </message>
    <message>
        <source>Nothing found</source>
        <translation>Nichts gefunden</translation>
    </message>
    <message>
        <source>No events yet</source>
        <translation>Noch ist nichts geschehen</translation>
    </message>
    <message>
        <source>Open the chat</source>
        <translation>Den Chat öffnen</translation>
    </message>
    <message>
        <source>Search the log</source>
        <translation>Protokoll durchsuchen</translation>
    </message>
    <message>
        <source>Show everything</source>
        <translation>Alles zeigen</translation>
    </message>
    <message>
        <source>The app</source>
        <translation>Die App</translation>
    </message>
    <message>
        <source>The log</source>
        <translation>Das Protokoll</translation>
    </message>
    <message>
        <source>Type of entry</source>
        <translation>Welche Einträge</translation>
    </message>
    <message>
        <source>{model} wrote {tokens} tokens at {speed}, with the first token after {first}.</source>
        <translation>{model} hat mit {tokens} Token geantwortet: das erste nach {first}, dann {speed}.</translation>
    </message>
    <message>
        <source>An answer from {model} was cut off after {tokens} tokens.</source>
        <translation>{model} hat eine Antwort nach {tokens} Token abgebrochen.</translation>
    </message>
    <message>
        <source>{model} was stopped after {tokens} tokens.</source>
        <translation>{model} wurde nach {tokens} Token angehalten.</translation>
    </message>
</context>
<context>
    <name>MachineActions</name>
    <message>
        <source>Details</source>
        <translation>Details</translation>
    </message>
    <message>
        <source>Exclude</source>
        <translation>Ausschließen</translation>
    </message>
    <message>
        <source>Find out why…</source>
        <translation>Den Grund suchen…</translation>
    </message>
    <message>
        <source>Include again</source>
        <translation>Wieder aufnehmen</translation>
    </message>
    <message>
        <source>Lend again</source>
        <translation>Wieder verleihen</translation>
    </message>
    <message>
        <source>Pause lending for 1 hour</source>
        <translation>Verleih für 1 Stunde pausieren</translation>
    </message>
    <message>
        <source>Pause lending for 4 hours</source>
        <translation>Verleih für 4 Stunden pausieren</translation>
    </message>
    <message>
        <source>Pause lending until I resume</source>
        <translation>Verleih pausieren, bis ich ihn fortsetze</translation>
    </message>
    <message>
        <source>Choose interface…</source>
        <translation>Anschluss bevorzugen…</translation>
    </message>
    <message>
        <source>Remove from household…</source>
        <translation>Aus dem Haushalt entfernen…</translation>
    </message>
    <message>
        <source>Rename…</source>
        <translation>Umbenennen…</translation>
    </message>
    <message>
        <source>Test link</source>
        <translation>Verbindung testen</translation>
    </message>
    <message>
        <source>Links measured.</source>
        <translation>Die Verbindungen sind gemessen.</translation>
    </message>
    <message>
        <source>Use again</source>
        <translation>Wieder verwenden</translation>
    </message>
    <message>
        <source>Permissions…</source>
        <translation>Was es darf…</translation>
    </message>
</context>
<context>
    <name>MachineButtons</name>
    <message>
        <source>Find out why…</source>
        <translation>Den Grund suchen…</translation>
    </message>
    <message>
        <source>Include again</source>
        <translation>Wieder aufnehmen</translation>
    </message>
    <message>
        <source>Exclude</source>
        <translation>Ausschließen</translation>
    </message>
    <message>
        <source>Lend again</source>
        <translation>Wieder verleihen</translation>
    </message>
    <message>
        <source>More</source>
        <translation>Mehr</translation>
    </message>
    <message>
        <source>Pause lending</source>
        <translation>Verleih pausieren</translation>
    </message>
    <message>
        <source>Rename</source>
        <translation>Umbenennen</translation>
    </message>
    <message>
        <source>Test link</source>
        <translation>Verbindung testen</translation>
    </message>
    <message>
        <source>Testing…</source>
        <translation>Wird geprüft…</translation>
    </message>
    <message>
        <source>Use again</source>
        <translation>Wieder verwenden</translation>
    </message>
</context>
<context>
    <name>MachineChoice</name>
    <message>
        <source>Machines to use</source>
        <translation>Geräte, die genutzt werden</translation>
    </message>
    <message>
        <source>This machine runs the first and last layers.</source>
        <translation>Dieses Gerät hält die ersten und die letzten Schichten.</translation>
    </message>
    <message>
        <source>{name} (not lending now)</source>
        <translation>{name} (verleiht zurzeit nichts)</translation>
    </message>
    <message>
        <source>{name} (lends {size})</source>
        <translation>{name} (verleiht {size})</translation>
    </message>
    <message>
        <source>{name} (offline)</source>
        <translation>{name} (nicht erreichbar)</translation>
    </message>
    <message>
        <source>{name} (this machine)</source>
        <translation>{name} (dieses Gerät)</translation>
    </message>
</context>
<context>
    <name>MachineName</name>
    <message>
        <source>A name can have up to {limit} characters. This one has {count}.</source>
        <translation>Ein Name hat höchstens {limit} Zeichen; dieser hat {count}.</translation>
    </message>
    <message>
        <source>Enter a name of up to {limit} characters.</source>
        <translation>Ein Name ist nötig, mit höchstens {limit} Zeichen.</translation>
    </message>
</context>
<context>
    <name>MachineTable</name>
    <message>
        <source>Machines in the household</source>
        <translation>Geräte des Haushalts</translation>
    </message>
</context>
<context>
    <name>MapView</name>
    <message>
        <source>Use the arrow keys to select a machine. The table shows the same details.</source>
        <translation>Mit den Pfeiltasten wählen Sie ein Gerät. In der Tabelle stehen dieselben Angaben.</translation>
    </message>
    <message>
        <source>Map of the household</source>
        <translation>Karte des Haushalts</translation>
    </message>
</context>
<context>
    <name>MemoryBars</name>
    <message>
        <source>KV cache</source>
        <translation>KV-Cache</translation>
    </message>
    <message>
        <source>Weights</source>
        <translation>Gewichte</translation>
    </message>
    <message>
        <source>Work</source>
        <translation>Rechnen</translation>
    </message>
    <message>
        <source>{needs} of {lends}</source>
        <translation>{needs} von {lends}</translation>
    </message>
</context>
<context>
    <name>MemoryCard</name>
    <message>
        <source>All</source>
        <translation>Alle</translation>
    </message>
    <message>
        <source>All models on this machine, including those of other machines, can use up to {limit} in total. Your own models can use up to {size} of that.</source>
        <translation>Alle Modelle auf diesem Computer, Ihre und die von anderen, dürfen zusammen {limit} belegen. Davon dürfen Ihre bis zu {size} nutzen.</translation>
    </message>
    <message>
        <source>Reserved for you</source>
        <translation>Bleibt immer für Sie</translation>
    </message>
    <message>
        <source>Takes effect the next time layers are loaded.</source>
        <translation>Gilt für Schichten, die ab jetzt geladen werden.</translation>
    </message>
    <message>
        <source>Choose the limit for me</source>
        <translation>Grenze automatisch wählen</translation>
    </message>
    <message>
        <source>Free</source>
        <translation>Frei</translation>
    </message>
    <message>
        <source>Half of the memory that is free when Poolhouse starts.</source>
        <translation>Die Hälfte dessen, was beim Start von Poolhouse frei ist.</translation>
    </message>
    <message>
        <source>The limit applies in each direction to layers, answers and downloads. Forecasts take it into account.</source>
        <translation>Je Richtung, für Schichten, Antworten und Downloads. Prognosen rechnen damit.</translation>
    </message>
    <message>
        <source>Lend at most {size}</source>
        <translation>Höchstens {size} verleihen</translation>
    </message>
    <message>
        <source>Lent, unused</source>
        <translation>Verliehen, ungenutzt</translation>
    </message>
    <message>
        <source>Mbit/s</source>
        <translation>Mbit/s</translation>
    </message>
    <message>
        <source>Memory</source>
        <translation>Arbeitsspeicher</translation>
    </message>
    <message>
        <source>Maximum memory to lend</source>
        <translation>Höchstens verliehener Arbeitsspeicher</translation>
    </message>
    <message>
        <source>Memory of this machine</source>
        <translation>Arbeitsspeicher dieses Geräts</translation>
    </message>
    <message>
        <source>Maximum network use by Poolhouse</source>
        <translation>Netzwerk für Poolhouse höchstens</translation>
    </message>
    <message>
        <source>No limit</source>
        <translation>Keine Grenze</translation>
    </message>
    <message>
        <source>Other programs</source>
        <translation>Andere Programme</translation>
    </message>
    <message>
        <source>Maximum processor threads for others</source>
        <translation>Höchstens so viele Prozessor-Threads für andere</translation>
    </message>
    <message>
        <source>Remove this limit</source>
        <translation>Dieses Limit aufheben</translation>
    </message>
    <message>
        <source>This limits how much memory others can use. Models that you load here can use up to {size}.</source>
        <translation>Das begrenzt, was andere nutzen können. Modelle, die Sie selbst hier laden, dürfen bis zu {size} nutzen.</translation>
    </message>
    <message>
        <source>Used by others</source>
        <translation>Von anderen genutzt</translation>
    </message>
    <message>
        <source>Your own model</source>
        <translation>Ihr eigenes Modell</translation>
    </message>
    <message>
        <source>none</source>
        <translation>nichts</translation>
    </message>
    <message>
        <source>{size} total</source>
        <translation>{size} insgesamt</translation>
    </message>
</context>
<context>
    <name>MessageActionHandler</name>
    <message>
        <source>Copied</source>
        <translation>Kopiert</translation>
    </message>
    <message>
        <source>{title} (branch)</source>
        <translation>{title} (Zweig)</translation>
    </message>
</context>
<context>
    <name>MessageView</name>
    <message>
        <source>Answer</source>
        <translation>Antwort</translation>
    </message>
    <message>
        <source>Continue</source>
        <translation>Fortsetzen</translation>
    </message>
    <message>
        <source>Copy</source>
        <translation>Kopieren</translation>
    </message>
    <message>
        <source>Copy as Markdown</source>
        <translation>Als Markdown kopieren</translation>
    </message>
    <message>
        <source>Stopped at the maximum answer length.</source>
        <translation>Die Antwort hat die größte erlaubte Länge erreicht.</translation>
    </message>
    <message>
        <source>{author} (edited)</source>
        <translation>{author} (bearbeitet)</translation>
    </message>
    <message>
        <source>Poolhouse closed before this answer was finished.</source>
        <translation>Poolhouse endete, bevor diese Antwort fertig war.</translation>
    </message>
    <message>
        <source>Stopped by you.</source>
        <translation>Von Ihnen angehalten.</translation>
    </message>
    <message>
        <source>The context is full, so the answer ends here.</source>
        <translation>Der Kontext ist voll, deshalb endet die Antwort hier.</translation>
    </message>
    <message>
        <source>Edit</source>
        <translation>Bearbeiten</translation>
    </message>
    <message>
        <source>More</source>
        <translation>Mehr</translation>
    </message>
    <message>
        <source>Branch from here</source>
        <translation>Neuer Chat ab hier</translation>
    </message>
    <message>
        <source>Next version</source>
        <translation>Nächste Version</translation>
    </message>
    <message>
        <source>This message was not answered, so the model won&apos;t see it when it answers later ones.</source>
        <translation>Hierauf kam keine Antwort; deshalb wird es mit späteren Nachrichten nicht mitgesendet.</translation>
    </message>
    <message>
        <source>Regenerate</source>
        <translation>Neu antworten lassen</translation>
    </message>
    <message>
        <source>Save as version</source>
        <translation>Als Version speichern</translation>
    </message>
    <message>
        <source>Select as text…</source>
        <translation>Als Text auswählen…</translation>
    </message>
    <message>
        <source>Resend</source>
        <translation>Erneut senden</translation>
    </message>
    <message>
        <source>Previous version</source>
        <translation>Vorherige Version</translation>
    </message>
    <message>
        <source>Version {number} of {count}</source>
        <translation>Version {number} von {count}</translation>
    </message>
    <message>
        <source>You</source>
        <translation>Sie</translation>
    </message>
</context>
<context>
    <name>ModelActions</name>
    <message>
        <source>Load it again</source>
        <translation>Erneut laden</translation>
    </message>
    <message>
        <source>{model} was unloaded. Its memory is free again.</source>
        <translation>{model} ist entladen; der Speicher ist wieder frei.</translation>
    </message>
</context>
<context>
    <name>ModelList</name>
    <message>
        <source>All models</source>
        <translation>Alle Modelle</translation>
    </message>
    <message>
        <source>Any size</source>
        <translation>Jede Größe</translation>
    </message>
    <message>
        <source>Rebuilding</source>
        <translation>Wird neu aufgebaut</translation>
    </message>
    <message>
        <source>Catalog</source>
        <translation>Katalog</translation>
    </message>
    <message>
        <source>Catalog: fits with limits</source>
        <translation>Katalog: passt mit Abstrichen</translation>
    </message>
    <message>
        <source>Catalog: fits your household</source>
        <translation>Katalog: passt zu Ihrem Haushalt</translation>
    </message>
    <message>
        <source>Catalog: size not known yet</source>
        <translation>Katalog: Größe noch nicht bekannt</translation>
    </message>
    <message>
        <source>Catalog: too big for your household</source>
        <translation>Katalog: zu groß für Ihren Haushalt</translation>
    </message>
    <message>
        <source>Could not be loaded</source>
        <translation>Konnte nicht geladen werden</translation>
    </message>
    <message>
        <source>Disk not connected</source>
        <translation>Datenträger fehlt</translation>
    </message>
    <message>
        <source>File missing</source>
        <translation>Datei fehlt</translation>
    </message>
    <message>
        <source>Found in other apps: {count}</source>
        <translation>In anderen Apps gefunden: {count}</translation>
    </message>
    <message>
        <source>Loaded</source>
        <translation>Geladen</translation>
    </message>
    <message>
        <source>Loading…</source>
        <translation>Wird geladen…</translation>
    </message>
    <message>
        <source>Lost</source>
        <translation>Ausgefallen</translation>
    </message>
    <message>
        <source>Models</source>
        <translation>Modelle</translation>
    </message>
    <message>
        <source>None of these models fits in the memory that is free now.</source>
        <translation>Keines dieser Modelle passt in den Speicher, der jetzt frei ist.</translation>
    </message>
    <message>
        <source>No model matches</source>
        <translation>Kein Modell passt zur Suche</translation>
    </message>
    <message>
        <source>No models to show yet</source>
        <translation>Noch keine Modelle zu zeigen</translation>
    </message>
    <message>
        <source>Nothing found on Hugging Face</source>
        <translation>Auf Hugging Face nichts gefunden</translation>
    </message>
    <message>
        <source>No model here has that name. Search for it online, or show all models.</source>
        <translation>Hier heißt nichts so. Suchen Sie online danach oder zeigen Sie alle Modelle an.</translation>
    </message>
    <message>
        <source>No model here has this size. Choose another size, or show all models.</source>
        <translation>Von dieser Größe ist hier nichts. Wählen Sie eine andere Größe, oder zeigen Sie alle Modelle.</translation>
    </message>
    <message>
        <source>On Hugging Face</source>
        <translation>Auf Hugging Face</translation>
    </message>
    <message>
        <source>On this computer</source>
        <translation>Auf diesem Computer</translation>
    </message>
    <message>
        <source>Recommended</source>
        <translation>Empfohlen</translation>
    </message>
    <message>
        <source>Search</source>
        <translation>Suchen</translation>
    </message>
    <message>
        <source>Search Hugging Face for “{words}”</source>
        <translation>Auf Hugging Face nach „{words}“ suchen</translation>
    </message>
    <message>
        <source>Search models</source>
        <translation>Modelle suchen</translation>
    </message>
    <message>
        <source>Stop searching huggingface.co</source>
        <translation>huggingface.co wird durchsucht… Anhalten</translation>
    </message>
    <message>
        <source>Show all</source>
        <translation>Alle anzeigen</translation>
    </message>
    <message>
        <source>Show log</source>
        <translation>Sein Protokoll zeigen</translation>
    </message>
    <message>
        <source>Size</source>
        <translation>Größe</translation>
    </message>
    <message>
        <source>Your models appear here when the background service is running.</source>
        <translation>Sie erscheinen, sobald der Hintergrunddienst läuft.</translation>
    </message>
    <message>
        <source>Models that fit</source>
        <translation>Was passt</translation>
    </message>
    <message>
        <source>Show</source>
        <translation>Welche Modelle</translation>
    </message>
</context>
<context>
    <name>ModelMenu</name>
    <message>
        <source>Model of this chat</source>
        <translation>Modell dieses Chats</translation>
    </message>
    <message>
        <source>More models…</source>
        <translation>Weitere Modelle…</translation>
    </message>
</context>
<context>
    <name>ModelNames</name>
    <message>
        <source>{model} on {server}, another server</source>
        <translation>{model} auf {server}, einem anderen Server</translation>
    </message>
</context>
<context>
    <name>ModelPage</name>
    <message>
        <source>Answers come from {hosts}. You don&apos;t need a model on this computer.</source>
        <translation>{hosts} antwortet. Auf diesem Computer brauchen Sie kein Modell.</translation>
    </message>
    <message>
        <source>Ask the Guide</source>
        <translation>Den Guide fragen</translation>
    </message>
    <message>
        <source>Ask the Guide meanwhile</source>
        <translation>Inzwischen den Guide fragen</translation>
    </message>
    <message>
        <source>Download and load</source>
        <translation>Herunterladen und laden</translation>
    </message>
    <message>
        <source>Load</source>
        <translation>Laden</translation>
    </message>
    <message>
        <source>Looking for models that fit…</source>
        <translation>Passende Modelle werden gesucht…</translation>
    </message>
    <message>
        <source>Measuring how fast your computers are…</source>
        <translation>Es wird gemessen, wie schnell Ihre Computer sind…</translation>
    </message>
    <message>
        <source>No model in the catalog fits comfortably now. Close large programs or add a computer. Until then, the small built-in Guide answers questions about Poolhouse.</source>
        <translation>Kein Modell im Katalog passt gerade gut. Schließen Sie große Programme, oder nehmen Sie einen Computer dazu. Bis dahin beantwortet der kleine eingebaute Guide Fragen zu Poolhouse.</translation>
    </message>
    <message>
        <source>Recommended for your household. You can add others later on the Models page.</source>
        <translation>Empfohlen für Ihren Haushalt. Weitere finden Sie später auf der Seite Modelle.</translation>
    </message>
    <message>
        <source>Start chatting</source>
        <translation>Chatten</translation>
    </message>
    <message>
        <source>Start with the Guide</source>
        <translation>Mit dem Guide anfangen</translation>
    </message>
    <message>
        <source>Stop</source>
        <translation>Anhalten</translation>
    </message>
    <message>
        <source>This computer</source>
        <translation>Dieser Computer</translation>
    </message>
    <message>
        <source>This model came with Poolhouse, so you can chat right away. Larger ones answer better.</source>
        <translation>Dieses Modell kam mit Poolhouse, Sie können also sofort chatten. Größere antworten besser.</translation>
    </message>
    <message>
        <source>You already have a model that fits, so you don&apos;t have to download one.</source>
        <translation>Sie haben schon ein Modell, das passt. Wählen Sie eines für den Anfang.</translation>
    </message>
    <message>
        <source>Your first model</source>
        <translation>Ihr erstes Modell</translation>
    </message>
    <message>
        <source>the household</source>
        <translation>Der Haushalt</translation>
    </message>
</context>
<context>
    <name>Models</name>
    <message numerus="yes">
        <source>%n model(s) in {folder}, {size}</source>
        <translation>
            <numerusform>%Ln Modell in {folder}, {size}</numerusform>
            <numerusform>%Ln Modelle in {folder}, {size}</numerusform>
        </translation>
    </message>
    <message>
        <source>Poolhouse always leaves 5 GiB free, so there is no space for downloads there now.</source>
        <translation>5 GiB bleiben frei, deshalb lässt sich dorthin jetzt nichts herunterladen.</translation>
    </message>
    <message>
        <source>This is a reranker. It scores texts for other programs and can&apos;t chat.</source>
        <translation>Ein Reranker: Er bewertet Texte für Programme und kann nicht chatten.</translation>
    </message>
    <message>
        <source>Access token for Hugging Face</source>
        <translation>Zugriffstoken für Hugging Face</translation>
    </message>
    <message>
        <source>Contacting {source}</source>
        <translation>{source} wird gefragt</translation>
    </message>
    <message>
        <source>Interrupted. The import will start again from the beginning.</source>
        <translation>Abgebrochen. Sie wird von vorn gelesen, sobald es weitergeht.</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>Abbrechen</translation>
    </message>
    <message>
        <source>Chats on this computer can use models that another computer has loaded. Your messages are encrypted and sent there. Chats are kept only on this computer.</source>
        <translation>Chats auf diesem Computer können Modelle nutzen, die auf einem anderen laufen. Ihre Nachrichten werden verschlüsselt dorthin gesendet. Die Chats bleiben nur auf diesem Computer.</translation>
    </message>
    <message>
        <source>Checking the file</source>
        <translation>Prüft die Datei</translation>
    </message>
    <message>
        <source>Checking the file, {amounts}</source>
        <translation>Datei wird geprüft, {amounts}</translation>
    </message>
    <message>
        <source>Choose another folder…</source>
        <translation>Anderen Ordner wählen…</translation>
    </message>
    <message>
        <source>Other computers in your household see the models loaded here and take turns chatting with them. You can see which computer is asking, but not what it asks. Each chat is kept only on the computer where it was written.</source>
        <translation>Die Computer Ihres Haushalts sehen die hier geladenen Modelle und chatten der Reihe nach mit ihnen. Sie sehen, welcher Computer fragt, aber nicht was. Die Chats bleiben nur auf dem Computer, der fragt.</translation>
    </message>
    <message>
        <source>Copied and verified</source>
        <translation>Kopiert und geprüft</translation>
    </message>
    <message>
        <source>Copy from {machine}</source>
        <translation>Von {machine} kopieren</translation>
    </message>
    <message>
        <source>Copying its layers</source>
        <translation>Die Schichten werden kopiert</translation>
    </message>
    <message>
        <source>Default: off</source>
        <translation>Standard: aus</translation>
    </message>
    <message>
        <source>Default: on</source>
        <translation>Standard: ein</translation>
    </message>
    <message>
        <source>Delete {size}</source>
        <translation>{size} löschen</translation>
    </message>
    <message>
        <source>Download</source>
        <translation>Herunterladen</translation>
    </message>
    <message>
        <source>Download {size}</source>
        <translation>{size} herunterladen</translation>
    </message>
    <message>
        <source>Downloaded and verified</source>
        <translation>Heruntergeladen und geprüft</translation>
    </message>
    <message>
        <source>Downloading…</source>
        <translation>Wird heruntergeladen…</translation>
    </message>
    <message>
        <source>Models are used from their old location until the copies are verified. If you uncheck this box, your models stay where they are and can still be used.</source>
        <translation>Jedes wird dort benutzt, wo es ist, bis es am neuen Ort vollständig ist und nachgelesen wurde. Ohne den Haken bleiben sie, wo sie sind, und lassen sich weiter benutzen.</translation>
    </message>
    <message>
        <source>Empty</source>
        <translation>Leer</translation>
    </message>
    <message>
        <source>Fits</source>
        <translation>Passt</translation>
    </message>
    <message>
        <source>Fits with a smaller context</source>
        <translation>Passt mit kleinerem Kontext</translation>
    </message>
    <message>
        <source>Fits with a {count}-token context</source>
        <translation>Passt mit {count} Token</translation>
    </message>
    <message>
        <source>Folders</source>
        <translation>Ordner</translation>
    </message>
    <message>
        <source>Gated models</source>
        <translation>Modelle mit beschränktem Zugang</translation>
    </message>
    <message>
        <source>Other machines can no longer copy models from this one. They can chat with models loaded here, and chats here can use theirs. Each machine uses its own processor instructions. Folders and the access token are unchanged.</source>
        <translation>Andere Geräte können keine Modelle mehr von diesem kopieren. Sie können mit den hier geladenen Modellen chatten, und Chats hier können ihre nutzen. Jedes Gerät verwendet seine eigenen Prozessorbefehle. Ordner und Zugangstoken bleiben unverändert.</translation>
    </message>
    <message>
        <source>Others may chat with models loaded here</source>
        <translation>Andere dürfen mit hier geladenen Modellen chatten</translation>
    </message>
    <message>
        <source>The model&apos;s chat template does not support tool calls.</source>
        <translation>Die Chat-Vorlage kann keine Werkzeuge aufrufen.</translation>
    </message>
    <message>
        <source>The model&apos;s chat template has no thinking mode.</source>
        <translation>Die Chat-Vorlage kennt kein Nachdenken.</translation>
    </message>
    <message>
        <source>Store models in Poolhouse&apos;s own folder</source>
        <translation>Modelle im eigenen Ordner von Poolhouse aufbewahren</translation>
    </message>
    <message>
        <source>Store models in another folder</source>
        <translation>Modelle in einem anderen Ordner aufbewahren</translation>
    </message>
    <message>
        <source>Store models there</source>
        <translation>Dort aufbewahren</translation>
    </message>
    <message>
        <source>Layers for other machines</source>
        <translation>Schichten für andere Geräte</translation>
    </message>
    <message>
        <source>Let my other machines copy models from here</source>
        <translation>Meine anderen Geräte dürfen Modelle von hier kopieren</translation>
    </message>
    <message>
        <source>Load</source>
        <translation>Laden</translation>
    </message>
    <message>
        <source>Load again</source>
        <translation>Erneut laden</translation>
    </message>
    <message>
        <source>Load alongside</source>
        <translation>Zusätzlich laden</translation>
    </message>
    <message>
        <source>Load alongside: {verdict}</source>
        <translation>Zusätzlich laden: {verdict}</translation>
    </message>
    <message>
        <source>Loaded</source>
        <translation>Geladen</translation>
    </message>
    <message>
        <source>Loading its layers</source>
        <translation>Die Schichten werden geladen</translation>
    </message>
    <message>
        <source>Checking that folder…</source>
        <translation>Der Ordner wird angesehen…</translation>
    </message>
    <message>
        <source>Measuring</source>
        <translation>Messung läuft</translation>
    </message>
    <message>
        <source>Models</source>
        <translation>Modelle</translation>
    </message>
    <message>
        <source>Models are already stored in {folder} ({free} free).</source>
        <translation>Modelle liegen schon in {folder}. Dort sind {free} frei.</translation>
    </message>
    <message numerus="yes">
        <source>Also move %n model(s) there ({size})</source>
        <translation>
            <numerusform>Auch %Ln Modell dorthin verschieben, {size}</numerusform>
            <numerusform>Auch %Ln Modelle dorthin verschieben, {size}</numerusform>
        </translation>
    </message>
    <message>
        <source>Move them here</source>
        <translation>Hierher verschieben</translation>
    </message>
    <message>
        <source>Moving {name}. Total: {done} of {total}</source>
        <translation>{name} wird verschoben. Insgesamt {done} von {total}</translation>
    </message>
    <message>
        <source>New models will be stored in {folder} ({free} free).</source>
        <translation>Neue Modelle kommen nach {folder}. Dort sind {free} frei.</translation>
    </message>
    <message>
        <source>Only needed for models that require you to accept their terms. No token is saved.</source>
        <translation>Nur für Modelle, deren Hersteller wissen wollen, wer sie herunterlädt. Es ist keines gespeichert.</translation>
    </message>
    <message>
        <source>Open</source>
        <translation>Öffnen</translation>
    </message>
    <message>
        <source>Open chat</source>
        <translation>Chat öffnen</translation>
    </message>
    <message>
        <source>Open the folder</source>
        <translation>Ordner öffnen</translation>
    </message>
    <message>
        <source>Over {size}</source>
        <translation>Über {size}</translation>
    </message>
    <message>
        <source>Computing the file&apos;s checksum</source>
        <translation>Datei wird für ihren Fingerabdruck gelesen</translation>
    </message>
    <message>
        <source>Computing the file&apos;s checksum, {amounts}</source>
        <translation>Datei wird für ihren Fingerabdruck gelesen, {amounts}</translation>
    </message>
    <message>
        <source>Resume at {done} of {total}</source>
        <translation>Bei {done} von {total} fortsetzen</translation>
    </message>
    <message>
        <source>The file&apos;s checksum is not known yet. Poolhouse records it during the first download.</source>
        <translation>Die Prüfsumme der Datei ist noch nicht bekannt. Der erste Download legt sie fest.</translation>
    </message>
    <message>
        <source>Up to {size}</source>
        <translation>Bis {size}</translation>
    </message>
    <message>
        <source>Paused at {amounts}</source>
        <translation>Pausiert bei {amounts}</translation>
    </message>
    <message numerus="yes">
        <source>%n download(s)</source>
        <translation>
            <numerusform>%Ln Download</numerusform>
            <numerusform>%Ln Downloads</numerusform>
        </translation>
    </message>
    <message>
        <source>All computers use the same processor instructions, so an answer continues with the same words if a computer is lost. In this mode, computers with AVX-512 read prompts about half as fast. Models that are loaded now stay as they are.</source>
        <translation>Alle Computer nutzen dieselben Prozessorbefehle. Fällt einer aus, geht die Antwort deshalb mit denselben Worten weiter. Computer mit AVX-512 lesen Eingaben dann etwa halb so schnell. Jetzt geladene Modelle bleiben, wie sie sind.</translation>
    </message>
    <message>
        <source>Completes text</source>
        <translation>Setzt Texte fort</translation>
    </message>
    <message>
        <source>Context</source>
        <translation>Kontext</translation>
    </message>
    <message>
        <source>Forecast: {speed}.</source>
        <translation>Prognose: {speed}.</translation>
    </message>
    <message>
        <source>Free for any use, including at work.</source>
        <translation>Für jeden Zweck frei, auch im Beruf.</translation>
    </message>
    <message>
        <source>Free for any use. Very large services must show the model&apos;s name.</source>
        <translation>Für jeden Zweck frei. Sehr große Dienste müssen den Namen des Modells zeigen.</translation>
    </message>
    <message>
        <source>Free, including at work, except for services with more than 700 million users.</source>
        <translation>Frei, auch im Beruf, außer für Dienste mit mehr als 700 Millionen Nutzern.</translation>
    </message>
    <message>
        <source>Free, including at work, for uses that Google&apos;s terms allow.</source>
        <translation>Frei, auch im Beruf, soweit es Googles Bedingungen erlauben.</translation>
    </message>
    <message>
        <source>Free, except for companies with a revenue above 10 million dollars a year.</source>
        <translation>Frei, außer für Firmen mit mehr als 10 Millionen Dollar Umsatz im Jahr.</translation>
    </message>
    <message>
        <source>Good at</source>
        <translation>Gut für</translation>
    </message>
    <message>
        <source>Its speed is not known yet.</source>
        <translation>Das Tempo ist noch nicht bekannt.</translation>
    </message>
    <message>
        <source>Languages</source>
        <translation>Sprachen</translation>
    </message>
    <message>
        <source>License</source>
        <translation>Lizenz</translation>
    </message>
    <message>
        <source>Loading</source>
        <translation>Laden</translation>
    </message>
    <message>
        <source>Made by</source>
        <translation>Hersteller</translation>
    </message>
    <message>
        <source>Many languages</source>
        <translation>Viele Sprachen</translation>
    </message>
    <message>
        <source>Needs {needs} of the {lends} that is free for models.</source>
        <translation>Braucht {needs} von {lends}, die für Modelle frei sind.</translation>
    </message>
    <message>
        <source>Other machines in your household can copy a model or an engine pack from here over your network instead of downloading it again.</source>
        <translation>Andere Geräte Ihres Haushalts können ein Modell oder ein Engine-Paket über Ihr Netz von hier kopieren, statt es noch einmal herunterzuladen.</translation>
    </message>
    <message>
        <source>Pictures</source>
        <translation>Bilder</translation>
    </message>
    <message>
        <source>Poolhouse keeps trying. To stop, click Pause.</source>
        <translation>Poolhouse versucht es weiter; Pausieren beendet das.</translation>
    </message>
    <message>
        <source>Preparing its layers</source>
        <translation>Die Schichten werden vorbereitet</translation>
    </message>
    <message>
        <source>Progress of the move</source>
        <translation>Fortschritt des Verschiebens</translation>
    </message>
    <message>
        <source>Remove</source>
        <translation>Entfernen</translation>
    </message>
    <message>
        <source>Remove from the list</source>
        <translation>Aus der Liste entfernen</translation>
    </message>
    <message>
        <source>Remove the access token</source>
        <translation>Zugriffstoken entfernen</translation>
    </message>
    <message>
        <source>Same results on all computers</source>
        <translation>Gleiche Ergebnisse auf allen Computern</translation>
    </message>
    <message>
        <source>Save</source>
        <translation>Speichern</translation>
    </message>
    <message>
        <source>Save the access token</source>
        <translation>Zugriffstoken speichern</translation>
    </message>
    <message>
        <source>Saved</source>
        <translation>Gespeichert</translation>
    </message>
    <message>
        <source>Show</source>
        <translation>Anzeigen</translation>
    </message>
    <message>
        <source>Size</source>
        <translation>Größe</translation>
    </message>
    <message>
        <source>Stop moving</source>
        <translation>Verschieben beenden</translation>
    </message>
    <message>
        <source>Testing the graphics card</source>
        <translation>Die Grafikkarte wird geprüft</translation>
    </message>
    <message>
        <source>There is not enough space there for your existing models. They stay where they are and can still be used.</source>
        <translation>Für sie ist dort nicht genug Platz. Sie bleiben, wo sie sind, und lassen sich benutzen.</translation>
    </message>
    <message>
        <source>Thinking</source>
        <translation>Denkt nach</translation>
    </message>
    <message>
        <source>Tight</source>
        <translation>Knapp</translation>
    </message>
    <message>
        <source>Too big</source>
        <translation>Zu groß</translation>
    </message>
    <message>
        <source>Too big by {size}</source>
        <translation>Um {size} zu groß</translation>
    </message>
    <message>
        <source>Tools</source>
        <translation>Werkzeuge</translation>
    </message>
    <message>
        <source>Try anyway</source>
        <translation>Trotzdem versuchen</translation>
    </message>
    <message>
        <source>Unload</source>
        <translation>Entladen</translation>
    </message>
    <message>
        <source>Use Poolhouse&apos;s own folder</source>
        <translation>Eigenen Ordner von Poolhouse benutzen</translation>
    </message>
    <message>
        <source>Use models that others have loaded</source>
        <translation>Modelle nutzen, die andere geladen haben</translation>
    </message>
    <message>
        <source>Use this file</source>
        <translation>Diese Datei verwenden</translation>
    </message>
    <message>
        <source>Waiting to start</source>
        <translation>Wartet, bis es an der Reihe ist</translation>
    </message>
    <message>
        <source>Working</source>
        <translation>Arbeitet</translation>
    </message>
    <message>
        <source>Your household</source>
        <translation>Ihr Haushalt</translation>
    </message>
    <message>
        <source>Your models</source>
        <translation>Ihre Modelle</translation>
    </message>
    <message>
        <source>about {size} to spare</source>
        <translation>etwa {size} übrig</translation>
    </message>
    <message>
        <source>came with Poolhouse</source>
        <translation>mit Poolhouse gekommen</translation>
    </message>
    <message>
        <source>conversation</source>
        <translation>Gespräche</translation>
    </message>
    <message>
        <source>from {source}</source>
        <translation>von {source}</translation>
    </message>
    <message>
        <source>long texts</source>
        <translation>lange Texte</translation>
    </message>
    <message>
        <source>many languages</source>
        <translation>viele Sprachen</translation>
    </message>
    <message>
        <source>not available</source>
        <translation>nicht verfügbar</translation>
    </message>
    <message>
        <source>not in the catalog</source>
        <translation>nicht im Katalog</translation>
    </message>
    <message>
        <source>not stated</source>
        <translation>nicht angegeben</translation>
    </message>
    <message>
        <source>of which {active} are used for each word</source>
        <translation>davon rechnen {active} für jedes Wort</translation>
    </message>
    <message>
        <source>only {size} to spare</source>
        <translation>nur {size} übrig</translation>
    </message>
    <message>
        <source>paused</source>
        <translation>pausiert</translation>
    </message>
    <message>
        <source>programming</source>
        <translation>Programmieren</translation>
    </message>
    <message>
        <source>size not known</source>
        <translation>Größe nicht bekannt</translation>
    </message>
    <message>
        <source>small computers</source>
        <translation>kleine Computer</translation>
    </message>
    <message>
        <source>small, for learning the app</source>
        <translation>klein, zum Probieren</translation>
    </message>
    <message>
        <source>thinking before it answers</source>
        <translation>Nachdenken vor der Antwort</translation>
    </message>
    <message>
        <source>up to {tokens} tokens, about {words} English words</source>
        <translation>bis zu {tokens} Token, etwa {words} englische Wörter</translation>
    </message>
    <message>
        <source>using tools</source>
        <translation>Werkzeuge benutzen</translation>
    </message>
    <message>
        <source>weights {weights} + KV cache {kv} + working memory {work}, with {left} left</source>
        <translation>Gewichte {weights} + KV {kv} + Rechnen {work}, {left} übrig</translation>
    </message>
    <message>
        <source>can&apos;t be split</source>
        <translation>nur ganz</translation>
    </message>
    <message>
        <source>Reload</source>
        <translation>Neu laden</translation>
    </message>
    <message>
        <source>Weights {weights} + KV cache {kv} + working memory {work} = {needs}. {lends} is free for models now.</source>
        <translation>Gewichte {weights} + KV-Cache {kv} + Speicher zum Rechnen {work} = {needs}. Für Modelle sind jetzt {lends} frei.</translation>
    </message>
    <message>
        <source>Weights {weights} + KV cache {kv} for {tokens} tokens + working memory {work} = {needs}. {lends} is free for models now.</source>
        <translation>Gewichte {weights} + KV-Cache {kv} für {tokens} Token + Speicher zum Rechnen {work} = {needs}. Für Modelle sind jetzt {lends} frei.</translation>
    </message>
    <message>
        <source>{count} downloads</source>
        <translation>{count} Downloads</translation>
    </message>
    <message>
        <source>{count} languages</source>
        <translation>{count} Sprachen</translation>
    </message>
    <message>
        <source>{count} languages, according to its maker</source>
        <translation>{count} Sprachen, sagt der Hersteller</translation>
    </message>
    <message>
        <source>{count} parameters</source>
        <translation>{count} Parameter</translation>
    </message>
    <message>
        <source>{count} tokens</source>
        <translation>{count} Token</translation>
    </message>
    <message>
        <source>{count}B</source>
        <translation>{count} Mrd.</translation>
    </message>
    <message>
        <source>{count}M</source>
        <translation>{count} Mio.</translation>
    </message>
    <message>
        <source>{done} of at least {total}</source>
        <translation>{done} von mindestens {total}</translation>
    </message>
    <message>
        <source>{done} of {total}</source>
        <translation>{done} von {total}</translation>
    </message>
    <message>
        <source>{free} free on this disk.</source>
        <translation>Auf diesem Datenträger sind {free} frei.</translation>
    </message>
    <message>
        <source>{names} and {count} more</source>
        <translation>{names} und {count} weitere</translation>
    </message>
    <message>
        <source>{quantization} fits</source>
        <translation>{quantization} passt</translation>
    </message>
    <message>
        <source>{size} to spare</source>
        <translation>{size} übrig</translation>
    </message>
    <message>
        <source>{time} left</source>
        <translation>noch {time}</translation>
    </message>
</context>
<context>
    <name>ModelsPage</name>
    <message>
        <source>Add a machine</source>
        <translation>Gerät hinzufügen</translation>
    </message>
    <message>
        <source>GGUF models (*.gguf)</source>
        <translation>GGUF-Modelle (*.gguf)</translation>
    </message>
    <message>
        <source>Import a file…</source>
        <translation>Datei importieren…</translation>
    </message>
    <message>
        <source>Import a model</source>
        <translation>Modell importieren</translation>
    </message>
    <message>
        <source>Drop the file here to add this model</source>
        <translation>Loslassen, um dieses Modell hinzuzufügen</translation>
    </message>
    <message>
        <source>Models</source>
        <translation>Modelle</translation>
    </message>
    <message>
        <source>No larger model fits in the memory that is free for models now. Add a machine, or let models use more memory.</source>
        <translation>Kein größeres Modell passt in den Speicher, der jetzt für Modelle frei ist. Fügen Sie ein Gerät hinzu, oder geben Sie Modellen mehr Speicher.</translation>
    </message>
    <message>
        <source>No model in the catalog fits comfortably. Close large programs, let models use more memory, or add a machine.</source>
        <translation>Kein Modell des Katalogs passt mit genug Spielraum. Schließen Sie große Programme, lassen Sie Modelle mehr Speicher nutzen oder fügen Sie einen Computer hinzu.</translation>
    </message>
    <message>
        <source>Show</source>
        <translation>Anzeigen</translation>
    </message>
    <message>
        <source>Show log</source>
        <translation>Sein Protokoll zeigen</translation>
    </message>
    <message>
        <source>Use a smaller context</source>
        <translation>Kleineren Kontext verwenden</translation>
    </message>
    <message>
        <source>{model} is ready.</source>
        <translation>{model} ist bereit.</translation>
    </message>
    <message>
        <source>{name} was copied and verified.</source>
        <translation>{name} ist kopiert und geprüft.</translation>
    </message>
    <message>
        <source>{name} was downloaded and verified.</source>
        <translation>{name} ist heruntergeladen und geprüft.</translation>
    </message>
</context>
<context>
    <name>Moments</name>
    <message>
        <source>Yesterday {time}</source>
        <translation>Gestern {time}</translation>
    </message>
</context>
<context>
    <name>MoveNotice</name>
    <message>
        <source>Move back</source>
        <translation>Zurück verschieben</translation>
    </message>
    <message>
        <source>The layers are moving back and will stay there until you load the model again.</source>
        <translation>Die Schichten kehren zurück. Sie bleiben dort, bis Sie das Modell neu laden.</translation>
    </message>
    <message>
        <source>{model}, {time}:</source>
        <translation>{model}, {time}:</translation>
    </message>
</context>
<context>
    <name>NameDialog</name>
    <message>
        <source>Cancel</source>
        <translation>Abbrechen</translation>
    </message>
    <message>
        <source>Save</source>
        <translation>Speichern</translation>
    </message>
</context>
<context>
    <name>NameField</name>
    <message>
        <source>Name of this computer</source>
        <translation>Name dieses Computers</translation>
    </message>
    <message>
        <source>One moment…</source>
        <translation>Einen Moment…</translation>
    </message>
    <message>
        <source>Your other computers will see this name. It doesn&apos;t have to identify you.</source>
        <translation>Ihre anderen Computer sehen diesen Namen. Er verrät nicht, wer Sie sind.</translation>
    </message>
</context>
<context>
    <name>NarrowNotice</name>
    <message>
        <source>Close this notice</source>
        <translation>Diesen Hinweis schließen</translation>
    </message>
</context>
<context>
    <name>Nearby</name>
    <message>
        <source>A machine at {address}</source>
        <translation>Ein Gerät unter {address}</translation>
    </message>
    <message>
        <source>Nearby machines that are not in this household</source>
        <translation>In der Nähe, nicht aus diesem Haushalt</translation>
    </message>
    <message>
        <source>{claims} (reported by that machine)</source>
        <translation>{claims}: nach eigener Angabe</translation>
    </message>
    <message>
        <source>{name} is ready to pair</source>
        <translation>{name} nimmt ein Gerät auf</translation>
    </message>
    <message numerus="yes">
        <source>and %n more</source>
        <translation>
            <numerusform>und %Ln weiteres</numerusform>
            <numerusform>und %Ln weitere</numerusform>
        </translation>
    </message>
    <message>
        <source>{machine} (number {number})</source>
        <translation>{machine}, Nummer {number}</translation>
    </message>
</context>
<context>
    <name>Network</name>
    <message>
        <source>Address</source>
        <translation>Adresse</translation>
    </message>
    <message>
        <source>Any free port</source>
        <translation>Beliebiger freier</translation>
    </message>
    <message>
        <source>Uses multicast on your network. If this is off, you can only connect to machines by address.</source>
        <translation>Per Multicast in Ihrem Netzwerk. Aus: Geräte sind nur über ihre Adresse erreichbar.</translation>
    </message>
    <message>
        <source>Copy</source>
        <translation>Kopieren</translation>
    </message>
    <message>
        <source>Copy the address</source>
        <translation>Adresse kopieren</translation>
    </message>
    <message>
        <source>Default: Poolhouse picks an unused port and keeps it</source>
        <translation>Standard: Poolhouse wählt einen freien Port und behält ihn</translation>
    </message>
    <message>
        <source>Default: on</source>
        <translation>Standard: ein</translation>
    </message>
    <message>
        <source>Find machines nearby</source>
        <translation>Geräte in der Nähe finden</translation>
    </message>
    <message>
        <source>Choose a port if a router or firewall needs a fixed one.</source>
        <translation>Für einen Router oder eine Firewall, die einen festen Port brauchen.</translation>
    </message>
    <message>
        <source>Use this if a machine isn&apos;t found automatically. You can find its address on that machine in Settings &gt; Network.</source>
        <translation>Für ein Gerät, das nicht von selbst gefunden wird. Seine Adresse steht auf jenem Gerät unter Einstellungen &gt; Netzwerk.</translation>
    </message>
    <message>
        <source>Interfaces, Ethernet, Wi-Fi, VPN, cable, virtual</source>
        <translation>Anschlüsse Schnittstellen Ethernet WLAN Wi-Fi VPN Kabel virtuell</translation>
    </message>
    <message>
        <source>Network interfaces of this computer</source>
        <translation>Anschlüsse dieses Computers</translation>
    </message>
    <message>
        <source>Name of this machine</source>
        <translation>Name dieses Geräts</translation>
    </message>
    <message>
        <source>Network</source>
        <translation>Netzwerk</translation>
    </message>
    <message>
        <source>Other machines</source>
        <translation>Andere Geräte</translation>
    </message>
    <message>
        <source>Port</source>
        <translation>Port</translation>
    </message>
    <message>
        <source>Connect to a machine by address</source>
        <translation>Gerät über seine Adresse erreichen</translation>
    </message>
    <message>
        <source>Rename</source>
        <translation>Umbenennen</translation>
    </message>
    <message>
        <source>Saved. Takes effect when the background service restarts.</source>
        <translation>Gespeichert. Es gilt, sobald der Hintergrunddienst neu startet.</translation>
    </message>
    <message>
        <source>Address copied.</source>
        <translation>Die Adresse wurde kopiert.</translation>
    </message>
    <message>
        <source>Other machines see this name. Poolhouse never uses your login name.</source>
        <translation>Die anderen sehen ihn. Es ist nie Ihr Anmeldename.</translation>
    </message>
    <message>
        <source>This machine is now called {name}.</source>
        <translation>Dieses Gerät heißt jetzt {name}.</translation>
    </message>
    <message>
        <source>Other machines connect to this address.</source>
        <translation>Hier erreichen die anderen Geräte dieses Gerät.</translation>
    </message>
</context>
<context>
    <name>Notice</name>
    <message>
        <source>Close this notice</source>
        <translation>Diesen Hinweis schließen</translation>
    </message>
</context>
<context>
    <name>Now</name>
    <message numerus="yes">
        <source>%n question(s) waiting</source>
        <translation>
            <numerusform>%Ln Frage wartet</numerusform>
            <numerusform>%Ln Fragen warten</numerusform>
        </translation>
    </message>
    <message>
        <source>Copying {model}</source>
        <translation>{model} wird kopiert</translation>
    </message>
    <message>
        <source>Downloading {model}</source>
        <translation>{model} wird heruntergeladen</translation>
    </message>
    <message>
        <source>Loading {model}</source>
        <translation>{model} wird geladen</translation>
    </message>
    <message>
        <source>Rebuilding {model}</source>
        <translation>{model} wird neu aufgebaut</translation>
    </message>
    <message>
        <source>Sending layers of {model} to {machine}</source>
        <translation>Schichten von {model} werden an {machine} gesendet</translation>
    </message>
    <message>
        <source>Sending {model} to {machine}</source>
        <translation>{model} wird an {machine} gesendet</translation>
    </message>
    <message>
        <source>Importing {name}</source>
        <translation>{name} wird aufgenommen</translation>
    </message>
    <message>
        <source>This machine is working on an answer for {name}</source>
        <translation>Dieses Gerät rechnet für eine Antwort von {name}</translation>
    </message>
    <message>
        <source>This machine has layers loaded for {name}</source>
        <translation>Dieses Gerät hält Schichten für {name}</translation>
    </message>
    <message>
        <source>{done} of {total}</source>
        <translation>{done} von {total}</translation>
    </message>
    <message>
        <source>{machine} is loading its layers of {model}</source>
        <translation>{machine} lädt seine Schichten von {model}</translation>
    </message>
    <message>
        <source>{machine} is preparing its layers of {model}</source>
        <translation>{machine} bereitet seine Schichten von {model} vor</translation>
    </message>
    <message>
        <source>{model} is answering the phone {name}</source>
        <translation>{model} antwortet dem Handy {name}</translation>
    </message>
    <message>
        <source>{model} is reading a question from a program without a key</source>
        <translation>{model} liest eine Frage eines Programms ohne Schlüssel</translation>
    </message>
    <message>
        <source>{model} is reading a question from the guest {name}</source>
        <translation>{model} liest eine Frage des Gasts {name}</translation>
    </message>
    <message>
        <source>{model} is reading a question from the phone {name}</source>
        <translation>{model} liest eine Frage vom Handy {name}</translation>
    </message>
    <message>
        <source>{model} is reading a question from the program {name}</source>
        <translation>{model} liest eine Frage des Programms {name}</translation>
    </message>
    <message>
        <source>{model} is reading your question</source>
        <translation>{model} liest Ihre Frage</translation>
    </message>
    <message>
        <source>{model} is reading a question from {name}</source>
        <translation>{model} liest eine Frage von {name}</translation>
    </message>
    <message>
        <source>{model} is answering a program without a key</source>
        <translation>{model} schreibt eine Antwort für ein Programm ohne Schlüssel</translation>
    </message>
    <message>
        <source>{model} is answering the guest {name}</source>
        <translation>{model} schreibt eine Antwort für den Gast {name}</translation>
    </message>
    <message>
        <source>{model} is answering the program {name}</source>
        <translation>{model} schreibt eine Antwort für das Programm {name}</translation>
    </message>
    <message>
        <source>{model} is writing your answer</source>
        <translation>{model} schreibt Ihnen eine Antwort</translation>
    </message>
    <message>
        <source>{model} is answering {name}</source>
        <translation>{model} schreibt eine Antwort für {name}</translation>
    </message>
    <message>
        <source>{tokens} tokens</source>
        <translation>{tokens} Token</translation>
    </message>
</context>
<context>
    <name>NowCard</name>
    <message>
        <source>Nothing is running now.</source>
        <translation>Gerade läuft nichts.</translation>
    </message>
    <message>
        <source>Now</source>
        <translation>Jetzt</translation>
    </message>
</context>
<context>
    <name>Overview</name>
    <message>
        <source>Answers</source>
        <translation>Antworten</translation>
    </message>
    <message>
        <source>Ask a question to see what each machine contributed to the answer.</source>
        <translation>Stellen Sie eine Frage. Danach steht hier, was jedes Gerät zur Antwort beigetragen hat.</translation>
    </message>
    <message>
        <source>Forecast and result</source>
        <translation>Prognose und Wirklichkeit</translation>
    </message>
    <message>
        <source>During that time, the whole machine used {energy}.</source>
        <translation>In dieser Zeit hat das ganze Gerät {energy} verbraucht.</translation>
    </message>
    <message>
        <source>Lent to others</source>
        <translation>An andere verliehen</translation>
    </message>
    <message>
        <source>No answers yet</source>
        <translation>Noch keine Antworten</translation>
    </message>
    <message>
        <source>Nothing to compare yet. A comparison appears after a long answer that ran without others at the same time.</source>
        <translation>Noch gibt es nichts zu vergleichen. Ein Vergleich erscheint nach einer langen Antwort, während der keine anderen liefen.</translation>
    </message>
    <message>
        <source>Open the chat</source>
        <translation>Den Chat öffnen</translation>
    </message>
    <message>
        <source>Other machines have not used this one yet.</source>
        <translation>Andere Geräte haben dieses noch nicht benutzt.</translation>
    </message>
    <message>
        <source>Since {day}, this machine has held layers for other machines for a total of {time}. It has processed {tokens} tokens for them and transferred {size}.</source>
        <translation>Seit {day} hatten andere hier {time} lang Schichten. Für sie wurden {tokens} Token-Positionen berechnet; {size} gingen hinein und hinaus.</translation>
    </message>
    <message>
        <source>Where the time went: {seconds} for {tokens} tokens</source>
        <translation>Wohin die Zeit ging: {seconds} für {tokens} Token</translation>
    </message>
    <message>
        <source>computing, including network time</source>
        <translation>rechnet, mit Hin- und Rückweg</translation>
    </message>
    <message>
        <source>first token</source>
        <translation>erstes Token</translation>
    </message>
    <message>
        <source>reading</source>
        <translation>liest</translation>
    </message>
    <message>
        <source>speed</source>
        <translation>Geschwindigkeit</translation>
    </message>
    <message>
        <source>waiting</source>
        <translation>wartet</translation>
    </message>
    <message>
        <source>writing</source>
        <translation>schreibt</translation>
    </message>
    <message>
        <source>{seconds} for {tokens} tokens (the bars include work for other answers)</source>
        <translation>{seconds} für {tokens} Token; die Balken enthalten auch die Arbeit für andere Antworten</translation>
    </message>
</context>
<context>
    <name>PhoneSettings</name>
    <message>
        <source>Add a device</source>
        <translation>Gerät hinzufügen</translation>
    </message>
    <message>
        <source>Add a phone or tablet…</source>
        <translation>Handy oder Tablet hinzufügen…</translation>
    </message>
    <message>
        <source>Added {added}, last used {used}</source>
        <translation>Hinzugefügt {added}, zuletzt benutzt {used}</translation>
    </message>
    <message>
        <source>Added {added}, not used yet</source>
        <translation>Hinzugefügt {added}, noch nicht benutzt</translation>
    </message>
    <message>
        <source>Address copied.</source>
        <translation>Adresse kopiert.</translation>
    </message>
    <message>
        <source>Address for phones</source>
        <translation>Adresse für Handys</translation>
    </message>
    <message>
        <source>Browsers show a warning the first time because this computer made its own certificate. Before you continue there, check that the browser shows the same fingerprint.</source>
        <translation>Browser warnen beim ersten Mal, weil dieser Computer sein Zertifikat selbst erstellt hat. Prüfen Sie, bevor Sie dort fortfahren, ob der Browser denselben Fingerabdruck zeigt.</translation>
    </message>
    <message>
        <source>Certificate fingerprint</source>
        <translation>Fingerabdruck des Zertifikats</translation>
    </message>
    <message>
        <source>Copy</source>
        <translation>Kopieren</translation>
    </message>
    <message>
        <source>Copy the address for phones</source>
        <translation>Adresse für Handys kopieren</translation>
    </message>
    <message>
        <source>Default: off</source>
        <translation>Standard: aus</translation>
    </message>
    <message>
        <source>Devices</source>
        <translation>Geräte</translation>
    </message>
    <message>
        <source>Each device joins with a one-time code and may only chat with models that are loaded.</source>
        <translation>Jedes Gerät verbindet sich mit einem Code, der einmal gilt. Es darf nur mit geladenen Modellen chatten.</translation>
    </message>
    <message>
        <source>No device is connected.</source>
        <translation>Kein Gerät ist verbunden.</translation>
    </message>
    <message>
        <source>Off</source>
        <translation>Aus</translation>
    </message>
    <message>
        <source>Phones</source>
        <translation>Handys</translation>
    </message>
    <message>
        <source>Phones and tablets may chat here</source>
        <translation>Handys und Tablets dürfen hier chatten</translation>
    </message>
    <message>
        <source>Remove {name}</source>
        <translation>{name} entfernen</translation>
    </message>
    <message>
        <source>Remove…</source>
        <translation>Entfernen…</translation>
    </message>
    <message>
        <source>The devices stay paired. They can chat again when you turn this on.</source>
        <translation>Die Geräte bleiben gekoppelt. Sie können wieder chatten, sobald Sie das einschalten.</translation>
    </message>
    <message>
        <source>Phones open a chat page in their browser over your own network. They need no app, no account and no internet.</source>
        <translation>Sie öffnen eine Chat-Seite in ihrem Browser, über Ihr eigenes Netz: ohne App, ohne Konto, ohne Internet.</translation>
    </message>
    <message>
        <source>This computer is not on any of the household&apos;s networks.</source>
        <translation>Dieser Computer ist in keinem Netz des Haushalts.</translation>
    </message>
</context>
<context>
    <name>Picture</name>
    <message>
        <source>Picture {name}, {width} × {height}</source>
        <translation>Bild {name}, {width} × {height}</translation>
    </message>
</context>
<context>
    <name>PictureWindow</name>
    <message>
        <source>Close</source>
        <translation>Schließen</translation>
    </message>
    <message>
        <source>Opening the picture…</source>
        <translation>Das Bild wird geöffnet…</translation>
    </message>
    <message>
        <source>Picture</source>
        <translation>Bild</translation>
    </message>
    <message>
        <source>Pictures (*{suffix})</source>
        <translation>Bilder (*{suffix})</translation>
    </message>
    <message>
        <source>Save as…</source>
        <translation>Speichern unter…</translation>
    </message>
    <message>
        <source>Save the picture</source>
        <translation>Bild speichern</translation>
    </message>
    <message>
        <source>This picture can&apos;t be shown.</source>
        <translation>Dieses Bild kann nicht gezeigt werden.</translation>
    </message>
</context>
<context>
    <name>PlacementChoice</name>
    <message>
        <source>Host shown on the map</source>
        <translation>Wessen Modell die Karte zeigt</translation>
    </message>
    <message>
        <source>Show the model of</source>
        <translation>Gezeigt wird das Modell von</translation>
    </message>
    <message>
        <source>{name} (this machine)</source>
        <translation>{name} (dieses Gerät)</translation>
    </message>
    <message>
        <source>{name}: {model}</source>
        <translation>{name}: {model}</translation>
    </message>
</context>
<context>
    <name>Places</name>
    <message>
        <source>How to update</source>
        <translation>So wird aktualisiert</translation>
    </message>
    <message>
        <source>Open Settings &gt; Models</source>
        <translation>Einstellungen &gt; Modelle öffnen</translation>
    </message>
    <message>
        <source>Open Settings &gt; Network</source>
        <translation>Einstellungen &gt; Netzwerk öffnen</translation>
    </message>
    <message>
        <source>Open This computer</source>
        <translation>„Dieser Computer“ öffnen</translation>
    </message>
    <message>
        <source>Show log</source>
        <translation>Protokoll zeigen</translation>
    </message>
</context>
<context>
    <name>PoolPage</name>
    <message>
        <source>Add a machine</source>
        <translation>Gerät hinzufügen</translation>
    </message>
    <message>
        <source>Add another machine to run larger models together.</source>
        <translation>Fügen Sie ein weiteres Gerät hinzu, dann fassen beide zusammen größere Modelle.</translation>
    </message>
    <message>
        <source>Join a household</source>
        <translation>Einem Haushalt beitreten</translation>
    </message>
    <message>
        <source>Leave the household…</source>
        <translation>Haushalt verlassen…</translation>
    </message>
    <message>
        <source>Only this machine so far</source>
        <translation>Bisher nur dieses Gerät</translation>
    </message>
    <message>
        <source>Pool</source>
        <translation>Pool</translation>
    </message>
    <message>
        <source>Test links</source>
        <translation>Verbindungen testen</translation>
    </message>
    <message>
        <source>Testing…</source>
        <translation>Wird geprüft…</translation>
    </message>
    <message>
        <source>Why can&apos;t Poolhouse find my other computer?</source>
        <translation>Warum wird mein anderer Computer nicht gefunden?</translation>
    </message>
</context>
<context>
    <name>Presets</name>
    <message>
        <source>Same answer every time</source>
        <translation>Immer gleich</translation>
    </message>
    <message>
        <source>Answer briefly and clearly. Say so if you do not know.</source>
        <translation>Antworte kurz und klar. Sage es, wenn du etwas nicht weißt.</translation>
    </message>
    <message>
        <source>Balanced</source>
        <translation>Ausgewogen</translation>
    </message>
    <message>
        <source>Creative</source>
        <translation>Kreativ</translation>
    </message>
    <message>
        <source>Edit a text</source>
        <translation>Einen Text überarbeiten</translation>
    </message>
    <message>
        <source>Explain simply</source>
        <translation>Einfach erklären</translation>
    </message>
    <message>
        <source>Explain things to someone who is new to the subject. Use short sentences and an example.</source>
        <translation>Erkläre so, dass auch jemand es versteht, für den das Thema neu ist. Verwende kurze Sätze und ein Beispiel.</translation>
    </message>
    <message>
        <source>Helpful and brief</source>
        <translation>Hilfreich und kurz</translation>
    </message>
    <message>
        <source>Improve the spelling, grammar and style of the text. Keep its meaning and language. Show the improved text, then list your changes.</source>
        <translation>Verbessere Rechtschreibung, Grammatik und Stil. Behalte Sinn und Sprache bei. Zeige den Text und danach, was du geändert hast.</translation>
    </message>
    <message>
        <source>Precise</source>
        <translation>Genau</translation>
    </message>
    <message>
        <source>Programming</source>
        <translation>Programmieren</translation>
    </message>
    <message>
        <source>You are a programming assistant. Show complete, working code and explain how to run it.</source>
        <translation>Du hilfst beim Programmieren. Zeige vollständigen Code, der funktioniert, und sage, wie man ihn ausführt.</translation>
    </message>
</context>
<context>
    <name>Privacy</name>
    <message numerus="yes">
        <source>%n download(s) in progress</source>
        <translation>
            <numerusform>%Ln Download läuft</numerusform>
            <numerusform>%Ln Downloads laufen</numerusform>
        </translation>
    </message>
    <message>
        <source>Access token for Hugging Face</source>
        <translation>Zugriffstoken für Hugging Face</translation>
    </message>
    <message>
        <source>Announces this machine, without its name, so that others can find it.</source>
        <translation>Gibt ohne einen Namen bekannt, dass hier ein Poolhouse ist, damit andere es finden.</translation>
    </message>
    <message>
        <source>Before you remove Poolhouse</source>
        <translation>Bevor Sie Poolhouse entfernen</translation>
    </message>
    <message>
        <source>Chats</source>
        <translation>Chats</translation>
    </message>
    <message>
        <source>Connections this app never makes</source>
        <translation>Verbindungen, die sie nicht aufbaut</translation>
    </message>
    <message>
        <source>Connections this app makes</source>
        <translation>Verbindungen, die diese App aufbaut</translation>
    </message>
    <message>
        <source>Default: off</source>
        <translation>Standard: aus</translation>
    </message>
    <message>
        <source>Deletes everything Poolhouse stores on this computer, then quits.</source>
        <translation>Löscht alles, was Poolhouse auf diesem Computer aufhebt, und beendet es.</translation>
    </message>
    <message>
        <source>Encrypt my chats</source>
        <translation>Meine Chats verschlüsseln</translation>
    </message>
    <message>
        <source>All connections are encrypted and limited to machines that were paired with a code.</source>
        <translation>Verschlüsselt, und nur mit Geräten, die mit einem Code gekoppelt wurden.</translation>
    </message>
    <message>
        <source>These older files with your chats are not encrypted: {names}. If you don&apos;t need them, delete them from {folder}.</source>
        <translation>Früher beiseitegelegte Dateien sind weiterhin lesbar: {names}. Löschen Sie sie in {folder}, wenn Sie sie nicht brauchen.</translation>
    </message>
    <message>
        <source>Fully on</source>
        <translation>Ganz eingeschlossen</translation>
    </message>
    <message>
        <source>Key of this machine</source>
        <translation>Schlüssel dieses Geräts</translation>
    </message>
    <message>
        <source>Chat key</source>
        <translation>Schlüssel Ihrer Chats</translation>
    </message>
    <message>
        <source>Last: {time}</source>
        <translation>Zuletzt {time}</translation>
    </message>
    <message>
        <source>Machines in your household</source>
        <translation>Geräte Ihres Haushalts</translation>
    </message>
    <message>
        <source>Never</source>
        <translation>Noch nie gefragt</translation>
    </message>
    <message>
        <source>What the model computed for a long prompt is stored here, encrypted. Chats about the same document then start at once, even after a restart. This also applies to layers that this computer computes for other machines in your household, but not to guests.</source>
        <translation>Was das Modell für eine lange Eingabe berechnet hat, wird hier verschlüsselt gespeichert. Chats über dasselbe Dokument beginnen dann sofort, auch nach einem Neustart. Das gilt auch für Schichten, die dieser Computer für andere Geräte Ihres Haushalts berechnet, aber nicht für Gäste.</translation>
    </message>
    <message>
        <source>Updates of Poolhouse</source>
        <translation>Neuere Versionen von Poolhouse</translation>
    </message>
    <message>
        <source>No check for updates</source>
        <translation>Keine Suche nach Updates</translation>
    </message>
    <message>
        <source>No keyring was found, so the key is in a file next to your chats. Anyone who gets both can read them.</source>
        <translation>Es wurde kein Schlüsselbund gefunden, deshalb liegt der Schlüssel in einer Datei neben Ihren Chats. Wer beides hat, kann sie lesen.</translation>
    </message>
    <message>
        <source>No telemetry</source>
        <translation>Keine Telemetrie</translation>
    </message>
    <message>
        <source>Poolhouse never reports what you do, how often you do it, or that you use this app.</source>
        <translation>Niemand erfährt, was Sie tun, wie oft, oder dass Sie diese App benutzen.</translation>
    </message>
    <message>
        <source>No server is turned on</source>
        <translation>Keiner ist eingeschaltet</translation>
    </message>
    <message>
        <source>None saved</source>
        <translation>Keines gespeichert</translation>
    </message>
    <message>
        <source>None yet</source>
        <translation>Noch keine</translation>
    </message>
    <message>
        <source>None: your chats are not encrypted</source>
        <translation>Keiner: Ihre Chats sind nicht verschlüsselt</translation>
    </message>
    <message>
        <source>Unknown</source>
        <translation>Nicht bekannt</translation>
    </message>
    <message>
        <source>Not available</source>
        <translation>Nicht eingeschlossen</translation>
    </message>
    <message>
        <source>Not used since the background service started</source>
        <translation>Nicht seit dem Start des Hintergrunddienstes</translation>
    </message>
    <message>
        <source>Off</source>
        <translation>Aus</translation>
    </message>
    <message>
        <source>On</source>
        <translation>Ein</translation>
    </message>
    <message>
        <source>On this computer</source>
        <translation>Auf diesem Computer</translation>
    </message>
    <message>
        <source>As you chose, Poolhouse checks {place} for a new version once a day.</source>
        <translation>Einmal am Tag, wie Sie es gewählt haben: {place} wird nach der neuesten Version gefragt.</translation>
    </message>
    <message>
        <source>Poolhouse checks {place} for a new version only when you click “Check now”.</source>
        <translation>Nur wenn Sie „Jetzt nachsehen“ drücken: {place} wird nach der neuesten Version gefragt.</translation>
    </message>
    <message>
        <source>Poolhouse connects only when you search for or download a model there.</source>
        <translation>Nur, wenn Sie dort ein Modell suchen oder herunterladen.</translation>
    </message>
    <message>
        <source>Other servers you added</source>
        <translation>Andere Server, die Sie angegeben haben</translation>
    </message>
    <message>
        <source>Partly on</source>
        <translation>Teilweise eingeschlossen</translation>
    </message>
    <message>
        <source>Poolhouse never checks for newer versions.</source>
        <translation>Poolhouse fragt nie nach neueren Versionen.</translation>
    </message>
    <message>
        <source>Privacy</source>
        <translation>Datenschutz</translation>
    </message>
    <message>
        <source>Prompts that have not been used for 14 days are deleted automatically.</source>
        <translation>Eingaben, die 14 Tage lang nicht benutzt wurden, werden automatisch gelöscht.</translation>
    </message>
    <message>
        <source>Protection from model files</source>
        <translation>Schutz vor Modelldateien</translation>
    </message>
    <message>
        <source>Remove all data</source>
        <translation>Alle Daten löschen</translation>
    </message>
    <message>
        <source>Remove all data…</source>
        <translation>Alle Daten löschen…</translation>
    </message>
    <message>
        <source>Messages, titles, folders, drafts and system messages are encrypted on disk. The chat key is stored with this machine&apos;s key. If you lose the chat key, you lose your chats. Exported chats are not encrypted.</source>
        <translation>Was gesagt wird, Titel, Ordner, Entwürfe und Systemnachrichten stehen verschlüsselt auf der Festplatte. Ihr Schlüssel liegt beim Schlüssel dieses Geräts; wer ihn verliert, verliert die Chats. Was Sie exportieren, bleibt lesbar.</translation>
    </message>
    <message>
        <source>Programs on this machine and on guest machines may use a server that is turned on in Settings &gt; Local API. Your chats in this window are never sent there.</source>
        <translation>Was Programme fragen, hier oder auf einem Ihrer Gäste, kann an einen Server gehen, der unter Einstellungen &gt; Lokale API eingeschaltet ist. Was Sie in diesem Fenster schreiben, nicht.</translation>
    </message>
    <message>
        <source>Model sandbox</source>
        <translation>Was Modelldateien liest</translation>
    </message>
    <message>
        <source>5% of the free disk, at most 4 GiB</source>
        <translation>5 % des freien Speicherplatzes, höchstens 4 GiB</translation>
    </message>
    <message>
        <source>Default: on</source>
        <translation>Standard: an</translation>
    </message>
    <message>
        <source>Delete kept prompts</source>
        <translation>Aufbewahrte Eingaben löschen</translation>
    </message>
    <message>
        <source>Disk space for kept prompts</source>
        <translation>Speicherplatz für aufbewahrte Eingaben</translation>
    </message>
    <message>
        <source>Keep long prompts on this computer</source>
        <translation>Lange Eingaben auf diesem Computer aufbewahren</translation>
    </message>
    <message>
        <source>Kept prompts</source>
        <translation>Aufbewahrte Eingaben</translation>
    </message>
    <message>
        <source>No prompts are kept because their key can&apos;t be read.</source>
        <translation>Es werden keine Eingaben aufbewahrt, weil ihr Schlüssel nicht gelesen werden kann.</translation>
    </message>
    <message>
        <source>The kept prompts were deleted.</source>
        <translation>Die aufbewahrten Eingaben wurden gelöscht.</translation>
    </message>
    <message>
        <source>When the space is used up, the least recently used prompts are deleted.</source>
        <translation>Wenn der Platz belegt ist, werden die am längsten nicht benutzten Eingaben gelöscht.</translation>
    </message>
    <message>
        <source>Where keys are stored</source>
        <translation>Wo es aufbewahrt wird</translation>
    </message>
    <message>
        <source>Your chats</source>
        <translation>Ihre Chats</translation>
    </message>
    <message>
        <source>Your chats are encrypted now.</source>
        <translation>Ihre Chats sind jetzt verschlüsselt.</translation>
    </message>
    <message>
        <source>Your chats are locked. The Chat page shows why.</source>
        <translation>Ihre Chats sind gesperrt. Die Seite Chat sagt, warum.</translation>
    </message>
    <message>
        <source>Your chats are no longer encrypted.</source>
        <translation>Ihre Chats sind nicht mehr verschlüsselt.</translation>
    </message>
    <message>
        <source>Your network</source>
        <translation>Ihr Netzwerk</translation>
    </message>
    <message>
        <source>connected now</source>
        <translation>jetzt verbunden</translation>
    </message>
    <message>
        <source>huggingface.co</source>
        <translation>huggingface.co</translation>
    </message>
    <message>
        <source>not seen yet</source>
        <translation>noch nicht gesehen</translation>
    </message>
    <message>
        <source>{used} of at most {limit}</source>
        <translation>{used} von höchstens {limit}</translation>
    </message>
</context>
<context>
    <name>Processing</name>
    <message>
        <source>Your question is encrypted and sent to a machine that runs the whole model.</source>
        <translation>Ein Gerät mit dem ganzen Modell bekommt eine Frage als Token-Nummern, verschlüsselt.</translation>
    </message>
    <message>
        <source>Nothing in this chat leaves this machine.</source>
        <translation>Nichts von diesem Chat verlässt dieses Gerät.</translation>
    </message>
    <message>
        <source>Your text stays on this machine. The other machines only process numbers from inside the model.</source>
        <translation>Der Text bleibt hier; die anderen bekommen nur Zahlen aus dem Inneren des Modells.</translation>
    </message>
    <message>
        <source>{machine} runs the model. Your messages are encrypted and sent there.</source>
        <translation>{machine} antwortet für dieses Gerät: Was Sie schreiben, geht verschlüsselt dorthin.</translation>
    </message>
    <message>
        <source>{machine}: whole model</source>
        <translation>{machine}: das ganze Modell</translation>
    </message>
    <message>
        <source>{machine}: {layers}</source>
        <translation>{machine}: {layers}</translation>
    </message>
    <message>
        <source>{name} (this machine)</source>
        <translation>{name} (dieses Gerät)</translation>
    </message>
</context>
<context>
    <name>ProgramsEditor</name>
    <message>
        <source>Add</source>
        <translation>Hinzufügen</translation>
    </message>
    <message>
        <source>Lending resumes when these programs are closed.</source>
        <translation>Der Verleih geht weiter, wenn sie geschlossen sind.</translation>
    </message>
    <message>
        <source>Name of a program</source>
        <translation>Name eines Programms</translation>
    </message>
    <message>
        <source>No programs listed. Add a game or another program that needs the whole machine.</source>
        <translation>Die Liste ist leer. Fügen Sie ein Spiel hinzu oder was sonst das Gerät braucht.</translation>
    </message>
    <message>
        <source>Program to add</source>
        <translation>Programm zum Hinzufügen</translation>
    </message>
    <message>
        <source>Remove {name}</source>
        <translation>{name} entfernen</translation>
    </message>
    <message>
        <source>The list is full. Remove a program to add another.</source>
        <translation>Die Liste ist voll. Entfernen Sie ein Programm, um ein anderes hinzuzufügen.</translation>
    </message>
    <message>
        <source>While these programs run</source>
        <translation>Während diese Programme laufen</translation>
    </message>
    <message>
        <source>not running</source>
        <translation>läuft nicht</translation>
    </message>
    <message>
        <source>running now</source>
        <translation>läuft gerade</translation>
    </message>
    <message>
        <source>{game} ({program})</source>
        <translation>{game} ({program})</translation>
    </message>
</context>
<context>
    <name>QuitDialog</name>
    <message>
        <source>Cancel</source>
        <translation>Weitermachen</translation>
    </message>
    <message>
        <source>Quit anyway</source>
        <translation>Beenden und abbrechen</translation>
    </message>
    <message>
        <source>Quit now?</source>
        <translation>Jetzt beenden?</translation>
    </message>
    <message>
        <source>These pages are still busy: {pages}. Quitting stops what they are doing but keeps the text of unfinished answers. Downloads and imports resume the next time you start Poolhouse.</source>
        <translation>Noch im Gange auf: {pages}. Es endet, wenn Sie Poolhouse beenden; was von einer Antwort kam, bleibt. Downloads und Dateien, die aufgenommen werden, gehen beim nächsten Start weiter.</translation>
    </message>
</context>
<context>
    <name>Removal</name>
    <message>
        <source>Cancel</source>
        <translation>Abbrechen</translation>
    </message>
    <message>
        <source>Cancel the download of {name}?</source>
        <translation>Den Download von {name} abbrechen?</translation>
    </message>
    <message>
        <source>Delete {name}?</source>
        <translation>{name} löschen?</translation>
    </message>
    <message>
        <source>Delete {size}</source>
        <translation>{size} löschen</translation>
    </message>
    <message>
        <source>This deletes the model&apos;s file ({size}). To use the model again, you will need to download it again.</source>
        <translation>Die zugehörige Datei von {size} wird gelöscht. Um das Modell wieder zu benutzen, wird es erneut heruntergeladen.</translation>
    </message>
    <message>
        <source>The {size} downloaded so far will be deleted. To keep this data, pause the download instead.</source>
        <translation>Die {size}, die schon hier sind, werden gelöscht. Beim Pausieren bleiben sie erhalten.</translation>
    </message>
    <message>
        <source>This model needs more memory than is free for models on this computer. The model may be very slow or fail to load, but Poolhouse keeps running.</source>
        <translation>Dieses Modell braucht mehr Speicher, als auf diesem Computer für Modelle frei ist. Es kann sehr langsam sein oder sich nicht laden lassen, aber Poolhouse läuft weiter.</translation>
    </message>
    <message>
        <source>Try anyway</source>
        <translation>Trotzdem versuchen</translation>
    </message>
    <message>
        <source>Try {name} anyway?</source>
        <translation>{name} trotzdem versuchen?</translation>
    </message>
    <message>
        <source>Undo</source>
        <translation>Rückgängig</translation>
    </message>
    <message>
        <source>{name} was deleted, which freed {size}.</source>
        <translation>{name} ist gelöscht; {size} sind wieder frei.</translation>
    </message>
    <message>
        <source>{name} was removed from the list. Its file was not deleted.</source>
        <translation>{name} steht nicht mehr in der Liste. Die Datei bleibt, wo sie ist.</translation>
    </message>
</context>
<context>
    <name>RemovePhoneDialog</name>
    <message>
        <source>Cancel</source>
        <translation>Abbrechen</translation>
    </message>
    <message>
        <source>Any answer on the device stops immediately, and the device needs a new code to connect again. Chats stored on it are kept.</source>
        <translation>Seine Antworten enden sofort, und zum Wiederkommen ist ein neuer Code nötig. Chats, die es selbst aufbewahrt, bleiben dort.</translation>
    </message>
    <message>
        <source>Remove {name}</source>
        <translation>{name} entfernen</translation>
    </message>
    <message>
        <source>{name} may no longer chat here.</source>
        <translation>{name} darf hier nicht mehr chatten.</translation>
    </message>
</context>
<context>
    <name>Report</name>
    <message numerus="yes">
        <source>%n machine(s)</source>
        <translation>
            <numerusform>%Ln Gerät</numerusform>
            <numerusform>%Ln Geräte</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n run(s)</source>
        <translation>
            <numerusform>%Ln Durchlauf</numerusform>
            <numerusform>%Ln Durchläufe</numerusform>
        </translation>
    </message>
    <message>
        <source>A machine</source>
        <translation>Ein Gerät</translation>
    </message>
    <message>
        <source>Computes</source>
        <translation>Rechnet</translation>
    </message>
    <message>
        <source>Energy</source>
        <translation>Energie</translation>
    </message>
    <message>
        <source>Energy, {many} simultaneous answers</source>
        <translation>Energie, {many} zugleich</translation>
    </message>
    <message>
        <source>Energy: {ours} with all machines, {alone} with only the host.</source>
        <translation>Energie: zusammen {ours}, allein {alone}.</translation>
    </message>
    <message>
        <source>First token</source>
        <translation>Erstes Token</translation>
    </message>
    <message>
        <source>Layers</source>
        <translation>Schichten</translation>
    </message>
    <message>
        <source>Machine</source>
        <translation>Gerät</translation>
    </message>
    <message>
        <source>Machine {letter}</source>
        <translation>Gerät {letter}</translation>
    </message>
    <message>
        <source>Measured by Poolhouse {version}.</source>
        <translation>Gemessen von Poolhouse {version}.</translation>
    </message>
    <message>
        <source>Reading</source>
        <translation>Lesen</translation>
    </message>
    <message>
        <source>Reading the prompt: {ours} with all machines, {alone} with only the host ({times} times as fast).</source>
        <translation>Lesen: {ours} zusammen, {alone} allein, das {times}-Fache.</translation>
    </message>
    <message>
        <source>Sent and received</source>
        <translation>Gesendet und empfangen</translation>
    </message>
    <message>
        <source>Speed</source>
        <translation>Tempo</translation>
    </message>
    <message>
        <source>The same with {many} simultaneous answers</source>
        <translation>Dasselbe mit {many} gleichzeitig</translation>
    </message>
    <message>
        <source>Waits</source>
        <translation>Wartet</translation>
    </message>
    <message>
        <source>What each machine did for one answer</source>
        <translation>Was jedes Gerät für eine Antwort getan hat</translation>
    </message>
    <message>
        <source>en</source>
        <translation>de</translation>
    </message>
    <message>
        <source>first token within {time}</source>
        <translation>erstes Token nach höchstens {time}</translation>
    </message>
    <message>
        <source>forecast: {said}</source>
        <translation>Prognose {said}</translation>
    </message>
    <message>
        <source>{share} faster than forecast ({said})</source>
        <translation>Prognose {said}, {share} schneller</translation>
    </message>
    <message>
        <source>{share} later than forecast ({said})</source>
        <translation>Prognose {said}, {share} später</translation>
    </message>
    <message>
        <source>{share} slower than forecast ({said})</source>
        <translation>Prognose {said}, {share} langsamer</translation>
    </message>
    <message>
        <source>{share} sooner than forecast ({said})</source>
        <translation>Prognose {said}, {share} früher</translation>
    </message>
    <message>
        <source>{times} times as fast as forecast ({said})</source>
        <translation>Prognose {said}, {times}-mal so schnell</translation>
    </message>
    <message>
        <source>{times} times as long as forecast ({said})</source>
        <translation>Prognose {said}, {times}-mal so lang</translation>
    </message>
    <message>
        <source>no forecast</source>
        <translation>keine Prognose</translation>
    </message>
    <message>
        <source>not measured</source>
        <translation>nicht gemessen</translation>
    </message>
    <message>
        <source>{machines} together: {ours}. The host alone: {alone}. The pool is {times} times as fast.</source>
        <translation>{machines} zusammen: {ours}. Der Gastgeber allein: {alone}. Das ist das {times}-Fache.</translation>
    </message>
    <message>
        <source>{many} simultaneous answers</source>
        <translation>{many} gleichzeitig</translation>
    </message>
    <message>
        <source>{model} on {machines}</source>
        <translation>{model}, {machines}</translation>
    </message>
    <message>
        <source>{runs}, with speeds varying by ±{share}</source>
        <translation>{runs}, Geschwindigkeit ± {share}</translation>
    </message>
    <message>
        <source>{watts} W on {machines}, as reported by the system</source>
        <translation>{watts} W auf {machines}, wie das System angibt</translation>
    </message>
    <message>
        <source>{when}. {prompt} prompt tokens, {output} answer tokens, context {context}.</source>
        <translation>{when}. {prompt} Token Eingabe, {output} Token Antwort, Kontext {context}.</translation>
    </message>
</context>
<context>
    <name>RestartRow</name>
    <message>
        <source>Restart now</source>
        <translation>Jetzt neu starten</translation>
    </message>
</context>
<context>
    <name>RulesCard</name>
    <message>
        <source>Time limit for finishing an answer</source>
        <translation>So lange darf eine laufende Antwort noch dauern</translation>
    </message>
    <message>
        <source>Also lends during games, movies and presentations.</source>
        <translation>Verleiht auch neben Spielen, Filmen und Präsentationen.</translation>
    </message>
    <message>
        <source>Always on</source>
        <translation>Immer ein</translation>
    </message>
    <message>
        <source>Lends after the computer has been idle for this long.</source>
        <translation>Verleiht, wenn er so lange nicht benutzt wurde.</translation>
    </message>
    <message>
        <source>Lends at any battery level.</source>
        <translation>Verleiht bei jedem Ladestand.</translation>
    </message>
    <message>
        <source>Lends on any network.</source>
        <translation>Verleiht in jedem Netz.</translation>
    </message>
    <message>
        <source>Lends only while plugged in.</source>
        <translation>Verleiht nur am Netzteil.</translation>
    </message>
    <message>
        <source>Idle minutes before lending</source>
        <translation>So viele Minuten unbenutzt, bevor er verleiht</translation>
    </message>
    <message>
        <source>Now: on a VPN.</source>
        <translation>Jetzt: ein VPN.</translation>
    </message>
    <message>
        <source>Now: on a metered network.</source>
        <translation>Jetzt: ein Netz, das nach Datenmenge zählt.</translation>
    </message>
    <message>
        <source>Now: a program is full screen.</source>
        <translation>Jetzt: ja.</translation>
    </message>
    <message>
        <source>Now: last used {time} ago.</source>
        <translation>Jetzt: zuletzt vor {time} benutzt.</translation>
    </message>
    <message>
        <source>Now: not on a VPN or a metered network.</source>
        <translation>Jetzt: keines von beiden.</translation>
    </message>
    <message>
        <source>Now: no battery.</source>
        <translation>Jetzt: kein Akku.</translation>
    </message>
    <message>
        <source>Now: no program is full screen.</source>
        <translation>Jetzt: nein.</translation>
    </message>
    <message>
        <source>Lends at any temperature.</source>
        <translation>Verleiht bei jeder Temperatur.</translation>
    </message>
    <message>
        <source>Lends memory even while other programs are running.</source>
        <translation>Verleiht neben anderen Programmen.</translation>
    </message>
    <message>
        <source>Lends while you work, at low priority.</source>
        <translation>Verleiht neben Ihrer Arbeit, mit niedriger Priorität.</translation>
    </message>
    <message>
        <source>Now: the processor is at {degrees} °C.</source>
        <translation>Jetzt: Der Prozessor hat {degrees} °C.</translation>
    </message>
    <message>
        <source>Temperature of the graphics card: unknown.</source>
        <translation>Temperatur der Grafikkarte: unbekannt.</translation>
    </message>
    <message>
        <source>This system doesn&apos;t report the network type.</source>
        <translation>Jetzt: dieses System verrät es nicht.</translation>
    </message>
    <message>
        <source>This system doesn&apos;t report its temperature.</source>
        <translation>Jetzt: Dieses System sagt nicht, wie heiß es ist.</translation>
    </message>
    <message>
        <source>This system doesn&apos;t report full-screen programs.</source>
        <translation>Jetzt: dieses System verrät nicht, was den Bildschirm füllt.</translation>
    </message>
    <message>
        <source>Now: {percent}%, on battery.</source>
        <translation>Jetzt: {percent} %, im Akkubetrieb.</translation>
    </message>
    <message>
        <source>Now: {percent}%, plugged in.</source>
        <translation>Jetzt: {percent} %, am Netzteil.</translation>
    </message>
    <message>
        <source>On a VPN or a metered network</source>
        <translation>In einem VPN oder getakteten Netz</translation>
    </message>
    <message>
        <source>On battery</source>
        <translation>Im Akkubetrieb</translation>
    </message>
    <message>
        <source>Pause below this battery level</source>
        <translation>Unter diesem Ladestand pausieren</translation>
    </message>
    <message>
        <source>Pause at this temperature</source>
        <translation>Ab dieser Temperatur pausieren</translation>
    </message>
    <message>
        <source>Pause lending</source>
        <translation>Verleih pausieren</translation>
    </message>
    <message>
        <source>Pauses below {percent}%, resumes above {more}%.</source>
        <translation>Pausiert unter {percent} %, macht über {more} % weiter.</translation>
    </message>
    <message>
        <source>Pauses below {percent}%, resumes when plugged in.</source>
        <translation>Pausiert unter {percent} %, macht am Netzteil weiter.</translation>
    </message>
    <message>
        <source>After this time, the answer is stopped and its memory is freed. “Stop now” doesn&apos;t wait.</source>
        <translation>Danach nimmt eine Pause den Arbeitsspeicher zurück. „Sofort stoppen“ wartet auf nichts.</translation>
    </message>
    <message>
        <source>Lends at any temperature of the graphics card.</source>
        <translation>Verleiht bei jeder Temperatur der Grafikkarte.</translation>
    </message>
    <message>
        <source>Now: other programs are using {percent}% of the card.</source>
        <translation>Jetzt: Andere Programme lasten die Karte zu {percent} % aus.</translation>
    </message>
    <message>
        <source>Now: the graphics card is at {degrees} °C.</source>
        <translation>Jetzt: Die Grafikkarte hat {degrees} °C.</translation>
    </message>
    <message>
        <source>Pause at this temperature of the graphics card</source>
        <translation>Ab dieser Temperatur der Grafikkarte pausieren</translation>
    </message>
    <message>
        <source>This system doesn&apos;t report user activity, so the computer counts as idle.</source>
        <translation>Dieses System verrät das nicht, deshalb gilt niemand als anwesend.</translation>
    </message>
    <message>
        <source>Usage by other programs: unknown.</source>
        <translation>Nutzung durch andere Programme: unbekannt.</translation>
    </message>
    <message>
        <source>When my programs need the memory</source>
        <translation>Wenn meine Programme den Arbeitsspeicher brauchen</translation>
    </message>
    <message>
        <source>While I&apos;m using this computer</source>
        <translation>Während ich diesen Computer benutze</translation>
    </message>
    <message>
        <source>While a program is full screen</source>
        <translation>Solange ein Programm den Bildschirm füllt</translation>
    </message>
    <message>
        <source>While another program is using the graphics card</source>
        <translation>Während ein anderes Programm die Grafikkarte auslastet</translation>
    </message>
    <message>
        <source>While the graphics card is too hot</source>
        <translation>Solange die Grafikkarte zu heiß ist</translation>
    </message>
    <message>
        <source>While this computer is too hot</source>
        <translation>Solange dieser Computer zu heiß ist</translation>
    </message>
    <message>
        <source>min</source>
        <translation>min</translation>
    </message>
    <message>
        <source>s</source>
        <translation>s</translation>
    </message>
    <message>
        <source>{size} is free now.</source>
        <translation>Jetzt frei: {size}.</translation>
    </message>
</context>
<context>
    <name>SaveDialog</name>
    <message numerus="yes">
        <source>%n file(s), {size} before compression</source>
        <translation>
            <numerusform>%Ln Datei, {size} vor dem Packen</numerusform>
            <numerusform>%Ln Dateien, {size} vor dem Packen</numerusform>
        </translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>Abbrechen</translation>
    </message>
    <message>
        <source>Files that will be saved</source>
        <translation>Dateien, die gespeichert werden</translation>
    </message>
    <message>
        <source>Gathering…</source>
        <translation>Wird zusammengestellt…</translation>
    </message>
    <message>
        <source>Creates one file to send to someone who is helping you. Names, addresses and folders are replaced, and your chats are not included. Review the file before you save it.</source>
        <translation>Eine Datei für alle, die Ihnen helfen. Namen, Adressen und Ordner sind ersetzt, und sie enthält keinen Text aus Ihren Chats. Sehen Sie sie an, bevor Sie speichern.</translation>
    </message>
    <message>
        <source>Save as…</source>
        <translation>Speichern unter…</translation>
    </message>
    <message>
        <source>Save diagnostics</source>
        <translation>Diagnose speichern</translation>
    </message>
    <message>
        <source>Saved as {path}.</source>
        <translation>Gespeichert als {path}.</translation>
    </message>
    <message>
        <source>Show in folder</source>
        <translation>Im Ordner zeigen</translation>
    </message>
    <message>
        <source>The file could not be saved: {why}. Choose another folder.</source>
        <translation>Das ließ sich nicht speichern: {why}. Wählen Sie einen anderen Ordner.</translation>
    </message>
    <message>
        <source>Contents of the selected file</source>
        <translation>Was in der gewählten Datei steht</translation>
    </message>
    <message>
        <source>Zip files (*.zip)</source>
        <translation>Zip-Dateien (*.zip)</translation>
    </message>
</context>
<context>
    <name>ServerItem</name>
    <message>
        <source>Answering now: {count}</source>
        <translation>Antwortet gerade: {count}</translation>
    </message>
    <message>
        <source>Last reached at {time}</source>
        <translation>Zuletzt erreicht: {time}</translation>
    </message>
    <message>
        <source>No faster with several at once</source>
        <translation>Mit mehreren zugleich nicht schneller</translation>
    </message>
    <message>
        <source>Not reached since the start</source>
        <translation>Seit dem Start nicht erreicht</translation>
    </message>
    <message>
        <source>Serves {models}</source>
        <translation>Bietet {models}</translation>
    </message>
    <message>
        <source>Speed not measured</source>
        <translation>Geschwindigkeit nicht gemessen</translation>
    </message>
    <message>
        <source>another server</source>
        <translation>anderer Server</translation>
    </message>
    <message>
        <source>{speed} with {streams} at once</source>
        <translation>{speed} bei {streams} zugleich</translation>
    </message>
    <message>
        <source>{speed}, first token after {first}</source>
        <translation>{speed}, erstes Token nach {first}</translation>
    </message>
</context>
<context>
    <name>ServerTable</name>
    <message>
        <source>Contact</source>
        <translation>Kontakt</translation>
    </message>
    <message>
        <source>One answer</source>
        <translation>Eine Antwort</translation>
    </message>
    <message>
        <source>Other servers</source>
        <translation>Andere Server</translation>
    </message>
    <message>
        <source>Server</source>
        <translation>Server</translation>
    </message>
    <message>
        <source>Serves</source>
        <translation>Bietet</translation>
    </message>
    <message>
        <source>Several at once</source>
        <translation>Mehrere zugleich</translation>
    </message>
</context>
<context>
    <name>Session</name>
    <message numerus="yes">
        <source>%n older message(s) left out because the context is full.</source>
        <translation>
            <numerusform>%Ln älteste Nachricht wurde ausgelassen: Der Kontext ist voll.</numerusform>
            <numerusform>%Ln älteste Nachrichten wurden ausgelassen: Der Kontext ist voll.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n picture(s) left out because a question has no room for more.</source>
        <translation>
            <numerusform>%Ln Bild wurde weggelassen, weil eine Frage nur für eine bestimmte Zahl Platz hat.</numerusform>
            <numerusform>%Ln Bilder wurden weggelassen, weil eine Frage nur für eine bestimmte Zahl Platz hat.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n picture(s) left out because {model} can&apos;t look at pictures.</source>
        <translation>
            <numerusform>%Ln Bild wurde weggelassen, weil {model} keine Bilder ansehen kann.</numerusform>
            <numerusform>%Ln Bilder wurden weggelassen, weil {model} keine Bilder ansehen kann.</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>Settings</name>
    <message>
        <source>Cable</source>
        <translation>Kabel</translation>
    </message>
    <message>
        <source>Network</source>
        <translation>Netzwerk</translation>
    </message>
    <message>
        <source>This computer itself</source>
        <translation>Dieser Computer selbst</translation>
    </message>
    <message>
        <source>Thunderbolt</source>
        <translation>Thunderbolt</translation>
    </message>
    <message>
        <source>VPN</source>
        <translation>VPN</translation>
    </message>
    <message>
        <source>Virtual machines or containers</source>
        <translation>Virtuelle Maschinen oder Container</translation>
    </message>
    <message>
        <source>Wi-Fi</source>
        <translation>WLAN</translation>
    </message>
</context>
<context>
    <name>SettingsGroup</name>
    <message>
        <source>{page} was reset to its defaults.</source>
        <translation>Auf {page} ist alles wieder wie am Anfang.</translation>
    </message>
    <message>
        <source>Reset this page</source>
        <translation>Diese Seite zurücksetzen</translation>
    </message>
</context>
<context>
    <name>SettingsPage</name>
    <message>
        <source>Clear the search</source>
        <translation>Suche leeren</translation>
    </message>
    <message>
        <source>Nothing found</source>
        <translation>Nichts heißt so</translation>
    </message>
    <message>
        <source>Settings pages</source>
        <translation>Seiten der Einstellungen</translation>
    </message>
    <message>
        <source>Search settings</source>
        <translation>Einstellungen durchsuchen</translation>
    </message>
    <message>
        <source>Settings</source>
        <translation>Einstellungen</translation>
    </message>
    <message>
        <source>Try another word or browse the pages.</source>
        <translation>Versuchen Sie ein anderes Wort, oder sehen Sie die Seiten durch.</translation>
    </message>
</context>
<context>
    <name>SetupForm</name>
    <message>
        <source>A smaller model with the same tokens guesses the next ones on this computer, and this model checks several at once. Answers stay the same. The details of each answer say whether it was faster.</source>
        <translation>Ein kleineres Modell mit denselben Token rät auf diesem Computer die nächsten, und dieses Modell prüft mehrere auf einmal. Die Antworten bleiben dieselben. Die Details jeder Antwort sagen, ob sie schneller war.</translation>
    </message>
    <message>
        <source>All computers use the same processor instructions, so an answer continues with the same words if a computer is lost. In this mode, computers with AVX-512 read prompts about half as fast.</source>
        <translation>Alle Computer nutzen dieselben Prozessorbefehle, daher geht eine Antwort mit denselben Worten weiter, wenn ein Computer ausfällt. Computer mit AVX-512 lesen Eingaben dann etwa halb so schnell.</translation>
    </message>
    <message>
        <source>Use a draft model</source>
        <translation>Entwurfsmodell nutzen</translation>
    </message>
    <message>
        <source>Same results on all computers</source>
        <translation>Gleiche Ergebnisse auf allen Computern</translation>
    </message>
    <message>
        <source>Simultaneous users</source>
        <translation>Personen gleichzeitig</translation>
    </message>
</context>
<context>
    <name>ShapeChoice</name>
    <message>
        <source>This machine runs all layers.</source>
        <translation>Alle Schichten liegen auf diesem Gerät.</translation>
    </message>
    <message>
        <source>Each machine runs some of the layers. Your text stays on this machine.</source>
        <translation>Jedes Gerät hält einen Teil der Schichten. Was Sie eingeben, bleibt hier.</translation>
    </message>
    <message>
        <source>About {share} slower than the best option.</source>
        <translation>Etwa {share} langsamer als die beste Möglichkeit.</translation>
    </message>
    <message>
        <source>Best for several simultaneous users. Each question is sent to one machine, and that machine can read it.</source>
        <translation>Für mehrere Personen zugleich: Jede Frage geht ganz an ein Gerät, also erhalten die anderen, was eingegeben wird.</translation>
    </message>
    <message>
        <source>Model placement</source>
        <translation>Wie das Modell verteilt wird</translation>
    </message>
    <message>
        <source>One machine</source>
        <translation>Ein Gerät</translation>
    </message>
    <message>
        <source>Placement</source>
        <translation>Verteilung</translation>
    </message>
    <message>
        <source>Copies on several machines</source>
        <translation>Mehrfach, auf mehreren</translation>
    </message>
    <message>
        <source>Split over several machines</source>
        <translation>Auf mehrere geteilt</translation>
    </message>
    <message>
        <source>Best</source>
        <translation>Die beste</translation>
    </message>
    <message>
        <source>Best: {shape}</source>
        <translation>Die beste: {shape}</translation>
    </message>
    <message>
        <source>{shape}, {rate}</source>
        <translation>{shape}, {rate}</translation>
    </message>
</context>
<context>
    <name>SharedModelsCard</name>
    <message>
        <source>Chat</source>
        <translation>Chat</translation>
    </message>
    <message>
        <source>Chat with {model} on {machine}</source>
        <translation>Mit {model} auf {machine} chatten</translation>
    </message>
    <message>
        <source>Loaded elsewhere</source>
        <translation>Anderswo geladen</translation>
    </message>
    <message>
        <source>On {server}, another server</source>
        <translation>Auf {server}, einem anderen Server</translation>
    </message>
    <message>
        <source>Loading on {machine}</source>
        <translation>Wird auf {machine} geladen</translation>
    </message>
    <message>
        <source>On {machine}, context {tokens} tokens</source>
        <translation>Auf {machine}, Kontext {tokens} Token</translation>
    </message>
</context>
<context>
    <name>Sheet</name>
    <message>
        <source>Start again</source>
        <translation>Erneut starten</translation>
    </message>
    <message>
        <source>The background service isn&apos;t running right now. You can continue here when the service is back.</source>
        <translation>Der Hintergrunddienst läuft gerade nicht. Das hier wartet, bis er wieder da ist.</translation>
    </message>
</context>
<context>
    <name>Shortcuts</name>
    <message>
        <source>Chat</source>
        <translation>Chat</translation>
    </message>
    <message>
        <source>Close the window</source>
        <translation>Das Fenster schließen</translation>
    </message>
    <message>
        <source>Delete the selected chat</source>
        <translation>Den gewählten Chat löschen</translation>
    </message>
    <message>
        <source>Everywhere</source>
        <translation>Überall</translation>
    </message>
    <message>
        <source>Find other computers</source>
        <translation>Andere Computer finden</translation>
    </message>
    <message>
        <source>Go to a page, a chat or a model</source>
        <translation>Zu einer Seite, einem Chat oder einem Modell gehen</translation>
    </message>
    <message>
        <source>Larger text</source>
        <translation>Größere Schrift</translation>
    </message>
    <message>
        <source>Models</source>
        <translation>Modelle</translation>
    </message>
    <message>
        <source>New chat</source>
        <translation>Neuer Chat</translation>
    </message>
    <message>
        <source>Quit</source>
        <translation>Beenden</translation>
    </message>
    <message>
        <source>Remove the selected model</source>
        <translation>Das gewählte Modell entfernen</translation>
    </message>
    <message>
        <source>Rename the selected chat</source>
        <translation>Den gewählten Chat umbenennen</translation>
    </message>
    <message>
        <source>Search all chats</source>
        <translation>Alle Chats durchsuchen</translation>
    </message>
    <message>
        <source>Search models</source>
        <translation>Modelle durchsuchen</translation>
    </message>
    <message>
        <source>Send the message</source>
        <translation>Die Nachricht senden</translation>
    </message>
    <message>
        <source>Show this list</source>
        <translation>Diese Liste zeigen</translation>
    </message>
    <message>
        <source>Smaller text</source>
        <translation>Kleinere Schrift</translation>
    </message>
    <message>
        <source>Start a new line</source>
        <translation>Eine neue Zeile beginnen</translation>
    </message>
    <message>
        <source>Stop the answer</source>
        <translation>Die Antwort anhalten</translation>
    </message>
    <message>
        <source>Text at 100%</source>
        <translation>Schrift auf 100 %</translation>
    </message>
    <message>
        <source>This computer</source>
        <translation>Dieser Computer</translation>
    </message>
    <message>
        <source>Undo the last change</source>
        <translation>Die letzte Änderung rückgängig machen</translation>
    </message>
</context>
<context>
    <name>ShortcutsDialog</name>
    <message>
        <source>Close</source>
        <translation>Schließen</translation>
    </message>
    <message>
        <source>Keyboard shortcuts</source>
        <translation>Tastenkürzel</translation>
    </message>
</context>
<context>
    <name>Sidebar</name>
    <message>
        <source>Activity</source>
        <translation>Aktivität</translation>
    </message>
    <message>
        <source>Chat</source>
        <translation>Chat</translation>
    </message>
    <message>
        <source>Models</source>
        <translation>Modelle</translation>
    </message>
    <message>
        <source>Pool</source>
        <translation>Pool</translation>
    </message>
    <message>
        <source>Settings</source>
        <translation>Einstellungen</translation>
    </message>
    <message>
        <source>Pool status: {state}</source>
        <translation>Zustand des Pools: {state}</translation>
    </message>
    <message>
        <source>This computer</source>
        <translation>Dieser Computer</translation>
    </message>
</context>
<context>
    <name>SmallerModelOffer</name>
    <message>
        <source>Use a smaller model: {model}</source>
        <translation>Ein kleineres Modell nehmen: {model}</translation>
    </message>
    <message>
        <source>Wait</source>
        <translation>Darauf warten</translation>
    </message>
</context>
<context>
    <name>SplitChoice</name>
    <message>
        <source>Each computer then runs some of the layers. A small model is usually faster on one computer.</source>
        <translation>Jeder Computer rechnet dann einen Teil der Schichten. Ein kleines Modell ist auf einem Computer meist schneller.</translation>
    </message>
    <message>
        <source>Split it over your computers</source>
        <translation>Auf Ihre Computer aufteilen</translation>
    </message>
</context>
<context>
    <name>Standing</name>
    <message>
        <source>A machine running {model} has disconnected.</source>
        <translation>Ein Gerät von {model} fehlt.</translation>
    </message>
    <message>
        <source>Also loading {model}.</source>
        <translation>Auch {model} wird geladen.</translation>
    </message>
    <message>
        <source>Loading {model}.</source>
        <translation>{model} wird geladen.</translation>
    </message>
    <message>
        <source>No machine is available to answer.</source>
        <translation>Kein Gastgeber ist da, der antwortet.</translation>
    </message>
    <message>
        <source>Ready. Answers come from {machine}.</source>
        <translation>Bereit. Antworten kommen von {machine}.</translation>
    </message>
    <message>
        <source>Ready. No model is loaded yet.</source>
        <translation>Bereit. Noch ist kein Modell geladen.</translation>
    </message>
    <message>
        <source>Ready. {model} will answer.</source>
        <translation>Bereit. {model} antwortet.</translation>
    </message>
    <message>
        <source>Ready. {model} runs on this machine.</source>
        <translation>Bereit. {model} liegt auf diesem Gerät.</translation>
    </message>
    <message>
        <source>Ready. {model} runs on {machine}.</source>
        <translation>Bereit. {model} liegt auf {machine}.</translation>
    </message>
    <message>
        <source>Ready. {model} runs on {many} machines.</source>
        <translation>Bereit. {model} liegt auf {many} Geräten.</translation>
    </message>
    <message>
        <source>Starting the background service…</source>
        <translation>Der Hintergrunddienst startet…</translation>
    </message>
    <message>
        <source>The background service is not running.</source>
        <translation>Der Hintergrunddienst läuft nicht.</translation>
    </message>
    <message>
        <source>The model stopped unexpectedly.</source>
        <translation>Das Modell ging verloren.</translation>
    </message>
    <message>
        <source>{machine} is about to stop lending.</source>
        <translation>{machine} verleiht nicht mehr.</translation>
    </message>
    <message>
        <source>{machine} is about to stop lending. {why}</source>
        <translation>{machine} verleiht nicht mehr. {why}</translation>
    </message>
    <message>
        <source>{model} is also ready.</source>
        <translation>Auch {model} antwortet.</translation>
    </message>
    <message>
        <source>{model} could not be loaded, so no model is available.</source>
        <translation>{model} ließ sich nicht laden, darum antwortet kein Modell.</translation>
    </message>
    <message>
        <source>Stopping {model} and freeing its memory.</source>
        <translation>{model} wird beendet und gibt seinen Speicher zurück.</translation>
    </message>
    <message>
        <source>{model} stopped unexpectedly.</source>
        <translation>{model} ging verloren.</translation>
    </message>
</context>
<context>
    <name>StartProgress</name>
    <message>
        <source>Checking {model}</source>
        <translation>{model} wird geprüft</translation>
    </message>
    <message>
        <source>Downloading {model}</source>
        <translation>{model} wird heruntergeladen</translation>
    </message>
    <message>
        <source>Loading {model}</source>
        <translation>{model} wird geladen</translation>
    </message>
    <message>
        <source>Progress</source>
        <translation>Fortschritt</translation>
    </message>
    <message>
        <source>It will then be loaded automatically.</source>
        <translation>Danach wird es von selbst geladen.</translation>
    </message>
</context>
<context>
    <name>StarterCard</name>
    <message>
        <source>Download and load ({size})</source>
        <translation>Herunterladen und laden ({size})</translation>
    </message>
    <message>
        <source>Recommended for your household</source>
        <translation>Für Ihren Haushalt empfohlen</translation>
    </message>
    <message>
        <source>Show details</source>
        <translation>Details zeigen</translation>
    </message>
</context>
<context>
    <name>StateCard</name>
    <message>
        <source>Allow lending</source>
        <translation>Verleih erlauben</translation>
    </message>
    <message>
        <source>Waiting for the background service…</source>
        <translation>Der Hintergrunddienst wird gefragt…</translation>
    </message>
    <message>
        <source>Lend this machine</source>
        <translation>Dieses Gerät verleihen</translation>
    </message>
    <message>
        <source>Not in use</source>
        <translation>Niemand benutzt es gerade</translation>
    </message>
    <message>
        <source>Pause until I resume</source>
        <translation>Pausieren, bis ich fortsetze</translation>
    </message>
    <message>
        <source>Pause {hours} h</source>
        <translation>{hours} h pausieren</translation>
    </message>
    <message>
        <source>Resume lending</source>
        <translation>Verleih fortsetzen</translation>
    </message>
    <message>
        <source>Stop now</source>
        <translation>Sofort stoppen</translation>
    </message>
    <message>
        <source>Takes all memory back immediately, even if an answer is running.</source>
        <translation>Nimmt den ganzen Arbeitsspeicher sofort zurück, auch von einer laufenden Antwort.</translation>
    </message>
    <message>
        <source>Used by {names}</source>
        <translation>Benutzt von {names}</translation>
    </message>
</context>
<context>
    <name>Step</name>
    <message>
        <source>Continue</source>
        <translation>Weiter</translation>
    </message>
</context>
<context>
    <name>Suggestions</name>
    <message>
        <source>Ask the Guide</source>
        <translation>Den Guide fragen</translation>
    </message>
    <message>
        <source>Choose a model</source>
        <translation>Modell wählen</translation>
    </message>
    <message>
        <source>Explain how a rainbow forms, in three sentences.</source>
        <translation>Erkläre in drei Sätzen, wie ein Regenbogen entsteht.</translation>
    </message>
    <message>
        <source>No model is available</source>
        <translation>Kein Modell antwortet</translation>
    </message>
    <message>
        <source>Plan a weekend in the mountains with two children.</source>
        <translation>Plane ein Wochenende in den Bergen mit zwei Kindern.</translation>
    </message>
    <message>
        <source>You&apos;re talking to the Guide, a small built-in model that knows how Poolhouse works. It understands only English and treats each question separately.</source>
        <translation>Der Guide antwortet: ein kleines Modell, das zu Poolhouse gehört und weiß, wie man es benutzt. Er versteht nur Englisch und nimmt jede Frage für sich.</translation>
    </message>
    <message>
        <source>What would you like to know?</source>
        <translation>Was möchten Sie wissen?</translation>
    </message>
    <message>
        <source>Your messages stay in your household.</source>
        <translation>Was Sie schreiben, bleibt in Ihrem Haushalt.</translation>
    </message>
    <message>
        <source>Write a Python function that finds duplicate files.</source>
        <translation>Schreibe eine Python-Funktion, die doppelte Dateien findet.</translation>
    </message>
    <message>
        <source>{model} could not be loaded. Choose another model, or ask the Guide, a small built-in model that knows how Poolhouse works.</source>
        <translation>{model} ließ sich nicht laden. Wählen Sie ein anderes Modell, oder fragen Sie den Guide: ein kleines Modell, das zu Poolhouse gehört und weiß, wie man es benutzt.</translation>
    </message>
</context>
<context>
    <name>Technical</name>
    <message>
        <source>Details</source>
        <translation>Details</translation>
    </message>
</context>
<context>
    <name>TextBlock</name>
    <message>
        <source>Copy formula</source>
        <translation>Formel kopieren</translation>
    </message>
    <message>
        <source>Text</source>
        <translation>Text</translation>
    </message>
</context>
<context>
    <name>TextDialog</name>
    <message>
        <source>Close</source>
        <translation>Schließen</translation>
    </message>
</context>
<context>
    <name>TextWindow</name>
    <message>
        <source>Message text</source>
        <translation>Nachricht als Text</translation>
    </message>
</context>
<context>
    <name>ThoughtView</name>
    <message>
        <source>Thinking…</source>
        <translation>Denkt nach…</translation>
    </message>
    <message numerus="yes">
        <source>Thinking… %n token(s)</source>
        <translation>
            <numerusform>Denkt nach… %Ln Token</numerusform>
            <numerusform>Denkt nach… %Ln Token</numerusform>
        </translation>
    </message>
    <message>
        <source>Thought</source>
        <translation>Nachgedacht</translation>
    </message>
    <message>
        <source>Thought for {time}</source>
        <translation>{time} nachgedacht</translation>
    </message>
    <message>
        <source>folded</source>
        <translation>zugeklappt</translation>
    </message>
    <message>
        <source>opened</source>
        <translation>aufgeklappt</translation>
    </message>
</context>
<context>
    <name>Timeline</name>
    <message>
        <source>Answer</source>
        <translation>Antwort</translation>
    </message>
    <message>
        <source>reading {reads}, writing {writes}</source>
        <translation>liest {reads}, schreibt {writes}</translation>
    </message>
    <message>
        <source>waiting {waits}, {others}</source>
        <translation>wartet {waits}, {others}</translation>
    </message>
</context>
<context>
    <name>TogetherPage</name>
    <message>
        <source>A nearby computer is also running Poolhouse. Show a code on one of the two, then enter it on the other.</source>
        <translation>Auf einem Computer in der Nähe läuft auch Poolhouse. Lassen Sie auf einem der beiden einen Code anzeigen, und geben Sie ihn auf dem anderen ein.</translation>
    </message>
    <message>
        <source>Add another computer</source>
        <translation>Noch einen Computer hinzufügen</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>Abbrechen</translation>
    </message>
    <message>
        <source>Continue</source>
        <translation>Weiter</translation>
    </message>
    <message>
        <source>Do you have another computer?</source>
        <translation>Haben Sie noch einen Computer?</translation>
    </message>
    <message>
        <source>Enter a code from another computer</source>
        <translation>Einen Code von anderswo eingeben</translation>
    </message>
    <message>
        <source>Enter the code shown on the other computer.</source>
        <translation>Geben Sie den Code ein, den der andere Computer zeigt.</translation>
    </message>
    <message>
        <source>Enter this code on the other computer.</source>
        <translation>Geben Sie diesen Code auf dem anderen Computer ein.</translation>
    </message>
    <message>
        <source>Finish</source>
        <translation>Fertig</translation>
    </message>
    <message>
        <source>Join</source>
        <translation>Beitreten</translation>
    </message>
    <message>
        <source>Joining…</source>
        <translation>Beitritt läuft…</translation>
    </message>
    <message>
        <source>New code</source>
        <translation>Neuer Code</translation>
    </message>
    <message>
        <source>Only this computer for now</source>
        <translation>Vorerst nur dieser Computer</translation>
    </message>
    <message>
        <source>Open Poolhouse on the other computer as well. Show a code on one of the two, then enter it on the other.</source>
        <translation>Öffnen Sie Poolhouse auch auf dem anderen Computer. Einer der beiden zeigt einen Code, den Sie auf dem anderen eingeben.</translation>
    </message>
    <message>
        <source>Paired with {names}.</source>
        <translation>Gekoppelt mit {names}.</translation>
    </message>
    <message>
        <source>Show a code</source>
        <translation>Code anzeigen</translation>
    </message>
    <message>
        <source>This computer</source>
        <translation>Dieser Computer</translation>
    </message>
    <message>
        <source>Together, your computers can run larger models. You can also add computers later on the Pool page.</source>
        <translation>Zusammen können Ihre Computer größere Modelle nutzen. Das geht auch später auf der Seite Pool.</translation>
    </message>
    <message>
        <source>Waiting for the background service. Pairing will begin when it responds.</source>
        <translation>Auf den Hintergrunddienst wird gewartet: Gekoppelt werden kann, sobald er antwortet.</translation>
    </message>
    <message>
        <source>Your computers can now run models together.</source>
        <translation>Ihre Computer rechnen jetzt zusammen.</translation>
    </message>
    <message>
        <source>Your household</source>
        <translation>Ihr Haushalt</translation>
    </message>
    <message>
        <source>{name} is showing a code. Enter it here.</source>
        <translation>{name} zeigt einen Code. Geben Sie ihn hier ein.</translation>
    </message>
</context>
<context>
    <name>TokenField</name>
    <message>
        <source>The token is stored {where}.</source>
        <translation>Ein Token ist {where} gespeichert.</translation>
    </message>
    <message>
        <source>Hugging Face access token</source>
        <translation>Zugriffstoken von Hugging Face</translation>
    </message>
    <message>
        <source>Access token, hf_…</source>
        <translation>Zugriffstoken, hf_…</translation>
    </message>
    <message>
        <source>This model requires a Hugging Face account. Accept the terms on the model page, then enter an access token from huggingface.co.</source>
        <translation>Der Hersteller verlangt ein Konto: Stimmen Sie auf der Seite des Modells den Bedingungen zu, und geben Sie dann ein Zugriffstoken von huggingface.co an.</translation>
    </message>
    <message>
        <source>Save token</source>
        <translation>Token speichern</translation>
    </message>
</context>
<context>
    <name>ToolCall</name>
    <message>
        <source>(empty)</source>
        <translation>(leer)</translation>
    </message>
    <message>
        <source>(no values)</source>
        <translation>(keine Werte)</translation>
    </message>
    <message>
        <source>Allow once</source>
        <translation>Einmal erlauben</translation>
    </message>
    <message>
        <source>Always allow this tool in this chat</source>
        <translation>Dieses Werkzeug in diesem Chat immer erlauben</translation>
    </message>
    <message>
        <source>Called, {time}</source>
        <translation>Aufgerufen, {time}</translation>
    </message>
    <message>
        <source>Calling…</source>
        <translation>Wird aufgerufen…</translation>
    </message>
    <message>
        <source>Your decision about the tool call on this card</source>
        <translation>Entscheidet über den Aufruf auf dieser Karte</translation>
    </message>
    <message>
        <source>Don&apos;t allow</source>
        <translation>Nicht erlauben</translation>
    </message>
    <message>
        <source>Pictures and other files were left out.</source>
        <translation>Bilder und andere Dateien wurden weggelassen.</translation>
    </message>
    <message>
        <source>Result from {server}, {count} characters</source>
        <translation>Ergebnis von {server}, {count} Zeichen</translation>
    </message>
    <message>
        <source>The model wants to use {tool} from {server}</source>
        <translation>Das Modell möchte {tool} von {server} verwenden</translation>
    </message>
    <message>
        <source>The model wrote these values. Check them before you allow the call.</source>
        <translation>Diese Werte hat das Modell geschrieben. Prüfen Sie sie, bevor Sie den Aufruf erlauben.</translation>
    </message>
    <message>
        <source>The model wrote these values. Show all of them before you allow the call.</source>
        <translation>Das Modell hat diese Werte geschrieben. Zeigen Sie alle an, bevor Sie den Aufruf erlauben.</translation>
    </message>
    <message>
        <source>The tool reported an error.</source>
        <translation>Das Werkzeug meldete einen Fehler.</translation>
    </message>
    <message>
        <source>There is no such tool, so nothing was called.</source>
        <translation>Dieses Werkzeug gibt es nicht, deshalb wurde nichts aufgerufen.</translation>
    </message>
    <message>
        <source>This call was stopped before its result arrived. The tool may have done its work anyway.</source>
        <translation>Dieser Aufruf wurde angehalten, bevor sein Ergebnis kam. Das Werkzeug hat vielleicht trotzdem schon gearbeitet.</translation>
    </message>
    <message>
        <source>This text comes from the tool server. It can be wrong, and it can try to mislead the model.</source>
        <translation>Dieser Text kommt vom Werkzeug-Server. Er kann falsch sein und versuchen, das Modell in die Irre zu führen.</translation>
    </message>
    <message>
        <source>You did not allow this call.</source>
        <translation>Sie haben diesen Aufruf nicht erlaubt.</translation>
    </message>
    <message>
        <source>You have not decided about this call.</source>
        <translation>Sie haben über diesen Aufruf noch nicht entschieden.</translation>
    </message>
    <message>
        <source>folded</source>
        <translation>eingeklappt</translation>
    </message>
    <message>
        <source>no tool server</source>
        <translation>keinem Werkzeug-Server</translation>
    </message>
    <message>
        <source>opened</source>
        <translation>ausgeklappt</translation>
    </message>
    <message>
        <source>{count} characters did not fit and were left out.</source>
        <translation>{count} Zeichen passten nicht und wurden weggelassen.</translation>
    </message>
    <message>
        <source>{tool} from {server}</source>
        <translation>{tool} von {server}</translation>
    </message>
</context>
<context>
    <name>ToolMenu</name>
    <message>
        <source>No tool server is on</source>
        <translation>Kein Werkzeug-Server ist eingeschaltet</translation>
    </message>
    <message>
        <source>Set up tool servers…</source>
        <translation>Werkzeug-Server einrichten…</translation>
    </message>
    <message>
        <source>This model cannot call tools</source>
        <translation>Dieses Modell kann keine Werkzeuge aufrufen</translation>
    </message>
    <message>
        <source>Tools</source>
        <translation>Werkzeuge</translation>
    </message>
    <message>
        <source>Tools: off</source>
        <translation>Werkzeuge: aus</translation>
    </message>
    <message>
        <source>Tools: {names}</source>
        <translation>Werkzeuge: {names}</translation>
    </message>
    <message>
        <source>{name} (off in Settings)</source>
        <translation>{name} (aus in den Einstellungen)</translation>
    </message>
</context>
<context>
    <name>ToolServers</name>
    <message>
        <source>A program on this computer</source>
        <translation>Ein Programm auf diesem Computer</translation>
    </message>
    <message>
        <source>A program that you add runs as you: it can read and change your files and use the network. Add only programs and addresses that you trust.</source>
        <translation>Ein Programm, das Sie hinzufügen, läuft mit Ihren Rechten: Es kann Ihre Dateien lesen und ändern und das Netz verwenden. Fügen Sie nur Programme und Adressen hinzu, denen Sie vertrauen.</translation>
    </message>
    <message>
        <source>Add a tool server</source>
        <translation>Werkzeug-Server hinzufügen</translation>
    </message>
    <message>
        <source>Add and test</source>
        <translation>Hinzufügen und testen</translation>
    </message>
    <message>
        <source>Added, but not turned on yet: {names}.</source>
        <translation>Hinzugefügt und aus, bis Sie sie einschalten: {names}.</translation>
    </message>
    <message>
        <source>Address</source>
        <translation>Adresse</translation>
    </message>
    <message>
        <source>An address</source>
        <translation>Eine Adresse</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>Abbrechen</translation>
    </message>
    <message>
        <source>Choose a file</source>
        <translation>Datei auswählen</translation>
    </message>
    <message>
        <source>Choose a file…</source>
        <translation>Datei auswählen…</translation>
    </message>
    <message>
        <source>Command with its arguments</source>
        <translation>Befehl mit seinen Argumenten</translation>
    </message>
    <message>
        <source>Edit {name}</source>
        <translation>{name} bearbeiten</translation>
    </message>
    <message>
        <source>Environment variables, one per line</source>
        <translation>Umgebungsvariablen, eine je Zeile</translation>
    </message>
    <message>
        <source>Headers, one per line</source>
        <translation>Kopfzeilen, eine je Zeile</translation>
    </message>
    <message>
        <source>Import</source>
        <translation>Importieren</translation>
    </message>
    <message>
        <source>Import tool servers</source>
        <translation>Werkzeug-Server importieren</translation>
    </message>
    <message>
        <source>Its settings and secrets will be deleted. Results in your chats are kept.</source>
        <translation>Seine Einstellungen und Geheimnisse werden gelöscht. Ergebnisse in Ihren Chats bleiben erhalten.</translation>
    </message>
    <message>
        <source>JSON files (*.json);;All files (*)</source>
        <translation>JSON-Dateien (*.json);;Alle Dateien (*)</translation>
    </message>
    <message>
        <source>JSON with mcpServers</source>
        <translation>JSON mit mcpServers</translation>
    </message>
    <message>
        <source>Paste the JSON with mcpServers from another app, or choose its file. The servers stay off until you turn them on.</source>
        <translation>Fügen Sie das JSON mit mcpServers aus einer anderen App ein oder wählen Sie deren Datei. Die Server bleiben aus, bis Sie sie einschalten.</translation>
    </message>
    <message>
        <source>Remove</source>
        <translation>Entfernen</translation>
    </message>
    <message>
        <source>Remove {name}?</source>
        <translation>{name} entfernen?</translation>
    </message>
    <message>
        <source>Save and test</source>
        <translation>Speichern und testen</translation>
    </message>
    <message>
        <source>Values are stored with your other secrets and not shown again. To keep a value, leave {dots} unchanged.</source>
        <translation>Werte werden bei Ihren anderen Geheimnissen aufbewahrt und nicht wieder gezeigt. {dots} behält einen Wert.</translation>
    </message>
    <message>
        <source>Where it runs</source>
        <translation>Wo er läuft</translation>
    </message>
    <message>
        <source>Name of the server</source>
        <translation>Name des Servers</translation>
    </message>
</context>
<context>
    <name>Tools</name>
    <message numerus="yes">
        <source>%n tool(s)</source>
        <translation>
            <numerusform>%Ln Werkzeug</numerusform>
            <numerusform>%Ln Werkzeuge</numerusform>
        </translation>
    </message>
    <message>
        <source>Add a tool server…</source>
        <translation>Server hinzufügen…</translation>
    </message>
    <message>
        <source>Always allow</source>
        <translation>Immer erlauben</translation>
    </message>
    <message>
        <source>Ask each time</source>
        <translation>Jedes Mal fragen</translation>
    </message>
    <message>
        <source>Edit…</source>
        <translation>Bearbeiten…</translation>
    </message>
    <message>
        <source>Import…</source>
        <translation>Importieren…</translation>
    </message>
    <message>
        <source>It has changed since you allowed it, so you will be asked again.</source>
        <translation>Es hat sich geändert, seit Sie es erlaubt haben, und fragt deshalb wieder.</translation>
    </message>
    <message>
        <source>It failed.</source>
        <translation>Fehlgeschlagen.</translation>
    </message>
    <message>
        <source>Let chats use {name}</source>
        <translation>Chats dürfen {name} verwenden</translation>
    </message>
    <message>
        <source>Through tool servers (MCP), models can use tools such as a clock, a calendar or your files. You choose the servers in each chat and allow each call.</source>
        <translation>Über Werkzeug-Server (MCP) können Modelle Werkzeuge verwenden, etwa eine Uhr, einen Kalender oder Ihre Dateien. Sie wählen die Server in jedem Chat und erlauben jeden Aufruf.</translation>
    </message>
    <message>
        <source>Never allow</source>
        <translation>Nie erlauben</translation>
    </message>
    <message>
        <source>Off.</source>
        <translation>Aus.</translation>
    </message>
    <message>
        <source>On and running.</source>
        <translation>An und in Betrieb.</translation>
    </message>
    <message>
        <source>On. It starts when a chat uses it.</source>
        <translation>An. Startet, wenn ein Chat ihn verwendet.</translation>
    </message>
    <message>
        <source>Remove…</source>
        <translation>Entfernen…</translation>
    </message>
    <message>
        <source>Starting…</source>
        <translation>Startet…</translation>
    </message>
    <message>
        <source>Test</source>
        <translation>Testen</translation>
    </message>
    <message>
        <source>Tool servers</source>
        <translation>Werkzeug-Server</translation>
    </message>
    <message>
        <source>Tools</source>
        <translation>Werkzeuge</translation>
    </message>
    <message>
        <source>When {tool} may be called</source>
        <translation>Wann {tool} aufgerufen werden darf</translation>
    </message>
    <message>
        <source>{count} more tools are left out because they would fill a model&apos;s context.</source>
        <translation>{count} weitere Werkzeuge wurden weggelassen, weil sie den Kontext eines Modells füllen würden.</translation>
    </message>
    <message>
        <source>{name} and its secrets were removed.</source>
        <translation>{name} und seine Geheimnisse wurden entfernt.</translation>
    </message>
    <message numerus="yes">
        <source>{name} works and has %n tool(s).</source>
        <translation>
            <numerusform>{name} funktioniert und hat %Ln Werkzeug.</numerusform>
            <numerusform>{name} funktioniert und hat %Ln Werkzeuge.</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>TransferRow</name>
    <message>
        <source>Cancel</source>
        <translation>Abbrechen</translation>
    </message>
    <message>
        <source>Cancel {name}</source>
        <translation>{name} abbrechen</translation>
    </message>
    <message>
        <source>Clear</source>
        <translation>Diese Zeile entfernen</translation>
    </message>
    <message>
        <source>Download {name} earlier</source>
        <translation>{name} früher herunterladen</translation>
    </message>
    <message>
        <source>Download {name} later</source>
        <translation>{name} später herunterladen</translation>
    </message>
    <message>
        <source>Earlier</source>
        <translation>Früher</translation>
    </message>
    <message>
        <source>Later</source>
        <translation>Später</translation>
    </message>
    <message>
        <source>Pause</source>
        <translation>Pausieren</translation>
    </message>
    <message>
        <source>Pause {name}</source>
        <translation>{name} pausieren</translation>
    </message>
    <message>
        <source>Progress of {name}</source>
        <translation>Fortschritt von {name}</translation>
    </message>
    <message>
        <source>Resume</source>
        <translation>Fortsetzen</translation>
    </message>
    <message>
        <source>Resume {name}</source>
        <translation>{name} fortsetzen</translation>
    </message>
    <message>
        <source>Try {name} again</source>
        <translation>{name} erneut versuchen</translation>
    </message>
</context>
<context>
    <name>Transfers</name>
    <message>
        <source>Downloads</source>
        <translation>Downloads</translation>
    </message>
    <message>
        <source>Pause all</source>
        <translation>Alle pausieren</translation>
    </message>
    <message>
        <source>Resume all</source>
        <translation>Alle fortsetzen</translation>
    </message>
</context>
<context>
    <name>Tray</name>
    <message>
        <source>A machine was added</source>
        <translation>Ein Gerät ist dazugekommen</translation>
    </message>
    <message>
        <source>A wrong code was entered too many times, so pairing was closed.</source>
        <translation>Ein falscher Code wurde eingegeben. Die Kopplung ist geschlossen.</translation>
    </message>
    <message>
        <source>Download finished</source>
        <translation>Download fertig</translation>
    </message>
    <message>
        <source>Poolhouse stays in the tray. To stop it, choose Quit from this menu.</source>
        <translation>Es läuft hier im Infobereich weiter. Um es zu beenden, wählen Sie „Beenden“ in diesem Menü.</translation>
    </message>
    <message>
        <source>Minimize</source>
        <translation>Minimieren</translation>
    </message>
    <message>
        <source>A computer was lost</source>
        <translation>Ein Computer ist weg</translation>
    </message>
    <message>
        <source>Answer ready</source>
        <translation>Antwort fertig</translation>
    </message>
    <message>
        <source>Pairing attempt</source>
        <translation>Versuch einer Kopplung</translation>
    </message>
    <message>
        <source>Poolhouse is still running</source>
        <translation>Poolhouse läuft noch</translation>
    </message>
    <message>
        <source>Quit</source>
        <translation>Beenden</translation>
    </message>
    <message>
        <source>Someone entered a wrong code. Tries left: {left}.</source>
        <translation>Jemand hat einen falschen Code eingegeben. Verbleibende Versuche: {left}.</translation>
    </message>
    <message>
        <source>The answer stopped</source>
        <translation>Die Antwort brach ab</translation>
    </message>
    <message>
        <source>The model stopped unexpectedly</source>
        <translation>Das Modell ging verloren</translation>
    </message>
    <message>
        <source>This desktop doesn&apos;t show tray icons, so Poolhouse stays in the taskbar.</source>
        <translation>Dieser Desktop zeigt keine Symbole im Infobereich, deshalb bleibt Poolhouse in der Taskleiste.</translation>
    </message>
    <message>
        <source>{model} was not loaded</source>
        <translation>{model} wurde nicht geladen</translation>
    </message>
    <message>
        <source>{name} is now in your household.</source>
        <translation>{name} gehört jetzt zu Ihrem Haushalt.</translation>
    </message>
    <message>
        <source>{name} is ready to load.</source>
        <translation>{name} kann geladen werden.</translation>
    </message>
    <message>
        <source>{name} went offline. It was running part of {model}.</source>
        <translation>{name} ist offline. Dort lief ein Teil von {model}.</translation>
    </message>
</context>
<context>
    <name>TrayMenu</name>
    <message>
        <source>For {hours} h</source>
        <translation>Für {hours} h</translation>
    </message>
    <message>
        <source>Machines</source>
        <translation>Geräte</translation>
    </message>
    <message>
        <source>Open Poolhouse</source>
        <translation>Poolhouse öffnen</translation>
    </message>
    <message>
        <source>Pause lending</source>
        <translation>Verleih pausieren</translation>
    </message>
    <message>
        <source>Quit</source>
        <translation>Beenden</translation>
    </message>
    <message>
        <source>Quit (background service keeps running)</source>
        <translation>Beenden; der Hintergrunddienst läuft weiter</translation>
    </message>
    <message>
        <source>Resume lending</source>
        <translation>Verleih fortsetzen</translation>
    </message>
    <message>
        <source>Settings</source>
        <translation>Einstellungen</translation>
    </message>
    <message>
        <source>Stop now</source>
        <translation>Sofort stoppen</translation>
    </message>
    <message>
        <source>Until I resume</source>
        <translation>Bis ich fortsetze</translation>
    </message>
    <message>
        <source>Used by {names}</source>
        <translation>Benutzt von {names}</translation>
    </message>
    <message>
        <source>{name} (this machine)</source>
        <translation>{name} (dieses Gerät)</translation>
    </message>
    <message>
        <source>{name}: {state}</source>
        <translation>{name}: {state}</translation>
    </message>
</context>
<context>
    <name>UnreachableMachines</name>
    <message>
        <source>All machines in your household are connected.</source>
        <translation>Alle Geräte Ihres Haushalts sind verbunden.</translation>
    </message>
    <message>
        <source>Join a household…</source>
        <translation>Einem Haushalt beitreten…</translation>
    </message>
</context>
<context>
    <name>Updates</name>
    <message numerus="yes">
        <source>%n running this version</source>
        <translation>
            <numerusform>%Ln mit dieser Version</numerusform>
            <numerusform>%Ln mit dieser Version</numerusform>
        </translation>
    </message>
    <message>
        <source>If a newer version is available, the Activity page tells you.</source>
        <translation>Die Seite Aktivität sagt dann, wenn es eine neuere Version gibt.</translation>
    </message>
    <message>
        <source>Asking…</source>
        <translation>Fragt…</translation>
    </message>
    <message>
        <source>Check now</source>
        <translation>Jetzt nachsehen</translation>
    </message>
    <message>
        <source>Check once a day</source>
        <translation>Einmal am Tag nachsehen</translation>
    </message>
    <message>
        <source>Default: off</source>
        <translation>Standard: aus</translation>
    </message>
    <message>
        <source>Engine</source>
        <translation>Rechenprogramm</translation>
    </message>
    <message>
        <source>Changes in this version and earlier ones.</source>
        <translation>In dieser Version und denen davor.</translation>
    </message>
    <message>
        <source>A newer version is available</source>
        <translation>Eine neuere Version ist verfügbar</translation>
    </message>
    <message>
        <source>Already updated to {version}, or declined by the owner: {machines}.</source>
        <translation>Schon auf {version} aktualisiert oder vom Besitzer abgelehnt: {machines}.</translation>
    </message>
    <message>
        <source>An update didn&apos;t start</source>
        <translation>Ein Update ließ sich nicht starten</translation>
    </message>
    <message>
        <source>An update is installed</source>
        <translation>Ein Update ist installiert</translation>
    </message>
    <message>
        <source>Another computer asks for an update</source>
        <translation>Ein anderer Computer bittet um ein Update</translation>
    </message>
    <message>
        <source>Ask</source>
        <translation>Bitten</translation>
    </message>
    <message>
        <source>Asked to install {version}: {machines}.</source>
        <translation>Um die Installation von {version} gebeten: {machines}.</translation>
    </message>
    <message>
        <source>Asks on the screen of each connected computer whether to install the newest version.</source>
        <translation>Fragt auf dem Bildschirm jedes verbundenen Computers, ob die neueste Version installiert werden soll.</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>Abbrechen</translation>
    </message>
    <message>
        <source>Checking and unpacking</source>
        <translation>Wird geprüft und entpackt</translation>
    </message>
    <message>
        <source>Checks {place} for a new version when you click the button. Nothing else is sent.</source>
        <translation>Fragt {place} nach einer neuen Version, wenn Sie auf den Knopf klicken. Sonst wird nichts gesendet.</translation>
    </message>
    <message>
        <source>Choose the folder with the update</source>
        <translation>Ordner mit dem Update wählen</translation>
    </message>
    <message>
        <source>Choose…</source>
        <translation>Wählen…</translation>
    </message>
    <message>
        <source>Earlier version</source>
        <translation>Frühere Version</translation>
    </message>
    <message>
        <source>For computers without internet: choose a folder or a USB stick with an update of Poolhouse.</source>
        <translation>Für Computer ohne Internet: Wählen Sie einen Ordner oder einen USB-Stick mit einem Update von Poolhouse.</translation>
    </message>
    <message>
        <source>Go back</source>
        <translation>Zurückkehren</translation>
    </message>
    <message>
        <source>Install</source>
        <translation>Installieren</translation>
    </message>
    <message>
        <source>Install anyway</source>
        <translation>Trotzdem installieren</translation>
    </message>
    <message>
        <source>Install from a folder</source>
        <translation>Aus einem Ordner installieren</translation>
    </message>
    <message>
        <source>Install this update?</source>
        <translation>Dieses Update installieren?</translation>
    </message>
    <message>
        <source>Installing an update</source>
        <translation>Ein Update wird installiert</translation>
    </message>
    <message>
        <source>This version is being released gradually. This computer gets it a little later.</source>
        <translation>Diese Version wird nach und nach verteilt. Dieser Computer erhält sie etwas später.</translation>
    </message>
    <message>
        <source>Looking for the newest version</source>
        <translation>Die neueste Version wird gesucht</translation>
    </message>
    <message>
        <source>Machines in a household need the same version to share a model.</source>
        <translation>Geräte eines Haushalts brauchen dieselbe Version, um ein Modell zu teilen.</translation>
    </message>
    <message>
        <source>Newer versions</source>
        <translation>Neuere Versionen</translation>
    </message>
    <message>
        <source>Newest version</source>
        <translation>Neueste Version</translation>
    </message>
    <message>
        <source>No other computer is connected.</source>
        <translation>Kein anderer Computer ist verbunden.</translation>
    </message>
    <message>
        <source>No version has been published yet (checked {time})</source>
        <translation>Noch ist keine erschienen ({time})</translation>
    </message>
    <message>
        <source>Not now</source>
        <translation>Jetzt nicht</translation>
    </message>
    <message>
        <source>Restart Poolhouse now to use version {version}, or use it from the next start.</source>
        <translation>Starten Sie Poolhouse jetzt neu, um Version {version} zu verwenden, oder verwenden Sie sie ab dem nächsten Start.</translation>
    </message>
    <message>
        <source>Poolhouse {version}. {size} to download; your household, chats and models are kept.</source>
        <translation>Poolhouse {version}. {size} zum Herunterladen; Haushalt, Chats und Modelle bleiben.</translation>
    </message>
    <message>
        <source>Restart now</source>
        <translation>Jetzt neu starten</translation>
    </message>
    <message>
        <source>Update</source>
        <translation>Aktualisieren</translation>
    </message>
    <message>
        <source>Update all computers</source>
        <translation>Alle Computer aktualisieren</translation>
    </message>
    <message>
        <source>These computers can&apos;t be asked, so update them by hand: {machines}.</source>
        <translation>Diese Computer lassen sich nicht fragen, aktualisieren Sie sie von Hand: {machines}.</translation>
    </message>
    <message>
        <source>Poolhouse {version} will be used again from the next start. Nothing is deleted.</source>
        <translation>Verwendet ab dem nächsten Start wieder Poolhouse {version}. Nichts wird gelöscht.</translation>
    </message>
    <message>
        <source>You have the newest version (checked {time})</source>
        <translation>Keine neuer als diese ({time})</translation>
    </message>
    <message>
        <source>{machine} asks you to install Poolhouse {version} here. Household, chats and models are kept.</source>
        <translation>{machine} bittet Sie, hier Poolhouse {version} zu installieren. Haushalt, Chats und Modelle bleiben.</translation>
    </message>
    <message>
        <source>Not checked yet</source>
        <translation>Noch nicht nachgesehen</translation>
    </message>
    <message>
        <source>Poolhouse can&apos;t check for updates</source>
        <translation>Poolhouse kann nicht nach Updates sehen</translation>
    </message>
    <message>
        <source>This copy doesn&apos;t include the list of changes.</source>
        <translation>Die Liste der Änderungen fehlt in dieser Kopie.</translation>
    </message>
    <message>
        <source>{done} of {size} downloaded</source>
        <translation>{done} von {size} heruntergeladen</translation>
    </message>
    <message>
        <source>{version} is available</source>
        <translation>{version} ist da</translation>
    </message>
    <message>
        <source>None yet</source>
        <translation>Noch keine</translation>
    </message>
    <message>
        <source>Not found</source>
        <translation>Nicht gefunden</translation>
    </message>
    <message>
        <source>Show</source>
        <translation>Anzeigen</translation>
    </message>
    <message>
        <source>Show what&apos;s new</source>
        <translation>Zeigen, was neu ist</translation>
    </message>
    <message>
        <source>This copy doesn&apos;t know where new versions are published. Check the site you downloaded it from.</source>
        <translation>Diese Kopie nennt keinen Ort, an dem neuere Versionen erscheinen, deshalb wird niemand gefragt. Von einer neuen Version erfahren Sie dort, woher Sie diese haben.</translation>
    </message>
    <message>
        <source>This version</source>
        <translation>Diese Version</translation>
    </message>
    <message>
        <source>To update</source>
        <translation>So aktualisieren Sie</translation>
    </message>
    <message>
        <source>Updates</source>
        <translation>Updates</translation>
    </message>
    <message>
        <source>Version</source>
        <translation>Version</translation>
    </message>
    <message>
        <source>The engine runs the models and comes with Poolhouse.</source>
        <translation>Das Programm, das die Modelle rechnet. Es gehört zu Poolhouse.</translation>
    </message>
    <message>
        <source>What&apos;s new</source>
        <translation>Was neu ist</translation>
    </message>
    <message>
        <source>Your other machines</source>
        <translation>Ihre anderen Geräte</translation>
    </message>
</context>
<context>
    <name>Upstreams</name>
    <message>
        <source>Add a server…</source>
        <translation>Server hinzufügen…</translation>
    </message>
    <message>
        <source>Add and test</source>
        <translation>Hinzufügen und testen</translation>
    </message>
    <message>
        <source>Add another server</source>
        <translation>Einen anderen Server hinzufügen</translation>
    </message>
    <message>
        <source>Address that ends in /v1</source>
        <translation>Adresse, bis einschließlich /v1</translation>
    </message>
    <message>
        <source>Another server may answer</source>
        <translation>Ein anderer Server darf antworten</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>Abbrechen</translation>
    </message>
    <message>
        <source>Choose a certificate…</source>
        <translation>Zertifikat wählen…</translation>
    </message>
    <message>
        <source>Reset count</source>
        <translation>Neu zählen</translation>
    </message>
    <message>
        <source>Reset count…</source>
        <translation>Neu zählen…</translation>
    </message>
    <message>
        <source>Reset the token count for {name}</source>
        <translation>Für {name} neu zählen</translation>
    </message>
    <message>
        <source>An OpenAI-compatible server that answers when the pool is full or doesn&apos;t have the model. It stays off until you turn it on. Requests sent to it leave your household.</source>
        <translation>Er versteht die API von OpenAI und antwortet, wenn der Pool voll ist oder ihm das Modell fehlt. Er bleibt aus, bis Sie ihn einschalten. Was dorthin geht, verlässt Ihren Haushalt.</translation>
    </message>
    <message>
        <source>This also deletes the server&apos;s key from this computer. The server itself is not affected.</source>
        <translation>Auch sein Schlüssel wird hier gelöscht. Am Server selbst ändert sich nichts.</translation>
    </message>
    <message>
        <source>Key</source>
        <translation>Schlüssel</translation>
    </message>
    <message>
        <source>If the pool can&apos;t finish an answer, the chat and the text so far are sent there.</source>
        <translation>Wenn der Pool eine Antwort nicht beenden kann, gehen der Chat und der bisherige Text dorthin.</translation>
    </message>
    <message>
        <source>Last reached at {time}.</source>
        <translation>Zuletzt erreicht: {time}.</translation>
    </message>
    <message>
        <source>Measure</source>
        <translation>Messen</translation>
    </message>
    <message>
        <source>Measure {name}</source>
        <translation>{name} messen</translation>
    </message>
    <message>
        <source>Measured {time}: {figures}</source>
        <translation>Gemessen {time}: {figures}</translation>
    </message>
    <message>
        <source>Measures the time to the first token, the speed of one answer, and how many answers at once are faster together. This uses up to {tokens} tokens of the server&apos;s limit and takes up to five minutes. Poolhouse never repeats it by itself.</source>
        <translation>Misst die Zeit bis zum ersten Token, die Geschwindigkeit einer Antwort, und bis zu wie vielen Antworten zugleich es zusammen schneller wird. Das verbraucht höchstens {tokens} Token des Limits und dauert bis zu fünf Minuten. Poolhouse wiederholt es nie von selbst.</translation>
    </message>
    <message>
        <source>Measure…</source>
        <translation>Messen…</translation>
    </message>
    <message>
        <source>Measuring…</source>
        <translation>Misst…</translation>
    </message>
    <message>
        <source>Models it may provide</source>
        <translation>Modelle, für die er antworten darf</translation>
    </message>
    <message>
        <source>Not reached since the background service started.</source>
        <translation>Seit dem Start des Hintergrunddienstes nicht erreicht.</translation>
    </message>
    <message>
        <source>Only for models that you choose on it. Such chats are sent there and leave your household.</source>
        <translation>Nur mit Modellen, die Sie dort wählen. Solche Chats gehen dorthin und verlassen Ihren Haushalt.</translation>
    </message>
    <message>
        <source>Other servers</source>
        <translation>Andere Server</translation>
    </message>
    <message>
        <source>Remove {name}</source>
        <translation>{name} entfernen</translation>
    </message>
    <message>
        <source>Remove…</source>
        <translation>Entfernen…</translation>
    </message>
    <message>
        <source>Test</source>
        <translation>Testen</translation>
    </message>
    <message>
        <source>Test {name}</source>
        <translation>{name} testen</translation>
    </message>
    <message>
        <source>There is already a server called {name}. Choose another name for this one.</source>
        <translation>Es gibt schon einen Server namens {name}. Wählen Sie für diesen einen anderen Namen.</translation>
    </message>
    <message>
        <source>Total token limit</source>
        <translation>Token, die er insgesamt verbrauchen darf</translation>
    </message>
    <message>
        <source>Uses the certificates this computer trusts.</source>
        <translation>Ihm wird vertraut, wie dieser Computer es bei anderen auch tut.</translation>
    </message>
    <message>
        <source>Trusts only the certificate in {file}.</source>
        <translation>Vertraut nur dem Zertifikat in {file}.</translation>
    </message>
    <message>
        <source>The token count for this server was lost, so nothing is sent there until you reset the count.</source>
        <translation>Was er gekostet hat, ist nicht mehr bekannt; deshalb wird ihm nichts geschickt, bis Sie neu zählen lassen.</translation>
    </message>
    <message>
        <source>This resets the token count to zero, so the server may use another {cap} tokens.</source>
        <translation>Was er bisher gekostet hat, wird hier vergessen; ab jetzt darf er {cap} Token verbrauchen.</translation>
    </message>
    <message>
        <source>Name of the server</source>
        <translation>Wie Sie ihn nennen</translation>
    </message>
    <message>
        <source>If the pool is full or doesn&apos;t have the model, another Poolhouse or a paid service can answer.</source>
        <translation>Wenn der Pool voll ist oder ihm das Modell fehlt: ein anderes Poolhouse oder ein Dienst, den Sie bezahlen.</translation>
    </message>
    <message>
        <source>model, or model=name on the server</source>
        <translation>Name, oder Name=Name dort</translation>
    </message>
    <message>
        <source>{model}, first token after {first}, {alone} for one answer, and no more for several at once.</source>
        <translation>{model}, erstes Token nach {first}, {alone} bei einer Antwort und nicht mehr bei mehreren zugleich.</translation>
    </message>
    <message>
        <source>{model}, first token after {first}, {alone} for one answer, {together} for {streams} at once.</source>
        <translation>{model}, erstes Token nach {first}, {alone} bei einer Antwort, {together} bei {streams} zugleich.</translation>
    </message>
    <message>
        <source>{name} may answer my own questions</source>
        <translation>{name} darf meine eigenen Fragen beantworten</translation>
    </message>
    <message>
        <source>{name} may continue interrupted answers</source>
        <translation>{name} darf abgebrochene Antworten fortsetzen</translation>
    </message>
    <message>
        <source>{name} responds, but doesn&apos;t have {models}.</source>
        <translation>{name} antwortet und hat {models} nicht.</translation>
    </message>
    <message>
        <source>{name} responds and has all the models you entered.</source>
        <translation>{name} antwortet und hat, worum er gebeten werden darf.</translation>
    </message>
    <message>
        <source>The token count for {name} was reset.</source>
        <translation>Für {name} wird neu gezählt.</translation>
    </message>
    <message>
        <source>{name} and its key were removed.</source>
        <translation>{name} ist entfernt, sein Schlüssel gelöscht.</translation>
    </message>
    <message>
        <source>{name} was measured: {figures}</source>
        <translation>{name} wurde gemessen: {figures}</translation>
    </message>
    <message>
        <source>{spent} of {cap} tokens used. Requests sent to this server leave your household.</source>
        <translation>{spent} von {cap} Token sind verbraucht. Was dorthin geht, verlässt Ihren Haushalt.</translation>
    </message>
</context>
<context>
    <name>UseChoice</name>
    <message>
        <source>How will you use this computer?</source>
        <translation>Wofür ist dieser Computer da?</translation>
    </message>
    <message>
        <source>Nobody chats on this computer. Poolhouse opens on the page that shows what it lends.</source>
        <translation>Hier chattet niemand. Zuerst sehen Sie, was er verleiht und an wen.</translation>
    </message>
    <message>
        <source>You chat on this computer. Other computers can use its memory when you don&apos;t need it.</source>
        <translation>Sie chatten an diesem Computer. Die anderen können seinen Speicher nutzen, solange Sie ihn nicht brauchen.</translation>
    </message>
</context>
<context>
    <name>VerdictView</name>
    <message>
        <source>This model can&apos;t be split, so only this machine&apos;s memory counts.</source>
        <translation>Es läuft ganz auf einem Gerät, deshalb zählt nur, was dieses hergibt.</translation>
    </message>
    <message>
        <source>Even with a short context, the model needs more memory than is free for models now.</source>
        <translation>Auch mit einem kurzen Kontext braucht das Modell mehr Speicher, als jetzt für Modelle frei ist.</translation>
    </message>
    <message>
        <source>Memory</source>
        <translation>Arbeitsspeicher</translation>
    </message>
    <message>
        <source>Show {quantization}</source>
        <translation>{quantization} zeigen</translation>
    </message>
    <message>
        <source>Use the smaller context</source>
        <translation>Den kleineren Kontext verwenden</translation>
    </message>
    <message>
        <source>With this context, the model needs more memory than is free for models now.</source>
        <translation>Mit diesem Kontext braucht das Modell mehr Speicher, als jetzt für Modelle frei ist.</translation>
    </message>
    <message>
        <source>{quantization} would fit.</source>
        <translation>{quantization} würde passen.</translation>
    </message>
</context>
<context>
    <name>ViewChoice</name>
    <message>
        <source>Map</source>
        <translation>Karte</translation>
    </message>
    <message>
        <source>Table</source>
        <translation>Tabelle</translation>
    </message>
</context>
<context>
    <name>WeekGrid</name>
    <message>
        <source>Use the arrow keys to move, Space to turn an hour on or off, and Shift+arrow to change several hours.</source>
        <translation>Die Pfeiltasten bewegen die Auswahl, die Leertaste schaltet eine Stunde ein oder aus, Umschalt und eine Pfeiltaste malen weiter.</translation>
    </message>
    <message>
        <source>Hours of the week</source>
        <translation>Stunden der Woche</translation>
    </message>
    <message>
        <source>does not lend</source>
        <translation>verleiht nicht</translation>
    </message>
    <message>
        <source>lends</source>
        <translation>verleiht</translation>
    </message>
    <message>
        <source>{day} {hour}:00, {state}</source>
        <translation>{day} {hour}:00, {state}</translation>
    </message>
</context>
<context>
    <name>Welcome</name>
    <message>
        <source>Back</source>
        <translation>Zurück</translation>
    </message>
    <message>
        <source>{number} of {many}</source>
        <translation>{number} von {many}</translation>
    </message>
    <message>
        <source>First steps</source>
        <translation>Erste Schritte</translation>
    </message>
    <message>
        <source>Start again</source>
        <translation>Erneut starten</translation>
    </message>
</context>
<context>
    <name>WhatIf</name>
    <message>
        <source>Load it this way</source>
        <translation>So laden</translation>
    </message>
    <message>
        <source>Include all again</source>
        <translation>Alle wieder einbeziehen</translation>
    </message>
    <message>
        <source>What would change</source>
        <translation>Was sich ändern würde</translation>
    </message>
    <message>
        <source>Without {names}, {model} would still run at {then}, {where}.</source>
        <translation>Ohne {names} ändert sich nichts: {model} liefe {where} mit {then}.</translation>
    </message>
    <message>
        <source>Without {names}, {model} does not fit. {why}</source>
        <translation>Ohne {names} passt {model} nicht. {why}</translation>
    </message>
    <message>
        <source>Without {names}, {model} still fits, {where}. Its speed hasn&apos;t been measured yet.</source>
        <translation>Ohne {names} passt {model} weiterhin, {where}. Die Geschwindigkeit ist noch nicht gemessen.</translation>
    </message>
    <message>
        <source>Without {names}, {model} would run at {then} instead of {now}, {where}.</source>
        <translation>Ohne {names} liefe {model} {where} mit {then} statt {now}.</translation>
    </message>
    <message>
        <source>Without {names}, {model} would run at {then}, {where}.</source>
        <translation>Ohne {names} liefe {model} {where} mit {then}.</translation>
    </message>
    <message>
        <source>Without {names}: planning…</source>
        <translation>Ohne {names}: wird geplant…</translation>
    </message>
    <message numerus="yes">
        <source>on %n machine(s)</source>
        <translation>
            <numerusform>auf %Ln Gerät</numerusform>
            <numerusform>auf %Ln Geräten</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>Window</name>
    <message>
        <source>Details</source>
        <translation>Details</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>Weitermachen</translation>
    </message>
    <message>
        <source>Quitting only closes this window. The background service was started separately and keeps running.</source>
        <translation>Beim Beenden schließt nur dieses Fenster: Der Hintergrunddienst wurde ohne es gestartet und läuft weiter.</translation>
    </message>
    <message>
        <source>Quit</source>
        <translation>Beenden</translation>
    </message>
    <message>
        <source>Restart</source>
        <translation>Neu starten</translation>
    </message>
    <message>
        <source>Start again</source>
        <translation>Erneut starten</translation>
    </message>
    <message>
        <source>{model} was not loaded. {why}</source>
        <translation>{model} wurde nicht geladen. {why}</translation>
    </message>
</context>
</TS>
