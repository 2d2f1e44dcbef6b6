#!/usr/bin/env python3
"""make_nn.py: writes nn.txt, what tests/unit/test_nn.c expects of layers, optimisers and schedules, with PyTorch.

  layer NAME [number ..]        the numbers that the test makes the layer with
  t NAME RANK size .. : value ..      tensors by their names in the state dictionary, then x, y, and g.NAME, the gradients of sum(y * w), w of wave()
  optim NAME [field=value ..]   100 losses of a small network from the weights of wave(), every tenth, and the last weights
  gpt                           100 losses of a small GPT, every tenth
  rate NAME [number ..] : value ..    a schedule: the rate of each epoch
Where PyTorch has no such thing (LARS, LAMB, Muon in f32, LayerNorm2d) the formula of the paper or of the layer is written out here.
Needed to make the file, never to run the tests:  python3 tests/goldens/make_nn.py > tests/goldens/nn.txt
"""
import math, sys
import torch
import torch.nn as nn

torch.set_default_dtype(torch.float64)
out = sys.stdout

def wave(shape, phase):                                     # as wave() of the test
    n = math.prod(shape)
    return torch.tensor([math.sin(1.7 * i + phase) for i in range(n)]).reshape(shape)
def put(name, t, digits='%.8g'):
    t = t.detach()
    out.write(f"t {name} {t.dim()}{''.join(' %d' % s for s in t.shape)} : {' '.join(digits % v for v in t.reshape(-1).tolist())}\n")

# ---- layers
class LayerNorm2d(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(c)), nn.Parameter(torch.zeros(c))
    def forward(self, x):
        return nn.functional.layer_norm(x.permute(0, 2, 3, 1), (len(self.weight),), self.weight, self.bias).permute(0, 3, 1, 2)
class Cell(nn.LSTMCell):
    def forward(self, x):
        h, c = super().forward(x)
        h, c = super().forward(x, (h, c))
        return torch.cat([h, c], 1)

class Rnn(nn.Module):                                       # outputs and last states in one row; first states as state() of the test
    def __init__(self, kind, given, *numbers, **options):
        super().__init__()
        self.rnn, self.given = kind(*numbers, **options), given
    def named_parameters(self): return self.rnn.named_parameters()
    def forward(self, x):
        r = self.rnn
        shape = (r.num_layers * (1 + r.bidirectional), x.shape[0 if r.batch_first else 1], r.hidden_size)
        if x.dim() == 2: shape = (shape[0], shape[2])
        lstm = isinstance(r, nn.LSTM)
        s = (wave(shape, 0.7), wave(shape, 0.9)) if lstm else wave(shape, 0.7)
        y, last = r(x, s) if self.given else r(x)
        return torch.cat([t.reshape(-1) for t in (y, *(last if lstm else [last]))])
class Heads(nn.Module):                                     # x is queries, keys and values; or their first kdim and vdim columns
    def __init__(self, kind, *numbers, **options):
        super().__init__()
        self.heads, self.kind = nn.MultiheadAttention(*numbers, **options), kind
    def named_parameters(self): return self.heads.named_parameters()
    def forward(self, x):
        m, n = self.heads, x.shape[1 if self.heads.batch_first else 0]
        later = torch.triu(torch.ones(n, n), 1).bool()
        mask = later if self.kind == 1 else wave((n, n), 0.2) if self.kind == 2 else None
        y, w = m(x, x[..., :m.kdim], x[..., :m.vdim], attn_mask=mask)
        return torch.cat([y.reshape(-1), w.reshape(-1)])

def layer(name, numbers, m, x, train=False, index=False):
    out.write(f"layer {name}{''.join(' %g' % v for v in numbers)}\n")
    for i, (k, p) in enumerate(m.named_parameters()): p.data = wave(p.shape, i + 1)
    m.train(train)
    if not index: x = x.requires_grad_(True)
    y = m(x)
    (y * wave(y.shape, 0.5)).sum().backward()
    put('x', x), put('y', y)
    for k, p in m.named_parameters(): put('g.' + k, p.grad)
    if not index: put('g.x', x.grad)
    for k, b in m.named_buffers():
        if b.is_floating_point(): put(k, b)

