#!/usr/bin/env python3
"""Writes tests/goldens/llm/tokenizers/: vocabularies learned from the texts below, as gguf files (NAME.gguf) and as Hugging Face
has them (NAME/tokenizer.json), and in expected.json what sentencepiece and tokenizers make of texts: those below, and
those of the published vocabularies, which stay where they are (ids alone).

    python3 tests/llm/make_tokenizers.py tests/goldens/llm/tokenizers DATA     (needs sentencepiece, protobuf, tokenizers)
"""
import io
import json
import os
import struct
import sys
import tempfile

import sentencepiece
from sentencepiece import sentencepiece_model_pb2
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

LEARN = ["the dog and the cat sat on the mat, and the dog ran", "once upon a time there was a time of dogs", "123 456 don't we'll I'm",
         "uncommon words are cut into wordpieces, and pieces into letters", "Grüße aus Köln, señor! déjà vu", "the quick brown fox's tail"] * 6
TEXTS = ["Once upon a time, there was a dog.", " two  blanks   and\n\nlines\tand tabs ", "Ünïcode \u4f60\u597d \U0001f600\U0001f600!", "", " ", "   ",
         "unbelievable wordpieces don't, I'll", "ﬁne Ａ\uff22… x", "the dog\u0000and\u200bthe\u00adcat", "\ud55c\uae00 \uac00\uac01 İstanbul ẞ ΑΣ",
         "xyz\u0301 e\u0301 caf\u00e9 \u1ea4", "a" * 101 + " " + "dog" * 40, "price: $5.00 (10%) — “quoted” ¿qué?", "\u3042\u30a2\u4e00\u9fa5\U00020000",
         "<x> </y> [CLS] [MASK] <pad>", "\u0130\u0131 \u01c5 \u1e9e \u2126 \ufb03", "dogs\u00a0and\u3000cats\u2028x", "a.b,c;d-e_f/g"]
RULES = {"\t": " ", "\n": " ", "\r": " ", "\u00a0": " ", "\u3000": " ", "\u2028": " ", "\u200b": " ", "\ufb01": "fi", "\ufb03": "ffi", "\uff21": "A", "\uff22": "B",
         "\u2026": "...", "e\u0301": "\u00e9", "\u0130": "i\u0307", "\u00ad": ""}


def learned(**more):
    with tempfile.TemporaryDirectory() as folder:
        rules = os.path.join(folder, "rules.tsv")
        points = lambda s: " ".join("%X" % ord(c) for c in s)
        open(rules, "w").write("".join(f"{points(a)}\t{points(b)}\n" for a, b in RULES.items()))
        to = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(LEARN), model_writer=to, model_type="unigram", normalization_rule_tsv=rules,
                                                 hard_vocab_limit=False, character_coverage=1.0, minloglevel=2, **more)
    return to.getvalue()


def text(s):
    s = s if isinstance(s, bytes) else s.encode()
    return struct.pack("<Q", len(s)) + s


def gguf(path, pairs):
    head = b"GGUF" + struct.pack("<IQQ", 3, 0, len(pairs))
    for key, v in pairs.items():
        head += text(key)
        if isinstance(v, bool):
            head += struct.pack("<I?", 7, v)
        elif isinstance(v, int):
            head += struct.pack("<II", 4, v)
        elif isinstance(v, str):
            head += struct.pack("<I", 8) + text(v)
        elif isinstance(v, bytes):
            head += struct.pack("<IIQ", 9, 0, len(v)) + v
        elif isinstance(v[0], str):
            head += struct.pack("<IIQ", 9, 8, len(v)) + b"".join(map(text, v))
        elif isinstance(v[0], float):
            head += struct.pack(f"<IIQ{len(v)}f", 9, 6, len(v), *v)
        else:
            head += struct.pack(f"<IIQ{len(v)}i", 9, 5, len(v), *v)
    open(path, "wb").write(head)


