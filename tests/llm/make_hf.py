#!/usr/bin/env python3
"""Writes tests/goldens/llm/hf/NAME/: tiny models with random weights as Hugging Face has them, saved by transformers,
and in expected.json what transformers and tokenizers say: texts with their ids, and logits after some ids.

    python3 tests/llm/make_hf.py tests/goldens/llm/hf [NAME..]     (needs torch, transformers, tokenizers)
"""
import json
import os
import sys

import torch
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from safetensors.torch import load_file, save_file
import transformers
from transformers import (BertConfig, BertForSequenceClassification, BertModel, NomicBertConfig, NomicBertModel, XLMRobertaConfig, XLMRobertaForSequenceClassification, XLMRobertaModel,
                          Cohere2Config, Cohere2ForCausalLM, CohereConfig, CohereForCausalLM, Gemma2Config, Gemma2ForCausalLM, Gemma3ForCausalLM, Gemma3TextConfig, GemmaConfig, GemmaForCausalLM, Glm4Config,
                          Glm4ForCausalLM, GPT2Config, GPT2LMHeadModel, GptOssConfig, GptOssForCausalLM, GraniteConfig, GraniteForCausalLM, LlamaConfig, LlamaForCausalLM,
                          MistralConfig, MistralForCausalLM, MixtralConfig, MixtralForCausalLM, NemotronConfig, NemotronForCausalLM, Olmo2Config, Olmo2ForCausalLM, Phi3Config, Phi3ForCausalLM,
                          PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM, Qwen2MoeConfig, Qwen2MoeForCausalLM, Qwen3Config,
                          Qwen3ForCausalLM, Qwen3MoeConfig, Qwen3MoeForCausalLM, SmolLM3Config, SmolLM3ForCausalLM, Starcoder2Config, Starcoder2ForCausalLM)

TEXTS = ["Once upon a time, there was a dog.", " two  blanks\n\nand 12345 don't", "Ünïcode \u4f60\u597d \U0001f600!", "<|end|> is no end", ""]
LEARN = ["the dog and the cat sat on the mat, and the dog ran", "once upon a time there was a time of dogs", "123 456 don't we'll I'm"] * 3
DEEPSEEK3 = [r"\p{N}{1,3}", "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
             "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"]
LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
WORD = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
GPT4O = WORD + r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
QWEN = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")


