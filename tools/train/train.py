"""Trains the recall model in bfloat16, on the CPU or a GPU, for a given wall time. Can be stopped and resumed at any moment.

Writes to --out, once a minute: state.pt (all that resuming needs), model.pt (the averaged weights in half floats, what to
evaluate and export).
"""
import argparse
import os
import random
import signal
import time

import torch
import torch.nn.functional as F

import batches
import evaluate_torch
import model as models
from messages import FIND, RESTATE, ROUTINE, VALUE

SAVE_SECONDS, TELL_SECONDS = 60, 15
MEASURE_STEPS = {"cpu": 1, "cuda": 8}  # to measure is to wait for the device
READ_SHARE, READ_WEIGHT = .1, .3  # of the tokens that are only read, this share is trained, with this weight
EMA_DECAY = .99


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    here = os.path.dirname(os.path.abspath(__file__))
    p.add_argument("--corpus", required=True, help="plain text used as reading matter")
    p.add_argument("--tokenizer", default=os.path.join(here, "tokenizer.json"))
    p.add_argument("--out", required=True, help="folder for state.pt and model.pt; resumes from a state.pt found there")
    p.add_argument("--start", help="weights to start from when there is nothing to resume")
    p.add_argument("--layers", type=int, default=0,
                   help="of the model; a --start of fewer is grown (default: as many as the start, or 4)")
    p.add_argument("--minutes", type=float, required=True, help="wall time of the whole run, resumed parts included")
    p.add_argument("--lengths", default="1024:.12,2048:.2,5120:.5,8192:.18", help="sequence length:share of steps, ...")
    p.add_argument("--muon-rate", type=float, default=.012, help="peak rate of the matrices (.02 from nothing)")
    p.add_argument("--adam-rate", type=float, default=.0018, help="peak rate of the rest (.003 from nothing)")
    p.add_argument("--warmup", type=int, default=40, help="steps")
    p.add_argument("--hold", type=float, default=.2, help="share of the time at the peak, before the fall to zero")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--device", default="cpu", help="cpu or cuda")
    p.add_argument("--batch-tokens", type=int, default=5120, help="of a step (a GPU wants 65536 or more)")
    p.add_argument("--workers", type=int, default=1, help="processes that make dialogues, 300 000 tokens a second each")
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--check-minutes", type=float, default=12, help="between quick checks on held-out facts (0: none)")
    p.add_argument("--eager", action="store_true", help="without torch.compile")
    return p.parse_args()


class Run:
    """Weights, optimisers, average and counters."""

    def __init__(self, args):
        torch.manual_seed(args.seed)
        self.args, self.model = args, self._first_model(args).to(args.device)
        self.step = self.tokens = 0
        self.elapsed = 0.0
        is_matrix = lambda name, p: p.dim() == 2 and "embed" not in name
        matrices = [p for n, p in self.model.named_parameters() if is_matrix(n, p)]
        self.rest = [p for n, p in self.model.named_parameters() if not is_matrix(n, p)]
        self.optimizers = [torch.optim.Muon(matrices, lr=args.muon_rate, momentum=.95, weight_decay=.01),
                           torch.optim.AdamW(self.rest, lr=args.adam_rate, betas=(.9, .95), weight_decay=0)]
        self.average = {k: v.clone() for k, v in self.model.state_dict().items()}
        self.state_path, self.model_path = (os.path.join(args.out, f) for f in ("state.pt", "model.pt"))

    @staticmethod
    def _first_model(args):
        if args.start:
            return models.load(args.start, args.layers)
        return models.Model(models.Shape(layers=args.layers) if args.layers else models.Shape())

    def resume(self):
        if not os.path.exists(self.state_path):
            return
        state = torch.load(self.state_path, weights_only=True, map_location=self.args.device)
        self.model.load_state_dict(state["model"])
        for optimizer, saved in zip(self.optimizers, state["optimizers"]):
            optimizer.load_state_dict(saved)
        self.average, self.elapsed = state["average"], state["elapsed"]
        self.step, self.tokens = state["step"], state["tokens"]

    def save(self):
        state = {"model": self.model.state_dict(), "optimizers": [o.state_dict() for o in self.optimizers],
                 "average": self.average, "step": self.step, "tokens": self.tokens, "elapsed": self.elapsed,
                 "seed": self.args.seed}
        half = {name: value.half().cpu() for name, value in self.average.items()}
        for content, path in ((state, self.state_path), (half, self.model_path)):
            torch.save(content, path + ".new")
            os.replace(path + ".new", path)

    def set_rates(self):
        """Wall time, not steps, is what is known: the rate falls to zero when the time is used up."""
        a, done = self.args, self.elapsed / (self.args.minutes * 60)
        share = min(1, (self.step + 1) / a.warmup) * min(1, max(.01, (1 - done) / (1 - a.hold)))
        for optimizer, peak in zip(self.optimizers, (a.muon_rate, a.adam_rate)):
            for group in optimizer.param_groups:
                group["lr"] = peak * share
        return share

    def update(self):
        torch.nn.utils.clip_grad_norm_(self.rest, 1.0)
        for optimizer in self.optimizers:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        torch._foreach_lerp_(list(self.average.values()), list(self.model.state_dict().values()), 1 - EMA_DECAY)
        self.step += 1


