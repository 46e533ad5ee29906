"""Greedy text from a GGUF through libllama's C API, as the llama_cpp package binds it."""
import ctypes

import llama_cpp as llama

BATCH = 2048
SILENT = llama.llama_log_callback(lambda level, text, user: None)


class Greedy:
    """One model, one context, one sequence; nothing is kept from one prompt to the next. Not thread safe."""

    def __init__(self, path, n_ctx, n_threads):
        llama.llama_log_set(SILENT, ctypes.c_void_p(0))
        llama.llama_backend_init()
        self.model = llama.llama_model_load_from_file(path.encode(), llama.llama_model_default_params())
        if not self.model:
            raise SystemExit(f"libllama cannot load {path}")
        self.vocab = llama.llama_model_get_vocab(self.model)
        self.n_vocab = llama.llama_vocab_n_tokens(self.vocab)
        params = llama.llama_context_default_params()
        params.n_ctx, params.n_batch, params.n_ubatch = n_ctx, BATCH, 512
        params.n_threads = params.n_threads_batch = n_threads
        self.context = llama.llama_init_from_model(self.model, params)
        if not self.context:
            raise SystemExit(f"libllama cannot make a context of {n_ctx} tokens")

    def tokens(self, text):
        """Token ids; <|im_start|> and the like are read as special tokens."""
        data = text.encode()
        room = (llama.llama_token * (len(data) + 8))()
        n = llama.llama_tokenize(self.vocab, data, len(data), room, len(room), False, True)
        return list(room[:n])

    def _decode(self, ids):
        array = (llama.llama_token * len(ids))(*ids)
        status = llama.llama_decode(self.context, llama.llama_batch_get_one(array, len(ids)))
        if status != 0:
            raise SystemExit(f"llama_decode failed with {status} for {len(ids)} tokens")

    def _likeliest(self):
        logits = llama.llama_get_logits_ith(self.context, -1)
        values = logits[:self.n_vocab]
        return values.index(max(values))

    def _piece(self, token):
        room = ctypes.create_string_buffer(64)
        n = llama.llama_token_to_piece(self.vocab, token, room, len(room), 0, False)
        return room.raw[:n]

    def reply(self, prompt, limit):
        """(text up to the end of the turn, tokens in the prompt); `limit` tokens at most are generated."""
        llama.llama_memory_clear(llama.llama_get_memory(self.context), True)
        ids = self.tokens(prompt)
        for i in range(0, len(ids), BATCH):
            self._decode(ids[i:i + BATCH])
        out = b""
        for _ in range(limit):
            token = self._likeliest()
            if llama.llama_vocab_is_eog(self.vocab, token):
                break
            out += self._piece(token)
            self._decode([token])
        return out.decode(errors="replace"), len(ids)
