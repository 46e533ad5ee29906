"""ebb's cache policies without its engine: what leaves a KV cache, from plain arrays.

    list_policies, show_policy          what there is, and its parameters
    Recording, Evidence, overlap        recorded attention through any policy, or through a function of one's own
    Areas, replay                       the areas scheme of OpenVINO GenAI, step by step or from a file
    rescue_blocks, find_shifts, rotation_table        KVCrush and rotation by themselves

Arrays are nested sequences of numbers, numpy arrays or torch tensors, of the shapes that each function states; numpy is not
needed. What has no meaning raises InvalidArgument, a ValueError, in words that say what would. README.md has an example.
"""
from ._areas import Areas, LayerEviction, RotationTable, Shift, find_shifts, replay, rescue_blocks, rotation_table
from ._library import Error, InvalidArgument, NotFound, OutOfBudget
from ._policies import Parameter, Policy, list_policies, show_policy
from ._recording import HOLDS, SOURCES, Choice, Comparison, Evidence, Recording, Scope, overlap

__all__ = [
    "Areas", "Choice", "Comparison", "Error", "Evidence", "HOLDS", "InvalidArgument", "LayerEviction", "NotFound", "OutOfBudget",
    "Parameter", "Policy", "Recording", "RotationTable", "SOURCES", "Scope", "Shift", "find_shifts", "list_policies", "overlap",
    "replay", "rescue_blocks", "rotation_table", "show_policy",
]
