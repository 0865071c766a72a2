"""The correct answer: the tokens of a single undisturbed stage with all layers."""

from __future__ import annotations

from functools import cache

import numpy as np

from app.inference.pipeline.scheduler import PipelineConfig
from app.inference.pipeline.sequence import Request
from backends.contract import Layers, Role, Segment, Tokens
from backends.fake_engine import FakeStage
from backends.sampling import make_sampler
from tests.inference.pool import N_VOCAB, WIDTH, fake


@cache
def undisturbed(request: Request, form: PipelineConfig) -> list[int]:
    stage = FakeStage(fake(Role.WHOLE, Layers(0, 8), form, "fake:", WIDTH))
    sampler = make_sampler(request.sampling, N_VOCAB, "", request.ids, 0)
    new, pos, ids = list(request.ids), 0, []
    for _ in range(request.max_tokens):
        segment = Segment(0, len(new), pos)
        out = stage.forward(Tokens((segment,), new), [0])
        pos += len(new)
        new = [sampler.pick(np.frombuffer(out.rows, np.float32))]
        ids += new
    return ids
