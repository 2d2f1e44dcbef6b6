"""Gradients, captured functions, layers, optimisers, state dictionaries: training as a user writes it."""
import copy
import pickle
import unittest

from support import Case, needs_data, needs_torch, numbers, numpy, torch, DATA
from tinygrad_c import ArgumentError, Program, ShapeError, StateError, Tensor, TinyJit, Variable, nn
from tinygrad_c.nn import optim, state


class Gradients(Case):
    def test_backward(self):
        x = Tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
        w = Tensor([1.0, -1.0]).requires_grad_()
        loss = ((x @ w) ** 2).sum()
        self.assertIs(loss.backward(), loss)
        self.assertEqual((x.grad.tolist(), w.grad.tolist()), ([[-2, 2], [-2, 2]], [-8, -12]))
        (x * 2).sum().backward()  # adds up
        self.assertEqual(x.grad.tolist(), [[0, 4], [0, 4]])
        x.grad = None
        self.assertIsNone(x.grad)
        w.zero_grad()
        self.assertIsNone(w.grad)
        (x * 3).backward(gradient=Tensor([[1.0, 0], [0, 1]]))
        self.assertEqual(x.grad.tolist(), [[3, 0], [0, 3]])
        self.assertIs(x.grad, x.grad)
        with self.assertRaises(TypeError):
            x.grad = Tensor([1.0])
        with self.assertRaises(ShapeError):
            (x * 3).backward()
        with self.assertRaises(StateError):
            Tensor([1.0]).sum().backward()

    def test_no_gradient(self):
        x = Tensor([2.0], requires_grad=True)
        with Tensor.no_grad():
            y = x * 3
        (y * x).sum().backward()
        self.assertEqual(x.grad.tolist(), [6])
        x.grad = None
        (x.detach() * x).sum().backward()
        self.assertEqual(x.grad.tolist(), [2])
        x.requires_grad = False
        self.assertFalse(x.requires_grad)

    def test_functional(self):
        x, y = Tensor([3.0]), Tensor([2.0])
        loss = (x * x * y).sum()
        gx, gy = loss.gradient(x, y)
        self.assertEqual((gx.item(), gy.item()), (12, 9))
        self.assertEqual(gx.sum().gradient(x)[0].item(), 4)
        double = (x * 1).custom_gradient(x, lambda g: g * 10)
        self.assertEqual(double.sum().gradient(x)[0].item(), 10)

        def wrong(g):
            raise KeyError("mine")
        with self.assertRaisesRegex(KeyError, "mine"):
            (x * 1).custom_gradient([x], wrong).sum().gradient(x)
        leaf = Tensor([1.0], requires_grad=True)
        with self.assertRaisesRegex(KeyError, "mine"):
            (leaf * 1).custom_gradient([leaf], wrong).sum().backward()

    def test_scaler(self):
        w = Tensor([1.0, 2.0], requires_grad=True)
        opt, scaler = optim.SGD([w], lr=.5), optim.GradScaler()
        scale = scaler.value
        self.assertGreater(scale, 1)
        scaler.scale((w * w).sum()).backward()
        scaler.step(opt)
        self.close(w, [0, 0])
        scaler.scale((w + 1e38).sum() * 10).backward()  # the scaled gradients are infinite
        w.grad.assign(Tensor([float("inf"), 1.0]))
        scaler.step(opt)
        self.close(w, [0, 0])
        self.assertLess(scaler.value, scale)
        self.assertIn("scale", scaler.state_dict())

    @needs_torch
    def test_beside_torch(self):
        """Values and gradients of networks' functions, in both."""
        for name, ours, theirs in [
                ("softmax", lambda x, w: (x.softmax(-1) * w).sum(), lambda x, w: (x.softmax(-1) * w).sum()),
                ("gelu", lambda x, w: (x.gelu_erf() * w).mean(), lambda x, w: (torch.nn.functional.gelu(x) * w).mean()),
                ("norm", lambda x, w: (x.layer_norm() * w).sum(), lambda x, w: (torch.nn.functional.layer_norm(x, x.shape[-1:]) * w).sum()),
                ("max", lambda x, w: x.max(1).sum() + (w * x).tanh().var(), lambda x, w: x.max(1)[0].sum() + (w * x).tanh().var()),
                ("entropy", lambda x, w: (x * w).cross_entropy(Tensor([0, 2, 1, 0])), lambda x, w: torch.nn.functional.cross_entropy(x * w, torch.tensor([0, 2, 1, 0]))),
                ("attention", lambda x, w: Tensor.scaled_dot_product_attention(x, w, x, is_causal=True).square().sum(),
                 lambda x, w: torch.nn.functional.scaled_dot_product_attention(x, w, x, is_causal=True).square().sum()),
                ("cumsum", lambda x, w: (x.cumsum(1) / (w.exp() + 1)).logsumexp(), lambda x, w: (x.cumsum(1) / (w.exp() + 1)).logsumexp((0, 1)))]:
            a, b = numbers(1, 4, 3), numbers(2, 4, 3)
            x, w = (Tensor(v, requires_grad=True) for v in (a, b))
            p, q = (torch.tensor(v, requires_grad=True) for v in (a, b))
            mine, want = ours(x, w), theirs(p, q)
            mine.backward(), want.backward()
            self.close(mine, want, 1e-4, name)
            self.close(x.grad, p.grad, 1e-4, name)
            self.close(w.grad, q.grad, 1e-4, name)