def selection(weights):
    """Indices of the tokens to train, padded to a multiple of 512 (few shapes), and their weights."""
    w = weights[:, 1:].reshape(-1).clone()
    read = w < .15
    keep = ~read | (torch.rand_like(w) < READ_SHARE)
    w[read] = READ_WEIGHT
    index = keep.nonzero()[:, 0]
    padding = -len(index) % 512
    index = torch.cat((index, index.new_zeros(padding)))
    w = w[index]
    if padding:
        w[-padding:] = 0
    return index, w


class Progress:
    """Running means of the losses by weight class and of the share of value tokens that are right."""

    def __init__(self):
        self.means = {}

    def add(self, name, value):
        self.means[name] = self.means.get(name, value) * .97 + value * .03

    def measure(self, losses, logits, targets, weights):
        for name, weight in (("value", VALUE), ("find", FIND), ("restate", RESTATE), ("routine", ROUTINE),
                             ("read", READ_WEIGHT)):
            chosen = weights == weight
            if chosen.any():
                self.add(name, losses[chosen].mean().item())
        chosen = weights == VALUE
        if chosen.any():
            self.add("hit", (logits[chosen].argmax(-1) == targets[chosen]).float().mean().item())

    def line(self):
        return " ".join(f"{k} {v:.4g}" for k, v in self.means.items())


def train_step(run, hidden, batch, progress):
    ids, weights, positions, sight = batch
    index, w = selection(weights)
    targets = ids[:, 1:].reshape(-1)[index]
    with torch.autocast(ids.device.type, dtype=torch.bfloat16):
        h = hidden(ids[:, :-1], positions, sight).reshape(-1, run.model.shape.width)[index]
        logits = run.model.logits(h)
    losses = F.cross_entropy(logits, targets, reduction="none")
    ((losses * w).sum() / w.sum()).backward()
    if run.step % MEASURE_STEPS[ids.device.type] == 0:
        progress.measure(losses.detach(), logits.detach(), targets, w)
    run.update()
    run.tokens += ids.numel()


def compiled_hidden(model, args):
    """On a GPU the parts, which compile once for all lengths; on the CPU the whole, once for each length."""
    if args.eager:
        return model.hidden
    if args.device == "cpu":
        return torch.compile(model.hidden, dynamic=False)
    model.compile_parts()
    return model.hidden


def main():
    args = arguments()
    torch.set_num_threads(args.threads)
    os.makedirs(args.out, exist_ok=True)
    run = Run(args)
    run.resume()
    random.seed(args.seed + run.step)
    lengths = [(int(n), float(share)) for n, share in (x.split(":") for x in args.lengths.split(","))]
    source = batches.Batches(lengths, args.corpus, args.tokenizer, args.seed + 100_003 * run.step, args.batch_tokens,
                             args.workers)
    hidden = compiled_hidden(run.model, args)
    stop = []
    signal.signal(signal.SIGTERM, lambda *_: stop.append(True))  # saves after the step, then ends
    progress, checked, first_tokens = Progress(), run.elapsed, run.tokens
    batch = source.next(args.device)
    begin = last = saved = told = time.time()
    while run.elapsed < args.minutes * 60 and not stop:
        share = run.set_rates()
        train_step(run, hidden, batch, progress)
        batch = source.next(args.device)
        now = time.time()
        run.elapsed, last = run.elapsed + now - last, now
        if now - told > TELL_SECONDS:
            told = now
            print(f"step {run.step} rate {share:.2f} {progress.line()} tokens {run.tokens / 1e6:.2f}M "
                  f"{(run.tokens - first_tokens) / (now - begin):.0f}/s minute {run.elapsed / 60:.1f}", flush=True)
        if now - saved > SAVE_SECONDS:
            saved = now
            run.save()
        if args.check_minutes and run.elapsed - checked > args.check_minutes * 60:
            checked = run.elapsed
            evaluate_torch.quick_check(run.average, args.corpus, args.tokenizer)
    run.save()
    print("stopped" if stop else "done", flush=True)


if __name__ == "__main__":
    main()
