"""llm.py: language models of gguf files and of Hugging Face's folders: Llm("model.gguf").generate("Once upon a time").

libtinygrad_llm is loaded when this module is imported, not before."""
import ctypes

from . import abi
from .calls import lib
from .context import StateError
from .nn.datasets import Batches
from .pictures import Prompt, Sight, picture
from .tensor import Tensor

abi.LIBRARIES["tinygrad_llm"]
DRAFT_BATCH = 16  # rows of a step where tokens are guessed, as `tg chat` has it


class Llm:
    """A model with its cache. Options as TgLlmOptions has them: context, block, sequences, batch, cache_type, activations.
    mmproj: the file, or folder, of what reads pictures for it; tiles: how many are shown beside a large picture, at most (as
    the model's processor does; 0: none). draft: "lookup", or a smaller model (its file, or an Llm with the same context), which
    guesses tokens; draft_tokens: at once, at most (7).
    About it: name, architecture, parameters, layers, width, vocabulary, context."""

    def __init__(self, path, mmproj=None, tiles=None, draft=None, draft_tokens=None, **options):
        if draft is not None:
            options.setdefault("batch", DRAFT_BATCH)
        self._handle = lib.tg_llm_open(path, **options)
        about = lib.tg_llm_about(self)
        for field, kind in about._fields_:
            if field != "size":
                v = getattr(about, field)
                setattr(self, field, v.decode(errors="replace") if isinstance(v, bytes) else v)
        self._tokenizer = lib.tg_llm_tokenizer(self)
        self._sight = Sight(self, mmproj, tiles) if mmproj is not None else None
        self._draft = self._drafted(draft, {} if draft_tokens is None else {"most": draft_tokens}) if draft is not None else None

    def _drafted(self, draft, options):
        if draft == "lookup":
            return lib.tg_draft_lookup(self._handle, **options)  # of the handle: it belongs to this model, and must not keep it
        if not isinstance(draft, Llm):
            draft = Llm(draft, context=self.context, batch=4)
        return lib.tg_draft_model(self._handle, draft, **options)

    def __repr__(self):
        return f"Llm({self.name or self.architecture!r}, {self.parameters} parameters, {self.layers} layers, context {self.context})"

    # ---- tokens
    def _words(self):
        if self._tokenizer is None:
            raise StateError("this model's file has no tokenizer")
        return self._tokenizer

    def tokenize(self, text, special=False, ends=True, inside=False):
        """The ids of a text. special: control tokens are looked for; ends: BOS and EOS where the model wants them; inside:
        the text goes on after another."""
        ids = lib.tg_tokenize(self._words(), text, special=special, ends=ends, inside=inside)
        return ids

    def special(self, role):
        """The text of the token that has this role, "BOS" or "EOS"; None: there is none."""
        i = lib.tg_token_special(self._words(), abi.ENUMS["TgTokenRole"]["TG_TOKEN_" + role])
        return lib.tg_token_text(self._words(), i).decode(errors="replace") if i >= 0 else None

    def first_ids(self, text, special=False):
        """The ids of a text that goes on: with BOS where the model wants it and the text does not have it, and without EOS."""
        bos = self.special("BOS")
        has = bool(special and bos and text.startswith(bos))
        ids = self.tokenize(text, special=special, ends=not has)
        role = lambda name: lib.tg_token_special(self._words(), abi.ENUMS["TgTokenRole"]["TG_TOKEN_" + name])
        if ids and not has and ids[-1] == role("EOS") and len(ids) > 1:
            ids.pop()
        return ids

    def detokenize(self, ids, special=False):
        return "".join(self.pieces(ids, special))

    def pieces(self, ids, special=False):
        """The text of ids, piece by piece; none ends within a character."""
        d = lib.tg_detokenizer_new(self._words(), special=special)
        for i in ids:
            piece = lib.tg_detokenizer_put(d, i).decode(errors="replace")
            if piece:
                yield piece
        rest = lib.tg_detokenizer_end(d).decode(errors="replace")
        if rest:
            yield rest

    # ---- generation
    def logits(self):
        """One number for each token of the vocabulary, after the last token of the cache; None: there are none."""
        p = lib.tg_llm_logits(self)
        return p[:self.vocabulary] if p else None

    def ids(self):
        """The tokens in the cache."""
        p, n = lib.tg_llm_ids(self)
        return p[:n] if n else []

    def eval(self, ids):
        """Tokens after those in the cache; logits() are then those of the next one."""
        lib.tg_llm_eval(self, list(ids))

    def reset(self, length=0):
        """Only the first tokens stay in the cache."""
        lib.tg_llm_rewind(self, length)

    def see(self, x):
        """A picture after the tokens in the cache, with the text that belongs around it: a path, the bytes of a file, an array of
        bytes (height, width, 3), or an image of Pillow's. logits() are then those of the next token."""
        sight, p = self._eyes(), picture(x)
        for i in range(sight.views(p) + 1):
            ids = self.tokenize(sight.text(p, i), special=True, ends=False, inside=True)
            if ids:
                self.eval(ids)
            if i < sight.views(p):
                lib.tg_llm_eval_picture(self, sight, *p.size, i)

    def _eyes(self):
        if self._sight is None:
            raise StateError("this model reads no pictures: Llm(path, mmproj=..) names the file of what reads them")
        return self._sight

    def _prompt(self, prompt):
        """The cache has these ids and no more; what it has of them already, but for the last, is not computed again. A view of a
        picture is kept as a whole or not at all."""
        have, ids = self.ids(), prompt.ids
        same = next((i for i, (a, b) in enumerate(zip(have, ids)) if a != b), min(len(have), len(ids)))
        same = min(same, len(ids) - 1)
        tokens = self._sight.tokens if self._sight else 0
        same = next((start for start, _, _ in prompt.views if start < same < start + tokens), same)
        self.reset(same)
        for start, p, view in prompt.views:
            if start < same:
                continue
            if start > same:
                self.eval(ids[same:start])
            lib.tg_llm_eval_picture(self, self._sight, *p.size, view)
            same = start + tokens
        if same < len(ids):
            self.eval(ids[same:])

    def generate_ids(self, ids, max_tokens=None, grammar=None, json_schema=None, **sampling):
        """Ids that follow these, until the model ends its reply, max_tokens, or the context is full. sampling: as
        TgSamplerOptions has it: temperature (0.8), top_k, top_p, min_p, seed, repeat_penalty .."""
        prompt = ids if isinstance(ids, Prompt) else Prompt(ids)
        sampler = lib.tg_sampler_new(self.vocabulary, **sampling)
        rules = lib.tg_grammar_new(self._words(), grammar) if grammar else lib.tg_grammar_json(self._words(), json_schema) if json_schema else None
        ids = list(prompt.ids)
        for i in ids:
            lib.tg_sampler_accept(sampler, i)
        self._prompt(prompt)
        steps = Steps(self)
        try:
            yield from self._tokens(ids, max_tokens, sampler, rules, steps)
        finally:
            steps.end(ids)

    def _tokens(self, ids, max_tokens, sampler, rules, steps):
        made, logits = 0, lib.tg_llm_logits(self)
        while max_tokens is None or made < max_tokens:
            if rules is not None:
                logits = (ctypes.c_float * self.vocabulary)(*logits[:self.vocabulary])
                lib.tg_grammar_mask(rules, logits)
            token = lib.tg_sampler_pick(sampler, logits)
            if self._tokenizer is not None and lib.tg_token_ends(self._tokenizer, token):
                return
            lib.tg_sampler_accept(sampler, token)
            if rules is not None:
                lib.tg_grammar_accept(rules, token)
            made += 1
            ids.append(token)
            yield token
            if len(ids) >= self.context:
                return
            if max_tokens is None or made < max_tokens:
                logits = steps.next(ids, None if max_tokens is None else max_tokens - made)

    def generate(self, prompt, max_tokens=None, stop=(), special=False, pictures=(), **options):
        """Pieces of text that follow the prompt. stop: texts before which it ends. pictures: stand where the prompt has the model's
        own marks (<image>, <start_of_image>), if there is one for each, or before it; what they may be, see() says."""
        if pictures or self._sight:
            pictures = [picture(p) for p in pictures]
            return self._pieces(self._eyes().prompt(self, self._eyes().placed(prompt, pictures), pictures, special), max_tokens, stop, options)
        return self._pieces(Prompt(self.first_ids(prompt, special)), max_tokens, stop, options)

    def _pieces(self, prompt, max_tokens, stop, options):
        stop = [stop] if isinstance(stop, str) else list(stop)
        if not prompt.ids:
            raise ValueError("generate: the prompt has no tokens")
        held = ""
        d = lib.tg_detokenizer_new(self._words(), inside=True)
        for token in self.generate_ids(prompt, max_tokens, **options):
            held += lib.tg_detokenizer_put(d, token).decode(errors="replace")
            at = min((i for i in (held.find(s) for s in stop) if i >= 0), default=-1)
            if at >= 0:
                if at:
                    yield held[:at]
                return
            keep = max((n for s in stop for n in range(len(s)) if held.endswith(s[:n])), default=0)  # what may begin a stop
            if len(held) > keep:
                yield held[:len(held) - keep]
                held = held[len(held) - keep:]
        held += lib.tg_detokenizer_end(d).decode(errors="replace")
        if held:
            yield held

    def _chat_template(self):
        if not self.chat_template:
            raise StateError("this model has no chat template; generate() takes a text")
        if not hasattr(self, "_template"):
            self._template = lib.tg_template_new(self.chat_template)
        return self._template

    def prompt_of(self, messages):
        """The text of a conversation, up to where the reply begins, by the model's chat template."""
        rows = [(m["role"], m["content"]) for m in messages]
        return lib.tg_template_chat(self._chat_template(), self._tokenizer, rows).decode()

    def chat(self, messages, max_tokens=None, stop=(), **options):
        """Pieces of the reply to [{"role": "user", "content": ".."}, ..], or to a text of the user's. A content may be a list of texts
        and pictures; a path is then a pathlib.Path, or {"type": "image", "image": path}."""
        messages = [{"role": "user", "content": messages}] if isinstance(messages, str) else messages
        if self._sight is None and all(isinstance(m["content"], str) for m in messages):
            return self._pieces(Prompt(self.first_ids(self.prompt_of(messages), True)), max_tokens, stop, options)
        text, pictures = self._eyes().chat(self, self._chat_template(), messages)
        return self._pieces(self._eyes().prompt(self, text, pictures, True), max_tokens, stop, options)

    def embed(self, text):
        """A text, or ids, as a direction: `width` numbers of length 1."""
        ids = self.tokenize(text) if isinstance(text, str) else list(text)
        out = (ctypes.c_float * self.width)()
        lib.tg_llm_embed(self, ids, out)
        return list(out)

    def rank(self, query, documents):
        """How well each document answers the query, as a reranker says it: larger is better."""
        asked, score, scores = query.encode(), (ctypes.c_float * 1)(), []
        for text in documents:
            document = text.encode()
            lib.tg_llm_rank(self, asked, len(asked), document, len(document), score)
            scores.append(score[0])
        return scores

    # ---- learning
    def loss(self, ids, targets):
        """The mean cross entropy of whole texts, a tensor; targets -1 count for nothing."""
        return lib.tg_llm_loss(self, _tensor(ids), _tensor(targets))

    def texts(self, path, length=None, fit=False, **options):
        """Batches of (ids, targets) of a file: an object of JSON a line ({"text"}, {"prompt", "completion"} or {"messages"}), or
        plain text. length: tokens of an item; fit: fewer where no text is as long. options: as Batches has them."""
        chosen = {} if length is None else {"length": length}
        return Batches(lib.tg_llm_dataset(self, path, fit=fit, **chosen), 2, **options)

    def unfreeze(self):
        """The weights can be learned from now on; they are f32, in memory of their own."""
        lib.tg_llm_unfreeze(self)

    def weights(self):
        """The tensors that an optimiser is made of, after unfreeze()."""
        return list(lib.tg_llm_parameters(self))

    def merge(self, path):
        """The model's file with what its adapters add, and what was learned, put into its weights. Gives how many weights
        changed, and the largest relative error of one of them."""
        merged = abi.struct("TgLlmMerged")()
        lib.tg_llm_merge(self, path, merged)
        return merged.weights, merged.error


