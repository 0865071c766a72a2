<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="de" sourcelanguage="en">
<context>
    <name>About</name>
    <message>
        <source>About</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Built on</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Drawn for Poolhouse.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Icons</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>It brings no licence text of its own.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Libraries and their licences</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Libraries licences</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Library</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Licence</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Show</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Show licence</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Show licence text</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Show the licence of Qt</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Show the licence of the icons</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Used unchanged under the LGPL, version 3. Its libraries are separate files beside the app and may be replaced by your own. Source: code.qt.io</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Version</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Version {version}. Free software: Apache License 2.0.</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>AboutView</name>
    <message>
        <source>Belongs to {app}. It is used where it lies, and never moved or changed.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Licence: not stated</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Licence: {licence}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Model page</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Show one that fits</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This model is built in, small, and for learning the app. For real questions take a larger one.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>from {app}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>not in the catalogue</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{count} layers</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>ActivityPage</name>
    <message>
        <source>Activity</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Benchmark</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Log</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Overview</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Parts of this page</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>Acts</name>
    <message numerus="yes">
        <source>%n link(s) measured.</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message>
        <source>Leave out</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Lend again</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Pause lending for 1 hour</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Pause lending for 4 hours</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Pause lending until I resume</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Remove from household…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Rename…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Take back in</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Test links</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>What it may do…</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>AddSheet</name>
    <message numerus="yes">
        <source>%n try(s) left</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message>
        <source>Add a machine</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Address, if it does not find this machine: {address}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Close</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Done</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>New code</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Only lend its memory</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Paired with {name}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Start Poolhouse on the machine to add, press “Join a household” there, and type this code.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The code is {code}.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The new machine may</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Time left</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Use models and lend</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Use, lend, and add or remove machines</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{time} left, {tries}</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>AddressForm</name>
    <message>
        <source>Address of {machine}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Connect</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Connecting…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{machine} was reached, and its place is remembered.</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>Advanced</name>
    <message>
        <source>Advanced</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Background service</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Copy</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Copy the log</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Data folder</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Diagnostics for whoever helps you</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Find out…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Help</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Logs and settings in one file, without names, addresses and chats.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No text of your chats is written there.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Open</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Open the data folder</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Read again</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Restart it</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Save diagnostics…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Start it</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Tests this computer and its network, and names one cause. Also by the key F1.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The last lines of its log</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Version {version}, process {pid}. Running.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Why can it not see my other computer?</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>Answer</name>
    <message numerus="yes">
        <source>%n token(s)</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message>
        <source>Checking the file</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Copying</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Cutting layers</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Fetching layers</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Loading layers</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Measuring the machines</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Opening layers</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Planning</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Preparing layers</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Reading the question…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Sending layers</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Waiting</source>
        <translation type="unfinished"></translation>
    </message>
    <message numerus="yes">
        <source>Waiting for its turn: %n answer(s) before it</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
