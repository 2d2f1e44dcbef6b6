#!/usr/bin/env python3
"""Whether peft reads an adapter that `tg train lora` wrote, and says what tg says with it; and the other way round.
usage: peft_reads.py TG DATA    (DATA: the folder with stories260K; needs torch, transformers and peft)
The original model is made here of stories260K's weights in the order of Hugging Face: of each head of q and k the first
halves of the pairs that rotate together, then the second ones."""
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import torch
from make_lora import model
from peft import LoraConfig, PeftModel, get_peft_model
from transformers import LlamaConfig, LlamaForCausalLM


def original(folder):
    w, k = model(folder + "/stories260K/stories260K.bin")
    size = k["dim"] // k["heads"]
    apart = lambda t, heads: t.view(heads, size // 2, 2, -1).transpose(1, 2).reshape(t.shape)
    m = LlamaForCausalLM(LlamaConfig(vocab_size=k["vocab"], hidden_size=k["dim"], intermediate_size=w["gate"].shape[1],
                                     num_hidden_layers=k["layers"], num_attention_heads=k["heads"], num_key_value_heads=k["kv"],
                                     max_position_embeddings=512, rms_norm_eps=1e-5, tie_word_embeddings=True))
    state = {"model.embed_tokens.weight": w["table"], "model.norm.weight": w["norm"], "lm_head.weight": w["table"]}
    for i in range(k["layers"]):
        p = f"model.layers.{i}."
        state |= {p + "self_attn.q_proj.weight": apart(w["q"][i], k["heads"]), p + "self_attn.k_proj.weight": apart(w["k"][i], k["kv"]),
                  p + "self_attn.v_proj.weight": w["v"][i], p + "self_attn.o_proj.weight": w["o"][i],
                  p + "mlp.gate_proj.weight": w["gate"][i], p + "mlp.up_proj.weight": w["up"][i], p + "mlp.down_proj.weight": w["down"][i],
                  p + "input_layernorm.weight": w["norm1"][i], p + "post_attention_layernorm.weight": w["norm2"][i]}
    m.load_state_dict(state)
    return m.eval()


def reply(m, n):
    """n tokens after "Once", the likeliest each"""
    ids = [1, 403]
    for _ in range(n):
        ids.append(m(torch.tensor([ids])).logits[0, -1].argmax().item())
    return ids[2:]


def ours(tg, file, adapter, n):
    from_tg = subprocess.run([tg, "run", file, "--prompt", "Once", "--tokens", str(n), "--temperature", "0", "--lora", adapter],
                             capture_output=True, text=True, check=True)
    return from_tg.stdout


def text_of(folder, ids):
    import struct
    data, at, pieces = open(folder + "/stories260K/tok512.bin", "rb").read(), 4, []
    while at < len(data):
        n = struct.unpack_from("<i", data, at + 4)[0]
        pieces.append(data[at + 8 : at + 8 + n])
        at += 8 + n
    plain = lambda p: bytes([int(p[3:5], 16)]) if p.startswith(b"<0x") else p
    return b"".join(plain(pieces[i]) for i in ids).decode() + "\n"


def main():
    tg, data = sys.argv[1:3]
    file = data + "/stories260K/stories260K-f32.gguf"
    with torch.no_grad(), tempfile.TemporaryDirectory() as folder:
        text = folder + "/text"
        open(text, "w").write(open(data + "/tinyshakespeare/input.txt").read()[:20000])
        subprocess.run([tg, "train", "lora", file, "--data", text, "-o", folder + "/ours", "--length", "64", "--steps", "40", "--lr",
                        "0.01", "--modules", "all", "--rank", "4"], check=True, capture_output=True)
        plain = reply(original(data), 40)
        theirs = reply(PeftModel.from_pretrained(original(data), folder + "/ours"), 40)
        assert theirs != plain
        assert ours(tg, file, folder + "/ours", 40) == text_of(data, theirs), (text_of(data, theirs), ours(tg, file, folder + "/ours", 40))
        torch.manual_seed(1)
        m = get_peft_model(original(data), LoraConfig(r=3, lora_alpha=7, target_modules=["q_proj", "k_proj", "up_proj"], use_rslora=True,
                                                      init_lora_weights=False))
        for n, p in m.named_parameters():
            if "lora_B" in n:
                p *= 0.2
        m.eval().save_pretrained(folder + "/theirs")
        theirs = reply(m, 40)
        assert theirs != plain
        assert ours(tg, file, folder + "/theirs", 40) == text_of(data, theirs), (text_of(data, theirs), ours(tg, file, folder + "/theirs", 40))
    print("peft reads what tg writes, and tg what peft writes")


if __name__ == "__main__":
    main()