class Steps:
    """The steps of a reply. Where tokens are guessed, a step computes the guesses as well; a guess is accepted only if it is the
    token that was drawn, so the text does not depend on them."""

    def __init__(self, model):
        self.model, self.draft = model, model._draft
        self.guesses, self.row, self.right = [], 0, 0

    def end(self, ids):
        """Guesses that were not asked for leave the cache."""
        if self.guesses:
            self.model.reset(min(len(ids), len(self.model.ids()) - len(self.guesses)))

    def next(self, ids, left):
        """The logits after ids, of which the last is new. left: how many more tokens are wanted."""
        m = self.model
        if self.draft is None:
            m.eval(ids[-1:])
            return lib.tg_llm_logits(m)
        if self.guesses and self.guesses[0] == ids[-1]:
            del self.guesses[0]
            self.right += 1
            self.row += 1
            return lib.tg_llm_row_logits(m, self.row)
        if self.right or self.guesses:
            lib.tg_draft_told(self.draft, self.right + bool(self.guesses), self.right)
        m.reset(len(ids) - 1)  # without the guesses that were wrong
        most = min(m.batch - 1, m.context - len(ids), m.batch if left is None else left - 1)
        self.guesses = lib.tg_draft_guess(self.draft, ids, 0)[:max(most, 0)] if most > 0 else []
        self.row = self.right = 0
        lib.tg_llm_eval_many(m, [0] * (1 + len(self.guesses)), [ids[-1], *self.guesses])
        return lib.tg_llm_row_logits(m, 0)


