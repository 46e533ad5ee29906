"""The policies that there are, and what they take."""
from dataclasses import dataclass

from ._library import ask


@dataclass(frozen=True)
class Parameter:
    name: str
    summary: str
    default: float
    least: float
    most: float
    whole: bool
    odd: bool


@dataclass(frozen=True)
class Policy:
    name: str
    spec: str  # the name and what is not at its default: "snapkv:window=16"
    summary: str
    source: str
    scope: str  # heads that choose together: "session", "layer" or "head"
    sharing: str  # of a budget among scopes: "even", "pyramid", "across_heads" or "across_layers"
    floor: float  # across heads and layers: the part of an even share that each scope has for certain
    asks: dict  # what it looks at: totals, window (queries), last, shares, keys, focus, reread, ranges, value_means, output_lengths,
    #             expected (over so many positions to come); and sinks, held for it
    parameters: tuple  # of Parameter


def _policy(told):
    parameters = tuple(Parameter(**parameter) for parameter in told["parameters"])
    return Policy(**{**told, "parameters": parameters})


def list_policies():
    """Every policy of the registry, with its defaults."""
    return [_policy(told) for told in ask({"ask": "list"})]


def show_policy(spec):
    """One, as --kv-eviction takes it: a name, and parameters behind a colon."""
    return _policy(ask({"ask": "show", "policy": spec}))
