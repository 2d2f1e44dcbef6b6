"""Files, ONNX models and language models."""
import json
import math
import unittest

from support import DATA, ROOT, Case, needs_data, flat, needs_numpy, numpy
from tinygrad_c import ArgumentError, FileError, ShapeError, StateError, Tensor, TinyJit, dtypes, files, lib
from tinygrad_c.nn import state
from tinygrad_c.onnx import OnnxRunner

VISION = ROOT / "tests/goldens/llm/vision"
MNIST, STORIES = ("onnx-mnist", "mnist.onnx"), ("stories260K", "stories260K-f32.gguf")


class Files(Case):
    def test_safetensors(self):
        at = self.folder() / "a.safetensors"
        tensors = {"a": Tensor([[1.0, 2.0]]), "b.c": Tensor([1, 2]).cast("bfloat16"), "empty": Tensor.zeros(0, 3), "n": Tensor(True)}
        files.safe_save(tensors, at, metadata={"by": "me", "on": "this day"})
        for found in (files.safe_load(at), files.safe_load(str(at)), files.safe_load(Tensor(at)), files.load(at)):
            self.assertEqual(set(found), set(tensors))
            for name, t in tensors.items():
                self.assertEqual((found[name].dtype, found[name].shape, found[name].tolist()), (t.dtype, t.shape, t.tolist()))
        header = files.safe_metadata(at)
        self.assertEqual((header["__metadata__"], header["a"]["dtype"], header["a"]["shape"]), ({"by": "me", "on": "this day"}, "F32", [1, 2]))
        files.safe_save({"a": found["a"] + 1}, at)  # over the file that it is a view of
        self.assertEqual(files.safe_load(at)["a"].tolist(), [[2, 3]])
        at.write_bytes(b"12345678 no such file")
        with self.assertRaises(ArgumentError):
            files.safe_load(at)
        with self.assertRaises(OSError) as e:
            files.safe_load(at.parent / "nothing")
        self.assertIsInstance(e.exception, FileError)

    @needs_numpy
    def test_arrays(self):
        at = self.folder()
        a = numpy.arange(6, dtype="float64").reshape(2, 3)
        numpy.save(at / "a.npy", a)
        numpy.savez(at / "a.npz", x=a, y=a.astype("int8")[:, ::-1])
        self.assertEqual(files.npy_load(at / "a.npy").tolist(), a.tolist())
        self.assertEqual({k: v.tolist() for k, v in files.npz_load(at / "a.npz").items()}, {"x": a.tolist(), "y": a[:, ::-1].tolist()})
        files.npy_save(Tensor(a) * 2, at / "b.npy")
        self.assertEqual(numpy.load(at / "b.npy").tolist(), (a * 2).tolist())
        self.assertEqual(set(files.zip_extract(at / "a.npz")), {"x.npy", "y.npy"})

    @needs_data("torch-pt")
    def test_torch(self):
        expected = json.loads((DATA / "torch-pt" / "expected.json").read_text())
        self.assertGreater(len(expected), 50)
        for name, about in expected.items():
            if name == "broken.pt":
                continue
            with self.subTest(name):
                found = state.get_state_dict(files.torch_load(DATA / "torch-pt" / name), prefix="")
                for key, want in about.get("tensors", {}).items():
                    t = found[key]
                    self.assertEqual((t.shape, t.dtype.name), (tuple(want["shape"]), want["dtype"]))
                    self.close(flat(t.tolist())[:len(want["first"])], [math.nan if v is None else float(v) for v in want["first"]])
        with self.assertRaises(ArgumentError):
            files.torch_load(DATA / "torch-pt" / "broken.pt")

    @needs_data(*STORIES)
    def test_gguf(self):
        kv, tensors = files.gguf_load(DATA.joinpath(*STORIES))
        self.assertEqual((kv["general.architecture"], len(kv["tokenizer.ggml.tokens"])), ("llama", 512))
        self.assertEqual(tensors["token_embd.weight"].shape, (512, 64))
        q8 = files.gguf_load(DATA / "stories260K" / "stories260K-q8_0.gguf")[1]["token_embd.weight"]
        self.close(q8, tensors["token_embd.weight"], .02)


