"""Share of planted facts that the GGUF recalls, by distance: greedy text through libllama, nothing evicted.

A case counts only if the whole reply is right, letter for letter. Keys, values and half of the phrasings are held out
from training. Families of cases (see cases.py): core (what the bar is set on), bench (the kinds of facts that recall
benchmarks plant), several (two or three questions in one message), row (the last of several questions in a row).
Prints a table and writes JSON: one record for each family and distance, with the misses by kind and some of them in
full. Needs the llama_cpp package on PYTHONPATH (README.md).
"""
import argparse
import collections
import hashlib
import json
import multiprocessing
import os

from tokenizers import Tokenizer

import cases
from batches import encode
from dialogues import load_passages
from llama_text import Greedy

SHOWN = 12  # misses written in full
CHUNK = 20  # cases of one task; a chunk has a seed of its own


class Worker:
    """What one process needs; made once in each."""
    model = tokenizer = passages = None

    @classmethod
    def start(cls, args, n_ctx):
        cls.model = Greedy(args.model, n_ctx, args.threads)
        cls.tokenizer, cls.passages = Tokenizer.from_file(args.tokenizer), load_passages(args.corpus)

    @classmethod
    def run(cls, task):
        """The cases of one chunk: (family, distance, [(kind, wanted, said, prompt tokens, values present)])."""
        family, distance, chunk, n, seed = task
        source = cases.source(1000 * chunk + 7 + distance + 1000000 * seed, cls.passages)
        count = lambda pieces: len(encode(cls.tokenizer, pieces)[0])
        out = []
        for _ in range(n):
            case = cases.make(source, count, distance, family)
            prompt = "".join(text for text, _ in case.dialogue)
            said, used = cls.model.reply(prompt, limit=count(case.reply) + 24)
            present = all(fact.value in said for fact in case.facts)
            out.append((case.relations(), case.reply_text(), said, used, present))
        return family, distance, out


def record(family, distance, outcomes):
    """One entry of the report."""
    missed = [o for o in outcomes if o[1] != o[2]]
    n = len(outcomes)
    kinds = collections.Counter(kind for kind, *_ in missed)
    return {"family": family, "distance": distance, "n": n, "recalled": n - len(missed),
            "share": round(1 - len(missed) / n, 4), "value_present": sum(o[4] for o in outcomes),
            "mean_prompt_tokens": round(sum(o[3] for o in outcomes) / n), "missed_by_kind": dict(kinds.most_common()),
            "misses": [{"wanted": wanted, "said": said} for _, wanted, said, *_ in missed[:SHOWN]]}


def chunks(steps, seed):
    """Tasks of at most CHUNK cases, in the order of the plan."""
    return [(family, distance, i, min(CHUNK, n - i * CHUNK), seed)
            for family, distance, n in steps for i in range(-(-n // CHUNK))]


def plan(text):
    """"core:64:200,core:128:50" -> [("core", 64, 200), ...]"""
    return [(family, int(distance), int(n)) for family, distance, n in (part.split(":") for part in text.split(","))]


def digest(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--corpus", required=True)
    p.add_argument("--model", required=True, help="GGUF")
    p.add_argument("--tokenizer", default=os.path.join(here, "tokenizer.json"))
    p.add_argument("--plan", default=",".join(f"core:{d}:200" for d in (64, 256, 512, 1024, 2048, 4096)),
                   help="family:distance:n, ... (default: %(default)s)")
    p.add_argument("--seed", type=int, default=0, help="another seed gives other cases")
    p.add_argument("--json", help="file to write")
    p.add_argument("--processes", type=int, default=2)
    p.add_argument("--threads", type=int, default=1, help="of each process")
    args = p.parse_args()
    steps = plan(args.plan)
    n_ctx = max(distance for _, distance, _ in steps) + 2048
    report, outcomes = {"model": os.path.basename(args.model), "sha256": digest(args.model), "seed": args.seed, "results": []}, {}
    print(f"{'family':8} {'distance':>8} {'n':>5} {'recalled':>8} {'share':>7}  misses", flush=True)
    context = multiprocessing.get_context("spawn")
    with context.Pool(args.processes, Worker.start, (args, n_ctx)) as pool:
        for family, distance, out in pool.imap(Worker.run, chunks(steps, args.seed)):
            key = family, distance
            outcomes.setdefault(key, []).extend(out)
            if len(outcomes[key]) < next(n for f, d, n in steps if (f, d) == key):
                continue
            r = record(family, distance, outcomes[key])
            report["results"].append(r)
            misses = " ".join(f"{kind}:{n}" for kind, n in list(r["missed_by_kind"].items())[:6])
            print(f"{family:8} {distance:8} {r['n']:5} {r['recalled']:8} {r['share']:7.1%}  {misses}", flush=True)
            if args.json:
                with open(args.json, "w") as file:
                    json.dump(report, file, indent=1)


if __name__ == "__main__":
    main()