class Jit(Case):
    def test_replays(self):
        calls = []
        w = Tensor([1.0, 2.0, 3.0])

        @TinyJit
        def f(a, b, times=2):
            """told"""
            calls.append(1)
            return {"sum": a * w + b * times, "more": (a.sum(), [b])}
        self.assertEqual((f.__doc__, f.captured), ("told", None))
        for i in range(6):
            got = f(Tensor([float(i)] * 3), Tensor([1.0, 1, 1]))
            self.assertEqual(got["sum"].tolist(), [i + 2, 2 * i + 2, 3 * i + 2])
            self.assertEqual((got["more"][0].item(), got["more"][1][0].tolist()), (3 * i, [1, 1, 1]))
        self.assertEqual(len(calls), 3)
        w.assign(Tensor([0.0, 0.0, 0.0]))  # state, which a replay sees
        self.assertEqual(f(Tensor([1.0] * 3), Tensor([1.0] * 3))["sum"].tolist(), [2, 2, 2])
        f(Tensor([1.0] * 3), Tensor([1.0] * 3), times=3)  # another capture
        self.assertEqual(len(calls), 4)
        self.assertIsNone(f.captured)
        f.reset()
        self.assertEqual(f(Tensor([1.0] * 3), Tensor([1.0] * 3))["sum"].tolist(), [2, 2, 2])

    def test_state(self):
        count, cache = Tensor([0.0]), Tensor.zeros(4).contiguous().realize()

        @TinyJit
        def step(x):
            nonlocal count
            count += x
            cache[1:2] = x
        for i in range(6):
            self.assertIsNone(step(Tensor([float(i)])))
        self.assertEqual((count.tolist(), cache.tolist()), ([15], [0, 5, 0, 0]))

        @TinyJit
        def same(x):
            return x, x, count
        for i in range(5):
            self.assertEqual([t.tolist() for t in same(Tensor([float(i)]))], [[i], [i], [15]])

        class Model:
            def __init__(self, k):
                self.k = Tensor([k])

            @TinyJit
            def run(self, x):
                return x * self.k
        a, b = Model(2.0), Model(3.0)
        for i in range(5):
            self.assertEqual((a.run(Tensor([1.0 * i])).item(), b.run(Tensor([1.0 * i])).item()), (2 * i, 3 * i))
        n, table = Variable("n", 1, 8), Tensor.arange(8).realize()
        total = TinyJit(lambda x: x.sum())
        self.assertEqual([total(table[:n.bind(i)]).item() for i in range(1, 8)], [0, 1, 3, 6, 10, 15, 21])

    def test_exceptions(self):
        calls = []

        @TinyJit
        def f(x):
            calls.append(1)
            if len(calls) == 2:
                raise KeyError("mine")
            return x + 1
        self.assertEqual(f(Tensor([1.0])).item(), 2)
        with self.assertRaisesRegex(KeyError, "mine"):
            f(Tensor([1.0]))
        self.assertEqual([f(Tensor([float(i)])).item() for i in range(4)], [1, 2, 3, 4])

        @TinyJit
        def reads(x):
            return x * x.sum().item()
        reads(Tensor([1.0])), reads(Tensor([1.0]))
        with self.assertRaises(StateError):
            reads(Tensor([1.0]))
        kept = []

        @TinyJit
        def keeps(x):
            kept.append(x)
            return x * 2
        for _ in range(4):
            keeps(Tensor([1.0])[None])
        with self.assertRaisesRegex(StateError, "argument of a captured function"):
            [t.tolist() for t in kept]
        try:
            import numpy
        except ImportError:
            return
        with self.assertRaisesRegex(TypeError, "give it as a Tensor"):
            keeps(numpy.zeros(3))

    def test_programs(self):
        """A captured function in a file."""
        w, at = Tensor([2.0, 3.0]), self.folder() / "f.safetensors"

        @TinyJit
        def f(x):
            return x * w, x.sum()
        with self.assertRaises(StateError):
            f.save(at)
        for _ in range(3):
            f(Tensor([1.0, 1.0]))
        f.save(at, inputs=["x"], outputs=["scaled", "sum"])
        program = Program(at)
        self.assertEqual((program.inputs, program.outputs), (["x"], ["scaled", "sum"]))
        self.assertEqual([t.tolist() for t in program(Tensor([5.0, 7.0]))], [[10, 21], 12])
        with self.assertRaises(ShapeError):
            program(Tensor([1.0]))

    def test_random_and_training(self):
        f = TinyJit(lambda x: x.dropout(0.5))
        ones = Tensor.ones(64).contiguous().realize()
        with Tensor.train():
            self.assertTrue(Tensor.training)
            draws = [tuple(f(ones).tolist()) for _ in range(6)]
        self.assertEqual(len(set(draws)), 6)
        self.assertFalse(Tensor.training)
        self.assertEqual(f(ones).sum().item(), 64)


