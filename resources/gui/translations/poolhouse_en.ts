<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="en" sourcelanguage="en">
<context>
    <name>AlreadyHere</name>
    <message numerus="yes">
        <source>%n model(s) can be loaded on the page Models.</source>
        <translation>
            <numerusform>%n model can be loaded on the page Models.</numerusform>
            <numerusform>%n models can be loaded on the page Models.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n model(s) of {apps} can be used in place, without a download: {size}. Each file is read once to check it.</source>
        <translation>
            <numerusform>%n model of {apps} can be used in place, without a download: {size}. Each file is read once to check it.</numerusform>
            <numerusform>%n models of {apps} can be used in place, without a download: {size}. Each file is read once to check it.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>Use %n model(s)</source>
        <translation>
            <numerusform>Use %n model</numerusform>
            <numerusform>Use %n models</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>Answer</name>
    <message numerus="yes">
        <source>%n token(s)</source>
        <translation>
            <numerusform>%n token</numerusform>
            <numerusform>%n tokens</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>Waiting for its turn: %n answer(s) before it</source>
        <translation>
            <numerusform>Waiting for its turn: %n answer before it</numerusform>
            <numerusform>Waiting for its turn: %n answers before it</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>BenchView</name>
    <message numerus="yes">
        <source>%n answer(s) measured</source>
        <translation>
            <numerusform>%n answer measured</numerusform>
            <numerusform>%n answers measured</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n machine(s)</source>
        <translation>
            <numerusform>%n machine</numerusform>
            <numerusform>%n machines</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>ChatHead</name>
    <message numerus="yes">
        <source>{model} on %n machine(s)</source>
        <translation>
            <numerusform>{model} on %n machine</numerusform>
            <numerusform>{model} on %n machines</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>ChatList</name>
    <message numerus="yes">
        <source>%n chat(s) archived.</source>
        <translation>
            <numerusform>%n chat archived.</numerusform>
            <numerusform>%n chats archived.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n chat(s) deleted.</source>
        <translation>
            <numerusform>%n chat deleted.</numerusform>
            <numerusform>%n chats deleted.</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>ChatListModel</name>
    <message numerus="yes">
        <source>%n chat(s)</source>
        <translation>
            <numerusform>%n chat</numerusform>
            <numerusform>%n chats</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>DoctorDialog</name>
    <message numerus="yes">
        <source>All checks (%n)</source>
        <translation>
            <numerusform>All checks (%n)</numerusform>
            <numerusform>All checks (%n)</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>ExchangeDesk</name>
    <message numerus="yes">
        <source>%n chat(s) exported to {name}.</source>
        <translation>
            <numerusform>%n chat exported to {name}.</numerusform>
            <numerusform>%n chats exported to {name}.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n chat(s) imported.</source>
        <translation>
            <numerusform>%n chat imported.</numerusform>
            <numerusform>%n chats imported.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>Exporting %n chat(s)…</source>
        <translation>
            <numerusform>Exporting %n chat…</numerusform>
            <numerusform>Exporting %n chats…</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>Importing %n chat(s)…</source>
        <translation>
            <numerusform>Importing %n chat…</numerusform>
            <numerusform>Importing %n chats…</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>ForecastChart</name>
    <message numerus="yes">
        <source>At the median of %n answer(s) the forecast was off by {first} for the first token and by {speed} for the speed.</source>
        <translation>
            <numerusform>At the median of %n answer the forecast was off by {first} for the first token and by {speed} for the speed.</numerusform>
            <numerusform>At the median of %n answers the forecast was off by {first} for the first token and by {speed} for the speed.</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>Hardware</name>
    <message numerus="yes">
        <source>{name}, %n core(s)</source>
        <translation>
            <numerusform>{name}, %n core</numerusform>
            <numerusform>{name}, %n cores</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>{name}, %n core(s), of which {threads} compute</source>
        <translation>
            <numerusform>{name}, %n core, of which {threads} compute</numerusform>
            <numerusform>{name}, %n cores, of which {threads} compute</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>Headline</name>
    <message numerus="yes">
        <source>on %n machine(s)</source>
        <translation>
            <numerusform>on %n machine</numerusform>
            <numerusform>on %n machines</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>split, and whole on %n more machine(s)</source>
        <translation>
            <numerusform>split, and whole on %n more machine</numerusform>
            <numerusform>split, and whole on %n more machines</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>whole on each of %n machine(s)</source>
        <translation>
            <numerusform>whole on each of %n machine</numerusform>
            <numerusform>whole on each of %n machines</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>Household</name>
    <message numerus="yes">
        <source>whole model: %n answer(s)</source>
        <translation>
            <numerusform>whole model: %n answer</numerusform>
            <numerusform>whole model: %n answers</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>Models</name>
    <message numerus="yes">
        <source>%n model(s) in {folder}, {size}</source>
        <translation>
            <numerusform>%n model in {folder}, {size}</numerusform>
            <numerusform>%n models in {folder}, {size}</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>Move %n model(s) there too, {size}</source>
        <translation>
            <numerusform>Move %n model there too, {size}</numerusform>
            <numerusform>Move %n models there too, {size}</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>Nearby</name>
    <message numerus="yes">
        <source>and %n more</source>
        <translation>
            <numerusform>and %n more</numerusform>
            <numerusform>and %n more</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>Now</name>
    <message numerus="yes">
        <source>%n question(s) waiting</source>
        <translation>
            <numerusform>%n question waiting</numerusform>
            <numerusform>%n questions waiting</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>Privacy</name>
    <message numerus="yes">
        <source>%n download(s) now</source>
        <translation>
            <numerusform>%n download now</numerusform>
            <numerusform>%n downloads now</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>Report</name>
    <message numerus="yes">
        <source>%n machine(s)</source>
        <translation>
            <numerusform>%n machine</numerusform>
            <numerusform>%n machines</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n run(s)</source>
        <translation>
            <numerusform>%n run</numerusform>
            <numerusform>%n runs</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>SaveDialog</name>
    <message numerus="yes">
        <source>%n file(s), {size} before packing</source>
        <translation>
            <numerusform>%n file, {size} before packing</numerusform>
            <numerusform>%n files, {size} before packing</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>Session</name>
    <message numerus="yes">
        <source>%n oldest message(s) were left out: the context is full.</source>
        <translation>
            <numerusform>%n oldest message were left out: the context is full.</numerusform>
            <numerusform>%n oldest messages were left out: the context is full.</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>Updates</name>
    <message numerus="yes">
        <source>%n with this version</source>
        <translation>
            <numerusform>%n with this version</numerusform>
            <numerusform>%n with this version</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>WhatIf</name>
    <message numerus="yes">
        <source>on %n machine(s)</source>
        <translation>
            <numerusform>on %n machine</numerusform>
            <numerusform>on %n machines</numerusform>
        </translation>
    </message>
</context>
</TS>