X = wave
layer('linear', (3, 4), nn.Linear(3, 4), X((2, 3), 0))
layer('conv1d', (4, 6, 3, 2, 1, 1, 2), nn.Conv1d(4, 6, 3, 2, 1, 1, 2), X((2, 4, 9), 0))
layer('conv2d', (2, 4, 3, 2, 1, 1, 2), nn.Conv2d(2, 4, 3, 2, 1, 1, 2), X((1, 2, 6, 5), 0))
layer('conv2d_same', (2, 3, 4, 1, 0, 1, 1), nn.Conv2d(2, 3, 4, padding='same'), X((1, 2, 5, 6), 0))
layer('conv3d', (2, 2, 2), nn.Conv3d(2, 2, 2), X((1, 2, 3, 3, 4), 0))
layer('conv_transpose1d', (4, 6, 3, 2, 1, 2, 1), nn.ConvTranspose1d(4, 6, 3, 2, 1, 1, 2), X((1, 4, 5), 0))
layer('conv_transpose2d', (2, 3, 3, 2, 1, 1, 0), nn.ConvTranspose2d(2, 3, 3, 2, 1), X((1, 2, 4, 3), 0))
layer('layer_norm', (3, 4), nn.LayerNorm((3, 4)), X((2, 3, 4), 0))
layer('layer_norm2d', (3,), LayerNorm2d(3), X((2, 3, 2, 2), 0))
layer('group_norm', (2, 4), nn.GroupNorm(2, 4), X((2, 4, 3), 0))
layer('instance_norm', (3,), nn.InstanceNorm2d(3, affine=True), X((2, 3, 2, 3), 0))
layer('rms_norm', (5,), nn.RMSNorm(5, eps=1e-6), X((2, 5), 0))
layer('batch_norm', (3, 1), nn.BatchNorm2d(3), X((2, 3, 2, 2), 0), train=True)
layer('batch_norm', (3, 0), nn.BatchNorm2d(3), X((2, 3, 2, 2), 0))
layer('batch_norm_untracked', (3, 0), nn.BatchNorm2d(3, track_running_stats=False), X((2, 3, 2, 2), 0))
layer('embedding', (5, 3), nn.Embedding(5, 3), torch.tensor([[4, 0], [4, 2]]), index=True)
layer('lstm_cell', (3, 2), Cell(3, 2), X((2, 3), 0))

# in, hidden, layers, both ways, batch first, states given
for name, kind in (('lstm', nn.LSTM), ('gru', nn.GRU)):
    layer(name, (3, 2, 1, 0, 0, 0), Rnn(kind, False, 3, 2), X((4, 2, 3), 0))
    layer(name, (3, 2, 2, 1, 0, 1), Rnn(kind, True, 3, 2, 2, bidirectional=True), X((3, 2, 3), 0))
    layer(name, (2, 3, 2, 0, 1, 1), Rnn(kind, True, 2, 3, 2, batch_first=True), X((2, 3, 2), 0))
    layer(name, (2, 3, 1, 1, 0, 1), Rnn(kind, True, 2, 3, bidirectional=True), X((3, 2), 0))
# width, heads, kdim, vdim, batch first, mask (1 causal, 2 added)
layer('multihead_attention', (4, 2, 4, 4, 0, 0), Heads(0, 4, 2), X((3, 2, 4), 0))
layer('multihead_attention', (4, 2, 4, 4, 1, 1), Heads(1, 4, 2, batch_first=True), X((2, 3, 4), 0))
layer('multihead_attention', (6, 3, 5, 2, 0, 2), Heads(2, 6, 3, kdim=5, vdim=2), X((3, 2, 6), 0))
layer('multihead_attention', (4, 1, 4, 4, 0, 0), Heads(0, 4, 1), X((3, 4), 0))

# ---- optimisers
class Lars(torch.optim.Optimizer):
    def __init__(self, p, lr, momentum=0.9, weight_decay=1e-4, trust=1e-3, classic=False):
        super().__init__(p, dict(lr=lr, momentum=momentum, decay=weight_decay, trust=trust, classic=classic))
    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group['params']:
                wn, gn, decay = p.norm(), p.grad.norm(), group['decay']
                rate = group['lr'] * (group['trust'] * wn / (gn + decay * wn) if wn > 0 and gn > 0 else 1)
                g = p.grad + decay * p
                b = self.state[p].setdefault('b', torch.zeros_like(p))
                b.mul_(group['momentum']).add_(g * rate if group['classic'] else g)
                p.sub_(b if group['classic'] else b * rate)
