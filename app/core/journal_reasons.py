"""The sentences of the Activity page: what happened in the household, and what could not be kept."""

from __future__ import annotations

JOURNAL_SENTENCES: dict[str, str] = {
    "log_node_started": "Poolhouse {version} started.",
    "log_node_newer": "Poolhouse {version} is published. Settings, Updates leads to its page.",
    "log_machine_added": "{machine} belongs to the household now.",
    "log_machine_came": "{machine} is connected.",
    "log_machine_left": "{machine} is not connected any more.",
    "log_machine_lost": "{machine} is not connected any more. {why}",
    "log_machine_removed": "{machine} was removed from the household.",
    "log_machine_renamed": "{before} is called {machine} now.",
    "log_model_alone": "Loading {model} on this machine.",
    "log_model_begun": "Loading {model} on {machines} machines.",
    "log_model_ready": "{model} is ready, after {seconds} seconds.",
    "log_model_failed": "{model} was not loaded. {why}",
    "log_model_stopped": "Loading {model} was stopped.",
    "log_model_unloaded": "{model} was unloaded, and its memory is free again.",
    "log_model_downloaded": "{model} is downloaded.",
    "log_model_broken": "The download of {model} stopped. {why}",
    "log_model_broken_off": "A machine of {model} is missing. {why}",
    "log_model_goes_on": "{model} goes on answering.",
    "log_model_goes_on_after": "{model} goes on answering, after {seconds} seconds.",
    "log_model_mended": "{machine} was gone during an answer of {model}, which went on after {seconds} seconds.",
    "log_model_mended_late": "{machine} was gone during an answer of {model}: noticed after {noticed_s} seconds, and "
    "{seconds} seconds later it went on.",
    "log_machine_failed": "{machine} failed while {model} was loaded, which goes on without it. {why}",
    "log_model_without": "{machine} answers with {model} no more. The other machines go on.",
    "log_model_with": "{machine} answers with {model} again.",
    "log_model_lost": "{model} was lost. {why}",
    "log_node_uncounted": "What other servers have cost is no longer known, as {path} is damaged. These are sent "
    "nothing until you have them counted anew (`poolhouse upstream change NAME --forget-spent`): {names}.",
    "log_machine_doubts_lost": "Which machines gave wrong numbers is no longer known, as the file of it was damaged; "
    "it is kept as {path}. They are used again until a check finds them again.",
    "log_node_interfaces_lost": "Which interface you chose for each machine is no longer known, as the file of it was "
    "damaged; it is kept as {path}. The best one is used; choose again on the map of the page Pool.",
    "log_node_journal_lost": "What happened before is no longer known, as the file of it was damaged; it is kept as "
    "{path}. Put a copy of the file back while Poolhouse is closed, or go on without.",
    "log_node_pins_lost": "{path} is damaged: it holds which bytes were taken first of models that no catalogue knows. "
    "Put a copy of it back, or delete it to trust the next download of each anew. Until then such a model is "
    "downloaded only as another machine of the household knows it.",
    "log_node_upstream": "{upstream} answered in place of the pool: {tokens} tokens of {model}.",
    "log_lending_off": "Lending is off.",
    "log_lending_on": "Lending is on.",
    "log_lending_draining": "Lending ends after the running answer. {why}",
    "log_lending_paused": "Lending is paused. {why}",
    "log_lending_used": "{machine} uses memory of this machine.",
    "log_lending_unused": "{machine} gave the memory of this machine back.",
    "report_unwritten": "{path} cannot be written: {why}. Choose another folder.",
    "bench_unkept": "The result is shown, but cannot be kept: {why}. Check the disk.",
}
