"""Trains the table of word vectors that search is compiled with, in about three minutes on one large GPU.

A word's vector is learned so that summed, normalised vectors of two texts are as similar as the teacher finds the
texts. Words are the search's own (split identifiers, stemmed), so at run time nothing is tokenised twice and a
misspelt word has the vector of the word that it was taken for.

usage: train.py INPUTS OUT
INPUTS holds minilm.npz and tokenizer.json (teacher.py), sentences.gz (texts.py), stems.tsv.gz
(`cargo xtask search-words`) and corpus.jsonl.gz; OUT gets table.bin, whose form is described in README.md.
"""

import gzip
import os
import random
import struct
import sys
import time
from collections import Counter
from multiprocessing import Pool

import numpy as np
import torch
import torch.nn.functional as f

import texts
from teacher import Teacher

DIMENSIONS = 128
STEPS = 4_000
RATE = 5e-3
# How sharply the teacher's first choices count.
SHARPNESS = 30.0
# The teacher's three views of a tool, mixed.
VIEWS = (1.0, 1.0, 0.5)
# Of each query, so many of the teacher's best tools are those among which the order is learned.
NEAREST = 24
SEED = 0

STEMS = {}


def stems(text):
    return [STEMS[word] for word in texts.words(text) if word in STEMS and word not in texts.STOP]


def padded(rows, width, filler):
    out = np.full((len(rows), width), filler, np.int64)
    for at, row in enumerate(rows):
        out[at, : min(len(row), width)] = row[:width]
    return torch.tensor(out, device="cuda")


class Data:
    """Texts as numbers of words, and what the teacher says of them."""

    def __init__(self, inputs):
        rng = random.Random(SEED)
        path = lambda name: os.path.join(inputs, name)
        with gzip.open(path("stems.tsv.gz"), "rt") as file:
            STEMS.update(line.rstrip("\n").split("\t") for line in file)
        tools = texts.read_tools(path("corpus.jsonl.gz"))
        sentences = texts.read_sentences(path("sentences.gz"))
        plain = sentences + [sentence for tool in tools for sentence in tool.sentences()]
        asked = texts.queries([tool.views()[0] for tool in tools], 500_000, rng)
        asked = list(dict.fromkeys(asked + texts.queries(sentences, 600_000, rng)))
        self.plain, self.asked = len(plain), len(asked)
        with Pool() as pool:
            stemmed = pool.map(stems, plain + asked, chunksize=5_000)
        fields = [[[STEMS[w] for w in ws if w in STEMS][:most] for ws, most in tool.fields()] for tool in tools]
        self.words = self.vocabulary(stemmed[: self.plain], fields)
        number = {word: at for at, word in enumerate(self.words)}
        known = lambda row: [number[word] for word in row if word in number]
        self.texts = padded([known(row) for row in stemmed], 32, len(self.words))
        self.tools = padded([[w for field in tool for w in known(field)] for tool in fields], 156, len(self.words))
        places = [[at for at, field in enumerate(tool) for _ in known(field)] for tool in fields]
        self.fields = f.one_hot(padded(places, 156, 0), 5).float()

        teacher = Teacher(inputs)
        self.taught = teacher(plain + asked)
        views = zip(VIEWS, zip(*(tool.views() for tool in tools)))
        self.taught_tools = f.normalize(sum(share * teacher(list(view)) for share, view in views), dim=1)
        spelling = {}
        for word, stem in STEMS.items():
            if stem not in spelling or len(word) < len(spelling[stem]):
                spelling[stem] = word
        self.first = teacher([spelling[word] for word in self.words])

    @staticmethod
    def vocabulary(plain, fields):
        often = Counter(word for row in plain for word in row)
        in_tools = Counter(word for tool in fields for field in tool for word in field)
        worth = lambda word: often[word] + 8 * in_tools[word]
        plausible = lambda word: word.isascii() and len(word) > 1 and not word.isdigit() and word not in texts.STOP
        return sorted(word for word in often | in_tools if plausible(word) and worth(word) >= 8)

    def nearest_tools(self):
        rows = self.taught[self.plain :].split(8_192)
        return torch.cat([(row @ self.taught_tools.T).topk(NEAREST, 1).indices for row in rows])