def byte_level(split=None, digits=False, ignore_merges=False):
    t = Tokenizer(models.BPE(ignore_merges=ignore_merges))
    last = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=not split)
    first = [pre_tokenizers.Split(Regex(s), "isolated") for s in ([split] if isinstance(split, str) else split)] if split else [pre_tokenizers.Digits(individual_digits=True)] if digits else []
    t.pre_tokenizer = pre_tokenizers.Sequence(first + [last]) if first else last
    t.decoder = decoders.ByteLevel()
    t.train_from_iterator(LEARN, trainers.BpeTrainer(vocab_size=300, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    t.add_special_tokens(["<|begin|>", "<|end|>"])
    return t


def sentence_piece():
    t = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>", fuse_unk=True))
    t.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    trainer = trainers.BpeTrainer(vocab_size=340, special_tokens=["<unk>", "<|begin|>", "<|end|>"] + ["<0x%02X>" % i for i in range(256)], show_progress=False)
    t.train_from_iterator([" ".join(LEARN[i:i + 3]).replace(" ", "\u2581") for i in range(3)], trainer)
    data = json.loads(t.to_str())  # only unknown, begin and end are control tokens
    data["added_tokens"] = data["added_tokens"][:3]
    return Tokenizer.from_str(json.dumps(data))


def begins(t):
    t.post_processor = processors.TemplateProcessing(single="<|begin|> $A", special_tokens=[("<|begin|>", t.token_to_id("<|begin|>"))])
    return t


def words():
    t = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    t.normalizer, t.pre_tokenizer, t.decoder = normalizers.BertNormalizer(lowercase=True), pre_tokenizers.BertPreTokenizer(), decoders.WordPiece()
    t.train_from_iterator(LEARN, trainers.WordPieceTrainer(vocab_size=120, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]"], show_progress=False))
    t.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return t, dict(pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]")


def unigrams():
    t = Tokenizer(models.Unigram())
    t.normalizer = normalizers.Replace(Regex(" {2,}"), " ")
    t.pre_tokenizer, t.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
    t.train_from_iterator(LEARN, trainers.UnigramTrainer(vocab_size=120, special_tokens=["<s>", "<pad>", "</s>", "<unk>"], unk_token="<unk>", show_progress=False))
    t.post_processor = processors.TemplateProcessing(single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)])
    return t, dict(pad_token="<pad>", unk_token="<unk>", bos_token="<s>", eos_token="</s>", cls_token="<s>", sep_token="</s>")


SMALL = dict(hidden_size=16, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, intermediate_size=20, max_position_embeddings=64)
ROPE3 = dict(rope_type="llama3", rope_theta=10000.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=16)
YARN = dict(rope_type="yarn", rope_theta=1000.0, factor=4.0, original_max_position_embeddings=16, beta_fast=32.0, beta_slow=1.0, truncate=False)
OSS = dict(num_local_experts=4, num_experts_per_tok=2, head_dim=8, sliding_window=4, rope_parameters=YARN)
MODELS = {
    "llama": (LlamaForCausalLM, LlamaConfig, dict(head_dim=6, rope_parameters=ROPE3, tie_word_embeddings=True), lambda: begins(byte_level(LLAMA3, ignore_merges=True))),
    "mistral": (MistralForCausalLM, MistralConfig, dict(sliding_window=4, head_dim=6), lambda: begins(sentence_piece())),
    "qwen2": (Qwen2ForCausalLM, Qwen2Config, {}, lambda: byte_level(QWEN)),
    "qwen3": (Qwen3ForCausalLM, Qwen3Config, dict(head_dim=6, rope_parameters=dict(rope_type="linear", factor=2.0, rope_theta=5000.0)), lambda: byte_level(digits=True)),
    "phi3": (Phi3ForCausalLM, Phi3Config, dict(pad_token_id=0), lambda: byte_level()),
    "mixtral": (MixtralForCausalLM, MixtralConfig, dict(num_local_experts=4, num_experts_per_tok=2), lambda: begins(sentence_piece())),
    "qwen2moe": (Qwen2MoeForCausalLM, Qwen2MoeConfig, dict(num_experts=4, num_experts_per_tok=2, moe_intermediate_size=8,
                 shared_expert_intermediate_size=12), lambda: byte_level(QWEN)),
    "qwen3moe": (Qwen3MoeForCausalLM, Qwen3MoeConfig, dict(num_experts=12, num_experts_per_tok=3, moe_intermediate_size=8, norm_topk_prob=True,
                 head_dim=6), lambda: byte_level(QWEN)),
    "gpt-oss": (GptOssForCausalLM, GptOssConfig, OSS, lambda: byte_level(GPT4O)),
    "gpt-oss-mxfp4": (GptOssForCausalLM, GptOssConfig, dict(**OSS, hidden_size=32, intermediate_size=64), lambda: byte_level(GPT4O)),
    "glm4": (Glm4ForCausalLM, Glm4Config, dict(head_dim=8, attention_bias=True, pad_token_id=0, rms_norm_eps=1e-5), lambda: byte_level(LLAMA3)),
    "gpt2": (GPT2LMHeadModel, GPT2Config, dict(n_embd=16, n_layer=2, n_head=4, n_positions=32), lambda: byte_level()),
    "gemma": (GemmaForCausalLM, GemmaConfig, dict(head_dim=6), lambda: begins(byte_level())),
    "smollm3": (SmolLM3ForCausalLM, SmolLM3Config, dict(num_hidden_layers=4, pad_token_id=0), lambda: byte_level(LLAMA3, ignore_merges=True)),
    "granite": (GraniteForCausalLM, GraniteConfig, dict(embedding_multiplier=3.0, residual_multiplier=0.5, attention_multiplier=0.3, logits_scaling=2.0), lambda: byte_level()),
    "olmo2": (Olmo2ForCausalLM, Olmo2Config, dict(pad_token_id=0), lambda: byte_level(LLAMA3)),
    "cohere": (CohereForCausalLM, CohereConfig, dict(pad_token_id=0, logit_scale=0.6), lambda: byte_level(digits=True)),
    "cohere2": (Cohere2ForCausalLM, Cohere2Config, dict(pad_token_id=0, logit_scale=0.4, num_hidden_layers=4, sliding_window=4), lambda: byte_level(digits=True)),
    "starcoder2": (Starcoder2ForCausalLM, Starcoder2Config, dict(sliding_window=4), lambda: byte_level(digits=True)),
    "nemotron": (NemotronForCausalLM, NemotronConfig, dict(head_dim=8, partial_rotary_factor=0.5), lambda: byte_level()),
    "gemma2": (Gemma2ForCausalLM, Gemma2Config, dict(head_dim=6, query_pre_attn_scalar=9, sliding_window=4), lambda: begins(byte_level())),
    "gemma3": (Gemma3ForCausalLM, Gemma3TextConfig, dict(head_dim=6, query_pre_attn_scalar=6, sliding_window=4, num_hidden_layers=7), lambda: begins(byte_level())),
}


C = lambda name: (getattr(transformers, name + "ForCausalLM"), getattr(transformers, name + "Config"))
LATENT = dict(kv_lora_rank=8, qk_nope_head_dim=6, qk_rope_head_dim=4, v_head_dim=6, n_routed_experts=8, num_experts_per_tok=3, moe_intermediate_size=8,
              first_k_dense_replace=1, num_key_value_heads=4, rms_norm_eps=1e-5)
MLA_YARN = dict(rope_type="yarn", rope_theta=1000.0, factor=4.0, original_max_position_embeddings=16, beta_fast=32.0, beta_slow=1.0, mscale=0.707, mscale_all_dim=0.707)
NO_FFN = ("falcon", "falcon-40b", "bloom")
MODELS.update({
    "stablelm": (*C("StableLm"), dict(use_qkv_bias=True, rope_parameters=dict(rope_type="default", rope_theta=10000.0, partial_rotary_factor=0.5)), lambda: byte_level(LLAMA3)),
    "stablelm-12b": (*C("StableLm"), dict(qk_layernorm=True, use_parallel_residual=True, rope_parameters=dict(rope_type="default", rope_theta=10000.0, partial_rotary_factor=0.5)), lambda: byte_level(LLAMA3)),
    "phi": (*C("Phi"), dict(num_key_value_heads=4), lambda: byte_level()),
    "gpt-neox": (*C("GPTNeoX"), dict(rope_parameters=dict(rope_type="default", rope_theta=10000.0, partial_rotary_factor=0.5)), lambda: byte_level()),
    "falcon": (*C("Falcon"), dict(new_decoder_architecture=False), lambda: byte_level()),
    "falcon-40b": (*C("Falcon"), dict(new_decoder_architecture=True, num_kv_heads=2), lambda: byte_level()),
    "bloom": (*C("Bloom"), {}, lambda: byte_level()),
    "olmo": (*C("Olmo"), dict(clip_qkv=0.6, pad_token_id=0), lambda: byte_level()),
    "olmoe": (*C("Olmoe"), dict(num_experts=5, num_experts_per_tok=2, pad_token_id=0), lambda: byte_level()),
    "deepseek-v2": (*C("DeepseekV2"), dict(**LATENT, q_lora_rank=None, n_group=1, topk_group=1, topk_method="greedy", n_shared_experts=2, routed_scaling_factor=1.0, rope_parameters=MLA_YARN), lambda: byte_level(LLAMA3)),
    "deepseek-v3": (*C("DeepseekV3"), dict(**LATENT, q_lora_rank=10, n_group=4, topk_group=2, n_shared_experts=1, routed_scaling_factor=2.5), lambda: byte_level(DEEPSEEK3)),
    "glm4-moe": (*C("Glm4Moe"), dict(n_routed_experts=5, num_experts_per_tok=2, moe_intermediate_size=8, first_k_dense_replace=1, head_dim=8, attention_bias=True, use_qk_norm=True, routed_scaling_factor=1.5, pad_token_id=0), lambda: byte_level(LLAMA3)),
    "ernie4-5": (*C("Ernie4_5"), dict(head_dim=6), lambda: byte_level()),
    "hunyuan": (*C("HunYuanDenseV1"), dict(head_dim=6, rope_parameters=dict(rope_type="dynamic", rope_theta=10000.0, alpha=50.0, factor=1.0)), lambda: byte_level()),
    "exaone4": (*C("Exaone4"), dict(num_hidden_layers=4, sliding_window=4, tie_word_embeddings=True), lambda: byte_level()),
    "seed-oss": (*C("SeedOss"), dict(head_dim=6, attention_dropout=0.0, residual_dropout=0.0), lambda: byte_level(LLAMA3)),
})


def answers():
    """As Qwen's rerankers have it: control tokens of a chat, and words that are an answer"""
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(QWEN), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    t.decoder = decoders.ByteLevel()
    t.train_from_iterator(LEARN + ["yes", "no"] * 40, trainers.BpeTrainer(vocab_size=300, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    t.add_special_tokens(["<|endoftext|>", "<|im_start|>", "<|im_end|>"])
    t.add_tokens(["<think>", "</think>"])
    return t, dict(pad_token="<|endoftext|>", eos_token="<|im_end|>")


def ended():
    t, special = answers()
    end = t.token_to_id("<|endoftext|>")
    t.post_processor = processors.TemplateProcessing(single="$A <|endoftext|>", pair="$A $B <|endoftext|>", special_tokens=[("<|endoftext|>", end)])
    return t, special


def bytes_of_roberta(blank=False):
    t = Tokenizer(models.BPE())
    t.pre_tokenizer, t.decoder = pre_tokenizers.ByteLevel(add_prefix_space=blank), decoders.ByteLevel()
    t.train_from_iterator(LEARN, trainers.BpeTrainer(vocab_size=300, special_tokens=["<s>", "<pad>", "</s>", "<unk>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    t.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
    return t, dict(pad_token="<pad>", unk_token="<unk>", bos_token="<s>", eos_token="</s>", cls_token="<s>", sep_token="</s>")


def bytes_of_modern():
    t = Tokenizer(models.BPE())
    t.normalizer, t.pre_tokenizer, t.decoder = normalizers.NFC(), pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    t.train_from_iterator(LEARN, trainers.BpeTrainer(vocab_size=300, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    t.add_special_tokens(["[UNK]", "[CLS]", "[SEP]", "[PAD]"])
    ends = [(s, t.token_to_id(s)) for s in ("[CLS]", "[SEP]")]
    t.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B [SEP]", special_tokens=ends)
    return t, dict(pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]")


# The prompt of Qwen3-Reranker's model card.
ASK = ('<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the Instruct provided. Note that the answer can only be "yes" or "no".'
       "<|im_end|>\n<|im_start|>user\n", "<Instruct>: Given a web search query, retrieve relevant passages that answer the query\n<Query>: %s\n<Document>: %s",
       "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n")
BOTH_WAYS = dict(attention_mask={"full_attention": torch.zeros(1, 1, 20, 20)})  # nothing is masked
DECODER = dict(num_key_value_heads=2, head_dim=6, max_position_embeddings=512)
MODERN = dict(num_hidden_layers=5, local_attention=6, global_attn_every_n_layers=3, global_rope_theta=500.0, local_rope_theta=50.0, pad_token_id=303, bos_token_id=301, cls_token_id=301,
              eos_token_id=302, sep_token_id=302)
ENCODERS = {
    "bert": (BertModel, BertConfig, {}, words, "cls_token"),
    "bert-rank": (BertForSequenceClassification, BertConfig, dict(num_labels=1), words, None),
    "xlm-roberta": (XLMRobertaModel, XLMRobertaConfig, dict(pad_token_id=1, type_vocab_size=1), unigrams, "mean_tokens"),
    "xlm-roberta-rank": (XLMRobertaForSequenceClassification, XLMRobertaConfig, dict(num_labels=1, pad_token_id=1, type_vocab_size=1), unigrams, None),
    "nomic-bert": (NomicBertModel, NomicBertConfig, {}, words, "mean_tokens"),
    "roberta": (transformers.RobertaModel, transformers.RobertaConfig, dict(pad_token_id=1, type_vocab_size=1), bytes_of_roberta, "mean_tokens"),
    "roberta-rank": (transformers.RobertaForSequenceClassification, transformers.RobertaConfig, dict(id2label={0: "no", 1: "yes"}, pad_token_id=1, type_vocab_size=1),
                     lambda: bytes_of_roberta(True), None),
    "modernbert": (transformers.ModernBertModel, transformers.ModernBertConfig, MODERN, bytes_of_modern, "cls_token"),
    "modernbert-rank": (transformers.ModernBertForSequenceClassification, transformers.ModernBertConfig, dict(MODERN, num_labels=1, classifier_pooling="mean"), bytes_of_modern, None),
    "qwen3-embedding": (transformers.Qwen3Model, Qwen3Config, DECODER, ended, "lasttoken"),
    "qwen2-both-ways": (transformers.Qwen2Model, Qwen2Config, dict(num_key_value_heads=2, is_causal=False), ended, "lasttoken"),
    "qwen3-reranker": (Qwen3ForCausalLM, Qwen3Config, dict(DECODER, tie_word_embeddings=True), answers, None),
    "qwen3-rank": (transformers.Qwen3ForSequenceClassification, Qwen3Config, dict(DECODER, num_labels=1, pad_token_id=0), answers, None),
}


def score_of(m, t, name, query, document):
    """The number of tokens, and what the model says of a pair: its one label, or the share of yes in a softmax"""
    if "qwen3" in name:
        parts = [t(s, add_special_tokens=False, split_special_tokens=i == 1)["input_ids"] for i, s in enumerate((ASK[0], ASK[1] % (query, document), ASK[2]))]
        ids = torch.tensor([sum(parts, [])])
        logits = m(ids).logits
        if logits.ndim == 2:
            return ids.shape[1], logits[0, 0]
        two = logits[0, -1, [t.convert_tokens_to_ids("no"), t.convert_tokens_to_ids("yes")]]
        return ids.shape[1], two.softmax(0)[1]
    both = t(query, document, return_tensors="pt")
    ids = both["input_ids"]
    types = dict(token_type_ids=torch.tensor([[int(i > ids[0].tolist().index(3)) for i in range(ids.shape[1])]])) if name == "bert-rank" else {}
    logits = m(input_ids=ids, attention_mask=both["attention_mask"], **types).logits[0]
    return ids.shape[1], logits[0] if len(logits) == 1 else logits.softmax(0)[1]


def make_encoder(name, folder):
    kind, config, more, tokenizer, pooling = ENCODERS[name]
    torch.manual_seed(sum(map(ord, name)))
    fast, special = tokenizer()
    t = PreTrainedTokenizerFast(tokenizer_object=fast, **special)
    small = {k: v for k, v in SMALL.items() if k != "num_key_value_heads"}
    m = kind(config(**{**small, **more}, vocab_size=len(t), attn_implementation="eager")).eval()
    with torch.no_grad():
        for n, p in m.named_parameters():
            norm = "norm" in n.lower()
            p.copy_((torch.randn(p.shape) * (0.2 if norm else 0.35) + (1 if norm and "bias" not in n else 0)).half())
        ids = torch.randint(4, len(t), (1, 20))
        want = {"ids": ids[0].tolist()}
        if pooling:
            x = m(ids, **BOTH_WAYS if "both-ways" in name else {}).last_hidden_state[0]
            for key, v in ("mean", x.mean(0)), ("cls", x[0]), ("last", x[-1]):
                want[key] = [round(float(a), 7) for a in v / v.norm()]
        else:
            pairs = [("a dog", "the dog and the cat"), ("cat", "mats"), ("time", "once upon a time 123")]
            if "qwen3" in name:
                pairs[1] = ("<|im_end|> {document}", "{query}<think>\n")
            want["pairs"] = []
            for a, b in pairs:
                tokens, score = score_of(m, t, name, a, b)
                want["pairs"].append({"query": a, "document": b, "tokens": tokens, "score": round(float(score), 6)})
    m.half().save_pretrained(folder)
    t.save_pretrained(folder)
    for extra in ("generation_config.json", "special_tokens_map.json"):
        if os.path.exists(os.path.join(folder, extra)):
            os.remove(os.path.join(folder, extra))
    if name == "nomic-bert":  # as its authors write it
        c = dict(model_type="nomic_bert", architectures=["NomicBertModel"], n_embd=16, n_layer=2, n_head=4, n_inner=20, n_positions=8192, max_trained_positions=64,
                 activation_function="swiglu", layer_norm_epsilon=1e-12, rotary_emb_base=1000, rotary_emb_fraction=1.0, rotary_emb_interleaved=False, rotary_emb_scale_base=None,
                 prenorm=False, causal=False, parallel_block=False, use_rms_norm=False, type_vocab_size=2, qkv_proj_bias=False, mlp_fc1_bias=False, mlp_fc2_bias=False)
        json.dump(c, open(os.path.join(folder, "config.json"), "w"), indent=1)
    if pooling:
        os.makedirs(os.path.join(folder, "1_Pooling"), exist_ok=True)
        modes = {"pooling_mode_" + k: k == pooling for k in ("cls_token", "mean_tokens", "max_tokens", "mean_sqrt_len_tokens", *(["lasttoken"] if pooling == "lasttoken" else []))}
        json.dump({"word_embedding_dimension": 16, **modes}, open(os.path.join(folder, "1_Pooling", "config.json"), "w"))
    want["texts"] = [{"text": s, "ids": t(s)["input_ids"]} for s in TEXTS[:3]]
    json.dump(want, open(os.path.join(folder, "expected.json"), "w"))


def mxfp4(model):
    """Random packed values for the experts, decoded into the model: the tensors that the file has in their place."""
    values, packed = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6]), {}
    values = torch.cat([values, -values])
    for n, p in model.named_parameters():
        if not n.endswith(("gate_up_proj", "down_proj")) or "experts" not in n:
            continue
        experts, inner, rows = p.shape
        blocks = torch.randint(0, 256, (experts, rows, inner // 32, 16), dtype=torch.uint8)
        scales = torch.randint(122, 126, (experts, rows, inner // 32), dtype=torch.uint8)
        each = torch.stack((values[(blocks & 15).long()], values[(blocks >> 4).long()]), -1).flatten(-2)
        p.copy_((each * 2.0 ** (scales[..., None].float() - 127)).flatten(-2).transpose(1, 2))
        packed[n + "_blocks"], packed[n + "_scales"] = blocks, scales
    return packed


def make(name, folder):
    kind, config, more, tokenizer = MODELS[name]
    torch.manual_seed(sum(map(ord, name)))
    t = PreTrainedTokenizerFast(tokenizer_object=tokenizer(), bos_token="<|begin|>", eos_token="<|end|>")
    t.chat_template = "{{ bos_token }}{% for m in messages %}{{ m.content }}{% endfor %}"
    small = {} if name == "gpt2" else {k: v for k, v in SMALL.items() if k != "intermediate_size" or name not in NO_FFN}
    m = kind(config(**{**small, **more}, vocab_size=len(t), attn_implementation="eager")).eval()
    with torch.no_grad():
        for n, p in m.named_parameters():
            norm = "norm" in n or "ln_" in n
            v = torch.randn(p.shape) * (0.2 if norm else 0.35) + (1 if norm and "bias" not in n and "gemma" not in name and name != "nemotron" else 0)
            p.copy_(v.half())  # the frequencies stay f32
        for n, b in m.named_buffers():
            if "e_score_correction_bias" in n:
                b.copy_(torch.randn(b.shape).half() * 0.2)
        packed = mxfp4(m) if "mxfp4" in name else {}
        ids = torch.randint(0, len(t), (1, 9))
        logits = m(ids).logits[0]
    m.half().save_pretrained(folder, max_shard_size="12KB" if name == "mistral" else "1GB")
    if packed:
        path = os.path.join(folder, "model.safetensors")
        save_file({**{n: t for n, t in load_file(path).items() if n + "_blocks" not in packed}, **packed}, path, {"format": "pt"})
    t.save_pretrained(folder)
    for extra in ("generation_config.json", "special_tokens_map.json"):
        if os.path.exists(os.path.join(folder, extra)):
            os.remove(os.path.join(folder, extra))
    rows = [0, 4, 8]
    said = [{"text": s, "ids": t(s, add_special_tokens=True, split_special_tokens=True)["input_ids"]} for s in TEXTS]
    json.dump({"texts": said, "ids": ids[0].tolist(), "rows": rows, "logits": [[round(v, 6) for v in logits[i].tolist()] for i in rows]},
              open(os.path.join(folder, "expected.json"), "w"))


for name in sys.argv[2:] or [*MODELS, *ENCODERS]:
    (make_encoder if name in ENCODERS else make)(name, os.path.join(sys.argv[1], name))