LAYERS = [("Linear", (3, 4), (2, 3)), ("Linear", (3, 4, False), (2, 3)), ("Conv1d", (2, 4, 3), (1, 2, 8)), ("Conv2d", (2, 4, 3), (1, 2, 6, 6)),
          ("Conv2d", (2, 4, (3, 1), 2, (1, 0)), (1, 2, 6, 6)), ("ConvTranspose1d", (2, 4, 3), (1, 2, 6)), ("ConvTranspose2d", (2, 4, 3, 2), (1, 2, 4, 4)),
          ("BatchNorm2d", (3,), (2, 3, 4, 4)), ("LayerNorm", (5,), (2, 5)), ("LayerNorm", ((2, 5),), (3, 2, 5)), ("GroupNorm", (2, 4), (2, 4, 3)),
          ("RMSNorm", (5,), (2, 5)), ("Embedding", (10, 4), None), ("LSTM", (3, 5, 2), (4, 2, 3)), ("GRU", (3, 5), (4, 2, 3)), ("LSTMCell", (3, 5), (2, 3)),
          ("MultiheadAttention", (8, 2), (5, 2, 8))]


class Layers(Case):
    def run_layer(self, m, name, shape, make):
        x = make([[1, 2], [3, 4]]) if shape is None else make(numbers(3, *shape))
        if name == "MultiheadAttention":
            out = m(x, x, x)
            return out[0] if isinstance(out, tuple) else out
        out = m(x)
        return out[0] if isinstance(out, tuple) else out

    def test_all(self):
        for name, args, shape in LAYERS:
            with self.subTest(name):
                m = getattr(nn, name)(*args)
                out = self.run_layer(m, name, shape, Tensor)
                out.square().mean().backward()
                for key, t in state.get_state_dict(m).items():
                    self.assertEqual(t.requires_grad, "running" not in key, key)
                self.assertIn("(", repr(m))
                for again in (copy.deepcopy(m), pickle.loads(pickle.dumps(m))):
                    out2 = self.run_layer(again, name, shape, Tensor)
                    self.close(out2, out)
                    out2.square().mean().backward()
                    for key, t in state.get_state_dict(again).items():
                        self.assertEqual((t.requires_grad, t._fixed), ("running" not in key, "running" in key), key)
                        mine = state.get_state_dict(m)[key].grad
                        self.assertEqual(t.grad is None, mine is None, key)
                        if mine is not None:
                            self.close(t.grad, mine)

    @needs_torch
    def test_beside_torch(self):
        """PyTorch's parameters by their names, and the same outputs and gradients."""
        for name, args, shape in LAYERS:
            with self.subTest(name):
                theirs, ours = getattr(torch.nn, name)(*args), getattr(nn, name)(*args)
                theirs.eval()
                names = {k for k in theirs.state_dict() if "num_batches" not in k}
                self.assertEqual(set(state.get_state_dict(ours)), names)
                state.load_state_dict(ours, {k: Tensor(v.numpy()) for k, v in theirs.state_dict().items() if k in names})
                got, want = self.run_layer(ours, name, shape, Tensor), self.run_layer(theirs, name, shape, torch.tensor)
                self.assertEqual(got.shape, tuple(want.shape))
                self.close(got, want.detach(), 1e-4, name)
                got.square().mean().backward()
                want.square().mean().backward()
                for key, p in theirs.named_parameters():
                    grad = state.get_state_dict(ours)[key].grad
                    # of zeros that no step computes, as the first state of a cell, there is none here
                    self.close(grad if grad is not None else numpy.zeros(p.shape), p.grad, 1e-4, f"{name} {key}")

    def test_attributes(self):
        m = nn.Linear(2, 2)
        m.weight = Tensor([[1.0, 0], [0, 2.0]])
        m.bias = None
        self.assertEqual(m(Tensor([[3.0, 4.0]])).tolist(), [[3, 8]])
        self.assertIsNone(nn.Linear(2, 3, bias=False).bias)
        self.assertEqual(nn.Conv2d(1, 1, 3, padding="same")(Tensor.ones(1, 1, 5, 5)).shape, (1, 1, 5, 5))
        self.assertEqual(nn.Conv2d(1, 2, kernel_size=3, stride=2, padding=1, bias=False)(Tensor.ones(1, 1, 5, 5)).shape, (1, 2, 3, 3))
        bn = nn.BatchNorm(2)
        with Tensor.train():
            bn(Tensor([[1.0, 2.0], [3.0, 4.0]])).realize()
        self.close(bn.running_mean, [.2, .3])
        self.close(nn.BatchNorm(2, affine=False, track_running_stats=False)(Tensor([[1.0, 2], [3, 4]])).sum(0), [0, 0], 1e-4)
        outputs, (h, c) = nn.LSTM(3, 5, bidirectional=True)(Tensor(numbers(1, 4, 2, 3)))
        self.assertEqual((outputs.shape, h.shape, c.shape), ((4, 2, 10), (2, 2, 5), (2, 2, 5)))
        outputs, weights = nn.MultiheadAttention(8, 2)(Tensor(numbers(1, 5, 2, 8)), weights=True)
        self.assertEqual(weights.shape, (2, 5, 5))
        for wrong, kind in [(lambda: nn.Linear(2, 3, foo=1), TypeError), (lambda: nn.Linear(2, 0), ShapeError), (lambda: m("a"), TypeError), (lambda: m(Tensor([[1.0] * 3])), ShapeError)]:
            with self.assertRaises(kind):
                wrong()


