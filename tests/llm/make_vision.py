#!/usr/bin/env python3
"""Writes tests/goldens/llm/vision/NAME.gguf, NAME-mmproj.gguf and the folders hf-NAME: tiny random language models, the vision towers
beside them, and what transformers says of a picture. The mmproj file has test.size (height, width), test.rgb,
test.pixels (what the model's own image processor makes of it; torchvision's and Pillow's bytes differ by one here and
there, and what follows is of Pillow's), test.vectors (what stands in the text), test.before
and test.after (tokens around it), test.logits: after the picture's last token and after each token of test.after.

NAME-tiles.gguf has what the processors make of larger pictures, which a formula draws (drawn, below): for each case i
tile.i.size (height, width), tile.i.edge (the longest edge; 0: pan and scan), tile.i.most (tiles, at most), tile.i.texts (before each view, and after the last),
tile.i.pixels (bytes of all views); and for the last case tile.logits, where each view has the tokens SEAM before it.

    python3 tests/llm/make_vision.py tests/goldens/llm/vision       (torch, torchvision, transformers 5, PIL)
"""
import os
import struct
import sys

import numpy as np
import torch
import transformers as hf
from PIL import Image

LETTERS = "abcdefghij"
WORDS = ["<unk>", "<s>", "</s>", "\u2581"] + list(LETTERS) + ["\n", "<image>", "<start_of_image>", "<end_of_image>",
         "<fake_token_around_image>", "<global-img>", "<end>", "\n\n"]
VOCABULARY = 24
BEFORE, AFTER = [1, 5, 9, 4, 7], [8, 6, 13]
CLIP_MEAN, CLIP_STD = [0.48145466, 0.4578275, 0.40821073], [0.26862954, 0.26130258, 0.27577711]
TEMPLATES = {
    "llava": "{% for m in messages %}{{ m.content }}{% endfor %}",
    "gemma3": "{% for m in messages %}{% if m.content is string %}{{ m.content | trim }}{% else %}{% for p in m.content %}"
              "{% if p.type == 'image' %}{{ '<start_of_image>' }}{% else %}{{ p.text | trim }}{% endif %}{% endfor %}{% endif %}{{ '\\n' }}{% endfor %}",
    "idefics3": "{% for m in messages %}{% for p in m.content %}{% if p.type == 'text' %}{{ p.text }}{% elif p.type == 'image' %}{{ '<image>' }}{% endif %}"
                "{% endfor %}<end>\n{% endfor %}",
}


def text(s):
    return struct.pack("<Q", len(s.encode())) + s.encode()


class File:
    def __init__(self):
        self.kv, self.tensors = [], {}

    def whole(self, key, v):
        self.kv.append(text(key) + struct.pack("<II", 4, v))

    def real(self, key, v):
        self.kv.append(text(key) + struct.pack("<If", 6, v))

    def flag(self, key, v):
        self.kv.append(text(key) + struct.pack("<IB", 7, v))

    def words(self, key, v):
        self.kv.append(text(key) + struct.pack("<I", 8) + text(v))

    def many(self, key, v):
        kind = {"u1": 0, "i4": 5, "f4": 6, "b1": 7}[v.dtype.str[1:]]
        self.kv.append(text(key) + struct.pack("<IIQ", 9, kind, v.size) + v.tobytes())

    def texts(self, key, v):
        self.kv.append(text(key) + struct.pack("<IIQ", 9, 8, len(v)) + b"".join(map(text, v)))

    def add(self, name, w, kind=None):
        """Matrices of 16 bits, what is a row of 32"""
        w = w.detach().numpy()
        self.tensors[name] = w.astype(kind or ("<f2" if w.ndim > 1 else "<f4"))

    def write(self, path):
        head = b"GGUF" + struct.pack("<IQQ", 3, len(self.tensors), len(self.kv)) + b"".join(self.kv)
        data = b""
        for name, t in self.tensors.items():
            head += text(name) + struct.pack("<I", t.ndim) + b"".join(struct.pack("<Q", n) for n in t.shape[::-1])
            head += struct.pack("<IQ", 1 if t.dtype.itemsize == 2 else 0, len(data))
            data += t.tobytes()
            data += b"\0" * (-len(data) % 32)
        with open(path, "wb") as f:
            f.write(head + b"\0" * (-len(head) % 32) + data)