class Onnx(Case):
    @needs_data(*MNIST)
    def test_mnist(self):
        folder = DATA / "onnx-mnist"
        model = OnnxRunner(DATA.joinpath(*MNIST))
        self.assertEqual((model.inputs["Input3"], model.outputs), ((dtypes.float32, (1, 1, 28, 28)), {"Plus214_Output_0": (dtypes.float32, (1, 10))}))
        captured = TinyJit(lambda x: model({"Input3": x})["Plus214_Output_0"])
        for n in range(3):
            x = lib.tg_onnx_tensor(files.file(folder / f"test_data_set_{n}" / "input_0.pb"))
            want = lib.tg_onnx_tensor(files.file(folder / f"test_data_set_{n}" / "output_0.pb"))
            got = model({"Input3": x})
            self.assertEqual(list(got), ["Plus214_Output_0"])
            self.close(got["Plus214_Output_0"], want, 1e-3)
            self.close(model(Input3=x.tolist())["Plus214_Output_0"], want, 1e-3)
            for _ in range(2):
                self.close(captured(x.contiguous().realize()), want, 1e-3)
        self.assertEqual(model.opset, 8)
        with self.assertRaisesRegex(ArgumentError, "no input 'x'; there are: Input3"):
            model({"x": x})
        with self.assertRaises(ShapeError):
            model({"Input3": Tensor.zeros(1, 1, 2, 2)})
        with self.assertRaises(ArgumentError):
            model({})

    def test_wrong(self):
        at = self.folder() / "a.onnx"
        at.write_bytes(b"no model")
        with self.assertRaises(ArgumentError):
            OnnxRunner(at)


