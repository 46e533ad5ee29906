"""Writes the trained model as a GGUF of architecture qwen3, with its tokenizer and a ChatML template."""
import argparse
import json
import os

import gguf
import numpy as np
import torch

from model import Shape, layers_of

CONTEXT_LENGTH = 16384
TYPES = {"f32": gguf.LlamaFileType.ALL_F32, "f16": gguf.LlamaFileType.MOSTLY_F16,
         "q8_0": gguf.LlamaFileType.MOSTLY_Q8_0}
CHAT_TEMPLATE = ("{% for message in messages %}"
                 "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}"
                 "{% endfor %}"
                 "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}")
BLOCK_TENSORS = {"q": "attn_q", "k": "attn_k", "v": "attn_v", "o": "attn_output", "gate": "ffn_gate", "up": "ffn_up",
                 "down": "ffn_down", "attn_norm": "attn_norm", "ffn_norm": "ffn_norm", "q_norm": "attn_q_norm",
                 "k_norm": "attn_k_norm"}
WHOLE_TENSORS = {"embed.weight": "token_embd.weight", "norm.weight": "output_norm.weight"}


def tensor_name(name):
    """blocks.0.q.weight -> blk.0.attn_q.weight"""
    if name in WHOLE_TENSORS:
        return WHOLE_TENSORS[name]
    _, layer, part, suffix = name.split(".")
    return f"blk.{layer}.{BLOCK_TENSORS[part]}.{suffix}"


def add_shape(writer, shape):
    writer.add_context_length(CONTEXT_LENGTH)
    writer.add_embedding_length(shape.width)
    writer.add_feed_forward_length(shape.hidden)
    writer.add_block_count(shape.layers)
    writer.add_head_count(shape.heads)
    writer.add_head_count_kv(shape.kv_heads)
    writer.add_key_length(shape.head)
    writer.add_value_length(shape.head)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_freq_base(shape.theta)


def add_tokenizer(writer, path, shape):
    with open(path) as file:
        content = json.load(file)
    tokens = [token for token, _ in sorted(content["model"]["vocab"].items(), key=lambda item: item[1])]
    special = {added["content"]: added["id"] for added in content["added_tokens"]}
    tokens += [t for t, i in sorted(special.items(), key=lambda item: item[1]) if i >= len(tokens)]
    if len(tokens) != shape.vocab:
        raise SystemExit(f"{path} has {len(tokens)} entries, the model {shape.vocab}")
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list(tokens)
    writer.add_token_types([gguf.TokenType.CONTROL if t in special else gguf.TokenType.NORMAL for t in tokens])
    writer.add_token_merges([m if isinstance(m, str) else " ".join(m) for m in content["model"]["merges"]])
    writer.add_bos_token_id(special["<|endoftext|>"])
    writer.add_eos_token_id(special["<|im_end|>"])
    writer.add_pad_token_id(special["<|endoftext|>"])
    writer.add_add_bos_token(False)
    writer.add_chat_template(CHAT_TEMPLATE)


def add_tensors(writer, weights, kind):
    for name, tensor in weights.items():
        x = tensor.float().numpy()
        if x.ndim == 1 or kind == "f32":
            writer.add_tensor(tensor_name(name), x)
        elif kind == "f16":
            writer.add_tensor(tensor_name(name), x.astype(np.float16))
        else:
            q8_0 = gguf.GGMLQuantizationType.Q8_0
            writer.add_tensor(tensor_name(name), gguf.quants.quantize(x, q8_0), raw_dtype=q8_0)


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--model", required=True, help="model.pt from train.py")
    p.add_argument("--tokenizer", default=os.path.join(here, "tokenizer.json"))
    p.add_argument("--out", required=True, help="GGUF to write")
    p.add_argument("--type", choices=sorted(TYPES), default="f16")
    args = p.parse_args()
    weights = torch.load(args.model, weights_only=True)
    shape = Shape(layers=layers_of(weights))
    writer = gguf.GGUFWriter(args.out, "qwen3")
    writer.add_name("ebb-recall")
    writer.add_license("apache-2.0")
    writer.add_file_type(TYPES[args.type])
    add_shape(writer, shape)
    add_tokenizer(writer, args.tokenizer, shape)
    add_tensors(writer, weights, args.type)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    main()
