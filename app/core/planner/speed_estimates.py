"""Speed estimates for a model's layers, based on one measured layer and on the work that each layer requires.

Layers that have not been downloaded, or are too large to be synthesized, cannot be measured. Instead, a plain layer of
the same number type is measured. The cost of the first row of a step depends on the bytes that it reads. The cost of
further rows and of prompts depends on their multiplications:

    attention, feed-forward   every weight is read once per step and multiplied once per row
    experts                   a row uses k of E experts; n rows read about E (1 - (1 - k/E)^n) of them
    keys and values           read for each earlier position, or for those within a sliding window
    states                    read and written once per row, regardless of its position

The estimate shows which of two models is faster, and roughly how fast. It ignores the strengths of a particular engine.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import exp, log
from typing import TYPE_CHECKING

from app.core.errors import Reason

if TYPE_CHECKING:
    from app.core.model import Model


@dataclass(frozen=True, slots=True)
class Speed:
    """The time that one machine's engine takes for the layers of a model, in seconds.

    The times are measured on layers with the model's own sizes and quantization, or estimated from other layers.

    A decode step of n rows through k layers takes step_s + k * (layer_s + (n - 1) * layer_row_s), plus k * position_s
    for each position already in its sequences. A prefill chunk of the workload's `batch_rows` rows, after p positions,
    takes step_s + k * (chunk_s + p * chunk_position_s). Layers with a sliding window add the same for each position in
    it, of which there are at most `window`.
    """

    layer_s: float  # per layer, for one row
    layer_row_s: float  # per layer, for each further row of a decode step
    position_s: float  # per layer, for each earlier position of a row
    chunk_s: float  # per layer, for a whole prefill chunk at the beginning of a prompt
    chunk_position_s: float  # per layer, for each position before a whole chunk
    step_s: float  # overhead of any step: starting the engine, the pipe, the process
    # the last norm, the output matrix and the sampler for one row, measured on the machine that runs them
    head_s: float
    head_row_s: float  # the same for each further row
    window: int = 0
    window_position_s: float = 0.0
    window_chunk_position_s: float = 0.0
    estimated: bool = False  # whether it is based on layers of another shape
    other_load: float = 0.0  # share of its processor that other programs used during the measurement
    # the same machine's processor, if a graphics card was measured: for the layers that the card has no room for
    processor: Speed | None = None


@dataclass(frozen=True, slots=True)
class SpeedConditions:
    """The conditions that a speed depends on, besides the machine and the model."""

    batch_rows: int  # rows of a whole prefill chunk
    exact: bool = False  # the processor uses only the instructions that all common computers have
    family: str = ""  # of the model (Model.family), which decides whether a graphics card computes it; empty if unknown
    engine: str = ""  # that the person chose; "" leaves it to the machine's owner


# above this, a token takes less than 17 ms, so other work of the computers matters as much as the model
ROUGH_TOK_S = 60.0


def is_rough(tok_s: float) -> bool:
    """Return whether a forecast of this speed is only a rough guide, even if the measurements are good."""
    return tok_s > ROUGH_TOK_S


# Below this, the engine's overhead and other work take most of the time of a token, and a forecast of it is far off.
MIN_FORECAST_PARAMETERS = 50_000_000
# The reasons of a plan that state a forecast, or what it is based on.
FORECAST_CODES = frozenset(
    {
        "plan_sketched", "plan_estimated", "plan_measured", "plan_measured_links", "plan_alone_faster",
        "plan_split_faster", "plan_narrow_wire", "plan_replicas", "plan_replicas_mixed", "pace_machine", "pace_link",
        "pace_memory", "left_out_slower", "left_out_longer",
    }
)  # fmt: skip


def is_too_small(n_parameters: int) -> bool:
    """Return whether a model is so small that a forecast of its speed cannot be right. 0 parameters mean unknown."""
    return 0 < n_parameters < MIN_FORECAST_PARAMETERS


WIDE = 8  # the number of rows in the measured step from which the cost of a further row is derived
STATE_OPERATIONS = 4  # multiplications per state value and row: decay, add, read


@dataclass(frozen=True, slots=True)
class Experts:
    """The experts of a layer. A router picks some of them for each row."""

    n: float
    used: float
    n_bytes: float  # of all experts together
    weights: float

    def read(self, rows: float) -> float:
        """Return how many different experts this number of rows needs on average, if each row picks independently."""
        return self.n * (1 - float((1 - self.used / self.n) ** rows))


@dataclass(frozen=True, slots=True)
class Effort:
    """The bytes and multiplications of an average layer of a model, and of its output matrix."""

    n_bytes: float  # bytes of the weights that every row needs
    weights: float  # multiplications with these weights per row
    position: float  # multiplications per earlier position of a row, in layers that attend to all positions
    head_bytes: float
    head_weights: float
    experts: Experts | None = None
    window: int = 0
    window_position: float = 0.0  # like `position`, in layers that attend only to a window
    state_values: float = 0.0
    state_bytes: float = 0.0


@dataclass(frozen=True, slots=True)
class MeasuredLayer:
    """A plain layer, and a machine's time for it in steps of up to `batch_rows` rows."""

    speed: Speed
    effort: Effort
    batch_rows: int

    @property
    def byte_s(self) -> float:
        return self.speed.layer_s / self.effort.n_bytes

    def few_s(self, n_bytes: float, weights: float, rows: float) -> float:
        """Return the seconds for a few rows, including the time to read the weights once."""
        further = max(0.0, rows - 1) * weights * self.speed.layer_row_s / self.effort.weights
        return n_bytes * self.byte_s + min(further, self.many_s(weights, rows))

    def many_s(self, weights: float, rows: float) -> float:
        """Return the seconds for rows of a prompt, for which the time to read the weights is negligible."""
        return weights * rows * self.speed.chunk_s / (self.batch_rows * self.effort.weights)


