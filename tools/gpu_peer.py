"""The cases of `tg bench ops` by PyTorch on the same GPU: one JSON object a line, {"case": .., "us": ..}, the best of some samples of replays
without waiting between. Eager; scaled_dot_product_attention and matmul are cuDNN's, cuBLAS's or whatever PyTorch chooses."""
import json
import torch

torch.backends.cuda.matmul.allow_tf32 = False
torch.manual_seed(1)


def normal(*dims, dtype=torch.float32):
    return torch.randn(*dims, device="cuda").to(dtype)


def cases():
    flat, other, square = normal(1 << 26), normal(1 << 26), normal(8192, 8192)
    small, q = normal(4096, 4096), normal(1, 16, 2048, 64)
    small_bf16, square_bf16 = small.to(torch.bfloat16), square.to(torch.bfloat16)
    functional = torch.nn.functional
    yield "copy", lambda: flat + 1
    yield "add", lambda: flat + other
    yield "gelu", lambda: functional.gelu(flat, approximate="tanh")
    yield "sum", lambda: flat.sum()
    yield "sum-rows", lambda: square.sum(-1)
    yield "softmax", lambda: square.softmax(-1)
    yield "layer-norm", lambda: functional.layer_norm(square, (8192,))
    yield "transpose", lambda: square.t().contiguous()
    yield "cumsum", lambda: square.cumsum(1)
    yield "matmul-f32-4096", lambda: small @ small
    yield "matmul-bf16-4096", lambda: small_bf16 @ small_bf16
    yield "matmul-bf16-8192", lambda: square_bf16 @ square_bf16
    yield "attention-f32", lambda: functional.scaled_dot_product_attention(q, q, q, is_causal=True)


def microseconds(run, samples=5):
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)

    def timed(times):
        torch.cuda.synchronize()
        begin.record()
        for _ in range(times):
            run()
        end.record()
        torch.cuda.synchronize()
        return begin.elapsed_time(end) * 1e3 / times

    timed(3)
    times = max(1, int(20e3 / max(timed(1), 1)))
    return min(timed(times) for _ in range(samples))


for name, run in cases():
    print(json.dumps({"case": name, "us": round(microseconds(run), 2)}), flush=True)