def randomise(model, seed):
    """Weights that 16 bits hold exactly, norms about 1; the picture must matter, so nothing is small."""
    g = torch.Generator().manual_seed(seed)
    for name, p in model.named_parameters():
        r = torch.randn(p.shape, generator=g)
        unit = "norm" in name and name.endswith("weight")
        gemma = unit and "vision" not in name and "gemma" in model.config.model_type  # these are 1 + weight
        if p.ndim > 1:
            v = 0.3 * r
        else:
            v = 0.2 * r + (1.0 if unit and not gemma else 0.0)
        p.data.copy_(v.to(torch.float16).to(torch.float32) if p.ndim > 1 else v)


# ---- the language models
def vocabulary(f, name):
    f.words("tokenizer.ggml.model", "llama")
    pieces = WORDS + [f"<{i}>" for i in range(VOCABULARY - len(WORDS))]
    kinds = [2, 3, 3] + [1] * (len(LETTERS) + 2) + [3] * 6 + [4]
    f.texts("tokenizer.ggml.tokens", pieces)
    f.many("tokenizer.ggml.scores", np.array([-float(i) for i in range(VOCABULARY)], "<f4"))
    f.many("tokenizer.ggml.token_type", np.array(kinds + [3] * (VOCABULARY - len(kinds)), "<i4"))
    for key, i in ("bos", 1), ("eos", 2), ("unknown", 0):
        f.whole(f"tokenizer.ggml.{key}_token_id", i)
    f.flag("tokenizer.ggml.add_bos_token", True)
    f.flag("tokenizer.ggml.add_space_prefix", False)
    f.words("tokenizer.chat_template", TEMPLATES[name.split("-")[0]])


def text_file(name, m, c):
    f, w = File(), m.state_dict()
    arch = "gemma3" if "gemma" in c.model_type else "llama"
    f.words("general.architecture", arch)
    for key, v in dict(embedding_length=c.hidden_size, block_count=c.num_hidden_layers, context_length=128,
                       feed_forward_length=c.intermediate_size).items():
        f.whole(f"{arch}.{key}", v)
    f.whole(f"{arch}.attention.head_count", c.num_attention_heads)
    f.whole(f"{arch}.attention.head_count_kv", c.num_key_value_heads)
    f.whole(f"{arch}.attention.key_length", c.head_dim)
    f.whole(f"{arch}.attention.value_length", c.head_dim)
    f.real(f"{arch}.attention.layer_norm_rms_epsilon", c.rms_norm_eps)
    if arch == "llama":
        f.flag("llama.rope.halves", True)
        f.real("llama.rope.freq_base", 10000.0)
    else:
        f.whole("gemma3.attention.sliding_window", c.sliding_window)
        f.many("gemma3.attention.sliding_window_pattern", np.array([t == "sliding_attention" for t in c.layer_types], "?"))
        f.real("gemma3.rope.freq_base", 5000.0)
        f.real("gemma3.attention.scale", c.query_pre_attn_scalar**-0.5)
    vocabulary(f, name)
    more = 1.0 if arch == "gemma3" else 0.0
    at = next(k for k in w if k.endswith("embed_tokens.weight"))[: -len("embed_tokens.weight")]
    f.add("token_embd.weight", w[at + "embed_tokens.weight"])
    f.add("output_norm.weight", w[at + "norm.weight"] + more)
    if arch == "llama":
        f.add("output.weight", w["lm_head.weight"])
    names = {"self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
             "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down", "input_layernorm": "attn_norm",
             "post_attention_layernorm": "post_attention_norm" if more else "ffn_norm", "pre_feedforward_layernorm": "ffn_norm",
             "post_feedforward_layernorm": "post_ffw_norm", "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm"}
    for i in range(c.num_hidden_layers):
        for theirs, ours in names.items():
            t = w.get(f"{at}layers.{i}.{theirs}.weight")
            if t is not None:
                f.add(f"blk.{i}.{ours}.weight", t + (more if t.ndim == 1 else 0))
    return f


