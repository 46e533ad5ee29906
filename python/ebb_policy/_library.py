"""The shared library: found, called, and its refusals as exceptions. Nothing here is for users but the exceptions."""
import ctypes
import json
import os
import pathlib
from array import array

_NAME = "libebb_policy_abi.so"


class Error(Exception):
    """What ebb refuses or cannot do, in its words."""


class InvalidArgument(Error, ValueError):
    """It has no meaning; the message says what would."""


class NotFound(Error, LookupError):
    """The named thing does not exist; the message says what does."""


class OutOfBudget(Error):
    """It cannot be done within memory, or within the blocks that a recording allows."""


# 1 + ebb::api::Code (include/ebb/result.h)
_ERRORS = {1: InvalidArgument, 2: NotFound, 5: OutOfBudget}


class _Numbers(ctypes.Structure):
    _fields_ = [("values", ctypes.POINTER(ctypes.c_double)), ("n", ctypes.c_size_t)]


class _Reply(ctypes.Structure):
    _fields_ = [("code", ctypes.c_int32), ("n_bytes", ctypes.c_size_t), ("text", ctypes.POINTER(ctypes.c_char))]


def _load():
    given = os.environ.get("EBB_POLICY_LIBRARY")
    path = pathlib.Path(given) if given else pathlib.Path(__file__).with_name(_NAME)
    if not path.exists():
        raise ImportError(f"{path} is missing: build it (script/test, or ninja -C build/release ebb_python) and use the "
                          "package in build/release/python, or name the library in EBB_POLICY_LIBRARY")
    library = ctypes.CDLL(str(path))
    reply, handle, text = ctypes.POINTER(_Reply), ctypes.c_void_p, [ctypes.c_char_p, ctypes.c_size_t]
    arrays = [ctypes.POINTER(_Numbers), ctypes.c_size_t]
    for name, result, arguments in [
        ("ebb_reply_free", None, [reply]),
        ("ebb_policy_ask", reply, text + arrays),
        ("ebb_policy_replay", reply, text),
        ("ebb_areas_make", reply, text + [ctypes.POINTER(handle)]),
        ("ebb_areas_copy", reply, [handle, ctypes.POINTER(handle)]),
        ("ebb_areas_act", reply, [handle] + text + arrays),
        ("ebb_areas_free", None, [handle]),
    ]:
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


_library = _load()


def _take(reply):
    """The reply's value, or its refusal as an exception; the reply itself is given back."""
    if not reply:
        raise MemoryError("no memory for an answer")
    try:
        code = reply.contents.code
        text = ctypes.string_at(reply.contents.text, reply.contents.n_bytes).decode("utf-8", "replace")
    finally:
        _library.ebb_reply_free(reply)
    if code != 0:
        raise _ERRORS.get(code, Error)(text)
    return json.loads(text)


def _text(value):
    """JSON has no infinities and no NaN; what holds them is refused here, in the words of a user's mistake."""
    try:
        data = json.dumps(value, allow_nan=False).encode()
    except (TypeError, ValueError) as error:
        raise InvalidArgument(f"what is asked cannot be written as JSON: {error}") from None
    return data, len(data)


def _arrays(question, arrays):
    """The question with its arrays' names, and the arrays as the library takes them. They are alive while the result is."""
    if arrays:
        question = {**question, "arrays": list(arrays)}
    numbers = (_Numbers * max(1, len(arrays)))()
    held = []
    for one, values in zip(numbers, arrays.values()):
        held.append((ctypes.c_double * len(values)).from_buffer(values) if len(values) else None)
        if len(values):
            one.values = ctypes.cast(held[-1], ctypes.POINTER(ctypes.c_double))
        one.n = len(values)
    return question, numbers, held


def ask(question, arrays=None):
    """A question of docs/policy_abi.md; `arrays` are array('d') by name."""
    arrays = arrays or {}
    question, numbers, held = _arrays(question, arrays)
    reply = _library.ebb_policy_ask(*_text(question), numbers, len(arrays))
    del held
    return _take(reply)


def replay(data):
    return _take(_library.ebb_policy_replay(data, len(data)))


class Handle:
    """An ebb_areas, given back when nobody holds this any more."""

    def __init__(self, make):
        self._pointer = ctypes.c_void_p()
        _take(make(ctypes.byref(self._pointer)))

    @classmethod
    def of(cls, recording):
        text = _text(recording)
        return cls(lambda pointer: _library.ebb_areas_make(*text, pointer))

    def copy(self):
        return Handle(lambda pointer: _library.ebb_areas_copy(self._pointer, pointer))

    def act(self, act, arrays=None):
        arrays = arrays or {}
        act, numbers, held = _arrays(act, arrays)
        reply = _library.ebb_areas_act(self._pointer, *_text(act), numbers, len(arrays))
        del held
        return _take(reply)

    def __del__(self):
        pointer = getattr(self, "_pointer", None)
        if pointer:
            _library.ebb_areas_free(pointer)
            self._pointer = ctypes.c_void_p()


def flatten(name, value, shape):
    """`value` as a flat array('d') of the stated shape, a tuple of lengths; None is any. Nested sequences of numbers, numpy
    arrays and torch tensors are taken."""
    if hasattr(value, "detach"):
        value = value.detach().cpu().numpy()
    if hasattr(value, "astype"):
        value = value.astype("float64", order="C")
        got, flat = tuple(value.shape), array("d", value.tobytes())
    else:
        flat = array("d")
        got = _add(name, value, len(shape), flat)
    fits = len(got) == len(shape) and all(want is None or want == n for want, n in zip(shape, got))
    if not fits:
        wanted = ", ".join("any" if want is None else str(want) for want in shape)
        raise InvalidArgument(f"{name} has the shape {list(got)}, and [{wanted}] is expected")
    return flat, got


def _add(name, value, depth, flat):
    """Adds the numbers of a nested sequence; its shape."""
    if depth == 0:
        if isinstance(value, bool) or not isinstance(value, (int, float)) and not hasattr(value, "__float__"):
            raise InvalidArgument(f"{name} holds {type(value).__name__} where a number is expected")
        try:
            flat.append(float(value))
        except (OverflowError, TypeError, ValueError):
            raise InvalidArgument(f"{name} holds what is no number") from None
        return ()
    if isinstance(value, (str, bytes)) or not hasattr(value, "__len__"):
        raise InvalidArgument(f"{name} holds {type(value).__name__} where a sequence is expected")
    shapes = {_add(name, one, depth - 1, flat) for one in value}
    if len(shapes) > 1:
        raise InvalidArgument(f"{name} has rows of several lengths")
    return (len(value), *(shapes.pop() if shapes else (0,) * (depth - 1)))