</context>
<context>
    <name>AnswersModel</name>
    <message>
        <source>First token</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>It broke off; the log says why.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>It came to its end.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>It reached its limit of tokens.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>It was stopped.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Model</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Speed</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Tokens</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>When</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>broke off</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>forecast</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>none</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>not measured</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>stopped</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>AnswersTable</name>
    <message>
        <source>The last answers</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>AutostartSwitch</name>
    <message>
        <source>Opens only the tray icon, no window.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Start at sign-in</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>Bars</name>
    <message>
        <source>Where the time went</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>computes {busy}, waits {wait}</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>BenchCard</name>
    <message>
        <source>Of the time of one answer</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>BenchModel</name>
    <message>
        <source>Beside its forecast</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>First token</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Kind</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Machines</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Model</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Speed</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>When</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>full</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>not measured</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>quick</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>BenchTable</name>
    <message>
        <source>Earlier benchmarks</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>BenchView</name>
    <message numerus="yes">
        <source>%n answer(s) measured</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n machine(s)</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message>
        <source>A benchmark asks random questions and throws the answers away.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Benchmark</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Earlier benchmarks</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Full, about 5 min</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Load a model first, then measure it.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Measures {model} as it is loaded now.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Nothing measured yet</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Open the models</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Picture (*.png)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Progress of the benchmark</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Quick, about 30 s</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Remove</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Save a report</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Save a report…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Saved as {file}. Machines are not named in it.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The benchmark is done.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The benchmark was removed.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Undo</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Warming up</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Web page (*.html)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{share} faster than {when}, with {machines}.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{share} slower than {when}, with {machines}.</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>Body</name>
    <message>
        <source>Show more ({count} characters)</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>Chat</name>
    <message>
        <source>Above 1: says the same less often.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Chat</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Chooses among so many words. 0: among all.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Chooses among the likeliest that make up this share. 1: all.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Ctrl+Enter</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Default: Enter</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Default: none</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Default: {value}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Enter</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Higher: more varied. 0: always the likeliest word.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Leaves out what is rarer than this share of the likeliest.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Min p</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>New chats</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>None. For example: Answer briefly, in German.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Repeat penalty</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Said to the model before every new chat.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Sampling</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Send with</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Shift+Enter always begins a new line.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>System message</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Temperature</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Top k</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Top p</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>ChatHead</name>
    <message>
        <source>Context used</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Context {used} of {all}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>New chat</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No model is loaded: the Guide answers</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Settings of this chat</source>
        <translation type="unfinished"></translation>
    </message>
    <message numerus="yes">
        <source>{model} on %n machine(s)</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message>
        <source>{model} on this machine</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{model}, loaded with the next message</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>ChatList</name>
    <message numerus="yes">
        <source>%n chat(s) archived.</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n chat(s) deleted.</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message>
        <source>Deleted “{title}”.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Folder “{name}” deleted; its chats stay.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>More for all chats</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Name of the folder</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>New chat</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>New chat ({key})</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>New folder</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No chat holds all of these words.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No chats yet</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Nothing found</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Search all chats</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Show all chats</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Start one</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Undo</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>What you ask and what is answered is kept on this computer only.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{title} (copy)</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>ChatListMenu</name>
    <message>
        <source>Archive</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Delete</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Delete folder, keep its chats</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Duplicate</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Export</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Export all chats</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Import chats…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Move to folder</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>New chat here</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>New folder</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>New folder…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No folder</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Pin to the top</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Rename</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Take out of the archive</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Unpin</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>ChatListModel</name>
    <message numerus="yes">
        <source>%n chat(s)</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message>
        <source>Archive</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Folder {name}, {chats}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>New chat</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{title}, pinned</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>ChatListView</name>
    <message>
        <source>Chats</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>ChatPage</name>
    <message>
        <source>Answer it</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Choose a larger context</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Continue</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Leave out the oldest messages</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This question has no answer yet.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Try again</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>ChatSettings</name>
    <message>
        <source> tokens</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A larger context than the model is loaded with loads it again first.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>As the model is loaded</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>By chance</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Context</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Keep as preset</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Keep as preset…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Longest answer</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Min p</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Model</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Name of the preset</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Presets</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Presets of sampling</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Presets of the system message</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Repeat penalty</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Reset to defaults</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Sampling</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Save</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Seed</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Settings of this chat</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>System message</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Temperature</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Top k</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Top p</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Whichever is loaded</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Who the model is to be, and how it answers</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{count} tokens</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>CodeBlock</name>
    <message>
        <source>Code, {language}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Copy code</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>text</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>CommandButton</name>
    <message>
        <source>Copy command</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Copy command for {machine}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>For Fedora (firewalld)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>For Ubuntu and Debian (ufw)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>For Windows</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>Composer</name>
    <message>
        <source>Attach a text file</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Attach text files</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Remove {name}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Send</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Send (Enter)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Stop</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Stop (Esc)</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>ComputerPage</name>
    <message>
        <source>Saved</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This computer</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Try again</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Undo</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Undo the last change (Ctrl+Z)</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>ContextSlider</name>
    <message>
        <source>Context</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Context, in tokens</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{count} tokens</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>Conversation</name>
    <message>
        <source>Conversation</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>To the end</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>Details</name>
    <message>
        <source>Asking which files there are…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Choose a model on the left to see whether it fits and how fast it runs.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No model chosen</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>Doctor</name>
    <message>
        <source>A VPN may be in the way</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A firewall on this computer</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A firewall on {machine}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Another computer answers in place of {machine}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Computers nearby cannot be looked for</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Copy the command and run it here. Poolhouse itself changes no firewall.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Copy the command and run it on {machine}. Poolhouse itself changes no firewall.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Could not test</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Fail</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>It is not known where {machine} is</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Its page Settings, Network shows the address.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Looking for computers nearby is off</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No other computer is heard</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No other computer is paired yet</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Note</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Pass</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Poolhouse does not run on this computer</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Poolhouse does not run on {machine}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Settings, Household says how to give it a new identity.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Start Poolhouse on the other computer, then add it: one shows a code, the other takes it.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Start Poolhouse there. If it runs and has another address now, say which.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The page This computer shows the rules.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The versions differ</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This computer is on no network</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This computer was removed from the household</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Turn it on in Settings, Network.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Two computers have one identity</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>the other computer</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{machine} does not know this computer any more</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{machine} is off, asleep or elsewhere</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{machine} is on another network</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>DoctorDialog</name>
    <message>
        <source>Add a machine…</source>
        <translation type="unfinished"></translation>
    </message>
    <message numerus="yes">
        <source>All checks (%n)</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message>
        <source>Background service</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Close</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Copied: {command}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Everything else is tested by the background service.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Network</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Nothing stands in the way</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Open network settings</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Restart it</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Save diagnostics…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Say where it is…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Start it</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Test again</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Testing…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This computer sees its household. If another one does not see it, test there too.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This takes a few seconds.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Why can it not see my other computer?</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>DropHint</name>
    <message>
        <source>Let go to add this model</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>Editor</name>
    <message>
        <source>Cancel</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Text of the message</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>ExchangeDesk</name>
    <message numerus="yes">
        <source>%n chat(s) exported to {name}.</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n chat(s) imported.</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Chats</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Export as {form}</source>
        <translation type="unfinished"></translation>
    </message>
    <message numerus="yes">
        <source>Exporting %n chat(s)…</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message>
        <source>Import chats</source>
        <translation type="unfinished"></translation>
    </message>
    <message numerus="yes">
        <source>Importing %n chat(s)…</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message>
        <source>Reading {name}…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Show folder</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Undo</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Wait until the other file is done.</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>Export</name>
    <message>
        <source>Answer</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Attachment {name}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>New chat</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>System message</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>You</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>Field</name>
    <message>
        <source>Message</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Message…</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>FileChoice</name>
    <message>
        <source>Quantisation</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{words} (on this computer)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{words} (recommended)</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>ForecastChart</name>
    <message numerus="yes">
        <source>At the median of %n answer(s) the forecast was off by {first} for the first token and by {speed} for the speed.</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message>
        <source>Forecast against fact</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>as forecast</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>faster</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>slower</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>ForecastView</name>
    <message>
        <source>Cancel</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Measure now</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Measuring</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Measuring {machine}…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Measuring…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Not measured yet. A test of about ten seconds makes a forecast.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>What would help</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Why this way</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>first token</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>first token, after a prompt of {count}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>forecast</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>forecast, {count} people together</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>FoundStep</name>
    <message>
        <source>A model needs memory most of all. You decide later how much of it is lent.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Computes with</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Disk for models</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Memory</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Still looking…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The disk could not be read</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>What this computer has</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{free} are free</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{free} of {total} are free now</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>General</name>
    <message>
        <source>As the system</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Counts when Poolhouse is opened the next time.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Dark</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Default: 100 %</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Default: as the system</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Default: off</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Everything grows with it.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>First steps</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>General</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Language</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Light</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Look</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Name, role and pairing, as on the first day.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Nothing moves or fades.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Reduce motion</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Show the first steps again</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Show them</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Start</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Start at sign-in login</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Text size</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The language changes when Poolhouse is opened again.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Theme</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>Group</name>
    <message>
        <source>Everything on {page} is as it was at first.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Reset this page</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>Hardware</name>
    <message>
        <source>Disk of the models</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Engine</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Graphics</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Memory</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Models lie in</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No graphics card that an engine can use</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Processor</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>System</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{cards}. Not lent yet: layers are held in main memory.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{free} free of {total}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{model}: {layer} a layer. Alone about {rate}, prompts about {prefill}.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{name} cannot be used: {why}.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{name}, {cores} cores</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{name}, {cores} cores, of which {threads} compute</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>HardwareCard</name>
    <message>
        <source>Asking the engines what they find…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>It could not be measured now. Try again when no answer runs.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Its speed is not measured yet.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Measure speed</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Not measured yet.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Progress of the measurement</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This machine has</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>Headline</name>
    <message>
        <source>Cancel</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Choose a model</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Forecast {forecast}, first word after {first}. No answer measured yet.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Last answer {fact}, forecast {forecast}.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Loading</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Loading {model}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Measure speeds</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Measuring…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No forecast: this model&apos;s speed here is not measured yet.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No model is loaded</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Preparing</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Ready. {model} {where}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Unload</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>What would help</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>cutting layers</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>loading layers</source>
        <translation type="unfinished"></translation>
    </message>
    <message numerus="yes">
        <source>on %n machine(s)</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message>
        <source>on this machine</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>receiving layers</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{model} fits. Its speed here is not measured yet.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{model} was lost</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{model} would run at {speed}, with the first word after {first}.</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>Hint</name>
    <message>
        <source>No model is loaded, so the Guide answers.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The context is nearly full: the next answer may stop early.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Use {model}</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>HoursCard</name>
    <message>
        <source>As text</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Hours as text</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Leave at least one hour, or turn lending off above.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Lends at any hour.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Nights</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Nights and weekends</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Now it does not lend.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Now it may lend.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Only at certain hours</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>That is too finely divided. Use longer stretches.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The table shows whole hours only; the text is exact.</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>Household</name>
    <message>
        <source>Add a machine…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Address</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Another machine</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Back</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>By</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Carried by</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Change</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Close</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Copy</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Copy the command</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Costs</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Device</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Draining</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>For a computer that was removed, was copied, or changes households. All pairings of this machine end; models and chats stay. Quit Poolhouse first, then run this command. The old identity is kept beside the new one.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Held</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Holds</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Household</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Identity</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>In all</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>It is cut off at once. Machines that are off learn of this when they next meet another one.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>It is paired by a code of six digits.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>It proves to the others who this is, and never leaves this computer.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Keep: {added}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Key of this machine</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Last seen {when}.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Layers</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Leave, with a new identity</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Left out</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Left out by you, to see what changes.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Lend only</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Lends nothing</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Lent</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Machine</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Machines of a household can in principle work out what is typed from the numbers they process. Pair only machines you trust.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>May</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Measured</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Members</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Members machines roles remove</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Memory</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Name</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Not seen since Poolhouse started here.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Nothing</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Offline</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Only its removal takes the right to change the household away.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Only lend its memory</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Paused</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Ready</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Removal cannot undo what {name} has already seen, and the layers of models on its disk stay there. To come back it needs a new identity and a new code.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Remove too: {added}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Remove {name}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Remove {name} from the household</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Remove…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Rename</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Rename {name}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Roles…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Round trip</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Save</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Share of time</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>State</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The command was copied.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>There</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This machine</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This machine, host</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Thunderbolt</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Use models</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Use models and lend</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Use, lend, and add or remove machines</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Use, lend, change the household</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Used by</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>VPN</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>What {name} may do</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Wi-Fi</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>With it went {others}.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Working</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>cable</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>holds {used}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>kind unknown</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>layers {runs}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>lends nothing</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>lends {lent}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>no layers</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>nobody else</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>none</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>not known</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>not measured</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>not yet</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>nothing</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>same computer</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>used by {names}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>virtual</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{here}, {there} there</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{median}, 99 of 100 under {slow}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{name} added {added} to the household. What becomes of that?</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{name} is no longer part of the household.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{name} may now: {roles}.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{percent}, good</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{percent}, main brake</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{percent}, noticeable</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{share}; {token} a token, {chunk} a prompt chunk</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{used} of {lent}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{was} is called {now} now.</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>Inspector</name>
    <message>
        <source>Close details</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Details</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Leave out</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Lend again</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>More</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Pause lending</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Rename</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Take back in</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Test links</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Testing…</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>InterfaceList</name>
    <message>
        <source>In use</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Not connected</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This computer is on no network.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Use {name}</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>JoinSheet</name>
    <message>
        <source>Address</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Code</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Code, six digits</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Done</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>For example 192.168.1.20:4242</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Households nearby</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Join</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Join a household</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Joining…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Nearby</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Nobody nearby lets a machine in just now. Type the address shown beside the code.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>On a machine of the household press “Add a machine”. It shows a code.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Paired with {name}</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>Lending</name>
    <message>
        <source>Finishing one answer, then pausing (at most {time}).</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Lending {size} to {names}.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Nothing is lent now.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Paused by you until you resume it.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Paused by you until {time}.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Ready. Others may use {size}.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Since {time}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Stopped by you until you resume it.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Turned off. Nothing of this machine is lent.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Your household does not let this machine lend.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>another machine</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>lending</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>lends nothing</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>offline</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>paused</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>pausing</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>ready</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>working</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>Link</name>
    <message>
        <source>Copy address</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Open a link</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Open in the browser</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This link comes from an answer and leads to:</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>Listing</name>
    <message>
        <source>Code</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>LoadSteps</name>
    <message>
        <source>Cancel</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Checking {model} with a known answer</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Loading {model}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Progress</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This file</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>Loading</name>
    <message>
        <source>Load it again</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{model} is unloaded; its memory is free again.</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>LogModel</name>
    <message>
        <source>What happened</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>When</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>LogView</name>
    <message>
        <source>Answers</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Everything</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Lending</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Machines</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Models</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Models that come and go, machines, lending and answers are written down here, never a word of any text.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Nothing to show</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Search the log</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The app</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The log</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Which entries</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{model} answered with {tokens} tokens: the first after {first}, then {speed}.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{model} broke off an answer after {tokens} tokens.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{model} was stopped after {tokens} tokens.</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>MachineTable</name>
    <message>
        <source>Machines of the household</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>MachineTicks</name>
    <message>
        <source>Machines to use</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This machine holds the first and the last layers.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{name} (lends nothing now)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{name} (lends {size})</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{name} (offline)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{name} (this machine)</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>MapView</name>
    <message>
        <source>Arrow keys choose a machine. The table has the same facts.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Map of the household</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>MemoryBars</name>
    <message>
        <source>KV cache</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Weights</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Work</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{needs} of {lends}</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>MemoryCard</name>
    <message>
        <source>Always kept for you</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Choose the limit for me</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Free</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Half of what is free when Poolhouse starts.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Lend at most {size}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Lent, unused</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Memory</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Memory lent at most</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Memory of this machine</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Other programs</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Used by others</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Your own model</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>none</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{size} in all</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>MessageDeeds</name>
    <message>
        <source>Copied</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{title} (branch)</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>MessageView</name>
    <message>
        <source>Answer</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Computed by</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Continue</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Copy</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Copy as Markdown</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Cut: it reached the longest answer allowed. Continue goes on.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Edit</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>More</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>New chat from here</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Next version</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Regenerate</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Save as a version</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Select as text…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Send again</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Stopped by you. Continue goes on.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Version before</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Version {number} of {count}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>You</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>ModelList</name>
    <message>
        <source>All models</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Catalogue</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>File is gone</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Found in other apps</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Loaded</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Loading…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Lost</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Models</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No model matches</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Nothing found on Hugging Face</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Nothing here fits the memory that is lent now.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Nothing here is called so. Search online for it, or show all models.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>On Hugging Face</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>On this computer</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Search Hugging Face for “{words}”</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Search models</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Searching huggingface.co… Stop</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Show all</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>What fits</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Which models</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>Models</name>
    <message>
        <source>Access token for Hugging Face</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Asking {source}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Checking the bytes, {amounts}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Checking the file</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Copying its layers</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Delete {size}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Download</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Download {size}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Downloaded and checked</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Downloading…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Empty</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Fits</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Fits with a smaller context</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Fits with smaller context</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Folders</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Gated models</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Layers for other machines</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Load</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Load again</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Load with these settings</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Loaded</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Loading its layers</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Measuring</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Models</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Only for models whose makers ask who downloads them. None is saved.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Open</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Open chat</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Open the folder</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Paused at {amounts}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Preparing its layers</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Remove</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Remove from the list</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Remove the access token</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Save</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Save the access token</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Saved</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Show it</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Tight</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Too big</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Too big by {size}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Try anyway</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Unload</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Use this file</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Waits for its turn</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Weights {weights} + KV cache {kv} + work memory {work} = {needs}; {lends} are lent now.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Weights {weights} + KV cache {kv} for {tokens} tokens + work memory {work} = {needs} of {lends} lent now.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Working</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Your models</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>estimate</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>from {source}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>only {size} to spare</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>small, for learning the app</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>weights {weights} + KV {kv} + work {work}, {left} left</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{count} B parameters</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{count} downloads</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{count} tokens</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{done} of {total}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{free} are free on this disk.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{quantisation} fits</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{size} to spare</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{time} left</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>ModelsPage</name>
    <message>
        <source>Add a machine</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>GGUF models (*.gguf)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Import a file…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Import a model</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Models</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No larger model fits the memory that is lent now. Add a machine, or lend more.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Show it</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{model} is ready.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{name} is downloaded and checked.</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>Moments</name>
    <message>
        <source>Yesterday {time}</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>NameStep</name>
    <message>
        <source>Name of this computer</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>One moment…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The computers of your home run one language model together. Nothing you write leaves them.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Welcome to Poolhouse</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Your other computers see this name. It says nothing about who you are.</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>Nearby</name>
    <message>
        <source>A machine at {address}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Nearby, not of this household</source>
        <translation type="unfinished"></translation>
    </message>
    <message numerus="yes">
        <source>and %n more</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message>
        <source>{name} lets a machine in</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>Network</name>
    <message>
        <source>Address</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Any free one</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>By multicast in your network. Off: machines are reached by address only.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Copy</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Copy the address</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Default: any free one, and then always the same</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Default: on</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Find machines nearby</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>For a router or firewall that wants a fixed one.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>For one that is not found by itself. Its own page Settings, Network shows the address.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Interfaces ethernet wi-fi vpn cable virtual</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Interfaces of this computer</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Name of this machine</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Network</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Other machines</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Port</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Reach a machine by its address</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Rename</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Saved. It counts once the background service starts anew.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The address was copied.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The others see it. Never your login name.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This machine is called {name} now.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Where the other machines reach this one.</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>Notice</name>
    <message>
        <source>Close this notice</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>Now</name>
    <message numerus="yes">
        <source>%n question(s) waiting</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message>
        <source>Loading {model}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Sending layers of {model} to {machine}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This machine holds layers for {name}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{done} of {total}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{machine} loads its layers of {model}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{machine} prepares its layers of {model}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{model} reads a question</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{model} writes an answer</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{tokens} tokens</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>NowCard</name>
    <message>
        <source>Nothing runs just now.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Now</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>Overview</name>
    <message>
        <source>Answers</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Ask something, and here stands what each machine did for the answer.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Forecast against fact</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Lent to others</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No answers yet</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Nothing to compare yet: after an answer of some length, made while nobody else asked, its forecast stands here beside what was measured.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Open the chat</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Other machines have not used this one yet.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Since {day} others had layers here for {time}. {tokens} token positions were computed for them; {size} went in and out.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Where the time went: {seconds} for {tokens} tokens</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>computes, with the way there and back</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>first token</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>reads</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>speed</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>waits</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>writes</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{seconds} for {tokens} tokens; the bars hold other answers&apos; work too</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>PairStep</name>
    <message>
        <source>Add a machine…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Do you have another computer?</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Join a household…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Paired with {names}.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Poolhouse runs on another one already</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Press “Add a machine” there, and type its code here.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Shows a code to type on the other computer.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This is the first one</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Together they hold larger models. You can also add it later, on the page Pool.</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>PoolPage</name>
    <message>
        <source>Add a machine</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Add another machine, and both hold larger models together than each alone.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Join a household</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Models of up to {size} fit on it today.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Only this machine so far</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Pool</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Test links</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Testing…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The household is shown as soon as it answers.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Waiting for the background service</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>Presets</name>
    <message>
        <source>Always the same</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Answer briefly and clearly. Say so when you do not know.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Balanced</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Creative</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Editing a text</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Explain simply</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Explain so that somebody who is new to the subject understands it. Use short sentences and an example.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Helpful and brief</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Improve spelling, grammar and style. Keep the meaning and the language. Show the text, then what you changed.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Precise</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Programming</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>You help with programming. Show complete, working code and say how to run it.</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>Privacy</name>
    <message numerus="yes">
        <source>%n connected now</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n download(s) now</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message>
        <source>Access token for Hugging Face</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Announces that a Poolhouse is here, without a name, so that others find it.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Chats</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Connections it does not make</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Connections this app makes</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Encrypted, and only with those that were paired by a code.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Key of this machine</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Machines of your household</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No check for updates</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No telemetry</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Nobody is told what you do, how often, or that you use this app.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>None saved</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>None yet</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Not connected now</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Off</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>On</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>On this computer</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Only when you search for a model there or download one.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Poolhouse never asks for newer versions.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Privacy</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Where it is kept</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Your network</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>huggingface.co</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>ProgramsEditor</name>
    <message>
        <source>Add</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Lending resumes when they are closed.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Name of a program</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No program is listed. Add a game, or whatever needs the machine.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Program to add</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Remove {name}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The list is full. Remove one to add another.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>While these programs run</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>not running</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>running now</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>Reaching</name>
    <message>
        <source>All machines of your household are connected.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Join a household…</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>ReadyStep</name>
    <message>
        <source>A small model for learning the app is built in. Ask it how Poolhouse works; for everything else, load a larger one on the page Models.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Ask the Guide</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Finish</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Ready</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The Guide</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The first answer needs no download and no network.</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>Removal</name>
    <message>
        <source>Delete {name}?</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Delete {size}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>It takes more memory of this computer than it is meant to give. It may be very slow, or not load. It runs in a process of its own, so Poolhouse goes on either way.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Its file of {size} is deleted. To use it again, it is downloaded again.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Try anyway</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Try {name} anyway?</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Undo</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{name} is deleted; {size} are free again.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{name} is off the list. Its file stays where it is.</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>Report</name>
    <message numerus="yes">
        <source>%n machine(s)</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n run(s)</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message>
        <source>A machine</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Computes</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>First token</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Layers</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Machine</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Machine {letter}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Measured by Poolhouse {version}.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Reading</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Sent and received</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Speed</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The same with {many} at once</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Waits</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>What each machine did for one answer</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>en</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>first token at most {time}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>forecast {said}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>forecast {said}, {share} faster</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>forecast {said}, {share} later</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>forecast {said}, {share} slower</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>forecast {said}, {share} sooner</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>no forecast</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>not measured</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{many} at once</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{model} on {machines}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{runs}, speed ± {share}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{when}. {prompt} tokens in, {output} out, context {context}.</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>RestartRow</name>
    <message>
        <source>Restart it now</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>RoleStep</name>
    <message>
        <source>Either way its memory helps the others, and you can pause that at any time.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Lend only</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Nobody chats here. It opens with what it lends, and to whom.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Use models and lend</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>What is this computer for?</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>You chat here. While you do not need its memory, the others may use it.</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>RulesCard</name>
    <message>
        <source>A running answer may still take</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Always on</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Lends after so long unused.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Lends at any charge, down to 5 %.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Lends beside other programs.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Lends beside your work, at low priority.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Lends only while plugged in.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Minutes unused before it lends</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Now: last used {time} ago.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Now: no battery.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Now: this system does not tell how busy it is.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Now: {percent} % busy.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Now: {percent} %, on battery.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Now: {percent} %, plugged in.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>On battery</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Pause below this charge</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Pause lending</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Pauses below {percent} %, resumes above {more} %.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Pauses below {percent} %, resumes when plugged in.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Then a pause takes the memory back. Stop now waits for nothing.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This system does not tell, so nobody counts as here.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>When my programs need the memory</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>While I use this computer</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>While another program keeps the graphics card busy</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>min</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>s</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{size} is free now.</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>SaveDialog</name>
    <message numerus="yes">
        <source>%n file(s), {size} before packing</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Files that will be saved</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Gathering…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>One file for whoever helps you. Names, addresses and folders are replaced, and no text of your chats is in it. Look before you save.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Save as…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Save diagnostics</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Saved as {path}.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Show in folder</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This could not be saved: {why}. Choose another folder.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>What stands in the chosen file</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Zip files (*.zip)</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>Session</name>
    <message numerus="yes">
        <source>%n oldest message(s) were left out: the context is full.</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