class Net:
    def __init__(self):
        self.layers = [nn.Linear(2, 16), Tensor.tanh, nn.Linear(16, 1)]
        self.table = {"scale": Tensor([1.0]), "not": 3}

    def __call__(self, x):
        return x.sequential(self.layers) * self.table["scale"]


class Training(Case):
    def train(self, make, steps=60, jit=True, **options):
        Tensor.manual_seed(3)
        net = Net()
        x = Tensor.rand(64, 2).realize()
        y = (x[:, :1] * x[:, 1:]).realize()
        opt = make(state.get_parameters(net), **options)

        def step(x, y):
            loss = (net(x) - y).square().mean().backward()
            opt.step()
            return loss
        step = TinyJit(step) if jit else step
        with Tensor.train():
            losses = [step(x, y).item() for _ in range(steps)]
        return losses, net, opt

    def test_loss_falls(self):
        for make, options in [(optim.SGD, {"lr": .1, "momentum": .9}), (optim.Adam, {"lr": .03}), (optim.AdamW, {"lr": .03, "betas": (.9, .99)}), (optim.LAMB, {"lr": .03}),
                              (optim.RMSprop, {"lr": .01}), (optim.NAdam, {"lr": .03})]:
            losses, _, opt = self.train(make, **options)
            self.assertLess(losses[-1], losses[0] / 3, make.__name__)
            self.close(opt.lr, options["lr"])
        self.close(self.train(optim.Adam, 10, True, lr=.01)[0], self.train(optim.Adam, 10, False, lr=.01)[0], 1e-4)

    def test_others(self):
        for name in ("LARS", "Adagrad", "Adadelta", "Adamax", "RAdam"):
            self.train(getattr(optim, name), 3)
        w = Tensor(numbers(1, 4, 4))
        opt = optim.Muon([w], lr=.01)
        self.assertTrue(w.requires_grad)
        before = w.tolist()
        w.square().sum().backward()
        self.assertIsNotNone(w.grad)
        opt.step()
        self.assertIsNone(w.grad)
        self.assertNotEqual(w.tolist(), before)
        both = optim.OptimizerGroup(optim.SGD([a := Tensor([1.0])], lr=.5), optim.SGD([b := Tensor([1.0])], lr=.25))
        (a + b).sum().backward()
        both.step()
        self.assertEqual((a.item(), b.item()), (.5, .75))
        (a * 3).sum().backward()
        self.close(optim.clip_grad_norm([a], 1.0), 3)
        self.close(a.grad, [1])
        both.zero_grad()
        self.assertIsNone(a.grad)
        for schedule, args, rates in [("StepLR", (1,), [1, .1, .01]), ("ExponentialLR", (.5,), [1, .5, .25]), ("MultiStepLR", ([1, 2],), [1, .1, .01]), ("CosineAnnealingLR", (2,), [1, .5, 0])]:
            opt = optim.SGD([Tensor([1.0])], lr=1.0)
            s = getattr(optim, schedule)(opt, *args)
            got = []
            for _ in rates:
                got.append(opt.lr)
                s.step()
            self.close(got, rates, 1e-6, schedule)
        with self.assertRaises(ValueError):
            optim.SGD([])
        with self.assertRaises(ArgumentError):
            optim.SGD([a], lr=-1.0)
        with self.assertRaisesRegex(TypeError, "no argument 'speed'"):
            optim.SGD([a], speed=1)

    @needs_torch
    def test_beside_torch(self):
        for ours, theirs, options in [("SGD", "SGD", {"lr": .1, "momentum": .9, "nesterov": True}), ("Adam", "Adam", {"lr": .02}), ("AdamW", "AdamW", {"lr": .02, "weight_decay": .1})]:
            a, x = numbers(5, 3, 3), numbers(6, 8, 3)
            w, v = Tensor(a), torch.tensor(a, requires_grad=True)
            mine, want = getattr(optim, ours)([w], **options), getattr(torch.optim, theirs)([v], **options)
            for _ in range(5):
                (Tensor(x) @ w).tanh().square().mean().backward()
                mine.step()
                want.zero_grad()
                (torch.tensor(x) @ v).tanh().square().mean().backward()
                want.step()
            self.close(w, v.detach(), 1e-4, ours)

    def test_state(self):
        _, net, opt = self.train(optim.Adam, 5)
        found = state.get_state_dict(net)
        self.assertEqual(list(found), ["layers.0.weight", "layers.0.bias", "layers.2.weight", "layers.2.bias", "table.scale"])
        at = self.folder() / "net.safetensors"
        state.safe_save({**found, **state.get_state_dict(opt, "optim")}, at, {"by": "me"})
        saved = state.safe_load(at)
        other = Net()
        with self.assertRaises(ArgumentError):
            state.load_state_dict(other, saved)
        state.load_state_dict(other, saved, strict=False)
        x = Tensor([[.5, .25]])
        self.assertEqual(net(x).tolist(), other(x).tolist())
        opt2 = optim.Adam(state.get_parameters(other))
        state.load_optimizer(opt2, {k[len("optim."):]: v for k, v in saved.items() if k.startswith("optim.")})
        for model, o in ((net, opt), (other, opt2)):
            o.lr = .01
            model(x).sum().backward()
            o.step()
        self.assertEqual(net(x).tolist(), other(x).tolist())  # they go on alike
        with self.assertRaises(ShapeError):
            state.load_state_dict(other, {**found, "table.scale": Tensor([1.0, 2.0])})
        with self.assertRaises(ArgumentError):
            state.load_state_dict(other, {"table.scale": Tensor([1.0])})


class Batches(Case):
    def test_loader(self):
        x = Tensor.arange(10)
        loader = nn.datasets.DataLoader(x, x * 2, batch=4, shuffle=True, seed=1)
        self.assertEqual(len(loader), 3)
        for _ in range(2):
            rows = [(a.tolist(), b.tolist()) for a, b in loader]
            self.assertEqual(sorted(n for a, _ in rows for n in a), list(range(10)))
            self.assertTrue(all([2 * n for n in a] == b for a, b in rows))
        kept = list(nn.datasets.DataLoader(x.float(), batch=5))
        self.assertEqual([t.sum().item() for t in kept], [10, 35])

    @needs_data("mnist")
    def test_mnist(self):
        x, y, test_x, test_y = nn.datasets.mnist(DATA / "mnist")
        self.assertEqual((x.shape, y.shape, test_x.shape[1:], test_y.shape[0] > 0), ((60000, 1, 28, 28), (60000,), (1, 28, 28), True))


if __name__ == "__main__":
    unittest.main()