class Language(Case):
    def test_reranker(self):
        from tinygrad_c import llm
        folder = ROOT / "tests/goldens/llm/hf/xlm-roberta-rank"
        pairs = json.loads((folder / "expected.json").read_text())["pairs"]
        m = llm.Llm(folder)
        for pair in pairs:
            self.close(m.rank(pair["query"], [pair["document"]]), [pair["score"]], 1e-4)
        self.assertEqual(m.rank("a dog", []), [])
        with self.assertRaisesRegex(ArgumentError, "reranker"):
            m.embed("a dog")

    # ---- pictures
    def seeing(self, name, **options):
        from tinygrad_c import llm
        return llm.Llm(VISION / f"{name}.gguf", mmproj=VISION / f"{name}-mmproj.gguf", context=128, **options)

    def golden(self, name):
        keys, _ = files.gguf_load(VISION / f"{name}-mmproj.gguf")
        get = lambda key: keys["test." + key].tolist()
        height, width = get("size")
        rgb = bytes(get("rgb"))
        return get, Tensor(list(rgb), dtype=dtypes.uint8).reshape(height, width, 3), rgb, height, width

    def test_pictures(self):
        for name in "llava", "gemma3", "idefics3":
            get, tensor, rgb, height, width = self.golden(name)
            m, n = self.seeing(name), len(get("after")) + 1
            want = [get("logits")[i * m.vocabulary:(i + 1) * m.vocabulary] for i in range(n)]
            view = memoryview(rgb).cast("B", (height, width, 3))
            ppm = b"P6\n%d %d\n255\n" % (width, height) + rgb
            at = self.folder() / "a.ppm"
            at.write_bytes(ppm)
            for x in view, ppm, at, str(at), tensor:
                m.reset()
                m.eval(get("before"))
                m.see(x)
                if name == "llava":  # whose pictures have no text around them: transformers' logits
                    self.close(m.logits(), want[0], 1e-4)
                logits = m.logits()
            self.assertEqual(sum(i < 0 for i in m.ids()), m._sight.tokens)
            self.assertEqual(len(logits), m.vocabulary)

    def test_picture_prompts(self):
        other = b"P6\n2 1\n255\nabcdef"
        for name, first in ("llava", []), ("gemma3", [16]), ("idefics3", [18, 19]):
            m = self.seeing(name)
            _, _, rgb, height, width = self.golden(name)
            ppm = b"P6\n%d %d\n255\n" % (width, height) + rgb
            said = lambda *parts: [{"role": "user", "content": list(parts)}]
            reply = lambda *parts: list(m.chat(said(*parts), 6, temperature=0))
            alone = reply(ppm, "abc")
            ids = m.ids()
            self.assertEqual(sum(i < 0 for i in ids), m._sight.tokens)
            at = next(i for i, v in enumerate(ids) if v < 0)
            self.assertEqual(ids[at - len(first):at], first)
            self.assertEqual(reply({"type": "image", "image": ppm}, {"type": "text", "text": "abc"}), alone)
            reply("a", other, "b", ppm, "c")
            self.assertEqual(sum(i < 0 for i in m.ids()), 2 * m._sight.tokens)
            self.assertEqual(reply(ppm, "abc"), alone)
            self.assertNotEqual(m.ids()[:at + m._sight.tokens], (reply(other, "abc"), m.ids()[:at + m._sight.tokens])[1])
            reply("<image><start_of_image>abc")  # what looks like a mark shows nothing
            self.assertFalse([i for i in m.ids() if i < 0])
            list(m.generate("a<image>b", 2, pictures=[ppm], temperature=0))
            self.assertEqual(sum(i < 0 for i in m.ids()), m._sight.tokens)
            for wrong in (b"GIF89a", b"P6\n9 9\n255\nabc"):
                with self.assertRaises(ArgumentError):
                    reply(wrong, "abc")
            with self.assertRaises(FileError):
                lib.tg_hf_load_vision("nothing")
            with self.assertRaises(OSError):
                m.see("nothing.ppm")
            with self.assertRaisesRegex(ArgumentError, "height, width, 3"):
                m.see(memoryview(bytes(12)).cast("B", (4, 3)))

    def test_tiles(self):
        m = self.seeing("idefics3", tiles=4)
        m.see(b"P6\n40 30\n255\n" + bytes(3600))
        self.assertEqual(sum(i < 0 for i in m.ids()), 5 * 4)
        m = self.seeing("idefics3", tiles=0)
        m.see(b"P6\n40 30\n255\n" + bytes(3600))
        self.assertEqual(sum(i < 0 for i in m.ids()), 4)
        with self.assertRaisesRegex(ArgumentError, "no tiles with mlp"):
            self.seeing("llava", tiles=4)
        from tinygrad_c import llm
        with self.assertRaisesRegex(StateError, "reads no pictures"):
            llm.Llm(VISION / "llava.gguf").see(b"P6\n1 1\n255\nabc")

    def test_drafts(self):
        """Guesses change no text, and leave nothing behind."""
        from tinygrad_c import llm
        at = VISION / "idefics3.gguf"
        asked = [dict(temperature=0), dict(temperature=1, seed=3, repeat_penalty=1.1)]
        of = lambda m: [list(m.generate("abcabc", 24, **a)) for a in asked]
        small = llm.Llm(at, context=64, batch=4)
        drafts = [dict(draft="lookup", draft_tokens=1), dict(draft="lookup"), dict(draft=at, draft_tokens=3), dict(draft=small)]
        want = of(llm.Llm(at, context=64, **drafts[0]))
        for d in drafts:
            m = llm.Llm(at, context=64, **d)
            self.assertEqual(of(m), want, d)
            if d == drafts[1]:
                m._draft = lib.tg_draft_lookup(m._handle, most=5, always=True)  # right or wrong, many are tried
                self.assertEqual(of(m), want, d)
            ids = m.tokenize("abcabc")
            made = list(m.generate_ids(ids, 12, temperature=0))
            self.assertEqual(m.ids(), (ids + made)[:len(m.ids())])
            for token in m.generate_ids(ids, temperature=0):  # one is enough
                break
            self.assertEqual(m.ids()[:len(ids)], ids)
        with self.assertRaises(ArgumentError):
            llm.Llm(at, draft="lookup", draft_tokens=9999)
        with self.assertRaises(ArgumentError):
            llm.Llm(at, draft="lookup", batch=0)

    @needs_data(*STORIES)
    def test_learning(self):
        from tinygrad_c import llm
        from tinygrad_c.nn import optim
        at = self.folder()
        (at / "t.jsonl").write_text('{"prompt": "What is it?", "completion": " A dog."}\n')
        m = llm.Llm(DATA.joinpath(*STORIES), context=32)
        before = "".join(m.generate("What is it?", 4, temperature=0))
        adapter = llm.Lora(m, modules="all", rank=4)
        learner = llm.Learner(m, optim.AdamW(adapter.parameters(), lr=.01), adapter)
        batches = m.texts(at / "t.jsonl", length=32, fit=True)
        losses = [learner.step(ids, targets) for _ in range(8) for ids, targets in batches]
        self.assertLess(losses[-1], losses[0] / 2)
        after = "".join(m.generate("What is it?", 4, temperature=0))
        self.assertNotEqual(before, after)
        adapter.save(at / "adapter", base="stories")
        self.assertEqual(m.merge(at / "merged.gguf")[0], 35)
        again = llm.Llm(DATA.joinpath(*STORIES), context=32)
        loaded = llm.Lora(again, at / "adapter")
        self.assertEqual(len(loaded.parameters()), len(adapter.parameters()))
        merged = llm.Llm(at / "merged.gguf", context=32)
        for other in (again, merged):
            self.assertEqual("".join(other.generate("What is it?", 4, temperature=0)), after)
        merged.unfreeze()
        whole = llm.Learner(merged, optim.SGD(merged.weights(), lr=.01))
        first, second = [whole.step(ids, targets) for _ in range(2) for ids, targets in batches]
        self.assertLess(second, first)
        with self.assertRaises(ArgumentError):
            llm.Lora(m, modules="nose")
        with self.assertRaises(TypeError):
            llm.Lora(m, at / "adapter", rank=4)
        with self.assertRaises(StateError):
            llm.Learner(again, optim.SGD([Tensor([1.0])], lr=.1))

    @needs_data(*STORIES)
    def test_stories(self):
        from tinygrad_c import llm
        m = llm.Llm(DATA.joinpath(*STORIES), context=256)
        self.assertEqual((m.architecture, m.layers, m.vocabulary, m.context), ("llama", 5, 512, 256))
        self.assertIn("260032 parameters", repr(m))
        want = (DATA / "stories260K" / "expected.txt").read_text()
        ids = m.tokenize("Once upon a time")
        self.assertEqual(m.detokenize(ids).strip(), "Once upon a time")
        pieces = list(m.generate("Once upon a time", max_tokens=40, temperature=0))
        text = "".join(pieces)
        self.assertGreater(len(pieces), 20)
        self.assertTrue(want.startswith("Once upon a time" + text), text)
        again = "".join(m.generate("Once upon a time", max_tokens=40, temperature=0, stop=["little"]))
        self.assertEqual(again, text[:text.index("little")])
        self.assertEqual(len(m.ids()), len(set(range(len(m.ids())))))
        drawn = ["".join(m.generate("Once", max_tokens=12, temperature=1.0, seed=s)) for s in (1, 1, 2)]
        self.assertEqual(drawn[0], drawn[1])
        self.assertNotEqual(drawn[0], drawn[2])
        one, two = m.embed("The cat sat."), m.embed("A dog ran.")
        self.assertEqual(len(one), 64)
        self.close(sum(v * v for v in one), 1, 1e-4)
        self.assertNotEqual(one, two)
        m.reset()
        m.eval(ids)
        self.assertEqual(len(m.logits()), 512)
        self.assertGreater(m.loss([ids[:-1]], [ids[1:]]).item(), 0)
        with self.assertRaises(StateError):
            m.chat("Hello")
        m.chat_template = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}assistant:"
        self.assertEqual(m.prompt_of([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}]), "system: Be brief.\nuser: Hello\nassistant:")
        self.assertTrue("".join(m.chat("Hello", max_tokens=5, temperature=0)))
        self.assertTrue("".join(m.generate("One", max_tokens=5, grammar='root ::= " and" [a-z ]+')).startswith(" and"))
        m.chat_template = None
        with self.assertRaises(StateError):
            m.chat([{"role": "user", "content": "Hello"}])
        with self.assertRaises(ArgumentError):
            list(m.generate("Once", temperature=-1))
        with self.assertRaises(FileError):
            llm.Llm("nothing.gguf")


if __name__ == "__main__":
    unittest.main()
