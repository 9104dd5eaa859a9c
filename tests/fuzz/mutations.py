"""Damage of every kind, from a seed: to text, to bytes, to archives."""

from __future__ import annotations

import io
import warnings
import zipfile
from random import Random

WORDS = (
    "nan", "inf", "-1", "0", "1e999", "true", "null", '""', "[]", "{}", "[[]]", "10 ms", "1/0", "../..", "*",
    "a.b.c", "\x00", "\ud7ff", "=", "[", "]", '"', "'''", "#", "9" * 400, "[" * 300, "-" * 50,
    "jacobi", "level", "models",
)  # fmt: skip


def mutate_text(text: str, random: Random) -> str:
    """Return a text with one to three lines or letters lost, doubled, swapped or replaced."""
    for _ in range(random.randint(1, 3)):
        text = random.choice(_TEXT)(text, random)
    return text


def _lose_line(text: str, random: Random) -> str:
    lines = text.splitlines(keepends=True)
    del lines[random.randrange(len(lines)) : random.randrange(len(lines)) + 1]
    return "".join(lines) or "\n"


def _double_line(text: str, random: Random) -> str:
    lines = text.splitlines(keepends=True) or ["\n"]
    lines.insert(random.randrange(len(lines)), random.choice(lines))
    return "".join(lines)


def _swap_lines(text: str, random: Random) -> str:
    lines = text.splitlines(keepends=True) or ["\n"]
    first, second = random.randrange(len(lines)), random.randrange(len(lines))
    lines[first], lines[second] = lines[second], lines[first]
    return "".join(lines)


def _replace_letters(text: str, random: Random) -> str:
    at = random.randrange(len(text) + 1)
    return text[:at] + random.choice(WORDS) + text[at + random.randint(0, 4) :]


def _replace_value(text: str, random: Random) -> str:
    """Put a word in place of what stands behind an equals sign, or between quotes."""
    lines = text.splitlines(keepends=True)
    chosen = [number for number, line in enumerate(lines) if "=" in line]
    if not chosen:
        return _replace_letters(text, random)
    number = random.choice(chosen)
    key, _, rest = lines[number].partition("=")
    end = rest[-1:] if rest.endswith("\n") else ""
    word = random.choice(WORDS)
    lines[number] = f"{key}= {random.choice((word, repr(word), f'[{word}]', f'{{a = {word}}}'))}{end}"
    return "".join(lines)


def _cut(text: str, random: Random) -> str:
    return text[: random.randrange(len(text) + 1)] or "\n"


_TEXT = (_lose_line, _double_line, _swap_lines, _replace_letters, _replace_value, _replace_value, _cut)


def mutate_bytes(data: bytes, random: Random) -> bytes:
    """Return bytes with some flipped, zeroed, cut off, doubled or inserted."""
    if not data:
        return bytes(random.randrange(256) for _ in range(8))
    changed = bytearray(data)
    at = random.randrange(len(changed))
    length = random.choice((1, 1, 2, 8, 64, 512))
    match random.randrange(5):
        case 0:
            for _ in range(random.choice((1, 4, 32))):
                changed[random.randrange(len(changed))] ^= 1 << random.randrange(8)
        case 1:
            changed[at : at + length] = bytes(len(changed[at : at + length]))
        case 2:
            del changed[at:]
        case 3:
            changed[at:at] = changed[at : at + length]
        case _:
            changed[at : at + length] = bytes(random.randrange(256) for _ in range(length))
    return bytes(changed)


def mutate_archive(data: bytes, random: Random) -> bytes:
    """Return a ZIP archive that is damaged itself, or has a damaged, missing, doubled or misplaced entry."""
    if random.random() < 0.25:
        return mutate_bytes(data, random)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        entries = [(info.filename, archive.read(info)) for info in archive.infolist()]
    number = random.randrange(len(entries))
    name, content = entries[number]
    match random.randrange(8):
        case 0:
            del entries[number]
        case 1:
            entries.append((name, mutate_bytes(content, random)))
        case 2:
            entries[number] = (
                random.choice(("../x", "/x", "a/" * 40 + "x", "con", "x\\y", name.upper())),
                content,
            )
        case 3 | 4 | 5 if name.endswith((".xml", ".ssd", ".ssv", ".ssm")):
            entries[number] = (name, mutate_text(content.decode(), random).encode())
        case _:
            entries[number] = (name, mutate_bytes(content, random))
    packed = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        warnings.simplefilter("ignore")  # names that come twice
        for each, inside in entries:
            archive.writestr(each, inside)
    return packed.getvalue()