# ---- the towers
def tower_file(m, c, kind, layers, features, swapped, merge, act, mean, std):
    f, w = File(), m.state_dict()
    f.words("general.architecture", "clip")
    f.words("clip.projector_type", kind)
    f.flag("clip.has_vision_encoder", True)
    for key, v in dict(image_size=c.image_size, patch_size=c.patch_size, embedding_length=c.hidden_size,
                       feed_forward_length=c.intermediate_size, block_count=layers).items():
        f.whole(f"clip.vision.{key}", v)
    f.whole("clip.vision.attention.head_count", c.num_attention_heads)
    f.real("clip.vision.attention.layer_norm_epsilon", c.layer_norm_eps)
    if merge:
        f.whole("clip.vision.projector.scale_factor", merge)
    if features:
        f.many("clip.vision.feature_layer", np.array(features, "<i4"))
    if act:
        f.flag(act, True)
    f.many("clip.vision.image_mean", np.array(mean, "<f4"))
    f.many("clip.vision.image_std", np.array(std, "<f4"))
    key = next(k for k in w if k.endswith("position_embedding.weight"))
    at = key[: -len("embeddings.position_embedding.weight")]
    f.add("v.position_embd.weight", w[key], "<f4")
    both = lambda ours, theirs: [f.add(f"{ours}.{p}", w[f"{theirs}.{p}"]) for p in ("weight", "bias") if f"{theirs}.{p}" in w]
    both("v.patch_embd", at + "embeddings.patch_embedding")
    if at + "embeddings.class_embedding" in w:
        f.add("v.class_embd", w[at + "embeddings.class_embedding"])
        both("v.pre_ln", at + "pre_layrnorm")
    else:
        both("v.post_ln", at + "post_layernorm")
    down, up = ("ffn_up", "ffn_down") if swapped else ("ffn_down", "ffn_up")
    names = {"layer_norm1": "ln1", "layer_norm2": "ln2", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k",
             "self_attn.v_proj": "attn_v", "self_attn.out_proj": "attn_out", "mlp.fc1": up, "mlp.fc2": down}
    for i in range(layers):
        for theirs, ours in names.items():
            both(f"v.blk.{i}.{ours}", f"{at}encoder.layers.{i}.{theirs}")
    one = lambda end: next(t for k, t in w.items() if k.endswith(end))
    if kind == "mlp":
        for ours, theirs in ("mm.0", "linear_1"), ("mm.2", "linear_2"):
            f.add(ours + ".weight", one(f"multi_modal_projector.{theirs}.weight"))
            f.add(ours + ".bias", one(f"multi_modal_projector.{theirs}.bias"))
    elif kind == "gemma3":
        f.add("mm.soft_emb_norm.weight", one("mm_soft_emb_norm.weight") + 1)
        f.add("mm.input_projection.weight", one("mm_input_projection_weight"))
    else:
        f.add("mm.model.fc.weight", one("modality_projection.proj.weight"))
    return f


