"""The package in a process: memory of long loops, threads, forks, Ctrl-C, the end of the interpreter, which library is taken."""
import gc
import os
import pathlib
import threading
import unittest

from support import Case, numbers, python
from tinygrad_c import StateError, Tensor, TinyJit, nn


def resident():
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def live():
    gc.collect()
    return sum(isinstance(o, Tensor) for o in gc.get_objects())


@unittest.skipIf(not os.path.exists("/proc/self/statm"), "what memory is used is read from /proc")
class Lifetimes(Case):
    def flat(self, loop, n, most=3 << 20):
        """n times around after a first lot: tensors and the memory of the process stay as they are."""
        loop(n // 4)
        tensors, before = live(), resident()
        loop(n)
        self.assertLessEqual(live(), tensors)
        self.assertLess(resident() - before, most)

    def test_operations(self):
        x = Tensor(numbers(1, 8, 8)).realize()

        def loop(n):
            for i in range(n):
                y = (x + i).relu().sum(axis=1)[None].reshape(2, 4)
                if i % 100 == 0:
                    y.realize()
        self.flat(loop, 4000)  # five operations each

    def test_data(self):
        big = bytes(1 << 20)

        def loop(n):
            for _ in range(n):
                Tensor(big).realize()
        self.flat(loop, 200)

    def test_training(self):
        x, w = Tensor(numbers(1, 8, 8)), Tensor(numbers(2, 8, 8))
        opt = nn.optim.Adam([w])

        def loop(n):
            for _ in range(n):
                (x @ w - 1).square().mean().backward()
                opt.step()
        self.flat(loop, 400)
        step = TinyJit(lambda x: ((x @ w).sum().backward(), opt.step())[0])

        def captured(n):
            for _ in range(n):
                step(x).realize()
        self.flat(captured, 2000)

    def test_handles(self):
        def loop(n):
            for _ in range(n):
                m = nn.Linear(3, 3)
                nn.optim.SGD(nn.state.get_parameters(m))
                f = TinyJit(lambda t: t + 1)
                f(Tensor([1.0])), f(Tensor([1.0]))
                del f
            gc.collect()
        self.flat(loop, 100)

    def test_cycles(self):
        """What a cycle holds ends in any order, an optimiser before its parameters."""
        for _ in range(20):
            box = {"m": nn.Linear(3, 3)}
            box["o"] = nn.optim.Adam(nn.state.get_parameters(box["m"]))
            box["m"](Tensor([[1.0] * 3])).sum().backward()
            box["o"].step()
            box["self"] = box
        del box
        gc.collect()
        self.assertEqual(Tensor([1.0]).sum().item(), 1)


class Threads(Case):
    def test_share(self):
        """A tensor may be used in any thread; calls go one at a time."""
        x, got, wrong = Tensor([1.0, 2.0]), [], []

        def work(k):
            try:
                for i in range(30):
                    got.append((k, i, ((x * k + i).sum() + Tensor([float(i)])).item()))
                    if i % 10 == 3:
                        with self.assertRaises(ValueError):
                            x.reshape(3 + k)
            except BaseException as e:
                wrong.append(e)
        threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        self.assertEqual(wrong, [])
        self.assertEqual(len(got), 180)
        self.assertTrue(all(v == 3 * k + 3 * i for k, i, v in got))

    @unittest.skipIf(not hasattr(os, "fork"), "no fork here")
    def test_fork(self):
        x = Tensor([1.0, 2.0]).realize()
        read, write = os.pipe()
        child = os.fork()
        if not child:
            try:
                try:
                    x + 1
                    said = "it was taken"
                except StateError as e:
                    said = f"{Tensor([3.0]).sum().item()} {e}"
            except BaseException as e:
                said = repr(e)
            os.write(write, said.encode())
            os._exit(0)
        os.waitpid(child, 0)
        said = os.read(read, 1000).decode()
        self.assertRegex(said, r"^3.0 this tensor belongs to the process that this one was forked from")
        self.assertEqual(x.sum().item(), 3)

    def test_multiprocessing(self):
        code, said = python("""
import multiprocessing, tinygrad_c
def work(t): return (t * 2).tolist()
if __name__ == '__main__':
    x = tinygrad_c.Tensor([1.0, 2.0])
    with multiprocessing.Pool(2) as pool: print(pool.map(work, [x, x + 1]))
""")
        self.assertEqual((code, said), (0, "[[2.0, 4.0], [4.0, 6.0]]\n"))


LONG = """
import os, signal, threading, time
from tinygrad_c import Tensor
x = Tensor([[float(i + j) for j in range(8)] for i in range(8)]).realize()
def work():
    y = x
    for n in range(100000):
        y = ((y * .1).sin() @ x).softmax(1).cumsum(0) + 1 / (n + 1)
        if n % 7 == 0: y.realize()
for _ in range(3):
    threading.Timer(.4, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    begin = time.time()
    try: work()
    except KeyboardInterrupt: print("stopped", time.time() - begin < 5)
    print((x[0] + 1).sum().item())
"""


class Interrupts(Case):
    def test_ctrl_c(self):
        for device in ("INTERP", "CPU"):  # interpreting, compiling
            code, said = python(LONG, TG_DEV=device, TG_CACHE="0")
            self.assertEqual((code, said), (0, "stopped True\n36.0\n" * 3), device)

    def test_handlers(self):
        """A handler of the user's own is called, and nothing is stopped; who listened for signals before still hears them."""
        code, said = python("""
import asyncio, os, signal, threading
from tinygrad_c import Tensor
hit = []
signal.signal(signal.SIGINT, lambda *_: hit.append("mine"))
threading.Timer(.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
y = Tensor([1.0] * 64).reshape(8, 8)
while not hit: y = (y @ y).softmax(0).realize()
print(hit, y.sum().item())
async def main():
    heard = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, heard.set)
    os.kill(os.getpid(), signal.SIGUSR1)
    Tensor([1.0]).realize()
    await asyncio.wait_for(heard.wait(), 5)
    print("heard")
asyncio.run(main())
""")
        self.assertEqual((code, said), (0, "['mine'] 8.0\nheard\n"))


class Ends(Case):
    def test_exit(self):
        """The interpreter ends with tensors, handles and threads alive, and with an exception."""
        code, said = python("""
import atexit, sys, tinygrad_c
from tinygrad_c import Tensor, TinyJit, nn
sys.keep = [Tensor([1.0]).realize(), nn.Linear(2, 2), nn.optim.Adam([Tensor([1.0])]), TinyJit(lambda x: x)]
sys.keep[3](Tensor([1.0])), sys.keep[3](Tensor([1.0]))
class Late:
    def __del__(self): print('late', sys.keep is not None)
late = Late()
late.t = Tensor([1.0])
print(late.t.item())
""")
        self.assertEqual((code, said.splitlines()[0]), (0, "1.0"))
        self.assertNotIn("rror", said)
        code, said = python("from tinygrad_c import Tensor\nx = Tensor([1.0, 2.0]) + 1\nx.reshape(7)")
        self.assertEqual(code, 1)
        self.assertIn("tinygrad_c.ShapeError: reshape: (2)", said)
        self.assertEqual(said.count("Traceback"), 1)

    def test_library(self):
        """A library or an ABI file that does not fit is refused, with a message."""
        at, build = self.folder(), pathlib.Path(os.environ["TINYGRAD_C"])
        name = next(n for n in ("libtinygrad.so", "libtinygrad.dylib") if (build / n).exists())
        code, said = python("import tinygrad_c", TINYGRAD_C=str(at))
        self.assertIn(f"there is no {name}", said)
        (at / name).symlink_to(build / name)
        (at / "tg_abi.json").write_text("{}")
        code, said = python("import tinygrad_c", TINYGRAD_C=str(at))
        self.assertIn("is not the tg_abi.json of this package", said)
        (at / "tg_abi.json").write_text((build / "tg_abi.json").read_text().replace('"version": "0', '"version": "99'))
        code, said = python("import tinygrad_c", TINYGRAD_C=str(at))
        self.assertRegex(said, r"is version 0\.[\d.]+, but .* is of version 99")
        (at / "tg_abi.json").write_text((build / "tg_abi.json").read_text())
        code, said = python("import tinygrad_c; print(tinygrad_c.Tensor([1]).item())\ntry: import tinygrad_c.llm\nexcept ImportError as e: print(e)", TINYGRAD_C=str(at))
        self.assertRegex(said, r"^1\n.*libtinygrad_llm.* does not load")
        (at / name).unlink()
        (at / name).write_bytes(b"no library")
        code, said = python("import tinygrad_c", TINYGRAD_C=str(at))
        self.assertIn("does not load", said)

    def test_device(self):
        code, said = python("from tinygrad_c import Tensor\nTensor([1.0])", TG_DEV="NOWHERE")
        self.assertRegex(said, r"(DeviceError|ArgumentError): .*NOWHERE")


if __name__ == "__main__":
    unittest.main()
