"""Trains the byte-level BPE of 4096 entries (qwen2's pre-tokeniser) on the corpus and on generated dialogues."""
import argparse

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

from dialogues import Dialogues, load_passages

SIZE = 4096
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
QWEN2 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
         r"|\s+(?!\S)|\s+")


def untrained():
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(QWEN2), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def texts(passages, n_dialogues=1500):
    for i in range(0, len(passages), 5000):
        yield passages[i:i + 5000]
    source = Dialogues(5, passages)
    for _ in range(n_dialogues):
        text = "".join(piece for piece, _ in source.chat(3000))
        yield text.replace("<|im_start|>", "").replace("<|im_end|>", "")


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--corpus", required=True)
    p.add_argument("--out", required=True, help="tokenizer.json to write")
    args = p.parse_args()
    tokenizer = untrained()
    trainer = trainers.BpeTrainer(vocab_size=SIZE - len(SPECIAL), show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator(texts(load_passages(args.corpus)), trainer)
    tokenizer.add_special_tokens(SPECIAL)
    tokenizer.save(args.out)
    print(f"{args.out}: {tokenizer.get_vocab_size()} entries")


if __name__ == "__main__":
    main()
