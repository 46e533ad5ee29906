"""A Qwen3-shaped decoder (QK-norm, NEOX rotary positions, SwiGLU, grouped-query attention, tied embedding).

With the shape below, 3.8 million parameters, and .69 million more for each further layer. Its tensors map one to one onto
llama.cpp's qwen3 (see to_gguf.py).
"""
import math
from dataclasses import dataclass, replace

import torch
from torch import nn
import torch.nn.functional as F

WRITES_RESIDUAL = ("o.weight", "down.weight")  # the matrices by which a layer adds to what passes through


@dataclass
class Shape:
    vocab: int = 4096
    width: int = 256
    layers: int = 4
    heads: int = 4
    kv_heads: int = 2
    head: int = 64
    hidden: int = 640
    theta: float = 1.6e7  # far above what the distances need: at 1e6, recall at 4096 tokens was 75 %


class Norm(nn.Module):
    """RMS norm, computed in float32."""

    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        y = x.float()
        return (y * torch.rsqrt(y.square().mean(-1, keepdim=True) + 1e-6) * self.weight).to(x.dtype)


def rotate(x, cos, sin):
    """x: [tokens, heads, head]; cos, sin: [tokens, 1, head / 2]. NEOX order: halves, not pairs."""
    a, b = x.chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


def mask_of(sight):
    """What is added to scores, [rows, 1, tokens, tokens], of sight.py's far, need and rank: [3, rows, tokens]."""
    far, need, rank = sight[:, :, None]
    places = torch.arange(sight.shape[-1], device=sight.device, dtype=torch.int32)
    back = places[:, None] - places
    seen = (back < far.transpose(1, 2)) | (rank >= need.transpose(1, 2))
    return torch.where(seen & (back >= 0), 0., -torch.inf)[:, None].bfloat16()


class Block(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.shape = s = shape
        linear = lambda rows, columns: nn.Linear(rows, columns, bias=False)
        self.attn_norm, self.ffn_norm = Norm(s.width), Norm(s.width)
        self.q_norm, self.k_norm = Norm(s.head), Norm(s.head)
        self.q, self.k = linear(s.width, s.heads * s.head), linear(s.width, s.kv_heads * s.head)
        self.v, self.o = linear(s.width, s.kv_heads * s.head), linear(s.heads * s.head, s.width)
        self.gate, self.up, self.down = linear(s.width, s.hidden), linear(s.width, s.hidden), linear(s.hidden, s.width)

    def before(self, x, cos, sin):
        """What attention reads, each [tokens, heads, head]: keys and values as often as there are query heads."""
        s, h = self.shape, self.attn_norm(x)
        split = lambda y, heads: y.view(-1, heads, s.head)
        q = rotate(self.q_norm(split(self.q(h), s.heads)), cos, sin)
        k = rotate(self.k_norm(split(self.k(h), s.kv_heads)), cos, sin)
        v = split(self.v(h), s.kv_heads)
        group = s.heads // s.kv_heads
        return q, k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)

    def after(self, x, y):
        x = x + self.o(y)
        h = self.ffn_norm(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))

    def forward(self, x, cos, sin, rows, mask):
        """x: [rows * tokens, width]. Only attention knows rows, so that what is compiled of the rest fits any length."""
        shape = (rows, -1, self.shape.heads, self.shape.head)
        q, k, v = (part.view(shape).transpose(1, 2) for part in self.before(x, cos, sin))
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=mask is None)
        return self.after(x, y.transpose(1, 2).reshape(len(x), -1))


class Model(nn.Module):
    def __init__(self, shape=Shape()):
        super().__init__()
        self.shape = shape
        self.embed = nn.Embedding(shape.vocab, shape.width)
        self.blocks = nn.ModuleList(Block(shape) for _ in range(shape.layers))
        self.norm = Norm(shape.width)
        for name, p in self.named_parameters():
            if p.dim() == 2:
                nn.init.normal_(p, 0, .02 / (math.sqrt(2 * shape.layers) if name.endswith(WRITES_RESIDUAL) else 1))

    def hidden(self, ids, positions, sight=None):
        """ids: [rows, tokens]; positions: as ids, or [tokens] of all rows; sight: see mask_of. Returns [rows, tokens, width]."""
        s = self.shape
        frequency = s.theta ** (-torch.arange(0, s.head, 2, device=ids.device).float() / s.head)
        angle = positions.expand(ids.shape).reshape(-1, 1, 1).float() * frequency
        cos, sin = angle.cos().bfloat16(), angle.sin().bfloat16()
        x = self.embed(ids.reshape(-1)).bfloat16()
        mask = None if sight is None else mask_of(sight)
        for block in self.blocks:
            x = block(x, cos, sin, ids.shape[0], mask)
        return self.norm(x).view(*ids.shape, s.width)

    def compile_parts(self):
        """Compiles what is around attention, once for all layers and lengths; attention has kernels of its own."""
        Block.before, Block.after = torch.compile(Block.before), torch.compile(Block.after)

    def logits(self, hidden):
        return F.linear(hidden, self.embed.weight.bfloat16()).float()


def layers_of(weights):
    """The number of layers that a state dict has."""
    return 1 + max(int(name.split(".")[1]) for name in weights if name.startswith("blocks."))


def grown(weights, layers):
    """The weights of a deeper model that computes the same.

    Between the layers, evenly, come copies of the layer before whose output is zero: they change nothing until training
    gives them something to say, and what they look at is of use already.
    """
    have = layers_of(weights)
    out = {name: value for name, value in weights.items() if not name.startswith("blocks.")}
    before = -1
    for layer in range(layers):
        of = layer * have // layers
        for name, value in weights.items():
            if name.startswith(f"blocks.{of}."):
                part = name.split(".", 2)[2]
                silent = of == before and part in WRITES_RESIDUAL
                out[f"blocks.{layer}.{part}"] = torch.zeros_like(value) if silent else value.clone()
        before = of
    return out


def from_weights(weights, layers=0, shape=Shape()):
    """A model with these weights; `layers`: grown to so many if it has fewer."""
    if layers > layers_of(weights):
        weights = grown(weights, layers)
    model = Model(replace(shape, layers=layers_of(weights)))
    model.load_state_dict(weights)
    return model


def load(path, layers=0):
    """A model from a state dict saved by train.py."""
    return from_weights(torch.load(path, weights_only=True), layers)
