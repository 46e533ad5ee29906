"""Reads a GGUF that to_gguf.py wrote (f32 or f16) back into a state dict, to train on from the bundled file."""
import argparse

import gguf
import numpy as np
import torch

from to_gguf import BLOCK_TENSORS, WHOLE_TENSORS


def state_name(name):
    """blk.0.attn_q.weight -> blocks.0.q.weight"""
    whole = {theirs: ours for ours, theirs in WHOLE_TENSORS.items()}
    if name in whole:
        return whole[name]
    parts = {theirs: ours for ours, theirs in BLOCK_TENSORS.items()}
    _, layer, part, suffix = name.split(".")
    return f"blocks.{layer}.{parts[part]}.{suffix}"


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--gguf", required=True)
    p.add_argument("--out", required=True, help="model.pt to write")
    args = p.parse_args()
    tensors = gguf.GGUFReader(args.gguf).tensors
    if unread := {t.tensor_type.name for t in tensors} - {"F32", "F16"}:
        raise SystemExit(f"{args.gguf} has tensors of {', '.join(sorted(unread))}; give one of f32 or f16")
    torch.save({state_name(t.name): torch.from_numpy(t.data.astype(np.float32)) for t in tensors}, args.out)


if __name__ == "__main__":
    main()