def estimate_speed(measured: MeasuredLayer, effort: Effort) -> Speed:
    """Estimate how fast the machine that was measured computes the layers of another model."""
    speed, like = measured.speed, measured.effort
    single_s = _step_s(measured, effort, 1)
    wide_s = max(single_s, _step_s(measured, effort, WIDE))
    position_s = speed.position_s / like.position
    chunk_position_s = speed.chunk_position_s / like.position
    return Speed(
        layer_s=single_s,
        layer_row_s=(wide_s - single_s) / (WIDE - 1),
        position_s=effort.position * position_s,
        chunk_s=max(single_s, _chunk_s(measured, effort)),
        chunk_position_s=effort.position * chunk_position_s,
        step_s=speed.step_s,
        head_s=speed.head_s * effort.head_bytes / like.head_bytes,
        head_row_s=speed.head_row_s * effort.head_weights / like.head_weights,
        window=effort.window,
        window_position_s=effort.window_position * position_s,
        window_chunk_position_s=effort.window_position * chunk_position_s,
        estimated=True,
        other_load=speed.other_load,
        processor=speed.processor and estimate_speed(replace(measured, speed=speed.processor), effort),
    )


def _step_s(measured: MeasuredLayer, effort: Effort, rows: int) -> float:
    """Return the time of a decode step with this many rows, each from a different sequence."""
    found_s = measured.few_s(effort.n_bytes, effort.weights, rows)
    found_s += rows * 2 * effort.state_bytes * measured.byte_s  # a state is read and written
    return found_s + _experts_s(measured, effort.experts, rows)


def _chunk_s(measured: MeasuredLayer, effort: Effort) -> float:
    """Return the time of a full prefill chunk."""
    rows = measured.batch_rows
    weights = effort.weights + STATE_OPERATIONS * effort.state_values
    return measured.many_s(weights, rows) + _experts_s(measured, effort.experts, rows)


def _experts_s(measured: MeasuredLayer, experts: Experts | None, rows: int) -> float:
    """Return the seconds for the experts that these rows need."""
    if experts is None:
        return 0.0
    read = experts.read(rows)
    each = rows * experts.used / read
    n_bytes, weights = experts.n_bytes / experts.n, experts.weights / experts.n
    return read * measured.few_s(n_bytes, weights, each)


LAYERS = 32  # the default if unknown, as in common models of 7 to 8 billion parameters


KV_BYTES = 4096  # per token and layer in f16: keys and values for 8 heads of 128 values


WIDTH, VOCABULARY = 4096, 128 << 10  # their exact values hardly matter, since they only affect the working memory


KV_VALUE_BYTES = 2


# the fraction of dense weights (attention, shared experts) among those that a token uses in a model with experts
DENSE_SHARE = 1 / 3


