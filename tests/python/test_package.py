"""What `make python` makes: a folder with all that it needs, and a wheel that pip takes without a network."""
import ast
import base64
import csv
import hashlib
import io
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

from support import DATA, ROOT, Case, needs_data, python

BUILD = pathlib.Path(os.environ["TINYGRAD_C"])
PROGRAM = """
import os, pathlib, tinygrad_c
from tinygrad_c import Tensor, llm, nn
assert tinygrad_c.lib.tg_version() == tinygrad_c.__version__
assert 'Float' in Tensor.softmax.__doc__, 'what the headers say'
assert (pathlib.Path(tinygrad_c.__file__).parent / 'py.typed').exists()
print(nn.Linear(2, 2)(Tensor([[1.0, 2.0]])).shape, os.path.dirname(tinygrad_c.__file__))
"""


@unittest.skipIf(not (BUILD / "tg").exists() or not (BUILD / "CMakeCache.txt").exists(), "not a whole build")
class Package(Case):
    @classmethod
    def setUpClass(cls):
        cls.at = pathlib.Path(tempfile.mkdtemp())
        cls.said = subprocess.run([sys.executable, str(ROOT / "tools/python/package.py"), str(BUILD), str(cls.at)], check=True, stdout=subprocess.PIPE, text=True,
                                  env={k: v for k, v in os.environ.items() if k != "TINYGRAD_C"}).stdout
        cls.wheel = next(cls.at.glob("tinygrad_c-*-py3-none-*.whl"))

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.at)

    def test_folder(self):
        env = {k: v for k, v in os.environ.items() if k not in ("TINYGRAD_C", "PYTHONPATH")}
        done = subprocess.run([sys.executable, "-c", PROGRAM], env={**env, "PYTHONPATH": str(self.at / "python")}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.assertEqual((done.returncode, done.stdout), (0, f"(1, 2) {self.at / 'python' / 'tinygrad_c'}\n"))
        for stub in (self.at / "python").rglob("*.pyi"):
            ast.parse(stub.read_text())
        self.assertIn("def softmax(", (self.at / "python/tinygrad_c/tensor.pyi").read_text())

    def test_wheel(self):
        with zipfile.ZipFile(self.wheel) as z:
            self.assertIsNone(z.testzip())
            record = next(n for n in z.namelist() if n.endswith("RECORD"))
            rows = list(csv.reader(io.StringIO(z.read(record).decode())))
            self.assertEqual({r[0] for r in rows}, set(z.namelist()))
            for name, digest, size in rows:
                if name != record:
                    data = z.read(name)
                    self.assertEqual(digest, "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode())
                    self.assertEqual(int(size), len(data))

    def test_install(self):
        try:
            import ensurepip, venv  # noqa: F401
        except ImportError:
            self.skipTest("no venv here")
        at = self.folder() / "env"
        subprocess.run([sys.executable, "-m", "venv", str(at)], check=True)
        pip = subprocess.run([str(at / "bin/python"), "-m", "pip", "install", "--no-index", "--disable-pip-version-check", str(self.wheel)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.assertEqual(pip.returncode, 0, pip.stdout)
        env = {k: v for k, v in os.environ.items() if k not in ("TINYGRAD_C", "PYTHONPATH")}
        done = subprocess.run([str(at / "bin/python"), "-c", PROGRAM], env=env, cwd="/", stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn(str(at), done.stdout)

    def test_installed(self):
        """An installation of the library in a prefix: found by its folder."""
        prefix = self.folder()
        subprocess.run(["cmake", "--install", str(BUILD), "--prefix", str(prefix)], check=True, stdout=subprocess.DEVNULL)
        lib = next(p for p in prefix.glob("lib*/**/libtinygrad.*") if p.suffix in (".so", ".dylib")).parent
        self.assertTrue((prefix / "share/tinygrad/tg_abi.json").exists())
        env = {k: v for k, v in os.environ.items() if k != "TINYGRAD_C"}
        done = subprocess.run([sys.executable, "-c", "import tinygrad_c; print(tinygrad_c.abi.FOLDER)"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              env={**env, "PYTHONPATH": str(ROOT / "python"), "LD_LIBRARY_PATH": str(lib), "DYLD_LIBRARY_PATH": str(lib)})
        self.assertEqual((done.returncode, done.stdout), (0, f"{lib}\n"))


class Source(Case):
    def test_python_3_9(self):
        for path in sorted((ROOT / "python").rglob("*.py")):
            text = path.read_text()
            ast.parse(text, feature_version=(3, 9))
            self.assertTrue(ast.get_docstring(ast.parse(text)), path)
            self.assertLessEqual(max(map(len, text.splitlines())), 180, path)

    @needs_data("mnist")
    def test_training(self):
        at = self.folder()
        for _ in range(2):  # the second goes on where the first one ended
            done = subprocess.run([sys.executable, str(ROOT / "examples/mnist.py"), str(DATA / "mnist"), "30"], cwd=at, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                  env={**os.environ, "PYTHONPATH": str(ROOT / "python"), "TG_DEV": "CPU"})
            self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("going on from", done.stdout)
        self.assertGreater(float(done.stdout.split("accuracy")[1].split()[0]), 80)

    def test_example(self):
        code, said = python((ROOT / "examples/mnist.py").read_text().replace("sys.argv", "['mnist.py']"))
        self.assertEqual((code, said), (2, "usage: mnist.py FOLDER [STEPS]\n"))


if __name__ == "__main__":
    unittest.main()
