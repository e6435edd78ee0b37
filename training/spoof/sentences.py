"""Sentences for the synthesizers: short, of many shapes, with digits and names as callers say them. Made from parts so that no text corpus is needed."""
import random

WHO = "my sister|the old captain|a young doctor|nobody in the office|our neighbour's cat|the night porter|every second caller|the bank|that tall stranger|a friend of Julia".split("|")
DID = "opened|could not find|was asking about|has already paid for|quietly repaired|brought back|wrote down|will never forget|finally sold|measured".split("|")
WHAT = "the blue garden gate|three boxes of oranges|a very long letter|her brother's violin|the password|this strange machine|two hundred tickets|an account in Geneva|the weather report|half of the bread".split("|")
WHEN = "before the rain began|on Thursday morning|without saying a word|because the train was late|in spite of the noise|as usual|at a quarter past seven|while everybody slept|for the first time|last year in October".split("|")
PHRASES = "my voice is my password|please connect me to an agent|yes, that is correct|no, thank you|I would like to check my balance|transfer fifty euros to my savings account".split("|")


def sentences(seed, count):
    chance = random.Random(seed)
    for _ in range(count):
        kind = chance.random()
        if kind < 0.55:
            yield f"{chance.choice(WHO)} {chance.choice(DID)} {chance.choice(WHAT)} {chance.choice(WHEN)}.".capitalize()
        elif kind < 0.8:
            yield "My number is " + ", ".join(" ".join(str(chance.randrange(10)) for _ in range(3)) for _ in range(3)) + "."
        else:
            yield chance.choice(PHRASES).capitalize() + ", " + chance.choice(WHEN) + "."