class Lamb(torch.optim.Optimizer):
    def __init__(self, p, lr, betas=(0.9, 0.999), eps=1e-6, weight_decay=0.0):
        super().__init__(p, dict(lr=lr, betas=betas, eps=eps, decay=weight_decay))
    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group['params']:
                s = self.state[p]
                if not s: s.update(t=0, m=torch.zeros_like(p), v=torch.zeros_like(p))
                s['t'] += 1
                b1, b2 = group['betas']
                s['m'].mul_(b1).add_(p.grad, alpha=1 - b1)
                s['v'].mul_(b2).addcmul_(p.grad, p.grad, value=1 - b2)
                up = (s['m'] / (1 - b1 ** s['t'])) / ((s['v'] / (1 - b2 ** s['t'])).sqrt() + group['eps']) + group['decay'] * p
                wn, un = p.norm(), up.norm()
                p.sub_(group['lr'] * (wn / un if wn > 0 and un > 0 else 1) * up)
class Muon(torch.optim.Optimizer):                          # torch.optim.Muon without its rounding to bf16
    def __init__(self, p, lr, momentum=0.95, weight_decay=0.1):
        super().__init__(p, dict(lr=lr, momentum=momentum, decay=weight_decay))
    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group['params']:
                b = self.state[p].setdefault('b', torch.zeros_like(p))
                b.lerp_(p.grad, 1 - group['momentum'])
                x = p.grad.lerp(b, group['momentum'])
                tall = x.shape[0] > x.shape[1]
                if tall: x = x.T
                x = x / (x.norm() + 1e-7)
                for _ in range(5):
                    a = x @ x.T
                    x = 3.4445 * x + (-4.775 * a + 2.0315 * a @ a) @ x
                if tall: x = x.T
                p.mul_(1 - group['lr'] * group['decay'])
                p.sub_(group['lr'] * math.sqrt(max(1, p.shape[0] / p.shape[1])) * x)

def optim(name, make, fields='', clip=None, value=None, every=None, accumulate=1):
    out.write(f"optim {name} {fields}\n")
    p = [nn.Parameter(wave(s, i + 1) * 0.5) for i, s in enumerate([(8, 4), (8,), (3, 8), (3,)])]
    if name == 'muon': p = [p[0], p[2]]
    x, y, losses = wave((16, 4), 0.3) * 2, wave((16, 3), 0.9), []
    o = make(p)
    for step in range(100):
        o.zero_grad()
        for part in range(accumulate):
            xs, ys = (x, y) if accumulate == 1 else (x[8 * part:8 * part + 8], y[8 * part:8 * part + 8])
            h = torch.tanh(xs @ p[0].T + (p[1] if name != 'muon' else 0))
            loss = ((h @ (p[2] if name != 'muon' else p[1]).T + (p[3] if name != 'muon' else 0) - ys) ** 2).mean() / accumulate
            loss.backward()
        losses.append(loss.item())
        if clip: nn.utils.clip_grad_norm_(p, clip)
        if value: nn.utils.clip_grad_value_(p, value)
        o.step()
    put('losses', torch.tensor(losses[::10] + losses[-1:]))
    for i, w in enumerate(p): put(f'p{i}', w)

T = torch.optim
optim('sgd', lambda p: T.SGD(p, 0.1), 'lr=0.1')
optim('sgd', lambda p: T.SGD(p, 0.05, 0.9, weight_decay=0.01, nesterov=True), 'lr=0.05 momentum=0.9 weight_decay=0.01 nesterov=1')
optim('sgd', lambda p: T.SGD(p, 0.1), 'lr=0.1 clip_norm=0.2', clip=0.2)
optim('sgd', lambda p: T.SGD(p, 0.1), 'lr=0.1 clip_value=0.02', value=0.02)
optim('sgd', lambda p: T.SGD(p, 0.1), 'lr=0.1 accumulate=2', accumulate=2)
optim('lars', lambda p: Lars(p, 1.0, trust=0.004), 'lr=1 trust=0.004')
optim('lars', lambda p: Lars(p, 1.0, trust=0.004, classic=True), 'lr=1 trust=0.004 classic=1')
optim('muon', lambda p: Muon(p, 0.02), 'lr=0.02')
optim('adam', lambda p: T.Adam(p, 0.01, weight_decay=0.01), 'lr=0.01 weight_decay=0.01')
optim('adamw', lambda p: T.AdamW(p, 0.01), 'lr=0.01')
optim('lamb', lambda p: Lamb(p, 0.01, weight_decay=0.02), 'lr=0.01 weight_decay=0.02')
optim('rmsprop', lambda p: T.RMSprop(p, 0.003), 'lr=0.003')
optim('rmsprop', lambda p: T.RMSprop(p, 0.001, momentum=0.9, centered=True, weight_decay=0.01), 'lr=0.001 momentum=0.9 centered=1 weight_decay=0.01')
optim('adagrad', lambda p: T.Adagrad(p, 0.05), 'lr=0.05')
optim('adadelta', lambda p: T.Adadelta(p, 1.0), 'lr=1')
optim('adamax', lambda p: T.Adamax(p, 0.01), 'lr=0.01')
optim('nadam', lambda p: T.NAdam(p, 0.01), 'lr=0.01')
optim('radam', lambda p: T.RAdam(p, 0.01), 'lr=0.01')

