"""datasets.py: data sets from a folder on the disk, and batches that threads make ahead. Nothing is downloaded."""
import ctypes

from .. import abi
from ..calls import lib


def mnist(folder):
    """(train x, train y, test x, test y) of the four idx files, gz or not, Fashion-MNIST's too: u8 (n, 1, 28, 28), (n)."""
    return lib.tg_mnist(folder)


def cifar(folder):
    """CIFAR-10's binary version: u8 (n, 3, 32, 32), (n)."""
    return lib.tg_cifar(folder)


class Batches:
    """Batches of a dataset, made ahead by threads. An epoch is each item once; each `for` is the next epoch. A batch ends
    with the next one. options: as TgLoaderOptions has them: batch (1), shuffle, seed, drop_last, workers, ahead."""

    def __init__(self, dataset, count, **options):
        self.count = count
        self._handle = handle = lib.tg_loader(dataset, **options)
        loader_free, dataset_end = handle.end, abi.function(abi.FUNCTIONS["tg_dataset_end"])

        def end(p):  # the dataset after its loader
            loader_free(p)
            dataset_end(ctypes.addressof(dataset))
        handle.end = handle.context.handles[handle.p] = end

    def __len__(self):
        return lib.tg_loader_batches(self)

    def __iter__(self):
        while True:
            more, batch = lib.tg_loader_next(self, out=self.count)
            if not more:
                return
            batch = [t.detach() for t in batch]  # the loader's own end with the next call
            yield batch[0] if len(batch) == 1 else tuple(batch)

    def seek(self, epoch, batch=0):
        """To a batch, as if all before it had been taken."""
        lib.tg_loader_seek(self, epoch, batch)


class DataLoader(Batches):
    """Batches of tensors whose rows belong together: for x, y in DataLoader(x, y, batch=64, shuffle=True, seed=1)."""

    def __init__(self, *tensors, **options):
        super().__init__(lib.tg_dataset_tensors(tensors), len(tensors), **options)