def picture(height, width, seed):
    """Edges, a ramp and noise"""
    r = np.random.default_rng(seed)
    y, x = np.mgrid[0:height, 0:width]
    a = np.stack((255 * x / width, 255 * y / height, 255.0 * ((x // 5 + y // 7) % 2)), -1) + r.normal(0, 20, (height, width, 3))
    return np.clip(a, 0, 255).astype("u1")


LLAMA = dict(hidden_size=16, intermediate_size=20, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, head_dim=6,
             vocab_size=VOCABULARY, rms_norm_eps=1e-5, tie_word_embeddings=False, pad_token_id=0)
SIGHT = dict(hidden_size=16, intermediate_size=24, num_hidden_layers=3, num_attention_heads=2)


def llava(layer):
    c = hf.LlavaConfig(vision_config=hf.CLIPVisionConfig(image_size=26, patch_size=6, **SIGHT), text_config=hf.LlamaConfig(**LLAMA),
                       vision_feature_layer=layer, image_token_index=15, image_seq_length=16, attn_implementation="eager")
    m = hf.LlavaForConditionalGeneration(c).eval()
    p = hf.models.llava.image_processing_llava.LlavaImageProcessor(do_pad=True, size={"shortest_edge": 26}, crop_size={"height": 26, "width": 26})
    theirs = lambda rgb: p(torch.tensor(rgb).permute(2, 0, 1), return_tensors="pt")["pixel_values"]
    fit = lambda rgb: processed(squared(rgb).resize((26, 26), Image.BICUBIC), CLIP_MEAN, CLIP_STD)
    return m, fit, theirs, 16, 15, CLIP_MEAN, CLIP_STD


def gemma3(_):
    c = hf.Gemma3Config(
        vision_config=hf.SiglipVisionConfig(image_size=32, patch_size=4, vision_use_head=False, **SIGHT),
        text_config=hf.Gemma3TextConfig(**{**LLAMA, "tie_word_embeddings": True, "num_hidden_layers": 3, "head_dim": 8}, sliding_window=5, query_pre_attn_scalar=8,
                                        layer_types=["sliding_attention", "full_attention", "sliding_attention"], attn_logit_softcapping=None,
                                        rope_parameters={"sliding_attention": {"rope_type": "default", "rope_theta": 10000.0},
                                                         "full_attention": {"rope_type": "default", "rope_theta": 5000.0}}),
        mm_tokens_per_image=16, image_token_index=16, attn_implementation="eager")
    m = hf.Gemma3ForConditionalGeneration(c).eval()
    fit = lambda rgb: processed(Image.fromarray(rgb).resize((32, 32), Image.BILINEAR))
    p = hf.models.gemma3.image_processing_gemma3.Gemma3ImageProcessor(size={"height": 32, "width": 32}, image_mean=[0.5] * 3, image_std=[0.5] * 3)
    theirs = lambda rgb: p(torch.tensor(rgb).permute(2, 0, 1), return_tensors="pt")["pixel_values"]
    return m, fit, theirs, 16, 16, [0.5] * 3, [0.5] * 3


def idefics3(_):
    c = hf.Idefics3Config(vision_config=dict(image_size=24, patch_size=6, **SIGHT), text_config=hf.LlamaConfig(**LLAMA), scale_factor=2, image_token_id=15,
                          attn_implementation="eager")
    m = hf.Idefics3ForConditionalGeneration(c).eval()
    fit = lambda rgb: processed(Image.fromarray(rgb).resize((24, 24), Image.LANCZOS))
    return m, fit, fit, 4, 15, [0.5] * 3, [0.5] * 3


def processed(image, mean=(0.5, 0.5, 0.5), std=(0.5, 0.5, 0.5)):
    a = torch.tensor(np.array(image)).permute(2, 0, 1)[None].float() / 255
    return (a - torch.tensor(mean)[:, None, None]) / torch.tensor(std)[:, None, None]


def squared(rgb):
    """In the middle of a square of CLIP's mean colour"""
    h, w = rgb.shape[:2]
    all = Image.new("RGB", (max(h, w),) * 2, tuple(int(255 * c) for c in CLIP_MEAN))
    all.paste(Image.fromarray(rgb), ((max(h, w) - w) // 2, (max(h, w) - h) // 2))
    return all


#            make, picture, layers of the file, feature_layer, swapped, scale_factor, activation
# ---- tiles
SEAM = [18, 6]


def drawn(height, width):
    """Ramps and edges, from whole numbers alone; test_vision.c draws the same."""
    y, x, c = np.mgrid[0:height, 0:width, 0:3]
    return ((x * (3 + c) + y * (5 - c) + 40 * ((x // 5 + y // 7) % 2)) % 256).astype("u1")


def bare(kind, **attributes):
    """A processor without a tokenizer, for its texts alone"""
    p = object.__new__(kind)
    p.__dict__.update(attributes)
    return p


def idefics3_views(rgb, edge, most):
    from transformers.models.idefics3.image_processing_pil_idefics3 import Idefics3ImageProcessorPil as Pil
    p = Pil(size={"longest_edge": edge}, max_image_size={"longest_edge": 24}, return_row_col_info=True)
    r = p([[Image.fromarray(rgb)]], return_tensors="pt")
    words = bare(hf.Idefics3Processor, fake_image_token="<fake_token_around_image>", global_image_tag="<global-img>", image_token="\0", image_seq_len=1)
    return r["pixel_values"][0], words.replace_image_token({"rows": r["rows"], "cols": r["cols"]}, 0).split("\0")


def gemma3_views(rgb, edge, most):
    from transformers.models.gemma3.image_processing_pil_gemma3 import Gemma3ImageProcessorPil as Pil
    p = Pil(size={"height": 32, "width": 32}, image_mean=[0.5] * 3, image_std=[0.5] * 3, do_pan_and_scan=True, pan_and_scan_min_crop_size=256,
            pan_and_scan_max_num_crops=most, pan_and_scan_min_ratio_to_activate=1.2)
    r = p(Image.fromarray(rgb), return_tensors="pt")
    words = bare(hf.Gemma3Processor, full_image_sequence="\n\n<start_of_image>\0<end_of_image>\n\n")
    return r["pixel_values"], words.replace_image_token({"num_crops": r["num_crops"].tolist()}, 0).split("\0")


TILED = {"idefics3": (idefics3_views, [((61, 17), 72, 256), ((10, 10), 24, 256), ((30, 200), 96, 256), ((33, 33), 47, 256), ((1, 90), 48, 256), ((40, 60), 96, 256)]),
         "gemma3": (gemma3_views, [((300, 330), 0, 4), ((1100, 256), 0, 4), ((256, 700), 0, 9), ((256, 520), 0, 2)])}


def make_tiles(name, m, image, tokens, folder):
    views, cases = TILED[name]
    f = File()
    f.words("general.architecture", "tiles")
    for i, (size, edge, most) in enumerate(cases):
        pixels, texts = views(drawn(*size), edge, most)
        f.many(f"tile.{i}.size", np.array(size, "<i4"))
        f.whole(f"tile.{i}.edge", edge)
        f.whole(f"tile.{i}.most", most)
        f.texts(f"tile.{i}.texts", texts)
        f.many(f"tile.{i}.pixels", np.rint(pixels.numpy() * 127.5 + 127.5).astype("u1").reshape(-1))
    ids = torch.tensor([BEFORE + (SEAM + [image] * tokens) * len(pixels) + SEAM + AFTER])
    args = dict(input_ids=ids, pixel_values=pixels[None] if name == "idefics3" else pixels)
    if name == "gemma3":
        args["token_type_ids"] = (ids == image).int()
    with torch.no_grad():
        f.many("tile.logits", m(**args).logits[0, -1 - len(AFTER) :].numpy().astype("<f4").reshape(-1))
    f.write(os.path.join(folder, name + "-tiles.gguf"))


MODELS = {
    "llava": (llava, -2, (30, 44), 2, None, True, None, None),
    "llava-features": (llava, [1, -1], (41, 19), 3, [1, 3], False, None, None),
    "gemma3": (gemma3, None, (50, 70), 3, None, False, 2, "clip.use_gelu"),
    "idefics3": (idefics3, None, (17, 23), 3, None, False, 2, "clip.use_gelu"),
}


def make(name, folder):
    build, layer, size, layers, features, swapped, merge, act = MODELS[name]
    torch.manual_seed(0)
    m, fit, theirs, tokens, image, mean, std = build(layer)
    randomise(m, sum(map(ord, name)))
    rgb = picture(*size, len(name))
    pixels = fit(rgb)
    ids = torch.tensor([BEFORE + [image] * tokens + AFTER])
    args = dict(input_ids=ids, pixel_values=pixels if "idefics3" not in name else pixels[None])
    if "gemma3" in name:
        args["token_type_ids"] = (ids == image).int()
    with torch.no_grad():
        logits = m(**args).logits[0, len(BEFORE) + tokens - 1 :]
        seen = m.model.get_image_features(pixels) if "idefics3" not in name else m.model.get_image_features(pixels[None])
        vectors = seen.pooler_output
        vectors = torch.cat(list(vectors)) if isinstance(vectors, (list, tuple)) else vectors.reshape(tokens, -1)
    f = tower_file(m, m.config.vision_config, {"llava": "mlp"}.get(name.split("-")[0], name), layers, features, swapped, merge, act, mean, std)
    f.many("test.size", np.array(size, "<i4"))
    f.many("test.rgb", rgb.reshape(-1))
    f.many("test.pixels", theirs(rgb).numpy().astype("<f4").reshape(-1))
    f.many("test.vectors", vectors.numpy().astype("<f4").reshape(-1))
    f.many("test.before", np.array(BEFORE, "<i4"))
    f.many("test.after", np.array(AFTER, "<i4"))
    f.many("test.logits", logits.numpy().astype("<f4").reshape(-1))
    f.write(os.path.join(folder, name + "-mmproj.gguf"))
    text_file(name, m, m.config.text_config).write(os.path.join(folder, name + ".gguf"))
    if name in TILED:
        make_tiles(name, m, image, tokens, folder)
    if not features:  # the same model as a folder
        m.save_pretrained(os.path.join(folder, "hf-" + name))
        os.remove(os.path.join(folder, "hf-" + name, "generation_config.json"))


if __name__ == "__main__":
    os.makedirs(sys.argv[1], exist_ok=True)
    for name in MODELS:
        make(name, sys.argv[1])