# ---- a GPT of characters, as cli/train_tasks.c has it: 100 steps of AdamW
def gpt():
    C, T, V, B, H = 32, 8, 10, 4, 32
    shapes = [(V, C), (T, C)]
    for _ in range(2): shapes += [(C,), (C,), (3 * C, C), (3 * C,), (C, C), (C,), (C,), (C,), (4 * C, C), (4 * C,), (C, 4 * C), (C,)]
    shapes += [(C,), (C,)]
    norms = {i for l in range(2) for i in (2 + 12 * l, 8 + 12 * l)} | {26}
    p = [nn.Parameter(wave(s, i + 1) * 0.1 + (1 if i in norms else 0)) for i, s in enumerate(shapes)]
    x = torch.tensor([[(3 * b + 5 * t + t * t) % V for t in range(T)] for b in range(B)])
    y = torch.tensor([[(3 * b + 5 * (t + 1) + (t + 1) ** 2) % V for t in range(T)] for b in range(B)])
    F, o, losses = nn.functional, torch.optim.AdamW(p, 3e-4), []
    for step in range(100):
        h = p[0][x] + p[1]
        for l in range(2):
            w = p[2 + 12 * l:14 + 12 * l]
            q, k, v = F.linear(F.layer_norm(h, (C,), w[0], w[1]), w[2], w[3]).split(C, 2)
            q, k, v = (t.view(B, T, C // H, H).transpose(1, 2) for t in (q, k, v))
            a = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(B, T, C)
            h = h + F.linear(a, w[4], w[5])
            h = h + F.linear(F.gelu(F.linear(F.layer_norm(h, (C,), w[6], w[7]), w[8], w[9]), approximate='tanh'), w[10], w[11])
        loss = F.cross_entropy((F.layer_norm(h, (C,), p[26], p[27]) @ p[0].T).reshape(-1, V), y.reshape(-1))
        o.zero_grad()
        loss.backward()
        losses.append(loss.item())
        o.step()
    out.write("gpt\n")
    put('losses', torch.tensor(losses[::10] + losses[-1:]))
gpt()

# ---- schedules
def rates(name, numbers, make, epochs, metrics=None):
    o = T.SGD([nn.Parameter(torch.zeros(1))], 0.5)
    s, v = make(o), []
    for e in range(epochs):
        v.append(o.param_groups[0]['lr'])
        o.step()
        s.step(metrics[e]) if metrics else s.step()
    out.write(f"rate {name}{''.join(' %g' % n for n in numbers)} : {' '.join('%.12g' % r for r in v)}\n")
L = T.lr_scheduler
rates('multi_step', (3, 7, 0.2), lambda o: L.MultiStepLR(o, [3, 7], 0.2), 10)
rates('steps', (4, 0.3), lambda o: L.StepLR(o, 4, 0.3), 10)
rates('exponential', (0.8,), lambda o: L.ExponentialLR(o, 0.8), 6)
rates('cosine', (8, 0.1), lambda o: L.CosineAnnealingLR(o, 8, 0.1), 9)
for cosine in (0, 1):
    rates('one_cycle', (2, 12, cosine), lambda o: L.OneCycleLR(o, 2, total_steps=12, anneal_strategy='cos' if cosine else 'linear', cycle_momentum=False), 11)
M = [5, 4, 4, 4, 4.1, 3.9, 3.95, 3.95, 3.95, 3.95, 3.95, 3.95]
rates('plateau', (0.5, 2), lambda o: L.ReduceLROnPlateau(o, factor=0.5, patience=2), 12, M)
rates('plateau_highest', (0.5, 2), lambda o: L.ReduceLROnPlateau(o, 'max', 0.5, 2, threshold=0.1, threshold_mode='abs'), 12, M)