class Lora:
    """A low-rank adapter of a model. Lora(model, modules="q,v", rank=8, alpha=16, dropout=0) is new and changes nothing until
    it is trained; Lora(model, "folder") is one that this package, `tg train lora` or peft wrote. It ends with its model."""

    def __init__(self, model, path=None, scale=1.0, **options):
        if path is not None and options:
            raise TypeError(f"Lora(): {', '.join(options)}: a file says what it is")
        self.model = model
        self._handle = lib.tg_lora_load(model, path, scale) if path is not None else lib.tg_lora_new(model, **options)

    def parameters(self):
        """What an optimiser is made of."""
        return list(lib.tg_module_parameters(lib.tg_lora_module, self))

    def save(self, path, base=None):
        """A safetensors file, or a folder as peft has it. base: the name of the model that it belongs to."""
        lib.tg_lora_save(self, path, base)


class Learner:
    """Steps of learning in little memory: a layer is computed again when its gradients are. optimizer: of lora.parameters(), or
    of model.weights() after model.unfreeze()."""

    def __init__(self, model, optimizer, lora=None):
        self.parts = model, optimizer, lora  # all of them outlive it
        self._handle = lib.tg_llm_learner(model, lora, optimizer)

    def step(self, ids, targets):
        """Learns from a batch of texts; gives the loss as it was before."""
        return lib.tg_llm_learn(self, _tensor(ids), _tensor(targets))


def _tensor(x):
    return x if isinstance(x, Tensor) else Tensor(x)