class Student:
    """One vector and one weight for each word, and a weight for each field of a tool."""

    def __init__(self, data):
        count = len(data.words)
        centred = data.first - data.first.mean(0)
        axes = torch.linalg.svd(centred, full_matrices=False).Vh[:DIMENSIONS]
        start = torch.cat([centred @ axes.T, torch.zeros(1, DIMENSIONS, device="cuda")])
        self.vectors = (start / start.std() * 0.3).requires_grad_()
        self.weights = torch.zeros(count + 1, device="cuda").requires_grad_()
        self.fields = torch.zeros(5, device="cuda").requires_grad_()
        frequency = torch.bincount(data.texts[: data.plain].flatten(), minlength=count + 1).float()
        frequency[count] = 0
        self.rarity = (1e-4 / (1e-4 + frequency / frequency.sum())).log()
        self.count = count

    def __call__(self, rows, fields=None):
        weight = self.rarity[rows] + f.embedding(rows, self.weights[:, None])[..., 0]
        if fields is not None:
            weight = weight + fields @ self.fields
        weight = weight.exp() * (rows < self.count)
        return f.normalize(f.embedding_bag(rows, self.vectors, per_sample_weights=weight, mode="sum"), dim=1)

    def table(self):
        with torch.no_grad():
            rows = (self.vectors * (self.rarity + self.weights).exp()[:, None])[: self.count]
            scales = rows.abs().amax(1, keepdim=True) / 127 + 1e-12
            return (rows / scales).round().cpu().numpy().astype(np.int8), scales[:, 0].cpu().numpy()


def train(data):
    student, nearest = Student(data), data.nearest_tools()
    optimizer = torch.optim.Adam([student.vectors, student.weights, student.fields], lr=RATE)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=RATE, total_steps=STEPS, pct_start=0.05)
    draw = lambda most, *shape: torch.randint(0, most, shape, device="cuda")
    for step in range(STEPS):
        asked, plain = draw(data.asked, 3_072), draw(data.plain, 2_048)
        close = nearest[asked[:640]].gather(1, draw(NEAREST, 640, 4)).flatten()
        tools = torch.cat([close, draw(len(data.tools), 512)]).unique()
        asked = asked + data.plain
        sentences = student(data.texts[plain])
        left = torch.cat([student(data.texts[asked]), sentences])
        right = torch.cat([student(data.tools[tools], data.fields[tools]), sentences])
        likeness = left @ right.T
        taught_left = torch.cat([data.taught[asked], data.taught[plain]])
        wanted = taught_left @ torch.cat([data.taught_tools[tools], data.taught[plain]]).T
        order = f.kl_div(
            f.log_softmax(likeness * SHARPNESS, 1), f.softmax(wanted * SHARPNESS, 1), reduction="batchmean"
        )
        loss = order + 40 * ((likeness - wanted) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % 1_000 == 0:
            print(step, round(loss.item(), 4), flush=True)
    return student


def fnv(word):
    """The hash by which the search looks words up: FNV-1a of 32 bits."""
    value = 0x811C9DC5
    for byte in word:
        value = ((value ^ byte) * 0x01000193) & 0xFFFFFFFF
    return value


def write(path, words, student):
    rows, scales = student.table()
    text = [word.encode() for word in words]
    order = sorted(range(len(text)), key=lambda at: (fnv(text[at]), text[at]))
    with open(path, "wb") as file:
        file.write(struct.pack("<4sHHI", b"SWT1", DIMENSIONS, len(student.fields), len(text)))
        file.write(student.fields.detach().exp().cpu().numpy().astype("<f4").tobytes())
        file.write(np.array([fnv(text[at]) for at in order], "<u4").tobytes())
        file.write(np.cumsum([len(text[at]) for at in order]).astype("<u4").tobytes())
        file.write(scales[order].astype("<f4").tobytes())
        file.write(rows[order].tobytes())
        file.write(b"".join(text[at] for at in order))


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    torch.manual_seed(SEED)
    started = time.time()
    data = Data(sys.argv[1])
    print(f"{len(data.words)} words, {data.plain} texts, {data.asked} queries, {time.time() - started:.0f} s", flush=True)
    write(os.path.join(sys.argv[2], "table.bin"), data.words, train(data))
    print(f"done after {time.time() - started:.0f} s", flush=True)