</context>
<context>
    <name>Settings</name>
    <message>
        <source>Cable</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Network</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This computer itself</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Thunderbolt</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>VPN</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Virtual machines or containers</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Wi-Fi</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>SettingsPage</name>
    <message>
        <source>Clear the search</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Nothing is called so</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Pages of settings</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Search settings</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Settings</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Try another word, or look through the pages.</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>SetupForm</name>
    <message>
        <source>People at once</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>Sidebar</name>
    <message>
        <source>Activity</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Chat</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Models</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Pool</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Settings</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>State of the pool</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This computer</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>Standing</name>
    <message>
        <source>Loading {model}.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Ready. No model is loaded yet.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Ready. This machine holds {model}.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Ready. {many} machines hold {model}.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Starting the background service…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The background service is not running.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The model was lost.</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>StateCard</name>
    <message>
        <source>Allow it to lend</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Asking the background service…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Lend this machine</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Nobody uses it now</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Pause until I resume</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Pause {hours} h</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Resume lending</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Stop now</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Takes all memory back at once, also from a running answer.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Used by {names}</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>Step</name>
    <message>
        <source>Next</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>Suggestions</name>
    <message>
        <source>Does anything leave my home?</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Explain how a rainbow forms, in three sentences.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>How do I add a computer?</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Plan a weekend in the mountains with two children.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The Guide answers: a small model that comes with Poolhouse and knows how it is used.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>What is Poolhouse?</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>What would you like to know?</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>What you write stays in your household.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Write a Python function that finds duplicate files.</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>TextBlock</name>
    <message>
        <source>Text</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>TextDialog</name>
    <message>
        <source>Close</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>TextWindow</name>
    <message>
        <source>Message as text</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>Timeline</name>
    <message>
        <source>Answer</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>reads {reads}, writes {writes}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>waits {waits}, {others}</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>TokenField</name>
    <message>
        <source>A token is kept {where}.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Access token of Hugging Face</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Access token, hf_…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Its maker asks for an account: accept the terms on the model&apos;s page, then give an access token of huggingface.co.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Keep token</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>TransferRow</name>
    <message>
        <source>Cancel</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Cancel {name}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Clear this line</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Pause</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Pause {name}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Progress of {name}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Resume</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Resume {name}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Try {name} again</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>Transfers</name>
    <message>
        <source>Checking the file</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Downloads</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>Tray</name>
    <message>
        <source>A machine joined</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A wrong code was entered. Pairing is closed.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Download finished</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>It goes on here in the tray. To end it, choose Quit in this menu.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Pairing attempt</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Poolhouse is still running</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Someone entered a wrong code. Tries left: {left}.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The model was lost</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This desktop shows no tray icons, so Poolhouse stays in the task bar.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{name} belongs to your household now.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{name} is ready to load.</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>TrayMenu</name>
    <message>
        <source>For {hours} h</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Machines</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Open Poolhouse</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Pause lending</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Quit</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Resume lending</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Settings</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Stop now</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Until I resume</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Used by {names}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{name} (this machine)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{name}: {state}</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>VerdictView</name>
    <message>
        <source>Its file and a short context need more than the machines lend now.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Memory</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Use the smaller context</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>With this context it needs more than the machines lend now.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{quantisation} would fit.</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>ViewChoice</name>
    <message>
        <source>Map</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Table</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>WeekGrid</name>
    <message>
        <source>Arrow keys move, Space turns an hour on or off, Shift and an arrow paints on.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Hours of the week</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>does not lend</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>lends</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{day} {hour}:00, {state}</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>Welcome</name>
    <message>
        <source>Back</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>First steps</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Skip</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Skip the introduction</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Start again</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Step {number} of {many}</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>WhatIf</name>
    <message>
        <source>Load it this way</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Take all back in</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>What would change</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Without {names}, {model} does not fit. {why}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Without {names}, {model} still fits, {where}. Its speed is not measured yet.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Without {names}, {model} would run at {then} instead of {now}, {where}.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Without {names}, {model} would run at {then}, {where}.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Without {names}: planning…</source>
        <translation type="unfinished"></translation>
    </message>
    <message numerus="yes">
        <source>on %n machine(s)</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
</context>
<context>
    <name>Window</name>
    <message>
        <source>Restart it</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Start again</source>
        <translation type="unfinished"></translation>
    </message>
</context>
</TS>
