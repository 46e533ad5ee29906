"""ChatML messages as lists of pieces (text, weight); the weight says how much the loss cares for the piece's tokens."""

# FIND: what has to be looked for first, of a question in front of a document or of the next one of several, and the end.
READ, ROUTINE, RESTATE, VALUE, FIND = .1, .5, 2, 4, 4.5


def message(role, *pieces):
    return [(f"<|im_start|>{role}\n", READ), *pieces, ("<|im_end|>\n", READ)]


def turn(user, *reply, role="user"):
    """What `role` says and the assistant's reply, whose pieces carry their own weights."""
    return [(f"<|im_start|>{role}\n", READ), (user, READ), ("<|im_end|>\n<|im_start|>assistant\n", READ), *reply,
            ("<|im_end|>", FIND if len(reply) > 1 else ROUTINE), ("\n", READ)]


def size_of(pieces):
    return sum(len(text) for text, _ in pieces)
