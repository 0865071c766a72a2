"""Where states of recurrent layers are kept: engine and driver work it out alike, from the steps alone. Pure.

A state cannot be cut back by position as a KV cache can. So it is kept where a row of its own follows a longer
segment: at the end of a prompt, before its answer. A next turn goes on from the end of what was computed, or,
where the answer comes back written otherwise, from the end of the prompt before it. What the prompt added since
the state before may be too little for that (Keep.least_rows): then it is read again.
"""

from __future__ import annotations

from dataclasses import dataclass

from backends.contract import KEEP_ALL, Keep, Segment


@dataclass(frozen=True, slots=True)
class Kept:
    """One slot: what it holds, and after how many positions its state was kept."""

    marks: tuple[int, ...] = ()
    end: int = 0
    of_prompt: bool = False  # what was computed last had several rows
    rule: Keep = KEEP_ALL

    def keeps(self, segment: Segment) -> bool:
        """Whether the state is kept before this segment is computed."""
        ends = self.of_prompt and segment.n_tokens == 1 and segment.pos == self.end
        new = self.end - max(self.marks, default=0)
        return ends and self.rule.marks > 0 and (not new or new >= self.rule.least_rows)

    def after(self, segment: Segment) -> Kept:
        """The slot when the segment is computed."""
        marks = self.marks
        if self.keeps(segment) and self.end not in marks:
            marks = (*marks, self.end)[-self.rule.marks :]
        return Kept(marks, segment.end, segment.n_tokens > 1, self.rule)

    def reach(self, most: int) -> int:
        """To how many positions, `most` at most, it can be cut back."""
        if most >= self.end:
            return self.end
        return max((mark for mark in self.marks if mark <= most), default=0)

    def cut_back(self, keep: int) -> Kept:
        """The slot when it is cut back to what `reach` said."""
        if keep >= self.end:
            return self
        return Kept(tuple(mark for mark in self.marks if mark <= keep), keep, rule=self.rule)
