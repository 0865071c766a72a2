<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="en" sourcelanguage="en">
<context>
    <name>Answer</name>
    <message numerus="yes">
        <source>%n token(s)</source>
        <translation>
            <numerusform>%Ln token</numerusform>
            <numerusform>%Ln tokens</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>Waiting in line: %n answer(s) ahead</source>
        <translation>
            <numerusform>Waiting in line: %Ln answer ahead</numerusform>
            <numerusform>Waiting in line: %Ln answers ahead</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>Attachment</name>
    <message numerus="yes">
        <source>%n page(s)</source>
        <translation>
            <numerusform>%Ln page</numerusform>
            <numerusform>%Ln pages</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n sheet(s)</source>
        <translation>
            <numerusform>%Ln sheet</numerusform>
            <numerusform>%Ln sheets</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n slide(s)</source>
        <translation>
            <numerusform>%Ln slide</numerusform>
            <numerusform>%Ln slides</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>BenchView</name>
    <message numerus="yes">
        <source>%n answer(s) measured</source>
        <translation>
            <numerusform>%Ln answer measured</numerusform>
            <numerusform>%Ln answers measured</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>ChatHead</name>
    <message numerus="yes">
        <source>{model} on %n machine(s)</source>
        <translation>
            <numerusform>{model} on %Ln machine</numerusform>
            <numerusform>{model} on %Ln machines</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>ChatList</name>
    <message numerus="yes">
        <source>%n chat(s) archived.</source>
        <translation>
            <numerusform>%Ln chat archived.</numerusform>
            <numerusform>%Ln chats archived.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n chat(s) deleted.</source>
        <translation>
            <numerusform>%Ln chat deleted.</numerusform>
            <numerusform>%Ln chats deleted.</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>ChatListModel</name>
    <message numerus="yes">
        <source>%n chat(s)</source>
        <translation>
            <numerusform>%Ln chat</numerusform>
            <numerusform>%Ln chats</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>CommandPalette</name>
    <message numerus="yes">
        <source>%n match(es)</source>
        <translation>
            <numerusform>%Ln match</numerusform>
            <numerusform>%Ln matches</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>DoctorDialog</name>
    <message numerus="yes">
        <source>All checks (%n)</source>
        <translation>
            <numerusform>All checks (%Ln)</numerusform>
            <numerusform>All checks (%Ln)</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>EarlierBenchmarks</name>
    <message numerus="yes">
        <source>%n machine(s)</source>
        <translation>
            <numerusform>%Ln machine</numerusform>
            <numerusform>%Ln machines</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>ForecastChart</name>
    <message numerus="yes">
        <source>Over %n answer(s), the median forecast error was {first} for the first token and {speed} for the speed.</source>
        <translation>
            <numerusform>Over %Ln answer, the median forecast error was {first} for the first token and {speed} for the speed.</numerusform>
            <numerusform>Over %Ln answers, the median forecast error was {first} for the first token and {speed} for the speed.</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>Hardware</name>
    <message numerus="yes">
        <source>{name}, %n core(s)</source>
        <translation>
            <numerusform>{name}, %Ln core</numerusform>
            <numerusform>{name}, %Ln cores</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>{name}, %n core(s), {threads} used for models</source>
        <translation>
            <numerusform>{name}, %Ln core, {threads} used for models</numerusform>
            <numerusform>{name}, %Ln cores, {threads} used for models</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>Headline</name>
    <message numerus="yes">
        <source>on %n machine(s)</source>
        <translation>
            <numerusform>on %Ln machine</numerusform>
            <numerusform>on %Ln machines</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>split, with a full copy on %n more machine(s)</source>
        <translation>
            <numerusform>split, with a full copy on %Ln more machine</numerusform>
            <numerusform>split, with a full copy on %Ln more machines</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>with a full copy on each of %n machine(s)</source>
        <translation>
            <numerusform>with a full copy on each of %Ln machine</numerusform>
            <numerusform>with a full copy on each of %Ln machines</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>Household</name>
    <message numerus="yes">
        <source>whole model: %n answer(s)</source>
        <translation>
            <numerusform>whole model: %Ln answer</numerusform>
            <numerusform>whole model: %Ln answers</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>ImportExportPanel</name>
    <message numerus="yes">
        <source>%n chat(s) exported to {name}.</source>
        <translation>
            <numerusform>%Ln chat exported to {name}.</numerusform>
            <numerusform>%Ln chats exported to {name}.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n chat(s) imported.</source>
        <translation>
            <numerusform>%Ln chat imported.</numerusform>
            <numerusform>%Ln chats imported.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>Exporting %n chat(s)…</source>
        <translation>
            <numerusform>Exporting %Ln chat…</numerusform>
            <numerusform>Exporting %Ln chats…</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>Importing %n chat(s)…</source>
        <translation>
            <numerusform>Importing %Ln chat…</numerusform>
            <numerusform>Importing %Ln chats…</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>Models</name>
    <message numerus="yes">
        <source>%n download(s)</source>
        <translation>
            <numerusform>%Ln download</numerusform>
            <numerusform>%Ln downloads</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n model(s) in {folder}, {size}</source>
        <translation>
            <numerusform>%Ln model in {folder}, {size}</numerusform>
            <numerusform>%Ln models in {folder}, {size}</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>Also move %n model(s) there ({size})</source>
        <translation>
            <numerusform>Also move %Ln model there ({size})</numerusform>
            <numerusform>Also move %Ln models there ({size})</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>Nearby</name>
    <message numerus="yes">
        <source>and %n more</source>
        <translation>
            <numerusform>and %Ln more</numerusform>
            <numerusform>and %Ln more</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>Now</name>
    <message numerus="yes">
        <source>%n question(s) waiting</source>
        <translation>
            <numerusform>%Ln question waiting</numerusform>
            <numerusform>%Ln questions waiting</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>Privacy</name>
    <message numerus="yes">
        <source>%n download(s) in progress</source>
        <translation>
            <numerusform>%Ln download in progress</numerusform>
            <numerusform>%Ln downloads in progress</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>Report</name>
    <message numerus="yes">
        <source>%n machine(s)</source>
        <translation>
            <numerusform>%Ln machine</numerusform>
            <numerusform>%Ln machines</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n run(s)</source>
        <translation>
            <numerusform>%Ln run</numerusform>
            <numerusform>%Ln runs</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>SaveDialog</name>
    <message numerus="yes">
        <source>%n file(s), {size} before compression</source>
        <translation>
            <numerusform>%Ln file, {size} before compression</numerusform>
            <numerusform>%Ln files, {size} before compression</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>Session</name>
    <message numerus="yes">
        <source>%n older message(s) left out because the context is full.</source>
        <translation>
            <numerusform>%Ln older message left out because the context is full.</numerusform>
            <numerusform>%Ln older messages left out because the context is full.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n picture(s) left out because a question has no room for more.</source>
        <translation>
            <numerusform>%Ln picture left out because a question has no room for more.</numerusform>
            <numerusform>%Ln pictures left out because a question has no room for more.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n picture(s) left out because {model} can&apos;t look at pictures.</source>
        <translation>
            <numerusform>%Ln picture left out because {model} can&apos;t look at pictures.</numerusform>
            <numerusform>%Ln pictures left out because {model} can&apos;t look at pictures.</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>ThoughtView</name>
    <message numerus="yes">
        <source>Thinking… %n token(s)</source>
        <translation>
            <numerusform>Thinking… %Ln token</numerusform>
            <numerusform>Thinking… %Ln tokens</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>Tools</name>
    <message numerus="yes">
        <source>%n tool(s)</source>
        <translation>
            <numerusform>%Ln tool</numerusform>
            <numerusform>%Ln tools</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>{name} works and has %n tool(s).</source>
        <translation>
            <numerusform>{name} works and has %Ln tool.</numerusform>
            <numerusform>{name} works and has %Ln tools.</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>Updates</name>
    <message numerus="yes">
        <source>%n running this version</source>
        <translation>
            <numerusform>%Ln running this version</numerusform>
            <numerusform>%Ln running this version</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>WhatIf</name>
    <message numerus="yes">
        <source>on %n machine(s)</source>
        <translation>
            <numerusform>on %Ln machine</numerusform>
            <numerusform>on %Ln machines</numerusform>
        </translation>
    </message>
</context>
</TS>
