"""How long a tutorial takes to read and to run, at its head; and the order of tutorials.

sphinx-gallery says at the end of a page how long the program ran; reading is 200 words a minute,
those of code counted too.
"""

import re
from pathlib import Path

TUTORIALS = Path(__file__).resolve().parents[1] / "tutorials"
TITLE = re.compile(r"^=+\n", re.MULTILINE)
RAN = re.compile(r"running time of the script:\*\* \((\d+) minutes ([\d.]+) seconds\)")
WORDS_A_MINUTE = 200


def at_head(_app, page, source):
    """Write it below the title, as Sphinx asks for when it has read a page."""
    name = page.rpartition("/")[2]
    if page.startswith("_made/tutorials/plot_"):
        words = len((TUTORIALS / f"{name}.py").read_text(encoding="utf-8").split())
        source[0] = told(source[0], words, f"sphx_glr_download_{page.replace('/', '_')}.py")


def number(file):
    """Where a tutorial stands among the others: by its number, not by its letters."""
    return int(file.split("_")[1])


def told(text, words, download):
    """The page of a tutorial of so many words, with what it takes below its title."""
    minutes, seconds = RAN.search(text).groups()
    read = counted(words / WORDS_A_MINUTE, "minute")
    run = counted(60 * int(minutes) + float(seconds), "second")
    line = f"\n*{read} to read, {run} to run;* :ref:`download it <{download}>`.\n"
    return TITLE.sub(lambda title: title[0] + line, text, count=1)


def counted(number, unit):
    """A whole number of units, at least one."""
    whole = max(1, round(number))
    return f"{whole} {unit}{'s' * (whole > 1)}"