EXPERTS = 128  # the default number of experts per layer; it hardly matters, because the fraction that is read is known


QUERIES = 4  # query heads per key-value head, in today's models


def estimated_model(
    name: str,
    architecture: str,
    file_bytes: int,
    n_layers: int | None,
    kv_bytes_per_token: int | None,
    context_length: int,
    *,
    splits: bool,
) -> Model:
    """Return a model that has not been downloaded, based on facts from a catalog.

    All its layers are assumed to have the same size and to make up the whole file. kv_bytes_per_token: for all layers
    together. Everything computed with this model is an estimate.
    """
    # The window imports `Speed` before it draws anything, and app.core.model is slow to import.
    from app.core.model import Cuts, Model, Weights

    layers = n_layers or LAYERS
    family = Reason("whole_family", {"architecture": architecture}) if architecture else None
    kv = -(-kv_bytes_per_token // layers) if kv_bytes_per_token else KV_BYTES
    return Model(
        id="",
        name=name,
        architecture=architecture,
        n_layers=layers,
        width=WIDTH,
        n_vocab=VOCABULARY,
        context_length=context_length,
        weights=Weights(
            layer_bytes=(-(-file_bytes // layers),) * layers, embedding_bytes=0, head_bytes=0, tied=True, shared_bytes=0
        ),
        cuts=Cuts(boundaries=tuple(range(1, layers)) if splits else (), whole_reason=None if splits else family),
        kv_bytes_per_token=(kv,) * layers,
        file_bytes=file_bytes,
        quantization="",
        license="",
        has_template=False,
    )


def estimated_effort(model: Model, parameters: int | None, active: int | None, bytes_per_weight: float) -> Effort:
    """Return the effort of a layer of an estimated model.

    parameters: if unknown, their number is derived from the size of the layers. active: the parameters used per token
    in a mixture-of-experts model. The output matrix is counted as part of the layers.
    """
    n_bytes = sum(model.weights.layer_bytes) / model.n_layers
    weights = parameters / model.n_layers if parameters else n_bytes / bytes_per_weight
    share = active / parameters if active and parameters else 1.0
    position = model.kv_bytes_per_token[0] / KV_VALUE_BYTES * QUERIES
    if share >= 1:
        return Effort(n_bytes, weights, position, 0.0, 0.0)
    dense = share * DENSE_SHARE
    rest = 1 - dense
    experts = Experts(EXPERTS, EXPERTS * (share - dense) / rest, rest * n_bytes, rest * weights)
    return Effort(dense * n_bytes, dense * weights, position, 0.0, 0.0, experts)


LEAST_WEIGHT = 0.15  # minimum weight of a new answer, so that about the last ten answers count
MOST_RATIO = 3.0  # if an answer deviates more than this, something else disturbed it
MOST_FACTOR = 4.0  # a larger error is a fault in the measurements that must not be hidden


@dataclass(frozen=True, slots=True)
class Factor:
    """The ratio of measured to forecast time on one machine or link, and the number of answers that it is based on."""

    value: float = 1.0
    answers: int = 0

    def settled(self, forecast_s: float, measured_s: float) -> Factor:
        """Return the factor after one more answer of this placement. The first answer gets the full weight.

        forecast_s: the forecast, including this factor.
        """
        if forecast_s <= 0 or measured_s <= 0:
            return self
        weight = max(LEAST_WEIGHT, 1 / (self.answers + 1))
        moved = log(self.value) + weight * (log(measured_s) - log(forecast_s))
        return Factor(exp(_within(moved, log(MOST_FACTOR))), self.answers + 1)

    def learned(self, forecast_s: float, measured_s: float, part: float = 1.0) -> Factor:
        """Return the factor after one more answer.

        forecast_s: the forecast, including this factor. part: the share of both times that is due to this machine or
        link, from 0 to 1. Times that are not positive are ignored.
        """
        if forecast_s <= 0 or measured_s <= 0 or part <= 0:
            return self
        off = _within(log(measured_s) - log(forecast_s), log(MOST_RATIO))
        weight = part * max(LEAST_WEIGHT, 1 / (self.answers + 2))
        moved = _within(log(self.value) + weight * off, log(MOST_FACTOR))
        return Factor(exp(moved), self.answers + 1)


def _within(value: float, most: float) -> float:
    return max(-most, min(most, value))
