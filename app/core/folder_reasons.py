"""The sentences of the folder of models: where they are kept, a disk that is away, the move to another one."""

from __future__ import annotations

FOLDER_SENTENCES: dict[str, str] = {
    "models_folder_away": "{folder} cannot be reached, so the models in it cannot be used. Plug in its disk, or "
    "connect to it: they come back by themselves.",
    "models_folder_other": "{folder} is not the folder that your models were put in; perhaps another disk has its "
    "place. Plug in the right one, or choose another folder.",
    "model_away": "{name} lies in {folder}, which cannot be reached. Plug in its disk, or connect to it.",
    "model_file_stays": "{path} could not be deleted: {why}. Close what uses it, or make its disk writable, then try "
    "again.",
    "models_folder_odd": "{folder} is not a whole path. Give one that begins at the disk.",
    "models_folder_inside": "{folder} holds data of Poolhouse itself. Choose a folder outside of it.",
    "models_folder_none": "There is no folder {folder}. Make it, or choose another one.",
    "models_folder_file": "{folder} is a file. Choose a folder.",
    "models_folder_unusable": "{folder} cannot be used: {why}. Choose a folder in which you may write.",
    "models_folder_taken": "Another Poolhouse keeps its models in {folder}. Choose another folder; models there can "
    "be imported, and are then used in place.",
    "models_moving": "Models are being moved. Wait until that is done, or stop it, then choose.",
    "models_move_no_room": "Not enough space in {folder}: {needed_bytes} are needed with the 5 GiB that stay free, "
    "and {free_bytes} are free. Free some space there, or choose another folder.",
    "models_move_failed": "The move stopped at {path}: {why}. Nothing is lost: what was not moved is used where it is. "
    "Check the disk, then go on.",
    "models_move_damaged": "What was read back from {folder} is not what was written there. Nothing is lost: the "
    "model stays where it was. Check that disk.",
    "models_move_left": "{path} is moved, but the old file could not be deleted: {why}. Close what uses it, "
    "then go on.",
    "models_move_waits": "{name} is loaded. It is moved once it is unloaded.",
}
