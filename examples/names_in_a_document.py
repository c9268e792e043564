"""A language model meets a document full of names that it has never seen.

A small GPT-2 is trained, in half a minute on a CPU, on short tales. Each tale has people of
its own, whose names are new words to it: like every subword model it spells them out of pieces.
Then it reads a tale that is many times longer than what it can see at once. The memory notes what
the document shows; no weight changes.

    pip install 'labelmem[transformers]'
    python examples/names_in_a_document.py
"""

from __future__ import annotations

import argparse
import json
import math
import random
import time
from collections.abc import Sequence
from pathlib import Path

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

from labelmem import MemoryConfig
from labelmem.interop.transformers import MemoryLM

PIECES = [a + b for a in "bdfgklmnprsvz" for b in ("a", "e", "i", "o", "u", "ar", "en", "il")]
PLACES = "harbour mill forest castle market bridge valley tower inn chapel".split()
TRADES = "baker smith weaver fisher carter mason tailor cooper miller hunter".split()
VERBS = "met helped followed warned paid thanked asked left".split()
WORDS = "the of at was born lives in and then came to seek . ##".split()
CONTEXT = 64
PEOPLE = 12
# A name is recognised by what stands before it, and a piece occurs in many names: a token needs
# many cells, and all that is read is worth noting.
MEMORY = MemoryConfig(lam=40.0, delta=0.0, margin=math.inf, cells_per_label=None, capacity=2000)
GRID = {"theta": (0.3, 0.5, 0.6, 0.7, 0.8, 0.9), "lam": (20.0, 40.0, 80.0)}


def invented_name(dice: random.Random) -> str:
    """Three pieces; ## marks where a name begins, as capitals would."""
    return "## " + " ".join(dice.choices(PIECES, k=3))


def tale(dice: random.Random, people: int, sentences: int) -> str:
    """Sentences about people who are the same all through the tale."""
    cast = [
        (invented_name(dice), invented_name(dice), dice.choice(TRADES), dice.choice(PLACES))
        for _ in range(people)
    ]
    said = []
    for _ in range(sentences):
        (name, home, trade, place), (other, *_) = dice.choices(cast, k=2)
        kinds = [
            f"{name} the {trade} of {home} {dice.choice(VERBS)} {other} .",
            f"{name} was born in {home} and lives at the {place} .",
            f"then {other} came to the {place} to seek {name} the {trade} .",
        ]
        said.append(dice.choice(kinds))
    return " ".join(said)


def make_tokenizer() -> PreTrainedTokenizerFast:
    words = ["<pad>", *WORDS, *PLACES, *TRADES, *VERBS, *PIECES]
    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, "<pad>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<pad>")


def train(texts: Sequence[str], tokenizer: PreTrainedTokenizerFast, steps: int) -> GPT2LMHeadModel:
    config = GPT2Config(
        vocab_size=len(tokenizer),
        n_positions=CONTEXT,
        n_embd=64,
        n_layer=2,
        n_head=4,
        bos_token_id=None,
        eos_token_id=None,
        pad_token_id=tokenizer.pad_token_id,
    )
    model = GPT2LMHeadModel(config)
    rows = [torch.tensor(tokenizer(text)["input_ids"]) for text in texts]
    optimiser = torch.optim.AdamW(model.parameters(), lr=3e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 3e-3, total_steps=steps)
    for _ in range(steps):
        batch = []
        for i in torch.randint(len(rows), (32,)).tolist():
            start = int(torch.randint(len(rows[i]) - CONTEXT + 1, ()))
            batch.append(rows[i][start : start + CONTEXT])
        ids = torch.stack(batch)
        logits = model(input_ids=ids).logits[:, :-1]
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
    return model


def halves(lm: MemoryLM, text: str) -> tuple[float, float]:
    """Perplexity of the first and of the second half of a document, read once."""
    log_probs = lm.stream().read(text)
    middle = len(log_probs) // 2
    first, second = (torch.exp(-part.mean()) for part in (log_probs[:middle], log_probs[middle:]))
    return float(first), float(second)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--steps", type=int, default=400, help="of training")
    parser.add_argument("--sentences", type=int, default=200, help="of the document")
    parser.add_argument("--trials", type=int, default=8, help="settings of the memory to try")
    parser.add_argument("--out", type=Path, help="write the figures here")
    options = parser.parse_args()
    torch.manual_seed(0)
    dice = random.Random(0)

    tokenizer = make_tokenizer()
    start = time.process_time()
    texts = [tale(dice, people=6, sentences=30) for _ in range(500)]
    model = train(texts, tokenizer, options.steps)
    print(f"trained in {time.process_time() - start:.0f} s; it sees {CONTEXT} tokens at once")

    # The memory's settings are chosen on another tale than the one that is measured.
    other = tale(dice, PEOPLE, options.sentences // 2)
    document = tale(dice, PEOPLE, options.sentences)
    figures = {}
    with MemoryLM(model, tokenizer, combiner=0.0) as lm:
        figures["the model"] = halves(lm, document)
    with MemoryLM(model, tokenizer, MEMORY, combiner=0.5) as lm:
        chosen = lm.tune([other], trials=options.trials, grid=GRID).best
        figures["with memory"] = halves(lm, document)
    tokens = len(tokenizer(document)["input_ids"])
    print(f"a document of {tokens} tokens with {2 * PEOPLE} names, perplexity:")
    print(f"{'':14}{'first half':>12}{'second half':>14}")
    for name, (first, second) in figures.items():
        print(f"  {name:12}{first:12.2f}{second:14.2f}")
    if options.out is not None:
        record = {
            "command": f"python examples/names_in_a_document.py --steps {options.steps} "
            f"--sentences {options.sentences} --trials {options.trials} --out {options.out}",
            "tokens": tokens,
            "names": 2 * PEOPLE,
            "context": CONTEXT,
            "chosen": {key: chosen[key] for key in GRID},
            "perplexity": {
                name: {"first half": round(first, 3), "second half": round(second, 3)}
                for name, (first, second) in figures.items()
            },
        }
        options.out.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
