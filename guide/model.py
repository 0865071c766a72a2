"""A small Llama model: RMSNorm, rotary positions, grouped-query attention, SwiGLU, and tied embeddings."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional


@dataclass(frozen=True, slots=True)
class Shape:
    """The sizes of the model. Widths are multiples of 32, as Q8_0 requires."""

    vocab_size: int = 2048
    n_layers: int = 8
    hidden_size: int = 256
    intermediate_size: int = 512
    n_heads: int = 4
    n_kv_heads: int = 2
    head_dim: int = 64
    context_length: int = 1024
    rope_theta: float = 10_000.0
    rms_norm_eps: float = 1e-5


def rotation(shape: Shape) -> tuple[Tensor, Tensor]:
    """Return the cosines and sines of all positions, [context_length, head_dim / 2]. Source: arXiv:2104.09864."""
    steps = torch.arange(0, shape.head_dim, 2, dtype=torch.float32) / shape.head_dim
    angles = torch.outer(torch.arange(shape.context_length, dtype=torch.float32), shape.rope_theta**-steps)
    return angles.cos(), angles.sin()


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotate adjacent pairs of x, [..., n_tokens, head_dim], by their positions, as GGUF does for Llama."""
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack((even * cos - odd * sin, even * sin + odd * cos), dim=-1).flatten(-2)


class Norm(nn.Module):
    """Root-mean-square normalization. Source: arXiv:1910.07467."""

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        """x: [..., width]."""
        return functional.rms_norm(x, self.weight.shape, self.weight, self.eps)


class Attention(nn.Module):
    """Causal attention in which groups of query heads share a key/value head."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.q = nn.Linear(shape.hidden_size, shape.n_heads * shape.head_dim, bias=False)
        self.k = nn.Linear(shape.hidden_size, shape.n_kv_heads * shape.head_dim, bias=False)
        self.v = nn.Linear(shape.hidden_size, shape.n_kv_heads * shape.head_dim, bias=False)
        self.o = nn.Linear(shape.n_heads * shape.head_dim, shape.hidden_size, bias=False)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        """x: [batch, n_tokens, hidden_size]."""
        batch, n_tokens, _ = x.shape
        q, k, v = (
            part(x).view(batch, n_tokens, -1, self.shape.head_dim).transpose(1, 2) for part in (self.q, self.k, self.v)
        )
        group = self.shape.n_heads // self.shape.n_kv_heads
        k, v = rotate(k, cos, sin).repeat_interleave(group, 1), v.repeat_interleave(group, 1)
        q = rotate(q, cos, sin)
        with torch.autocast("cpu", enabled=False):  # its backward pass is slower in bf16
            mixed = functional.scaled_dot_product_attention(q, k, v.to(q.dtype), is_causal=True)
        out: Tensor = self.o(mixed.transpose(1, 2).reshape(batch, n_tokens, -1))
        return out


class FeedForward(nn.Module):
    """A SwiGLU feed-forward network. Source: arXiv:2002.05202."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.gate = nn.Linear(shape.hidden_size, shape.intermediate_size, bias=False)
        self.up = nn.Linear(shape.hidden_size, shape.intermediate_size, bias=False)
        self.down = nn.Linear(shape.intermediate_size, shape.hidden_size, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """x: [..., hidden_size]."""
        out: Tensor = self.down(functional.silu(self.gate(x)) * self.up(x))
        return out


class Layer(nn.Module):
    """A transformer layer: attention, then feed-forward.

    The input of each is normalized, and its output is added to the input.
    """

    def __init__(self, shape: Shape, dropout: float) -> None:
        super().__init__()
        self.attention_norm = Norm(shape.hidden_size, shape.rms_norm_eps)
        self.attention = Attention(shape)
        self.ffn_norm = Norm(shape.hidden_size, shape.rms_norm_eps)
        self.ffn = FeedForward(shape)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        """x: [batch, n_tokens, hidden_size]."""
        x = x + self.dropout(self.attention(self.attention_norm(x), cos, sin))
        out: Tensor = x + self.dropout(self.ffn(self.ffn_norm(x)))
        return out


class Llama(nn.Module):
    """The complete model, from tokens to logits."""

    cos: Tensor
    sin: Tensor

    def __init__(self, shape: Shape, dropout: float = 0.0) -> None:
        super().__init__()
        self.shape = shape
        self.embedding = nn.Embedding(shape.vocab_size, shape.hidden_size)
        self.layers = nn.ModuleList(Layer(shape, dropout) for _ in range(shape.n_layers))
        self.norm = Norm(shape.hidden_size, shape.rms_norm_eps)
        self.dropout = nn.Dropout(dropout)
        cos, sin = rotation(shape)
        self.register_buffer("cos", cos, persistent=False)
        self.register_buffer("sin", sin, persistent=False)
        self.apply(self.start)

    def start(self, module: nn.Module) -> None:
        """Initialize small random weights.

        Matrices that write to the residual stream are scaled down with the number of layers.
        """
        if isinstance(module, nn.Linear | nn.Embedding):
            nn.init.normal_(module.weight, std=0.04)
        if isinstance(module, Attention):
            nn.init.normal_(module.o.weight, std=0.04 / (2 * self.shape.n_layers) ** 0.5)
        if isinstance(module, FeedForward):
            nn.init.normal_(module.down.weight, std=0.04 / (2 * self.shape.n_layers) ** 0.5)

    def hidden(self, tokens: Tensor) -> Tensor:
        """Return the normalized hidden states, [batch, n_tokens, hidden_size]. tokens: [batch, n_tokens]."""
        n_tokens = tokens.shape[1]
        x = self.dropout(self.embedding(tokens))
        for layer in self.layers:
            x = layer(x, self.cos[:n_tokens], self.sin[:n_tokens])
        out: Tensor = self.norm(x)
        return out

    def head(self, states: Tensor) -> Tensor:
        """Return the logits for hidden states, [..., vocab_size]."""
        return functional.linear(states, self.embedding.weight)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the logits, [batch, n_tokens, vocab_size]. tokens: [batch, n_tokens]."""
        return self.head(self.hidden(tokens))
