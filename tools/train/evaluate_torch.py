"""The quick check in torch: is every token of the wanted reply the likeliest, given the reply so far?

That is what greedy decoding produces, without the GGUF's rounding; evaluate.py measures the GGUF itself.
"""
import argparse
import collections
import os

import torch
from tokenizers import Tokenizer

import cases
import model as models
from batches import encode
from dialogues import load_passages


def recalls(model, tokenizer, case):
    """(right, the likeliest token at every step, as text)"""
    prompt, wanted = encode(tokenizer, case.dialogue)[0], encode(tokenizer, case.reply)[0]
    ids = torch.tensor([prompt + wanted[:-1]])
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        hidden = model.hidden(ids, torch.arange(ids.shape[1]))
        likeliest = model.logits(hidden[0, len(prompt) - 1:]).argmax(-1).tolist()
    return likeliest == wanted, tokenizer.decode(likeliest, skip_special_tokens=False)


def check(model, passages, tokenizer, distance, n, family="core", show=0):
    """Share recalled of n cases at one distance; prints one line and up to `show` misses."""
    source, missed, shown = cases.source(7 + distance, passages), collections.Counter(), []
    count = lambda pieces: len(encode(tokenizer, pieces)[0])
    for _ in range(n):
        case = cases.make(source, count, distance, family)
        right, said = recalls(model, tokenizer, case)
        if not right:
            missed[case.relations()] += 1
            shown.append(f"    wanted {case.reply_text()!r}\n    said   {said!r}")
    recalled = n - sum(missed.values())
    print(f"  {family} {distance}: {recalled}/{n} {dict(missed.most_common(6))}", *shown[:show], sep="\n", flush=True)
    return recalled / n


def quick_check(weights, corpus, tokenizer_path, n=24):
    """A few held-out cases with a state dict."""
    model, tokenizer = models.from_weights(weights), Tokenizer.from_file(tokenizer_path)
    passages = load_passages(corpus)
    for distance, family in ((1024, "core"), (4096, "core"), (1024, "bench"), (512, "first"), (512, "several")):
        check(model, passages, tokenizer, distance, n, family)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--corpus", required=True)
    p.add_argument("--model", required=True, help="model.pt")
    p.add_argument("--tokenizer", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "tokenizer.json"))
    p.add_argument("--n", type=int, default=50)
    p.add_argument("--distances", default="64,256,512,1024,2048,4096")
    p.add_argument("--family", default="core", choices=cases.FAMILIES)
    p.add_argument("--show", type=int, default=3, help="misses to print for each distance")
    p.add_argument("--threads", type=int, default=1)
    args = p.parse_args()
    torch.set_num_threads(args.threads)
    passages, tokenizer = load_passages(args.corpus), Tokenizer.from_file(args.tokenizer)
    model = models.load(args.model)
    for distance in map(int, args.distances.split(",")):
        check(model, passages, tokenizer, distance, args.n, args.family, args.show)


if __name__ == "__main__":
    main()