def unigram(name, folder, texts, **more):
    data = learned(**more)
    p = sentencepiece.SentencePieceProcessor(model_proto=data)
    m = sentencepiece_model_pb2.ModelProto.FromString(data)
    spec = m.normalizer_spec
    pairs = {"tokenizer.ggml.model": "t5", "tokenizer.ggml.tokens": [x.piece for x in m.pieces], "tokenizer.ggml.scores": [x.score for x in m.pieces],
             "tokenizer.ggml.token_type": [x.type for x in m.pieces], "tokenizer.ggml.precompiled_charsmap": spec.precompiled_charsmap,
             "tokenizer.ggml.add_space_prefix": spec.add_dummy_prefix, "tokenizer.ggml.remove_extra_whitespaces": spec.remove_extra_whitespaces,
             "tokenizer.ggml.unknown_token_id": p.unk_id(), "tokenizer.ggml.eos_token_id": p.eos_id(), "tokenizer.ggml.add_eos_token": False}
    gguf(os.path.join(folder, name + ".gguf"), pairs)
    said = {name: [p.encode(s) for s in texts]}
    if spec.remove_extra_whitespaces:
        t = Tokenizer(models.Unigram([(x.piece, x.score) for x in m.pieces], p.unk_id(), byte_fallback=m.trainer_spec.byte_fallback))
        t.normalizer = normalizers.Sequence([normalizers.Precompiled(spec.precompiled_charsmap), normalizers.Replace(Regex(" {2,}"), " ")])
        t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
        t.add_special_tokens(["<unk>", "<s>", "</s>"])
        t.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", p.eos_id())])
        said[name + "/"] = saved(t, folder, name, texts, {"eos_token": "</s>", "unk_token": "<unk>"})
    return said


def saved(t, folder, name, texts, about):
    os.makedirs(os.path.join(folder, name), exist_ok=True)
    t.encode_special_tokens = True
    ids = [t.encode(s, add_special_tokens=True).ids for s in texts]
    t.encode_special_tokens = False
    t.save(os.path.join(folder, name, "tokenizer.json"))
    json.dump(about, open(os.path.join(folder, name, "tokenizer_config.json"), "w"), indent=1)
    return ids


def words(name, folder, texts, lowercase):
    t = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    t.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    t.train_from_iterator(LEARN, trainers.WordPieceTrainer(vocab_size=160, special_tokens=special, show_progress=False))
    t.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    ids = saved(t, folder, name, texts, {"cls_token": "[CLS]", "sep_token": "[SEP]", "unk_token": "[UNK]", "pad_token": "[PAD]"})
    vocabulary = sorted(t.get_vocab().items(), key=lambda x: x[1])
    begun = [k if k in special else k[2:] if k.startswith("##") else "\u2581" + k for k, _ in vocabulary]
    pairs = {"tokenizer.ggml.model": "bert", "tokenizer.ggml.tokens": begun, "tokenizer.ggml.token_type": [3 if k in special else 1 for k in begun],
             "tokenizer.ggml.unknown_token_id": 1, "tokenizer.ggml.cls_token_id": 2, "tokenizer.ggml.seperator_token_id": 3}
    if not lowercase:
        pairs |= {"tokenizer.ggml.lowercase": False, "tokenizer.ggml.strip_accents": False}
    gguf(os.path.join(folder, name + ".gguf"), pairs)
    return {name: ids, name + "/": ids}


def main():
    folder, data = sys.argv[1:3]
    os.makedirs(folder, exist_ok=True)
    published = open(os.path.join(data, "gguf-vocab/ggml-vocab-gpt-2.gguf.inp"), newline="").read().split("\n__ggml_vocab_test__\n")
    texts = TEXTS + published
    said = unigram("unigram", folder, texts, vocab_size=150)
    said |= unigram("unigram-bytes", folder, texts, vocab_size=420, byte_fallback=True)
    said |= unigram("unigram-blanks", folder, texts, vocab_size=150, remove_extra_whitespaces=False, add_dummy_prefix=False)
    said |= words("words", folder, texts, True) | words("words-cased", folder, texts, False)
    json.dump({"texts": TEXTS, "ids": said}, open(os.path.join(folder, "expected.json"), "w"))


main()
