"""Averages two models that share their start: keeps most of what each has learned."""
import argparse

import torch


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("first", help="model.pt")
    p.add_argument("second", help="model.pt")
    p.add_argument("--share", type=float, default=.5, help="of the second model")
    p.add_argument("--out", required=True)
    args = p.parse_args()
    first, second = (torch.load(path, weights_only=True) for path in (args.first, args.second))
    torch.save({name: first[name].lerp(second[name], args.share) for name in first}, args.out)


if __name__ == "__main__":
    main()
