"""support.py: what the tests of the Python package share. TINYGRAD_C names the build; NumPy and PyTorch are used where they are."""
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))
os.environ.setdefault("TINYGRAD_C", str(ROOT / "build"))
DATA = pathlib.Path(os.environ.get("TG_DATA") or ROOT / "../shared/data")
try:
    import numpy
except ImportError:
    numpy = None
try:
    import torch
    torch.set_num_threads(1)
except ImportError:
    torch = None
needs_numpy = unittest.skipIf(numpy is None, "NumPy is not here")
needs_torch = unittest.skipIf(torch is None, "PyTorch is not here")


def needs_data(*parts):
    return unittest.skipIf(not DATA.joinpath(*parts).exists(), f"{'/'.join(parts)} is not in $TG_DATA")


def flat(v):
    return [n for e in v for n in flat(e)] if isinstance(v, (list, tuple)) else [v]


class Case(unittest.TestCase):
    def close(self, got, want, tolerance=1e-5, about=""):
        """Nested lists, arrays or tensors with equal shapes and near values."""
        got, want = (v.tolist() if hasattr(v, "tolist") else v for v in (got, want))
        a, b = flat(got), flat(want)
        self.assertEqual(len(a), len(b), about)
        for x, y in zip(a, b):
            if x != y and not (x != x and y != y) and not abs(x - y) <= tolerance * max(1, abs(y)):
                self.fail(f"{about}: {x} where {y} is expected; {str(got)[:200]} and {str(want)[:200]}")

    def folder(self):
        at = tempfile.TemporaryDirectory()
        self.addCleanup(at.cleanup)
        return pathlib.Path(at.name)


def python(text, timeout=120, **env):
    """Runs a program in a Python of its own: (exit code, what it printed). What a shell starts in the background ignores SIGINT; the program
    does not."""
    done = subprocess.run([sys.executable, "-c", text], env={**os.environ, "PYTHONPATH": str(ROOT / "python"), **env}, timeout=timeout,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    return done.returncode, done.stdout


def numbers(seed, *shape, lo=-2.0, hi=2.0):
    """Nested lists of random numbers."""
    draw = random.Random(seed)

    def made(shape):
        return draw.uniform(lo, hi) if not shape else [made(shape[1:]) for _ in range(shape[0])]
    return made(shape)
