"""optim.py: optimisers and schedules of the learning rate; each function of tg_nn.h that makes one is a class here."""
from .. import abi, calls, files
from ..calls import lib

NAMES = {"sgd": "SGD", "adam": "Adam", "adamw": "AdamW", "lamb": "LAMB", "lars": "LARS", "muon": "Muon", "rmsprop": "RMSprop", "adagrad": "Adagrad",
         "adadelta": "Adadelta", "adamax": "Adamax", "nadam": "NAdam", "radam": "RAdam"}
SCHEDULES = {"lr_multi_step": "MultiStepLR", "lr_steps": "StepLR", "lr_exponential": "ExponentialLR", "lr_cosine": "CosineAnnealingLR",
             "lr_warmup_cosine": "WarmupCosineLR", "lr_one_cycle": "OneCycleLR", "lr_plateau": "ReduceLROnPlateau"}


class Optimizer:
    """params: tensors, of which those whose requires_grad was set to False, as running statistics, are left out."""

    def __init__(self, params, lr=None, betas=None, **options):
        self.params = [t for t in params if not t._fixed]
        if not self.params:
            raise ValueError(f"{type(self).__name__}: no parameters to train")
        if betas is not None:
            options["beta1"], options["beta2"] = betas
        self._handle = getattr(lib, f"tg_{self._name}")(self.params, lr=lr, **options)
        for t in self.params:
            calls.live_parameters[id(t)] = t

    def step(self):
        """Updates the parameters that have a gradient, and uses the gradients up."""
        lib.tg_optim_step(self)
        self._forget()

    def accumulate(self):
        """Adds the gradients to memory of the optimiser's own, which the next step takes."""
        lib.tg_optim_accumulate(self)
        self._forget()

    def zero_grad(self):
        lib.tg_optim_zero_grad(self)
        self._forget()

    def _forget(self):
        for t in self.params:
            t._grad = None

    @property
    def lr(self):
        return lib.tg_optim_lr(self)

    @lr.setter
    def lr(self, rate):
        lib.tg_optim_set_lr(self, rate)

    def state_dict(self):
        """What steps remember, by PyTorch's names; the tensors are the optimiser's."""
        s = lib.tg_state_new()
        lib.tg_optim_state(self, s, None)
        return dict(files.lent_items(s))


class OptimizerGroup(Optimizer):
    """Several as one: a step is one schedule."""

    def __init__(self, *optimizers):
        self.optimizers = optimizers
        self.params = [t for o in optimizers for t in o.params]
        self._handle = lib.tg_optim_group(optimizers)


class Schedule:
    """A schedule of the learning rate: made, it sets the rate of epoch 0; step() goes on to the next."""

    def __init__(self, optimizer, *args, **options):
        self.optimizer = optimizer
        self._handle = getattr(lib, f"tg_{self._name}")(optimizer, *args, **options)

    def step(self, metric=None):
        """To the next epoch; ReduceLROnPlateau takes the metric of the one that ended."""
        if metric is None:
            lib.tg_lr_step(self)
        else:
            lib.tg_lr_metric(self, float(metric))

    @property
    def epoch(self):
        return lib.tg_lr_epoch(self)


class GradScaler:
    """Multiplies a loss, so that gradients in f16 do not vanish: scaler.scale(loss).backward(), then scaler.step(optimizer),
    which updates only if all gradients are finite. options: as TgScalerOptions has them."""

    def __init__(self, **options):
        self._handle = lib.tg_scaler(**options)

    def scale(self, loss):
        return lib.tg_scaler_scale(self, loss)

    def step(self, optimizer):
        lib.tg_scaler_step(self, optimizer)
        optimizer._forget()

    @property
    def value(self):
        """The scale as it is now."""
        return lib.tg_scaler_value(self)

    def state_dict(self):
        s = lib.tg_state_new()
        lib.tg_scaler_state(self, s, None)
        return dict(files.lent_items(s))


def clip_grad_norm(params, most):
    """All gradients times most / their norm together, where that is larger; gives the norm."""
    return lib.tg_clip_grad_norm([t for t in params if not t._fixed], most)


def clip_grad_value(params, most):
    lib.tg_clip_grad_value([t for t in params if not t._fixed], most)


for name, python in {**NAMES, **SCHEDULES}.items():
    entry = abi.MACROS.get(f"tg_{name}") or abi.FUNCTIONS[f"tg_{name}"]
    base = Optimizer if name in NAMES else Schedule
    globals()[python] = type(python, (base,), {"_name": name, "__doc__": f"{base.__doc__}\n\n{calls.Function(entry).__doc__}", "__module__": __name__})
