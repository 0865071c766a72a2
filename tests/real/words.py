"""The prompts for the real models: plain English, the same in each test."""

from __future__ import annotations

# Of the LICENSE of this project, which is Apache's: text that does not change.
PASSAGE = (
    "Licensed under the Apache License, Version 2.0; you may not use this file except in compliance with the "
    "License. Unless required by applicable law or agreed to in writing, software distributed under the License "
    "is distributed on an as is basis, without warranties or conditions of any kind, either express or implied. "
    "See the License for the specific language governing permissions and limitations under the License. "
    "Each Contributor hereby grants to You a perpetual, worldwide, non-exclusive, no-charge, royalty-free, "
    "irrevocable copyright license to reproduce, prepare Derivative Works of, publicly display, publicly "
    "perform, sublicense, and distribute the Work and such Derivative Works in Source or Object form."
)
STORY = (
    "Once upon a time an old lighthouse keeper lived on a small island with his three cats. Every evening he "
    "climbed the stairs, lit the lamp, and wrote into a book which ships had passed and how high the waves were. "
)
QUESTION = "What is the capital of France?"
# beginnings that eight people might give at once
BEGUN = (
    "The capital of France is",
    "Water boils at a temperature of",
    "The opposite of hot is",
    "The first day of the week is",
    "Two plus two is",
    "The sun rises in the",
    "Once upon a time there was a",
    "The largest planet is",
)
