"""Training texts: sentences of technical English, tools, and queries made out of both.

usage: texts.py gather OUT.gz FOLDER…   sentences of the READMEs and doc comments below the folders
       texts.py words SENTENCES.gz CORPUS OUT   every word of them, one a line, for `cargo xtask search-words`
"""

import gzip
import json
import os
import random
import re
import sys
from collections import Counter

STOP = set(
    "a about all an and any are as at be by can could do for from have help how i if in into is it its like me my "
    "need of on or our please s so some t that the their them then there these this to us use using want was we what "
    "which will with would you your".split()
)
MOST_SENTENCES = 600_000
RUN = re.compile(r"[A-Za-z0-9]+")
PART = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
PLURAL = re.compile(r"([A-Z]{2,})s\b")


def words(text):
    """Lower-case words; an identifier gives its parts and itself, as the search does it."""
    out = []
    for run in RUN.findall(PLURAL.sub(r"\1", text)):
        parts = PART.findall(run)
        out += [part.lower() for part in parts]
        if len(parts) > 1:
            out.append(run.lower())
    return out


def spaced(identifier):
    """An identifier as words for the teacher."""
    return re.sub(r"[_\-./:]+", " ", re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", identifier))


class Tool:
    """One tool of a corpus in the form of the search benchmark."""

    def __init__(self, line):
        tool = json.loads(line)
        self.server = spaced(tool["server"].split("/")[-1])
        self.name = spaced(tool["name"])
        self.description = (tool["description"] or "").strip()
        self.raw_server, self.raw_name = tool["server"], tool["name"]
        schema = tool.get("inputSchema") or {}
        properties = schema.get("properties") if isinstance(schema, dict) else None
        self.properties = properties if isinstance(properties, dict) else {}
        self.lead = re.split(r"(?<=[.!?])\s|\n", self.description)[0]
        self.rest = self.description[len(self.lead) :]

    def views(self):
        """What the teacher reads of it: everything, the gist, the name."""
        return (
            f"{self.server} {self.name}: {self.description}",
            f"{self.name}: {self.lead}",
            f"{self.server} {self.name}",
        )

    def fields(self):
        """What the search indexes, with the most words of each; the order is that of the table's field weights."""
        return (
            (words(self.raw_name), 16),
            (words(self.raw_server), 12),
            (words(self.lead), 40),
            (words(self.rest), 64),
            ([word for name in self.properties for word in words(name)], 24),
        )

    def sentences(self):
        yield self.name
        yield f"{self.server} {self.name}"
        for sentence in re.split(r"(?<=[.!?])\s+|\n", self.description):
            if 2 <= len(sentence.split()) <= 40:
                yield sentence
        for name, schema in list(self.properties.items())[:12]:
            if isinstance(schema, dict) and isinstance(schema.get("description"), str):
                yield f"{spaced(name)} {schema['description'][:160]}"


def read_tools(path):
    opened = gzip.open(path, "rt") if path.endswith(".gz") else open(path, encoding="utf-8")
    with opened as file:
        return [Tool(line) for line in file if line.strip()]


def read_sentences(path):
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [line.rstrip("\n") for line in file]


def queries(sources, count, rng):
    """Short queries: neighbouring or scattered content words of a text."""
    content, made = {}, []
    while len(made) < count:
        at = rng.randrange(len(sources))
        if at not in content:
            found = re.findall(r"[A-Za-z][A-Za-z0-9]+", spaced(sources[at]))
            content[at] = [word for word in found if word.lower() not in STOP]
        source = content[at]
        if len(source) < 2:
            continue
        length = rng.choice((1, 2, 2, 3, 3, 4, 5, 7))
        if rng.random() < 0.6:
            start = rng.randrange(max(1, len(source) - length))
            made.append(" ".join(source[start : start + length]))
        else:
            made.append(" ".join(rng.sample(source, min(length, len(source)))))
    return made


def gather(out, folders):
    """Sentences of 3 to 32 words, nearly all letters, each once."""
    seen = {}
    for folder in folders:
        for place, _, names in os.walk(folder):
            for name in names:
                for sentence in sentences_of(os.path.join(place, name)):
                    seen.setdefault(sentence.lower(), sentence)
    found = list(seen.values())
    random.Random(1).shuffle(found)
    with gzip.open(out, "wt", encoding="utf-8") as file:
        file.writelines(sentence + "\n" for sentence in found[:MOST_SENTENCES])


def sentences_of(path):
    kind = os.path.splitext(path)[1].lower()
    comments = {".rs": r"(?m)^\s*//[/!] ?(.*)$", ".ts": r"(?m)^\s*\*\s+(.*)$", ".js": r"(?m)^\s*\*\s+(.*)$"}
    if kind not in (".md", ".rst", ".txt", ".py", *comments):
        return
    try:
        if os.path.getsize(path) > 400_000:
            return
        with open(path, encoding="utf-8", errors="ignore") as file:
            text = file.read()
    except OSError:
        return
    if kind in comments:
        pieces = re.findall(comments[kind], text)
    elif kind == ".py":
        pieces = [s for doc in re.findall(r'"""(.*?)"""', text, re.S) for s in re.split(r"(?<=[.!?])\s+|\n\s*\n", doc)]
    else:
        text = re.sub(r"```.*?```|<[^>]+>", " ", text, flags=re.S)
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text).replace("`", "")
        paragraphs = re.split(r"\n\s*\n|\n[-*#|]", text)
        pieces = [s for paragraph in paragraphs for s in re.split(r"(?<=[.!?])\s+", paragraph)]
    for piece in pieces:
        sentence = re.sub(r"\s+", " ", piece).strip(" -*#>`|:")
        letters = sum(char.isalpha() or char == " " for char in sentence)
        if 3 <= len(sentence.split()) <= 32 and len(sentence) <= 220 and letters >= 0.85 * len(sentence):
            yield sentence


def list_words(sentences, corpus, out):
    """Words that occur often enough to be worth a vector; those of tools count more."""
    counted = Counter(word for sentence in read_sentences(sentences) for word in words(sentence))
    for tool in read_tools(corpus):
        for found in (*(field for field, _ in tool.fields()), *(words(text) for text in tool.sentences())):
            counted.update({word: 20 for word in found})
    with open(out, "w", encoding="utf-8") as file:
        file.writelines(f"{word}\n" for word, count in counted.items() if count >= 3)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["gather", out, *folders] if folders:
            gather(out, folders)
        case ["words", sentences, corpus, out]:
            list_words(sentences, corpus, out)
        case _:
            sys.exit(__doc__)
